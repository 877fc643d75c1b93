"""What if: the same local statistics over another network, rule or precision, or with agents that go wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from collegium import corruption, policy, topology
from collegium.dashboard.snapshot import Averages, Item, Statistic
from collegium.errors import CollegiumError, RuleError, ScoreError
from collegium.network import Run, collaborate, validated
from collegium.policy import Policy
from collegium.protocol import DeGroot, Quantised, Rule, registry
from collegium.protocol.averaging import is_degroot, tends_to_mean
from collegium.topology import Graph
from collegium.topology.deterministic import squarest
from collegium.trust import Liars, attacks
from collegium.trust.attacks import Attack

Doubles = NDArray[np.float64]
Labels = NDArray[np.int64]
MOST_AGENTS, MOST_ROUNDS = 64, 200
_MOST_NUMBERS = 4_000_000  # statistics held at once; beyond that fewer items are averaged
_POINTS = 25  # of bits against error

_WEIGHTS: dict[str, Callable[[Graph], Policy]] = {
    "uniform": policy.uniform,
    "metropolis": policy.metropolis,
    "laplacian": policy.laplacian,
}


ATTACKS: dict[str, Callable[[float, Policy, list[int]], Attack]] = {
    "stubborn": lambda strength, over, liars: attacks.Stubborn(strength),
    "flip": lambda strength, over, liars: attacks.SignFlip(strength),
    "little-is-enough": lambda strength, over, liars: attacks.LittleIsEnough(strength),
    "inner-product": lambda strength, over, liars: attacks.InnerProduct(strength),
    "mimic": lambda strength, over, liars: attacks.Mimic(),
    "silence": lambda strength, over, liars: attacks.Silence(strength),
    "two-faced": lambda strength, over, liars: attacks.TwoFaced(strength),
    "split": lambda strength, over, liars: attacks.Split.of(over.graph, liars, strength),
    "dissension": lambda strength, over, liars: attacks.Dissension.along(over, strength),
}
"""What agents may send in every round, by name, made of the strength, the network and who lies."""


class Changes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be different; what is left out stays as it was given."""

    topology: str = "given"
    weights: Literal["given", "uniform", "metropolis", "laplacian"] = "given"
    rule: Annotated[str, msgspec.Meta(max_length=200)] = "given"
    """The name of a rule, or a whole one as on the command line."""
    threshold: Annotated[float, msgspec.Meta(ge=0)] = 0.1
    patience: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROUNDS)] = 2
    confidence: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    bits: Annotated[int, msgspec.Meta(ge=0, le=64)] | None = None
    """64 is full precision."""
    rounds: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROUNDS)] | None = None
    fault: Literal[
        "none", "noise", "stuck", "bias", "sign-flip", "stubborn", "flip", "little-is-enough", "inner-product", "mimic",
        "silence", "two-faced", "split", "dissension",
    ] = "none"  # fmt: skip
    """A fault at the start, or a lie in every round, see `ATTACKS`."""
    strength: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    faulty: Annotated[list[int], msgspec.Meta(max_length=MOST_AGENTS)] = []
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] | None = None


