"""`Run`: what came of one collaboration."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number
from collegium._util.labels import to_places, to_signs
from collegium._util.measures import leads, worse_than_guessing
from collegium.errors import BackendError, LabelError, RuleError
from collegium.links import Links, Perfect
from collegium.policy import Policy
from collegium.protocol.averaging import is_degroot
from collegium.protocol.base import Rule
from collegium.protocol.mailbox import HoldLast, Mailbox, Renormalise
from collegium.schedule.base import Schedule
from collegium.trust.liars import Liars

if TYPE_CHECKING:
    import pandas

Doubles = NDArray[np.float64]
Items = Sequence[int] | Sequence[str] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class Run:
    """What came of one collaboration.

    where n is the number of items, K of agents, T of rounds, d of numbers in a statistic.
    """

    statistics: Doubles
    """Every agent's statistic, shape (T+1, n, K), round 0 being the local one; (1, n, K) with record="final".

    Scores of several classes have one axis more: (T+1, n, K, d)."""
    transmissions_by_round: NDArray[np.int64]
    """Messages over links between different agents, per round and item, shape (T, n)."""
    rule: Rule
    schedule: Schedule = field(repr=False)
    items: Items | None = field(repr=False, default=None)
    """The items' names, if they were given."""
    seed: int = 0
    missing: NDArray[np.bool_] | None = field(repr=False, default=None)
    """Where a team's agent had no view of an item and started from 0, shape (n, K); None if none was missing."""
    links: Links = Perfect()
    mailbox: Mailbox = HoldLast()
    silences: NDArray[np.bool_] | None = field(repr=False, default=None)
    """Who spoke, as `spoke`; None where everybody did, or where it was not kept."""
    agents: tuple[str, ...] | None = field(repr=False, default=None)
    """What the agents are called, if they were given names."""
    classes: tuple[Any, ...] | None = field(repr=False, default=None)
    """What the classes are called, if it is known: of two those of -1 and +1, else in the order of the entries."""
    liars: Liars | None = field(repr=False, default=None)
    """Who lied, and how."""

    @property
    def honest(self) -> NDArray[np.bool_]:
        """Which agents did not lie, shape (K,): `run.errors(y)[:, run.honest]`."""
        liars: Any = () if self.liars is None else self.liars.agents
        return ~np.isin(np.arange(self.schedule.size), liars)

    @property
    def rounds(self) -> int:
        """T, the number of rounds."""
        return len(self.transmissions_by_round)

    @property
    def numbers(self) -> int:
        """d, how many numbers a statistic has: 1, or the number of classes."""
        return 1 if self.statistics.ndim == 3 else self.statistics.shape[3]

    @property
    def policy(self) -> Policy:
        """The network, where it is the same in every round."""
        if not isinstance(self.schedule, Policy):
            raise RuleError(f"{self.schedule!r} changes from round to round: it has no one policy")
        return self.schedule

    @cached_property
    def transmissions(self) -> NDArray[np.int64]:
        """Messages over links between different agents, per item, shape (n,)."""
        return np.asarray(self.transmissions_by_round.sum(axis=0))

    @property
    def bits(self) -> NDArray[np.int64]:
        """Bits sent per item, shape (n,): transmissions times the size of a message (64 a number unless quantised)."""
        return self.transmissions * self.rule.message_bits(self.numbers)

    @property
    def bits_by_round(self) -> NDArray[np.int64]:
        """Bits sent per round and item, shape (T, n)."""
        return self.transmissions_by_round * self.rule.message_bits(self.numbers)

    @property
    def spoke(self) -> NDArray[np.bool_]:
        """Which agents sent in which round about which item, shape (T, n, K); with record="all"."""
        if self.silences is not None:
            return self.silences
        if len(self.statistics) <= self.rounds:
            raise RuleError('who sent is not kept with record="final": run with record="all"')
        return np.broadcast_to(np.True_, (self.rounds, *self.statistics.shape[1:3]))

    def decisions(self, round: int = -1) -> NDArray[Any]:
        """Every agent's decision, shape (n, K), after the last or a given round.

        +1 or -1, where a statistic of 0 counts as +1; of several classes, the place of the largest entry, the first of
        equals.
        """
        page = self.statistics[self._recorded(round)]
        return np.where(page < 0, np.int8(-1), np.int8(1)) if page.ndim == 2 else page.argmax(axis=2)

    def labels(self, round: int = -1) -> NDArray[Any]:
        """Every agent's decision by the name of its class, shape (n, K); as `decisions` where the classes have none."""
        decided = self.decisions(round)
        if self.classes is None:
            return decided
        return np.asarray(np.asarray(self.classes)[decided if self.numbers > 1 else (decided > 0).astype(int)])

    def wrong(self, y: ArrayLike, classes: Sequence[Any] | None = None) -> NDArray[np.bool_]:
        """Whether every agent is wrong about every item after every recorded round, shape (T+1, n, K); a tie is.

        y: labels among `self.classes` where the run knows them, as that of a `Team` does: then no order of `classes`
        matters. Else +1 and -1 or any two labels, the first of `classes` being +1, or without it the larger; of several
        classes, their places 0 … d-1, or labels listed in `classes`. A run that does not know its classes warns of
        agents who are wrong more often than by guessing before any message, as they are with classes in another order.
        """
        return self._wrong(y, classes)

    def _wrong(self, y: ArrayLike, classes: Sequence[Any] | None) -> NDArray[np.bool_]:
        n = self.statistics.shape[1]
        classes = self._known_classes(classes)
        if self.numbers > 1:
            wrong = np.asarray(~leads(self.statistics, to_places(y, n, self.numbers, classes)))
        else:
            wrong = np.asarray(~(self.statistics * to_signs(y, n, classes)[None, :, None] > 0))
        if self.classes is None and self.liars is None and len(wrong) > self.rounds and wrong.size:
            self._warn_of_swapped_classes(wrong[0])
        return wrong

    def _warn_of_swapped_classes(self, wrong: NDArray[np.bool_]) -> None:
        """A word where agents who have an opinion are wrong more often than by guessing, far beyond chance."""
        opinions = self.statistics[0] != 0 if self.numbers == 1 else self.statistics[0].any(axis=2)
        if not opinions.any():
            return
        C, alone = max(self.numbers, 2), float(wrong[opinions].mean())
        if not worse_than_guessing(alone, int(opinions.any(axis=1).sum()), C):
            return
        order = "the first of classes= is that of positive statistics, while a Team's classes_ begin with the other"
        warnings.warn(
            f"alone the agents are wrong about {100 * alone:.1f} %, more often than by guessing: are the classes the "
            f"right way round? {order if C == 2 else 'classes= lists them in the order of the entries'}.",
            stacklevel=4,
        )

    def errors(self, y: ArrayLike, classes: Sequence[Any] | None = None) -> Doubles:
        """Every agent's error rate after every recorded round, shape (T+1, K); see `wrong` for the labels."""
        wrong = self._wrong(y, classes)
        if wrong.shape[1] == 0:
            return np.full((len(self.statistics), self.schedule.size), np.nan)
        return np.asarray(wrong.mean(axis=1), np.float64)

    def _known_classes(self, given: Sequence[Any] | None) -> Sequence[Any] | None:
        """The classes in the order in which labels are read: of two, that of +1 first."""
        if self.classes is None:
            return given
        own = list(self.classes)
        if given is not None and (len(given) != len(own) or any(one not in own for one in given)):
            raise LabelError(f"classes are {', '.join(map(repr, own))} in this run; got {', '.join(map(repr, given))}")
        return own[::-1] if self.numbers == 1 else own

    def limit(self) -> Doubles:
        """Where every agent's statistic tends to, shape (n,) or (n, d): the Perron-weighted mean of the local ones."""
        self._need_degroot("limit")
        if len(self.statistics) <= self.rounds:
            raise RuleError('the limit is made of the local statistics: run with record="all"')
        return np.asarray(np.moveaxis(self.statistics[0], 1, -1) @ self.policy.perron)

    def distance(self, round: int = -1) -> Doubles:
        """How far each statistic is from its limit after the last or a given round, shape (n, K) or (n, K, d)."""
        return np.asarray(np.abs(self.statistics[self._recorded(round)] - self.limit()[:, None]))

    def settled(self, round: int = -1, bound: float | None = None) -> NDArray[np.bool_]:
        r"""Whether no further round can change an agent's label, shape (n, K): a proof, not a guess.

        For scores within ±bound and any s ≥ t,

        $$ |\lambda_{k,s} - \lambda_{k,t}| \le \text{bound} \cdot \bigl(d_k(t) + \max_j d_j(t)\bigr), \qquad
           d_k(t) = \sum_\ell |[A^t]_{\ell k} - \pi_\ell| $$

        because the columns of A^s are mixtures of those of A^t. A statistic farther from 0 than that keeps its sign.
        An agent can tell by itself, from its own statistic and what it knows of the network. `bound` is the largest
        |score| of this run unless told; only for DeGroot at full precision over perfect links. Of several classes, the
        largest entry must lead the second by twice as much.
        """
        self._need_degroot("settled")
        place = self._recorded(round)
        if bound is None:
            if len(self.statistics) <= self.rounds:
                raise RuleError('give bound=, the largest |score|, or run with record="all"')
            bound = float(np.abs(self.statistics[0]).max(initial=0.0))
        bound = real_number(bound, "bound", RuleError, at_least=0)
        seen = float(np.abs(self.statistics).max(initial=0.0))
        if seen > bound * (1 + 1e-12):
            raise RuleError(f"the scores are not within ±{bound:g}: some statistic is {seen:.6g}")
        t = place + self.rounds + 1 - len(self.statistics)
        apart = np.asarray(abs(self.policy.power(t) - self.policy.perron[:, None]).sum(axis=0)).ravel()
        reach, page = bound * (apart + apart.max()), self.statistics[place]
        if page.ndim == 2:
            return np.asarray(np.abs(page) > reach)
        ordered = np.partition(page, -2, axis=2)
        return np.asarray(ordered[..., -1] - ordered[..., -2] > 2 * reach)

    def _need_degroot(self, what: str) -> None:
        if not is_degroot(self.rule):
            raise RuleError(f"{what} is known for DeGroot at full precision, not for {self.rule}")
        if self.liars is not None:
            raise RuleError(f"{what} is known where nobody lies")
        if type(self.links) is not Perfect:
            raise RuleError(f"{what} is known where every message gets through, not for {self.links}")
        if type(self.policy) is not Policy or type(self.mailbox) not in (HoldLast, Renormalise):
            raise RuleError(
                f"{what} is known for a Policy and a built-in mailbox, not for {type(self.policy).__name__} and "
                f"{self.mailbox}"
            )

    def _recorded(self, round: int) -> int:
        """The place of a round in `statistics`."""
        if not isinstance(round, (int, np.integer)) or not -len(self.statistics) <= round < len(self.statistics):
            raise RuleError(f"round {round} is not recorded: this run has {_recorded(self)}")
        return int(round) % len(self.statistics)

    def to_frame(self) -> pandas.DataFrame:
        """A tidy pandas table: round, item, agent, statistic, decision; a row for every class where there are several.

        Agents and classes go by their names where the run knows them; else `agent`, `class` and the decision of several
        classes are places.
        """
        try:
            import pandas
        except ImportError:
            raise BackendError("to_frame needs pandas: pip install 'collegium[tables]'") from None
        pages, n, K = self.statistics.shape[:3]
        d, first = self.numbers, self.rounds + 1 - pages
        names = np.arange(n) if self.items is None else np.asarray(self.items)
        decisions = np.concatenate([self.labels(page).ravel() for page in range(pages)])
        agents = np.arange(K) if self.agents is None else np.asarray(self.agents)
        classes = np.arange(d) if self.classes is None or d == 1 else np.asarray(self.classes)
        columns = {
            "round": np.repeat(np.arange(first, self.rounds + 1), n * K * d),
            "item": np.tile(np.repeat(names, K * d), pages),
            "agent": np.tile(np.repeat(agents, d), pages * n),
            "class": np.tile(classes, pages * n * K),
            "statistic": self.statistics.ravel(),
            "decision": np.repeat(decisions, d),
        }
        if d == 1:
            del columns["class"]
        return pandas.DataFrame(columns)

    def __repr__(self) -> str:
        n, K = self.statistics.shape[1:3]
        sent = (
            f"{_number(self.transmissions.mean())} transmissions, {_number(self.bits.mean())} bits per item"
            if n
            else "nothing sent"
        )
        size = f"{_count(n, 'item')} × {_count(K, 'agent')}"
        gaps = "" if self.missing is None else f", {int(self.missing.sum())} views missing"
        return f"Run({self.rule}, {_count(self.rounds, 'round')}, {size}, {sent}{gaps})"


def _number(mean: float) -> str:
    """Four digits, or all before the point: 12800, not 1.28e+04."""
    return f"{mean:.4g}" if abs(mean) < 1000 else f"{mean:.0f}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _recorded(run: Run) -> str:
    return f"rounds 0 to {run.rounds}" if len(run.statistics) > 1 or run.rounds == 0 else "only the last round"
