"""The search: every candidate measured on one half of the items, the front of error against bits on the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium._util.arguments import real_number, whole_number
from collegium._util.labels import to_places, to_signs
from collegium._util.measures import Interval, mean_interval, wrong
from collegium._util.progress import track
from collegium._util.scores import check_scores_of_classes
from collegium.errors import RuleError, ScoreError
from collegium.links import Links, Lossy, Perfect
from collegium.network import collaborate, sweep
from collegium.planner.candidates import BITS, Network, lossy, networks, quick, rules
from collegium.protocol import DeGroot, Flood, Quantised, Rule, RunningSums
from collegium.protocol.registry import describe
from collegium.schedule import Schedule
from collegium.theory.certificate import Certificate, certify
from collegium.theory.mixing import is_linear

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
    policy: Schedule = field(repr=False)
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
    """Plans than which none was both cheaper and better where they were chosen, by their bits on the other half."""
    recommended: Plan
    met: bool
    """Whether the recommended plan meets what was asked on the half that it was not chosen by, with a margin: the upper
    end of the 95 % interval of its error, and its mean bits. If not, it is the nearest that there is."""
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
    loss: float = 0.0,
) -> Answer:
    """Search networks over the K agents, weights, rounds, bits and stopping rules for the best way to collaborate.

    scores: local statistics of items with labels y, shape (n, K), or (n, K, C) of C > 2 classes. The items are split in
    halves, class by class: plans are chosen on the first by their mean error over agents and their bits per item, and
    reported on the second, so that a plan that was merely lucky is seen to be.

    target_error: the cheapest plan is recommended whose error is below this by a margin, the half of its 95 % interval.
    budget_bits: the best plan with at most so many bits per item, by such a margin where it
    chooses. Both: the cheapest that meets both. Neither: the plan with the smallest error.
    loss: the part of the messages that is lost. If there is any, plans are measured with `links.Lossy`, and only
    those are tried that still give a weighted average: DeGroot without silence, running sums, flooding.
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
    loss = real_number(loss, "the part of the messages that is lost", RuleError, at_least=0, at_most=1)
    links = Lossy(loss, seed) if loss else Perfect()
    first, second = _halves(labels, _inside(c), seed)
    measured = _measure(c, labels, first, rounds, realisations, seed, links)
    best = _front(measured)

    def keeps(i: int, margins: int) -> bool:
        """Whether a plan keeps what was asked where it is chosen, with so many margins."""
        one = _report(measured, i, c, labels, first, seed, links)
        wider = replace(one, error=one.error._replace(half=margins * one.error.half))
        surely = budget_bits is None or one.bits.mean + one.bits.half <= budget_bits
        return surely and _met(wider, len(first), target_error, budget_bits)

    chosen, why = _recommend(measured, best, keeps, target_error, budget_bits)
    quiet = float(wrong(c[first], labels[first]).mean())
    shown = sorted({*_spread(best), chosen}, key=best.index)
    front = {i: _report(measured, i, c, labels, second, seed, links) for i in shown}
    alone = mean_interval(wrong(c[second], labels[second]))
    recommended = front[chosen]
    silence = _silence(measured.networks[0], quiet, mean_interval(wrong(c[first], labels[first])))
    if target_error is not None and _met(silence, len(first), target_error, None):
        recommended = replace(silence, error=alone)
        why = f"no messages are needed: alone the agents have an error of {quiet:.4f} where plans were chosen"
    met = _met(recommended, len(second), target_error, budget_bits)
    return Answer(
        front=tuple(sorted(front.values(), key=lambda one: (one.bits.mean, one.error.mean))),
        recommended=recommended,
        met=met,
        reasons=(why, *_beside(recommended, alone, len(_inside(c)), met, target_error, budget_bits)),
        alone=alone,
        certificate=_certificate(recommended, c[second], labels[second], second, seed, links),
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


def _measure(
    c: Doubles, labels: Labels, half: NDArray[np.int64], T: int, M: int, seed: int, links: Links = Perfect()
) -> Measured:
    """Mean error over agents and bits per item of every network, rule and number of rounds."""
    # Thresholds come from the half that chooses; the range of the quantiser is that of all scores, since one outside
    # it could not be sent.
    exact, coarse = rules(float(c[half].std()) or 1.0, float(np.abs(c).max()) or 1.0)
    if links != Perfect():  # what a silent agent means must arrive
        exact, coarse = exact[:1], coarse[: len(BITS)]
    tried = networks(c.shape[1])
    errors, bits = [], []
    for network in track(tried, "searching networks"):
        for some, times in ((exact, 1), (coarse, M)):
            found = sweep(
                c[half], network.policy, some, labels[half], T, seed, realisations=times, items=half, links=links,
                classes=_inside(c),
            )  # fmt: skip
            errors.append(found.errors.mean(axis=(1, 3))[:, 1:])
            bits.append(found.bits.mean(axis=1)[:, 1:])
    R = len(exact) + len(coarse)
    shape = len(tried), R, T
    place = np.indices(shape).reshape(3, -1)
    error, cost = (np.concatenate(parts).reshape(shape).ravel() for parts in (errors, bits))
    rules_, rows = [*exact, *coarse], [(error, cost, place[0], place[1], place[2] + 1)]
    size = float(np.abs(c).max()) or 1.0
    for network, rule, last in [*(quick(tried, T, size) if links == Perfect() else lossy(tried, T))]:
        times = M if isinstance(rule, Quantised) else 1
        found = sweep(
            c[half],
            network.policy,
            [rule],
            labels[half],
            last,
            seed,
            realisations=times,
            items=half,
            links=links,
            classes=_inside(c),
        )
        new = np.full(last, len(tried)), np.full(last, len(rules_)), np.arange(1, last + 1)
        rows.append((found.errors.mean(axis=(1, 3))[0, 1:], found.bits.mean(axis=1)[0, 1:], *new))
        tried.append(network)
        rules_.append(rule)
    error, cost, *places = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Measured(error, cost, places[0], places[1], places[2], tried, rules_)


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


def _report(
    measured: Measured, i: int, c: Doubles, labels: Labels, half: NDArray[np.int64], seed: int, links: Links
) -> Plan:
    network, rule, t = measured.networks[measured.network[i]], measured.rules[measured.rule[i]], int(measured.round[i])
    run = collaborate(c[half], network.policy, t, rule, seed, record="final", items=half, links=links)
    return Plan(
        network.topology, network.weighing, rule, t, network.policy,
        float(measured.error[i]), float(measured.bits[i]),
        mean_interval(wrong(run.statistics[-1], labels[half])), mean_interval(run.bits.astype(np.float64)),
    )  # fmt: skip


def _met(one: Plan, n: int, target: float | None, budget: float | None) -> bool:
    """Whether a plan keeps what was asked on n items: its error at the upper end of the 95 % interval.

    Where all items have the same error, Student's interval knows nothing: then Wilson's upper end.
    """
    error, z = one.error, 1.96**2 / n
    most = error.mean + error.half
    if not error.half > 0:
        most = (error.mean + z / 2 + np.sqrt(z * error.mean * (1 - error.mean) + z**2 / 4)) / (1 + z)
    return (target is None or bool(most <= target)) and (budget is None or one.bits.mean <= budget)


def _recommend(
    measured: Measured, front: list[int], keeps: Callable[[int, int], bool], target: float | None, budget: float | None
) -> tuple[int, str]:
    """The plan to take and why; `front` runs from cheap to good, and `keeps` says whether a plan has some margins.

    Two if there are such plans: with one, half of those chosen would miss it on the other items.
    """
    error, bits = measured.error, measured.bits
    within = [i for i in front if budget is None or bits[i] <= budget]
    order = within if target is not None else within[::-1]
    good = [i for i in order if target is None or error[i] <= target]
    best = next((i for margins in (2, 1) for i in good if keeps(i, margins)), None)
    if best is not None and target is None:
        limit = "of all" if budget is None else f"of those with at most {budget:g} bits per item"
        return best, f"the smallest error {limit}: {error[best]:.4f} where it was chosen"
    if best is not None:
        cost = f"{error[best]:.4f} for {bits[best]:.4g} bits per item where it was chosen"
        return best, f"the cheapest with an error below {target:g} by a margin: {cost}"
    if not within:
        nearest = front[0]
        cost = f"the cheapest costs {bits[nearest]:.4g}"
        return nearest, f"no plan with any messages costs at most {budget:g} bits per item: {cost}"
    nearest = within[-1]
    limit = "" if budget is None else f" with at most {budget:g} bits per item"
    cost = f"the nearest has {error[nearest]:.4f} for {bits[nearest]:.4g} bits per item"
    if target is not None and error[nearest] <= target:
        return (
            nearest,
            f"no plan{limit} is below an error of {target:g} by a margin, the half of its 95 % interval: {cost}",
        )
    return nearest, f"no plan{limit} reaches an error of {target:g}: {cost}"


def _silence(network: Network, error: float, alone: Interval) -> Plan:
    """Every agent for itself: no rounds, no bits, whatever the network."""
    nothing = Interval(0.0, 0.0)
    return Plan(
        network.topology, network.weighing, DeGroot(), 0, network.policy,
        chosen_error=error, chosen_bits=0.0, error=alone, bits=nothing,
    )  # fmt: skip


def _beside(
    best: Plan, alone: Interval, C: int, met: bool, target: float | None, budget: float | None
) -> tuple[str, ...]:
    """The plan on the other half of the items."""
    reasons = [
        f"on the other half: error {best.error.mean:.4f} ± {best.error.half:.4f} for {best.bits.mean:.4g} bits per "
        f"item; alone {alone.mean:.4f} ± {alone.half:.4f}"
    ]
    if target is not None and best.error.mean > target:
        sure = "beyond doubt" if best.error.mean - best.error.half > target else "within the interval"
        reasons.append(f"there it misses the target of {target:g}, {sure}: choosing among many flatters the chosen")
    elif target is not None and not met and best.error.mean + best.error.half > target:
        reasons.append(f"there the target of {target:g} lies within the interval: more items would tell")
    if alone.mean > 1 - 1 / C:
        reasons.append("alone the agents are wrong more often than by guessing: are the classes the right way round?")
    if budget is not None and best.bits.mean > budget >= best.chosen_bits:
        reasons.append(
            f"there it needs more than {budget:g} bits per item on average: a stopping rule depends on the items"
        )
    if isinstance(best.rule, Flood):
        reasons.append("by flooding everybody learns everybody's scores: no choice where they must stay private")
    return tuple(reasons)


def _certificate(
    best: Plan, c: Doubles, labels: Labels, items: NDArray[np.int64], seed: int, links: Links = Perfect()
) -> Certificate:
    """What the other half says of the plan as it is, and the paper's guarantee where its theorems cover the rule."""
    rule = best.rule
    run = collaborate(c, best.policy, best.rounds, rule, seed, items=items, links=links)
    if links != Perfect():  # no theorem covers losses: what held-out items say, as of any rule that none covers
        found = certify(
            c, labels, best.policy, best.rounds, statistics=run.statistics, classes=_inside(c), rule=RunningSums()
        )
        return replace(found, no_theorem=f"{describe(rule)} with lost messages")
    bits, coarseness = (rule.bits, rule.bound / 2) if isinstance(rule, Quantised) else (None, 0.0)
    inner = rule.rule if isinstance(rule, Quantised) else rule
    covered = is_linear(inner)
    return certify(
        c, labels, best.policy, best.rounds, bits=bits, statistics=run.statistics, classes=_inside(c),
        coarseness=coarseness if covered else 0.0, rule=inner if covered else rule,
    )  # fmt: skip


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
