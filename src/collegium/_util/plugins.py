"""A user's own parts: an entry point of an installed package by its name, or a Python file as FILE.py:NAME.

A file is loaded by its path, so that any process that can read it can load it: what goes to workers is the text, never
the object. Its folder is searched last by imports, for what lies beside it.
"""

from __future__ import annotations

import ast
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256
from importlib import import_module, metadata
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

from collegium.errors import CollegiumError, InputFileError, brief

DATA = "collegium.data"
MODELS = "collegium.models"
STUDIES = "collegium.studies"
FORM = "FILE.py:NAME"


def load(written: str, group: str, known: Iterable[str] = ()) -> Any:
    """The object meant by `FILE.py:NAME`, or by the name of an entry point of a group such as `collegium.data`.

    known: what else the user could have written there, for the sentence that says there is no such thing.
    """
    if is_file(written):
        path, name = _split(written)
        module = _loaded(path.absolute(), _read(path))
        if not hasattr(module, name):
            raise InputFileError(f"{path} has no {name!r} in it: write {FORM} with a name that it defines")
        return getattr(module, name)
    entry = _entry(written, group, known)
    try:
        return entry.load()
    except (Exception, SystemExit) as problem:
        raise InputFileError(f"{written!r} ({entry.value}) cannot be loaded: {_what(problem)}") from problem


def call(written: str, group: str, *arguments: Any) -> Any:
    """What the function meant returns; what goes wrong in it becomes a sentence with the line it happened in."""
    function = load(written, group)
    if not callable(function):
        raise InputFileError(f"{short(written)} must be a function, got {type(function).__name__}")
    file = str(_split(written)[0].absolute()) if is_file(written) else ""
    return guarded(short(written), file, function, *arguments)


def is_file(written: str) -> bool:
    """Whether this is meant as `FILE.py:NAME`, rightly written or not.

    >>> is_file("my_data.py:load"), is_file("my_data.py"), is_file("office")
    (True, True, False)
    """
    return written.endswith(".py") or ".py:" in written


def names(group: str) -> list[str]:
    """The entry points of a group that are installed."""
    return sorted({entry.name for entry in metadata.entry_points(group=group)})


def absolute(written: str) -> str:
    """The same, whatever the folder of the process that loads it."""
    if not is_file(written):
        return written
    path, name = _split(written)
    return f"{path.absolute()}:{name}"


def short(written: str) -> str:
    """The same without folders, for people.

    >>> short("/home/me/my_data.py:load"), short("office")
    ('my_data.py:load', 'office')
    """
    if not is_file(written):
        return written
    path, name = _split(written)
    return f"{path.name}:{name}"


def label(written: str) -> str:
    """A name for files and tables.

    >>> label("/home/me/my_data.py:load"), label("office")
    ('my_data.load', 'office')
    """
    return re.sub(r"[^\w.-]+", ".", short(written).replace(".py:", "."))


def fingerprint(written: str, group: str, known: Iterable[str] = ()) -> str:
    """What changes with the code behind it: the content of the file, or the version of the package."""
    if is_file(written):
        path, name = _split(written)
        return f"{name} {digest_of(path)}"
    package = _entry(written, group, known).dist
    return f"{written} {package.name} {package.version}" if package else written


def digest_of(path: Path) -> str:
    """A digest of a Python file and of the files beside it that it imports, and so on."""
    found, waiting = {}, [path.absolute()]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = source = _read(path)
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError):  # loading it says so
            continue
        imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        imported += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
        beside = [path.with_name(f"{name.partition('.')[0]}.py") for name in imported]
        waiting += [file for file in beside if file.is_file()]
    return sha256(b"".join(found[path] for path in sorted(found))).hexdigest()


def guarded(what: str, file: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of a user's file returns; what goes wrong in it becomes a sentence with the line."""
    try:
        return function(*arguments)
    except CollegiumError:
        raise
    except (Exception, SystemExit) as problem:
        raise InputFileError(f"{what} failed{_where(problem, file)}: {_what(problem)}") from problem


def _split(written: str) -> tuple[Path, str]:
    file, _, name = written.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise InputFileError(
            f"{written!r} does not name what to take from the file: write {FORM}, such as mine.py:load"
        )
    return Path(file), name


def _entry(name: str, group: str, known: Iterable[str]) -> metadata.EntryPoint:
    found = metadata.entry_points(group=group, name=name)
    if not found:
        choices = ", ".join([*known, *names(group)])
        todo = f"choose one of {choices}, or write {FORM}" if choices else f"write {FORM}"
        raise InputFileError(f"there is no {name!r} among the {group.rpartition('.')[2]}: {todo}")
    return next(iter(found))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputFileError(f"there is no file {path}") from None
    except OSError as problem:
        raise InputFileError(f"cannot read {path}: {problem.strerror or problem}") from None


@cache
def _loaded(path: Path, source: bytes) -> ModuleType:
    """The module of a file, run once; an edited file is another module. Every process gives it the same name."""
    digest = sha256(str(path).encode() + source).hexdigest()[:12]
    name = re.sub(r"\W", "_", f"{path.stem}_{digest}")
    spec = spec_from_loader(name, None, origin=str(path))
    if spec is None:
        raise InputFileError(f"{path} cannot be loaded as a Python file")
    module = module_from_spec(spec)
    module.__file__ = str(path)
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    sys.modules[name] = module  # where dataclasses, and processes that send objects back, look for it
    try:
        exec(compile(source, path, "exec"), vars(module))
    except (Exception, SystemExit) as problem:
        del sys.modules[name]
        raise InputFileError(f"{path} cannot be loaded{_where(problem, str(path))}: {_what(problem)}") from problem
    _send_by_value(module)
    return module


def _send_by_value(module: ModuleType) -> None:
    """Processes that joblib starts to train models get the code of this module with its objects.

    They could not import it by its name, as they do with what is installed.
    """
    from joblib.externals.loky import cloudpickle_wrapper  # its own copy of cloudpickle, or the installed one

    import_module(cloudpickle_wrapper.dumps.__module__).register_pickle_by_value(module)


def _where(problem: BaseException, file: str) -> str:
    """The last line of the user's file that was being run."""
    if isinstance(problem, SyntaxError) and problem.filename == file:
        return f", line {problem.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == file]
    return f", line {lines[-1]}" if lines else ""


def _what(problem: BaseException) -> str:
    """The kind of a problem and its message."""
    words = str(problem.msg) if isinstance(problem, SyntaxError) else brief(problem)
    kind = type(problem).__name__
    return words if words.startswith(kind) else f"{kind}: {words}"
