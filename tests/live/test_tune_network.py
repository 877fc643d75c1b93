"""A running network tunes itself: the simulation's gains, kept in files, used by all agents or by none."""

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from collegium import policy, topology, tuning
from collegium.errors import InputFileError, LiveError
from collegium.live import Client
from collegium.live.gain import Gain, Gains
from collegium.live.http.tuning import Tunings
from collegium.live.tune_network import NotTuned, tune_network
from helpers import labelled
from live_networks import in_memory, served

RING = policy.metropolis(topology.ring(4))
AGENTS = [f"agent-{k}" for k in range(4)]


def by_agent(x):
    return dict(zip(AGENTS, x.T.tolist(), strict=True))


class Member:
    """An agent of this process, as `tune_network` takes them."""

    def __init__(self, server, agent, folder=Path("nowhere")):
        k = agent.number
        self.path = folder / f"{agent.name}.toml"
        self.file = SimpleNamespace(
            agent=SimpleNamespace(name=agent.name, number=k),
            model=SimpleNamespace(classes=agent.classes),
            talk=SimpleNamespace(rounds=agent.rounds, schedule=""),
            hears=[SimpleNamespace(number=l, weight=float(RING.A[l, k])) for l in range(4) if RING.A[l, k]],
            rule=lambda: agent.rule,
        )
        self.client = lambda timeout=30.0: Client(server.url, timeout=timeout)


@pytest.fixture
def four(tmp_path):
    with in_memory(RING, rounds=12) as agents, ExitStack() as stack:
        for agent in agents:
            agent.gains = Gains(tmp_path / f"{agent.name}.gain.json")
        yield agents, [Member(stack.enter_context(served(agent)), agent) for agent in agents]


@pytest.mark.live
def test_scores_may_be_sent_and_have_gaps(four):
    network = four[1]
    x, y = labelled()
    x[3, 1] = np.nan
    scores = {name: [None if np.isnan(one) else one for one in column] for name, column in by_agent(x).items()}
    found = tune_network(network, [f"p{i}" for i in range(60)], y.tolist(), scores)
    expected = tuning.tune(x, y, RING, 12)
    assert [one.gain for one in found] == expected.gains.tolist()
    assert [one.state for one in found] == ["used"] * 4
    assert found[2].learned.error_tuned == expected.error_tuned
    assert (found[1].learned.conversations, found[1].learned.rows) == (expected.conversations, expected.rows)


@pytest.mark.live
def test_gains_that_one_agent_cannot_keep_are_used_by_none(four, tmp_path):
    agents, network = four
    x, y = labelled()
    kept, agents[2].gains._path = agents[2].gains._path, tmp_path / "missing" / "gain.json"  # it can propose nothing
    with pytest.raises(LiveError, match=r"agent-2: .*gain cannot be written.*nothing changed"):
        tune_network(network, range(60), y.tolist(), by_agent(x))
    assert [agent.gains.now for agent in agents] == [Gain()] * 4
    assert not list(tmp_path.iterdir())
    agents[2].gains._path = kept
    assert tune_network(network, range(60), y.tolist(), by_agent(x))[0].state == "used"


@pytest.mark.live
def test_an_agent_that_fails_at_the_last_step_takes_the_others_back(four, tmp_path):
    agents, network = four
    x, y = labelled()
    (tmp_path / "agent-3.gain.json").mkdir()  # it can propose, and not use
    with pytest.raises(LiveError, match="agent-3: "):
        tune_network(network, range(60), y.tolist(), by_agent(x))
    assert [agent.gains.now for agent in agents] == [Gain()] * 4
    assert [path.name for path in tmp_path.iterdir()] == ["agent-3.gain.json"]


