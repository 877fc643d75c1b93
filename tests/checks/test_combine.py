"""`check_combine`: the package's own combine passes, and each broken one is named."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import check_combine
from collegium.checks import combine_checks
from collegium.protocol.combine import Combine, WeightedMean


@dataclass(frozen=True)
class Mean(WeightedMean):
    pass


class NotSquare(Mean):
    def __call__(self, values, weights, own):
        return super().__call__(values, weights, own).ravel()


class Lonely(Mean):
    """Has nothing to say of an agent alone."""

    def __call__(self, values, weights, own):
        with np.errstate(all="ignore"):
            return super().__call__(values, weights, own) / np.float64(len(values) - 1) * (len(values) - 1)


class Overwrites(Mean):
    def __call__(self, values, weights, own):
        values *= weights[:, :, None]
        return values.sum(axis=0)


class Plain(Mean):
    """Counts everybody alike, also those that are not there."""

    def __call__(self, values, weights, own):
        return values.sum(axis=0) / len(values)


class Total(Mean):
    def __call__(self, values, weights, own):
        return values.sum(axis=0)


class Extrapolates(Mean):
    def __call__(self, values, weights, own):
        return 3 * super().__call__(values, weights, own) - 2 * own


class Jumbles(Mean):
    """Normalises over the batch."""

    def __call__(self, values, weights, own):
        return super().__call__(values, weights, own) * (1 - 0.01 * (own > own.mean(axis=0)).sum(axis=0))


SPLIT, OUT = "any order and split of items", "a weight of 0 leaves an agent out"


@pytest.mark.parametrize("combine", [WeightedMean(), Mean()], ids=repr)
def test_sound_combines_pass(combine):
    assert len(check_combine(combine)) == 9


@pytest.mark.filterwarnings("ignore:Mean of empty slice", "ignore:invalid value")
@pytest.mark.parametrize(
    ("combine", "name", "complaint"),
    [
        (NotSquare(), "gives finite values of the right shape", "must make float64 of shape (6, 1)"),
        (Lonely(), "gives finite values of the right shape", "of finite values of 1 agents"),
        (Overwrites(), "leaves what it is given as it was", "changes the values"),
        (Plain(), OUT, "stands for a message that did not come"),
        (Total(), "equal values stay as they are", "makes another of it"),
        (Extrapolates(), "stays among the values", "beyond all values"),
        (Jumbles(), SPLIT, "depends on the other items"),
        (max, "is a Combine", "is not a collegium.protocol.combine.Combine"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Combine) else None,
)
def test_each_fault_is_named(broken, combine, name, complaint):
    assert complaint in broken(combine_checks(combine))[name]
