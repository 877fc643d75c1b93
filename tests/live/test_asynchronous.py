"""Agents without rounds, on a virtual clock: exact averages whatever is lost, doubled, late, overtaken or restarted."""

from __future__ import annotations

import random
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collegium import policy, protocol, schedule, topology
from collegium.errors import InputFileError, LiveError, PolicyError, RuleError, ScoreError
from collegium.live import config, launcher
from collegium.live.answers import ItemResult
from collegium.live.asynchronous import AsynchronousEngine
from collegium.live.engine import Limits
from collegium.live.folder import NetworkSettings, create
from collegium.live.peers import Deadlines
from collegium.live.transport.faulty import Faults
from collegium.live.waiters import Ticket
from collegium.network import collaborate
from collegium.policy import Policy
from live_processes import ask_all, kill, running
from virtual_network import VirtualNetwork, outcome

DIRECTED = policy.uniform(topology.erdos_renyi(9, links=27, seed=3))
RING = policy.uniform(topology.ring(9))


class Network(VirtualNetwork):
    """Frames are lost, doubled and late at random; the seed says which."""

    engines: list[AsynchronousEngine]  # type: ignore[assignment]

    def __init__(
        self, over: Policy, loss: float = 0.0, seed: int = 0, delay: float = 0.005, double: float = 0.0, **settings: Any
    ) -> None:
        chance = random.Random(seed)

        def way(sender: int, receiver: int, data: bytes) -> float | None:
            if chance.random() < double:
                self.at(self.now + chance.uniform(0, delay), lambda: self._arrive(sender, receiver, data))
            return None if chance.random() < loss else chance.uniform(0, delay)

        super().__init__(over, way, engine=AsynchronousEngine, **settings)

    def ask(self, scores: np.ndarray, names: Any = None, who: Any = None) -> list[Ticket]:
        names = list(range(len(scores))) if names is None else names
        return [self.submit(k, names, scores[:, k]) for k in (range(self.K) if who is None else who)]

    def answers(self, tickets: list[Ticket], within: float = 30.0) -> list[list[ItemResult]]:
        self.until(lambda: not any(ticket.open for ticket in tickets), within)
        return [outcome(ticket) for ticket in tickets]

    def total(self, name: int) -> np.ndarray:
        """What the agents hold of an item and what is on its way to those who give and take in the same epoch."""
        total = np.zeros(2)
        for k, engine in enumerate(self.engines):
            row = engine.table.find(name)
            if row < 0 or k in self.gone:
                continue
            total += engine.z[row]
            for receiver in engine._audience:
                other = self.engines[receiver]
                theirs = other.table.find(name)
                taken = 0.0
                if theirs >= 0 and other.epoch[theirs] == engine.epoch[row]:
                    taken = other.taken[theirs, other.neighbours[k].place]
                total += engine.given[row] - taken
        return total


def statistics(answers: list[list[ItemResult]]) -> np.ndarray:
    return np.array([[one.statistic for one in own] for own in answers]).T


@pytest.mark.parametrize(("loss", "double", "delay"), [(0, 0, 0.005), (0.2, 0, 0.005), (0.5, 0.3, 0.1)])
@pytest.mark.parametrize("over", [RING, DIRECTED], ids=["ring", "directed"])
def test_everybody_answers_with_the_average(over: Policy, loss: float, double: float, delay: float) -> None:
    """Within 1e-6, none missing, long before the deadline; frames overtake each other as `delay` is ten sends."""
    scores = np.random.default_rng(1).normal(size=(6, 9))
    net = Network(over, loss, 2, delay, double)
    answers = net.answers(net.ask(scores), within=14.0)
    error = np.abs(statistics(answers) - scores.mean(axis=1, keepdims=True)).max()
    assert error < 1e-6
    assert all(one.settled and one.evidence.views == 9 and not one.missed for own in answers for one in own)
    assert set(net.frames) == {"ROUND"}
    assert net.rest() < 5, "agents whose answers are given fall silent"


