"""A folder of results: records, tables, figures and claims of the studies that were run in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

from collegium._util import plugins
from collegium._util.files import atomic_write
from collegium._util.progress import track
from collegium.errors import CollegiumError, DataError, InputFileError
from collegium.lab import figures, monte_carlo, studies, study_networks
from collegium.lab import table as tables
from collegium.lab.backends import Backend
from collegium.lab.claims import Claim
from collegium.lab.job import Job
from collegium.lab.records import Store
from collegium.lab.studies import STUDIES, across, find
from collegium.lab.study import Options, Origin, Study
from collegium.lab.table import StudyRow, Table
from collegium.protocol import registry

_PLAN = "plan.json"
T = TypeVar("T")


class Laboratory:
    """Everything a run makes is below one folder; whatever is there already is not made again."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(f"{self.folder} is a file: --out names a folder for the results")
        self.store = Store(self.folder / "records")

    def run(self, names: Sequence[str], options: Options, backend: Backend) -> list[Study]:
        """Train what is missing, evaluate it, and write one table per study."""
        names = [plugins.absolute(name) for name in names]
        chosen = find(names, options.data, options.models)
        if options.available:
            chosen = [study for study in chosen if self._jobs(study, options) or not _jobs(study, options)]
            if not chosen:
                asked = ", ".join(names) or "any study"
                raise InputFileError(f"there are no records of {asked} in {self.store.folder}: leave out --available")
        else:
            self._write(self.folder / _PLAN, {"studies": names, "options": asdict(options)})
            wanted = [job for study in chosen for job in _jobs(study, options)]
            monte_carlo.train(wanted, self.store, backend, options.root)
        for study in track(chosen, "evaluating studies"):
            path = self._table_path(study)
            tables.write(self._evaluate(study, options), path)
            if study.origin is not None:
                self._write(path.with_suffix(".json"), study.origin._asdict())
        return chosen

    def resume(self, backend: Backend) -> list[Study]:
        """Go on with what the last run in this folder was asked for."""
        path = self.folder / _PLAN
        try:
            plan: dict[str, Any] = json.loads(path.read_text())
            options = Options(**{**plan["options"], "n0": _tuple(plan["options"]["n0"])})
            names: list[str] = plan["studies"]
        except FileNotFoundError:
            raise InputFileError(f"there is nothing to resume in {self.folder}: begin with study run") from None
        except (ValueError, KeyError, TypeError):
            raise InputFileError(f"{path} is damaged: begin again with study run; finished records are kept") from None
        return self.run(names, options, backend)

    def table(self, study: Study) -> Table:
        """The numbers of a study."""
        return tables.read(self._table_path(study))

    def finished(self, names: Sequence[str]) -> list[Study]:
        """The studies named (or all) that have a table here; a user's by its name as well."""
        own = {path.stem: path for path in sorted((self.folder / "tables").glob("*.json"))}
        ours = [name for name in names if name not in own] if names else list(STUDIES)
        chosen = find(ours) if ours else []
        chosen += [self._own(path) for name, path in own.items() if name in names or not names]
        found = {study.name: study for study in chosen if self._table_path(study).exists()}
        if not found:
            raise InputFileError(f"there are no results in {self.folder}: begin with study run")
        return list(found.values())

    def _own(self, path: Path) -> Study:
        """A user's study, from the note beside its table."""
        try:
            origin = Origin(**json.loads(path.read_text()))
        except (OSError, ValueError, TypeError):
            raise InputFileError(f"{path} is damaged: run the study {path.stem} again") from None
        try:
            (study,) = find([origin.study], origin.data, origin.models)
        except CollegiumError as problem:
            raise type(problem)(f"the study {path.stem} cannot be loaded again: {problem}") from None
        return study

    def draw(self, names: Sequence[str]) -> list[Path]:
        """Every figure of the finished studies, as PNG and PDF."""
        folder = self.folder / "figures"
        made = []
        for study in track(self.finished(names), "drawing"):
            drawn = self._from_table(study, study.draw)
            if not isinstance(drawn, Mapping):
                raise DataError(f"draw of {study.name} must return figures by name, got {type(drawn).__name__}")
            for name, figure in drawn.items():
                for ending in ("png", "pdf"):
                    made.append(folder / f"{name}.{ending}")
                    figures.save(figure, made[-1], dpi=150)
        return made

    def claims(self, names: Sequence[str]) -> list[Claim]:
        """Every claim of the finished studies with its verdict."""
        found = self.finished(names)
        own = [claim for study in found for claim in self._from_table(study, study.claims)]
        return own + across.compared({study.name: self.table(study) for study in found})

    def _from_table(self, study: Study, use: Callable[[Table], T]) -> T:
        table = self.table(study)
        if study.origin is not None:
            return cast(T, _guarded(study, use, table))
        try:
            return use(table)
        except KeyError as missing:
            raise InputFileError(
                f"the table of {study.name} has nothing of {missing}: it is of another version, run the study again"
            ) from None

    def _evaluate(self, study: Study, options: Options) -> Table:
        pandas = tables.load_pandas()
        parts = [self._examined(study, options)]
        for job in self._jobs(study, options):
            parts.append(self._part(study, job, options))
        full = [part for part in parts if len(part)]
        if not full:
            return parts[0]
        whole = pandas.concat(full, ignore_index=True)
        return whole.sort_values(["n0", "repetition"], kind="stable", ignore_index=True)

    def _jobs(self, study: Study, options: Options) -> list[Job]:
        """What a study reads: all it wants, or those of them that are there."""
        jobs = _jobs(study, options)
        if not options.available:
            return jobs
        return [job for job in jobs if self.store.has(job.key, job.methods and study.only_trained)]

    def _examined(self, study: Study, options: Options) -> Table:
        """The numbers from the data sets themselves, kept as well."""
        settings = options.root, options.dimensions, options.neighbours, options.quick
        return self._kept(study, "data", settings, lambda: study.examine(options))

    def _part(self, study: Study, job: Job, options: Options) -> Table:
        """The numbers from one record, kept so that nothing is evaluated twice."""
        record = self.store.get(job.key)
        if record is None:
            raise InputFileError(f"the record {job.key} is gone: run the study again")
        return self._kept(study, job.key, sorted(record.methods), lambda: study.evaluate(job, record, options))

    def _kept(self, study: Study, name: str, settings: Any, rows: Callable[[], Iterable[StudyRow]]) -> Table:
        """A table from its file, or made and written; made anew once the settings or the studies' code are others."""
        digest = sha256(json.dumps([settings, _code(type(study))], sort_keys=True).encode()).hexdigest()[:12]
        path = self.folder / "parts" / study.name / f"{name}-{digest}.parquet"
        if path.exists():
            try:
                return tables.read(path)
            except InputFileError:
                path.unlink()
        found = rows() if study.origin is None else _guarded(study, lambda: list(rows()))
        part = tables.to_table(found, study.factors)
        if len(part):
            tables.write(part, path)
        return part

    def _table_path(self, study: Study) -> Path:
        return self.folder / "tables" / f"{study.name}.parquet"

    def _write(self, path: Path, content: dict[str, Any]) -> None:
        with atomic_write(path, parents=True) as file:
            file.write((json.dumps(content, indent=2) + "\n").encode())


