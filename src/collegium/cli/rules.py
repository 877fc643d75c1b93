"""Rules as written on the command line: `delta-trigger:0.1`, with `--bits` and `--bound`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from collegium.cli.complete import among
from collegium.errors import RuleError

if TYPE_CHECKING:
    from collegium.protocol import Rule

EXAMPLES = (
    "degroot",
    "social-learning",
    "delta-trigger:0.1",
    "label-stability:2,0.5",
    "chebyshev",
    "push-sum",
    "running-sums",
    "flood",
    "signed-flood",
    "masked-mean",
)

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
Bound = Annotated[float | None, typer.Option("--bound", help="Range of the quantiser; by default the largest score.")]


def read_rule(
    written: str | None,
    bits: int | None,
    bound: float | None,
    rounds: int,
    largest: float | None = None,
    own: Rule | None = None,
) -> Rule:
    """The rule meant by `name:setting,setting`, quantised if bits are given, for scores up to `largest`.

    own: that of the schedule, which is meant where none is written; DeGroot if it has none.
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
        share = protocol.Quantised(rule, bits, 1.0).max_score(max(rounds, 0))  # of the bound, for the largest score
        if share <= 0:
            raise RuleError(
                f"{bits} bits are too few for {describe(rule)} over {rounds} rounds: its messages outgrow any bound"
            )
        bound = (largest or 1.0) / share
    return protocol.Quantised(rule, bits, bound)
