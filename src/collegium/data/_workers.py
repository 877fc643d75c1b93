"""Blender processes at work side by side: each is handed one mesh after the other, and replaced if it dies."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from collegium.data._meshes import Mesh, prepare, read_off
from collegium.data.environment import explained, variables
from collegium.errors import BackendError, InputFileError

_SCRIPT = Path(__file__).with_name("_blender.py")  # not imported here: it would bring Blender along
_PATIENCE = 5
"""So many deaths in a row are not the fault of the meshes."""


class Task(NamedTuple):
    """A mesh file and the views wanted of it, each with the file it goes to."""

    mesh: Path
    files: dict[int, Path]


class Died(Exception):
    """A Blender process has ended before its work did; the message says why."""


class Blender:
    """One process of `_blender.py`. It ends when it is closed, and by itself when the process that started it has."""

    def __init__(self, python: Path, settings: dict[str, Any]) -> None:
        try:
            self._said = tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
            self._process = subprocess.Popen(
                [str(python), "-P", str(_SCRIPT), json.dumps(settings)],  # -P: our modules are not its modules
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env=variables(settings["scratch"]),
                start_new_session=True,  # Ctrl-C is for us, and we shall say when to stop
            )
        except OSError as problem:
            raise BackendError(f"Blender does not start: {problem}") from None
        try:
            self._answer()
        except Died as reason:
            self.close()
            raise BackendError(f"Blender does not start: {reason}") from None

    def render(self, mesh: Mesh, files: dict[int, Path]) -> Iterator[int]:
        """Write these views of a mesh, and say of each when it is in its place."""
        head = {
            "vertices": len(mesh.vertices),
            "corners": len(mesh.corners),
            "faces": len(mesh.sizes),
            "files": {str(k): str(path.absolute()) for k, path in files.items()},
        }
        arrays = (mesh.vertices.astype("<f4"), mesh.corners.astype("<i4"), mesh.sizes.astype("<i4"))
        message = b"".join((json.dumps(head).encode(), b"\n", *(array.tobytes() for array in arrays)))
        try:
            self._process.stdin.write(message)  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
        except OSError:
            raise Died(self._cause()) from None
        while "done" not in (answer := self._answer()):
            if "error" in answer:
                raise InputFileError(answer["error"])
            yield answer["view"]

    def kill(self) -> None:
        """End it now, from any thread: what it has put into place is whole."""
        self._process.kill()

    def close(self) -> None:
        """End it and let go of it."""
        self.kill()
        self._process.wait()
        self._said.close()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was still to be sent
                pipe.close()  # type: ignore[union-attr]

    def _answer(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self._process.stdout.readline()))  # type: ignore[union-attr]
        except ValueError:  # nothing, or half a line
            raise Died(self._cause()) from None

    def _cause(self) -> str:
        code = self._process.wait()
        if code < 0:
            return f"killed by signal {-code}"
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - 10_000))
        return explained(self._said.read().decode(errors="replace"))


class Crew:
    """Processes that share one list of tasks, each looked after by a thread."""

    def __init__(self, tasks: list[Task], start: Callable[[], Blender], advance: Callable[[int], None]) -> None:
        self.rendered = 0
        """How many views were put into place."""
        self.problems: list[str] = []
        """A sentence for each task that could not be done."""
        self._tasks = iter(tasks)
        self._start = start
        self._advance = advance
        self._lock = Lock()
        self._running: set[Blender] = set()
        self._stopped = False

    def work(self, workers: int) -> None:
        """Do all tasks. What happens to one of them is a sentence in `problems`; what concerns all is raised."""
        with ThreadPoolExecutor(workers) as pool:
            try:
                done, _ = wait([pool.submit(self._look_after_one) for _ in range(workers)], None, FIRST_EXCEPTION)
                for one in done:
                    one.result()
            finally:  # also after Ctrl-C
                self._stop()

    def _look_after_one(self) -> None:
        process: Blender | None = None
        deaths = 0
        try:
            while (task := self._next()) is not None:
                mesh = self._read(task)
                if mesh is None:
                    continue
                left = dict(task.files)
                for last in (False, True):  # it may have been killed from outside
                    process = process or self._enlist()
                    try:
                        for k in process.render(mesh, dict(left)):
                            del left[k]
                            self._count()
                        deaths = 0
                        break
                    except Died as reason:
                        self._dismiss(process)
                        process = None
                        if self._stopped:
                            return
                        if not last:
                            continue
                        deaths += 1
                        self._give_up(f"{task.mesh} was not rendered, Blender died of it twice: {reason}", len(left))
                        if deaths == _PATIENCE:
                            raise BackendError(f"Blender died of {deaths} objects in a row: {reason}") from None
        finally:
            if process is not None:
                self._dismiss(process)

    def _next(self) -> Task | None:
        with self._lock:
            return None if self._stopped else next(self._tasks, None)

    def _read(self, task: Task) -> Mesh | None:
        try:
            return prepare(read_off(task.mesh))
        except InputFileError as problem:
            self._give_up(str(problem), len(task.files))
        except ValueError as problem:
            self._give_up(f"{task.mesh} cannot be rendered: {problem}", len(task.files))
        return None

    def _enlist(self) -> Blender:
        process = self._start()
        with self._lock:
            self._running.add(process)
            if self._stopped:
                process.kill()
        return process

    def _dismiss(self, process: Blender) -> None:
        with self._lock:
            self._running.discard(process)
        process.close()

    def _count(self) -> None:
        with self._lock:
            self.rendered += 1
        self._advance(1)

    def _give_up(self, sentence: str, views: int) -> None:
        with self._lock:
            self.problems.append(sentence)
        self._advance(views)

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()
