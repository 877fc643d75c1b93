"""What a study is: what to train, what to evaluate, what to draw, and what the paper claims."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from collegium._util import plugins
from collegium.errors import DataError
from collegium.lab.claims import Claim, Finding
from collegium.lab.job import Job
from collegium.lab.records import Record
from collegium.lab.table import NO_FACTORS, Factors, StudyRow, Table

PAIRED = "error less that of ours"
"""A quantity: a method's error less that of ours in the same repetition, so that its interval is of the difference."""


@dataclass(frozen=True)
class Options:
    """What a user may change about a run."""

    reps: int | None = None
    """Repetitions of everything; each study's own numbers if None."""
    n0: tuple[int, ...] | None = None
    """Sizes of the agents' data sets; each study's own if None."""
    root: str | None = None
    """Where the data sets are; as `collegium data` finds them if None."""
    seed: int = 0
    dimensions: int = 20
    """Principal components kept for the mutual information between patches; the paper also tries 10 and 30."""
    neighbours: int = 5
    """k of its nearest-neighbour estimator; the paper also tries 3 and 10."""
    quick: bool = False
    """Minutes instead of hours: few repetitions, small sizes, few epochs. Good for seeing that all works."""
    data: str | None = None
    """A user's own data, an entry point of collegium.data or FILE.py:NAME, instead of the studies'."""
    models: str | None = None
    """A user's own models, an entry point of collegium.models or FILE.py:NAME, instead of the studies'."""
    trained: int | None = None
    """Repetitions in which the methods that train on views (AdaBoost, VFL-JT, the oracle) take part; all if None."""
    available: bool = False
    """Only the records that are there are evaluated, and nothing is trained."""

    def __post_init__(self) -> None:
        for name in ("data", "models"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, plugins.absolute(getattr(self, name)))


class Origin(NamedTuple):
    """How a study that is not one of the paper's was asked for, to find it again."""

    study: str
    data: str | None = None
    models: str | None = None


class Study(ABC):
    """One published figure or table. Evaluation reads a record at a time; drawing and checking read only the table."""

    name: str
    title: str
    remark: ClassVar[str] = ""
    """What a reader of its page has to know besides."""
    figures: ClassVar[str] = ""
    """What it reproduces, in the paper's numbering."""
    factors: ClassVar[Factors] = NO_FACTORS
    """What it varies besides N_0, agents and rounds: a column of its table each, by name and type (str, int, float)."""

    only_trained: ClassVar[bool] = False
    """Whether a record without the methods that train on views says nothing to it."""
    beyond_means: ClassVar[tuple[str, ...]] = ()
    """How the names of figures end that a table of means over repetitions does not tell."""
    kind: ClassVar[str] = ""
    """What it is called after the name of a user's data, where it can be run on them."""
    origin: Origin | None = None
    """None for the paper's own."""

    @abstractmethod
    def jobs(self, options: Options) -> list[Job]:
        """The records it needs; none for a study of the data themselves."""

    @abstractmethod
    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Numbers from one record."""

    def examine(self, options: Options) -> Iterable[StudyRow]:
        """Numbers from the data sets themselves, for studies that need no training."""
        return ()

    @abstractmethod
    def draw(self, table: Table) -> dict[str, Any]:
        """Figures by name."""

    def tabulate(self, table: Table) -> list[dict[str, str]]:
        """Rows of a table that the paper has and no figure shows, by column; most have none."""
        return []

    def claims(self, table: Table) -> list[Claim]:
        """The paper's statements, each with the verdict of these numbers."""
        return []

    def on(self, data: str | None, models: str | None) -> Self:
        """The same study of a user's data or models, under a name of its own; most have no meaning elsewhere."""
        raise DataError(f"{self.name} is about data and models of its own: leave out --data and --models, or the study")

    def renamed(self, data: str, models: str | None) -> Self:
        """A copy that is named after data and models."""
        parts = [data] if models is None else [data, models]
        own = copy(self)
        own.name = "-".join([*map(plugins.label, parts), self.kind])
        own.title = f"{' with '.join(map(plugins.short, parts))}: {self.kind}"
        return own

    def row(
        self,
        job: Job | None,
        quantity: str,
        value: float,
        *,
        method: str = "",
        agent: int = -1,
        round: int = -1,
        **factors: str | int | float,
    ) -> StudyRow:
        """A number of this study, found in a job's record (None: in the data themselves) at these levels of factors."""
        n0, repetition = (0, 0) if job is None else (job.n0, job.repetition)
        return StudyRow(self.name, n0, repetition, quantity, method, agent, round, float(value), factors)

    def judged(self, said: Iterable[tuple[str, Finding]]) -> list[Claim]:
        """Statements, each with what the numbers say of it, as claims of this study."""
        return [Claim(self.name, claim, found.verdict, found.evidence) for claim, found in said]


class DataStudy(Study):
    """A study of the data sets themselves: nothing is trained."""

    def jobs(self, options: Options) -> list[Job]:
        """None."""
        return []

    def evaluate(self, job: Job, record: Record, options: Options) -> Iterable[StudyRow]:
        """Nothing is read from records."""
        return ()


def about(study: Study, table: Table) -> str:
    """What a study reproduces, if anything, and how many repetitions its table has at each N_0."""
    counts = table.groupby("n0")["repetition"].nunique()
    named = {f"N_0 = {n0}: " if n0 else "": count for n0, count in counts.items() if n0 or count > 1}
    repeated = ", ".join(f"{at}{count}" for at, count in named.items()) or "none needed"
    told = (f"{study.figures}." if study.figures else "", f"Repetitions: {repeated}.", study.remark)
    return " ".join(part for part in told if part)


def sizes(options: Options, usual: Sequence[int], quick: Sequence[int]) -> tuple[int, ...]:
    """The N_0 to go through."""
    if options.n0 is not None:
        return options.n0
    return tuple(quick if options.quick else usual)


def repetitions(options: Options, usual: int) -> int:
    """How many repetitions."""
    if options.reps is not None:
        return options.reps
    return min(2, usual) if options.quick else usual
