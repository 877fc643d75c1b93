"""Who may not take part, and that both sides say so: real processes, real certificates."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from collegium import policy, topology
from collegium.errors import InputFileError, LiveError
from collegium.live import Client
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import Member, down, members, renew, stop, up
from live_processes import neighbour, running, status, wait_for

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
THREE = policy.uniform(topology.complete(3))


def takes_the_place_of(member: Member, folder: Path, change: Callable[[str], str]) -> Member:
    """An agent of another folder, changed, at the same ports as the member, which has ended."""
    stop([member.path])
    path = folder / member.path.name
    ports = {"listen": member.file.agent.listen, "http": member.file.http.port}
    text = path.read_text()
    mine = members(folder)[member.file.agent.number].file
    text = text.replace(mine.agent.listen, ports["listen"]).replace(
        f"port = {mine.http.port}", f"port = {ports['http']}"
    )
    text = text.replace(mine.agent.network, member.file.agent.network)
    for theirs, ours in zip(mine.hears, member.file.hears, strict=True):
        if theirs.endpoint:
            text = text.replace(theirs.endpoint, ours.endpoint)
    path.write_text(change(text))
    intruder = members(folder)[member.file.agent.number]
    intruder.start()
    return intruder


@pytest.mark.parametrize(
    ("change", "honest", "intruding"),
    [
        (lambda text: text, "another authority", "another authority"),
        (
            lambda text: (
                text.partition("[tls]")[0].replace("tls/", "tcp/") + "[deadlines]" + text.partition("[deadlines]")[2]
            ),
            "does not speak TLS|without certificates",
            "requires certificates",
        ),
    ],
    ids=["another authority", "no certificate"],
)
def test_both_sides_say_who_is_refused(
    change: Callable[[str], str], honest: str, intruding: str, tmp_path: Path
) -> None:
    with running(tmp_path / "net", THREE) as network:
        create(tmp_path / "other", THREE, None, NetworkSettings(port=0, http_port=0))
        intruder = takes_the_place_of(network[2], tmp_path / "other", change)
        try:
            wait_for(lambda: _answers(intruder))
            for member, words in ((network[0], honest), (intruder, intruding)):
                wait_for(lambda m=member, w=words: re.search(w, str(status(m))))
            assert re.search(honest, network[0].log.read_text())
            assert re.search(intruding, intruder.log.read_text())
        finally:
            stop([intruder.path])
        network[2].start()
        wait_for(lambda: all(status(member).ready for member in network))


def _answers(member: Member) -> bool:
    try:
        status(member)
    except Exception:
        return False
    return True


def test_another_agents_certificate_is_refused_at_home(tmp_path: Path) -> None:
    with running(tmp_path / "net", THREE) as network:
        stop([network[2].path])
        path = network[2].path
        path.write_text(path.read_text().replace("agent-2.pem", "agent-1.pem").replace("agent-2.key", "agent-1.key"))
        thief = members(tmp_path / "net")[2]
        thief.start()
        wait_for(lambda: thief.pid is None)
        assert "is that of 'agent-1', not of 'agent-2'" in thief.exit_message()
        assert wait_for(lambda: "no process listens" in neighbour(network[0], "agent-2").reason)


def test_users_without_a_certificate_stay_outside(tmp_path: Path) -> None:
    net = tmp_path / "net"
    create(net, THREE, None, NetworkSettings(port=0, http_port=0))
    for path in net.glob("agent-*.toml"):
        path.write_text(path.read_text().replace("client_certificates = false", "client_certificates = true"))
        path.write_text(path.read_text().replace("https = false", "https = true"))
    network = up(net, wait=120)
    try:
        url = f"https://127.0.0.1:{network[0].file.http.port}"
        with Client(url, ca=net / "ca.pem", timeout=60) as outside, pytest.raises(LiveError, match="cannot reach"):
            outside.status()
    finally:
        down(net)


def test_certificates_are_renewed_one_agent_after_the_other(tmp_path: Path) -> None:
    with running(tmp_path / "net", THREE) as network:
        before = [member.path.with_suffix(".pem").read_bytes() for member in network]
        renew(tmp_path / "net", days=30)
        assert all(
            member.path.with_suffix(".pem").read_bytes() != old for member, old in zip(network, before, strict=True)
        )
        for member in network:
            stop([member.path])
            member.start()
            wait_for(lambda: all(_answers(one) and status(one).ready for one in network))
    (tmp_path / "net" / "ca.key").unlink()
    with pytest.raises(InputFileError, match="where collegium live init was run"):
        renew(tmp_path / "net")
