"""The search: every candidate measured on one half of the items, the front of error against bits on the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.labels import to_places, to_signs
from collegium._util.measures import Interval, mean_interval, wrong
from collegium._util.progress import track
from collegium._util.scores import check_scores_of_classes
from collegium.errors import RuleError, ScoreError
from collegium.network import collaborate, sweep
from collegium.planner.candidates import Network, networks, rules
from collegium.policy import Policy
from collegium.protocol import DeGroot, Quantised, Rule
from collegium.protocol.registry import describe
from collegium.theory.certificate import Certificate, certify

Doubles = NDArray[np.float64]
Labels = NDArray[np.int8] | NDArray[np.intp]
LONGEST_FRONT = 24


@dataclass(frozen=True)
class Plan:
    """A way to collaborate, and what it costs and gives on items it was not chosen by."""

    topology: str
    weighing: str
    rule: Rule
    rounds: int
    policy: Policy = field(repr=False)
    chosen_error: float
    """Mean error of the agents on the half it was chosen by."""
    chosen_bits: float
    """Bits per item there."""
    error: Interval
    """Mean error of the agents on the other half, with its 95 % interval over items."""
    bits: Interval
    """Bits per item there."""

    @property
    def description(self) -> str:
        """The plan in a line."""
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        return f"{self.topology} ({self.weighing}), {describe(self.rule)}, {rounds}"


@dataclass(frozen=True, eq=False)
class Answer:
    """What the planner found."""

    front: tuple[Plan, ...]
    """Plans than which none was both cheaper and better where they were chosen, from cheap to good."""
    recommended: Plan
    met: bool
    """Whether the recommended plan meets what was asked, on the half it was chosen by (`reasons` tells of the other);
    if not, it is the nearest that there is."""
    reasons: tuple[str, ...]
    alone: Interval
    """The mean error of agents without collaboration, on the other half."""
    certificate: Certificate = field(repr=False)
    """From the other half, for agents that use the recommended network at its precision and are never silent: the
    guarantees know no stopping rules."""
    searched: int
    """How many combinations of network, rule and rounds were measured."""
    seconds: float


def plan(
    scores: ArrayLike,
    y: ArrayLike,
    *,
    target_error: float | None = None,
    budget_bits: float | None = None,
    rounds: int = 20,
    realisations: int = 2,
    seed: int = 0,
    classes: Sequence[Any] | None = None,
) -> Answer:
    """Search networks over the K agents, weights, rounds, bits and stopping rules for the best way to collaborate.

    scores: local statistics of items with labels y, shape (n, K), or (n, K, C) of C > 2 classes. The items are split in
    halves, class by class: plans are chosen on the first by their mean error over agents and their bits per item, and
    reported on the second, so that a plan that was merely lucky is seen to be.

    target_error: the cheapest plan with at most this error is recommended. budget_bits: the best plan with at most so
    many bits per item. Both: the cheapest that meets both. Neither: the plan with the smallest error.
    """
    begun = time.perf_counter()
    c = np.asarray(scores)
    if c.ndim not in (2, 3) or c.shape[1] < 2:
        raise ScoreError(f"planning needs scores of at least two agents, shape (items, agents); got shape {c.shape}")
    c = check_scores_of_classes(scores, c.shape[1])
    if c.shape[2] > 1:
        labels: Labels = to_places(y, len(c), c.shape[2], classes)
    else:
        c, labels = c[:, :, 0], to_signs(y, len(c), classes)
    size = float(np.abs(c).max(initial=0.0))
    if size and not 1e-100 < size < 1e100:
        raise ScoreError(f"scores of size {size:.2g} are too small or too large to compute with: rescale them")
    if target_error is not None:
        real_number(target_error, "the target error", RuleError, at_least=0, at_most=1)
    if budget_bits is not None:
        real_number(budget_bits, "the budget in bits", RuleError, at_least=0)
    rounds = whole_number(rounds, "rounds", RuleError, at_least=1)
    realisations = whole_number(realisations, "realisations", RuleError, at_least=1)
    first, second = _halves(labels, _inside(c), seed)
    measured = _measure(c, labels, first, rounds, realisations, seed)
    best = _front(measured)
    chosen, met, why = _recommend(measured, best, target_error, budget_bits)
    quiet = float(wrong(c[first], labels[first]).mean())
    shown = sorted({*_spread(best), chosen}, key=best.index)
    front = {i: _report(measured, i, c, labels, second, seed) for i in shown}
    alone = mean_interval(wrong(c[second], labels[second]))
    recommended = front[chosen]
    if target_error is not None and quiet <= target_error:
        recommended = _silence(measured.networks[0], quiet, alone)
        met, why = (
            True,
            f"no messages are needed: alone the agents have an error of {quiet:.4f} where plans were chosen",
        )
    return Answer(
        front=tuple(front.values()),
        recommended=recommended,
        met=met,
        reasons=(why, *_beside(recommended, alone, len(_inside(c)), target_error, budget_bits)),
        alone=alone,
        certificate=_certificate(recommended, c[second], labels[second], second, seed),
        searched=len(measured.error),
        seconds=time.perf_counter() - begun,
    )


@dataclass(frozen=True)
class Measured:
    """Every combination that was tried, one entry each."""

    error: Doubles
    bits: Doubles
    network: NDArray[np.int64]
    rule: NDArray[np.int64]
    round: NDArray[np.int64]
    networks: list[Network]
    rules: list[Rule]


def _measure(c: Doubles, labels: Labels, half: NDArray[np.int64], T: int, M: int, seed: int) -> Measured:
    """Mean error over agents and bits per item of every network, rule and number of rounds."""
    # Thresholds come from the half that chooses; the range of the quantiser is that of all scores, since one outside
    # it could not be sent.
    exact, coarse = rules(float(c[half].std()) or 1.0, float(np.abs(c).max()) or 1.0)
    tried = networks(c.shape[1])
    errors, bits = [], []
    for network in track(tried, "searching networks"):
        for some, times in ((exact, 1), (coarse, M)):
            found = sweep(
                c[half], network.policy, some, labels[half], T, seed, realisations=times, items=half, classes=_inside(c)
            )
            errors.append(found.errors.mean(axis=(1, 3))[:, 1:])
            bits.append(found.bits.mean(axis=1)[:, 1:])
    R = len(exact) + len(coarse)
    shape = len(tried), R, T
    place = np.indices(shape).reshape(3, -1)
    error, cost = (np.concatenate(parts).reshape(shape).ravel() for parts in (errors, bits))
    return Measured(error, cost, place[0], place[1], place[2] + 1, tried, [*exact, *coarse])


def _front(measured: Measured) -> list[int]:
    """Places of plans that nothing beats in both ways, from cheap to good; of equals the one with fewer rounds."""
    order = np.lexsort((measured.round, measured.error, measured.bits))
    best = np.minimum.accumulate(measured.error[order])
    better = np.r_[True, best[1:] < best[:-1]]
    return [int(place) for place in order[better]]


def _spread(front: list[int]) -> list[int]:
    """At most so many of them, from end to end."""
    places = np.linspace(0, len(front) - 1, min(len(front), LONGEST_FRONT)).round().astype(int)
    return [front[i] for i in places]


def _report(measured: Measured, i: int, c: Doubles, labels: Labels, half: NDArray[np.int64], seed: int) -> Plan:
    network, rule, t = measured.networks[measured.network[i]], measured.rules[measured.rule[i]], int(measured.round[i])
    run = collaborate(c[half], network.policy, t, rule, seed, record="final", items=half)
    return Plan(
        network.topology, network.weighing, rule, t, network.policy,
        float(measured.error[i]), float(measured.bits[i]),
        mean_interval(wrong(run.statistics[-1], labels[half])), mean_interval(run.bits.astype(np.float64)),
    )  # fmt: skip


def _recommend(
    measured: Measured, front: list[int], target: float | None, budget: float | None
) -> tuple[int, bool, str]:
    """The plan to take, whether it is what was asked for, and why; `front` runs from cheap to good."""
    error, bits = measured.error, measured.bits
    within = [i for i in front if budget is None or bits[i] <= budget]
    good = [i for i in within if target is None or error[i] <= target]
    if good and target is None:
        best = good[-1]
        limit = "of all" if budget is None else f"of those with at most {budget:g} bits per item"
        return best, True, f"the smallest error {limit}: {error[best]:.4f} where it was chosen"
    if good:
        best = good[0]
        cost = f"{error[best]:.4f} for {bits[best]:.4g} bits per item where it was chosen"
        return best, True, f"the cheapest with an error of at most {target:g}: {cost}"
    if not within:
        nearest = front[0]
        cost = f"the cheapest costs {bits[nearest]:.4g}"
        return nearest, False, f"no plan with any messages costs at most {budget:g} bits per item: {cost}"
    nearest = within[-1]
    limit = "" if budget is None else f" with at most {budget:g} bits per item"
    cost = f"the nearest has {error[nearest]:.4f} for {bits[nearest]:.4g} bits per item"
    return nearest, False, f"no plan{limit} reaches an error of {target:g}: {cost}"


def _silence(network: Network, error: float, alone: Interval) -> Plan:
    """Every agent for itself: no rounds, no bits, whatever the network."""
    nothing = Interval(0.0, 0.0)
    return Plan(
        network.topology, network.weighing, DeGroot(), 0, network.policy,
        chosen_error=error, chosen_bits=0.0, error=alone, bits=nothing,
    )  # fmt: skip


def _beside(best: Plan, alone: Interval, C: int, target: float | None, budget: float | None) -> tuple[str, ...]:
    """The plan on the other half of the items."""
    reasons = [
        f"on the other half: error {best.error.mean:.4f} ± {best.error.half:.4f} for {best.bits.mean:.4g} bits per "
        f"item; alone {alone.mean:.4f} ± {alone.half:.4f}"
    ]
    if target is not None and best.error.mean > target:
        sure = "beyond doubt" if best.error.mean - best.error.half > target else "within the interval"
        reasons.append(f"there it misses the target of {target:g}, {sure}: choosing among many flatters the chosen")
    if alone.mean > 1 - 1 / C:
        reasons.append("alone the agents are wrong more often than by guessing: are the classes the right way round?")
    if budget is not None and best.bits.mean > budget >= best.chosen_bits:
        reasons.append(
            f"there it needs more than {budget:g} bits per item on average: a stopping rule depends on the items"
        )
    return tuple(reasons)


def _certificate(best: Plan, c: Doubles, labels: Labels, items: NDArray[np.int64], seed: int) -> Certificate:
    """Guarantee and error for the plan's network and precision, without silence."""
    rule: Rule = DeGroot()
    bits, coarseness = None, 0.0
    if isinstance(best.rule, Quantised):
        bits = best.rule.bits
        coarseness = best.rule.bound / 2
        rule = Quantised(rule, bits, best.rule.bound)
    errors = collaborate(c, best.policy, best.rounds, rule, seed, items=items).errors(labels, classes=_inside(c))
    return certify(
        c, labels, best.policy, best.rounds, bits=bits, errors=errors, classes=_inside(c), coarseness=coarseness
    )


def _inside(c: Doubles) -> Sequence[int]:
    """What labels are called inside, so that those of a half need not be all there."""
    return (1, -1) if c.ndim == 2 else range(c.shape[2])


def _halves(labels: Labels, inside: Sequence[int], seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(whole_number(seed, "seed", RuleError))
    parts: tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]] = ([], [])
    for label in inside:
        rows = rng.permutation(np.flatnonzero(labels == label))
        if len(rows) < 4:
            raise ScoreError(f"planning splits the items in halves and needs four of each class; one has {len(rows)}")
        parts[0].append(rows[: len(rows) // 2])
        parts[1].append(rows[len(rows) // 2 :])
    return np.sort(np.concatenate(parts[0])), np.sort(np.concatenate(parts[1]))
