"""What links promise: what gets through depends on link, round and item alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collegium import topology
from collegium.checks import base
from collegium.checks.base import Check, expect
from collegium.checks.runs import any_split, job
from collegium.links import Links
from collegium.policy import uniform
from collegium.protocol import DeGroot, DeltaTrigger

_IDS = np.arange(40, dtype=np.uint64) ** 3
_ROUNDS = 5


def check_links(links: Links) -> list[str]:
    """Check that links keep the promises `collaborate` relies on; returns what held and what was skipped.

    >>> from collegium.links import Lossy
    >>> check_links(Lossy(0.3))[3]
    'decides for every message whether it gets through'
    """
    return base.run(str(links), links_checks(links))


def links_checks(links: Links) -> list[Check]:
    """The checks of `check_links`, one by one."""
    checks = {
        "decides for every message whether it gets through": _masks,
        "delays are whole rounds": _lateness,
        "the same when asked twice, in any order and split of items": _repeats,
        "statistics stay finite, in any order and split of items": _runs,
    }
    return base.part_checks(links, Links, "collegium.links", checks)


def _asked() -> Iterator[tuple[int, int, int]]:
    """Sender, receiver and round."""
    for t in range(1, _ROUNDS + 1):
        for sender in range(4):
            yield sender, (sender + 1) % 4, t


def _masks(links: Links) -> None:
    for sender, receiver, t in _asked():
        got = links.delivered(sender, receiver, t, _IDS)
        expect(
            got is None or (isinstance(got, np.ndarray) and got.dtype == np.bool_ and got.shape == _IDS.shape),
            f"delivered must be a mask of shape {_IDS.shape} or None; got {got!r:.80}",
        )


def _lateness(links: Links) -> None:
    for sender, receiver, t in _asked():
        got = links.lateness(sender, receiver, t, _IDS)
        if got is not None:
            whole = isinstance(got, np.ndarray) and got.dtype.kind in "iu" and got.shape == _IDS.shape
            expect(
                whole and bool((got >= 0).all()),
                f"lateness must be whole numbers from 0 on, of shape {_IDS.shape}, or None; got {got!r:.80}",
            )


def _repeats(links: Links) -> None:
    for ask, nothing in ((links.delivered, True), (links.lateness, 0)):
        for place in _asked():
            got = ask(*place, _IDS)
            whole = np.full(_IDS.shape, nothing) if got is None else np.asarray(got)
            for rows in (np.arange(len(_IDS)), np.arange(len(_IDS))[::-1], np.arange(3), np.arange(3, 40)):
                again = ask(*place, _IDS[rows])
                some = np.full(len(rows), nothing) if again is None else np.asarray(again)
                expect(
                    np.array_equal(whole[rows], some),
                    f"{ask.__name__} of a message depends on more than link, round and item: draw by hashing these",
                )


def _runs(links: Links) -> None:
    network = uniform(topology.erdos_renyi(5, links=11, seed=3))
    for rule in (DeGroot(), DeltaTrigger(0.1)):
        any_split(rule, job(rule, network, links=links), f"with {rule}")
