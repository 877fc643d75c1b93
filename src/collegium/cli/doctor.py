"""`collegium doctor`: what is installed, found and free on this machine, and what to do about the rest."""

import json
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

import collegium
from collegium._util import machine
from collegium.cli import compiled
from collegium.cli.clock import clock_error, set_back
from collegium.cli.requirements import EXTRAS, requirements
from collegium.errors import CollegiumError

_AGENTS = 9  # of a live demo: so many ports from the first one are checked
_LITTLE_MEMORY, _LITTLE_DISK = 1e9, 1e9
_SYMBOLS = {"ok": ("✓", "green"), "note": ("·", "yellow"), "problem": ("✗", "red")}


class Finding(NamedTuple):
    """One line: what was checked, what was found, and what to do if anything."""

    topic: str
    state: str  # ok, note or problem
    found: str
    advice: str = ""


def doctor(
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder that holds the data sets.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")] = False,
) -> None:
    """Check Python, extras, data, ports, clock, cores and memory, and advise what to do.

    Ends with exit code 1 if something is broken: what is only missing or taken is a note.
    """
    findings = list(examine(data))
    if as_json:
        typer.echo(json.dumps([one._asdict() for one in findings]))
    else:
        _print(findings)
    if any(one.state == "problem" for one in findings):
        raise typer.Exit(1)


def examine(data: Path | None = None) -> Iterator[Finding]:
    """All findings, one after the other."""
    yield Finding("Python", "ok", f"{platform.python_version()} in {sys.prefix}")
    yield Finding("Collegium", "ok", f"{collegium.__version__} in {Path(collegium.__file__).parent}")
    yield from _packages()
    yield _kernels()
    yield from _data(data)
    yield _blender()
    yield _ports()
    yield _clock()
    yield _cores()
    yield from _room()


def _packages() -> Iterator[Finding]:
    """The packages Collegium needs, then each extra."""
    wanted = requirements()
    if not wanted:
        yield Finding("packages", "note", "not installed by pip, so nothing is known of its packages")
    for extra, needs in wanted.items():
        have = machine.versions(need.name for need in needs)
        missing = [need.name for need in needs if need.name not in have]
        old = [
            f"{need.name} {have[need.name]}, wanted {need.specifier}"
            for need in needs
            if need.name in have and not need.specifier.contains(have[need.name], prereleases=True)
        ]
        topic = f"extra {extra}" if extra else "packages"
        install = f"pip install 'collegium[{extra}]'" if extra else "pip install --force-reinstall collegium"
        if old:
            yield Finding(topic, "problem", f"{'; '.join(old)}", f"{install} --upgrade" if extra else install)
        elif missing:
            state, rest = ("note", f", for {EXTRAS[extra]}") if extra in EXTRAS else ("problem", "")
            yield Finding(topic, state, f"without {', '.join(missing)}{rest}", install)
        else:
            yield Finding(topic, "ok", ", ".join(f"{name} {number}" for name, number in have.items()))


def _kernels() -> Finding:
    """Whether numba's work is done already, and can be kept."""
    kept = compiled.place()
    nearest = next((folder for folder in (kept, *kept.parents) if folder.exists()), kept)
    if compiled.is_compiled():
        return Finding("kernels", "ok", f"compiled, kept in {kept}")
    if os.access(nearest, os.W_OK):
        return Finding("kernels", "note", f"not compiled yet, to be kept in {kept}", "the first run does it, once")
    return Finding("kernels", "note", f"{kept} cannot be written: each run compiles anew", "set NUMBA_CACHE_DIR")


def _data(root: Path | None) -> Iterator[Finding]:
    from collegium.data.folders import not_found
    from collegium.data.inventory import NAMES, take_stock

    for name in NAMES:
        if name == "digits":  # they come with scikit-learn, which takes a second to load
            yield _digits()
            continue
        try:
            stock = take_stock(name, root)
            if not stock.found:
                yield Finding(f"data {name}", "note", "not found", not_found(name, root, stock.obtain))
                continue
        except CollegiumError as problem:
            yield Finding(f"data {name}", "problem", str(problem))
            continue
        found = f"{stock.remark} in {stock.folder}"
        if stock.problems:
            more = f" (and {len(stock.problems) - 1} more)" if len(stock.problems) > 1 else ""
            yield Finding(f"data {name}", "problem", f"{stock.problems[0]}{more}", f"collegium data check {name}")
        else:
            yield Finding(f"data {name}", "ok", found)


def _digits() -> Finding:
    found = find_spec("sklearn")
    file = Path(found.origin or "").parent / "datasets" / "data" / "digits.csv.gz" if found else Path()
    if file.is_file():
        return Finding("data digits", "ok", "come with scikit-learn")
    return Finding("data digits", "problem", "missing from scikit-learn", "pip install --force-reinstall scikit-learn")


