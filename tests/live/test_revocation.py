"""Agents that are no longer trusted, and certificates that are renewed, while the network runs."""

import hashlib
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from collegium import policy, topology
from collegium.errors import LiveError
from collegium.live import Client, config, keys, launcher, process, revocation
from collegium.live.folder import NetworkSettings, create
from collegium.live.launcher import members, renew, revoke
from collegium.live.revocation import Revocations
from live_processes import ask_all, neighbour, process_of, running, status, wait_for

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
FOUR = policy.uniform(topology.ring(4))
NETWORK = "0123456789abcdef"


@pytest.fixture
def authority(tmp_path: Path) -> keys.Authority:
    return keys.create_authority(tmp_path / "ca", "net")


def test_a_list_is_taken_over_if_it_is_signed_and_newer(tmp_path: Path, authority: keys.Authority) -> None:
    first = revocation.change(tmp_path, authority, NETWORK, ["agent-1"], ["ab"])
    old = (tmp_path / revocation.FILE).read_bytes()
    second = revocation.change(tmp_path, authority, NETWORK, ["agent-2"], ["cd"])
    assert (first.number, second.number) == (1, 2)
    assert second.names == ["agent-1", "agent-2"]
    told: list[revocation.Revoked] = []
    here = tmp_path / "elsewhere"
    here.mkdir()
    known = Revocations(here, authority.certificate, NETWORK, told.append)
    new = (tmp_path / revocation.FILE).read_bytes()
    known.offer(new)
    known.offer(old)  # a list that was replaced, played again
    known.offer(new)
    assert told == [second]
    assert (here / revocation.FILE).read_bytes() == new  # kept for the next start
    again = revocation.change(tmp_path, authority, NETWORK, ["agent-1"], [], restore=True)
    assert again.names == ["agent-2"]
    assert again.serials == ["ab", "cd"]


def test_agents_that_are_revoked_at_the_same_time_are_all_on_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path / "net", FOUR, None, NetworkSettings(port=0, http_port=0))
    signed = keys.signed

    def slowly(*given: Any) -> Any:
        time.sleep(0.2)
        return signed(*given)

    monkeypatch.setattr(keys, "signed", slowly)
    with ThreadPoolExecutor(3) as threads:
        numbers = list(threads.map(lambda k: revoke(tmp_path / "net", f"agent-{k}"), range(3)))
    assert sorted(numbers) == [1, 2, 3]
    assert sorted(launcher.revoked(tmp_path / "net")) == ["agent-0", "agent-1", "agent-2"]
    revoke(tmp_path / "net", "agent-3")
    with pytest.raises(LiveError, match=r"every agent of .*net is revoked"):
        renew(tmp_path / "net")


@pytest.mark.parametrize("what", ["names", "number", "network", "signature", "another authority", "nonsense"])
def test_a_list_that_is_not_signed_changes_nothing(tmp_path: Path, authority: keys.Authority, what: str) -> None:
    signer = keys.create_authority(tmp_path / "other", "net") if what == "another authority" else authority
    folder = tmp_path / "made"
    folder.mkdir()
    revocation.change(folder, signer, NETWORK, ["agent-1"], [])
    content = json.loads((folder / revocation.FILE).read_text())
    if what in content:
        content[what] = {"names": [], "number": 9, "network": "f" * 16, "signature": "00"}[what]
    told: list[revocation.Revoked] = []
    known = Revocations(tmp_path, authority.certificate, NETWORK, told.append)
    with pytest.raises(LiveError):
        known.offer(b"{" if what == "nonsense" else msgspec.json.encode(content))
    assert told == []
    assert not (tmp_path / revocation.FILE).exists()


def test_a_revoked_agent_is_refused_everywhere(tmp_path: Path) -> None:
    """Only one agent's folder gets the list; the others have it from their neighbours."""
    with running(tmp_path / "net", FOUR) as network:
        revoke(tmp_path / "net", "agent-2")
        for k in (1, 3):
            wait_for(lambda k=k: "was revoked" in neighbour(network[k], "agent-2").reason)
        wait_for(lambda: network[2].pid is None)
        wait_for(lambda: neighbour(network[1], "agent-2").state in ("refused", "down"))
        network[2].start()
        wait_for(lambda: network[2].pid is None)
        assert "was revoked" in network[2].exit_message()
        time.sleep(2.0)  # long enough for a look at why it is missing, which finds that nobody listens
        assert "was revoked" in neighbour(network[1], "agent-2").reason
        wait_for(lambda: all(status(network[k]).ready for k in (0, 1, 3)))  # nobody waits for it
        os.kill(network[0].pid, signal.SIGTERM)
        wait_for(lambda: network[0].pid is None)
        assert [one.file.agent.name for one in launcher.up(tmp_path / "net", wait=120)] == [
            "agent-0",
            "agent-1",
            "agent-3",
        ]
        scores = np.ones((5, 4))
        for column in ask_all(network, scores, who=[0, 1, 3], trace=False):
            assert all("agent-2" in one.evidence.missing for one in column)
        revoke(tmp_path / "net", "agent-2", restore=True)
        network[2].start()
        wait_for(lambda: all(status(member).ready for member in network))


