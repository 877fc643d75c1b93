import json
import os
import socket
import subprocess
import sys
import time

import pytest
from packaging.requirements import Requirement

import collegium
from collegium.cli import clock, doctor, requirements

STATES = {"ok", "note", "problem"}


def findings(cli, *arguments, code=0):
    return {one["topic"]: one for one in json.loads(cli("doctor", "--json", *arguments, code=code).out)}


@pytest.fixture(autouse=True)
def _nothing_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("COLLEGIUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COLLEGIUM_DATA", raising=False)
    monkeypatch.delenv("COLLEGIUM_BLENDER", raising=False)


def test_everything_is_looked_at(cli):
    found = findings(cli)
    machine = {"Python", "ports", "clock", "cores", "memory", "this folder", "cache"}
    installed = {"Collegium", "packages", "extra live", "extra torch", "kernels", "Blender"}
    assert machine | installed | {"data digits", "data cifar10", "data modelnet"} <= set(found)
    assert {one["state"] for one in found.values()} <= STATES
    assert collegium.__version__ in found["Collegium"]["found"]
    assert found["data cifar10"]["state"] == "note"
    assert "collegium data fetch cifar10" in found["data cifar10"]["advice"]
    assert found["Blender"]["advice"] == "collegium data fetch blender"


def test_lines_for_people(cli):
    shown = cli("doctor").out
    assert "✓ Python" in shown
    assert "→ collegium data fetch blender" in shown
    assert "nothing is broken" in shown


def test_a_port_that_is_taken_is_named(cli):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", 8403))
        except OSError:
            pytest.skip("somebody else has port 8403")
        one.listen()
        ports = findings(cli)["ports"]
    assert ports["state"] == "note"
    assert "8403" in ports["found"]
    assert "--http-port 0" in ports["advice"]


def test_a_missing_extra_says_what_to_type(cli, monkeypatch):
    real = doctor.machine.versions
    monkeypatch.setattr(doctor.machine, "versions", lambda names: {k: v for k, v in real(names).items() if k != "ray"})
    found = findings(cli)["extra ray"]
    assert found["state"] == "note"
    assert found["advice"] == "pip install 'collegium[ray]'"


def test_a_version_that_is_too_old_is_a_problem(cli, monkeypatch):
    real = doctor.machine.versions
    monkeypatch.setattr(doctor.machine, "versions", lambda names: real(names) | {"numba": "0.1"})
    assert findings(cli, code=1)["packages"]["found"] == "numba 0.1, wanted >=0.61"


def test_a_damaged_data_set_is_a_problem(cli, tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    (folder / "test_batch.bin").write_bytes(b"x")
    found = findings(cli, "--data", tmp_path, code=1)["data cifar10"]
    assert found["state"] == "problem"
    assert found["advice"] == "collegium data check cifar10"


def test_what_pip_wrote_down_is_what_the_sources_say(monkeypatch):
    """Extras by the source folder's pyproject.toml, and by an installation's record of it."""
    sources = requirements.requirements()
    assert {need.name for need in sources["ray"]} >= {"ray", "torch", "pandas"}  # with those it takes in
    lines = [str(need) for need in sources[""]]
    lines += [f"{need}; extra == '{extra}'" for extra in requirements.EXTRAS for need in sources[extra]]
    monkeypatch.setattr(requirements, "requires", lambda name: lines)
    monkeypatch.setattr(collegium, "__file__", os.devnull + "/a/b/c")
    assert {k: [(n.name, n.specifier) for n in v] for k, v in requirements.requirements().items()} == {
        k: [(n.name, n.specifier) for n in v] for k, v in sources.items()
    }
    assert all(isinstance(need, Requirement) for needs in sources.values() for need in needs)


def test_a_clock_set_back_is_noticed(tmp_path):
    (tmp_path / "file").touch()
    assert not clock.set_back(tmp_path)
    later = time.time() + 10 * 86400
    os.utime(tmp_path / "file", (later, later))
    assert clock.set_back(tmp_path)


def test_the_kernel_is_asked_about_the_clock():
    error = clock.clock_error()
    assert error is None or error >= 0


def test_the_doctor_loads_nothing_heavy():
    code = """
import sys
from collegium.cli.app import main
sys.argv[1:] = ["doctor", "--json"]
try:
    main()
finally:
    loaded = {"torch", "ray", "zenoh", "sklearn", "scipy", "numba", "matplotlib"} & set(sys.modules)
    assert not loaded, loaded
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
