"""`tune_network`: the agents of a running network tune themselves, and all use their new gains or none does."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import numpy as np
from msgspec.structs import replace

from collegium.errors import LiveError, PolicyError
from collegium.live.answers import Name, Number, Status, TuningStep
from collegium.live.client import Client
from collegium.live.gain import Gains, gain_file
from collegium.live.launcher import Member
from collegium.policy import Policy
from collegium.tuning.conversation import passes
from collegium.tuning.gains import without

_NOTICED = 5.0
"""Seconds after which neighbours of an agent that ended know it."""
_MARGIN = 2.0
"""By how much other items' scores may be larger than those of the labelled ones."""


class NotTuned(LiveError):
    """The network could not be tuned as it is: an agent is away, missed a message, or did not agree."""


_Call = Callable[[str, Client], Any]


def tune_network(
    network: Sequence[Member],
    names: Sequence[Name],
    labels: Sequence[Any],
    scores: Mapping[str, Sequence[Number | None]] | None = None,
    *,
    loss: str = "logistic",
    conversations: int | None = None,
    per_class: bool = False,
    timeout: float = 300.0,
) -> list[TuningStep]:
    """Let the agents of a running network learn how much each should count, by conversations among themselves.

    names, labels: of items every agent has decided and remembers. scores: by agents' names, where they do not: as they
        are given to the agent, None where it has no view. loss, conversations, per_class: see `collegium.tuning.tune`.
    timeout: seconds for every step.

    What each agent was left with, by number; `state` is "used", or "dropped" if the gains as they were are the best. An
    agent that cannot be reached when it begins keeps the gain it has, and its `state` is "away": the others, if they
    are still connected, tune without it. If an agent refuses the items, nothing changes, and `LiveError` says so; and
    `NotTuned`, if an agent misses a message, leaves in the middle, or chose differently.
    """
    with ExitStack() as stack:
        clients = {one.file.agent.name: stack.enter_context(one.client(timeout)) for one in network}
        quick = {one.file.agent.name: stack.enter_context(one.client(min(timeout, 10.0))) for one in network}
        pool = stack.enter_context(ThreadPoolExecutor(len(network)))
        states, away = _states(pool, quick)
        for name, state in states.items():
            if state.mass is not None:
                raise LiveError(f"{name} works without rounds, and tuning is made of rounds: use a synchronous network")
        everybody = next(iter(states.values())).agents
        if absent := [name for name in everybody if name not in clients]:
            raise LiveError(f"{', '.join(absent)} must be tuned too: the files of all agents are needed in one folder")
        turns = _passes(network, away)
        clients, quick = ({name: of[name] for name in states} for of in (clients, quick))
        session = secrets.token_hex(8)
        body = {
            "ids": list(names), "labels": list(labels), "loss": loss, "conversations": conversations,
            "fresh": all(state.gain == 1 for state in states.values()), "per_class": per_class,
        }  # fmt: skip

        def check(name: str, client: Client) -> TuningStep:
            return client.tune(session, "check", **body, scores=None if scores is None else list(scores[name]))

        def drop() -> None:
            left = _tried(pool, quick, lambda _, client: client.tune(session, "drop"))[1]
            if left:
                raise LiveError(
                    f"{_sentence(left)}; whether it uses the new gain is not known: tune again when it is back"
                )

        bounds = [one.bound for one in _ask(pool, clients, check, LiveError).values()]
        how = {"bounds": [min(bounds), max(bounds)], "passes": turns, "verify": _inexact(network), "away": list(away)}
        try:
            found = _ask(pool, clients, lambda _, client: client.tune(session, "run", **how))
            learned = [one.learned for one in found.values() if one.learned is not None]
            if not all(one.agreed for one in learned) or len({one.choice for one in learned}) > 1:
                apart = [name for name, one in found.items() if one.learned is not None and not one.learned.agreed]
                raise NotTuned(f"the agents did not agree ({', '.join(apart) or 'on what to keep'}): nothing changed")
            if learned[0].kept == "as it was":
                drop()
                return _all(network, {name: replace(one, state="dropped") for name, one in found.items()}, session)
            # A factor that all gains have in common changes no decision.
            sizes = [(one.bound, one.learned.largest) for one in found.values()]
            scale = min([1.0, *(bound / (_MARGIN * largest) for bound, largest in sizes if largest)])
            used = _ask(pool, quick, lambda _, client: client.tune(session, "use", scale=scale))
        except LiveError:
            drop()
            raise
        return _all(network, {name: replace(used[name], learned=one.learned) for name, one in found.items()}, session)


