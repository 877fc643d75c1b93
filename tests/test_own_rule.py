"""`examples/own_rule`, installed: a user's rule is simulated, saved, deployed, watched and studied as ours are."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from collegium import collaborate, policy, topology
from dashboards import running

TESTS = Path(__file__).parent
EXAMPLE = TESTS.parent / "examples" / "own_rule"
X = np.random.default_rng(0).normal(size=(12, 5))
RING = policy.uniform(topology.ring(5))


def stubborn(share: float) -> Any:
    """The example's rule in this process, where it has no name."""
    file = EXAMPLE / "src" / "collegium_stubborn" / "__init__.py"
    spec = importlib.util.spec_from_file_location("collegium_stubborn", file)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules.setdefault("collegium_stubborn", module)  # where dataclasses look for types
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module.Stubborn(share)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as pip would leave it there, made without pip, network or a build backend."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    for package in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        shutil.copytree(EXAMPLE / package, folder / Path(package).name, ignore=shutil.ignore_patterns("__pycache__"))
    about = project["project"]
    info = folder / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n")
    groups = [f"[{group}]\n{_lines(points)}" for group, points in about["entry-points"].items()]
    (info / "entry_points.txt").write_text("\n".join(groups))
    return folder


def _lines(points: dict[str, str]) -> str:
    return "".join(f"{name} = {target}\n" for name, target in points.items())


