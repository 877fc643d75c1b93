from collections import Counter

import numpy as np
import pytest

from collegium import data
from collegium.errors import DataError
from tiny_data import numeral_files, real_data

ORDER = ("fou", "fac", "kar", "pix", "zer", "mor")


def numerals(files, csv):
    """All numerals by the letter of the layout: their numbers, file after file, and the class."""
    tables = []
    for name in ORDER:
        lines = files[f"mfeat-{name}{'.csv' * csv}"].decode().splitlines()[csv:]
        tables.append([line.split(",")[:-1] if csv else line.split() for line in lines])
    rows = zip(*tables, strict=True)
    return Counter((tuple(float(x) for part in row for x in part), str(i // 200)) for i, row in enumerate(rows))


def items(*parts):
    found = Counter()
    for part in parts:
        rows = np.hstack(part.views).tolist()
        found.update((tuple(row), part.class_names[place]) for row, place in zip(rows, part.y, strict=True))
    return found


@pytest.mark.parametrize("csv", [False, True])
def test_rows_stay_together_over_the_files_of_both_layouts(uci, put, csv):
    files = numeral_files(csv)
    train, test = data.multiple_features(root=put("multiple-features", files))
    assert items(train, test) == numerals(files, csv)
    assert (train.counts, test.counts) == ((140,) * 10, (60,) * 10)
    assert [view.shape[1] for view in train.views] == [2, 3, 4, 5, 6, 7]
    assert train.agent_names[1] == "profile correlations"
    assert train.y.dtype == np.intp


def test_the_seed_decides(uci, put):
    root = put("multiple-features", uci["multiple_features"])
    first, again, other = (data.multiple_features(seed=seed, root=root)[1] for seed in (1, 1, 2))
    assert items(first) == items(again) != items(other)
    with pytest.raises(DataError, match="leaves no 0 to test on"):
        data.multiple_features(test=0.001, root=root)


@pytest.mark.data
def test_real_data():
    folder = real_data("multiple-features") / "multiple-features"
    train, test = data.multiple_features()
    assert [view.shape[1] for view in train.views] == [76, 216, 64, 240, 47, 6]
    assert (train.counts, test.counts) == ((140,) * 10, (60,) * 10)
    csv = (folder / "mfeat-fac.csv").exists()
    assert items(train, test) == numerals({path.name: path.read_bytes() for path in folder.iterdir()}, csv)


@pytest.mark.data
def test_the_csv_files_hold_what_the_official_ones_hold():
    """Whole numbers are written in full in both, so that one layout can be made from the other, to its checksum."""
    from collegium.data._uci import checksum
    from collegium.data.multiple_features import SOURCE

    folder = real_data("multiple-features") / "multiple-features"
    if not (folder / "mfeat-fac.csv").exists():
        pytest.skip("the official files are here, there is nothing to make them from")
    for name, width in (("fac", 5), ("pix", 3)):
        lines = (folder / f"mfeat-{name}.csv").read_text().splitlines()[1:]
        official = "".join("".join(x.rjust(width) for x in line.split(",")[:-1]) + "\n" for line in lines)
        assert checksum(official.encode()) == SOURCE.layouts[0][f"mfeat-{name}"]
