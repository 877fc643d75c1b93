import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits

from collegium import data
from collegium.errors import DataError

DIGITS = load_digits()
SUMS = [56484, 57075]


def whole(dataset):
    """The images put together again from their nine patches."""
    rows = [np.concatenate(dataset.views[r : r + 3], axis=2) for r in (0, 3, 6)]
    return np.concatenate(rows, axis=1)


def as_set(images):
    return {image.tobytes() for image in images}


@pytest.mark.parametrize("pair", [(3, 8), (8, 3), ("0", "9"), (np.int64(1), 7)])
def test_the_two_halves_are_all_images_of_the_two_digits(pair):
    train, test = data.digits(classes=pair)
    assert [view.shape[1:] for view in train.views] == [(h, w) for h in (3, 3, 2) for w in (3, 3, 2)]
    for sign, digit in zip((1, -1), map(int, pair), strict=True):
        images = np.concatenate([whole(part)[part.y == sign] for part in (train, test)])
        own = DIGITS.images[DIGITS.target == digit] / 16
        assert len(images) == len(own)
        assert as_set(images) == as_set(own)
    assert train.class_names == tuple(str(digit) for digit in pair)
    assert train.agent_names[5] == "row 1, column 2"
    assert all(view.dtype == np.float64 for view in train.views)


def test_the_split_of_two_digits_stays_what_it_was():
    """The numbers of every published result rest on it: the sums were taken before there were ten classes."""
    train, test = data.digits((3, 8))
    assert (train.counts, test.counts) == ((91, 87), (92, 87))
    assert [int((16 * whole(part)).sum()) for part in (train, test)] == SUMS


@pytest.mark.parametrize("classes", [None, (7, "2", 5)])
def test_more_than_two_digits(classes):
    train, test = data.digits(classes)
    names = tuple(map(str, classes or range(10)))
    assert train.class_names == test.class_names == names
    for place, digit in enumerate(map(int, names)):
        images = np.concatenate([whole(part)[part.y == place] for part in (train, test)])
        own = DIGITS.images[DIGITS.target == digit] / 16
        assert len(images) == len(own)
        assert as_set(images) == as_set(own)
        assert abs(test.counts[place] - len(own) / 2) <= 0.5


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_both_classes_are_split_alike(share):
    train, test = data.digits((3, 8), test=share)
    for k in (0, 1):
        total = train.counts[k] + test.counts[k]
        assert abs(test.counts[k] - share * total) <= 0.5


def test_the_seed_decides_the_split():
    first, again, other = (data.digits((3, 8), seed=seed)[0] for seed in (5, 5, 6))
    for a, b in zip(first.views, again.views, strict=True):
        np.testing.assert_array_equal(a, b)
    assert as_set(whole(first)) != as_set(whole(other))
    drawn = data.digits((3, 8), seed=np.random.default_rng(5))[0]
    np.testing.assert_array_equal(whole(drawn), whole(first))
    turned = data.digits(classes=(8, 3), seed=5)[0]
    np.testing.assert_array_equal(whole(turned), whole(first))
    np.testing.assert_array_equal(turned.y, -first.y)


def test_the_split_is_random():
    """Not the first half of the file: whether an image is a test image tells nothing of its place."""
    _, test = data.digits((3, 8), seed=0)
    threes = [image.tobytes() for image in DIGITS.images[DIGITS.target == 3] / 16]
    chosen = as_set(whole(test)[test.y == 1])
    runs = len(list(itertools.groupby(image in chosen for image in threes)))
    assert 60 < runs < 125  # about 92 expected, standard deviation about 7


def test_whole_images():
    train, _ = data.digits(grid=(1, 1))
    np.testing.assert_array_equal(train.views[0], whole(data.digits()[0]))
    assert train.agent_names == ("whole image",)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"classes": (3, 3)}, "got 3 twice"),
        ({"classes": (3, "3")}, "got 3 twice"),
        ({"classes": (3, 10)}, "no class 10 in the digits: choose among 0, 1, 2"),
        ({"classes": (3, True)}, "no class True"),
        ({"classes": ("three", 8)}, "no class 'three'"),
        ({"classes": (3,)}, "two classes"),
        ({"classes": "38"}, "two classes"),
        ({"classes": 3}, "two classes"),
        ({"test": 0}, "share of test items"),
        ({"test": 1.0}, "leaves no 0 to learn from"),
        ({"classes": (8, 3), "test": 0.001}, "leaves no 3 to test on"),
        ({"test": "half"}, "share of test items"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"grid": (9, 1)}, "patches down"),
    ],
)
def test_refusals(settings, says):
    with pytest.raises(DataError, match=says):
        data.digits(**settings)
