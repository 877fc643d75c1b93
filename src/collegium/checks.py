"""Conformance suites anybody can run on their own parts: `check_rule` and `check_policy`.

Each runs a list of small checks and raises `CheckError` with the first that fails, in words an outsider
understands; what passed is returned.
"""

import dataclasses
import math
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from collegium import topology
from collegium.errors import CheckError, CollegiumError
from collegium.network import Job, admit, by_agents
from collegium.policy import Policy, metropolis, uniform
from collegium.protocol import HoldLast, Mailbox, Renormalise, Rule

_ROUNDS = 12
_ITEMS = 7


def check_rule(rule: Rule, policy: Policy | None = None) -> list[str]:
    """Check that a rule keeps the promises `collaborate` and live networks rely on; returns what was checked.

    Above all: where the rule has an array path, it equals the agents' view number for number for the same seed.
    With a policy, the networks used are that one and a lonely agent; without, five of different shapes.

    >>> from collegium.protocol import DeGroot
    >>> check_rule(DeGroot())[-1]
    'array path equals agent view'
    """
    if not isinstance(rule, Rule):
        raise CheckError(f"{rule!r} is not a Rule: derive it from collegium.protocol.Rule")
    passed = []
    for check in (_is_frozen, _pickles, _first_round_speaks, _repeats, _follows_items, _leaves_scores_alone):
        _attempt(check, rule)
        passed.append(_title(check))
    if rule.arrays(_job(rule, next(_networks(policy)), HoldLast())) is None:
        passed.append("no array path: runs agent by agent")
        return passed
    for network in _networks(policy):
        for mailbox in (HoldLast(), Renormalise()):
            _attempt(_array_path_equals_agent_view, rule, network, mailbox)
    passed.append(_title(_array_path_equals_agent_view))
    return passed


def check_policy(policy: Policy) -> list[str]:
    """Check what everything downstream takes for granted of a policy; returns what was checked.

    Useful for a matrix that was computed, learned or read from a file.

    >>> check_policy(uniform(topology.ring(5)))
    ['columns sum to one', 'perron is fixed', 'rounds converge to the perron average', 'pickles']
    """
    if not isinstance(policy, Policy):
        raise CheckError(f"{type(policy).__name__} is not a Policy: wrap your matrix as Policy(A)")
    sums = np.asarray(policy.sparse.sum(axis=0)).ravel()
    worst = int(np.abs(sums - 1).argmax())
    _expect(abs(sums[worst] - 1) <= 1e-9, f"column {worst} of A sums to {sums[worst]:.12g}, not 1")
    pi = policy.perron
    # each entry is a sum of at most K products, each with a relative error of eps
    slack = 64 * policy.size * np.finfo(float).eps
    _expect(bool((pi > 0).all()) and abs(pi.sum() - 1) <= slack, "the Perron vector is not positive with sum 1")
    _expect(np.abs(policy.sparse @ pi - pi).sum() <= slack, "A does not keep its Perron vector fixed")
    x = np.cos(np.arange(policy.size))
    limit, widest = float(x @ pi), float(np.ptp(x))
    sigma = policy.slem
    enough = 0 if sigma == 0 else min(10_000, math.ceil(math.log(1e-12) / math.log(min(sigma, 1 - 1e-12))))
    for _ in range(enough + policy.size.bit_length()):
        x = policy.sparse.T @ x
    # non-normal matrices lag behind their eigenvalue by a factor that grows with K
    left = widest * max(policy.size**2 * sigma**enough, slack)
    _expect(np.abs(x - limit).max() <= left, "repeated rounds do not lead to the Perron-weighted average")
    _expect(pickle.loads(pickle.dumps(policy)) == policy, "the policy does not survive pickling")
    return ["columns sum to one", "perron is fixed", "rounds converge to the perron average", "pickles"]


def _attempt(check: Callable[..., None], rule: Rule, *arguments: Any) -> None:
    """Run a check; whatever a stranger's rule throws becomes a sentence that says during what."""
    try:
        check(rule, *arguments)
    except CheckError:
        raise
    except Exception as problem:
        raise CheckError(f"{rule} failed the check '{_title(check)}': {type(problem).__name__}: {problem}") from problem


