"""`collegium dashboard`, as it is typed: sentences and completion."""

import subprocess
import sys

import pytest


def collegium(*arguments, **environment):
    import os

    command = [sys.executable, "-m", "collegium", "dashboard", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=280, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["s9.csv"], "for a table: --scores s9.csv"),
        (["s9.npz", "--data", "cifar10", "--root", "nowhere"], "with --root"),
    ],
)
def test_the_right_option_is_named(arguments, sentence):
    answer = collegium("--no-open", "--port", "0", *arguments)
    assert answer.returncode == 2
    assert sentence in " ".join(answer.stderr.split())


@pytest.mark.parametrize(
    ("typed", "offered"), [("--data c", "cifar10"), ("--network ri", "ring:"), ("--policy m", "metropolis")]
)
def test_the_shell_completes(typed, offered):
    words = f"collegium dashboard {typed}"
    answer = collegium(_COLLEGIUM_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
    assert offered in answer.stdout