def test_certificates_are_renewed_while_items_run(tmp_path: Path) -> None:
    with running(tmp_path / "net", FOUR) as network:
        before = [keys.serial(tmp_path / "net" / f"agent-{k}.pem") for k in range(4)]
        renew(tmp_path / "net", days=20)
        assert all(keys.serial(tmp_path / "net" / f"agent-{k}.pem") != before[k] for k in range(4))
        for start in range(0, 400, 100):
            for column in ask_all(network, np.ones((100, 4)), range(start, start + 100), trace=False):
                assert all(not one.missed and not one.evidence.missing for one in column)
        for times in (1, 2, 3):  # all agents find their new certificates at once
            for member in network:
                wait_for(lambda m=member, n=times: m.log.read_text().count("a new certificate is in use") >= n)
            renew(tmp_path / "net", days=20)
        assert not [line for member in network for line in member.log.read_text().splitlines() if "has left" in line]
        wait_for(lambda: all(status(member).ready for member in network))
        with network[0].client() as client:
            _, body = client._request("GET", "/metrics", time.monotonic() + 60)
        end = next(line for line in body.decode().splitlines() if line.startswith("collegium_certificate_end_seconds"))
        assert 19 * 86400 < float(end.split()[1]) - time.time() <= 20 * 86400


def test_the_certificates_of_a_network_end_one_after_the_other(tmp_path: Path) -> None:
    with running(tmp_path / "net", FOUR):
        renew(tmp_path / "net", days=100)
        ends = set()
        for member in members(tmp_path / "net"):
            assert member.file.tls is not None
            files = keys.Tls(tmp_path / "net/ca.pem", member.path.with_suffix(".pem"), member.path.with_suffix(".key"))
            ends.add(keys.check(files, member.file.agent.name).date())
        assert len(ends) == 4


def test_a_token_for_reading_submits_nothing_and_is_changed_without_a_restart(tmp_path: Path) -> None:
    with running(tmp_path / "net", policy.Policy(np.ones((1, 1)))) as network:
        path = network[0].path
        url = f"http://127.0.0.1:{network[0].file.http.port}"

        def use(**tokens: str) -> None:
            text = path.read_text().split("[http]")
            lines = [line for line in text[1].splitlines() if "_sha256" not in line]
            digests = [f'{name}_sha256 = "{hashlib.sha256(one.encode()).hexdigest()}"' for name, one in tokens.items()]
            path.write_text(f"{text[0]}[http]\n" + "\n".join([*digests, *lines]) + "\n")
            os.kill(process_of(network[0]), signal.SIGHUP)

        use(token="first", reader="only looks")
        with Client(url, "only looks", timeout=60) as reader, Client(url, "first", timeout=60) as user:
            wait_for(lambda: _is_closed_to_others(url))
            assert reader.status().number == 0
            with pytest.raises(LiveError, match="403: this token is for reading"):
                reader.decide([1], scores=[1.0])
            assert user.decide([1], scores=[1.0])[0].id == 1
            use(token="second")
            wait_for(lambda: _refused(user.status))
            assert _refused(reader.status)


def _is_closed_to_others(url: str) -> bool:
    with Client(url, timeout=60) as nobody:
        return _refused(nobody.status)


def _refused(call: object) -> bool:
    try:
        call()  # type: ignore[operator]
    except LiveError as problem:
        return "401" in str(problem)
    return False


def test_another_center_or_model_does_not_go_unnoticed(tmp_path: Path) -> None:
    """Nobody else can see it, and every decision would be wrong by a little: so the agent does not start."""
    create(tmp_path / "net", policy.Policy(np.ones((1, 1))), None, NetworkSettings(port=0, http_port=0))
    path = tmp_path / "net" / "agent-0.toml"
    config.read(path).check_model(path.parent)
    right = path.read_text()
    path.write_text(right.replace("center = 0.0", "center = 0.1"))
    assert path.read_text() != right
    with pytest.raises(LiveError, match=r"agent-0, or .*center or gain, is not the one"):
        launcher.up(tmp_path / "net", wait=120)
    (tmp_path / "model.npz").write_bytes(b"one")
    model = config.Model([-1, 1], "model.npz")
    first = config.hash_of_model(model, tmp_path)
    (tmp_path / "model.npz").write_bytes(b"two")
    assert config.hash_of_model(model, tmp_path) != first


def test_a_key_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    create(tmp_path / "net", policy.Policy(np.ones((1, 1))), None, NetworkSettings(port=0, http_port=0))
    (tmp_path / "net" / "agent-0.key").chmod(0o644)
    try:
        network = launcher.up(tmp_path / "net", wait=120)
        assert "others than its owner can read the key" in network[0].log.read_text()
    finally:
        launcher.down(tmp_path / "net")


def test_a_key_that_only_its_group_can_read_besides_may_be_another_owners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Kubernetes gives secrets to a pod: they are root's, and the group of the process can read them."""
    key = tmp_path / "agent-0.key"
    key.touch()
    found = {}
    for owner in (os.geteuid(), os.geteuid() + 1):
        monkeypatch.setattr(os, "geteuid", lambda owner=owner: owner)
        for mode in (0o600, 0o440, 0o644):
            key.chmod(mode)
            found.setdefault(mode, []).append(process._is_exposed(key))
    assert found == {0o600: [False, False], 0o440: [True, False], 0o644: [True, True]}
