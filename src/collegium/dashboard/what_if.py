"""What if: the same local statistics over another network, rule or precision, or with agents that go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from collegium import corruption, policy, protocol, topology
from collegium._util.randomness import Draws
from collegium.dashboard.snapshot import Averages, Item
from collegium.errors import CollegiumError, RuleError, ScoreError
from collegium.network import Run, admit, by_agents, collaborate
from collegium.policy import Policy
from collegium.protocol import DeGroot, HoldLast, Quantised, Rule, SocialLearning
from collegium.topology import Graph
from collegium.topology.deterministic import squarest

Doubles = NDArray[np.float64]
MOST_AGENTS, MOST_ROUNDS = 64, 200
_MOST_NUMBERS = 4_000_000  # statistics held at once; beyond that fewer items are averaged
_POINTS = 25  # of bits against error: each is a run of its own for rules that fall silent

_WEIGHTS: dict[str, Callable[[Graph], Policy]] = {
    "uniform": policy.uniform,
    "metropolis": policy.metropolis,
    "laplacian": policy.laplacian,
}


class Wishes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be different; a wish left out leaves things as they were given."""

    topology: str = "given"
    weights: Literal["given", "uniform", "metropolis", "laplacian"] = "given"
    rule: Literal["given", "degroot", "social-learning", "delta-trigger", "label-stability"] = "given"
    threshold: Annotated[float, msgspec.Meta(ge=0)] = 0.1
    patience: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROUNDS)] = 2
    confidence: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    bits: Annotated[int, msgspec.Meta(ge=0, le=64)] | None = None
    """64 is full precision."""
    rounds: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROUNDS)] | None = None
    fault: Literal["none", "noise", "stuck", "sign-flip"] = "none"
    strength: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    faulty: Annotated[list[int], msgspec.Meta(max_length=MOST_AGENTS)] = []
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] | None = None


