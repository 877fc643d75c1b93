"""What a mailbox promises: weights that sum to one, and what arrived as it arrived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.checks import base
from collegium.checks.base import Check, expect
from collegium.protocol import LOST, OWN, RECEIVED, SILENT, Inbox, Mailbox
from collegium.protocol.base import Mask

_SLACK = 64 * float(np.finfo(np.float64).eps)
_SENDERS = 4


def check_mailbox(mailbox: Mailbox) -> list[str]:
    """Check that a mailbox keeps the promises rules rely on; returns what held and what was skipped.

    >>> from collegium.protocol import HoldLast
    >>> check_mailbox(HoldLast())[3]
    'gives an inbox of the same form'
    """
    return base.run(str(mailbox), mailbox_checks(mailbox))


def mailbox_checks(mailbox: Mailbox) -> list[Check]:
    """The checks of `check_mailbox`, one by one."""
    checks = {
        "gives an inbox of the same form": _form,
        "weights of an item sum to one": _weights,
        "what arrived stays as it arrived": _keeps_what_arrived,
        "leaves what it is given as it was": _leaves_inputs,
        "any order and split of items": _any_split,
    }
    return base.part_checks(mailbox, Mailbox, "collegium.protocol", checks)


def _inbox() -> tuple[Inbox, Mask]:
    """Every way in which messages of three neighbours may come or not, one an item; and who was ever heard."""
    kinds = [(RECEIVED, True), (SILENT, True), (SILENT, False), (LOST, True), (LOST, False)]
    ways = np.stack(np.meshgrid(*[np.arange(len(kinds))] * (_SENDERS - 1), indexing="ij")).reshape(_SENDERS - 1, -1)
    n = ways.shape[1]
    status = np.full((_SENDERS, n), OWN, np.uint8)
    known = np.ones((_SENDERS, n), np.bool_)
    others = [0, 2, 3]
    status[others] = np.array([kind for kind, _ in kinds], np.uint8)[ways]
    known[others] = np.array([ever for _, ever in kinds])[ways]
    values = np.where(known[:, :, None], np.sin(np.arange(_SENDERS * n * 2.0)).reshape(_SENDERS, n, 2), 0.0)
    weights = np.broadcast_to(np.array([0.125, 0.5, 0.125, 0.25])[:, None], (_SENDERS, n)).copy()
    return Inbox(values, weights, status, values[1].copy()), known


def _form(mailbox: Mailbox) -> None:
    inbox, known = _inbox()
    got = mailbox.read(inbox, known)
    expect(isinstance(got, Inbox), f"read must give an Inbox, got {type(got).__name__}")
    for name, before, after in _parts(inbox, got):
        expect(
            isinstance(after, np.ndarray) and after.shape == before.shape and after.dtype == before.dtype,
            f"{name} must stay {before.dtype} of shape {before.shape}; got {after!r:.60}",
        )
        expect(bool(np.isfinite(after).all()), f"{name} must be finite")


def _weights(mailbox: Mailbox) -> None:
    inbox, known = _inbox()
    weights = mailbox.read(inbox, known).weights
    off = float(np.abs(weights.sum(axis=0) - 1).max())
    expect(bool((weights >= 0).all()) and off <= _SLACK, f"weights must be at least 0 and sum to one, off by {off:.3g}")


def _keeps_what_arrived(mailbox: Mailbox) -> None:
    inbox, known = _inbox()
    got, came = mailbox.read(inbox, known), inbox.status <= RECEIVED
    expect(np.array_equal(got.values[came], inbox.values[came]), "a message that arrived must be given as it came")
    whole = came.all(axis=0)
    expect(np.array_equal(got.weights[:, whole], inbox.weights[:, whole]), "where all arrived, weights must stay")


def _leaves_inputs(mailbox: Mailbox) -> None:
    inbox, known = _inbox()
    mailbox.read(inbox, known)
    as_it_was, _ = _inbox()
    for name, before, after in _parts(as_it_was, inbox):
        expect(np.array_equal(before, after), f"it changes the {name} it is given: work on a copy")


def _any_split(mailbox: Mailbox) -> None:
    inbox, known = _inbox()
    whole, n = mailbox.read(inbox, known), known.shape[1]
    for rows in (np.arange(n)[::-1], np.arange(0, n, 7), np.arange(3), np.array([n - 1])):
        some = mailbox.read(_of_items(inbox, rows), known[:, rows])
        for name, expected, its in _parts(_of_items(whole, rows), some):
            expect(np.array_equal(expected, its), f"{name} of an item depend on the other items of the batch")


def _of_items(inbox: Inbox, rows: NDArray[np.intp]) -> Inbox:
    values, weights, status, own = inbox
    return Inbox(values[:, rows], weights[:, rows], status[:, rows], own[rows])


def _parts(one: Inbox, other: Inbox) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """The arrays of two inboxes, side by side, by name."""
    for name in Inbox._fields:
        yield name, getattr(one, name), getattr(other, name)
