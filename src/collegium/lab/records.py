"""The store of score records: one file per repetition, whole or not at all, and set aside if damaged."""

from __future__ import annotations

import glob
import io
import json
import os
import warnings
import zipfile
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium._util.files import atomic_write
from collegium.agents.scores import Scores
from collegium.errors import CollegiumError, InputFileError

_METHODS, _KEY = "methods", "key"
_SCORES = ("train", "val", "test")


class MethodResult(NamedTuple):
    """What a method that trains on views decided."""

    statistic: NDArray[np.float64]
    """Of every test item, shape (n,), or (n, C) where there are more than two classes."""
    training_transmissions: int
    epochs: int


class Record(NamedTuple):
    """One repetition: the agents' scores, and what methods that train on views made of the same items."""

    scores: Scores
    methods: dict[str, MethodResult]
    key: str = ""
    """Of the job it was made by; older records do not say."""

    def to_bytes(self) -> bytes:
        """The record as an .npz file that `Scores.load` reads as well; the same record gives the same bytes.

        Scores are rounded to float32, so that records are small enough to be kept and handed on: what is read from a
        copy is what is read here.
        """
        buffer = io.BytesIO()
        about = {name: [result.training_transmissions, result.epochs] for name, result in self.methods.items()}
        arrays = self.scores.arrays() | {_METHODS: np.array(json.dumps(about)), _KEY: np.array(self.key)}
        arrays |= {f"method {name}": result.statistic for name, result in self.methods.items()}
        arrays |= {name: _rounded(arrays[name]) for name in arrays if name in _SCORES or name.startswith("method ")}
        np.savez_compressed(buffer, **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> Record:
        """Read a record; what is damaged or foreign is refused by name."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                about = json.loads(str(file[_METHODS]))
                key = str(file[_KEY]) if _KEY in file.files else ""
                methods = {
                    method: MethodResult(file[f"method {method}"].astype(np.float64), int(sent), int(epochs))
                    for method, (sent, epochs) in about.items()
                }
            return cls(Scores.load(io.BytesIO(content)), methods, key)
        except (CollegiumError, OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError) as problem:
            raise InputFileError(f"{name} is not a record of the laboratory, or is damaged: {problem}") from None


class Store:
    """Records in a folder, by key."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, key: str) -> Path:
        """Where a record is, or would be."""
        return self.folder / f"{key}.npz"

    def has(self, key: str, methods: bool = False) -> bool:
        """Whether a whole record is there, with the methods that train on views if asked for.

        One that is damaged or foreign is moved aside with a warning, and counts as missing.
        """
        record = self.get(key)
        return record is not None and (bool(record.methods) or not methods)

    def get(self, key: str) -> Record | None:
        """A record, or None if there is none that is whole."""
        path = self.path(key)
        try:
            record = Record.from_bytes(path.read_bytes(), path.name)
            if record.key not in ("", key):
                raise InputFileError(f"{path.name} is another job's record, {record.key}")
            return record
        except FileNotFoundError:
            return None
        except InputFileError as problem:
            aside = path.with_name(f"{path.name}.{token_hex(4)}.aside")
            os.replace(path, aside)
            warnings.warn(f"{problem}. It was set aside as {aside.name} and is made anew.", stacklevel=2)
            return None

    def put(self, key: str, content: bytes) -> None:
        """Write a record, whole or not at all, also when the power goes."""
        with atomic_write(self.path(key), parents=True, sync=True) as file:
            file.write(content)

    def add(self, other: Store, only: str = "") -> list[str]:
        """Take over the records of another store that begin with `only` and are not here; gives their keys.

        One that is here without the methods that train on views is replaced by one with them. What is damaged or
        foreign is left out with a warning.
        """
        taken = []
        for path in sorted(other.folder.glob(f"{glob.escape(only)}*.npz")):
            key = path.stem
            try:
                record = Record.from_bytes(path.read_bytes(), path.name)
            except InputFileError as problem:
                warnings.warn(f"{problem}. It is left out.", stacklevel=2)
                continue
            if record.key != key:
                warnings.warn(f"{path.name} is another job's record, {record.key}. It is left out.", stacklevel=2)
            elif not self.has(key, methods=bool(record.methods)):
                self.put(key, record.to_bytes())
                taken.append(key)
        return taken


def _rounded(values: NDArray[np.float64]) -> NDArray[Any]:
    """In float32, unless that would change a sign or make an infinity."""
    with np.errstate(over="ignore"):
        small = values.astype(np.float32)
    return small if np.isfinite(small).all() and (np.sign(small) == np.sign(values)).all() else values
