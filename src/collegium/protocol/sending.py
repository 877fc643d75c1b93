"""From what a rule wants to send to what goes on the wire: checked, then encoded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.randomness import Draws
from collegium._util.seat import Seat
from collegium.errors import RuleError
from collegium.protocol.base import Floats, Mask, Outbox, Rule


class Sent(NamedTuple):
    """An agent's messages of a round, about the items it sends about."""

    codes: NDArray[Any]
    """What goes on the wire, one row for each item with a message: (s, w), or (s, r, w) one per receiver."""
    values: Floats
    """What receivers make of it, of the same shape."""
    spoke: Mask | None
    """About which of the n items there is a message; None: all."""
    own: Floats | None
    """The agent's own term where messages differ by receiver, shape (n, w)."""


def encoded(rule: Rule, seat: Seat, outbox: Outbox, draws: Draws, width: int) -> Sent:
    """The messages of an outbox as they go on the wire; a rule that breaks its promises is named."""
    n = len(draws)

    def broken(complaint: str) -> RuleError:
        return RuleError(f"{rule}, agent {seat.agent}, round {draws.round}: {complaint}")

    if not isinstance(outbox, Outbox):
        raise broken(f"emit must return (Outbox, state); it returned {outbox!r:.80}")
    values, spoke, own = outbox
    if not isinstance(values, np.ndarray) or values.dtype != np.float64:
        kind = f"an array of {values.dtype}" if isinstance(values, np.ndarray) else type(values).__name__
        raise broken(f"messages must be an array of float64, got {kind}")
    if values.shape not in ((n, width), (n, len(seat.receivers), width)):
        raise broken(
            f"messages must have shape ({n}, {width}) for {n} items and width {width}, or one per receiver "
            f"({n}, {len(seat.receivers)}, {width}); got {values.shape}"
        )
    if values.ndim == 2:
        own = None  # the message itself
    elif own is not None and (
        not isinstance(own, np.ndarray)
        or own.dtype != np.float64
        or own.shape != (n, width)
        or not np.isfinite(own).all()
    ):
        raise broken(f"own must be finite float64 of shape ({n}, {width}), got {own!r:.60}")
    if spoke is not None:
        if not isinstance(spoke, np.ndarray) or spoke.dtype != np.bool_ or spoke.shape != (n,):
            raise broken(f"spoke must be a mask of shape ({n},) or None, got {spoke!r:.80}")
        if spoke.all():
            spoke = None
        else:
            if draws.round == 1:
                raise broken("everybody must send in round 1, but it was silent")
            values, draws = values[spoke], draws.take(spoke)
    if not np.isfinite(values).all():
        raise broken(f"messages must be finite, got {values[~np.isfinite(values)][0]}")
    flat = values if values.ndim == 2 else values.reshape(len(values), values.shape[1] * width)
    codes = rule.codec.encode(flat, draws)
    bits = rule.codec.message_bits
    if bits != 64 and not 1 <= bits <= 32:
        raise broken(f"{rule.codec} must have 1 to 32 bits a number, or 64; it has {bits}")
    fits = codes.dtype == np.float64 if bits == 64 else codes.dtype.kind == "u" and codes.max(initial=0) < 1 << bits
    if not fits:  # a live agent would cut them to their bits
        raise broken(f"{rule.codec} has {bits} bits a number, but its codes are {codes.dtype}")
    decoded = rule.codec.decode(codes)
    if decoded.shape != flat.shape:
        raise broken(f"{rule.codec} makes shape {decoded.shape} of messages of shape {flat.shape}")
    return Sent(codes.reshape(values.shape), decoded.reshape(values.shape), spoke, own)
