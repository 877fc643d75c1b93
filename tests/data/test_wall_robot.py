from collections import Counter

import numpy as np
import pytest

from collegium import data
from collegium.errors import DataError
from tiny_data import real_data, robot_files

NAMES = ("Move-Forward", "Sharp-Right-Turn", "Slight-Left-Turn", "Slight-Right-Turn")


def rows_of(text):
    """Readings and movements by the letter of the layout."""
    lines = [line.split(",") for line in text.decode().split()]
    return [(tuple(map(float, line[:24])), line[24]) for line in lines]


def items(part):
    readings = np.hstack(part.views)
    return [(tuple(row), part.class_names[place]) for row, place in zip(readings.tolist(), part.y, strict=True)]


@pytest.fixture
def root(uci, put):
    return put("wall-robot", uci["wall_robot"])


@pytest.mark.parametrize(
    "settings", [{}, {"split": "blocks"}, {"test": 0.5, "seed": 3}, {"split": "blocks", "blocks": 7}]
)
def test_every_reading_is_in_one_of_the_two_parts(root, settings):
    train, test = data.wall_robot(root=root, **settings)
    assert sorted(items(train) + items(test)) == sorted(rows_of(robot_files()["sensor_readings_24.data"]))
    for part in (train, test):
        assert part.class_names == NAMES
        assert part.agent_names == tuple(f"US{k}" for k in range(1, 25))
        assert [view.shape for view in part.views] == [(len(part), 1)] * 24
        assert min(part.counts) > 0


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_at_random_every_class_is_split_alike(root, share):
    train, test = data.wall_robot(root=root, test=share)
    assert test.counts == (round(100 * share),) * 4
    assert train.counts == (100 - round(100 * share),) * 4


def test_by_blocks_of_time(root):
    order = [reading for reading, _ in rows_of(robot_files()["sensor_readings_24.data"])]
    place = {reading: i for i, reading in enumerate(order)}
    for seed in range(5):
        train, test = data.wall_robot("blocks", root=root, seed=seed)
        for part, blocks in ((train, 7), (test, 3)):
            times = [place[reading] for reading, _ in items(part)]
            assert times == sorted(times)
            assert Counter(Counter(i // 40 for i in times).values()) == {40: blocks}


def test_the_seed_decides(root):
    for split in ("random", "blocks"):
        first, again, other = (data.wall_robot(split, seed=seed, root=root)[1] for seed in (1, 1, 2))
        assert items(first) == items(again) != items(other)
        assert items(data.wall_robot(split, seed=np.random.default_rng(1), root=root)[1]) == items(first)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"split": "time"}, 'split must be "random" or "blocks"; got \'time\''),
        ({"test": 0}, "share of test items"),
        ({"test": 1.0}, "leaves no Move-Forward to learn from"),
        ({"split": "blocks", "test": 0.01}, "of 10 blocks leaves none to test on"),
        ({"split": "blocks", "test": 0.99}, "of 10 blocks leaves none to learn from"),
        ({"split": "blocks", "blocks": 1}, "number of blocks"),
        ({"split": "blocks", "blocks": 40, "test": 0.05}, "no choice of 2 of 40 blocks has every class"),
        ({"seed": -1}, "seed"),
    ],
)
def test_refusals(root, settings, says):
    with pytest.raises(DataError, match=says):
        data.wall_robot(root=root, **settings)


@pytest.mark.data
def test_real_data():
    folder = real_data("wall-robot") / "wall-robot"
    lines = rows_of((folder / "sensor_readings_24.data").read_bytes())
    assert len(lines) == 5456
    for split in ("random", "blocks"):
        train, test = data.wall_robot(split)
        assert Counter(items(train) + items(test)) == Counter(lines)
        assert [a + b for a, b in zip(train.counts, test.counts, strict=True)] == [2205, 2097, 328, 826]
        assert abs(len(test) / 5456 - 0.3) < 0.001
