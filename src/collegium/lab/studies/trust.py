"""Beyond the paper: liars against robust rules, and what privacy costs, on records of trained agents."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium import policy, theory, topology, trust
from collegium._util.randomness import Draws, child
from collegium.errors import DataError, RuleError
from collegium.lab.claims import Claim, below
from collegium.lab.figures import COLOURS, curve, finish, whole_numbers
from collegium.lab.study import DataStudy, Options
from collegium.lab.table import Factors, StudyRow, Table, values
from collegium.network import collaborate
from collegium.plots import panels
from collegium.policy import Policy
from collegium.protocol import Averaging, DeGroot, Robust, Rule, combine
from collegium.protocol.base import Outbox, completed
from collegium.protocol.codec import LaplaceOnce
from collegium.topology.deterministic import squarest
from collegium.trust import attacks, evidence

Doubles = NDArray[np.float64]
ROUNDS, MOST_ITEMS = 10, 300
CLIPS = (0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 0.75, 1.0)
"""Where scores may be cut; which, the validation items of all repetitions say, never those that errors are of."""
DATA = {"modelnet": 10, "cifar10": 3, "wall-robot": 3}
"""Records, and how many repetitions there are."""
ATTACKS: dict[str, Any] = {
    "silent": attacks.AtStart("stuck"),
    "noise at the start": attacks.AtStart("noise", 2.0),
    "bias at the start": attacks.AtStart("bias", 2.0),
    "flip at the start": attacks.AtStart("sign-flip"),
    "stubborn": attacks.Stubborn(2.0),
    "sign flip": attacks.SignFlip(1.0),
    "a little": attacks.LittleIsEnough(1.5),
    "inner product": attacks.InnerProduct(1.0),
    "mimic": attacks.Mimic(),
    "silence": attacks.Silence(0.5),
    "two-faced": attacks.TwoFaced(2.0),
    "split": lambda over, liars: attacks.Split.of(over.graph, liars),
    "dissension": lambda over, liars: attacks.Dissension.along(over),
}
"""What liars send; two of them need to know the network. Those of "split" sit on a cut of it."""
AIMED = ("stubborn", "a little", "mimic", "silence")
"""Those that do something else when liars know the label."""
DRAWS = 20
"""Of the noise, other ones in every repetition."""
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def rules(f: int) -> dict[str, Rule]:
    """Plain averaging, and every robust rule for f liars in a neighbourhood."""
    return {
        "mean": DeGroot(),
        "trimmed mean": Robust(combine.TrimmedMean(f)),
        "median": Robust(combine.Median()),
        "clipped": Robust(combine.Clipped()),
        "self-centred": Robust(combine.SelfCentred(f)),
        "nearest neighbours": Robust(combine.NearestNeighbours(f)),
        "mean subsequence": Robust(combine.MeanSubsequence(f)),
        "outlier scissor": Robust(combine.OutlierScissor(f)),
    }


class _Repetition:
    """Bounded, centred scores of one record; gains are ridge regression on the validation items towards equal ones."""

    clip = 0.25

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as file:
            train, val, test = (_bounded(file[part].astype(np.float64)) for part in ("train", "val", "test"))
            self.y, y_val = file["y_test"][:MOST_ITEMS], file["y_val"]
        center = train.mean(axis=0)
        self.plain, held_out = (test - center)[:MOST_ITEMS], val - center
        self.classes = self.plain.ndim == 3
        self.largest = np.abs(held_out).max(axis=0)
        self.held_out, self.y_val = held_out, y_val
        self.gains = np.ones(self.plain.shape[1]) if self.classes else _gains(held_out, y_val)


def _bounded(scores: Doubles) -> Doubles:
    if scores.ndim == 2:
        return np.asarray(np.tanh(scores / 2))
    return np.asarray(scores / np.maximum(1.0, np.abs(scores).max(axis=2, keepdims=True)))


def _gains(held_out: Doubles, y: NDArray[Any]) -> Doubles:
    total, K = held_out.sum(axis=1), held_out.shape[1]
    gram, equal = held_out.T @ held_out, (total @ y) / (total @ total)
    pull = 0.1 * np.trace(gram) / K
    gains = np.linalg.solve(gram + pull * np.eye(K), held_out.T @ y + pull * equal)
    return np.asarray(gains / np.abs(gains).mean())


def robust_gains(
    held_out: Doubles, y: NDArray[Any], over: Policy, liars: trust.Liars, f: int, steps: int = 30
) -> Doubles:
    """Gains learned while liars lie: gradient steps of the same regression, with trimmed means for all sums.

    Labelled items are known to all, so liars lie about them with all they know; their own gains stay one.
    """
    K, g = held_out.shape[1], np.ones(held_out.shape[1])
    gram = held_out.T @ held_out
    pull = 0.1 * np.trace(gram) / K
    step = 1.0 / (np.linalg.eigvalsh(gram).max() + pull)
    knowing = trust.Liars(liars.agents, liars.attack, y)
    equal = 0.0
    for i in range(steps + 1):
        sent = _said(held_out * g, over, knowing)
        total = K * np.sort(sent, axis=1)[:, f : K - f].mean(axis=1)
        if i == 0:  # how large equal gains are best
            equal = float((total @ y) / (total @ total))
            g = np.full(K, equal)
        else:
            g = g + step * (held_out.T @ (y - total) - pull * (g - equal))
    g[np.asarray(liars.agents)] = equal
    return np.asarray(g / np.abs(g).mean())


def _said(scores: Doubles, over: Policy, liars: trust.Liars) -> Doubles:
    """What everybody sends in round 1, (n, K) or (n, K, C); of liars that differ by receiver, the first."""
    whole = scores if scores.ndim == 3 else scores[:, :, None]
    start, said = liars.start(whole, 0), scores.copy()
    boxes = [Outbox(np.ascontiguousarray(start[:, k, : max(whole.shape[2] - 1, 1)])) for k in range(over.size)]
    draws = [Draws(0, np.arange(len(scores), dtype=np.uint64), k, 1) for k in range(over.size)]
    for k, box in enumerate(liars.lies(over.at(1), boxes, whole, DeGroot(), draws)):
        if k in liars.agents:
            lie = completed(box.values if box.values.ndim == 2 else box.values[:, 0])
            said[:, k] = lie if scores.ndim == 3 else lie[:, 0]
    return said


def chosen_clip(all_of_a_record: list[_Repetition]) -> float:
    """The cut with the least mean error of three cases on validation items: nobody lies, two stubborn liars without
    and with the label."""

    def errors(one: _Repetition, clip: float) -> list[float]:
        K = one.held_out.shape[1]
        over, lying = policy.uniform(topology.complete(K)), [1, K // 2]
        cases = [None, trust.Liars(lying, ATTACKS["stubborn"]), trust.Liars(lying, ATTACKS["stubborn"], one.y_val)]
        found = []
        for liars in cases:
            said = one.held_out if liars is None else _said(one.held_out, over, liars)
            said = np.clip(said, -one.largest, one.largest)
            fused = evidence.fuse(said, clip, evidence.suspects(said))
            found.append(_wrong(fused, one.y_val))
        return found

    return min(CLIPS, key=lambda clip: float(np.mean([errors(one, clip) for one in all_of_a_record])))


def _wrong(fused: Doubles, y: NDArray[Any]) -> float:
    return float((fused * y <= 0).mean() if fused.ndim == 1 else (fused.argmax(axis=1) != y).mean())


def records(options: Options, name: str) -> Iterator[tuple[int, _Repetition]]:
    """The repetitions of a record that are there."""
    root = Path(options.root or os.environ.get("COLLEGIUM_DATA", "")) / "records"
    count = min(options.reps or DATA[name], 1 if options.quick else DATA[name])
    for r in range(count):
        path = root / f"{name}-{r}.npz"
        if not path.is_file():
            raise DataError(f"there is no {path}: put score records there (train, val, test, y_train, y_val, y_test)")
        yield r, _Repetition(path)


class LiarsStudy(DataStudy):
    """Errors of the honest agents against the number of liars: attack × rule × network, with and without gains."""

    name = "liars"
    title = "Liars in every round against robust rules"
    factors: ClassVar[Factors] = {"data": str, "network": str, "attack": str, "knows": str, "liars": int, "gains": str}

    def examine(self, options: Options) -> Iterable[StudyRow]:
        """Every attack, rule and network on every record; up to three liars on ModelNet, else two, or one."""
        for name in DATA:
            every = list(records(options, name))
            clip = chosen_clip([record for _, record in every])
            for r, record in every:
                record.clip = clip
                K = record.plain.shape[1]
                order = np.random.default_rng(options.seed + r).permutation(K)
                full = policy.uniform(topology.complete(K))
                yield from self._runs(name, r, record, "complete", full, 2, order, (0, 1, 2, 3) if K == 12 else (0, 2))
                thin = policy.metropolis(topology.small_world(K, neighbours=6, rewire=0.0, seed=1))
                yield from self._runs(
                    name, r, record, "six neighbours", thin, 1, order, (0, 1, 2) if K == 12 else (0, 1)
                )
                grid = policy.metropolis(topology.torus(*squarest(K)))
                yield from self._runs(name, r, record, "torus", grid, 1, order, (0, 1))

    def _runs(
        self, data: str, r: int, record: _Repetition, network: str, over: Policy, f: int, order: Any, counts: Any
    ) -> Iterator[StudyRow]:
        y = record.y
        robust = {name: rule for name, rule in rules(f).items() if _fits(rule, over)}
        for gains in ("equal",) if record.classes or network != "complete" else ("equal", "tuned", "robust sums"):
            for m in counts:
                if gains != "equal" and m not in (0, 2):
                    continue
                for attack in ATTACKS if m else ("none",):
                    if attack == "bias at the start" and record.classes:
                        continue  # of several classes there is none
                    agents = np.sort(order[:m]) if attack != "split" else trust.placement.on_cut(over.graph, m)
                    honest = np.setdiff1d(np.arange(over.size), agents)
                    for knows in (False, True) if m and attack in AIMED else (False,):
                        levels = {
                            "data": data, "network": network, "attack": attack,
                            "knows": "label" if knows else "nothing", "liars": m, "gains": gains,
                        }  # fmt: skip
                        made = ATTACKS[attack] if m else None
                        made = made(over, agents.tolist()) if callable(made) else made
                        liars = None if made is None else trust.Liars(agents, made, y if knows else None)
                        g = record.gains if gains == "tuned" else np.ones(over.size)
                        if gains == "robust sums":
                            lying = liars or trust.Liars([], attacks.Mimic())
                            g = robust_gains(record.held_out, record.y_val, over, lying, f)
                        scores = record.plain * (g if not record.classes else 1.0)
                        for method, rule in robust.items():
                            run = collaborate(scores, over, ROUNDS, rule, record="all", liars=liars)
                            errors = run.errors(y)[:, honest].mean(axis=1)
                            yield self._number(r, method, errors[-1], levels)
                        yield self._number(r, "alone", errors[0], levels)
                        for method, error in _flooded(scores, record, over, liars, g):
                            yield self._number(r, method, error, levels)

    def _number(self, r: int, method: str, error: float, levels: Any) -> StudyRow:
        return StudyRow(self.name, 0, r, "error", method, -1, ROUNDS, float(error), levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """Errors with two liars on the complete network, by rule and attack; and against the number of liars."""
        there = [name for name in DATA if (table["data"] == name).any()]
        figure, axes = panels(len(there), width=4.2, height=4.0)
        for axis, name in zip(axes, there, strict=True):
            part = table[(table["data"] == name) & (table["network"] == "complete") & (table["gains"] == "equal")]
            methods = list(dict.fromkeys(part["method"]))
            for i, (label, liars, knows) in enumerate(
                (
                    ("nobody lies", 0, "nothing"),
                    ("worst attack, label unknown", 2, "nothing"),
                    ("worst attack, label known", 2, "label"),
                )
            ):
                found = part[(part["liars"] == liars) & (part["knows"] == knows)]
                worst = found.groupby(["method", "attack"])["value"].mean().groupby("method").max()
                axis.plot(
                    [100 * worst[one] for one in methods],
                    range(len(methods)),
                    "o",
                    color=COLOURS[i],
                    label=label,
                    markersize=4,
                )
            axis.set_yticks(range(len(methods)), methods, fontsize=7)
            axis.invert_yaxis()
            finish(axis, "error of the honest (%)", "", name, legend=False)
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize=7)
        counts, axes = panels(2, width=4.2, height=3.4)
        part = table[(table["data"] == there[0]) & (table["network"] == "complete") & (table["gains"] == "equal")]
        for axis, knows in zip(axes, ("nothing", "label"), strict=True):
            for i, method in enumerate(("mean", "trimmed mean", "median", "self-centred", "nearest neighbours", FLOOD)):
                lied = part[(part["method"] == method) & (part["attack"].isin(("none", "stubborn")))]
                lied = lied[(lied["knows"] == knows) | (lied["liars"] == 0)]
                curve(axis, lied, "liars", method, i, 100)
            whole_numbers(axis)
            finish(
                axis,
                "stubborn liars of 12",
                "error of the honest (%)",
                f"{there[0]}, liars know {'no' if knows == 'nothing' else 'the'} label",
            )
        return {self.name: figure, f"{self.name}-counts": counts}

    def claims(self, table: Table) -> list[Claim]:
        """What was asked for, on ModelNet with two stubborn liars on the complete network."""
        if not (table["data"] == "modelnet").any():
            return []
        at = {"data": "modelnet", "network": "complete"}
        alone = values(table, method="alone", attack="none", gains="equal", **at)
        said = []
        for gains, named in (("equal", ""), ("robust sums", ", gains learned while they lie")):

            def error(method: str, attack: str, liars: int = 2, knows: str = "nothing", gains: str = gains) -> Any:
                return values(table, method=method, attack=attack, liars=liars, knows=knows, gains=gains, **at)

            clean, silent = error("mean", "none", 0), error("mean", "silent")
            for method in dict.fromkeys(table["method"]):
                if method in ("mean", "alone"):
                    continue
                said += [
                    (
                        f"{method}{named}, nobody lies: at most 4 points above the mean",
                        below(error(method, "none", 0) - clean, 0.04),
                    ),
                    (
                        f"{method}{named}, two stubborn liars: at most 5 points above the mean with them silent",
                        below(error(method, "stubborn") - silent, 0.05),
                    ),
                    (
                        f"{method}{named}, two stubborn liars that know the label: "
                        "at most 5 points above an agent alone",
                        below(error(method, "stubborn", knows="label") - alone, 0.05),
                    ),
                ]
        return self.judged(said)


FLOOD = "flood, clipped"


def _fits(rule: Rule, over: Policy) -> bool:
    try:
        rule.check_seats(over.at(1))
    except RuleError:
        return False
    return True


def _flooded(
    scores: Doubles, record: _Repetition, over: Policy, liars: trust.Liars | None, gains: Doubles
) -> Iterator[tuple[str, float]]:
    """Signed flooding: everybody has what each agent said, once, within its known range; who says two things is out."""
    caught: Any = ()
    said = scores
    if liars is not None:
        if isinstance(liars.attack, (attacks.TwoFaced, attacks.Split, attacks.Dissension)):
            caught = liars.agents
        else:
            largest = record.largest * (1.0 if record.classes else np.abs(gains))
            said = np.clip(_said(scores, over, liars), -largest, largest)  # beyond an agent's range nothing is taken
    yield FLOOD, _wrong(evidence.fuse(said, record.clip, caught), record.y)
    out = np.union1d(np.asarray(caught, np.int64), evidence.suspects(said))
    yield "flood, clipped, evidence", _wrong(evidence.fuse(said, record.clip, out), record.y)


class PrivacyStudy(DataStudy):
    """Errors after noise at the start, against ε, with the theory beside it."""

    name = "privacy"
    title = "The price of local differential privacy"
    factors: ClassVar[Factors] = {"data": str, "epsilon": float}

    def examine(self, options: Options) -> Iterable[StudyRow]:
        """Bounded scores, complete network; several draws of the noise. The theory beside it is of two classes."""
        for name in DATA:
            for r, record in records(options, name):
                scores, y, K = record.plain, record.y, record.plain.shape[1]
                bound = float(np.abs(scores).max()) * (1 + 1e-6)  # of several classes the mean is taken off once more
                over = policy.uniform(topology.complete(K))
                for epsilon in EPSILONS:
                    rule = Averaging(codec=LaplaceOnce(epsilon, bound))
                    errors = [
                        collaborate(scores, over, 3, rule, rng=child(r, draw)).errors(y)[-1].mean()
                        for draw in range(DRAWS)
                    ]
                    found = {"noise once": float(np.mean(errors))}
                    if not record.classes:
                        found["theory"] = theory.laplace_error(scores.mean(axis=1), y, epsilon, bound, K)
                    for method, error in found.items():
                        levels: dict[str, Any] = {"data": name, "epsilon": epsilon}
                        yield StudyRow(self.name, 0, r, "error", method, -1, 3, error, levels)
                clean = collaborate(scores, over, 3).errors(y)
                for method, error in (("no noise", clean[-1].mean()), ("alone", clean[0].mean())):
                    yield StudyRow(self.name, 0, r, "error", method, -1, 3, float(error), {"data": name})

    def draw(self, table: Table) -> dict[str, Any]:
        """Error against ε."""
        there = list(dict.fromkeys(table["data"]))
        figure, axes = panels(len(there), width=4.2, height=3.4)
        for axis, name in zip(axes, there, strict=True):
            part = table[table["data"] == name]
            for i, method in enumerate(dict.fromkeys(part["method"][part["epsilon"].notna()])):
                curve(axis, part[part["method"] == method], "epsilon", method, i, 100)
            for i, method in enumerate(("no noise", "alone")):
                axis.axhline(
                    100 * part[part["method"] == method]["value"].mean(),
                    color="black",
                    linewidth=0.8,
                    linestyle=("-", ":")[i],
                    label=method,
                )
            axis.set_xscale("log", base=2)
            finish(axis, "ε of an item", "error (%)", name)
        return {self.name: figure}
