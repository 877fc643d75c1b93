"""Networks whose seats differ by round, on a virtual clock, against the simulator: bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from collegium import policy, protocol, schedule, topology
from collegium.errors import InputFileError
from collegium.live import config
from collegium.live.folder import NetworkSettings, create
from collegium.network import collaborate
from collegium.schedule import Schedule, union
from virtual_network import VirtualNetwork, Way, outcome


def network(over: Schedule, rounds: int, rule: protocol.Rule, way: Way | None = None) -> VirtualNetwork:
    """Engines that know their seats; the weights of `reach` only say whom they hear in any round."""
    seats = {k: {"seats": [over.at(t)[k] for t in range(1, rounds + 1)]} for k in range(over.size)}
    reach = policy.uniform(union(over, rounds))
    return VirtualNetwork(
        reach, way or (lambda sender, receiver, _: 0.001 * (1 + (3 * sender + receiver) % 5)), own=seats, rule=rule,
        rounds=rounds, seed=5,
    )  # fmt: skip


CASES: list[tuple[Schedule, int]] = [
    *[(schedule.exact(K), (K - 1).bit_length()) for K in (2, 3, 9, 12)],
    (schedule.one_peer_exponential(8), 6),
    (schedule.alternating([policy.uniform(topology.ring(5)), policy.uniform(topology.complete(5))]), 6),
]


@pytest.mark.parametrize("bits", [None, 6])
@pytest.mark.parametrize(("over", "rounds"), CASES, ids=str)
def test_live_equals_simulated(over: Schedule, rounds: int, bits: int | None) -> None:
    """Nothing waits for a timer, nobody asks for anything; an item costs one message per agent and round."""
    rule = over.rule or protocol.DeGroot()
    rule = rule if bits is None else protocol.Quantised(rule, bits, 4.0)
    scores = np.random.default_rng(1).uniform(-3.5, 3.5, size=(14, over.size))
    net = network(over, rounds, rule)
    net.has_timers = False
    live = np.concatenate(
        [net.decide(scores[:10]), *[net.decide(scores[i : i + 1], [i]) for i in range(10, 14)]], axis=1
    )
    np.testing.assert_array_equal(live, collaborate(scores, over, rounds, rule, rng=5).statistics)
    assert set(net.frames) == {"ROUND"}
    results = [net.result(k, i) for k in range(over.size) for i in range(14)]
    assert all(one is not None and one.evidence.views == over.size and not one.missed for one in results)
    if type(rule) is protocol.Ceca:
        assert all(one is not None and one.settled for one in results)


def test_a_lost_message_is_asked_for() -> None:
    over, lost = schedule.exact(9), []

    def way(sender: int, receiver: int, data: bytes) -> float | None:
        if (sender, receiver) == (0, 1) and not lost:
            lost.append(data)
            return None
        return 0.001

    scores = np.random.default_rng(2).normal(size=(5, 9))
    net = network(over, 4, over.rule, way)
    live = net.decide(scores)
    assert lost
    assert net.frames["RESEND"]
    np.testing.assert_array_equal(live, collaborate(scores, over).statistics)


def test_evidence_is_not_overstated_when_an_agent_is_gone() -> None:
    """Views of those who were heard through the one that is gone are missing, and so they are in the evidence."""
    over = schedule.exact(9)
    net = network(over, 4, over.rule)
    net.leave(4)
    scores = np.random.default_rng(3).normal(size=(1, 9))
    tickets = [net.submit(k, [0], scores[:, k]) for k in range(9) if k != 4]
    net.until(lambda: not any(ticket.open for ticket in tickets))
    moved = {j: _moved_by(j) for j in range(9) if j != 4}
    for k, ticket in zip(moved, tickets, strict=True):
        (result,) = outcome(ticket)
        claimed = {j for j in range(9) if f"agent-{j}" not in result.evidence.missing}
        assert 4 not in claimed
        assert claimed <= {j for j, moves in moved.items() if k in moves}


def _moved_by(j: int) -> set[int]:
    """Whose statistics depend on agent j's score, when agent 4 is gone."""
    found = []
    for score in (0.0, 1.0):
        over = schedule.exact(9)
        net = network(over, 4, over.rule)
        net.leave(4)
        tickets = [net.submit(l, [0], [score if l == j else 0.0]) for l in range(9) if l != 4]
        net.until(lambda tickets=tickets: not any(ticket.open for ticket in tickets))
        found.append({k: net.result(k, 0).statistic for k in range(9) if k != 4})  # type: ignore[union-attr]
    return {k for k in found[0] if found[0][k] != found[1][k]}


def test_the_files_of_a_schedule(tmp_path: Path) -> None:
    over = schedule.exact(5)
    create(tmp_path / "net", over, None, NetworkSettings(rounds=3, rule=over.rule, tls=False, port=0, http_port=0))
    file = config.read(tmp_path / "net" / "agent-3.toml")
    seats = file.seats()
    assert seats is not None
    assert [seat.senders.tolist() for seat in seats] == [over.at(t)[3].senders.tolist() for t in (1, 2, 3)]
    assert {heard.number for heard in file.hears} == {l for seat in seats for l in seat.senders.tolist()}
    assert file.agent.reachable == 5
    text = (tmp_path / "net" / "agent-3.toml").read_text().replace("exact:5", "exact:6")
    (tmp_path / "net" / "agent-3.toml").write_text(text)
    with pytest.raises(InputFileError, match="for 6 agents, and there are 5"):
        config.read(tmp_path / "net" / "agent-3.toml")
