"""2000 handwritten numerals as six sets of features. [vanbreukelen1998]"""

from __future__ import annotations

import numpy as np

from collegium.data import _splits, _uci
from collegium.data._uci import Readings, Root, Source
from collegium.data.dataset import Dataset

CLASSES = tuple(str(numeral) for numeral in range(10))
VIEWS = {
    "fou": "Fourier coefficients",
    "fac": "profile correlations",
    "kar": "Karhunen-Loève coefficients",
    "pix": "pixel averages",
    "zer": "Zernike moments",
    "mor": "morphology",
}
"""Six agents, in the order of the repository's description."""
EACH = 200
"""Numerals of each class; in the official files, which do not name them, one class after the other."""
SOURCE = Source(
    "multiple_features",
    "Multiple Features",
    "multiple-features",
    CLASSES,
    tuple(VIEWS.values()),
    "https://archive.ics.uci.edu/static/public/72/multiple+features.zip",
    (
        {
            "mfeat-fou": "d2bed48a4d302efe77bd80d52e16a211e99efe6fee9baf1c28dcc199c43c50ad",
            "mfeat-fac": "83be9bc9fd50c6dd0b0532f6b6101956f1cf51c71b33f22d3f0cd2b5befb31b5",
            "mfeat-kar": "db832668544497d0c06a2c1d1bfa0e17ba672812b7cfa6ed19f0941e19e1d7fa",
            "mfeat-pix": "70a1cd033add46614464a8740ddc23c3693765985bde52ccb6b702bff23b64f1",
            "mfeat-zer": "d4a0e302f2f61e823b906f78818c7c0ef078c0bbc23022affd6607d60ecfe4f3",
            "mfeat-mor": "8767b326d874f096de06d525a2df4e610f4e9dfe91e29c250d8a3054907e3b61",
        },
        {
            "mfeat-fou.csv": "e28e4c2cebfedac1dbdd2304db024c1a5244c0a6cd92bb9514b2473e96a0ae3f",
            "mfeat-fac.csv": "01cde170becf623109427bbde752a2df6e9dbe4516178ccb06027b65d8feb2f0",
            "mfeat-kar.csv": "0e6c016b272135e287be6ff5b9c36a0274b2f1dc77bb4828a733a5bbfc48cd53",
            "mfeat-pix.csv": "0fda4dc121f43c88b2549ecd9bb768f6b61e905b21a27dfabcdc166a59c6760f",
            "mfeat-zer.csv": "97922a597da3d5af198ff434abb72d86eadd08e8531dde29c2235b1898d0a2f6",
            "mfeat-mor.csv": "b947235eed3e890396f3b6b1f7461fb0f830d3743d5be46c3bbd69329d70f656",
        },
    ),
)


def multiple_features(
    test: float = 0.3, seed: int | np.random.Generator = 0, root: Root = None
) -> tuple[Dataset, Dataset]:
    """6 agents with one set of features each of the same numerals, views (n, 6) to (n, 240); ten classes.

    The share `test` of each class goes to the test items; the same seed gives the same split. Scales differ much
    between the columns: standardise them for models to which that matters.
    """
    share, rng = _splits.share_of(test), _splits.generator(seed)
    folder, texts = _uci.read(SOURCE, root)
    whole = parse(texts)
    parts = _splits.at_random(whole.found, range(len(CLASSES)), CLASSES, share, rng)
    return whole.datasets(SOURCE, parts, f"a random split, from {folder}")


def read(root: Root = None) -> dict[str, Readings]:
    """All numerals."""
    return {"all": parse(_uci.read(SOURCE, root)[1])}


def parse(texts: dict[str, str]) -> Readings:
    """Files by name: the official ones have blanks between the numbers of a line and do not name the class.

    Those that end in .csv have commas, a first line that numbers the columns, and the class in the last one.
    """
    views, found = [], np.repeat(np.arange(len(CLASSES)), EACH)
    for name in VIEWS:
        text = texts.get(f"mfeat-{name}.csv")
        if text is None:
            values = np.loadtxt(texts[f"mfeat-{name}"].splitlines(), ndmin=2)
        else:
            table = np.loadtxt(text.splitlines()[1:], delimiter=",", ndmin=2)
            values, found = np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.intp)
        views.append(values)
    return Readings(views, found)