@dataclass(frozen=True, eq=False)
class World:
    """Local statistics of n items, and the network, rule and rounds that agents decide with."""

    policy: Policy
    scores: Doubles
    """Shape (n, K), or (n, K, C) of C > 2 classes."""
    rounds: int = 20
    rule: Rule = DeGroot()
    seed: int = 0
    names: Sequence[Any] | None = None
    """The items' names, if they have any."""
    y: NDArray[Any] | None = None
    """+1 or -1, or 0 where it is not known, shape (n,); of several classes the place, or -1 where it is not known."""
    liars: Liars | None = None
    """Who lies in every round, and how."""

    def __post_init__(self) -> None:
        if self.policy.size > MOST_AGENTS:
            raise ScoreError(f"the dashboard draws at most {MOST_AGENTS} agents; this network has {self.policy.size}")
        if not 1 <= self.rounds <= MOST_ROUNDS:
            raise RuleError(f"the dashboard shows 1 to {MOST_ROUNDS} rounds, not {self.rounds}")
        validated(self.scores, self.policy, self.rounds, [self.rule], self.seed, items=self.names)

    @property
    def bound(self) -> float:
        """The largest |score|."""
        return float(np.abs(self.scores).max(initial=0.0))

    def name(self, i: int) -> Any:
        """What item i is called."""
        return i if self.names is None else self.names[i]

    def averaged(self) -> int:
        """How many items fit into averages."""
        each = self.policy.size * (self.rounds + 1) * (1 if self.scores.ndim == 2 else self.scores.shape[2])
        return min(len(self.scores), max(1, _MOST_NUMBERS // each))

    @property
    def unknown(self) -> int:
        """The label of an item whose class is not known, and of an agent that cannot decide."""
        return 0 if self.scores.ndim == 2 else -1


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


def changed(world: World, changes: Changes) -> World:
    """The world with these changes."""
    rounds = changes.rounds or world.rounds
    seed = world.seed if changes.seed is None else changes.seed
    scores, over = _with_faults(world.scores, changes, seed), _policy(world.policy, changes)
    return replace(
        world, policy=over, scores=scores, rounds=rounds, seed=seed, liars=_liars(changes, over),
        rule=_rule(world, changes, rounds, float(np.abs(scores).max(initial=0.0))),
    )  # fmt: skip


def _policy(given: Policy, changes: Changes) -> Policy:
    if changes.topology == "given":
        return given if changes.weights == "given" else _WEIGHTS[changes.weights](given.graph)
    known = topologies(given.size)
    if changes.topology not in known:
        raise RuleError(f"there is no topology {changes.topology[:40]!r}: choose one of {', '.join(known)}")
    return _WEIGHTS["uniform" if changes.weights == "given" else changes.weights](known[changes.topology])


def _rule(world: World, changes: Changes, rounds: int, largest: float) -> Rule:
    given = world.rule
    quantised = given if type(given) is Quantised else None  # what a subclass changed must not be lost
    inner = given if quantised is None else quantised.rule
    if changes.rule != "given":
        settings = {
            "delta-trigger": (changes.threshold,),
            "label-stability": (changes.patience, changes.confidence),
        }.get(changes.rule, ())
        text = f"{changes.rule}:{','.join(map(repr, settings))}" if settings else changes.rule
        inner = registry.rule_from_text(text)
    bits = changes.bits or (64 if quantised is None else quantised.bits)
    if bits > 32:
        return inner
    # The bound as given if it is wide enough; else the least that takes these scores for so many rounds.
    if quantised is not None and Quantised(inner, bits, quantised.bound).max_score(rounds) >= largest:
        return Quantised(inner, bits, quantised.bound)
    share = Quantised(inner, bits, 1.0).max_score(rounds)
    if share <= 0:
        raise RuleError(f"{bits} bits are too few for {inner} over {rounds} rounds: its messages outgrow any bound")
    return Quantised(inner, bits, max(largest, 1e-12) / share)


def _liars(changes: Changes, over: Policy) -> Liars | None:
    if changes.fault not in ATTACKS or not changes.faulty:
        return None
    Liars(changes.faulty, attacks.Mimic()).validate(0, over.size, 1)
    return Liars(changes.faulty, ATTACKS[changes.fault](changes.strength, over, changes.faulty))


def _with_faults(scores: Doubles, changes: Changes, seed: int) -> Doubles:
    if changes.fault == "none" or changes.fault in ATTACKS or not changes.faulty:
        return scores
    if changes.fault == "noise":
        return corruption.noise(scores, changes.faulty, changes.strength, seed)
    if changes.fault == "stuck":
        return corruption.stuck(scores, changes.faulty)
    if changes.fault == "bias":
        return corruption.bias(scores, changes.faulty, changes.strength)
    return corruption.sign_flip(scores, changes.faulty, changes.strength)


def item(world: World, i: int, picture: str | None = None) -> Item:
    """One item round by round."""
    name, T = world.name(i), world.rounds
    run = collaborate(world.scores[i : i + 1], world.policy, T, world.rule, world.seed, items=[name], liars=world.liars)
    settled = None
    if is_degroot(world.rule) and world.liars is None:
        settled = [run.settled(t, world.bound)[0].tolist() for t in range(T + 1)]
    return Item(
        id=str(i),
        name=str(name),
        truth=None if world.y is None or world.y[i] == world.unknown else int(world.y[i]),
        rounds=T,
        statistics=run.statistics[:, 0].tolist(),
        limit=limit(world, world.scores[i]),
        settled=settled,
        spoke=run.spoke[:, 0].tolist(),
        bits=int(run.bits[0]),
        picture=picture,
    )


def limit(world: World, scores: Doubles) -> Statistic | None:
    """Where averaging at full precision, with nobody silent, ends; None for rules that do not average."""
    found: Statistic = (world.policy.perron @ scores).tolist()
    return found if tends_to_mean(world.rule) and world.liars is None else None


def own_rules() -> list[str]:
    """Rules of one's own that need no settings, by name."""
    found = []
    for name in registry.own_names():
        try:
            registry.rule_from_text(name)
        except CollegiumError:  # it needs settings, or is a part of a rule
            continue
        found.append(name)
    return found


def labels_of(statistics: Doubles) -> Labels:
    """+1, -1, or 0 where it cannot decide, of statistics (n, K); places of (n, K, C), -1 where two are largest."""
    if statistics.ndim == 2:
        return np.sign(statistics).astype(np.int64)
    return np.where(clearness(statistics) > 0, statistics.argmax(axis=-1), -1)


def clearness(statistics: Doubles) -> Doubles:
    """|statistic| of (n, K); the lead of the largest entry over the second of (n, K, C)."""
    if statistics.ndim == 2:
        return np.abs(statistics)
    ordered = np.partition(statistics, -2, axis=-1)
    return np.asarray(ordered[..., -1] - ordered[..., -2])


def decisions(world: World) -> Labels:
    """Everybody's final label of the averaged items, shape (n, K); `World.unknown` where it has none."""
    return labels_of(_run(world).statistics[-1])


def averages(world: World, before: Labels) -> Averages:
    """Errors, bits and decisions over many items; `before` are the decisions of the world as it was given."""
    run = _run(world)
    n = run.statistics.shape[1]
    labels, alone = labels_of(run.statistics[-1]), labels_of(world.scores[:n])
    y = np.full(n, world.unknown) if world.y is None else world.y[:n]
    known = y != world.unknown
    errors = best = worst = None
    decided = labels[:, run.honest]  # what liars decide is nobody's error
    wrong = (decided != decided[:, :1]).any(axis=1)
    if known.any():
        # Social learning begins at zero: who stops before the first round has its own statistic to decide by.
        pages = [alone, *map(labels_of, run.statistics[1:])]
        rates = np.array([(page != y[:, None])[known].mean(axis=0) for page in pages])[:, run.honest]
        errors, best, worst = rates.mean(axis=1).tolist(), rates.min(axis=1).tolist(), rates.max(axis=1).tolist()
        wrong = known & (decided != y[:, None]).any(axis=1)
    shared = min(n, len(before))
    return Averages(
        items=n,
        total=len(world.scores),
        known=int(known.sum()),
        errors=errors,
        best=best,
        worst=worst,
        bits=_bits(run),
        changed=float((labels[:shared] != before[:shared]).mean()) if shared else 0.0,
        split=np.flatnonzero((alone != alone[:, :1]).any(axis=1)).tolist(),
        wrong=np.flatnonzero(wrong).tolist(),
    )


def _run(world: World) -> Run:
    n = world.averaged()
    names = None if world.names is None else list(world.names[:n])
    return collaborate(
        world.scores[:n], world.policy, world.rounds, world.rule, world.seed, items=names, liars=world.liars
    )


def _bits(run: Run) -> list[tuple[int, float]]:
    """Mean bits per item when agents stop after so many rounds."""
    so_far = np.append(0.0, np.cumsum(run.bits_by_round, axis=0).mean(axis=1))
    points = sorted({round(t) for t in np.linspace(0, run.rounds, min(run.rounds + 1, _POINTS))})
    return [(t, float(so_far[t])) for t in points]
