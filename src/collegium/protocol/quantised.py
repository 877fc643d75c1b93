"""Finite precision: any rule with messages of b bits a number."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from collegium.errors import RuleError
from collegium.protocol.base import Rule, Wrapped
from collegium.protocol.codec import Codec, Float64, Quantise


@dataclass(frozen=True)
class Quantised(Wrapped):
    r"""A rule whose every message is rounded at random to one of $2^b$ levels on [-bound, bound].

    The rule itself with another codec, `codec.Quantise`: all neighbours receive the same rounded value, and the
    sender uses it for its own term too. Averages of values within the bound stay within it; scores outside are
    refused, never clipped. For scores bounded by β and centred, the bound is 2β. [hu2026, Sec. III-D]

    >>> import collegium
    >>> from collegium import policy, topology
    >>> rule = Quantised(collegium.protocol.DeGroot(), bits=4, bound=2.0)
    >>> run = collegium.collaborate([[1.0, 0.3, -1.2]], policy.uniform(topology.ring(3)), rounds=5, rule=rule, rng=0)
    >>> int(run.bits[0])  # 5 rounds × 6 links × 4 bits
    120
    """

    rule: Rule
    bits: int
    bound: float
    codec: Codec = field(default=Float64(), init=False, repr=False, compare=False)

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        changed = [name for name in ("index", "level", "encode", "decode") if hasattr(cls, name)]
        if changed:
            raise RuleError(
                f"{cls.__name__} must not define {changed[0]}: what a message becomes is its codec's matter. Derive a "
                "codec from protocol.codec.Quantise, and use Averaging(codec=…)"
            )

    def __post_init__(self) -> None:
        if not isinstance(self.rule, Rule) or type(self.rule.codec) is not Float64:
            raise RuleError(
                f"Quantised wraps a rule that is not itself quantised, such as DeGroot(); got {self.rule!r}"
            )
        codec = Quantise(self.bits, self.bound)
        object.__setattr__(self, "bits", codec.bits)
        object.__setattr__(self, "bound", codec.bound)
        object.__setattr__(self, "codec", codec)

    def prepared(self, schedule: Any, rounds: int, rounded: bool = False) -> Rule[Any]:
        inner = self.rule.prepared(schedule, rounds, rounded=True)
        return self if inner is self.rule else replace(self, rule=inner)
