import subprocess
import sys

import numpy as np

from collegium.cli import demo


def test_demo_prints_the_table_and_draws(cli, tmp_path):
    shown = cli("demo", "--reps", 3, "--plot", tmp_path / "demo.png").out
    for row in (
        "agent 0 alone",
        "agent 8 alone",
        "vote",
        "average",
        "after 1 round",
        "after 2 rounds",
        "after 5 rounds",
    ):
        assert row in shown
    assert str(20 * 24 * 64) in shown  # bits of 20 rounds
    assert "next:" in shown
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_talking_helps():
    """After 20 rounds the mean agent beats the best agent alone: the point of it all."""
    from collegium import policy, topology

    network = policy.uniform(topology.erdos_renyi(9, links=24, seed=7))
    repetition, _ = demo._repeat(network, np.random.default_rng(0))
    assert repetition.rounds[20].mean() < repetition.rounds[0].min()


def test_demo_needs_no_torch(tmp_path):
    code = """
import sys
from collegium.cli.app import main
sys.argv[1:] = ["demo", "--reps", "1", "--plot", sys.argv[1]]
try:
    main()
finally:
    assert "torch" not in sys.modules, "torch was loaded"
"""
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path / "d.png")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_module_is_the_command(tmp_path):
    shown = subprocess.run([sys.executable, "-m", "collegium", "demo", "--help"], capture_output=True, text=True)
    assert shown.returncode == 0
    assert "--reps" in shown.stdout


def test_version_and_unknown_command(cli):
    assert cli("--version").out.startswith("collegium 0.")
    assert "No such command" in cli("demmo", code=2).err
