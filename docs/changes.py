"""The fragments in changes/ as one page: part of the site, and `make changelog` writes it as CHANGELOG.md."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

FRAGMENTS = Path(__file__).parents[1] / "changes"
KINDS = ("incompatible", "added", "changed", "fixed")
_HEADING = re.compile(rf"(?im)^(?:##\s*)?({'|'.join(KINDS)})\s*$")


def on_files(files: Files, config: Any) -> Files:
    """mkdocs calls this with the pages it found."""
    files.append(File.generated(config, "changes.md", content=page(FRAGMENTS).replace("](../docs/", "](")))
    return files


def page(folder: Path) -> str:
    """All fragments of a folder, what breaks first."""
    entries: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*.md")):
        if path.name != "README.md":
            for kind, text in parts(path):
                entries[kind].append(text)
    return "# What changed\n\n" + "\n".join(
        f"## {kind.capitalize()}\n\n" + "\n".join(texts) + "\n" for kind, texts in entries.items() if texts
    )


def parts(fragment: Path) -> list[tuple[str, str]]:
    """The lists of a fragment by their headings; a first line that only names the fragment is left out."""
    before, *rest = _HEADING.split(re.sub(r"\A# .*\n", "", fragment.read_text()))
    if before.strip() or not rest:
        raise ValueError(f"{fragment.name} must have its entries under headings among {', '.join(KINDS)}")
    return [(kind.lower(), text.strip()) for kind, text in zip(rest[::2], rest[1::2], strict=True)]


if __name__ == "__main__":
    sys.stdout.write(page(FRAGMENTS).replace("](../docs/", "](docs/"))
