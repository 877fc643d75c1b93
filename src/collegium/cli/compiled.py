"""Whether numba has compiled the arithmetic already, without loading it: the first run takes longer, and prints why."""

import os
import sys
from pathlib import Path

import typer

import collegium


def place() -> Path:
    """Where compiled code is kept: NUMBA_CACHE_DIR, beside the source, or in the user's cache, as numba chooses."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    package = Path(collegium.__file__).parent / "kernels"
    return package / "__pycache__" if os.access(package, os.W_OK) else Path.home() / ".cache" / "numba"


def is_compiled() -> bool:
    """Whether there is any of it for this Python; numba itself sees to it that it is that of today's source."""
    tag = f"py{sys.version_info.major}{sys.version_info.minor}"
    return next(place().glob(f"**/arithmetic.*.{tag}.nbi"), None) is not None


def announce() -> None:
    """Print why the first run takes longer."""
    if not is_compiled():
        typer.echo("the first run compiles the arithmetic, once: some ten seconds more", err=True)
