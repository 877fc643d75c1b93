"""Any torch module speaks for an agent, as it is or after training; mistakes are answered with a sentence."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from collegium.agents import (  # noqa: E402
    ADAM,
    MicroCNN,
    PatchCNN,
    PixelLogistic,
    SklearnModel,
    SmallResNet,
    TorchModel,
    Training,
)
from collegium.errors import CollegiumError, LabelError, ModelError  # noqa: E402
from helpers import tiny_images  # noqa: E402

NARROW = float(np.finfo(np.float32).eps)
QUICK = Training(learning_rate=0.01, batch_size=8, max_epochs=3)
RNG = np.random.default_rng(0)
Y = np.where(np.arange(40) % 2, 1, -1)
VIEW = (RNG.normal(size=(40, 5)) + 0.8 * Y[:, None]).astype(np.float32)
IMAGES = tiny_images(60, 1)
PICTURES = IMAGES.views[0]
FAMILIES = [PatchCNN((4, 6), 8), PixelLogistic(), SmallResNet((8, 12)), MicroCNN(8)]
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda model: type(model).__name__)


def linear(width, seed=0):
    torch.manual_seed(seed)
    return nn.Linear(5, width)


def quick(model, **settings):
    return clone(model).set_params(training=QUICK, random_state=0, **settings)


# Scores


@pytest.mark.parametrize("width", [1, 2])
def test_a_module_is_scored_as_it_is(width):
    module = linear(width)
    weight, bias = (value.detach().double().numpy() for value in module.parameters())
    expected = VIEW @ weight.T + bias
    expected = expected[:, 0] if width == 1 else expected[:, 1] - expected[:, 0]
    scores = TorchModel(module).scores(VIEW)
    assert scores.dtype == np.float64
    assert scores.shape == (40,)
    assert scores == pytest.approx(expected, abs=32 * NARROW)  # five products of numbers of size one, in float32


def test_scores_are_those_of_evaluation():
    module = nn.Sequential(nn.Dropout(0.5), linear(2), nn.BatchNorm1d(2)).train()
    scores = TorchModel(module).scores(VIEW)
    weight, bias = (value.detach().double().numpy() for value in module[1].parameters())
    logits = (VIEW @ weight.T + bias) / np.sqrt(1 + 1e-5)
    assert scores == pytest.approx(logits[:, 1] - logits[:, 0], abs=32 * NARROW)
    assert scores.tolist() == TorchModel(module).scores(VIEW).tolist()


@pytest.mark.parametrize("width", [1, 2])
def test_a_fitted_module_learns_and_the_callers_module_does_not(width):
    module = linear(width)
    before = [value.detach().clone() for value in module.parameters()]
    model = TorchModel(module, training=replace(QUICK, learning_rate=0.05), random_state=0)
    assert model.fit(VIEW, Y) is model
    assert all(torch.equal(a, b) for a, b in zip(module.parameters(), before, strict=True))
    assert np.mean(np.sign(model.scores(VIEW)) == Y) > 0.9
    assert model.decision_function(VIEW).tolist() == model.scores(VIEW).tolist()
    assert TorchModel(module).scores(VIEW).tolist() != model.scores(VIEW).tolist()


def test_training_goes_on_from_the_modules_weights():
    still = Training("sgd", learning_rate=1e-30, max_epochs=1)
    model = TorchModel(linear(2), training=still).fit(VIEW, Y)
    assert model.scores(VIEW).tolist() == TorchModel(linear(2)).scores(VIEW).tolist()


def test_a_function_makes_a_fresh_module_for_every_fit():
    made = []

    def make():
        made.append(nn.Linear(5, 2))
        return made[-1]

    model = TorchModel(make, training=QUICK, random_state=1)
    first = model.fit(VIEW, Y).scores(VIEW)
    torch.rand(3)  # the caller's random numbers go on, the model's begin again
    assert model.fit(VIEW, Y).scores(VIEW).tolist() == first.tolist()
    assert len(made) == 2
    assert model.module_ is made[1]


def test_a_transform_makes_the_tensor():
    texts = np.array(["aab", "bbb", "aaa", "abb"] * 5)
    labels = np.array([1, -1, 1, -1] * 5)

    def count(view):
        return torch.tensor([[text.count("a"), text.count("b")] for text in view], dtype=torch.float32)

    model = TorchModel(lambda: nn.Linear(2, 1), count, Training("sgd", 0.5, batch_size=4, max_epochs=3), random_state=0)
    model.fit(texts, labels)
    assert (np.sign(model.scores(texts)) == labels).all()
    assert model.scores(texts[:0]).shape == (0,)


@every_family
def test_the_families_learn_an_easy_problem(family):
    model = quick(family).set_params(training=Training(learning_rate=0.02, batch_size=8, max_epochs=3))
    big, test = tiny_images(300, 1, seed=1), tiny_images(200, 1, seed=2)
    model.fit(big.views[0], big.y)
    # twice as many errors as hits would be needed for chance to do this: 60 of 200 is 5.6 standard deviations from 100
    assert np.mean(np.sign(model.scores(test.views[0])) != test.y) < 0.3
    assert model.history_.validation_loss[-1] < np.log(2)


@every_family
def test_scores_of_parts_are_parts_of_scores(family):
    model = quick(family).fit(PICTURES, IMAGES.y)
    whole = model.scores(PICTURES)
    size = max(1, np.abs(whole).max())
    for part in (slice(0, 1), slice(7, 20), slice(59, 60), slice(None, None, -1), [3, 3, 1]):
        # sums in another order for another batch: a few hundred additions in float32
        assert model.scores(PICTURES[part]) == pytest.approx(whole[part], abs=64 * NARROW * size)


def test_large_views_are_scored_in_pieces():
    shapes = []

    class Wide(nn.Module):
        def forward(self, x):
            shapes.append(len(x))
            return x[:, :1]

    view = np.zeros((9, 2**22), np.float16)
    view[:, 0] = np.arange(9)
    seen = []
    model = TorchModel(Wide(), transform=lambda part: seen.append(len(part)) or torch.tensor(part[:, :4]).float())
    assert model.scores(view).tolist() == list(range(9))
    assert seen == [4, 4, 1]
    assert sum(shapes) == 9


@every_family
def test_no_items(family):
    model = quick(family).fit(PICTURES, IMAGES.y)
    assert model.scores(PICTURES[:0]).shape == (0,)
    assert model.predict(PICTURES[:0]).shape == (0,)
    assert TorchModel(linear(2)).scores(VIEW[:0]).dtype == np.float64


@pytest.mark.parametrize("change", [lambda v: v[::-1], lambda v: v[:, ::-1], np.asfortranarray, np.float64, np.float16])
def test_any_memory_layout_and_kind_of_number(change):
    view = change(VIEW)
    expected = TorchModel(linear(2)).scores(np.ascontiguousarray(view, np.float32))
    # a product with a matrix of another memory layout may sum in another order
    assert TorchModel(linear(2)).scores(view) == pytest.approx(expected, abs=32 * NARROW)


def test_read_only_views_and_lists():
    view = VIEW.copy()
    view.flags.writeable = False
    model = TorchModel(linear(2), training=QUICK, random_state=0).fit(view, Y.tolist())
    assert model.scores(view.tolist()) == pytest.approx(model.scores(view), abs=32 * NARROW)
    assert np.array_equal(view, VIEW)


# Labels


@pytest.mark.parametrize("names", [(-1, 1), (0, 1), (False, True), ("cat", "dog"), (3, 8), (-2.5, 0.5)])
def test_the_larger_label_is_plus_one_and_predict_gives_it_back(names):
    labels = np.array(names)[(Y > 0).astype(int)]
    model = quick(TorchModel(linear(2))).fit(VIEW, labels)
    reference = quick(TorchModel(linear(2))).fit(VIEW, Y)
    assert model.classes_.tolist() == list(names)
    assert model.scores(VIEW).tolist() == reference.scores(VIEW).tolist()
    assert model.predict(VIEW).tolist() == [names[int(score > 0)] for score in model.scores(VIEW)]
    assert set(model.predict(VIEW)) == set(names)


def test_a_score_of_zero_is_the_first_class():
    module = nn.Linear(5, 1)
    nn.init.zeros_(module.weight)
    nn.init.zeros_(module.bias)
    still = Training("sgd", learning_rate=1e-30, max_epochs=1)
    model = TorchModel(module, training=still).fit(VIEW * 0, np.where(Y > 0, "b", "a"))
    assert model.scores(VIEW[:3]).tolist() == [0, 0, 0]
    assert model.predict(VIEW[:3]).tolist() == ["a", "a", "a"]


def test_a_module_that_was_fitted_elsewhere_predicts_signs():
    model = TorchModel(linear(2))
    assert model.predict(VIEW).tolist() == np.where(model.scores(VIEW) > 0, 1, -1).tolist()


def test_validation_labels_mean_what_the_training_labels_mean():
    names = np.where(Y > 0, "yes", "no")
    only_yes = VIEW[Y > 0], names[Y > 0]
    model = quick(TorchModel(linear(2))).fit(VIEW, names, only_yes)
    margins = model.scores(VIEW[Y > 0])
    assert np.mean(np.logaddexp(0, -margins)) == pytest.approx(min(model.history_.validation_loss), abs=64 * NARROW)
    with pytest.raises(LabelError, match=r"'maybe' of item 1 is neither .*yes.* nor .*no"):
        quick(TorchModel(linear(2))).fit(VIEW, names, (VIEW[:2], ["yes", "maybe"]))


def test_without_a_validation_set_a_part_is_held_out():
    batches = []

    class Watching(nn.Linear):
        def forward(self, x):
            batches.append((self.training, x.detach().clone()))
            return super().forward(x)

    model = TorchModel(lambda: Watching(5, 2), training=replace(QUICK, max_epochs=1, batch_size=40), random_state=2)
    model.fit(VIEW, Y)
    inside, outside = ({tuple(row) for row in x.tolist()} for _, x in sorted(batches, key=lambda pair: not pair[0]))
    assert (len(inside), len(outside)) == (32, 8)
    assert inside | outside == {tuple(row) for row in VIEW.tolist()}
    assert sum(1 for row, sign in zip(VIEW.tolist(), Y, strict=True) if tuple(row) in outside and sign > 0) == 4


def test_the_images_held_out_do_not_standardise():
    view = np.concatenate([PICTURES, np.full_like(PICTURES[:2], 255)])
    model = quick(PixelLogistic()).fit(view[:60], IMAGES.y, (view[58:], [1, -1, 1, -1]))
    assert model.module_.shift.item() == pytest.approx(PICTURES.mean(), rel=4 * NARROW)
    plain = quick(PixelLogistic(), standardise=False).fit(PICTURES, IMAGES.y)
    assert (plain.module_.shift.item(), plain.module_.scale.item()) == (0, pytest.approx(1 / 255))


# Settings, copies


@every_family
def test_settings_and_clones(family):
    model = quick(family)
    settings = model.get_params()
    assert {"training", "random_state", "standardise"} <= set(settings)
    model.fit(PICTURES, IMAGES.y)
    copy = clone(model)
    assert not hasattr(copy, "module_")
    assert repr(copy.get_params()) == repr(settings)
    assert copy.fit(PICTURES, IMAGES.y).scores(PICTURES).tolist() == model.scores(PICTURES).tolist()
    assert copy.set_params(random_state=7).random_state == 7
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        copy.set_params(depth=3)


def test_a_clone_does_not_share_its_module():
    model = TorchModel(linear(2))
    copy = clone(model)
    with torch.no_grad():
        copy.module.weight.zero_()
    assert model.module.weight.abs().sum() > 0


@every_family
def test_pickling_keeps_what_was_learned(family):
    model = quick(family).fit(PICTURES, IMAGES.y)
    again = pickle.loads(pickle.dumps(model))
    assert again.scores(PICTURES).tolist() == model.scores(PICTURES).tolist()
    assert again.predict(PICTURES).tolist() == model.predict(PICTURES).tolist()


# Mistakes


class Talkative(nn.Linear):
    def forward(self, x):
        return super().forward(x), "and more"


FITTING = {
    "three outputs": (nn.Linear(5, 3), {}),
    "a map for each item": (nn.Sequential(nn.Linear(5, 4), nn.Unflatten(1, (2, 2))), {}),
    "features that are not there": (nn.Linear(4, 2), {}),
    "a pair of outputs": (Talkative(5, 2), {}),
    "no module": (5, {}),
    "a class that wants arguments": (nn.Linear, {}),
    "a function that makes none": (lambda: "network", {}),
    "no weights": (nn.Flatten(), {}),
    "a transform that makes no tensor": (nn.Linear(5, 2), {"transform": lambda view: view.tolist()}),
}


@pytest.mark.parametrize("name", FITTING)
def test_modules_that_cannot_be_fitted(name):
    module, settings = FITTING[name]
    with pytest.raises(ModelError, match=r"\w+ \w+ \w+"):
        TorchModel(module, training=QUICK, **settings).fit(VIEW, Y)


SCORING = {
    "one output for all": (nn.Sequential(nn.Linear(5, 1), nn.Flatten(0), nn.AdaptiveAvgPool1d(1)), "."),
    "features that are not there": (nn.Linear(4, 2), "."),
    "a pair of outputs": (Talkative(5, 2), "."),
    "a function, not fitted": (lambda: nn.Linear(5, 2), "TorchModel is not fitted yet: call fit first"),
    "nothing": (None, "not fitted yet"),
}


@pytest.mark.parametrize("name", SCORING)
def test_modules_that_cannot_be_scored(name):
    module, message = SCORING[name]
    view = VIEW if name != "one output for all" else VIEW[None]
    with pytest.raises(ModelError, match=message):
        TorchModel(module).scores(view)


VIEWS = {
    "texts": VIEW.astype(str),
    "objects": np.array([[None] * 5] * 40),
    "a single number": 3.0,
    "rows of different lengths": [[1.0]] * 39 + [[1.0, 2.0]],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_that_are_no_numbers(name):
    with pytest.raises(CollegiumError, match=r"\w+ \w+ \w+"):
        TorchModel(nn.Linear(5, 2), training=QUICK).fit(VIEWS[name], Y)
    with pytest.raises(CollegiumError, match=r"\w+ \w+ \w+"):
        TorchModel(nn.Linear(5, 2)).scores(VIEWS[name])


def test_gaps_in_a_view():
    view = VIEW.copy()
    view[3, 2] = np.nan
    with pytest.raises(ModelError, match=r"NaN: 1 of 40 items \(first: item 3\)"):
        TorchModel(linear(2)).scores(view)
    with pytest.raises(ModelError, match=r"NaN|finite"):
        TorchModel(linear(2), training=QUICK).fit(view, Y)


@pytest.mark.parametrize(
    "validation",
    [(VIEW[:0], Y[:0]), (VIEW[:4, :3], Y[:4]), (VIEW[:4], Y[:3])],
    ids=["empty", "another shape", "labels missing"],
)
def test_validation_sets_that_do_not_fit(validation):
    with pytest.raises(CollegiumError, match=r"\w+ \w+ \w+"):
        TorchModel(linear(2), training=QUICK).fit(VIEW, Y, validation)


@every_family
def test_families_say_what_they_need(family):
    name = type(family).__name__
    with pytest.raises(ModelError, match=f"{name} is not fitted yet: call fit first"):
        quick(family).scores(PICTURES)
    with pytest.raises(ModelError, match=r"needs images of shape \(n, height, width\)"):
        quick(family).fit(VIEW, Y)
    fitted = quick(family).fit(PICTURES, IMAGES.y)
    for other in (PICTURES[:, :7], PICTURES[..., None], PICTURES[:, 0]):
        with pytest.raises(ModelError, match=rf"{name} was fitted on items of shape \(8, 8\), got \({other.shape[1]},"):
            fitted.scores(other)


def test_a_fitted_module_expects_the_same_items():
    model = TorchModel(nn.Sequential(nn.Flatten(), nn.LazyLinear(2)), training=QUICK).fit(VIEW, Y)
    with pytest.raises(ModelError, match=r"TorchModel was fitted on items of shape \(5,\), got \(4,\)"):
        model.scores(VIEW[:, :4])


def test_micro_cnn_needs_a_window():
    with pytest.raises(ModelError, match="at least 7×7 pixels, got 6×8"):
        quick(MicroCNN()).fit(PICTURES[:, :6], IMAGES.y)


def test_labels_at_the_door():
    with pytest.raises(LabelError, match="two classes, got 1"):
        quick(PixelLogistic()).fit(PICTURES, np.ones(60))
    with pytest.raises(LabelError, match="expected 60"):
        quick(PixelLogistic()).fit(PICTURES, IMAGES.y[:59])


def test_a_failed_fit_leaves_the_earlier_one():
    model = quick(PixelLogistic()).fit(PICTURES, IMAGES.y)
    scores = model.scores(PICTURES)
    model.set_params(training=Training("sgd", 1e38, max_epochs=3))
    with pytest.raises(ModelError, match="diverged"):
        model.fit(PICTURES.astype(float) * 1e20, IMAGES.y)
    assert model.scores(PICTURES).tolist() == scores.tolist()


# Items with weights


def test_a_weight_counts_like_so_many_copies():
    """One full-batch step of plain gradient descent: weights (2, 0, 1, …) against copies of the same items."""
    train = tiny_images(24, 1)
    view, y = train.views[0], train.y
    weights = np.tile([2.0, 0.0, 1.0, 1.0, 1.0, 1.0], 4)
    copies = np.repeat(np.arange(24), weights.astype(int))
    assert len(copies) == 24
    step = Training(optimizer="sgd", learning_rate=0.1, batch_size=24, max_epochs=1)
    weighed, copied = (PixelLogistic(standardise=False, training=step, random_state=0) for _ in range(2))
    weighed.fit(view, y, validation=(view, y), sample_weight=3 * weights)  # only their ratios matter
    copied.fit(view[copies], y[copies], validation=(view, y))
    np.testing.assert_allclose(weighed.scores(view), copied.scores(view), rtol=0, atol=1e-5)
    plain = PixelLogistic(standardise=False, training=step, random_state=0).fit(view, y, validation=(view, y))
    assert np.abs(plain.scores(view) - weighed.scores(view)).max() > 1e-3


def test_equal_weights_change_nothing():
    train = tiny_images(40, 1)
    settings = Training(learning_rate=0.01, batch_size=8, max_epochs=3)
    one, two = (PatchCNN(training=settings, random_state=0) for _ in range(2))
    one.fit(train.views[0], train.y)
    two.fit(train.views[0], train.y, sample_weight=np.full(40, 0.2))
    np.testing.assert_allclose(one.scores(train.views[0]), two.scores(train.views[0]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("weights", [[1.0] * 39, [-1.0] + [1.0] * 39, [0.0] * 40, [np.nan] * 40], ids=str)
@pytest.mark.parametrize("model", [PatchCNN(), SklearnModel(LogisticRegression())], ids=["torch", "sklearn"])
def test_weights_that_are_none_are_refused(weights, model):
    train = tiny_images(40, 1)
    with pytest.raises(ModelError, match="sample_weight must be 40 numbers"):
        model.fit(train.views[0], train.y, sample_weight=weights)


def test_settings_of_the_training_are_reached_by_name():
    model = PatchCNN(training=Training(learning_rate=0.1, max_epochs=3))
    assert model.get_params()["training__learning_rate"] == 0.1
    assert "training__learning_rate" not in model.get_params(deep=False)
    before = model.training
    model.set_params(training__learning_rate=0.2, hidden=5)
    assert model.training == Training(learning_rate=0.2, max_epochs=3)
    assert model.hidden == 5
    assert before.learning_rate == 0.1  # nobody else's training changes
    model.set_params(training=ADAM, training__patience=2)
    assert model.training == replace(ADAM, patience=2)
    with pytest.raises(ModelError, match="no training__rate: choose among optimizer, learning_rate"):
        model.set_params(training__rate=1)
    with pytest.raises(ModelError, match="learning_rate must be a finite number, above 0"):
        model.set_params(training__learning_rate=0)


def test_a_grid_over_learning_rates():
    from sklearn.model_selection import GridSearchCV

    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1, -1)
    X = rng.normal(size=(40, 4, 4)) + y[:, None, None]
    model = PixelLogistic(training=Training(max_epochs=3, batch_size=8), random_state=0)
    search = GridSearchCV(model, {"training__learning_rate": [1e-6, 0.1]}, cv=2).fit(X, y)
    assert search.best_params_ == {"training__learning_rate": 0.1}
    assert search.best_estimator_.training.learning_rate == 0.1


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (PatchCNN(channels=()), r"channels must be two whole numbers; got \(\)"),
        (PatchCNN(channels=(4,)), r"channels must be two whole numbers; got \(4,\)"),
        (PatchCNN(channels=(4, 0)), "each of channels must be a whole number, at least 1; got 0"),
        (PatchCNN(hidden=0), "hidden must be a whole number, at least 1; got 0"),
        (PatchCNN(dropout=2), "dropout must be a finite number, at least 0 and at most 1; got 2"),
        (SmallResNet(channels=()), r"channels must be a whole number for each block, at least one; got \(\)"),
        (SmallResNet(channels=8), "channels must be a whole number for each block, at least one; got 8"),
        (MicroCNN(channels=0), "channels must be a whole number, at least 1; got 0"),
        (MicroCNN(channels=()), r"channels must be a whole number, at least 1; got \(\)"),
    ],
)
def test_impossible_sizes_are_refused_in_a_sentence(model, complaint):
    with pytest.raises(ModelError, match=complaint):
        model.build((8, 8))


# More than two classes

THREE = np.arange(60) % 3
CORNERS = (np.eye(5)[THREE] * 3 + RNG.normal(size=(60, 5))).astype(np.float32)


def test_one_output_per_class():
    module = linear(3)
    model = TorchModel(module, classes=["a", "b", "c"])
    with torch.no_grad():
        logits = module(torch.from_numpy(CORNERS)).double().numpy()
    np.testing.assert_allclose(model.scores(CORNERS), logits - logits.mean(axis=1, keepdims=True), atol=1e-6)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(CORNERS), chances, atol=1e-6)
    assert (model.predict(CORNERS) == logits.argmax(axis=1)).all()


def test_several_classes_are_learned_by_their_cross_entropy():
    names = np.array(["red", "green", "blue"])
    settings = Training(optimizer="sgd", learning_rate=0.1, batch_size=60, max_epochs=1)
    model = TorchModel(linear(3), training=settings, random_state=0)
    model.fit(CORNERS, names[THREE], validation=(CORNERS, names[THREE]))
    network = linear(3)
    places = torch.from_numpy(np.unique(names, return_inverse=True)[1][THREE])
    loss = nn.CrossEntropyLoss()(network(torch.from_numpy(CORNERS)), places)
    loss.backward()
    stepped = network.weight - 0.1 * network.weight.grad
    torch.testing.assert_close(model.module_.weight, stepped)
    assert model.history_.training_loss[0] == pytest.approx(loss.item(), rel=1e-5)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    longer = clone(model).set_params(training__max_epochs=60).fit(CORNERS, names[THREE])
    assert (longer.predict(CORNERS) == names[THREE]).mean() > 0.9
    assert longer.scores(CORNERS[:0]).shape == (0, 3)


def test_weights_of_items_of_several_classes():
    settings = Training(optimizer="sgd", learning_rate=0.1, batch_size=60, max_epochs=1)
    weight = np.linspace(0, 2, 60)
    model = TorchModel(linear(3), training=settings)
    model.fit(CORNERS, THREE, validation=(CORNERS, THREE), sample_weight=weight)
    losses = nn.CrossEntropyLoss(reduction="none")(linear(3)(torch.from_numpy(CORNERS)), torch.from_numpy(THREE))
    assert model.history_.training_loss[0] == pytest.approx((losses * torch.from_numpy(weight)).mean().item(), rel=1e-5)


def test_too_few_outputs_for_the_classes():
    with pytest.raises(ModelError, match=r"for 3 classes must have as many outputs per item; got \(8, 2\)"):
        TorchModel(linear(2), training=QUICK).fit(CORNERS, THREE)


@every_family
def test_families_have_an_output_for_each_class(family):
    y = np.arange(60) % 4
    model = clone(family).set_params(training=replace(family.training, max_epochs=1, batch_size=16), random_state=0)
    scores = model.fit(PICTURES, y).scores(PICTURES)
    assert scores.shape == (60, 4)
    np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_probabilities_are_warned_of_or_taken_for_what_they_are(width):
    logits = linear(width)
    last = torch.nn.Sigmoid() if width == 1 else torch.nn.Softmax(dim=1)
    module, expected = torch.nn.Sequential(logits, last), TorchModel(logits).scores(VIEW)
    with pytest.warns(UserWarning, match='kind="probabilities"'):
        TorchModel(module).scores(VIEW)
    np.testing.assert_allclose(TorchModel(module, kind="probabilities").scores(VIEW), expected, atol=1e-4)
    with pytest.raises(ModelError, match="kind must be one of"):
        TorchModel(module, kind="odds").scores(VIEW)
    with pytest.raises(ModelError, match="trained by its logits"):
        TorchModel(module, kind="probabilities").fit(VIEW, Y)
