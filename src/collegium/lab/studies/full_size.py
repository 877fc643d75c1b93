"""What the studies of communication share: records at the largest size, over a network of as many agents."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from collegium.lab.job import Job
from collegium.lab.studies.main import MainStudy, ModelNetMain
from collegium.lab.study import Options, Study
from collegium.lab.table import Table, values


class FullSize(Study):
    """Reads the records of `modelnet-main` at its largest size, or those of a user's data."""

    main: MainStudy = ModelNetMain()

    def jobs(self, options: Options) -> list[Job]:
        """The records of the main study at its largest size; methods that train on views are not asked for."""
        largest = max(self.main.sizes(options))
        return [replace(job, methods=False) for job in self.main.jobs(options) if job.n0 == largest]

    def on(self, data: str | None, models: str | None) -> Self:
        """The same with a user's data or models."""
        own = self.renamed(data or self.main.dataset, models)
        own.main = self.main.on(data, models)
        return own


def agents_of(table: Table) -> int:
    """How many agents there were, where a study noted it."""
    return int(values(table, quantity="agents").iloc[0])
