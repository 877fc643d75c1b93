"""Checks that cannot fail are the commonest flaw of good test suites: walk all of ours for dropped verdicts."""

import ast
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(path for folder in ("src", "tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py"))
VERDICTS = {"allclose", "array_equal", "isclose", "is_strongly_connected"}


def dropped_verdicts(tree: ast.AST) -> list[int]:
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            value = node.value
            called = getattr(value, "func", None)
            name = getattr(called, "attr", getattr(called, "id", ""))
            if isinstance(value, (ast.Compare, ast.Tuple)) or name in VERDICTS:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_verdict_is_dropped(path):
    assert dropped_verdicts(ast.parse(path.read_text())) == []


def test_the_guard_sees_what_it_should():
    assert dropped_verdicts(ast.parse("x == y, 'message'\nnp.allclose(a, b)\na < b\nassert a < b")) == [1, 2, 3]


def starts_a_deaf_child(tree: ast.AST) -> bool:
    """Whether a file speaks of SIGINT and starts processes that may have been born to ignore it."""
    names = [getattr(node, "attr", "") for node in ast.walk(tree)]
    called = [getattr(node.func, "attr", "") for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return "SIGINT" in names and "Popen" in called


def test_children_sent_ctrl_c_were_started_to_hear_it():
    """Whoever runs the tests in the background ignores SIGINT, and so do all children but those of `interruptible`."""
    assert starts_a_deaf_child(ast.parse("a = subprocess.Popen([])\na.send_signal(signal.SIGINT)"))
    helper = ROOT / "tests" / "children.py"
    tests = [path for path in FILES if path.is_relative_to(ROOT / "tests") and path != helper]
    assert [path for path in tests if starts_a_deaf_child(ast.parse(path.read_text()))] == []


def test_nothing_prints_outside_the_command_line():
    for path in (ROOT / "src").rglob("*.py"):
        names = [
            node.func.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert "print" not in names, path


def test_the_fragments_of_changes_become_one_page(tmp_path):
    changes = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "changes.py")))
    for fragment in sorted(changes.FRAGMENTS.glob("*.md")):
        if fragment.name != "README.md":
            assert changes.parts(fragment), fragment.name
    (tmp_path / "one.md").write_text("# One\n\n## fixed\n- A\n  and more\n")
    (tmp_path / "two.md").write_text("Added\n- B\n\nFixed\n- C\n")
    expected = "# What changed\n\n## Added\n\n- B\n\n## Fixed\n\n- A\n  and more\n- C\n"
    assert changes.page(tmp_path) == expected
    (tmp_path / "two.md").write_text("- D\n")
    with pytest.raises(ValueError, match=r"two\.md"):
        changes.page(tmp_path)
