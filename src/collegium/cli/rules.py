"""Rules as written on the command line: `delta-trigger:0.1`, with `--bits` and `--bound`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from collegium.cli.complete import among
from collegium.errors import RuleError

if TYPE_CHECKING:
    from collegium.protocol import Rule
    from collegium.schedule import Schedule

EXAMPLES = (
    "degroot",
    "social-learning",
    "delta-trigger:0.1",
    "label-stability:2,0.5",
    "chebyshev",
    "push-sum",
    "running-sums",
    "flood",
    "robust:(trimmed-mean:1)",
    "signed-flood",
    "masked-mean",
)

MOST_BITS = 32
LEAST_SHARE = 1e-6
"""Of a quantiser's range: if scores may have no more of it at 32 bits, rounding leaves nothing of them."""

RuleName = Annotated[
    str | None,
    typer.Option(
        "--rule",
        help=f"What agents send and when: {', '.join(EXAMPLES)}, or the name of an installed rule of your own. "
        "By default that of a network file or schedule, or degroot.",
        autocompletion=among(*EXAMPLES),
    ),
]
Bits = Annotated[int | None, typer.Option("--bits", help="Quantise messages to this many bits (1 to 32).")]
Bound = Annotated[
    float | None,
    typer.Option("--bound", help="Range of the quantiser; by default the smallest that these scores need."),
]


def read_rule(
    written: str | None,
    bits: int | None,
    bound: float | None,
    rounds: int,
    largest: float | None = None,
    own: Rule | None = None,
    over: Schedule | None = None,
) -> Rule:
    """The rule meant by `name:setting,setting`, quantised if bits are given, for scores up to `largest`.

    own: that of the schedule, which is meant where none is written; DeGroot if it has none.
    over: the network it is to run on, which says how large messages of `Chebyshev` and eigenvalue steps become.
    """
    from collegium import protocol
    from collegium.protocol.registry import describe, rule_from_text

    rule = rule_from_text(written) if written is not None else own or protocol.DeGroot()
    if bits is None:
        if bound is not None:
            raise RuleError("--bound is the range of a quantiser: give --bits too")
        return rule
    if bound is None and largest is None:
        raise RuleError("--bits needs --bound, the largest message there can be: scores come one by one")
    if bound is None:
        known = rule if over is None else rule.prepared(over, rounds, rounded=True)
        largest, rounds = largest or 1.0, max(rounds, 0)
        bound = largest / _share(known, bits, rounds, describe(rule))
        if protocol.Quantised(known, bits, bound).max_score(rounds) < largest:  # by the last digit
            bound *= 1 + 1e-12
    return protocol.Quantised(rule, bits, bound)


def _share(rule: Rule, bits: int, rounds: int, named: str) -> float:
    """The largest score for a quantiser of range ±1."""
    from collegium.protocol import Quantised

    found, best = (Quantised(rule, b, 1.0).max_score(rounds) for b in (bits, MOST_BITS))
    if not best > LEAST_SHARE:
        raise RuleError(
            f"messages of {named} can become too large over {rounds} rounds to be rounded: leave out --bits, or take "
            "degroot or a schedule such as exact:12"
        )
    if found > 0:
        return found
    # With as few as just fit, steps would be larger than scores: half of the range should be theirs.
    enough = next(b for b in range(bits, MOST_BITS + 1) if Quantised(rule, b, 1.0).max_score(rounds) >= best / 2)
    raise RuleError(
        f"{bits} bits are too few for {named} over {rounds} rounds: rounding errors could add up to more than the "
        f"largest message; take {enough} bits"
    )