@pytest.fixture
def installed(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Processes started from here find the package; a folder to work in."""
    paths = [str(site), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    np.savetxt(tmp_path / "scores.csv", X, delimiter=",", fmt="%.17g")
    return tmp_path


def run(*words: object, cwd: Path, code: int = 0) -> str:
    """What a Python process says."""
    ended = subprocess.run([sys.executable, *map(str, words)], cwd=cwd, capture_output=True, text=True)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout if code == 0 else ended.stderr


def collegium(*words: object, cwd: Path, code: int = 0) -> str:
    """What the command line says."""
    return run("-m", "collegium", *words, cwd=cwd, code=code)


def test_it_does_what_friedkin_and_johnsen_say():
    simulated = collaborate(X, RING, rounds=8, rule=stubborn(0.3)).statistics
    expected = X
    for t in range(1, 9):
        expected = 0.3 * X + 0.7 * expected @ RING.A
        # each entry: at most eight rounds of four products of relative error eps
        np.testing.assert_allclose(simulated[t], expected, rtol=0, atol=64 * 8 * np.finfo(float).eps)


def test_it_has_a_name_where_it_is_installed_and_nowhere_else(installed, monkeypatch):
    code = "from collegium.protocol import registry as r; print(r.names()[-1], repr(r.rule_from_text('stubborn:0.25')))"
    assert run("-c", code, cwd=installed).strip() == "stubborn Stubborn(share=0.25)"
    monkeypatch.setenv("PYTHONPATH", os.environ["PYTHONPATH"].split(os.pathsep, 1)[1])
    refused = collegium("simulate", "scores.csv", "ring:5", "--rule", "stubborn:0.3", cwd=installed, code=2)
    assert "there is no rule 'stubborn'" in " ".join(refused.split())


def test_it_keeps_every_promise_of_a_rule(installed):
    command = ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir", installed, EXAMPLE / "tests"]
    said = run(*command, cwd=installed)
    assert re.search(r"\d+ passed, 1 skipped in", said), said
    assert "there is no kernel for Stubborn: it runs as it is" in said


def test_it_is_simulated(installed):
    command = ("simulate", "scores.csv", "ring:5", "--rule", "stubborn:0.3", "--json")
    facts = json.loads(collegium(*command, cwd=installed))
    expected = collaborate(X, RING, rule=stubborn(0.3))
    assert facts["statistics"] == expected.statistics[-1].tolist()
    assert facts["transmissions"] == expected.transmissions.tolist()
    few = json.loads(collegium(*command, "--bits", 6, "--bound", 4, "--seed", 9, cwd=installed))
    assert few["bits"] == [20 * 10 * 6] * len(X)
    refused = collegium("simulate", "scores.csv", "ring:5", "--rule", "stubborn:1.5", cwd=installed, code=2)
    assert "share must lie between 0 and 1, got 1.5" in " ".join(refused.split())


SAVE = """
import sys
import numpy as np
from collegium_stubborn import Stubborn
from sklearn.linear_model import LogisticRegression
from collegium import Team, policy, topology

rng = np.random.default_rng(1)
y = np.where(np.arange(40) % 2, 1, -1)
views = [y[:, None] + rng.normal(size=(40, 2)) for _ in range(5)]
np.savez("views.npz", *views)
agents = [(f"a{k}", LogisticRegression()) for k in range(5)]
team = Team(agents, policy.uniform(topology.ring(5)), rule=Stubborn(0.3)).fit(views, y)
team.save("team")
np.save("before.npy", team.run(views).statistics)
"""
LOAD = """
import numpy as np
from collegium import Team

team = Team.load("team")
np.save("after.npy", team.run(list(np.load("views.npz").values())).statistics)
print(team.rule)
"""


def test_a_team_with_it_is_saved_and_loaded(installed):
    run("-c", SAVE, cwd=installed)
    assert run("-c", LOAD, cwd=installed).strip() == "Stubborn(share=0.3)"
    before, after = np.load(installed / "before.npy"), np.load(installed / "after.npy")
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(before, collaborate(before[0], RING, rule=stubborn(0.3)).statistics)


ASK = """
import json
import numpy as np
from collegium.live import launcher
from live_processes import ask_all, statistics

network = launcher.members("net")
scores = np.loadtxt("scores.csv", delimiter=",")
print(json.dumps(statistics(ask_all(network, scores)).tolist()))
"""


@pytest.mark.live
@pytest.mark.timeout(240)
def test_live_agents_decide_with_it(installed):
    settings = ("--rounds", 6, "--port", 0, "--http-port", 0, "--deadline", 30, "--view-deadline", 30)
    collegium(
        "live", "init", "--out", "net", "--topology", "ring:5", "--rule", "stubborn:0.3", *settings, cwd=installed
    )
    assert 'rule = "stubborn:0.3"' in (installed / "net" / "agent-0.toml").read_text()
    try:
        collegium("live", "up", "net", cwd=installed)
        live = np.array(json.loads(run("-c", ASK, cwd=installed)))
        status = json.loads(collegium("live", "status", "net", "--json", cwd=installed))
        with running("--live", installed / "net") as dashboard:
            about = dashboard.ask("GET", "/api/about")[2]
    finally:
        collegium("live", "down", "net", cwd=installed)
    np.testing.assert_array_equal(live, collaborate(X, RING, 6, stubborn(0.3)).statistics)
    assert {one["rule"] for one in status} == {"stubborn:0.3"}
    assert (about["kind"], about["rule"]) == ("live", "stubborn:0.3")


def test_the_dashboard_offers_and_runs_it(installed):
    with running("--scores", installed / "scores.csv", "--network", "ring:5") as dashboard:
        about = dashboard.ask("GET", "/api/about")[2]
        answer = dashboard.what_if("7", rule="stubborn:0.25")
        chosen = dashboard.what_if("7", rule="stubborn", rounds=3)
        status, _, refusal = dashboard.ask("POST", "/api/what-if", {"item": "7", "changes": {"rule": "stubborn:2"}})
    assert "stubborn" in about["rules"]
    assert answer["rule"] == "stubborn:0.25"
    np.testing.assert_array_equal(
        answer["item"]["statistics"], collaborate(X, RING, rule=stubborn(0.25)).statistics[:, 7]
    )
    np.testing.assert_array_equal(chosen["item"]["statistics"], collaborate(X, RING, 3, stubborn(0.3)).statistics[:, 7])
    assert answer["item"]["settled"] is None  # there is no proof for it
    assert (status, "share must lie between 0 and 1" in refusal["error"]) == (422, True)


def test_a_study_uses_it(installed):
    """From the command line, with agents that it trains; numbers as from the records it leaves."""
    from collegium.lab.records import Store

    collegium("study", "run", EXAMPLE / "study.py:Stubbornness", "--reps", "2", "--out", "lab", cwd=installed)
    collegium("study", "figures", "--out", "lab", cwd=installed)
    table = pandas.read_parquet(installed / "lab" / "tables" / "stubbornness.parquet")
    assert len(table) == 2 * 3 * 11
    assert (installed / "lab" / "figures" / "stubbornness.png").is_file()
    ring, store = policy.uniform(topology.ring(9)), Store(installed / "lab" / "records")
    for key in [path.stem for path in (installed / "lab" / "records").glob("*.npz")]:
        scores = store.get(key).scores
        errors = collaborate(scores.statistics("test"), ring, 10, stubborn(0.3)).errors(scores.y_test).mean(axis=1)
        found = [part["value"].to_numpy() for _, part in table[table["share"] == 0.3].groupby("repetition")]
        assert any(np.allclose(values, errors, rtol=0, atol=1e-12) for values in found)
