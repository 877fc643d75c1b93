import json

import numpy as np
import pytest
from scipy import sparse

from collegium import policy, topology


def test_json_has_the_promised_keys(cli):
    facts = json.loads(cli("network", "erdos-renyi:12,links=24,seed=7", "--json").out)
    p = policy.uniform(topology.erdos_renyi(12, links=24, seed=7))
    promised = ["agents", "links", "slem", "perron", "mixing_time", "doubly_stochastic", "rounds_to_1_percent"]
    assert list(facts) == promised
    assert facts["agents"] == 12
    assert facts["links"] == 24
    assert facts["slem"] == p.slem
    assert facts["perron"] == p.perron.tolist()
    assert facts["mixing_time"] == p.mixing_time
    assert facts["doubly_stochastic"] is False


@pytest.mark.parametrize(
    ("written", "agents", "links"),
    [
        ("ring:12", 12, 24),
        ("path:5", 5, 8),
        ("star:9", 9, 16),
        ("grid:3x4", 12, 34),
        ("torus:3x4", 12, 48),
        ("complete:6", 6, 30),
        ("geometric:30,radius=0.5,seed=1", 30, None),
        ("small-world:20,neighbours=4,rewire=0.1,seed=1", 20, 80),
        ("erdos-renyi:9,p=0.4,seed=2", 9, None),
    ],
)
@pytest.mark.parametrize("rule", ["uniform", "metropolis", "laplacian"])
def test_every_topology_and_policy(cli, written, agents, links, rule):
    facts = json.loads(cli("network", written, "--policy", rule, "--json").out)
    assert facts["agents"] == agents
    assert links is None or facts["links"] == links


def test_table_and_files(cli, tmp_path):
    shown = cli("network", "grid:3x4", "--plot", tmp_path / "net.png", "--save", tmp_path / "A.csv").out
    assert "doubly stochastic" in shown
    assert "0.8326" in shown  # σ_A
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")
    back = json.loads(cli("network", tmp_path / "A.csv", "--json").out)
    assert back["slem"] == pytest.approx(policy.uniform(topology.grid(3, 4)).slem, rel=1e-12)


@pytest.mark.parametrize("name", ["A.npy", "A.parquet", "A.npz"])
def test_matrix_files_of_every_kind(cli, tmp_path, name):
    cli("network", "star:5", "--save", tmp_path / name)
    facts = json.loads(cli("network", tmp_path / name, "--json").out)
    assert facts["perron"] == pytest.approx(policy.uniform(topology.star(5)).perron.tolist(), rel=1e-12)


def test_large_networks_skip_what_needs_every_pair(cli, tmp_path):
    shown = cli("network", "small-world:2000,neighbours=6,rewire=0.2", "--plot", tmp_path / "large.pdf").out
    assert "not computed for so many agents" in shown
    assert (tmp_path / "large.pdf").read_bytes().startswith(b"%PDF")
    assert json.loads(cli("network", "small-world:2000,neighbours=6,rewire=0.2", "--json").out)["mixing_time"] is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["rign:12"], "neither a topology nor a file"),
        (["ring"], "write ring:12"),
        (["ring:"], "write ring:12"),
        (["ring:twelve"], "cannot read 'twelve'"),
        (["ring:0"], "at least 1"),
        (["grid:12"], "write grid:3x4"),
        (["grid:3x4x5"], "write grid:3x4"),
        (["erdos-renyi:12,links=5"], "at least 12 are needed"),
        (["erdos-renyi:12"], "wants either links"),
        (["erdos-renyi:12,links=x"], "'x' in"),
        (["erdos-renyi:12,wires=24"], "does not know"),
        (["ring:12", "--policy", "metro"], "there is no policy 'metro'"),
        (["ring:12", "--plot", "x.nonsense"], "must end in one of"),
        (["ring:12", "--plot", "/proc/nowhere/x.png"], "cannot write"),
        (["ring:12", "--save", "x.nonsense"], "must end in .csv, .npy, .parquet, .npz"),
        (["missing.csv"], "neither a topology nor a file"),
        (["x" * 5000], "neither a topology nor a file"),
        (["ring:99999999999"], "between 1 and 100000000"),
        (["ring:" + "9" * 40], "cannot read"),
        (["erdos-renyi:12,links=24,seed=-1"], "got -1"),
        (["erdos-renyi:12,links=24,links=25"], "links is set twice"),
        (["small-world:2000", "--save", "A.csv"], "written sparse, as .npz"),
    ],
)
def test_mistakes_get_a_sentence(cli, arguments, complaint):
    failed = cli("network", *arguments, code=2)
    assert complaint in failed.err
    assert "Traceback" not in failed.err
    assert failed.err.startswith("collegium: ")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("A.csv", "0.5,0.5\n0.5,0.4\n", "column 1 sums to 0.9"),
        ("A.csv", "0.9,0.1\n0.4,0.6\n", "The rows do sum to 1"),
        ("A.csv", "0.5,0.5\n0.5\n", "line 2 has 1 cells"),
        ("A.csv", "a,b\n0.5,x\n0.5,y\n", "'x' in column 'b'"),
        ("A.csv", "", "is empty"),
        ("A.csv", "1,0\n0,1\n", "not strongly connected"),
        ("A.csv", "0,1\n1,0\n", "period 2"),
        ("A.csv", "1,nan\n0,1\n", "NaN"),
        ("A.npy", "not npy", "not a whole NPY file"),
        ("A.npz", "not npz", "save_npz"),
        ("A.parquet", "not parquet", "not a whole Parquet file"),
        ("A.xls", "?", "cannot read .xls"),
        ("A.csv", "--5,1\n1,2\n", "'--5' in column 0"),
        ("A.csv", "²,1\n1,2\n", "'²' in column 0"),
    ],
)
def test_bad_matrix_files_are_refused_by_name(cli, tmp_path, name, content, complaint):
    (tmp_path / name).write_text(content)
    failed = cli("network", tmp_path / name, code=2)
    assert complaint in failed.err
    assert name in failed.err


