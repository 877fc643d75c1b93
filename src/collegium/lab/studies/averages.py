"""Beyond the paper: ways to average against rounds, transmissions and bits, with and without losses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from collegium import links, policy, protocol, schedule, topology
from collegium.errors import PolicyError
from collegium.lab.claims import Claim, above, below, exactly
from collegium.lab.figures import curve, finish
from collegium.lab.studies.trust import records
from collegium.lab.study import DataStudy, Options
from collegium.lab.table import Factors, StudyRow, Table, values
from collegium.network import Run, collaborate
from collegium.plots import panels
from collegium.policy import Policy
from collegium.protocol import Rule
from collegium.schedule import Schedule
from collegium.topology.deterministic import squarest

Doubles = NDArray[np.float64]
NETWORKS = ("ring", "grid", "random", "geometric")
ANY = "any two"
"""The network of schedules that link any two agents."""
LOSSES = (0.0, 0.1, 0.3, 0.5)
ROUNDS, BITS = 40, 8
SHOWN, SHOWN_LOSSY = (1, 2, 3, 4, 6, 8, 12, 20, 40, 100, 200), (4, 12, 40)
"""Rounds that are kept, without and with losses."""
LARGE = {100: 60, 1000: 200}
"""Numbers of agents with made-up scores, and their rounds."""
ITEMS = {"modelnet": 300, "cifar10": 150, "wall-robot": 50}
"""Records, and how many test items of a repetition are taken: fewer where there are more numbers."""
MOST_AGENTS = 200
"""Up to so many agents fastest weights, eigenvalue steps and pairwise gossip are tried: a thousand have more
eigenvalues than any round that is shown, need hundreds of pairs one after the other for a round, and can have more
links than the fastest weights are found for."""
FLOOD_ROUNDS, MOST_FLOODED = 12, 10_000
"""Of flooding among more agents, where a message is a thousand scores; and the most links over which that is done."""
CENTRE = "average at one place"
FASTEST = "DeGroot, fastest weights"
PAIRWISE = "pairwise"
"""A round of it is a pair; K/2 pairs are shown as one round, in which everybody averages once on average."""


def network(name: str, K: int) -> Policy:
    """Metropolis weights, so that all methods have the same limit: the plain average."""
    graph = {
        "ring": lambda: topology.ring(K),
        "grid": lambda: topology.grid(*squarest(K)),
        "random": lambda: topology.small_world(K, neighbours=4, rewire=1.0, seed=1),
        "geometric": lambda: topology.geometric(K, seed=1),
    }[name]()
    return policy.metropolis(graph)


def on_network(over: Policy) -> Iterator[tuple[str, Schedule, Rule | None]]:
    """The methods that use given links; some only where what they need to know can be found."""
    yield "DeGroot", over, protocol.DeGroot()
    if over.size <= MOST_AGENTS:
        yield FASTEST, policy.fastest(over.graph), protocol.DeGroot()
    yield "Chebyshev", over, protocol.Chebyshev()
    if over.size <= MOST_AGENTS:
        with suppress(PolicyError):  # refused where numbers would grow too much
            yield "eigenvalue steps", schedule.eigenvalue_steps(over), None
        yield PAIRWISE, schedule.pairwise(over.graph, seed=1), None
    yield "push-sum", over, protocol.PushSum()
    yield "running sums", over, protocol.RunningSums()
    if over.size <= MOST_AGENTS or over.links <= MOST_FLOODED:
        yield "flood", over, protocol.Flood()


def on_any(K: int) -> Iterator[tuple[str, Schedule, Rule | None]]:
    """The methods that need links between any two agents."""
    yield "exact", schedule.exact(K), None
    yield "one-peer exponential", schedule.one_peer_exponential(K), None


def rounded(methods: Iterable[tuple[str, Schedule, Rule | None]], bound: float) -> Iterator[Any]:
    """Besides, with messages of few bits, the two that never leave the range of the scores."""
    for name, over, rule in methods:
        yield name, over, rule
        if name in ("DeGroot", "exact"):
            inner = rule or protocol.Ceca()
            yield f"{name}, {BITS} bits", over, protocol.Quantised(inner, BITS, bound)


class AveragesStudy(DataStudy):
    """Error, and how far agents are from the average and from each other: method × network × loss, by round."""

    name = "averages"
    title = "Ways to average: rounds, transmissions, bits and losses"
    remark = (
        "Networks of 100 and 1 000 agents have made-up scores. Of 1 000, fastest weights, eigenvalue steps and "
        f"pairwise gossip are left out, and flooding is followed for {FLOOD_ROUNDS} rounds, but not on the geometric "
        "network: they would take too long. A round of pairwise gossip is K/2 pairs. Figures draw what is below 1e-8 "
        "at 1e-8, and costs without intervals."
    )
    factors: ClassVar[Factors] = {"data": str, "agents": int, "network": str, "loss": float}

    def examine(self, options: Options) -> Iterable[StudyRow]:
        """Records of trained agents, then made-up scores of larger networks."""
        for name, most in ITEMS.items():
            plain, labels = zip(*((one.plain[:most], one.y[:most]) for _, one in records(options, name)), strict=True)
            yield from self._all(name, plain, ROUNDS, labels)
        for K, rounds in ({} if options.quick else LARGE).items():
            yield from self._all("made-up", [np.random.default_rng(options.seed + K).normal(size=(2, K))], rounds)

    def _all(self, data: str, plain: Sequence[Doubles], rounds: int, labels: Any = None) -> Iterator[StudyRow]:
        """All repetitions in one run each: items do not touch each other."""
        scores = np.concatenate(plain)
        ends = np.cumsum([len(one) for one in plain])
        parts = [slice(end - len(one), end) for end, one in zip(ends, plain, strict=True)]
        K, bound = scores.shape[1], float(np.abs(scores).max())
        for r, (one, y) in enumerate(zip(plain, labels or (), strict=bool(labels))):
            run = collaborate(one.mean(axis=1, keepdims=True), policy.uniform(topology.complete(1)), 0)
            at = {"data": data, "agents": K}
            yield StudyRow(self.name, 0, r, "error", CENTRE, -1, -1, float(run.errors(y)[0, 0]), at)
        for where in (*NETWORKS, ANY):
            methods = on_any(K) if where == ANY else on_network(network(where, K))
            for method, over, rule in rounded(methods, bound):
                most = min(rounds, FLOOD_ROUNDS) if method == "flood" and K > MOST_AGENTS else rounds
                for loss in LOSSES:
                    lossy = links.Lossy(loss, seed=1) if loss else links.Perfect()
                    run = _collaborate(scores, over, most, rule, lossy)
                    levels = {"data": data, "agents": K, "network": where, "loss": loss}
                    for r, part in enumerate(parts):
                        sent = run.transmissions_by_round[:, part]
                        own = replace(run, statistics=run.statistics[:, part], transmissions_by_round=sent)
                        yield from self._run(r, method, own, labels and labels[r], levels)

    def _run(self, r: int, method: str, run: Run, y: Any, levels: Any) -> Iterator[StudyRow]:
        x = run.statistics
        average, own = x[:1].mean(axis=2, keepdims=True), x.mean(axis=2, keepdims=True)
        axes = tuple(range(1, x.ndim))
        apart = np.sqrt(((x[:1] - average) ** 2).mean())
        found = {
            "distance from the average": np.sqrt(((x - average) ** 2).mean(axis=axes)) / apart,
            "disagreement": np.sqrt(((x - own) ** 2).mean(axis=axes)) / apart,
        }
        if y is not None:
            found["error"] = run.errors(y).mean(axis=1)
        if levels["loss"] == 0 or method == "flood":  # the others send as much whatever is lost
            for what, sent in (("transmissions", run.transmissions_by_round), ("bits", run.bits_by_round)):
                found[what] = np.concatenate([[0.0], sent.mean(axis=1).cumsum()])
        for t in SHOWN_LOSSY if levels["loss"] else SHOWN:
            for quantity, number in found.items():
                if t <= run.rounds:
                    yield StudyRow(self.name, 0, r, quantity, method, -1, t, float(number[t]), levels)

    def draw(self, table: Table) -> dict[str, Any]:
        """Distance by round; error by bits and transmissions; distance with losses; large networks."""
        clean, data = table[table["loss"] == 0], [name for name in ITEMS if (table["data"] == name).any()]
        by_round = ("DeGroot", FASTEST, PAIRWISE, "Chebyshev", "eigenvalue steps", "running sums", "flood", "exact")
        first = clean[clean["data"] == data[0]]
        rounds, axes = panels(4, width=3.6, height=3.6, rows=2)
        for axis, where in zip(axes, NETWORKS, strict=True):
            _curves(axis, first, where, by_round, "distance from the average")
            _finish(axis, "round", f"{data[0]}, {where}")
        costs, axes = panels(2 * len(data), width=3.6, height=3.6, rows=2)
        paid = ("DeGroot", "DeGroot, 8 bits", "Chebyshev", "flood", "exact", "exact, 8 bits")
        for axis, (x, name) in zip(axes, ((x, name) for x in ("transmissions", "bits") for name in data), strict=True):
            part = table[table["data"] == name]
            _curves(axis, part[part["loss"] == 0], "ring", paid, "error", x, 100)
            level = 100 * part[part["method"] == CENTRE]["value"].mean()
            axis.axhline(level, color="black", linewidth=0.8, linestyle=":", label=CENTRE)
            axis.set_xscale("log")
            finish(axis, f"{x} per item", "error (%)", f"{name}, ring of {part['agents'].iloc[0]}", legend=False)
        losses, axes = panels(4, width=3.6, height=3.6, rows=2)
        last = table[(table["data"] == data[0]) & (table["round"] == ROUNDS)]
        lossy = ("DeGroot", "Chebyshev", "push-sum", "running sums", "flood", "exact")
        for axis, where in zip(axes, NETWORKS, strict=True):
            _curves(axis, last, where, lossy, "distance from the average", "loss")
            _finish(axis, "part of messages lost", f"{data[0]}, {where}, {ROUNDS} rounds")
        figures = {self.name: rounds, f"{self.name}-costs": costs, f"{self.name}-losses": losses}
        large = clean[clean["data"] == "made-up"]
        if len(large):
            shown = [(K, where) for K in sorted(set(large["agents"])) for where in ("grid", "geometric")]
            figures[f"{self.name}-large"], axes = panels(len(shown), width=3.6, height=3.6, rows=2)
            for axis, (K, where) in zip(axes, shown, strict=True):
                part = large[large["agents"] == K]
                _curves(axis, part, where, by_round, "distance from the average")
                axis.set_xscale("log")
                _finish(axis, "round", f"{K} agents, {where}")
        for figure in figures.values():
            _legend(figure)
        return figures

    def claims(self, table: Table) -> list[Claim]:
        """What the methods promise, on ModelNet."""
        if not (table["data"] == "modelnet").any():
            return []

        def found(method: str, where: str, quantity: str, loss: float = 0.0, round: int = ROUNDS) -> Any:
            at: dict[str, Any] = {
                "data": "modelnet",
                "network": where,
                "loss": loss,
                "round": round,
                "quantity": quantity,
            }
            return values(table, method=method, **at)

        apart = "distance from the average"
        off, sent = (float(found("exact", ANY, what, round=4).max()) for what in (apart, "transmissions"))
        same = found("exact", ANY, "error", round=4) - values(table, data="modelnet", method=CENTRE)
        said = [
            (
                "exact: 12 agents have the average after 4 rounds and 48 transmissions",
                exactly(
                    off < 1e-12 and sent == 48, f"{off:.1g} of the distance left at most, {sent:.0f} transmissions"
                ),
            ),
            (
                "exact: the error of the average at one place",
                exactly(bool((abs(same) < 1e-9).all()), f"differs by {abs(same).max():.2g} at most"),
            ),
        ]
        for where in NETWORKS:
            quick, plain = (np.log10(found(one, where, apart, round=12)) for one in ("Chebyshev", "DeGroot"))
            said += [
                (
                    f"Chebyshev is nearer to the average than DeGroot after 12 rounds, {where} (powers of 10)",
                    above(plain - quick),
                ),
                (
                    f"30 % lost: running sums leave less than 1 % of the distance after {ROUNDS} rounds, {where}",
                    below(found("running sums", where, apart, 0.3), 0.01),
                ),
                (
                    f"30 % lost: push-sum leaves more than 1 %, {where}",
                    above(found("push-sum", where, apart, 0.3), 0.01),
                ),
            ]
        said.append(
            ("30 % lost: exact leaves more than 1 % of the distance", above(found("exact", ANY, apart, 0.3), 0.01))
        )
        return self.judged(said)


def _collaborate(scores: Doubles, over: Schedule, rounds: int, rule: Rule | None, lossy: links.Links) -> Run:
    """A run of so many rounds, where K/2 pairs of pairwise gossip are a round."""
    if not isinstance(over, schedule.Pairwise):
        return collaborate(scores, over, rounds, rule, links=lossy)
    pairs = max(over.size // 2, 1)
    run = collaborate(scores, over, rounds * pairs, rule, links=lossy)
    sent = run.transmissions_by_round.reshape(rounds, pairs, len(scores)).sum(axis=1)
    return replace(run, statistics=run.statistics[::pairs], transmissions_by_round=sent)


def _curves(
    axis: Any, table: Table, where: str, methods: Iterable[str], quantity: str, x: str = "round", scale: float = 1
) -> None:
    for i, method in enumerate(methods):
        part = table[(table["method"] == method) & table["network"].isin((where, ANY))]
        shown = part[part["quantity"] == quantity]
        if x in ("transmissions", "bits"):
            sent = part[part["quantity"] == x].groupby("round")["value"].mean()
            # means alone: how repetitions differ is the same for all methods, and its intervals would hide the curves
            shown = shown.groupby("round", as_index=False)["value"].mean().assign(repetition=0)
            shown = shown.assign(**{x: shown["round"].map(sent)})
        elif quantity != "error":  # what is nothing but rounding is drawn at the bottom
            shown = shown.assign(value=shown["value"].clip(lower=1e-8))
        curve(axis, shown, x, method, i, scale)


def _finish(axis: Any, xlabel: str, title: str) -> None:
    finish(axis, xlabel, "distance left", title, legend=False)
    axis.set_yscale("log")
    axis.set_ylim(5e-9, 5)


def _legend(figure: Any) -> None:
    """One for all panels, since a method looks the same in each; the first that has it gives the sign."""
    signs: dict[str, Any] = {}
    for axis in figure.axes:
        for sign, name in zip(*axis.get_legend_handles_labels(), strict=True):
            signs.setdefault(name, sign)
    figure.legend(signs.values(), signs.keys(), fontsize=8, loc="outside lower center", ncols=4)
