import numpy as np
import pytest

from collegium import data
from collegium.errors import DataError, InputFileError
from tiny_data import CIFAR_FILES, real_data, write_cifar

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def plain_reader(folder, files, pair):
    """Images and signs by the letter of the layout, byte by byte."""
    images, y = [], []
    for name in files:
        content = (folder / name).read_bytes()
        for start in range(0, len(content), 3073):
            label, pixels = content[start], content[start + 1 : start + 3073]
            if label in pair:
                image = np.zeros((32, 32, 3), np.uint8)
                for row in range(32):
                    for column in range(32):
                        for colour in range(3):
                            image[row, column, colour] = pixels[1024 * colour + 32 * row + column]
                images.append(image)
                y.append(1 if label == pair[0] else -1)
    return np.array(images), np.array(y)


def whole(dataset):
    rows = [np.concatenate(dataset.views[r : r + 3], axis=2) for r in (0, 3, 6)]
    return np.concatenate(rows, axis=1)


@pytest.mark.parametrize("pair", [("cat", "dog"), (5, 3), ("airplane", 5)])
def test_pixels_and_labels_of_every_file(tmp_path, pair):
    folder = write_cifar(tmp_path)
    numbers = tuple(one if isinstance(one, int) else NAMES.index(one) for one in pair)
    for part, files in zip(data.cifar10(pair, root=tmp_path), (CIFAR_FILES[:5], CIFAR_FILES[5:]), strict=True):
        images, y = plain_reader(folder, files, numbers)
        np.testing.assert_array_equal(whole(part), images)
        np.testing.assert_array_equal(part.y, y)
        assert part.class_names == (NAMES[numbers[0]], NAMES[numbers[1]])
        assert [view.shape[1:] for view in part.views] == [(h, w, 3) for h in (11, 11, 10) for w in (11, 11, 10)]
        assert all(view.flags.c_contiguous and view.dtype == np.uint8 for view in part.views)
        assert str(folder) in part.source


def test_the_whole_image_as_one_view(tmp_path):
    write_cifar(tmp_path)
    for one, nine in zip(data.cifar10(root=tmp_path, grid=(1, 1)), data.cifar10(root=tmp_path), strict=True):
        assert one.size == 1
        assert one.views[0].flags.c_contiguous
        np.testing.assert_array_equal(one.views[0], whole(nine))


def test_where_it_is_looked_for(tmp_path, monkeypatch, no_data):
    with pytest.raises(
        DataError, match=r"cifar-10-batches-bin.* not found.*collegium data fetch cifar10.*COLLEGIUM_DATA"
    ):
        data.cifar10()
    own = write_cifar(no_data / ".local/share/collegium", labels=[3, 5])
    assert str(own) in data.cifar10()[0].source
    folder = write_cifar(tmp_path / "elsewhere")
    monkeypatch.setenv("COLLEGIUM_DATA", str(tmp_path / "elsewhere"))
    assert str(folder) in data.cifar10()[0].source
    assert str(own) in data.cifar10(root=own)[0].source  # the folder itself
    renamed = folder.rename(tmp_path / "renamed")
    assert str(renamed) in data.cifar10(root=renamed)[0].source
    with pytest.raises(DataError, match="nowhere"):  # a root that was named is not replaced by another
        data.cifar10(root=tmp_path / "nowhere")


@pytest.mark.parametrize("content", [b"", b"\3" + bytes(3071), bytes(3073 * 2 + 1)])
def test_a_file_that_is_not_whole_is_refused_by_name(tmp_path, content):
    folder = write_cifar(tmp_path)
    (folder / "data_batch_4.bin").write_bytes(content)
    with pytest.raises(InputFileError, match=r"data_batch_4\.bin (is empty|has \d+ bytes)"):
        data.cifar10(root=tmp_path)


def test_a_foreign_file_of_the_right_length_is_refused_by_name(tmp_path):
    folder = write_cifar(tmp_path)
    (folder / "test_batch.bin").write_bytes(bytes(3073) + b"\x0a" + bytes(3072))
    with pytest.raises(InputFileError, match=r"test_batch\.bin: record 1 has label 10"):
        data.cifar10(root=tmp_path)


def test_missing_files_are_all_named(tmp_path):
    folder = write_cifar(tmp_path)
    (folder / "data_batch_2.bin").unlink()
    (folder / "test_batch.bin").unlink()
    with pytest.raises(DataError, match=r"lacks data_batch_2\.bin, test_batch\.bin: move it away\..*fetch cifar10"):
        data.cifar10(root=tmp_path)
    (folder / "data_batch_2.bin").mkdir()
    (folder / "test_batch.bin").write_bytes(bytes(3073))
    with pytest.raises(InputFileError, match=r"data_batch_2\.bin is a folder, not a file\. Move .*-bin away and get"):
        data.cifar10(root=tmp_path)


def test_a_class_that_does_not_occur(tmp_path):
    write_cifar(tmp_path)
    with pytest.raises(
        DataError, match=r"train files.*no image of class ship: they have airplane \(5\), cat \(20\), dog"
    ):
        data.cifar10(("cat", "ship"), root=tmp_path)
    with pytest.raises(
        DataError, match=r"class automobile or bird or deer or .*they have airplane \(5\).*fetch cifar10"
    ):
        data.cifar10(None, root=tmp_path)


@pytest.mark.parametrize("classes", [("ship", "cat", "airplane"), None])
def test_any_of_the_ten_classes_where_they_are_there(tmp_path, classes):
    folder = write_cifar(tmp_path, labels=[3, 1, 0, 8, 9, 2, 4, 5, 6, 7])
    names = classes or tuple(NAMES)
    for part, files in zip(data.cifar10(classes, root=tmp_path), (CIFAR_FILES[:5], CIFAR_FILES[5:]), strict=True):
        content = [(folder / name).read_bytes() for name in files]
        found = [NAMES[one[start]] for one in content for start in range(0, len(one), 3073)]
        assert [part.class_names[place] for place in part.y] == [name for name in found if name in names]
        assert part.class_names == names


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"classes": ("cat", "cow")}, "no class 'cow' in CIFAR-10: choose among airplane, automobile"),
        ({"classes": ("cat", 3)}, "cat twice"),
        ({"classes": ("cat", 10)}, "no class 10"),
        ({"grid": (33, 1)}, "patches down"),
        ({"root": 7}, "root must be"),
        ({"root": ""}, "root must be"),
    ],
)
def test_refusals(settings, says):
    with pytest.raises(DataError, match=says):
        data.cifar10(**settings)


@pytest.mark.data
def test_real_data():
    root = real_data("cifar-10-batches-bin")
    train, test = data.cifar10()
    assert (train.counts, test.counts) == ((5000, 5000), (1000, 1000))
    images, y = plain_reader(root / "cifar-10-batches-bin", ["test_batch.bin"], (3, 5))
    np.testing.assert_array_equal(whole(test), images)
    np.testing.assert_array_equal(test.y, y)