def test_without_loss_a_lock_step_is_the_simulated_rule() -> None:
    """With clocks that tick together, sends are rounds of `RunningSums`."""
    scores = np.random.default_rng(2).normal(size=(3, 9))
    net = Network(DIRECTED, delay=0.0)
    for engine in net.engines:
        engine._clock.uniform = lambda low, high: 1.0  # type: ignore[method-assign]
    net.ask(scores)
    net.run(0.0501)
    sent = {int(engine.sends[engine.table.find(0)]) for engine in net.engines}
    assert sent == {6}
    run = collaborate(scores, DIRECTED, 6, protocol.RunningSums())
    rows = [[engine.table.find(i) for engine in net.engines] for i in range(3)]
    z = np.array([[engine.z[row] for engine, row in zip(net.engines, own, strict=True)] for own in rows])
    live = z[:, :, 0] / z[:, :, 1]
    np.testing.assert_allclose(live, run.statistics[-1], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_mass_is_conserved(seed: int) -> None:
    """At any moment, with loss, doubling and overtaking: what is held and on its way is the scores and their number."""
    scores = np.random.default_rng(seed).normal(size=(1, 9))
    net = Network(DIRECTED, 0.4, seed, 0.05, 0.2)
    net.ask(scores, [7])
    for _ in range(40):
        net.run(0.017)
        np.testing.assert_allclose(net.total(7), [scores.sum(), 9], rtol=0, atol=1e-9)
        assert max(engine.mass().error for engine in net.engines) < 1e-12
        mass = net.engines[0].mass()
        assert mass.own == 1
        assert mass.own + mass.taken == pytest.approx(mass.held + mass.given, abs=1e-9)


def test_an_item_spreads_to_agents_without_a_view() -> None:
    """Answers are averages over the views there are; whose are missing is named."""
    scores = np.random.default_rng(3).normal(size=(2, 9))
    net = Network(RING, 0.2, 1)
    answers = net.answers(net.ask(scores, who=[0, 4]), within=5)
    np.testing.assert_allclose(statistics(answers), np.tile(scores[:, [0, 4]].mean(axis=1)[:, None], 2), atol=1e-6)
    assert not any(one.settled for own in answers for one in own)
    assert {"agent-1", "agent-8"} <= set(answers[0][0].evidence.missing)
    net.rest()
    other = net.result(7, 1)
    assert other is not None
    assert (other.view, other.evidence.views) == ("missing", 2)
    assert other.statistic == pytest.approx(scores[1, [0, 4]].mean(), abs=1e-6)


def test_a_late_view_changes_the_answer_while_the_item_is_open() -> None:
    scores = np.random.default_rng(4).normal(size=(1, 9))
    net = Network(RING, 0.2, 1)
    before = net.answers(net.ask(scores, who=range(8)), within=5)
    assert statistics(before)[0] == pytest.approx(scores[0, :8].mean(), abs=1e-6)
    (late,) = net.answers(net.ask(scores, who=[8]), within=5)
    assert (late[0].view, late[0].settled) == ("late", True)
    net.rest()
    for k in range(9):
        one = net.result(k, 0)
        assert one is not None
        assert one.statistic == pytest.approx(scores.mean(), abs=1e-6)
        assert one.settled
    assert {net.status(k).items.done for k in range(9)} == {1}, "an item counts once, however often it is answered"


def test_a_view_after_the_deadline_changes_nothing() -> None:
    scores = np.random.default_rng(5).normal(size=(1, 9))
    net = Network(RING)
    net.answers(net.ask(scores, who=range(8)), within=5)
    net.run(16.0)
    (late,) = net.answers(net.ask(scores, who=[8]), within=0)
    assert (late[0].view, late[0].evidence.missing) == ("missing", ["agent-8"])
    assert late[0].statistic == pytest.approx(scores[0, :8].mean(), abs=1e-6)


@pytest.mark.parametrize("after", [0.03, 0.4])
@pytest.mark.parametrize("seen", [True, False], ids=["its token goes and comes", "nobody is told"])
def test_a_restarted_agent_begins_a_new_epoch(after: float, seen: bool) -> None:
    """Its score counts once although it was given before, and what it held is not missing."""
    scores = np.random.default_rng(6).normal(size=(2, 9))
    net = Network(DIRECTED, 0.2, 1)
    tickets = net.ask(scores)
    net.run(after)
    if seen:
        net.leave(3)
        net.run(0.05)
        net.restart(3)
    else:
        net.engines[3], net._wakes[3] = net._engine(3, 999), float("inf")
        net._meet(3)
    tickets[3] = net.submit(3, [0, 1], scores[:, 3])
    answers = net.answers(tickets, within=14)
    net.rest()
    np.testing.assert_allclose(net.total(0), [scores[0].sum(), 9], atol=1e-8)
    for k in range(9):
        for i in range(2):
            one = net.result(k, i)
            assert one is not None
            assert one.statistic == pytest.approx(scores[i].mean(), abs=1e-6)
            assert one.settled
    assert sum(engine.mass().epochs for engine in net.engines) > 0
    assert statistics(answers)[0, 3] == pytest.approx(scores[0].mean(), abs=1e-6)


def test_an_agent_that_leaves_for_good_is_left_out() -> None:
    """The others begin a new epoch without it, and say so."""
    scores = np.random.default_rng(7).normal(size=(1, 9))
    net = Network(RING, 0.2, 1)
    tickets = net.ask(scores)
    net.run(0.05)
    net.leave(8)
    answers = net.answers(tickets[:8], within=14)
    assert statistics(answers)[0] == pytest.approx(scores[0, :8].mean(), abs=1e-6)
    assert answers[0][0].evidence.missing == ["agent-8"]
    assert not answers[0][0].settled


def test_at_its_deadline_an_item_is_answered_with_what_is_there() -> None:
    """Half of all frames lost, and no time to stand still."""
    scores = np.random.default_rng(8).normal(size=(1, 9))
    net = Network(RING, 0.5, 1, deadlines=Deadlines(view=0.2, item=0.3))
    answers = net.answers(net.ask(scores), within=0.35)
    assert not any(own[0].settled for own in answers)
    assert {net.status(k).items.past_deadline for k in range(9)} == {1}


def test_classes() -> None:
    scores = np.random.default_rng(9).normal(size=(4, 9, 3))
    scores -= scores.mean(axis=2, keepdims=True)
    net = Network(RING, 0.2, 3, classes=("a", "b", "c"))
    answers = net.answers(net.ask(scores), within=14)
    found = np.array([[one.statistic for one in own] for own in answers])
    np.testing.assert_allclose(found, np.broadcast_to(scores.mean(axis=1), found.shape), atol=1e-6)
    assert answers[0][0].label == "abc"[int(scores[0].mean(axis=0).argmax())]


def test_many_items_and_little_memory() -> None:
    """Rows are used again, and items that are forgotten are not begun anew by frames that come late."""
    rng, seen = np.random.default_rng(10), 0
    net = Network(policy.uniform(topology.ring(3)), 0.1, 3, limits=Limits(memory=1))  # 64 rows, the smallest table
    for start in range(1, 151, 15):
        scores = rng.normal(size=(15, 3))
        answers = net.answers(net.ask(scores, list(range(start, start + 15))), within=14)
        assert np.abs(statistics(answers) - scores.mean(axis=1, keepdims=True)).max() < 1e-6
        seen += 15
    assert {engine.account.done for engine in net.engines} == {seen}
    with pytest.raises(LiveError, match="long ago"):
        net.submit(0, [1], [0.5])
    with pytest.raises(LiveError, match="retry"):
        net.submit(0, list(range(1000, 1065)), np.zeros(65))
    with pytest.raises(ScoreError, match="another score"):
        net.submit(0, [150], [3.25])


def test_impossible_frames_are_refused() -> None:
    net = Network(RING, largest=10.0, bound=10.0)
    scores = np.full((1, 9), 9.0)
    net.ask(scores)
    engine, sender = net.engines[0], net.engines[1]
    row = sender.table.find(0)
    good = sender._frame(np.array([row]), np.array([1]))
    for spoilt in (
        good._replace(values=np.array([[50.0, 1.0]])),
        good._replace(values=np.array([[0.0, -1.0]])),
        good._replace(values=np.array([[np.nan, 1.0]])),
        good._replace(values=np.array([[1.0, 1e16]])),
    ):
        before, z = engine.neighbours[1].rejected, engine.z.copy()
        net.say(1, 0, spoilt)
        assert engine.neighbours[1].rejected == before + 1
        np.testing.assert_array_equal(engine.z, z)
    net.say(1, 0, good._replace(values=np.array([[9.0, 1.0]])))
    assert engine.neighbours[1].rejected == before + 1


@pytest.mark.parametrize(
    ("over", "rule", "problem", "words"),
    [
        (schedule.exact(9), protocol.Ceca(), PolicyError, "schedule"),
        (RING, protocol.DeGroot(), RuleError, "running sums"),
    ],
)
def test_what_cannot_be_without_rounds(
    tmp_path: Path, over: Any, rule: protocol.Rule, problem: type[Exception], words: str
) -> None:
    with pytest.raises(problem, match=words):
        create(tmp_path / "net", over, None, NetworkSettings(mode="asynchronous", rule=rule))


def test_the_file_of_an_agent(tmp_path: Path) -> None:
    files = create(tmp_path / "net", RING, None, NetworkSettings(mode="asynchronous", rule=protocol.RunningSums()))
    file = config.read(files[0])
    assert (file.talk.mode, file.agent.reachable) == ("asynchronous", 9)
    text = files[0].read_text().replace('"running-sums"', '"degroot"')
    files[0].write_text(text)
    with pytest.raises(InputFileError, match="asynchronous"):
        config.read(files[0])


@pytest.mark.live
@pytest.mark.timeout(240)
def test_processes_over_zenoh(tmp_path: Path) -> None:
    """A fifth of all frames dropped: all answers, within 1e-6. Then one is killed, and comes back with its views."""
    scores = np.random.default_rng(11).normal(size=(100, 5))
    # Nothing stands still for so long only because an agent that holds a part of it is paused, or restarted.
    deadlines = Deadlines(view=60.0, item=120.0, still=5.0)
    settings = {"mode": "asynchronous", "rule": protocol.RunningSums(), "faults": Faults(loss=0.2, duplicate=0.1)}
    with running(tmp_path / "net", policy.uniform(topology.ring(5)), deadlines=deadlines, **settings) as network:
        answers = ask_all(network, scores, trace=False)
        assert np.abs(statistics(answers) - scores.mean(axis=1, keepdims=True)).max() < 1e-6
        assert all(one.settled for own in answers for one in own)
        with urllib.request.urlopen(f"http://127.0.0.1:{network[0].file.http.port}/metrics", timeout=30) as answer:
            shown = answer.read().decode()
        assert 'collegium_mass{part="own"} 100.0' in shown
        error = next(line for line in shown.splitlines() if line.startswith("collegium_mass_error"))
        assert float(error.split()[1]) < 1e-12
        late = scores[:1] + 1
        for k in (0, 1, 2):
            with network[k].client(60.0) as client:
                client.give([5000], scores=late[:, k])
        kill(network[2])
        back = launcher.up(tmp_path / "net", wait=120)
        answers = ask_all(back, late, [5000], trace=False)
        assert statistics(answers) == pytest.approx(np.full((1, 5), late.mean()), abs=1e-6)
