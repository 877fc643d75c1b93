"""Named checks: run one by one by pytest, skipped openly, all failures in one error."""

import subprocess
import sys
from dataclasses import dataclass
from unittest import SkipTest

import pytest

from collegium.checks import Check, base
from collegium.errors import CheckError
from collegium.protocol import registry


def fails(sentence):
    def function():
        raise CheckError(sentence)

    return function


def raises():
    raise ZeroDivisionError("of\n  nothing")


def skips():
    raise SkipTest("no time")


def test_all_failures_are_in_one_error_a_line_each():
    checks = [
        Check("first", fails("is wrong")),
        Check("second", lambda: None),
        Check("third", raises),
        Check("fourth", fails("is wrong")),
        Check("fifth", fails("never tried"), "not today"),
    ]
    with pytest.raises(CheckError) as refusal:
        base.run("it", checks)
    assert str(refusal.value).splitlines() == [
        "it fails 3 of 5 checks",
        "  first: is wrong",
        "  third: ZeroDivisionError: of nothing",
        "  fourth: the same as first",
    ]


def test_what_held_is_returned_and_what_was_skipped_says_why():
    checks = [Check("a", lambda: None), Check("b", lambda: "b, nearly"), Check("c", raises, "no c"), Check("d", skips)]
    assert base.run("it", checks) == ["a", "b, nearly", "c: skipped, no c", "d: skipped, no time"]


def test_a_check_is_called_by_its_name():
    assert str(Check("a name", skips)) == "a name"
    with pytest.raises(SkipTest, match="no time"):
        Check("a name", skips)()
    with pytest.raises(CheckError, match="ZeroDivisionError: of") as refusal:
        Check("a name", raises)()
    assert isinstance(refusal.value.__cause__, ZeroDivisionError)


def test_pytest_runs_them_one_by_one(tmp_path):
    (tmp_path / "test_part.py").write_text(
        "import pytest\n"
        "from collegium.checks import Check, rule_checks\n"
        "from collegium.protocol import DeGroot\n"
        "def bad():\n"
        "    raise ValueError('bad')\n"
        "PARTS = [Check('good', lambda: None), Check('bad', bad), Check('left out', bad, 'not here')]\n"
        "@pytest.mark.parametrize('check', [*PARTS, *rule_checks(DeGroot())[:2]], ids=str)\n"
        "def test_part(check):\n"
        "    check()\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", "-rs", "--rootdir", tmp_path, tmp_path]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=tmp_path)
    for line in (
        "test_part[good] PASSED",
        "test_part[bad] FAILED",
        "test_part[left out] SKIPPED (not here)",
        "test_part[is a frozen dataclass] PASSED",
        "1 failed, 3 passed, 1 skipped",
    ):
        assert line in ended.stdout, ended.stdout


@dataclass
class Open:
    size: int = 1


@dataclass(frozen=True)
class Drifts:
    size: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "size", self.size / 2)


@dataclass(frozen=True)
class Unequal:
    def __eq__(self, other):
        return False

    def __hash__(self):
        return 0


@pytest.mark.parametrize(
    ("part", "failed"),
    [
        (Open(), {"is a frozen dataclass"}),
        (3, {"is a frozen dataclass"}),
        (Unequal(), {"equals itself after pickling"}),
        (Drifts(), {}),
    ],
)
def test_settings_are_frozen_and_compare_by_value(part, failed):
    *kept, written = base.settings_checks(part, "rule")
    for check in kept:
        if str(check) in failed:
            with pytest.raises(CheckError):
                check()
        else:
            assert check() == str(check)
    assert "has no name to write it by" in written.skipped


def test_a_part_with_a_name_is_written_and_read(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {"drifts": Drifts})
    *_, written = base.settings_checks(Drifts(), "links")
    with pytest.raises(CheckError, match="is no links"):
        written()
    monkeypatch.setattr(registry, "_of_kind", lambda part, written, what: part)
    with pytest.raises(CheckError, match=r"size=0\.25.*: every setting must be a field of the dataclass, kept as"):
        written()
