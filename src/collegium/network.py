"""The one loop: `collaborate` runs a rule over a policy, `sweep` many rules; `Run` and `Sweep` hold what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.labels import to_signs
from collegium._util.randomness import U64, Draws, Seed, child, item_ids, item_names, seed64
from collegium._util.scores import check_scores
from collegium.errors import BackendError, PolicyError, RuleError, ScoreError
from collegium.policy import Policy
from collegium.protocol import DeGroot, HoldLast, Mailbox, Renormalise, Rule

if TYPE_CHECKING:
    import pandas

    from collegium.kernels import Arrays, Outcome

Doubles = NDArray[np.float64]
Items = Sequence[int] | Sequence[str] | NDArray[Any]


@dataclass(frozen=True, eq=False)
class Run:
    """What came of one collaboration.

    where n is the number of items, K of agents, T of rounds.
    """

    statistics: Doubles
    """Every agent's statistic, shape (T+1, n, K), round 0 being the local one; (1, n, K) with record="final"."""
    transmissions: NDArray[np.int64]
    """Messages over links between different agents, per item, shape (n,)."""
    rounds: int
    rule: Rule
    policy: Policy = field(repr=False)
    items: Items | None = field(repr=False, default=None)
    """The items' names, if they were given."""
    seed: int = 0
    missing: NDArray[np.bool_] | None = field(repr=False, default=None)
    """Where a team's agent had no view of an item and started from 0, shape (n, K); None if none was missing."""

    @property
    def bits(self) -> NDArray[np.int64]:
        """Bits sent per item, shape (n,): transmissions times the size of a message (64 unless quantised)."""
        return self.transmissions * self.rule.message_bits

    def decisions(self, round: int = -1) -> NDArray[np.int8]:
        """Every agent's label, +1 or -1, shape (n, K), after the last or a given round; 0 counts as +1."""
        return np.where(self.statistics[self._recorded(round)] < 0, np.int8(-1), np.int8(1))

    def errors(self, y: ArrayLike, classes: Sequence[Any] | None = None) -> Doubles:
        """Every agent's error rate after every recorded round, shape (T+1, K); a statistic of 0 is always wrong."""
        n = self.statistics.shape[1]
        signs = to_signs(y, n, classes)
        if n == 0:
            return np.full((len(self.statistics), self.policy.size), np.nan)
        wrong = ~(self.statistics * signs[None, :, None] > 0)
        return np.asarray(wrong.mean(axis=1), np.float64)

    def limit(self) -> Doubles:
        """Where every agent's statistic tends to, shape (n,): the Perron-weighted mean of the local statistics."""
        self._need_degroot("limit")
        if len(self.statistics) <= self.rounds:
            raise RuleError('the limit is made of the local statistics: run with record="all"')
        return np.asarray(self.statistics[0] @ self.policy.perron)

    def distance(self, round: int = -1) -> Doubles:
        """How far each statistic is from its limit after the last or a given round, shape (n, K)."""
        return np.asarray(np.abs(self.statistics[self._recorded(round)] - self.limit()[:, None]))

    def settled(self, round: int = -1, bound: float | None = None) -> NDArray[np.bool_]:
        r"""Whether no further round can change an agent's label, shape (n, K): a proof, not a guess.

        For scores within ±bound and any s ≥ t,

        $$ |\lambda_{k,s} - \lambda_{k,t}| \le \text{bound} \cdot \bigl(d_k(t) + \max_j d_j(t)\bigr), \qquad
           d_k(t) = \sum_\ell |[A^t]_{\ell k} - \pi_\ell| $$

        because the columns of A^s are mixtures of those of A^t. A statistic farther from 0 than that keeps its sign.
        An agent can tell by itself, from its own statistic and what it knows of the network. `bound` is the largest
        |score| of this run unless told; only for DeGroot at full precision.
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
        return np.asarray(np.abs(self.statistics[place]) > bound * (apart + apart.max()))

    def _need_degroot(self, what: str) -> None:
        if not isinstance(self.rule, DeGroot):
            raise RuleError(f"{what} is known for DeGroot at full precision, not for {self.rule}")

    def _recorded(self, round: int) -> int:
        """The place of a round in `statistics`."""
        if not isinstance(round, (int, np.integer)) or not -len(self.statistics) <= round < len(self.statistics):
            raise RuleError(f"round {round} is not recorded: this run has {_recorded(self)}")
        return int(round) % len(self.statistics)

    def to_frame(self) -> pandas.DataFrame:
        """A tidy pandas table: round, item, agent, statistic, decision."""
        try:
            import pandas
        except ImportError:
            raise BackendError("to_frame needs pandas: pip install 'collegium[tables]'") from None
        pages, n, K = self.statistics.shape
        first = self.rounds + 1 - pages
        names = np.arange(n) if self.items is None else np.asarray(self.items)
        values = self.statistics.ravel()
        return pandas.DataFrame(
            {
                "round": np.repeat(np.arange(first, self.rounds + 1), n * K),
                "item": np.tile(np.repeat(names, K), pages),
                "agent": np.tile(np.arange(K), pages * n),
                "statistic": values,
                "decision": np.where(values < 0, np.int8(-1), np.int8(1)),
            }
        )

    def __repr__(self) -> str:
        n, K = self.statistics.shape[1:]
        sent = (
            f"{self.transmissions.mean():.4g} transmissions, {self.bits.mean():.4g} bits per item"
            if n
            else "nothing sent"
        )
        size = f"{_count(n, 'item')} × {_count(K, 'agent')}"
        gaps = "" if self.missing is None else f", {int(self.missing.sum())} views missing"
        return f"Run({self.rule}, {_count(self.rounds, 'round')}, {size}, {sent}{gaps})"


@dataclass(frozen=True, eq=False)
class Sweep:
    """What came of many rules on the same scores: averages over the items.

    where R is the number of rules, M of realisations, T of rounds, K of agents. A run with fewer rounds is the
    beginning of a longer one, so `errors[:, :, t]` and `transmissions[:, :, t]` are those of a budget of t rounds.
    """

    errors: Doubles
    """Error rate of every agent, shape (R, M, T+1, K)."""
    transmissions: Doubles
    """Mean transmissions per item up to each round, shape (R, M, T+1)."""
    rules: tuple[Rule, ...]

    @property
    def bits(self) -> Doubles:
        """Mean bits per item up to each round, shape (R, M, T+1)."""
        size = np.array([rule.message_bits for rule in self.rules], np.float64)
        return self.transmissions * size[:, None, None]

    def __repr__(self) -> str:
        R, M, pages, K = self.errors.shape
        return f"Sweep({R} rules × {M} realisations, {pages - 1} rounds, {K} agents)"


class Job(NamedTuple):
    """A collaboration that passed the door: everything checked, nothing left to guess."""

    scores: Doubles
    policy: Policy
    rounds: int
    seed: int
    ids: U64
    mailbox: Mailbox
    final: bool

    def arrays(self) -> Arrays:
        """The same job as plain arrays for `collegium.kernels`."""
        from collegium.kernels import Arrays

        graph = self.policy.graph
        return Arrays(
            scores=self.scores, indptr=graph.indptr.view(np.uint64), indices=graph.indices.view(np.uint32),
            weights=self.policy.weights, audience=graph.audience_sizes,
            rounds=self.rounds, seed=self.seed, ids=self.ids, hold=isinstance(self.mailbox, HoldLast), final=self.final,
        )  # fmt: skip


def collaborate(
    scores: ArrayLike,
    policy: Policy,
    rounds: int = 20,
    rule: Rule = DeGroot(),
    rng: Seed = 0,
    *,
    record: Literal["all", "final"] = "all",
    items: Items | None = None,
    mailbox: Mailbox = HoldLast(),
) -> Run:
    """Let the agents of a network talk about n items for some rounds.

    scores: shape (n, K), agent k's local statistic for each item, positive where it favours class +1.
    policy: who hears whom and how much it counts.
    rule: what agents say and how they listen, see `collegium.protocol`.
    rng: a seed or generator for rules that draw; the same seed gives the same numbers everywhere.
    record: "all" keeps the statistics of every round, "final" only the last, for large networks.
    items: names of the items (whole numbers or strings), so that draws follow an item whatever the batch.
    mailbox: what a silent agent's neighbours take for its message.

    >>> from collegium import policy, topology
    >>> run = collaborate([[2.0, -1.0, -0.5], [1.0, 1.0, -0.5]], policy.uniform(topology.ring(3)), rounds=1)
    >>> run.decisions()
    array([[1, 1, 1],
           [1, 1, 1]], dtype=int8)
    >>> run
    Run(DeGroot(), 1 round, 2 items × 3 agents, 6 transmissions, 384 bits per item)
    """
    items = None if items is None else item_names(items)
    job = admit(scores, policy, rounds, [rule], rng, record, items, mailbox)
    outcome = None
    if type(mailbox) in (HoldLast, Renormalise):
        outcome = rule.arrays(job)
    if outcome is None:
        outcome = by_agents(job, rule)
    return Run(outcome.statistics, outcome.transmissions, job.rounds, rule, policy, items, job.seed)


def sweep(
    scores: ArrayLike,
    policy: Policy,
    rules: Sequence[Rule],
    y: ArrayLike,
    rounds: int = 20,
    rng: Seed = 0,
    *,
    realisations: int = 1,
    items: Items | None = None,
    mailbox: Mailbox = HoldLast(),
    classes: Sequence[Any] | None = None,
) -> Sweep:
    """Errors and transmissions of many rules on the same scores in one pass.

    For a grid of thresholds, a grid of (patience, confidence), or many realisations of a quantiser: nothing but
    the averages is kept. Realisation m equals `collaborate` with `rng=collegium.randomness.child(seed, m)`.

    >>> from collegium import policy, protocol, topology
    >>> rules = [protocol.DeltaTrigger(e) for e in (0.1, 1.0)]
    >>> p = policy.uniform(topology.path(3))
    >>> sweep([[2.0, -1.0, 0.5], [-1.0, -1.0, 0.5]], p, rules, [1, -1]).transmissions[:, 0, -1]
    array([11. ,  5.5])
    """
    if isinstance(rules, Rule) or not hasattr(rules, "__iter__"):
        raise RuleError(f"rules must be a list of rules, got {rules!r}")
    rules = list(rules)
    if not rules:
        raise RuleError("sweep needs at least one rule")
    realisations = whole_number(realisations, "realisations", RuleError, at_least=1)
    job = admit(scores, policy, rounds, rules, rng, "final", items, mailbox)
    signs = to_signs(y, len(job.scores), classes).astype(np.float64)
    if not len(job.scores):
        raise ScoreError("sweep averages over items, but there are none")
    settings = [rule.own_settings for rule in rules]
    seeds = [child(job.seed, m) for m in range(realisations)]
    known = [one for one in settings if one is not None]
    if len(known) < len(rules) or type(mailbox) not in (HoldLast, Renormalise):
        return _sweep_one_by_one(job, rules, seeds, signs)
    from collegium import kernels

    tally = kernels.sweep(job.arrays(), known, seeds, signs)
    n, shape = len(signs), (len(rules), realisations, job.rounds + 1)
    return Sweep(tally.errors.reshape(*shape, policy.size) / n, tally.transmissions.reshape(shape) / n, tuple(rules))


def _sweep_one_by_one(job: Job, rules: Sequence[Rule], seeds: list[int], signs: Doubles) -> Sweep:
    """For rules without an array path: every budget is a run of its own."""
    errors = np.empty((len(rules), len(seeds), job.rounds + 1, job.policy.size))
    transmissions = np.empty(errors.shape[:3])
    for r, rule in enumerate(rules):
        for m, seed in enumerate(seeds):
            for t in range(job.rounds + 1):
                outcome = by_agents(job._replace(rounds=t, seed=seed), rule)
                errors[r, m, t] = (outcome.statistics[-1] * signs[:, None] <= 0).mean(axis=0)
                transmissions[r, m, t] = outcome.transmissions.mean()
    return Sweep(errors, transmissions, tuple(rules))


def by_agents(job: Job, rule: Rule) -> Outcome:
    """The same protocol as each agent sees it: slow, plain, and what the array path must equal."""
    from collegium.kernels import Outcome

    n, K = job.scores.shape
    graph = job.policy.graph
    weights = [job.policy.weights[graph.indptr[k] : graph.indptr[k + 1]].tolist() for k in range(K)]
    hears = [graph.neighbours(k).tolist() for k in range(K)]
    statistics = np.empty((job.rounds + 1, n, K))
    transmissions = np.zeros(n, np.int64)
    for i, item in enumerate(job.ids.tolist()):
        states = [rule.init(score) for score in job.scores[i].tolist()]
        last: list[float | None] = [None] * K
        statistics[0, i] = [rule.statistic(state) for state in states]
        for t in range(1, job.rounds + 1):
            said: list[float | None] = [None] * K
            before = list(last)
            for k in range(K):
                said[k], states[k] = rule.emit(states[k], Draws(job.seed, item, k, t))
                if said[k] is not None:
                    last[k] = said[k]
                    transmissions[i] += graph.audience_sizes[k]
                elif t == 1:
                    raise RuleError(f"{rule} was silent in round 1 (agent {k}): everybody must speak first")
            for k in range(K):
                arrived = [last[l] if l == k else said[l] for l in hears[k]]
                inbox, shares = job.mailbox.read(arrived, [before[l] for l in hears[k]], weights[k])
                states[k] = rule.absorb(states[k], inbox, shares)
            statistics[t, i] = [rule.statistic(state) for state in states]
    return Outcome(statistics[-1:].copy() if job.final else statistics, transmissions)


def admit(
    scores: ArrayLike,
    policy: Policy,
    rounds: int,
    rules: Sequence[Rule],
    rng: Seed,
    record: str,
    items: Items | None,
    mailbox: Mailbox,
) -> Job:
    """The door: everything a user can get wrong is noticed here, before any round is run."""
    if not isinstance(policy, Policy):
        raise PolicyError(f"policy must be a collegium Policy, got {type(policy).__name__}; wrap a matrix as Policy(A)")
    rounds = whole_number(rounds, "rounds", RuleError, at_most=2**31 - 1)
    if record not in ("all", "final"):
        raise RuleError(f'record must be "all" or "final", got {record!r}')
    for rule in rules:
        if not isinstance(rule, Rule):
            raise RuleError(f"rule must be a Rule such as DeGroot(), got {rule!r}")
    if not isinstance(mailbox, Mailbox):
        raise RuleError(f"mailbox must be a Mailbox such as HoldLast(), got {mailbox!r}")
    values = check_scores(scores, policy.size)
    for rule in rules:
        _check_range(values, rule, rounds)
    return Job(values, policy, rounds, seed64(rng), item_ids(items, len(values)), mailbox, record == "final")


def _check_range(scores: Doubles, rule: Rule, rounds: int) -> None:
    reach = rule.reach(rounds)
    if not scores.size or np.abs(scores).max() <= reach:
        return
    i, k = np.unravel_index(int(np.abs(scores).argmax()), scores.shape)
    count = int(np.count_nonzero(np.abs(scores) > reach))
    raise ScoreError(
        f"{rule} takes scores up to {max(reach, 0.0):.6g} in {rounds} rounds, but {count} lie outside "
        f"(the largest: agent {k}, item {i} has {scores[i, k]:.6g}). "
        "Use a larger bound (or more bits), or bounded scores tanh(f/2)."
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _recorded(run: Run) -> str:
    return f"rounds 0 to {run.rounds}" if len(run.statistics) > 1 or run.rounds == 0 else "only the last round"
