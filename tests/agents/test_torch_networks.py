"""Each family computes what a textbook says, values and gradients, on images of any size and layout."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch.func import functional_call  # noqa: E402

from collegium.agents import MicroCNN, PatchCNN, PixelLogistic, SmallResNet  # noqa: E402
from collegium.agents.torch_networks import (  # noqa: E402
    ImageNetwork,
    MicroNetwork,
    PatchNetwork,
    PixelNetwork,
    ResidualNetwork,
    images,
)
from collegium.errors import ModelError  # noqa: E402

NARROW = torch.finfo(torch.float32).eps
# Sums of at most a few thousand products in float64, whose order is free.
CLOSE = {"rtol": 1e-10, "atol": 1e-12}

FAMILIES = [PatchCNN(), PixelLogistic(), SmallResNet(), MicroCNN()]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other are slow on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pictures(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def doubled(network, seed=0):
    """The network in float64 with random numbers in place of everything it could have learned."""
    torch.manual_seed(seed)
    network = network.double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn_like(weight) / max(1, weight[0].numel()) ** 0.5)
        for name, value in network.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                value.copy_(torch.rand_like(value) + 0.5)
    return network.eval()


def gradients(network, outputs):
    """The gradient of a fixed random combination of the outputs."""
    weights = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1)).to(outputs.dtype)
    return torch.autograd.grad((outputs * weights).sum(), list(network.parameters()))


def assert_same(ours, theirs, **tolerance):
    torch.testing.assert_close(ours, theirs, **(tolerance or CLOSE))


# The families against the textbook


def textbook_patch(network, x):
    """A convolution with stride 2, a ramp, a convolution, a ramp, the maximum over 2×2; two fully connected layers."""
    x = F.relu(F.conv2d(x, network.first.weight, network.first.bias, stride=2, padding=1))
    x = F.relu(F.conv2d(x, network.second.weight, network.second.bias, padding=1))
    x = F.max_pool2d(x, (min(2, x.shape[2]), min(2, x.shape[3])))
    x = F.relu(F.linear(x.flatten(1), network.hidden.weight, network.hidden.bias))
    return F.linear(x, network.head.weight, network.head.bias)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (1, 5), (3, 3), (10, 10), (11, 11), (10, 11), (32, 32)])
@pytest.mark.parametrize("depth", [1, 3])
def test_patch_network(size, depth):
    network = doubled(PatchNetwork((*size, depth), channels=(5, 6), hidden=7))
    x = torch.from_numpy(pictures(3, *size, depth)).double()
    ours, theirs = network(x), textbook_patch(network, x.permute(0, 3, 1, 2).contiguous())
    assert ours.shape == (3, 2)
    assert_same(ours, theirs)
    for mine, its in zip(gradients(network, ours), gradients(network, theirs), strict=True):
        assert_same(mine, its)


@pytest.mark.parametrize("size", [(7, 7), (8, 10), (11, 11), (15, 12), (32, 32)])
@pytest.mark.parametrize("depth", [1, 3])
def test_micro_network_and_its_gradient(size, depth):
    network = doubled(MicroNetwork((*size, depth), channels=5))
    view = pictures(4, *size, depth)
    x = torch.from_numpy(view).double().permute(0, 3, 1, 2)
    maps = F.relu(F.conv2d(x, network.convolution.weight, network.convolution.bias, stride=4))
    theirs = F.linear(maps.mean((2, 3)), network.head.weight, network.head.bias)
    ours = network(network.prepare(view).double())
    assert ours.shape == (4, 2)
    assert_same(ours, theirs)
    for mine, its in zip(gradients(network, ours), gradients(network, theirs), strict=True):
        assert_same(mine, its)
    assert (maps == 0).any()  # else the ramp was never tried
    assert (maps > 0).any()


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_an_even_background_is_counted_by_the_micro_network(kind):
    """Images with more background, with less, with none and with nothing else: as the convolution sees them."""
    view = np.full((4, 31, 27, 2), 255, kind)
    rng = np.random.default_rng(4)
    for i, part in enumerate((slice(9, 20), slice(12, 15), slice(None), slice(0))):
        view[i, part, part] = rng.integers(0, 256, view[i, part, part].shape)
    network = MicroNetwork((31, 27, 2), channels=5)
    network.observe(view, True)
    shift, scale = network.shift.double(), network.scale.double()
    network = doubled(network)
    prepared = network.prepare(view)
    assert prepared.shape == (4, 7 * 6, 7 * 7 * 2 + 1)
    assert prepared[:, :, -1].sum(1).tolist() == [4 * 4 + 1, 2 * 2 + 1, 42, 1]
    assert network.prepare(view[:2]).shape[1] == 17
    ours = network(prepared if kind == np.uint8 else prepared.double())
    x = ((torch.from_numpy(view.astype(float)) - shift) * scale).permute(0, 3, 1, 2)
    maps = F.relu(F.conv2d(x, network.convolution.weight, network.convolution.bias, stride=4))
    theirs = F.linear(maps.mean((2, 3)), network.head.weight, network.head.bias)
    assert_same(ours, theirs)
    for mine, its in zip(gradients(network, ours), gradients(network, theirs), strict=True):
        assert_same(mine, its)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_micro_network_on_standardised_images(kind):
    rng = np.random.default_rng(3)
    view = (rng.integers(0, 256, (4, 13, 11, 2)) // [1, 3]).astype(kind)
    network = MicroNetwork((13, 11, 2), channels=5)
    network.observe(view, True)
    shift, scale = network.shift.double(), network.scale.double()
    assert (shift != 0).all()
    network = doubled(network)
    prepared = network.prepare(view)
    ours = network(prepared if kind == np.uint8 else prepared.double())
    x = torch.from_numpy(view.astype(float))
    x = ((x - shift) * scale).permute(0, 3, 1, 2)
    maps = F.relu(F.conv2d(x, network.convolution.weight, network.convolution.bias, stride=4))
    theirs = F.linear(maps.mean((2, 3)), network.head.weight, network.head.bias)
    assert_same(ours, theirs)
    for mine, its in zip(gradients(network, ours), gradients(network, theirs), strict=True):
        assert_same(mine, its)


def test_the_gradient_of_the_micro_network_by_finite_differences():
    network = doubled(MicroNetwork((11, 12, 1), channels=2))
    windows = network.prepare(pictures(3, 11, 12, 1)).double()
    given = {name: value.detach().clone().requires_grad_() for name, value in network.named_parameters()}

    def forward(*values):
        return functional_call(network, dict(zip(given, values, strict=True)), windows)

    assert torch.autograd.gradcheck(forward, tuple(given.values()))


def test_the_ramp_of_the_micro_network_is_flat_at_zero():
    network = doubled(MicroNetwork((11, 11, 1), channels=2))
    for value in network.convolution.parameters():
        torch.nn.init.zeros_(value)
    for gradient in gradients(network, network(network.prepare(pictures(3, 11, 11, 1)).double()))[:2]:
        assert not gradient.any()


def test_the_micro_network_in_single_precision():
    network = MicroNetwork((19, 19, 3), channels=4)
    view = pictures(5, 19, 19, 3)
    ours = network(network.prepare(view))
    mine = gradients(network, ours)
    exact = MicroNetwork((19, 19, 3), channels=4).double()
    exact.load_state_dict(network.state_dict())
    maps = F.relu(exact.convolution(torch.from_numpy(view).double().permute(0, 3, 1, 2)))
    theirs = exact.head(maps.mean((2, 3)))
    # sums of 7·7·3 products, then 16 places, then 5 items: each addition may lose half an eps of numbers of size one
    close = {"rtol": 0, "atol": 0.5 * (147 + 16 + 5) * NARROW * 4}
    assert_same(ours.double(), theirs, **close)
    for a, b in zip(mine, gradients(exact, theirs), strict=True):
        assert_same(a.double(), b, **close)


def test_the_micro_network_gives_the_same_with_and_without_gradients():
    network = MicroNetwork((12, 12, 1))
    windows = network.prepare(pictures(6, 12, 12, 1))
    with torch.no_grad():
        quiet = network(windows)
    assert not quiet.requires_grad
    assert torch.equal(network(windows), quiet)
    assert network(windows[:0]).shape == (0, 2)


@pytest.mark.parametrize("size", [(6, 7), (11, 3), (10, 2)])
def test_micro_network_needs_a_window(size):
    with pytest.raises(ModelError, match=rf"MicroCNN needs images of at least 7×7 pixels, got {size[0]}×{size[1]}"):
        MicroNetwork((*size, 1))


def test_pixel_network():
    network = doubled(PixelNetwork((5, 4, 3)))
    x = pictures(6, 5, 4, 3).astype(float)
    weight, bias = (value.detach().numpy() for value in network.parameters())
    expected = np.einsum("nhwc,ohwc->no", x, weight.reshape(2, 5, 4, 3)) + bias
    assert network(torch.from_numpy(x)).detach().numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (10, 11), (32, 32)])
@pytest.mark.parametrize("channels", [(4,), (4, 6), (4, 4, 8)])
def test_residual_network(size, channels):
    network = doubled(ResidualNetwork((*size, 2), channels))
    x = torch.from_numpy(pictures(3, *size, 2)).double()

    def layer(x, name, stride=1):
        weights = network.get_submodule(f"{name}.0")
        norm = network.get_submodule(f"{name}.1")
        x = F.conv2d(x, weights.weight, stride=stride, padding=weights.weight.shape[-1] // 2)
        one = (slice(None), None, None)
        x = (x - norm.running_mean[one]) / torch.sqrt(norm.running_var + 1e-5)[one]
        return x * norm.weight[one] + norm.bias[one]

    z = F.relu(layer(x.permute(0, 3, 1, 2), "stem"))
    width = channels[0]
    for i, after in enumerate(channels):
        stride = 1 if i == 0 else 2
        inner = layer(F.relu(layer(z, f"blocks.{i}.first", stride)), f"blocks.{i}.second")
        around = z if (stride, width) == (1, after) else layer(z, f"blocks.{i}.shortcut", stride)
        z, width = F.relu(inner + around), after
    expected = F.linear(z.mean((2, 3)), network.head.weight, network.head.bias)
    assert_same(network(x), expected)


@pytest.mark.parametrize(
    "network",
    [PatchNetwork((8, 8, 1), dropout=0.5), MicroNetwork((8, 8, 1), dropout=0.5)],
    ids=lambda n: type(n).__name__,
)
def test_dropout_acts_in_training_only(network):
    x = network.prepare(pictures(4, 8, 8, 1))
    assert not torch.equal(network.train()(x), network(x))
    assert torch.equal(network.eval()(x), network(x))


# Images of any size, layout and kind


@pytest.mark.parametrize("model", FAMILIES, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("shape", [(8, 9), (8, 9, 3), (3, 8, 9), (32, 32, 3), (8, 9, 1)])
def test_two_logits_for_every_layout(model, shape):
    network = model.build(shape)
    x = network.prepare(pictures(2, *shape))
    assert network(x).shape == (2, 2)
    assert network(x).dtype == torch.float32


@pytest.mark.parametrize("size", [2, 10, 11, 32])
def test_patch_cnn_takes_any_size(size):
    network = PatchCNN().build((size, size, 3))
    assert network(network.prepare(pictures(2, size, size, 3))).shape == (2, 2)


def test_layouts_are_told_apart():
    picture = pictures(2, 5, 6, 3)
    assert np.array_equal(images(picture).numpy(), picture)
    assert np.array_equal(images(picture.transpose(0, 3, 1, 2)).numpy(), picture)
    assert np.array_equal(images(picture[..., 0]).numpy(), picture[..., :1])
    assert images(picture[:0]).shape == (0, 5, 6, 3)


@pytest.mark.parametrize("shape", [(4,), (4, 5), (4, 5, 6, 3, 1)])
def test_what_is_no_image(shape):
    with pytest.raises(ModelError, match=rf"images of shape \(n, height, width\) or .*, got \({shape[0]},"):
        images(np.zeros(shape))


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("network", [ImageNetwork(1), MicroNetwork((16, 16, 1))], ids=["image", "micro"])
def test_what_was_learned_in_bytes_means_the_same_in_any_type(standardise, network):
    levels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    network.observe(levels, standardise)
    if not standardise:
        assert network.scale.item() == pytest.approx(1 / 255)
    for kind in (np.float64, np.float32, np.int64, np.uint16):
        assert torch.equal(network.prepare(levels.astype(kind)).float(), network.prepare(levels).float())
    network.observe(levels.astype(float), False)
    assert (network.shift.item(), network.scale.item()) == (0, 1)


@pytest.mark.parametrize(
    "change", [lambda view: view[:, ::-1], lambda view: view.transpose(0, 2, 1, 3), np.asfortranarray]
)
def test_any_memory_layout_and_read_only(change):
    view = change(pictures(3, 5, 5, 3))
    view.flags.writeable = False
    assert np.array_equal(images(view).numpy(), view)


# Standardised images


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_standardise_is_mean_and_spread_per_channel(kind):
    rng = np.random.default_rng(2)
    view = rng.integers(0, 256, (40, 6, 5, 3)).astype(kind) // np.array([1, 2, 3], kind)
    before = view.copy()
    network = ImageNetwork(3)
    network.observe(view, True)
    pixels = view.astype(float)
    mean, spread = pixels.mean((0, 1, 2)), pixels.std((0, 1, 2))
    # pixels and the two numbers are rounded to float32
    assert network.shift.numpy() == pytest.approx(mean, rel=4 * NARROW)
    assert network.scale.numpy() == pytest.approx(1 / spread, rel=4 * NARROW)
    prepared = network.prepare(view)
    assert prepared.dtype == torch.float32
    assert prepared.numpy() == pytest.approx((pixels - mean) / spread, abs=16 * NARROW)
    assert np.array_equal(view, before)


def test_other_images_are_standardised_by_the_training_images():
    network = ImageNetwork(1)
    network.observe(np.array([0.0, 2.0], np.float32).reshape(2, 1, 1), True)
    assert network.prepare(np.array([5.0], np.float32).reshape(1, 1, 1)).item() == 4.0


@pytest.mark.parametrize("value", [0.0, 0.1, 7.3, 1e4])
def test_constant_channels_divide_by_nothing(value):
    view = pictures(10, 4, 4, 2)
    view[..., 1] = value
    network = ImageNetwork(2)
    network.observe(view, True)
    prepared = network.prepare(view).numpy()
    assert np.isfinite(prepared).all()
    assert np.abs(prepared[..., 1]).max() <= value * NARROW
    assert prepared[..., 0].std() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("model", FAMILIES, ids=lambda model: type(model).__name__)
def test_constant_images_give_finite_logits(model):
    view = np.full((6, 8, 8), 200, np.uint8)
    network = model.build((8, 8))
    network.observe(view, True)
    assert torch.isfinite(network(network.prepare(view))).all()


def test_what_was_learned_of_the_images_travels_with_the_weights():
    network = PatchCNN().build((8, 8))
    network.observe(pictures(9, 8, 8) * 3 + 1, True)
    assert {"shift", "scale"} <= set(network.state_dict())
    other = PatchCNN().build((8, 8))
    other.load_state_dict(network.state_dict())
    view = pictures(2, 8, 8, seed=4)
    assert torch.equal(other(other.prepare(view)), network(network.prepare(view)))