def _states(pool: ThreadPoolExecutor, clients: Mapping[str, Client]) -> tuple[dict[str, Status], dict[str, str]]:
    """The agents that are there and connected, and why others are away."""
    end = time.monotonic() + _NOTICED
    while True:
        states, away = _tried(pool, clients, lambda _, client: client.status())
        if len(states) < 2:
            raise NotTuned(f"{_sentence(away)}; nothing changed")
        for name, state in states.items():
            apart = [one.name for one in state.neighbours if one.state != "up" and one.name not in away]
            if not state.ready and (apart or not away):
                raise NotTuned(f"{name} is not ready, {state.not_ready_reason}: nothing was tuned")
        if not any(one.state == "up" and one.name in away for state in states.values() for one in state.neighbours):
            return states, away
        if time.monotonic() > end:  # it takes part in the network, and only its port cannot be reached
            raise NotTuned(f"{_sentence(away)}; nothing changed")
        time.sleep(0.1)


def _all(network: Sequence[Member], found: Mapping[str, TuningStep], session: str) -> list[TuningStep]:
    """What every agent has, also those that took no part."""
    steps = []
    for one in network:
        name, kept = one.file.agent.name, Gains(gain_file(one.path), len(one.file.model.classes)).now
        steps.append(found.get(name) or TuningStep(name, session, "away", kept.gain, kept.shift, 0.0))
    return steps


def _passes(network: Sequence[Member], away: Collection[str]) -> int:
    """How often averages are averaged again until they are close to those of the whole network."""
    file = network[0].file
    if file.talk.schedule:
        if away:
            raise NotTuned(f"{', '.join(away)}: away, and exact averages need everybody: nothing was tuned")
        return 1
    A = np.zeros((len(network), len(network)))
    for one in network:
        for heard in one.file.hears:
            A[heard.number, one.file.agent.number] = heard.weight
    try:
        over = without(Policy(A), [k for k, one in enumerate(network) if one.file.agent.name in away])
    except PolicyError as problem:
        raise NotTuned(f"without {', '.join(away)} the others are not connected: nothing was tuned") from problem
    return passes(over, file.talk.rounds, file.rule())


def _inexact(network: Sequence[Member]) -> bool:
    """Whether agents may hear different averages, so that new gains are tried before they are used."""
    talk, rule = network[0].file.talk, network[0].file.rule()
    return not talk.schedule or rule.max_score(talk.rounds) < 1e100


def _ask(
    pool: ThreadPoolExecutor, clients: Mapping[str, Client], call: _Call, kind: type[LiveError] = NotTuned
) -> dict[str, Any]:
    """What all agents answer, side by side."""
    answers, problems = _tried(pool, clients, call)
    if problems:
        raise kind(f"{_sentence(problems)}; nothing changed")
    return answers


def _tried(
    pool: ThreadPoolExecutor, clients: Mapping[str, Client], call: _Call
) -> tuple[dict[str, Any], dict[str, str]]:
    """Answers by agent, and what was wrong by agent."""
    futures = {name: pool.submit(call, name, client) for name, client in clients.items()}
    answers: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for name, future in futures.items():
        try:
            answers[name] = future.result()
        except LiveError as problem:
            problems[name] = str(problem)
    return answers, problems


def _sentence(problems: Mapping[str, str]) -> str:
    name, first = next(iter(problems.items()))
    others = list(problems)[1:]
    return f"{name}: {first}" + (f"; also {', '.join(others)}" if others else "")
