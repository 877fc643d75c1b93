"""`check_trigger`: the package's own triggers pass, and each broken one is named."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import check_trigger
from collegium.checks import trigger_checks
from collegium.protocol.trigger import Always, Delta, LabelStable, Trigger


@dataclass(frozen=True)
class Change(Delta):
    threshold: float = 0.1


class Shy(Change):
    def start(self, x):
        return super().start(x)._replace(sent=x)


class Numbers(Change):
    def speaks(self, x, memory):
        return super().speaks(x, memory).astype(int)


class Once(Change):
    """Answers for the batch."""

    def speaks(self, x, memory):
        return np.full(len(x), super().speaks(x, memory).any())


class Listed(Change):
    def start(self, x):
        return (list(x),)

    def speaks(self, x, memory):
        return None

    def update(self, memory, before, after, sent):
        return (list(sent),)


class Reshapes(Change):
    def speaks(self, x, memory):
        return None

    def update(self, memory, before, after, sent):
        return super().update(memory, before, after, sent)._replace(sent=sent.astype(np.float32))


class Overwrites(Change):
    def update(self, memory, before, after, sent):
        after *= 0.5
        return super().update(memory, before, after, sent)


@pytest.mark.parametrize(
    "trigger", [Always(), Delta(0.0), Change(), LabelStable(1, 0.0), LabelStable(2, 0.7)], ids=repr
)
def test_sound_triggers_pass(trigger):
    assert len(check_trigger(trigger)) == 8


@pytest.mark.parametrize(
    ("trigger", "name", "complaint"),
    [
        (Shy(), "everybody sends in round 1", "must send about every item"),
        (Numbers(), "decides for every item whether it is sent", "must be a mask of shape (7,)"),
        (Once(), "any order and split of items", "depends on the other items"),
        (Listed(), "its memory is arrays that keep their form", "a tuple of arrays with the items on axis 0"),
        (Reshapes(), "its memory is arrays that keep their form", "live agents keep one form"),
        (Overwrites(), "leaves what it is given as it was", "changes the values"),
        (0.1, "is a Trigger", "is not a collegium.protocol.trigger.Trigger"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Trigger) else None,
)
def test_each_fault_is_named(broken, trigger, name, complaint):
    assert complaint in broken(trigger_checks(trigger))[name]
