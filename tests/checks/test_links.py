"""`check_links`: the package's own links pass, and each broken ones are named."""

from dataclasses import dataclass

import numpy as np
import pytest

from collegium import check_links
from collegium.checks import links_checks
from collegium.links import Cut, Delayed, Links, Lossy, Perfect


@dataclass(frozen=True)
class Sound(Links):
    """Loses every third item on its way to an odd agent."""

    def delivered(self, sender, receiver, t, ids):
        return ids % 3 != 0 if receiver % 2 else None


class Numbers(Sound):
    def delivered(self, sender, receiver, t, ids):
        return np.ones(len(ids))


class OneForAll(Sound):
    def delivered(self, sender, receiver, t, ids):
        return True


class Early(Sound):
    def lateness(self, sender, receiver, t, ids):
        return np.full(len(ids), -1)


class HalfRounds(Sound):
    def lateness(self, sender, receiver, t, ids):
        return np.full(len(ids), 0.5)


class Positional(Sound):
    def delivered(self, sender, receiver, t, ids):
        return np.arange(len(ids)) % 2 == 0


class LatePositional(Sound):
    def lateness(self, sender, receiver, t, ids):
        return np.arange(len(ids)) % 2


class Moody(Sound):
    def delivered(self, sender, receiver, t, ids):
        return np.random.default_rng().random(len(ids)) < 0.5


REPEATS = "the same when asked twice, in any order and split of items"


@pytest.mark.parametrize(
    "links", [Perfect(), Lossy(0.5, 3), Lossy(1.0), Delayed(1), Delayed(0, 4, 2), Cut([0, 3], 2, 3), Sound()], ids=repr
)
def test_sound_links_pass(links):
    assert len(check_links(links)) == 7


@pytest.mark.parametrize(
    ("links", "name", "complaint"),
    [
        (Numbers(), "decides for every message whether it gets through", "must be a mask of shape (40,)"),
        (OneForAll(), "decides for every message whether it gets through", "or None; got True"),
        (Early(), "delays are whole rounds", "from 0 on"),
        (HalfRounds(), "delays are whole rounds", "whole numbers"),
        (Positional(), REPEATS, "delivered of a message depends on more than link, round and item"),
        (LatePositional(), REPEATS, "lateness of a message depends on more"),
        (Moody(), REPEATS, "draw by hashing these"),
        (Moody(), "statistics stay finite, in any order and split of items", "an item's numbers depend on"),
        (None, "is Links", "is not a collegium.links.Links"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Links) else None,
)
def test_each_fault_is_named(broken, links, name, complaint):
    assert complaint in broken(links_checks(links))[name]