@dataclass(frozen=True, eq=False)
class World:
    """Local statistics of n items, and the network, rule and rounds that agents decide with."""

    policy: Policy
    scores: Doubles
    """Shape (n, K)."""
    rounds: int = 20
    rule: Rule = DeGroot()
    seed: int = 0
    names: Sequence[Any] | None = None
    """The items' names, if they have any."""
    y: NDArray[np.int8] | None = None
    """+1 or -1, or 0 where it is not known, shape (n,)."""

    def __post_init__(self) -> None:
        if self.policy.size > MOST_AGENTS:
            raise ScoreError(f"the dashboard draws at most {MOST_AGENTS} agents; this network has {self.policy.size}")
        if not 1 <= self.rounds <= MOST_ROUNDS:
            raise RuleError(f"the dashboard shows 1 to {MOST_ROUNDS} rounds, not {self.rounds}")
        admit(self.scores, self.policy, self.rounds, [self.rule], self.seed, "all", self.names, HoldLast())

    @property
    def bound(self) -> float:
        """The largest |score|."""
        return float(np.abs(self.scores).max(initial=0.0))

    def name(self, i: int) -> Any:
        """What item i is called."""
        return i if self.names is None else self.names[i]

    def averaged(self) -> int:
        """How many items fit into averages."""
        return min(len(self.scores), max(1, _MOST_NUMBERS // (self.policy.size * (self.rounds + 1))))


def topologies(K: int) -> dict[str, Graph]:
    """The networks of K agents that may be chosen, by name."""
    rows, columns = squarest(K)
    wanted: dict[str, Callable[[], Graph]] = {
        "ring": lambda: topology.ring(K),
        "path": lambda: topology.path(K),
        "star": lambda: topology.star(K),
        f"grid {rows}×{columns}": lambda: topology.grid(rows, columns),
        f"torus {rows}×{columns}": lambda: topology.torus(rows, columns),
        "complete": lambda: topology.complete(K),
        "random, directed": lambda: topology.erdos_renyi(K, links=min(8 * K // 3, K * (K - 1)), seed=7),
        "small world": lambda: topology.small_world(K, neighbours=4, rewire=0.2, seed=1),
    }
    found = {}
    for name, build in wanted.items():
        if rows == 1 and "×" in name:
            continue
        try:
            found[name] = build()
        except CollegiumError:  # too few agents for it
            continue
    return found


def changed(world: World, wishes: Wishes) -> World:
    """The world as wished."""
    rounds = wishes.rounds or world.rounds
    seed = world.seed if wishes.seed is None else wishes.seed
    scores = _with_faults(world.scores, wishes, seed)
    return replace(
        world, policy=_policy(world.policy, wishes), scores=scores, rounds=rounds, seed=seed,
        rule=_rule(world, wishes, rounds, float(np.abs(scores).max(initial=0.0))),
    )  # fmt: skip


def _policy(given: Policy, wishes: Wishes) -> Policy:
    if wishes.topology == "given":
        return given if wishes.weights == "given" else _WEIGHTS[wishes.weights](given.graph)
    known = topologies(given.size)
    if wishes.topology not in known:
        raise RuleError(f"there is no topology {wishes.topology[:40]!r}: choose one of {', '.join(known)}")
    return _WEIGHTS["uniform" if wishes.weights == "given" else wishes.weights](known[wishes.topology])


def _rule(world: World, wishes: Wishes, rounds: int, largest: float) -> Rule:
    given = world.rule
    inner = given.rule if isinstance(given, Quantised) else given
    if wishes.rule == "degroot":
        inner = DeGroot()
    elif wishes.rule == "social-learning":
        inner = SocialLearning()
    elif wishes.rule == "delta-trigger":
        inner = protocol.DeltaTrigger(wishes.threshold)
    elif wishes.rule == "label-stability":
        inner = protocol.LabelStability(wishes.patience, wishes.confidence)
    bits = (given.bits if isinstance(given, Quantised) else 64) if not wishes.bits else wishes.bits
    if bits > 32:
        return inner
    # The bound as given if it is wide enough; else the least that takes these scores for so many rounds.
    if isinstance(given, Quantised) and Quantised(inner, bits, given.bound).reach(rounds) >= largest:
        return Quantised(inner, bits, given.bound)
    share = Quantised(inner, bits, 1.0).reach(rounds)
    if share <= 0:
        raise RuleError(f"{bits} bits are too few for {inner} over {rounds} rounds: its messages outgrow any bound")
    return Quantised(inner, bits, max(largest, 1e-12) / share)


def _with_faults(scores: Doubles, wishes: Wishes, seed: int) -> Doubles:
    if wishes.fault == "none" or not wishes.faulty:
        return scores
    if wishes.fault == "noise":
        return corruption.noise(scores, wishes.faulty, wishes.strength, seed)
    if wishes.fault == "stuck":
        return corruption.stuck(scores, wishes.faulty)
    return corruption.sign_flip(scores, wishes.faulty, wishes.strength)


@dataclass(frozen=True)
class _Overheard(Rule):
    """A rule that notes who speaks when: what makes links pulse."""

    rule: Rule
    log: set[tuple[int, int]]

    def init(self, score: float) -> Any:
        return self.rule.init(score)

    def emit(self, state: Any, rng: Draws) -> tuple[float | None, Any]:
        message, state = self.rule.emit(state, rng)
        if message is not None:
            self.log.add((rng.round, rng.agent))
        return message, state

    def absorb(self, state: Any, inbox: Sequence[float], weights: Sequence[float]) -> Any:
        return self.rule.absorb(state, inbox, weights)

    def statistic(self, state: Any) -> float:
        return self.rule.statistic(state)


def item(world: World, i: int, picture: str | None = None) -> Item:
    """One item round by round: run as the agents see it, which needs no compiler and so is there at once."""
    name, T, K = world.name(i), world.rounds, world.policy.size
    job = admit(world.scores[i : i + 1], world.policy, T, [world.rule], world.seed, "all", [name], HoldLast())
    log: set[tuple[int, int]] = set()
    outcome = by_agents(job, _Overheard(world.rule, log))
    run = Run(outcome.statistics, outcome.transmissions, T, world.rule, world.policy, [name], job.seed)
    settled = None
    if isinstance(world.rule, DeGroot):
        settled = [run.settled(t, world.bound)[0].tolist() for t in range(T + 1)]
    return Item(
        id=str(i),
        name=str(name),
        truth=None if world.y is None else int(world.y[i]) or None,
        rounds=T,
        statistics=run.statistics[:, 0].tolist(),
        limit=limit(world, world.scores[i]),
        settled=settled,
        spoke=[[(t, k) in log for k in range(K)] for t in range(1, T + 1)],
        bits=int(run.bits[0]),
        picture=picture,
    )


def limit(world: World, scores: Doubles) -> float | None:
    """Where averaging at full precision, with nobody silent, ends; social learning goes on growing."""
    inner = world.rule.rule if isinstance(world.rule, Quantised) else world.rule
    return None if isinstance(inner, SocialLearning) else float(scores @ world.policy.perron)


def decisions(world: World) -> NDArray[np.int8]:
    """Everybody's final label of the averaged items, shape (n, K); 0 where it has none."""
    return _labels(_run(world))


def _labels(run: Run) -> NDArray[np.int8]:
    return np.asarray(np.sign(run.statistics[-1]), np.int8)


def averages(world: World, before: NDArray[np.int8]) -> Averages:
    """Errors, bits and decisions over many items; `before` are the decisions of the world as it was given."""
    run = _run(world)
    n = run.statistics.shape[1]
    labels = _labels(run)
    alone = np.sign(world.scores[:n])
    y = np.zeros(n, np.int8) if world.y is None else world.y[:n]
    known = y != 0
    errors = best = worst = None
    wrong = (labels != labels[:, :1]).any(axis=1)
    if known.any():
        # Social learning begins at zero: who stops before the first round has its own statistic to decide by.
        statistics = np.concatenate([world.scores[None, :n], run.statistics[1:]])[:, known]
        rates = (statistics * y[known][None, :, None] <= 0).mean(axis=1)
        errors, best, worst = rates.mean(axis=1).tolist(), rates.min(axis=1).tolist(), rates.max(axis=1).tolist()
        wrong = known & (labels != y[:, None]).any(axis=1)
    shared = min(n, len(before))
    return Averages(
        items=n,
        total=len(world.scores),
        known=int(known.sum()),
        errors=errors,
        best=best,
        worst=worst,
        bits=_bits(world, n),
        changed=float((labels[:shared] != before[:shared]).mean()) if shared else 0.0,
        split=np.flatnonzero((alone != alone[:, :1]).any(axis=1)).tolist(),
        wrong=np.flatnonzero(wrong).tolist(),
    )


def _run(world: World) -> Run:
    n = world.averaged()
    names = None if world.names is None else list(world.names[:n])
    return collaborate(world.scores[:n], world.policy, world.rounds, world.rule, world.seed, items=names)


def _bits(world: World, n: int) -> list[tuple[int, float]]:
    T, rule = world.rounds, world.rule
    points = sorted({round(t) for t in np.linspace(0, T, min(T + 1, _POINTS))})
    inner = rule.rule if isinstance(rule, Quantised) else rule
    if type(inner) in (DeGroot, SocialLearning):  # nobody is ever silent
        return [(t, float(t * world.policy.links * rule.message_bits)) for t in points]
    names = None if world.names is None else list(world.names[:n])
    return [
        (
            t,
            float(
                collaborate(
                    world.scores[:n], world.policy, t, rule, world.seed, record="final", items=names
                ).bits.mean()
            ),
        )
        for t in points
    ]
