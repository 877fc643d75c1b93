"""`check_mailbox`: the package's own mailboxes pass, and each broken one is named."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import check_mailbox
from collegium.checks import mailbox_checks
from collegium.protocol import HoldLast, Mailbox, Renormalise


@dataclass(frozen=True)
class Sound(HoldLast):
    pass


class Tuple(Sound):
    def read(self, inbox, known):
        return tuple(super().read(inbox, known))


class Single(Sound):
    def read(self, inbox, known):
        return inbox._replace(weights=inbox.weights.astype(np.float32))


class Forgets(Sound):
    """Leaves out who is not there and lets the weights sum to less."""

    def read(self, inbox, known):
        return inbox._replace(weights=inbox.weights * (inbox.status < 2))


class Damps(Sound):
    def read(self, inbox, known):
        return inbox._replace(values=0.5 * inbox.values)


class Equal(Sound):
    def read(self, inbox, known):
        return inbox._replace(weights=np.full_like(inbox.weights, 1 / len(inbox.weights)))


class Overwrites(Sound):
    def read(self, inbox, known):
        inbox.values[~known] = 7.0
        return inbox


class Batch(Sound):
    def read(self, inbox, known):
        return inbox._replace(values=np.where(known[:, :, None], inbox.values, inbox.own.mean()))


class Divides(Sound):
    def read(self, inbox, known):
        with np.errstate(all="ignore"):
            there = inbox.weights * (inbox.status == 1)
            return inbox._replace(weights=there / there.sum(axis=0))


FORM = "gives an inbox of the same form"


@pytest.mark.parametrize("mailbox", [HoldLast(), HoldLast("hold"), Renormalise(), Sound()], ids=repr)
def test_sound_mailboxes_pass(mailbox):
    assert len(check_mailbox(mailbox)) == 8


@pytest.mark.parametrize(
    ("mailbox", "name", "complaint"),
    [
        (Tuple(), FORM, "read must give an Inbox, got tuple"),
        (Single(), FORM, "weights must stay float64"),
        (Divides(), FORM, "weights must be finite"),
        (Forgets(), "weights of an item sum to one", "off by 0.5"),
        (Damps(), "what arrived stays as it arrived", "given as it came"),
        (Equal(), "what arrived stays as it arrived", "weights must stay"),
        (Overwrites(), "leaves what it is given as it was", "changes the values"),
        (Batch(), "any order and split of items", "values of an item depend on the other items"),
        ("hold", "is a Mailbox", "is not a collegium.protocol.Mailbox"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Mailbox) else None,
)
def test_each_fault_is_named(broken, mailbox, name, complaint):
    assert complaint in broken(mailbox_checks(mailbox))[name]
