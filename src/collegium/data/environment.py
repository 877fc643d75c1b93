"""The environment of its own that Blender lives in: it wants an old NumPy and one version of Python. Found or made."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from collegium._util.progress import progress
from collegium.data import folders
from collegium.errors import BackendError

VARIABLE = "COLLEGIUM_BLENDER"
REQUIREMENTS = ("bpy==5.0.1", "numpy<2")
PYTHON = (3, 11)
"""The only version of Python this Blender is built for."""
NOTICE = "Blender is not here yet: fetching about 400 MB, 1 GB when unpacked, once"
LIBRARIES = "libx11-6 libxrender1 libxfixes3 libxi6 libxkbcommon0 libsm6 libice6 libgl1"
"""The Debian packages whose shared libraries Blender loads."""

_STAMP = "complete"
_TOKEN = "bpy is here"
_TRIAL = f"import bpy; print({_TOKEN[::-1]!r}[::-1])"  # what only repeats its arguments is no Python
_PACKED, _UNPACKED = 400e6, 942e6  # bytes that pip downloads and makes of them


def environment(tell: Callable[[str], None] = lambda sentence: None) -> Path:
    """A Python that can import Blender: the one that is found, else one made now, after `tell` was called to say so."""
    found = find_environment()
    if found is None:
        tell(NOTICE)
        found = make_environment()
    return found


def find_environment() -> Path | None:
    """A Python that can import Blender: what COLLEGIUM_BLENDER names, this one, or the one made earlier."""
    python = whereabouts()
    if python is None:
        return None
    if os.environ.get(VARIABLE):
        _try(python, f"{VARIABLE} names {python}, which cannot import bpy")
    elif python == Path(sys.executable):
        _try(python, "bpy is installed here (remove it to have another one made), but cannot be imported")
    else:
        _try(python, f"Blender in {_home()} cannot be started; remove that folder to have it made again")
    return python


def whereabouts() -> Path | None:
    """Where the Python with Blender should be, without starting it."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    if find_spec("bpy") is not None:
        return Path(sys.executable)
    return _python(_home()) if _complete(_home()) else None


def make_environment() -> Path:
    """Make the environment in the cache folder. One whose making was interrupted is made afresh, a whole one kept."""
    home = _home()
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with folders.locked(home.parent, BackendError("another process is fetching Blender just now: wait for it")):
            if not _complete(home):
                shutil.rmtree(home, ignore_errors=True)
                _install(home)
                (home / _STAMP).write_text("\n".join(REQUIREMENTS))
    except OSError as problem:
        raise BackendError(f"cannot make {home}: {problem.strerror or problem}") from None
    _try(_python(home), "Blender is installed, but cannot be started")
    return _python(home)


def variables(scratch: str | os.PathLike[str]) -> dict[str, str]:
    """The environment variables Blender is started with: what it leaves about, it leaves in the folder `scratch`."""
    return os.environ | dict.fromkeys(("BLENDER_USER_RESOURCES", "XDG_CACHE_HOME", "TMPDIR"), os.fspath(scratch))


def explained(output: str) -> str:
    """Why Blender did not start, from what it said on standard error."""
    library = re.search(r"(lib[\w+.-]+\.so[.\d]*): cannot open shared object file", output)
    if library:
        return f"the shared library {library[1]} is missing; on Debian or Ubuntu: apt install {LIBRARIES}"
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "its output is empty"


def _home() -> Path:
    return folders.cache_folder() / "blender"


def _python(home: Path) -> Path:
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _complete(home: Path) -> bool:
    try:
        return (home / _STAMP).read_text() == "\n".join(REQUIREMENTS) and _python(home).exists()
    except OSError:
        return False


def _try(python: Path, otherwise: str) -> None:
    """Start it once: what is missing is better said now than by each worker."""
    with tempfile.TemporaryDirectory() as folder:
        code, said = _run([str(python), "-P", "-c", _TRIAL], variables(folder))
    if code or _TOKEN not in said:
        raise BackendError(f"{otherwise}: {explained(said)}")


def _install(home: Path) -> None:
    interpreter = _interpreter()
    code, said = _run([interpreter, "-m", "venv", "--without-pip", str(home)])
    if code:
        raise BackendError(f"cannot make an environment for Blender in {home}: {explained(said)}")
    into = ["--python", str(_python(home)), "install", "--quiet", "--no-input", "--disable-pip-version-check"]
    command = [*_pip(home), *into, *REQUIREMENTS]
    scratch = home / "tmp"  # what pip downloads is part of what grows here
    scratch.mkdir()
    with progress("fetching Blender", _UNPACKED + _PACKED, in_bytes=True) as bar, ThreadPoolExecutor(1) as pool:
        running = pool.submit(_run, command, os.environ | {"TMPDIR": str(scratch)})
        while not wait([running], timeout=0.5).done:
            bar.move_to(max(bar.completed, _bytes_in(home)))
    code, said = running.result()
    shutil.rmtree(scratch, ignore_errors=True)
    if code:
        raise BackendError(f"Blender could not be fetched, pip reports: {explained(said)}")


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # gone meanwhile
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _interpreter() -> str:
    version = f"{PYTHON[0]}.{PYTHON[1]}"
    found = sys.executable if sys.version_info[:2] == PYTHON else shutil.which(f"python{version}")
    if found is None:
        raise BackendError(
            f"{REQUIREMENTS[0]} needs Python {version}, which is not here: install it, "
            f"or set {VARIABLE} to a Python that can import bpy"
        )
    return found


def _pip(home: Path) -> list[str]:
    """A pip that can install elsewhere: Debian ships Python without the means to put one into a new environment."""
    others = (sys.executable, getattr(sys, "_base_executable", ""), shutil.which("python3"), shutil.which("python"))
    for python in dict.fromkeys(filter(None, others)):
        code, said = _run([python, "-m", "pip", "--version"])
        version = re.match(r"pip (\d+)\.(\d+)", said)
        if not code and version and (int(version[1]), int(version[2])) >= (22, 3):
            return [python, "-m", "pip"]
    if _run([str(_python(home)), "-m", "ensurepip"])[0] == 0:
        return [str(_python(home)), "-m", "pip"]
    raise BackendError(
        "fetching Blender needs pip 22.3 or later, and none was found (on Debian or Ubuntu: apt install python3-pip)"
    )


def _run(command: list[str], env: dict[str, str] | None = None) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=env
        )
    except OSError as problem:
        return 1, f"{command[0]}: {problem.strerror or problem}"
    return done.returncode, done.stdout + done.stderr
