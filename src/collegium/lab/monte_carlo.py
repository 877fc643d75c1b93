"""Making the records that studies read: what is missing is trained, what is there is left alone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from functools import partial

from collegium._util.progress import progress
from collegium.lab import job as jobs
from collegium.lab.backends import Backend
from collegium.lab.job import Job
from collegium.lab.records import Store


def train(wanted: Iterable[Job], store: Store, backend: Backend, root: str | None = None) -> int:
    """Make every record that is wanted and missing; gives how many were made.

    A record is written as soon as its job is done, so that a run can be stopped at any time and resumed.
    """
    needed = _merged(wanted)
    missing = [job for job in needed if not store.has(job.key, job.methods)]
    for job in missing:
        job.load_own()
    work = partial(_work, root=root, workers=backend.inner_workers)
    made = 0
    with progress("training repetitions", len(needed), start=len(needed) - len(missing)) as bar:
        for job, (content, seconds) in backend.map(work, missing):
            store.put(job.key, content)
            with (store.folder / "log.jsonl").open("a") as log:
                log.write(
                    json.dumps({"record": job.key, "seconds": round(seconds, 3), "backend": repr(backend)}) + "\n"
                )
            made += 1
            bar.advance()
    return made


def _work(job: Job, root: str | None, workers: int | None) -> tuple[bytes, float]:
    begun = time.perf_counter()
    content = jobs.run(job, root, workers).to_bytes()
    return content, time.perf_counter() - begun


def _merged(wanted: Iterable[Job]) -> list[Job]:
    """Every record once, with methods if any study wants them."""
    by_key: dict[str, Job] = {}
    for job in wanted:
        known = by_key.get(job.key)
        if known is None or (job.methods and not known.methods):
            by_key[job.key] = job
    return list(by_key.values())