def _jobs(study: Study, options: Options) -> list[Job]:
    jobs = list(study.jobs(options) if study.origin is None else _guarded(study, lambda: list(study.jobs(options))))
    for job in jobs:
        if not isinstance(job, Job):
            raise DataError(f"jobs of {study.name} must return a list of Job, which holds {job!r:.60}")
    return jobs


def _guarded(study: Study, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a user's study does; what goes wrong in it becomes a sentence."""
    file = getattr(sys.modules[type(study).__module__], "__file__", None) or ""
    return plugins.guarded(f"the study {study.name}", file, function, *arguments)


@cache
def _code(kind: type[Study]) -> str:
    """A fingerprint of the studies, their networks and a user's study: their constants are for users to change."""
    sources = [Path(study_networks.__file__), *sorted(Path(studies.__file__).parent.glob("*.py"))]
    modules = dict.fromkeys(parent.__module__ for parent in kind.__mro__ if issubclass(parent, Study))
    files = (getattr(sys.modules[module], "__file__", None) for module in modules)
    own = [plugins.digest_of(Path(file)) for file in files if file and Path(file) not in sources]
    code = b"".join(path.read_bytes() for path in sources)
    return sha256(code + "".join([*own, registry.fingerprint()]).encode()).hexdigest()


def _tuple(value: Any) -> tuple[int, ...] | None:
    return None if value is None else tuple(value)
