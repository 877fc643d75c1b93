"""The command line as a user meets it: arguments in, text and exit code out."""

import sys
from typing import NamedTuple

import pytest

from collegium.cli.app import main
from own_parts import write_parts


class Answer(NamedTuple):
    out: str
    err: str


@pytest.fixture
def cli(monkeypatch, capsys):
    """Run the command line in this process and check its exit code."""

    def run(*arguments, code=0, width=200):
        monkeypatch.setattr(sys, "argv", ["collegium", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", str(width))
        ended = 0
        try:
            main()
        except SystemExit as end:
            ended = int(end.code or 0)
        answer = Answer(*capsys.readouterr())
        assert ended == code, answer
        return answer

    return run


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A user's own files, in the folder that commands are called in."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.chdir(tmp_path)
    return write_parts(tmp_path)