def test_equal_say_in_a_large_network_can_be_drawn(cli, tmp_path):
    cli("network", "ring:500", "--plot", tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_a_wrong_file_name_is_noticed_before_the_work(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cli("network", "ring:3", "--plot", "a.png", "--save", "b.docx", code=2)
    assert list(tmp_path.iterdir()) == []


def test_networks_whose_eigenvalues_are_not_found_still_have_the_rest(cli):
    facts = json.loads(cli("network", "erdos-renyi:1500,links=1500", "--json").out)
    assert facts["links"] == 1500
    assert facts["slem"] is None or 0.9 < facts["slem"] < 1


def test_brackets_in_names_are_shown_as_they_are(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("A[red].npy", policy.uniform(topology.ring(3)).A)
    assert "A[red].npy" in cli("network", "A[red].npy").out
    (tmp_path / "s.csv").write_text("item,a,b,c\n[/],1,2,3\n")
    assert "[/]" in cli("simulate", tmp_path / "s.csv", "ring:3").out


def test_sparse_files_into_new_folders(cli, tmp_path):
    cli("network", "ring:3", "--save", tmp_path / "new" / "A.npz")
    assert (tmp_path / "new" / "A.npz").exists()


def test_a_matrix_file_is_already_a_policy(cli, tmp_path):
    np.save(tmp_path / "A.npy", policy.uniform(topology.ring(3)).A)
    assert "leave out --policy" in cli("network", tmp_path / "A.npy", "--policy", "metropolis", code=2).err


def test_foreign_sparse_file(cli, tmp_path):
    sparse.save_npz(tmp_path / "A.npz", sparse.csr_matrix(policy.uniform(topology.ring(5)).A))
    assert json.loads(cli("network", tmp_path / "A.npz", "--json").out)["agents"] == 5


def test_trust(cli):
    from collegium import trust

    facts = json.loads(cli("network", "complete:7", "--trust", "--json").out)["trust"]
    found = trust.robustness(topology.complete(7))
    assert facts["liars"] == list(found.liars) == [3, 3]
    assert facts["helpful_links"] == []
    assert facts["robust_rules"] == [
        "trimmed-mean:3", "self-centred:2", "nearest-neighbours:3", "mean-subsequence:2", "outlier-scissor:2",
        "median", "clipped",
    ]  # fmt: skip
    shown = cli("network", "ring:8", "--trust").out
    assert "0–2" in shown
    assert "trimmed-mean:1, nearest-neighbours:1, median, clipped" in shown
    assert "none" in cli("network", "path:8", "--trust").out
    assert "(bounds)" in cli("network", "grid:5x5", "--trust").out


def test_the_fastest_weights(cli):
    facts = {
        rule: json.loads(cli("network", "star:6", "--policy", rule, "--json").out) for rule in ("metropolis", "fastest")
    }
    assert facts["fastest"]["slem"] == pytest.approx(0.8, abs=1e-3)  # of a star: 1 - 1 / (K - 1)
    assert facts["metropolis"]["slem"] > 0.83


@pytest.mark.parametrize("name", ["pairwise", "eigenvalue-steps:", "alternating"])
def test_a_schedule_without_its_network_says_so(cli, name):
    said = cli("network", name, code=2).err
    assert f"{name.strip(':')} is a schedule of a network, which is missing: write {name.strip(':')}:ring:12" in said


def test_help_offers_no_schedule_that_is_refused(cli):
    assert "schedule" not in cli("network", "--help").out
    assert "schedule" in cli("simulate", "--help").out


@pytest.mark.parametrize("command", ["network", "simulate", "certify", "tune"])
def test_the_network_may_be_given_by_its_name_in_every_command(cli, tmp_path, command):
    y = np.where(np.arange(40) % 2, 1, -1)
    rows = np.column_stack([np.random.default_rng(0).normal(size=(40, 5)) + y[:, None], y])
    np.savetxt(tmp_path / "s.csv", rows, delimiter=",", header="a,b,c,d,e,label", comments="")
    at = (command,) if command == "network" else (command, tmp_path / "s.csv")
    by_name = cli(*at, "--network", "ring:5").out
    assert by_name == cli(*at, "ring:5").out
    assert by_name != cli(*at, "star:5").out
    for both in ((), ("ring:5", "--network", "ring:5")):
        assert "give one network, such as ring:12 or --network ring:12" in cli(*at, *both, code=2).err
