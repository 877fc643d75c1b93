"""Data sets as K private views of the same items: bundled, read from files, or rendered.

Every loader gives `(train, test)`, two `Dataset`s. Reading is strict: a file is whole and right, or refused by name.
"""

from collegium.data.cifar10 import cifar10
from collegium.data.columns import Columns, split_columns
from collegium.data.dataset import Dataset
from collegium.data.digits import digits
from collegium.data.modelnet import modelnet
from collegium.data.multiple_features import multiple_features
from collegium.data.occupancy import occupancy
from collegium.data.wall_robot import wall_robot

__all__ = [
    "Columns",
    "Dataset",
    "cifar10",
    "digits",
    "modelnet",
    "multiple_features",
    "occupancy",
    "split_columns",
    "wall_robot",
]
