r"""Formulas become MathML while the site is built, so that a browser draws them itself and nothing is fetched.

Pages and docstrings write LaTeX between $…$ and $$…$$; the Markdown extension `pymdownx.arithmatex` finds it.
"""

import html
import re
import unicodedata
from typing import Any

from latex2mathml.converter import convert

_FOUND = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_ALPHABETS = {"script": "SCRIPT", "double-struck": "DOUBLE-STRUCK", "fraktur": "FRAKTUR"}
_LETTER = re.compile(r'<(m[in]) mathvariant="(script|double-struck|fraktur)">(\w)</\1>')


def on_page_content(content: str, **_: Any) -> str:
    """mkdocs calls this with the HTML of every page."""
    return _FOUND.sub(lambda found: mathml(html.unescape(found[3]), block=found[2] == "["), content)


def mathml(latex: str, block: bool) -> str:
    """One formula as MathML."""
    # \Bigl and \bigr become signs of a fixed size, and an index then belongs to the sign alone.
    latex = re.sub(r"\\[Bb]ig([lr])\b", lambda side: {"l": r"\left", "r": r"\right"}[side[1]], latex.strip())
    drawn = convert(latex, display="block" if block else "inline")
    # Its hat is the keyboard's, which floats above the letter, and a wide one is no accent to it.
    drawn = drawn.replace("<mo>&#x0005E;</mo>", '<mo stretchy="false">&#x002C6;</mo>')
    drawn = re.sub(r"<mover>(?=<mrow><mi[^<]*</mi></mrow><mo[^>]*>&#x002C6;)", '<mover accent="true">', drawn)
    drawn = drawn.replace("<mi>&#x029F5;</mi>", "<mo>&#x0005C;</mo>")  # its \setminus is in few fonts
    drawn = _LETTER.sub(lambda letter: f"<{letter[1]}>{_variant(letter[3], letter[2])}</{letter[1]}>", drawn)
    # Browsers set functions as if they were letters: 2log2d.
    drawn = re.sub(r"<mi>(log|exp|sign)</mi>", r'<mo lspace="0.17em" rspace="0.17em">\1</mo>', drawn)
    # A wide one is moved sideways on a phone, and not the whole page.
    return f'<div style="overflow: auto hidden; padding: 0.4em 0">{drawn}</div>' if block else drawn


def _variant(letter: str, alphabet: str) -> str:
    """The letter's own character in an alphabet: browsers do not know mathvariant any more."""
    if letter.isdigit():
        return unicodedata.lookup(f"MATHEMATICAL {_ALPHABETS[alphabet]} {unicodedata.name(letter)}")
    size = "CAPITAL" if letter.isupper() else "SMALL"
    kind = _ALPHABETS[alphabet]
    try:
        return unicodedata.lookup(f"MATHEMATICAL {kind} {size} {letter.upper()}")
    except KeyError:  # some are older than the block of alphabets
        return unicodedata.lookup(f"{kind.replace('FRAKTUR', 'BLACK-LETTER')} {size} {letter.upper()}")
