"""A self-contained HTML page: one file, nothing fetched, light or dark as the reader likes it."""

import base64
import html
from collections.abc import Iterable, Mapping
from pathlib import Path

from collegium.errors import InputFileError

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #008a64; --bad: #d55e00; --open: #888; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; } img { max-width: 100%; background: white; border-radius: 4px; }
table { border-collapse: collapse; font-size: .85rem; margin: 1rem 0; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td:first-child { white-space: nowrap; } pre { overflow-x: auto; background: var(--soft); padding: .6rem; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } details { margin: .5rem 0 1.5rem; }
summary { cursor: pointer; } .wide { overflow-x: auto; } .holds { color: var(--good); font-weight: 600; }
.fails { color: var(--bad); font-weight: 600; } .open { color: var(--open); font-weight: 600; }
.claim { min-width: 20rem; }
@media (prefers-color-scheme: dark) { img { filter: invert(.93) hue-rotate(180deg); } } /* drawn on white; hues stay */
"""


def write(path: Path, title: str, parts: Iterable[str], style: str = "") -> None:
    """Write a page; `parts` are HTML already."""
    page = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{html.escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<style>{_STYLE}{style}</style></head><body>{''.join(parts)}</body></html>\n"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as problem:
        raise InputFileError(f"cannot write {path}: {problem.strerror or problem}") from None


def image(png: bytes, alt: str) -> str:
    """A picture inside the page."""
    return f"<img alt='{html.escape(alt)}' src='data:image/png;base64,{base64.b64encode(png).decode()}'>"


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Rows of cells that are HTML already (see `cell`), scrolled sideways where the window is narrow."""
    top = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return f"<div class='wide'><table>{f'<tr>{top}</tr>' if top else ''}{body}</table></div>"


def cell(value: str | float, kind: str = "") -> str:
    """A cell: text as it is, a number to five figures, nothing for NaN."""
    if isinstance(value, str):
        return f"<td{f' class={kind!r}' if kind else ''}>{html.escape(value)}</td>"
    return f"<td class='number'>{'' if value != value else f'{value:.5g}'}</td>"


def listed(facts: Mapping[str, str]) -> str:
    """Facts by name."""
    return table((), ([cell(name), cell(value)] for name, value in facts.items()))
