"""The command line as a user meets it: arguments in, text and exit code out."""

import sys
from typing import NamedTuple

import pytest

from collegium.cli.app import main


class Answer(NamedTuple):
    out: str
    err: str


@pytest.fixture
def cli(monkeypatch, capsys):
    """Run the command line in this process and check its exit code."""

    def run(*arguments, code=0):
        monkeypatch.setattr(sys, "argv", ["collegium", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        ended = 0
        try:
            main()
        except SystemExit as end:
            ended = int(end.code or 0)
        answer = Answer(*capsys.readouterr())
        assert ended == code, answer
        return answer

    return run