def _is_frozen(rule: Rule) -> None:
    frozen = dataclasses.is_dataclass(rule) and getattr(rule, "__dataclass_params__").frozen  # noqa: B009
    _expect(
        frozen, f"{type(rule).__name__} must be a frozen dataclass: state goes in and comes out, never stays inside"
    )
    hash(rule)


def _pickles(rule: Rule) -> None:
    _expect(
        pickle.loads(pickle.dumps(rule)) == rule,
        f"{rule} does not equal itself after pickling: compare by value, keep only settings",
    )


def _first_round_speaks(rule: Rule) -> None:
    by_agents(_job(rule, uniform(topology.ring(3)), HoldLast(), rounds=1), rule)


def _repeats(rule: Rule) -> None:
    job = _job(rule, uniform(topology.ring(4)), HoldLast())
    _same(by_agents(job, rule), by_agents(job, rule), f"{rule} gives other numbers when run twice: draw only from rng")


def _follows_items(rule: Rule) -> None:
    job = _job(rule, uniform(topology.ring(4)), HoldLast())
    backwards = job._replace(scores=job.scores[::-1].copy(), ids=job.ids[::-1].copy())
    there, back = by_agents(job, rule), by_agents(backwards, rule)
    _expect(
        np.array_equal(there.statistics, back.statistics[:, ::-1]),
        f"{rule} treats an item differently in another place of the batch: draw only from rng and keep nothing",
    )


def _leaves_scores_alone(rule: Rule) -> None:
    job = _job(rule, uniform(topology.ring(4)), HoldLast())
    before = job.scores.copy()
    by_agents(job, rule)
    rule.arrays(job)
    _expect(np.array_equal(job.scores, before), f"{rule} changes the scores it is given")


def _array_path_equals_agent_view(rule: Rule, network: Policy, mailbox: Mailbox) -> None:
    for rounds in (0, 1, _ROUNDS):
        job = _job(rule, network, mailbox, rounds)
        slow, fast = by_agents(job, rule), rule.arrays(job)
        where = f"on {network} with {mailbox}, {rounds} rounds"
        if fast is None:
            raise CheckError(f"{rule} has an array path for some jobs but not {where}")
        _same(slow, fast, f"the array path of {rule} differs from the agents' view {where}")


def _same(one: Any, other: Any, complaint: str) -> None:
    differ = np.argwhere(one.statistics != other.statistics)
    if len(differ):
        t, i, k = differ[0]
        a, b = one.statistics[t, i, k], other.statistics[t, i, k]
        raise CheckError(f"{complaint}: round {t}, item {i}, agent {k} has {a!r} and {b!r}")
    if not np.array_equal(one.transmissions, other.transmissions):
        i = int(np.flatnonzero(one.transmissions != other.transmissions)[0])
        a, b = one.transmissions[i], other.transmissions[i]
        raise CheckError(f"{complaint}: item {i} costs {a} and {b} transmissions")


def _networks(policy: Policy | None) -> Iterator[Policy]:
    if policy is not None:
        yield policy
    else:
        yield uniform(topology.erdos_renyi(9, links=20, seed=3))
        yield metropolis(topology.grid(2, 3))
        yield metropolis(topology.star(5))
        yield Policy([[0.0, 0.5, 0.3], [1.0, 0.0, 0.7], [0.0, 0.5, 0.0]])  # nobody listens to itself
    yield uniform(topology.ring(1))


def _job(rule: Rule, policy: Policy, mailbox: Mailbox, rounds: int = _ROUNDS) -> Job:
    """Scores of both signs with ties and repetitions, small enough for the rule's range."""
    while rounds > 1 and rule.reach(rounds) <= 0:
        rounds -= 1
    bound = min(1.0, rule.reach(rounds))
    grid = np.sin(np.arange(_ITEMS * policy.size)).reshape(_ITEMS, policy.size)
    grid[1], grid[2] = 0.0, np.round(grid[2])
    try:
        return admit(bound * grid, policy, rounds, [rule], 5, "all", None, mailbox)
    except CollegiumError as refusal:
        raise CheckError(f"{rule} was refused at the door: {refusal}") from refusal


def _expect(condition: bool | np.bool, complaint: str) -> None:
    if not condition:
        raise CheckError(complaint)


def _title(check: Callable[..., None]) -> str:
    return check.__name__.strip("_").replace("_", " ")