@pytest.mark.live
def test_who_does_not_agree_or_is_not_there_is_named(four, monkeypatch):
    agents, network = four
    x, y = labelled()
    run = Tunings._run

    def disagreeing(self, asked):
        step = run(self, asked)
        is_it = self._agent.name == "agent-1"
        return msgspec.structs.replace(step, learned=msgspec.structs.replace(step.learned, agreed=not is_it))

    monkeypatch.setattr(Tunings, "_run", disagreeing)
    with pytest.raises(NotTuned, match=r"did not agree \(agent-1\): nothing changed"):
        tune_network(network, range(60), y.tolist(), by_agent(x))
    assert [agent.gains.now for agent in agents] == [Gain()] * 4
    network[3].client = lambda timeout=30.0: Client("http://127.0.0.1:9", timeout=timeout)
    with pytest.raises(NotTuned, match=r"agent-3: cannot reach .*; nothing changed"):
        tune_network(network, range(60), y.tolist(), by_agent(x))


@pytest.mark.live
def test_gains_beyond_an_agents_bound_are_all_made_smaller_alike():
    x, y = labelled()
    bound = float(np.abs(x).max()) * 1.01
    expected = tuning.tune(x, y, RING, 12)
    with in_memory(RING, rounds=12, bound=bound) as agents, ExitStack() as stack:
        network = [Member(stack.enter_context(served(agent)), agent) for agent in agents]
        found = tune_network(network, range(60), y.tolist(), by_agent(x))
        entering = [agent.gains.now(x[:, k]) for k, agent in enumerate(agents)]
    factors = np.array([one.gain for one in found]) / expected.gains
    assert factors == pytest.approx(bound / 2 / np.abs(expected(x)).max())
    assert np.abs(entering).max() == pytest.approx(bound / 2)


def test_only_scores_that_have_no_model_behind_them_have_the_gain():
    scores = np.array([1.0, 3.0])
    for score, given, expected in ((None, True, [0, 4]), (len, True, [1, 3]), (len, False, [0, 4])):
        with in_memory(policy.Policy(np.ones((1, 1))), rounds=1, score=score) as (agent,):
            assert agent.enter([1, 2], scores, given).tolist() == [1, 3]
            agent.gains.propose(2.0, 1.0, "s")
            agent.gains.use("s")
            assert agent.enter([1, 2], scores, given).tolist() == expected


def test_a_proposed_gain_is_used_after_a_restart_and_taken_back_after_another(tmp_path):
    path = tmp_path / "agent-0.gain.json"
    Gains(path, 3).propose(0.1 + 0.2, [0.1, -0.1, 0.0], "a")
    again = Gains(path, 3)
    assert again.now == Gain()
    with pytest.raises(LiveError, match="no gain of the tuning 'b' is proposed"):
        again.use("b")
    again.use("a", 0.5)
    assert again.use("a", 0.5).gain == (0.1 + 0.2) * 0.5  # once more changes nothing
    third = Gains(path, 3)
    assert (third.now.gain, third.now.shift) == ((0.1 + 0.2) * 0.5, [0.1, -0.1, 0.0])
    assert third.drop("other").session == "a"
    assert third.drop("a") == Gain()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["{", '{"gain": "much"}', '{"gain": 2.0, "shift": [1.0, 2.0]}'])
def test_a_damaged_file_is_named(content, tmp_path):
    path = tmp_path / "agent-0.gain.json"
    path.write_text(content)
    with pytest.raises(InputFileError, match=r"agent-0\.gain\.json"):
        Gains(path, 3)


@pytest.mark.live
def test_agents_of_three_classes_tune_themselves():
    rng = np.random.default_rng(3)
    y = np.arange(60) % 3
    x = np.array([1.5, 1.2, 0.1, -1.5])[:, None] * np.eye(3)[y][:, None] + rng.normal(size=(60, 4, 3))
    x -= x.mean(axis=2, keepdims=True)
    names = ("a", "b", "c")
    with in_memory(RING, rounds=12, classes=names) as agents, ExitStack() as stack:
        network = [Member(stack.enter_context(served(agent)), agent) for agent in agents]
        scores = {name: x[:, k].tolist() for k, name in enumerate(AGENTS)}
        tune_network(network, range(60), [names[place] for place in y], scores)
        entering = np.stack([agent.gains.now(x[:, k]) for k, agent in enumerate(agents)], axis=1)
    expected = tuning.tune(x, y, RING, 12)
    assert expected.kept == "tuned"
    assert np.array_equal(entering, expected(x))


