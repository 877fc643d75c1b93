"""An agent's file: what init writes is read back, and every mistake in it is one sentence that names the place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from collegium import policy, protocol, topology
from collegium.errors import InputFileError
from collegium.live import config
from collegium.live.folder import NetworkSettings, create

OVER = policy.metropolis(topology.ring(3))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    create(tmp_path / "net", OVER, None, NetworkSettings(tls=False, rule=protocol.DeltaTrigger(0.25)))
    return tmp_path / "net" / "agent-1.toml"


def edited(file: Path, old: str, new: str) -> Path:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return file


@pytest.mark.parametrize(
    "rule",
    [
        protocol.DeGroot(),
        protocol.SocialLearning(),
        protocol.DeltaTrigger(0.1),
        protocol.LabelStability(3, 0.2),
        protocol.Quantised(protocol.LabelStability(3, 0.2), bits=5, bound=3.5),
    ],
    ids=str,
)
def test_every_rule_is_read_as_it_was_written(rule: protocol.Rule, tmp_path: Path) -> None:
    files = create(tmp_path / "net", OVER, None, NetworkSettings(rule=rule, rounds=7, seed=3, absent="hold", tls=False))
    read = [config.read(path) for path in files]
    assert all(one.rule() == rule for one in read)
    assert {(one.talk.rounds, one.talk.seed, one.talk.absent) for one in read} == {(7, 3, "hold")}
    assert len({one.policy() for one in read}) == 1
    for k, one in enumerate(read):
        assert {heard.number: heard.weight for heard in one.hears} == {
            int(l): float(OVER.A[l, k]) for l in range(3) if OVER.A[l, k]
        }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rounds = 20", "rounds = 19"),
        ("seed = 0", "seed = 1"),
        ("delta-trigger:0.25", "delta-trigger:0.26"),
        ('absent = "renormalise"', 'absent = "hold"'),
        ("delta-trigger:0.25", "degroot"),
        ("classes = [-1, 1]", "classes = [1, -1]"),
        ("bound = 1000.0", "bound = 999.0"),
    ],
)
def test_what_all_must_agree_on_changes_the_hash(file: Path, old: str, new: str) -> None:
    before = config.read(file).agent_settings()["policy"]
    assert config.read(edited(file, old, new)).agent_settings()["policy"] != before


def test_the_same_rule_in_other_words_has_the_same_hash(file: Path) -> None:
    before = config.read(file).policy()
    assert config.read(edited(file, "delta-trigger:0.25", "DeltaTrigger: threshold=0.250")).policy() == before


def test_the_same_settings_in_other_networks_have_other_hashes(tmp_path: Path) -> None:
    hashes = set()
    for name, over in {"a": OVER, "b": policy.uniform(topology.ring(3)), "c": policy.uniform(topology.ring(4))}.items():
        hashes.add(config.read(create(tmp_path / name, over, None, NetworkSettings(tls=False))[0]).policy())
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("rounds = 20", "round = 20", "talk has no setting 'round': is it misspelt?"),
        ("rounds = 20", "rounds = 0", "talk.rounds: expected int >= 1"),
        ("rounds = 20", 'rounds = "20"', "talk.rounds: expected int, got str"),
        ("[http]", "[htpp]", "the file has no setting 'htpp'"),
        ("port = 8401", "port = 70000", "http.port: expected int <= 65535"),
        ("from_zero = ", "memory_mb = 0\nfrom_zero = ", "limits.memory_mb: expected int >= 1"),
        ("number = 1\n", "", "agent lacks 'number'"),
        ("longest = 2.0", "longest = -1.0", "longest"),
        ("item = 15.0", "item = 0.5", "the deadline of an item (0.5 s) is shorter than that of a view (1 s)"),
        ("from_zero = 2000.0", "from_zero = 0.0", "limits.from_zero: expected float > 0"),
        ("bound = 1000.0", "bound = 0.0", "talk.bound: expected float > 0"),
        ("reachable = 3", "reachable = -1", "agent.reachable: expected int >= 0"),
        ("weight = 0.3333333333333333", "weight = 0.4", "sum to 1, not 1.06667"),
        ("delta-trigger:0.25", "gossip", "talk.rule: there is no rule 'gossip'"),
        ("delta-trigger:0.25", "delta-trigger:confidence=0.25", "delta-trigger takes threshold; given: confidence"),
        ("delta-trigger:0.25", "delta-trigger", "delta-trigger takes threshold; given: none"),
        ("temperature = 1.0", "temperature = inf", "model.temperature must be positive and finite; got inf"),
        ("center = 0.0", "center = nan", "model.center must be finite; got nan"),
        ("gain = 1.0", "gain = inf", "model.gain must be finite; got inf"),
        ("tcp/127.0.0.1:7401", "127.0.0.1:7401", "an endpoint is like tls/10.0.0.3:7403"),
        ("delta-trigger:0.25", "quantised:(social-learning),4,2.0", "take more bits"),
        ("[limits]", "[faults]\nloss = 2.0\n\n[limits]", "probability loss"),
        ("[talk]", "[talk", "is not a TOML file"),
        ("[talk]", "[talk]\nthreshold = 0.1", "talk.threshold is from an earlier version: write the whole rule"),
    ],
)
def test_mistakes_are_named(file: Path, old: str, new: str, sentence: str) -> None:
    with pytest.raises(InputFileError) as refusal:
        config.read(edited(file, old, new))
    assert sentence in str(refusal.value)
    assert str(refusal.value).startswith(str(file))


def test_an_edited_weight_does_not_go_unnoticed(file: Path) -> None:
    text = file.read_text()
    weight = "weight = 0.3333333333333333"
    file.write_text(text.replace(weight, "weight = 0.3", 1).replace(weight, "weight = 0.3666666666666666", 1))
    with pytest.raises(InputFileError, match="not those it was made with"):
        config.read(file)


def test_an_agent_knows_its_neighbours_bounds_and_how_many_it_can_hear_of(tmp_path: Path) -> None:
    over = policy.uniform(topology.ring(9))
    files = create(tmp_path / "net", over, None, NetworkSettings(tls=False, rounds=2, bound=2.5))
    chosen = config.read(edited(files[4], "from_zero = 2000.0", "from_zero = 7.0")).agent_settings()
    assert (chosen["bound"], chosen["bounds"], chosen["largest"]) == (2.5, {3: 2.5, 4: 2.5, 5: 2.5}, 2.5)
    assert chosen["reachable"] == np.count_nonzero(np.linalg.matrix_power(over.A.T, 2)[4]) == 5
    assert chosen["agents"] == [f"agent-{k}" for k in range(9)]
    assert chosen["limits"].from_zero == 7.0
    assert chosen["deadlines"].item == 15.0


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('agents = ["agent-0"', 'agents = ["agent-zero"', "talk.agents has no 'agent-0' at place 0"),
        ("bound = 1000.0", "bound = inf", "every bound must be a finite number"),
        ("reachable = ", "reachable = 9", "agent.reachable is 9"),
    ],
)
def test_names_bounds_and_reach_are_looked_at(file: Path, old: str, new: str, complaint: str) -> None:
    with pytest.raises(InputFileError, match=complaint):
        config.read(edited(file, old, new))