def _blender() -> Finding:
    from collegium.data.environment import VARIABLE, whereabouts

    try:
        python = whereabouts()
    except CollegiumError as problem:
        return Finding("Blender", "note", str(problem))
    if python is None:
        return Finding("Blender", "note", "not here, for rendering meshes", "collegium data fetch blender")
    if not python.exists():
        return Finding("Blender", "problem", f"{VARIABLE} names {python}, which is not there", f"unset {VARIABLE}")
    return Finding("Blender", "ok", str(python))


def _ports() -> Finding:
    """The ports that agents of `collegium live init` and the dashboard listen on by default."""
    from collegium.cli.live.create import init
    from collegium.dashboard import PORT

    usual = signature(init).parameters
    firsts = [usual[name].default for name in ("port", "http_port")]
    wanted = [port for first in firsts for port in range(first, first + _AGENTS)]
    taken = [port for port in (*wanted, PORT) if not _is_free(port)]
    meant = (
        f"{' and '.join(f'{first}–{first + _AGENTS - 1}' for first in firsts)} for live agents, {PORT} the dashboard's"
    )
    if taken:
        found = f"{', '.join(map(str, taken))} {'is' if len(taken) == 1 else 'are'} taken ({meant})"
        advice = "collegium live init --port 0 --http-port 0 and collegium dashboard --port 0 take free ones"
        return Finding("ports", "note", found, advice)
    return Finding("ports", "ok", f"{meant}: all free")


def _is_free(port: int) -> bool:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a connection that has just ended is no hindrance
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _clock() -> Finding:
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    if set_back(Path(collegium.__file__).parent):
        return Finding(
            "clock", "problem", f"{now} is before Collegium was installed", "set it: certificates depend on it"
        )
    error = clock_error()
    if error is None:
        return Finding("clock", "note", f"{now}; whether it is right is not known", "compare it with another host's")
    if error == float("inf"):
        return Finding(
            "clock", "note", f"{now}; not synchronised", "timedatectl set-ntp true: agents allow certificates an hour"
        )
    return Finding("clock", "ok", f"{now}, synchronised to within {1e3 * error:.0f} ms")


def _cores() -> Finding:
    usable, share, all_ = machine.cores(), machine.core_share(), os.cpu_count() or 1
    found = f"{usable} usable of {all_}" + (f", limited to the time of {share:g}" if share is not None else "")
    threads = os.environ.get("COLLEGIUM_THREADS")
    if threads:
        found += f"; COLLEGIUM_THREADS is {threads}"
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > 1.5 * usable:
        return Finding("cores", "note", f"{found}; the load is {load:.0f}", "everything takes longer just now")
    return Finding("cores", "ok", found)


def _room() -> Iterator[Finding]:
    """Memory, and disks: here, where demos write, and of the cache."""
    from collegium.data.folders import cache_folder

    free = machine.free_memory()
    if free is None:
        yield Finding("memory", "note", "not known on this system")
    else:
        little = free < _LITTLE_MEMORY
        yield Finding("memory", "note" if little else "ok", f"{_size(free)} free", "close something" if little else "")
    places = {"this folder": Path.cwd()}
    try:
        places["cache"] = cache_folder()
    except CollegiumError as problem:
        yield Finding("cache", "problem", str(problem))
    for topic, place in places.items():
        nearest = next(folder for folder in (place, *place.absolute().parents) if folder.is_dir())
        left = shutil.disk_usage(nearest).free
        found = f"{_size(left)} free in {place}"
        if not os.access(nearest, os.W_OK):
            yield Finding(
                topic,
                "note",
                f"{place} cannot be written",
                "go elsewhere" if topic != "cache" else "set COLLEGIUM_CACHE",
            )
        elif left < _LITTLE_DISK:
            yield Finding(topic, "note", found, "make room")
        else:
            yield Finding(topic, "ok", found)


def _size(count: float) -> str:
    return f"{count / 1e9:.1f} GB"


def _print(findings: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, markup=False)
    table = Table.grid(padding=(0, 1))
    for one in findings:
        symbol, colour = _SYMBOLS[one.state]
        text = Text(one.found, overflow="fold")
        if one.advice:
            text.append(f"\n→ {one.advice}", style="bold" if one.state == "problem" else "")
        table.add_row(Text(symbol, style=colour), Text(one.topic, style=colour, no_wrap=True), text)
    console.print(table)
    counts = {state: sum(one.state == state for one in findings) for state in _SYMBOLS}
    summary = f"broken: {counts['problem']}" if counts["problem"] else "nothing is broken"
    console.print(f"{summary}; to know of (·): {counts['note']}" if counts["note"] else summary)