@pytest.mark.live
def test_an_agent_that_is_away_keeps_its_gain_and_the_others_tune_without_it(four, tmp_path):
    agents, network = four
    x, y = labelled()
    agents[2].stop()
    network[2].client = lambda timeout=30.0: Client("http://127.0.0.1:9", timeout=timeout)
    found = tune_network(network, range(60), y.tolist(), by_agent(x))
    expected = tuning.tune(x, y, RING, 12, away=[2])
    assert [one.state for one in found] == ["used", "used", "away", "used"]
    assert expected.kept == "tuned"
    assert expected.gains[2] == found[2].gain == 1
    # Whoever hears fewer scales weights by a division that the smaller network's have behind them: not bit for bit.
    assert [one.gain for one in found] == pytest.approx(expected.gains, rel=1e-6)
    assert not (tmp_path / "agent-2.gain.json").exists()


@pytest.mark.live
def test_agents_with_small_bounds_have_the_gains_of_the_simulation():
    x, y = labelled()
    x *= np.array([0.1, 0.2, 0.05, 0.3])
    bounds = np.abs(x).max(axis=0) * 1.5
    known = {"bounds": dict(enumerate(bounds)), "largest": float(bounds.max())}
    with (
        in_memory(RING, rounds=2, own={k: {"bound": bounds[k]} for k in range(4)}, **known) as agents,
        ExitStack() as stack,
    ):
        network = [Member(stack.enter_context(served(agent)), agent) for agent in agents]
        found = tune_network(network, range(60), y.tolist(), by_agent(x))
    expected = tuning.tune(x, y, RING, 2)
    assert max(bounds) < 4
    assert expected.kept == "tuned"
    assert expected.largest_deviation > 1e-4  # two rounds are few: what was heard is averaged again
    scale = min(1.0, *(bounds / (2 * np.abs(expected(x)).max(axis=0))))
    assert [one.gain for one in found] == (expected.gains * scale).tolist()


@pytest.mark.live
def test_a_gain_for_each_class_is_learned_and_kept(tmp_path):
    rng = np.random.default_rng(5)
    y = np.arange(90) % 3
    quality = np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0], [0.5, 0.5, 0.5]])  # each knows a class
    x = quality[None] * np.eye(3)[y][:, None] + rng.normal(size=(90, 4, 3))
    x -= x.mean(axis=2, keepdims=True)
    with in_memory(RING, rounds=12, classes=("a", "b", "c")) as agents, ExitStack() as stack:
        for agent in agents:
            agent.gains = Gains(tmp_path / f"{agent.name}.gain.json", 3)
        network = [Member(stack.enter_context(served(agent)), agent, tmp_path) for agent in agents]
        scores = {name: x[:, k].tolist() for k, name in enumerate(AGENTS)}
        labels = ["abc"[place] for place in y]
        tune_network(network, range(90), labels, scores, per_class=True)
        entering = np.stack([agent.gains.now(x[:, k]) for k, agent in enumerate(agents)], axis=1)
        with pytest.raises(LiveError, match="agent-0 has a gain for each class: tune it with per_class"):
            tune_network(network, range(90), labels, scores)
    expected = tuning.tune(x, y, RING, 12, per_class=True)
    assert expected.kept == "tuned"
    assert expected.gains.shape == (4, 3)
    assert np.array_equal(entering, expected(x))
    assert Gains(tmp_path / "agent-1.gain.json", 3).now.gain == expected.gains[1].tolist()
