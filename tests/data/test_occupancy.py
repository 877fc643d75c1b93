import numpy as np
import pytest

from collegium import data
from tiny_data import office_files, real_data

SENSORS = ("Temperature", "Humidity", "Light", "CO2", "HumidityRatio")


def rows_of(*texts):
    """Readings and 0 or 1 by the letter of the layout."""
    lines = [line.replace('"', "").split(",") for text in texts for line in text.decode().splitlines()[1:]]
    return np.array([line[2:] for line in lines], float)


def check(part, *texts):
    rows = rows_of(*texts)
    np.testing.assert_array_equal(np.hstack(part.views), rows[:, :5])
    np.testing.assert_array_equal(part.y, np.where(rows[:, 5] == 1, 1, -1))
    assert (part.class_names, part.agent_names) == (("occupied", "empty"), SENSORS)
    assert [view.shape for view in part.views] == [(len(rows), 1)] * 5
    assert part.y.dtype == np.int8


def test_the_official_files_in_their_order(uci, put):
    train, test = data.occupancy(root=put("occupancy", uci["occupancy"]))
    first, *others = office_files().values()
    check(train, first)
    check(test, *others)
    assert "datatraining.txt in" in train.source
    assert "datatest.txt and datatest2.txt in" in test.source


@pytest.mark.data
def test_real_data():
    folder = real_data("occupancy") / "occupancy"
    train, test = data.occupancy()
    assert (train.counts, test.counts) == ((1729, 6414), (3021, 9396))
    check(train, (folder / "datatraining.txt").read_bytes())
    check(test, (folder / "datatest.txt").read_bytes(), (folder / "datatest2.txt").read_bytes())
