"""The command line as a whole: its help, its completion, and slips of the hand."""

import errno
import os
import re
import subprocess
import sys

import pytest

from collegium.cli import app, study


def complete(*words, shell="bash"):
    """What the shell is told when Tab is pressed after these words."""
    asked = {
        "bash": {"COMP_WORDS": "\n".join(("collegium", *words)), "COMP_CWORD": str(len(words))},
        "zsh": {"_TYPER_COMPLETE_ARGS": " ".join(("collegium", *words))},
        "fish": {"_TYPER_COMPLETE_ARGS": " ".join(("collegium", *words)), "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    env = os.environ | asked | {"_COLLEGIUM_COMPLETE": f"complete_{shell}"}
    run = subprocess.run([sys.executable, "-m", "collegium"], env=env, capture_output=True, text=True)
    assert not run.stderr
    return [line for line in run.stdout.splitlines() if line]


def test_help_fits_80_columns_one_line_each():
    """Every command is there, in its panel, and none takes a second line."""
    env = os.environ | {"COLUMNS": "80", "NO_COLOR": "1"}
    shown = subprocess.run(
        [sys.executable, "-m", "collegium", "--help"], env=env, capture_output=True, text=True
    ).stdout
    for panel, commands in app.COMMANDS.items():
        assert f"─ {panel} ─" in shown
        for name, line in commands.items():
            assert re.search(rf"│ {name} +{re.escape(line)} +│", shown), name


@pytest.mark.parametrize("name", [name for commands in app.COMMANDS.values() for name in commands])
def test_every_command_has_help(cli, name):
    shown = cli(name, "--help").out
    assert f"Usage: collegium {name}" in shown
    assert not any(ord(letter) > 0xFFFF for letter in shown), "a word between colons became a picture"


def test_slips_are_guessed(cli):
    assert "Did you mean 'simulate'" in cli("simulat", code=2).err
    assert "Did you mean 'list'" in cli("data", "lst", code=2).err
    assert "--rounds" in cli("simulate", "s.csv", "ring:3", "--round", "3", code=2).err


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["d"], ["demo", "doctor", "dashboard", "data"]),
        (["live", "d"], ["down", "demo"]),
        (["simulate", "--ro"], ["--rounds"]),
        (["network", "gr"], ["grid:3x4"]),
        (["network", "ring:12", "--policy", "m"], ["metropolis"]),
        (["simulate", "s.csv", "ring:12", "--rule", "de"], ["degroot", "delta-trigger:0.1"]),
        (["compare", "--data", "d"], ["digits"]),
        (["data", "check", "m"], ["modelnet", "multiple_features"]),
        (["study", "run", "cifar-h"], ["cifar-hetero-gain", "cifar-hetero-main"]),
        (["simulate", "sco"], []),  # then the shell offers files
    ],
)
def test_completion(words, offered):
    assert complete(*words) == offered


def test_completion_of_other_shells():
    assert [line.split("\t")[0] for line in complete("d", shell="fish")] == ["demo", "doctor", "dashboard", "data"]
    assert complete("ne", shell="zsh")[0].startswith("""_arguments '*: :(("network":"Build""")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(shell, tmp_path):
    """As typer does it: a script for the shell, in the user's home."""
    code = (
        "import shellingham, sys; shellingham.detect_shell = lambda *a, **k: (sys.argv.pop(), ''); "
        "from collegium.cli.app import main; main()"
    )
    env = os.environ | {"HOME": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", code, "--install-completion", shell], env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    written = "".join(file.read_text() for file in tmp_path.rglob("*") if file.is_file())
    assert f"_COLLEGIUM_COMPLETE=complete_{shell}" in written


def test_bash_itself_completes(tmp_path):
    """The script that --show-completion prints, in a real bash."""
    (tmp_path / "collegium").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m collegium "$@"\n')
    (tmp_path / "collegium").chmod(0o755)
    script = (
        'eval "$(collegium --show-completion)"; COMP_WORDS=(collegium net); COMP_CWORD=1; '
        '_collegium_completion collegium; echo "${COMPREPLY[@]}"'
    )
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True)
    assert run.stdout.strip() == "network", run.stderr


def test_help_and_completion_load_little():
    """Only typer and rich: somebody is waiting with a finger on Tab."""
    for name, heavy in {
        "app": {"numpy", "scipy", "sklearn"},
        "study": {"numpy", "scipy", "sklearn"},
        "network": {"scipy", "sklearn"},
        "simulate": {"scipy", "sklearn"},
        "certify": {"scipy", "sklearn"},
    }.items():
        code = f"import sys, collegium.cli.{name}; print(*({heavy} & set(sys.modules)))"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert not run.stdout.strip(), name


def test_the_names_offered_are_the_studies():
    from collegium.lab.studies import STUDIES

    assert tuple(STUDIES) == study.NAMES


def test_the_first_run_says_that_it_compiles(cli, tmp_path, monkeypatch):
    (tmp_path / "s.csv").write_text("1,2\n-1,3\n")
    cli("simulate", tmp_path / "s.csv", "ring:2")
    assert cli("simulate", tmp_path / "s.csv", "ring:2").err == ""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))  # numba has read it by now, and looks elsewhere
    assert "compiles the arithmetic, once" in cli("simulate", tmp_path / "s.csv", "ring:2").err


def test_what_cannot_be_written_is_refused_before_the_work(cli, tmp_path, monkeypatch):
    (tmp_path / "s.csv").write_text("1,2\n-1,3\n")
    (tmp_path / "folder.csv").mkdir()
    refused = cli("compare", "--data", "digits", "--out", tmp_path / "folder.csv", code=2)
    assert refused.err.endswith("folder.csv: it is a folder\n")
    assert not refused.out
    assert "has no file of scores" in cli("simulate", tmp_path / "folder.csv", "ring:2", code=2).err
    assert (
        "not a file, but a folder"
        in cli("simulate", tmp_path / "s.csv", "ring:2", "--labels", tmp_path / "folder.csv", code=2).err
    )
    monkeypatch.setattr("collegium.cli.tables.find_spec", lambda name: None)
    refused = cli("simulate", tmp_path / "s.csv", "ring:2", "--out", tmp_path / "o.parquet", code=2)
    assert "pip install 'collegium[tables]'" in refused.err


def test_a_file_in_a_folder_that_may_not_be_read_gets_a_sentence(cli, tmp_path, monkeypatch):
    """Asking whether there is a file is refused already; root may ask, so it is refused here."""
    path = tmp_path / "locked" / "scores.csv"

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("collegium.cli.simulate.read_scores", refuse)
    answer = cli("simulate", path, "ring:4", code=2)
    assert answer.err == f"collegium: {path}: Permission denied; choose one that you may read and write\n"
