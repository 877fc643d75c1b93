import numpy as np
import pytest

from collegium.data import Dataset
from collegium.errors import DataError

Y = [1, -1, 1, -1, -1]


def dataset(**changed):
    settings = {
        "views": [np.arange(5), np.arange(10).reshape(5, 2)],
        "y": Y,
        "class_names": ("cat", "dog"),
        "agent_names": ("left", "right"),
        "items": list("abcde"),
    }
    return Dataset(**(settings | changed))


def test_what_it_says_of_itself():
    one = dataset()
    assert (len(one), one.size, one.counts, one.largest_n0) == (5, 2, (2, 3), 4)
    assert repr(one) == "Dataset(5 items: 2 × cat, 3 × dog; 2 agents: left, right)"
    assert one.items == ("a", "b", "c", "d", "e")
    assert one.y.dtype == np.int8


def test_more_classes_than_two():
    three = dataset(y=[2, 0, 2, 1, 2], class_names=("cat", "dog", "cow"))
    assert (three.counts, three.largest_n0) == ((1, 1, 3), 3)
    assert repr(three) == "Dataset(5 items: 1 × cat, 1 × dog, 3 × cow; 2 agents: left, right)"
    some = three.take([3, 0])
    assert (some.y.tolist(), some.y.dtype, some.class_names) == ([1, 2], np.intp, ("cat", "dog", "cow"))
    ten = dataset(y=[9, 0, 2, 1, 2], class_names=tuple("0123456789"))
    assert repr(ten) == "Dataset(5 items of 10 classes: 0 … 9; 2 agents: left, right)"
    assert ten.largest_n0 == 0


def test_many_agents_are_not_all_named():
    many = dataset(views=[np.zeros(5)] * 9, agent_names=[f"agent {k}" for k in range(9)])
    assert "9 agents: agent 0 … agent 8)" in repr(many)


@pytest.mark.parametrize("rows", [[3, 0], np.array([3, 0], np.uint8), (3, -5)])
def test_take_keeps_everything_aligned(rows):
    some = dataset(source="a test").take(rows)
    assert some.items == ("d", "a")
    np.testing.assert_array_equal(some.y, [-1, 1])
    np.testing.assert_array_equal(some.views[1], [[6, 7], [0, 1]])
    assert (some.source, some.class_names, some.agent_names) == ("a test", ("cat", "dog"), ("left", "right"))


def test_take_by_mask_and_nothing():
    np.testing.assert_array_equal(dataset().take([True, False, False, True, False]).views[0], [0, 3])
    assert len(dataset().take([])) == 0


@pytest.mark.parametrize("rows", [[5], [-6], 2, [[0]], [0.0], [True, False], ["a"]])
def test_take_refuses(rows):
    with pytest.raises(DataError, match="item"):
        dataset().take(rows)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"views": []}, "at least one view"),
        ({"views": 7}, "list of arrays"),
        ({"views": "ab"}, "list of arrays"),
        ({"views": [np.zeros(5), np.zeros(4)]}, "view 1 has shape"),
        ({"views": [np.zeros(5), [[1], [1, 2]]]}, "one array"),
        ({"views": [np.zeros(5), np.float64(3)]}, "view 1 has shape"),
        ({"y": [0, 1, 1, 0, 0]}, r"\+1"),
        ({"y": [[1], [1], [1], [1], [1]]}, r"\+1"),
        ({"class_names": ("cat", "cat")}, "different classes"),
        ({"class_names": ("cat", "dog", "cat")}, "different classes"),
        ({"class_names": ("cat",)}, "two or more"),
        ({"class_names": ("cat", "dog", "cow")}, "places among its 3 classes, 0 to 2"),
        ({"class_names": ("cat", "dog", "cow"), "y": [0, 1, 2, 3, 0]}, "places among its 3 classes"),
        ({"class_names": ("cat", "dog", "cow"), "y": [0, 1, 2, 0.5, 0]}, "places among its 3 classes"),
        ({"class_names": "ab"}, "list of names"),
        ({"agent_names": ("left",)}, "2 views need as many agent names, got 1"),
        ({"agent_names": ("left", "left")}, "must differ from one another; got 'left'"),
        ({"items": ["a"]}, "5 items need as many names, got 1"),
    ],
)
def test_what_does_not_belong_together_is_refused(changed, says):
    with pytest.raises(DataError, match=says):
        dataset(**changed)


def test_labels_cannot_be_changed_and_mapped_views_stay_mapped(tmp_path):
    np.save(tmp_path / "view.npy", np.arange(5))
    mapped = np.load(tmp_path / "view.npy", mmap_mode="r")
    given = np.array(Y)
    one = dataset(views=[mapped, np.zeros(5)], y=given)
    assert isinstance(one.views[0], np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        one.y[0] = -1
    given[0] = -1
    assert one.y[0] == 1


def test_views_are_a_list_that_cannot_be_written_to():
    given = np.zeros(5)
    one = dataset(views=(given, np.zeros((5, 2))))
    assert isinstance(one.views, list)
    for view in one.views:
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 1
    given[0] = 1  # whose it is, may
