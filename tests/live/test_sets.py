"""Prediction sets of live agents: those of the team, in every answer; all classes where something was missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import UNSET
from sklearn.linear_model import LogisticRegression

from collegium import Team, policy, protocol, topology
from collegium.errors import CollegiumError
from collegium.live import config, results
from collegium.live.folder import NetworkSettings, create
from collegium.live.gain import Gains
from collegium.theory.conformal import abstention
from live_networks import in_memory, served
from virtual_network import VirtualNetwork, outcome

OVER = policy.metropolis(topology.star(3))
NAMES = np.array(["a", "b", "c", "d"])
ROUNDS = 2


def items(n: int, C: int, seed: int) -> tuple[list[Any], Any]:
    rng = np.random.default_rng(seed)
    y, means = rng.integers(C, size=n), np.random.default_rng(9).normal(size=(3, C, 2))
    return [means[k][y] + rng.normal(size=(n, 2)) for k in range(3)], NAMES[y]


@pytest.fixture(scope="module", params=[2, 4], ids=["two classes", "four classes"])
def team(request: Any, tmp_path_factory: Any) -> Team:
    """Saved and loaded: that is what a network is made from."""
    views, y = items(300, request.param, 0)
    agents = [(f"agent-{k}", LogisticRegression()) for k in range(3)]
    fitted = Team(agents, OVER, rounds=ROUNDS, center="none", calibrate=False).fit(views, y)
    fitted.conformalize(*items(400, request.param, 1))
    folder = tmp_path_factory.mktemp("team") / "saved"
    fitted.save(folder)
    loaded = Team.load(folder)
    fresh = items(50, request.param, 2)[0]
    for agent in (None, "agent-1"):
        np.testing.assert_array_equal(loaded.predict_set(fresh, 0.15, agent), fitted.predict_set(fresh, 0.15, agent))
        np.testing.assert_array_equal(
            loaded.predict_or_abstain(fresh, 0.08, agent=agent)[1],
            fitted.predict_or_abstain(fresh, 0.08, agent=agent)[1],
        )
    return loaded


def files_of(team: Team, folder: Path, **settings: Any) -> list[config.AgentFile]:
    made = create(folder / "net", team.policy, team, NetworkSettings(tls=False, rounds=ROUNDS, **settings))
    return [config.read(path) for path in made]


def test_answers_have_the_sets_of_the_team(team: Team, tmp_path: Path) -> None:
    files = files_of(team, tmp_path, alpha=0.15, error=0.08)
    classes = tuple(files[0].model.classes)
    views = items(60, len(classes), 3)[0]
    scores = team.statistics(views)
    network = VirtualNetwork(OVER, rounds=ROUNDS, classes=classes, own={k: {"sets": files[k].sets} for k in range(3)})
    tickets = [network.submit(k, list(range(60)), scores[:, k]) for k in range(3)]
    network.until(lambda: not any(ticket.open for ticket in tickets))
    sizes = set()
    for k, ticket in enumerate(tickets):
        answers = outcome(ticket)
        wanted = team.predict_set(views, 0.15, f"agent-{k}")
        assert [one.set for one in answers] == [team.classes_[row].tolist() for row in wanted]
        assert [one.sure for one in answers] == team.predict_or_abstain(views, 0.08, agent=f"agent-{k}")[1].tolist()
        sizes |= {len(one.set) for one in answers}
    assert len(sizes) > 1  # not all of them decide


def test_without_all_views_a_set_has_all_classes(team: Team, tmp_path: Path) -> None:
    files = files_of(team, tmp_path, alpha=0.15, error=0.08)
    classes = tuple(files[0].model.classes)
    scores = team.statistics(items(20, len(classes), 3)[0])
    network = VirtualNetwork(OVER, rounds=ROUNDS, classes=classes, own={k: {"sets": files[k].sets} for k in range(3)})
    network.leave(2)
    tickets = [network.submit(k, list(range(20)), scores[:, k]) for k in range(2)]
    network.until(lambda: not any(ticket.open for ticket in tickets))
    for ticket in tickets:
        assert {tuple(one.set) for one in outcome(ticket)} == {classes}
        assert {one.sure for one in outcome(ticket)} == {False}


def test_one_of_the_two_will_do(team: Team, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    only = files_of(team, tmp_path / "a", error=0.08)[0].sets
    assert only is not None
    known = team.conformal_["agent-0"]
    lead = abstention(-known.behind.min(axis=-1), ~(known.scores < 0), 0.08).threshold
    assert (only.alpha, only.behind, only.lead) == (None, [], lead)
    answered = only.answer(np.zeros((2, 1 if known.classes == 2 else 4)), np.ones(2, bool), tuple(range(known.classes)))
    assert answered == ([UNSET, UNSET], [False, False])
    assert files_of(team, tmp_path)[0].sets is None


def test_over_http_and_not_once_tuned() -> None:
    from collegium.live.sets import Sets

    sets = Sets(0.1, [0.5, 0.5])
    with in_memory(policy.uniform(topology.ring(3)), rounds=2, sets=sets) as agents, served(agents[0]) as server:
        futures = [agent.submit(["x"], np.array([1.0])) for agent in agents[1:]]
        answer = _post(server.url, {"id": "x", "score": 1.0})
        assert answer["set"] == [1]
        assert "sure" not in answer
        for future in futures:
            future.result(30)
        agents[0].gains.propose(2.0, 0.0, "s")
        agents[0].gains.use("s")
        agents[0].check_sets()
        assert results.result(agents[0]._engine, "x", False).set is UNSET  # type: ignore[union-attr]
        agents[0].gains.drop("s")
        agents[0].check_sets()
        assert results.result(agents[0]._engine, "x", False).set == [1]  # type: ignore[union-attr]
    assert Gains().now.session == ""


def _post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    from urllib.request import Request, urlopen

    request = Request(f"{url}/v1/items", json.dumps(body).encode(), {"content-type": "application/json"})
    with urlopen(request, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def test_what_does_not_fit_is_refused(team: Team, tmp_path: Path) -> None:
    with pytest.raises(CollegiumError, match=r"own network, rounds and rule"):
        create(tmp_path / "a", OVER, team, NetworkSettings(tls=False, rounds=ROUNDS + 1, alpha=0.1))
    with pytest.raises(CollegiumError, match=r"own network, rounds and rule"):
        create(tmp_path / "a", policy.uniform(topology.complete(3)), team, NetworkSettings(tls=False, alpha=0.1))
    other = NetworkSettings(tls=False, rounds=ROUNDS, rule=protocol.DeltaTrigger(0.1), alpha=0.1)
    with pytest.raises(CollegiumError, match=r"own network, rounds and rule"):
        create(tmp_path / "a", OVER, team, other)
    with pytest.raises(CollegiumError, match=r"team\.conformalize"):
        create(tmp_path / "a", OVER, None, NetworkSettings(tls=False, alpha=0.1))
    path = create(tmp_path / "a", OVER, team, NetworkSettings(tls=False, rounds=ROUNDS, alpha=0.1))[0]
    text = path.read_text()
    path.write_text(text.replace("behind = [", "behind = [1.0, "))
    with pytest.raises(CollegiumError, match="a number for each of"):
        config.read(path)
