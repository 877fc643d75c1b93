"""POST /v1/tune and /v1/items/{id}/label: an agent takes part in a tuning of its network, or learns from one label.

Whoever tunes asks all agents for each step, and for the next when all have answered. So mistakes are found before the
first conversation, and a gain is used when every agent has its own in a file.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from collegium._serving.limits import JSON, Admission, Limits, Refusal
from collegium._util.scores import centred
from collegium.errors import CollegiumError
from collegium.live.agent import Agent
from collegium.live.answers import Labelled, Learned, Name, TuningStep
from collegium.live.gain import AnotherLabel, Gain, NoSuchTuning, plain
from collegium.live.http.items import check_names, decoded
from collegium.live.http.submissions import Request, kind_of, refusal_of

if TYPE_CHECKING:
    from collegium.tuning.learner import Learner

Doubles = NDArray[np.float64]
LONGEST_SESSION = 64
MOST_CONVERSATIONS = 100
MOST_PASSES = 1000
_T = TypeVar("_T")
_Session = Annotated[str, Meta(max_length=LONGEST_SESSION, pattern=r"^[A-Za-z0-9._-]+\Z")]


class _Step(Struct, forbid_unknown_fields=True, tag_field="step"):
    session: _Session


class _Check(_Step, tag="check"):
    ids: list[Annotated[int, Meta(ge=0)] | str]
    labels: list[float | bool | str]
    scores: list[float | list[float] | None] | None = None
    fresh: bool = True
    loss: str = "logistic"
    conversations: Annotated[int, Meta(ge=1, le=MOST_CONVERSATIONS)] | None = None
    per_class: bool = False


class _Run(_Step, tag="run"):
    bounds: tuple[Annotated[float, Meta(gt=0)], Annotated[float, Meta(gt=0)]] | None = None
    passes: Annotated[int, Meta(ge=1, le=MOST_PASSES)] = 1
    verify: bool = False
    away: list[str] = []


class _Use(_Step, tag="use"):
    scale: Annotated[float, Meta(gt=0, le=1)] = 1.0


class _Drop(_Step, tag="drop"):
    pass


class _Label(Struct, forbid_unknown_fields=True):
    label: float | bool | str
    rate: Annotated[float, Meta(gt=0, le=1)] = 0.05


_body = msgspec.json.Decoder(_Check | _Run | _Use | _Drop)
_label = msgspec.json.Decoder(_Label)
_STEPS = "a step of a tuning is as /openapi.json has it; collegium live tune takes all of them"
_LABELS = 'a label is {"label": …}, with a "rate" from 0 to 1 or without'


class _Job(NamedTuple):
    session: str
    learner: Learner
    scores: Doubles
    """As they enter the network with gain 1, (n,) or (n, C)."""
    per_class: bool


class Tunings:
    """The tunings of one agent, one at a time."""

    def __init__(self, agent: Agent, limits: Limits, admission: Admission) -> None:
        self._agent, self._limits, self._admission = agent, limits, admission
        self._job: _Job | None = None
        self._is_busy = False

    async def step(self, request: Request) -> TuningStep:
        """Do what is asked for, in a thread of its own."""
        asked = await self._asked(request, _body, _STEPS)
        self._check_free()
        self._is_busy = True
        return await _in_thread(lambda: self._do(asked))

    async def label(self, request: Request, name: Name) -> Labelled:
        """The label of an item that was decided: the agent's own gain moves, without any message."""
        asked = await self._asked(request, _label, _LABELS)
        self._check_free()
        return await _in_thread(lambda: self._told(name, asked))

    def _check_free(self) -> None:
        if self._is_busy:
            raise Refusal(409, f"{self._agent.name} is busy with a tuning")

    async def _asked(self, request: Request, decoder: msgspec.json.Decoder[Any], forms: str) -> Any:
        if kind_of(request) != JSON:
            raise Refusal(415, f"the Content-Type must be {JSON} here")
        pieces: list[bytes] = []
        try:
            await self._admission.read(
                request.receive, request.headers, pieces, self._limits.of(JSON), "tune with fewer items"
            )
            return decoded(decoder, b"".join(pieces), "the body", len(self._agent.classes), forms)
        finally:
            self._admission.release(pieces)

    def _told(self, name: Name, asked: _Label) -> Labelled:
        agent = self._agent
        try:
            place, score, result = self._place(asked.label), self._score(name), agent.result(name)
            assert result is not None
            label = place if len(agent.classes) > 2 else (1 if place else -1)
            x = np.asarray(score, np.float64)
            changed = agent.gains.told(name, label, x, result.statistic, asked.rate, agent.bound)
            now = agent.gains.now
            return Labelled(agent.name, name, changed, now.gain, now.online[2])
        except AnotherLabel as problem:
            raise Refusal(409, str(problem)) from None
        except CollegiumError as problem:
            raise refusal_of(problem) from None

    def _do(self, asked: _Check | _Run | _Use | _Drop) -> TuningStep:
        try:
            match asked:
                case _Check():
                    self._job = self._checked(asked)
                    return self._answer(asked.session, "checked")
                case _Run():
                    return self._run(asked)
                case _Use():
                    self._agent.gains.use(asked.session, asked.scale)
                    return self._answer(asked.session, "used")
                case _Drop():
                    self._agent.gains.drop(asked.session)
                    return self._answer(asked.session, "dropped")
        except NoSuchTuning as problem:
            raise Refusal(404, str(problem)) from None
        except CollegiumError as problem:
            raise refusal_of(problem) from None
        finally:
            self._agent.check_sets()
            self._is_busy = False

    def _answer(self, session: str, state: str) -> TuningStep:
        now = self._agent.gains.now
        return TuningStep(self._agent.name, session, state, now.gain, now.shift, self._agent.bound)

    def _checked(self, asked: _Check) -> _Job:
        from collegium.tuning.gains import learner_of  # most agents are never tuned

        agent = self._agent
        names = check_names(asked.ids, self._limits)
        for what, values in (("labels", asked.labels), ("scores", asked.scores)):
            if values is not None and len(values) != len(names):
                raise Refusal(422, f"there are {len(values)} {what} for {len(names)} ids")
        places = np.array([self._place(label) for label in asked.labels], np.intp)
        C = len(agent.classes)
        y = np.where(places == 1, 1, -1) if C == 2 else places
        if isinstance(agent.gains.now.gain, list) and not asked.per_class:
            raise Refusal(422, f"{agent.name} has a gain for each class: tune it with per_class")
        learner = learner_of(y, len(names), C, len(agent.status().agents), asked.conversations, asked.loss, asked.fresh)
        scores = self._known(names) if asked.scores is None else self._given(asked.scores)
        # What the shift took before the last tuning stays taken; no view is no opinion.
        x = np.nan_to_num(scores - np.asarray(agent.gains.now.shift, np.float64), nan=0.0)
        if C > 2:
            x = centred(x)
        if not (np.abs(x) <= agent.bound).all():
            largest = float(np.abs(x).max())
            raise Refusal(422, f"a score of {largest:.6g} is beyond the bound of {agent.name}, {agent.bound:.6g}")
        return _Job(asked.session, learner, x, asked.per_class and C > 2)

    def _place(self, label: Any) -> int:
        for place, one in enumerate(self._agent.classes):
            if one == label or str(one) == str(label):
                return place
        known = ", ".join(map(str, self._agent.classes))
        raise Refusal(422, f"the label {label!r:.80} is none of the classes of this network: {known}")

    def _given(self, given: list[float | list[float] | None]) -> Doubles:
        C = len(self._agent.classes)
        shape: tuple[int, ...] = () if C == 2 else (C,)
        wanted = "one number" if C == 2 else f"a list of {C} numbers"
        rows = [np.full(shape, np.nan) if one is None else np.array(one, np.float64) for one in given]
        for i, row in enumerate(rows):
            if row.shape != shape:
                raise Refusal(422, f"scores, at [{i}]: in a network of {C} classes a score is {wanted}, or null")
        return np.array(rows, np.float64)

    def _known(self, names: list[Name]) -> Doubles:
        return np.array([self._score(name) for name in names], np.float64)

    def _score(self, name: Name) -> Any:
        """This agent's score of an item it was given, before the gain."""
        agent = self._agent
        result = agent.result(name)
        if result is None or result.view == "missing":
            what = "has not decided, or has forgotten," if result is None else "had no view of"
            raise Refusal(404, f"{agent.name} {what} the item {name!r:.220}: decide it first, or send scores")
        found = agent.gains.original(name, result.score)
        if found is None:
            raise Refusal(
                404, f"{agent.name} has no score of item {name!r:.220} since it was tuned: send scores, or other items"
            )
        return found

    def _run(self, asked: _Run) -> TuningStep:
        from collegium.live.tuning import tune

        agent, job, session = self._agent, self._job, asked.session
        if job is None or job.session != session:
            raise Refusal(404, f"{agent.name} knows no tuning {session!r}: check it first")
        self._job = None
        before, begun = agent.gains.now, time.monotonic()
        sent = agent.status().bytes.sent
        rows: list[int] = []
        limit, widest = asked.bounds or (agent.bound, agent.bound)
        found = tune(
            agent, job.scores, job.learner, session, gain=before.gain, per_class=job.per_class,
            limit=limit, widest=widest, verify=asked.verify, passes=asked.passes, away=asked.away, on_rows=rows.append,
        )  # fmt: skip
        gain, shift = plain(found.gain), plain(np.asarray(before.shift, np.float64) + found.shift)
        largest = float(np.abs(Gain(gain, plain(found.shift))(job.scores)).max())
        if found.agreed:
            agent.gains.propose(gain, shift, session)
        choice = found.choice
        learned = Learned(
            found.agreed, choice.kept, choice.code, agent.status().agents[choice.agent], choice.items,
            choice.error_before, choice.error_equal, choice.error_best, choice.error_tuned, len(rows), sum(rows),
            agent.status().bytes.sent - sent, round(time.monotonic() - begun, 3), largest,
        )  # fmt: skip
        state = "proposed" if found.agreed else "dropped"
        return TuningStep(agent.name, session, state, gain, shift, agent.bound, learned)


async def _in_thread(work: Callable[[], _T]) -> _T:
    """Its result; a thread that ends with the process, however long it takes."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def tell(result: Any, problem: BaseException | None) -> None:
        if not done.done():
            done.set_result(result) if problem is None else done.set_exception(problem)

    def run() -> None:
        result, problem = None, None
        try:
            result = work()
        except BaseException as raised:  # it is raised where it is waited for
            problem = raised
        with suppress(RuntimeError):  # the port is closed by now, and no request waits
            loop.call_soon_threadsafe(tell, result, problem)

    Thread(target=run, name="tuning", daemon=True).start()
    return await done
