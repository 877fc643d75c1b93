"""Every Python block of the README and the documentation runs, and every paper cited has its entry."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def assert_runs(script: Path, folder: Path) -> None:
    ended = subprocess.run([sys.executable, str(script)], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda page: page.name
)
def test_blocks_run(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    script = tmp_path / f"{page.stem}.py"
    script.write_text("\n".join(blocks))
    assert_runs(script, tmp_path)


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(script, tmp_path):
    assert_runs(script, tmp_path)


def test_every_citation_has_an_entry():
    entries = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "src/collegium/refs.bib").read_text(), re.MULTILINE))
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        for group in re.findall(r"\[((?:[a-z]+\d{4}[^\[\]]*))\]", path.read_text()):
            cited |= set(re.findall(r"\b[a-z]+\d{4}\b", group))
    assert cited == entries


def test_commands_named_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
