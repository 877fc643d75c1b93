"""What a rule promises to `collaborate`, to its kernel and to live agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from unittest import SkipTest

import numpy as np

from collegium import kernels
from collegium.checks import base
from collegium.checks.base import Check, expect, listed
from collegium.checks.codec import packed
from collegium.checks.runs import ROUNDS, any_split, changing_networks, job, networks, same, some_rows, watched
from collegium.errors import CollegiumError
from collegium.links import Delayed, Lossy
from collegium.network import reference_run
from collegium.policy import Policy
from collegium.protocol import HoldLast, Quantised, Renormalise, Rule
from collegium.protocol.codec import Float64
from collegium.protocol.states import leaves
from collegium.schedule.base import Schedule

_CLASSES = 4
_MOST_LIVE = 24
"""Agents of a live network in one process: each has two threads."""


def check_rule(rule: Rule, policy: Schedule | None = None) -> list[str]:
    """Check that a rule keeps the promises `collaborate` and live networks rely on.

    policy: the network it is tried on; several of different shapes if None. A schedule will do, for a rule that was
        made for one.

    Returns what held, and what was skipped and why; raises `CheckError` with a line for every promise that is broken.

    >>> from collegium.protocol import DeGroot
    >>> check_rule(DeGroot())[4]
    'messages are finite float64 of the promised width'
    """
    return base.run(_named(rule), rule_checks(rule, policy))


@listed
def rule_checks(rule: Rule, policy: Schedule | None = None) -> Iterator[Check]:
    """The checks of `check_rule`, one by one."""
    if not isinstance(rule, Rule):
        yield from base.one_failure("is a Rule", f"{rule!r:.80} is not a Rule: derive it from collegium.protocol.Rule")
        return
    over = networks(policy)
    changing = changing_networks() if policy is None else []
    yield from base.settings_checks(rule, "rule")
    for name, function, where in (
        ("everybody sends in round 1", _sends_in_round_1, over),
        ("messages are finite float64 of the promised width", _messages_are_as_promised, over),
        ("states are arrays that keep their form", _states_keep_their_form, over),
        ("the same numbers when run twice", _repeats, over),
        ("n items are n times one item", _rows_are_alone, over),
        ("any order and split of items", _any_split, over),
        ("leaves scores and messages as they were", _leaves_inputs, over),
        ("bits are true on the wire", _bits_are_true, over),
        ("several classes", _several_classes, over),
        ("lossy and late links", _lossy_links, over),
        ("a schedule that changes", _any_split, changing),
        ("array kernel equals the rule", _kernel_equals_rule, [*over, *changing]),
        ("wrapped by a quantising codec", _wrapped, over),
    ):
        if where:
            yield Check(name, partial(function, rule, where))
    yield Check("live network equals simulator", partial(_live_equals_simulator, rule, over), _no_live(over))


def _sends_in_round_1(rule: Rule, over: Sequence[Schedule]) -> None:
    for network in over:
        reference_run(job(rule, network, rounds=1), rule)


def _messages_are_as_promised(rule: Rule, over: Sequence[Schedule]) -> None:
    # Everything that is sent passes `protocol.sending.encoded`, which names the agent, the round and what is wrong.
    for seat, t, (values, _, own) in watched(rule, over).emitted:
        shape = len(values), values.shape[-1]
        expect(
            own is None or (isinstance(own, np.ndarray) and own.dtype == np.float64 and own.shape == shape),
            f"agent {seat.agent}, round {t}: own must be float64 of shape {shape} or None, got {own!r:.80}",
        )


def _states_keep_their_form(rule: Rule, over: Sequence[Schedule]) -> None:
    spy = watched(rule, over[:1])
    n = len(job(rule, over[0]).scores)
    first: dict[str, str] = {}  # by agent: each hears as many as it hears
    for after, state in spy.states:
        for leaf in leaves(state):
            expect(
                isinstance(leaf, np.ndarray) and leaf.shape[:1] == (n,),
                f"after {after} the state of {n} items holds {_described(leaf)}: a state is a tuple of arrays with the "
                "items on axis 0",
            )
        agent, form = after.partition(" in ")[0].rpartition(" of ")[2], _form(state)
        expect(
            first.setdefault(agent, form) == form,
            f"after {after} the state is {form}, after init {first[agent]}: live agents keep states in arrays of one "
            "form",
        )


def _form(state: Any) -> str:
    return ", ".join(_described(leaf) for leaf in leaves(state)) or "empty"


def _described(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}" if isinstance(leaf, np.ndarray) else type(leaf).__name__


def _repeats(rule: Rule, over: Sequence[Schedule]) -> None:
    one = job(rule, over[0])
    same(reference_run(one, rule), reference_run(one, rule), "other numbers when run twice: draw only from `draws`")


def _rows_are_alone(rule: Rule, over: Sequence[Schedule]) -> None:
    for network in over:
        one = job(rule, network)
        whole = reference_run(one, rule)
        for i in range(len(one.scores)):
            alone = reference_run(some_rows(one, slice(i, i + 1)), rule)
            same(whole, alone, f"item {i} has other numbers in a batch than alone, on {network}", slice(i, i + 1))


def _any_split(rule: Rule, over: Sequence[Schedule]) -> None:
    for network in over:
        for mailbox in (HoldLast(), Renormalise()):
            any_split(rule, job(rule, network, mailbox=mailbox), f"on {network} with {mailbox}")


def _leaves_inputs(rule: Rule, over: Sequence[Schedule]) -> None:
    changed = watched(rule, over).changed
    expect(not changed, f"it changes the {', '.join(dict.fromkeys(changed))} it is given: work on a copy")


def _bits_are_true(rule: Rule, over: Sequence[Schedule]) -> None:
    for d in (1, _CLASSES):
        if _takes(rule, d) is None:
            width, claimed, bits = rule.width(d), rule.message_bits(d), rule.codec.message_bits
            for codes in watched(rule, over[:1], d).codes:
                packed(rule.codec, codes.reshape(-1, width))
            expect(
                claimed == bits * width,
                f"message_bits({d}) is {claimed}, but a message is {width} numbers of {bits} bits: set `codec` and "
                "`width`, message_bits follows from them",
            )


def _several_classes(rule: Rule, over: Sequence[Schedule]) -> None:
    refusal = _takes(rule, _CLASSES)
    if refusal is not None:
        raise SkipTest(f"it is for two classes: {refusal}")
    for network in over:
        any_split(rule, job(rule, network, d=_CLASSES), f"of {_CLASSES} classes on {network}")


def _takes(rule: Rule, d: int) -> str | None:
    """Why a rule refuses scores of d numbers, if it does: then its `width` says so."""
    try:
        rule.width(d)
    except CollegiumError as refusal:
        return str(refusal)
    return None


def _lossy_links(rule: Rule, over: Sequence[Schedule]) -> None:
    lossy = Lossy(0.4, seed=1)
    for links, mailbox in (
        (lossy, HoldLast()),
        (lossy, HoldLast("hold")),
        (lossy, Renormalise()),
        (Lossy(1.0), HoldLast()),
        (Delayed(0, 2, seed=1), HoldLast()),
    ):
        any_split(rule, job(rule, over[0], mailbox=mailbox, links=links), f"over {links} with {mailbox}")


def _kernel_equals_rule(rule: Rule, over: Sequence[Schedule]) -> None:
    served = 0
    for network in over:
        for mailbox in (HoldLast(), Renormalise()):
            for rounds, d in ((0, 1), (1, 1), (ROUNDS, 1), (ROUNDS, _CLASSES)):
                one = job(rule, network, rounds=rounds, d=d, mailbox=mailbox)
                kernel = kernels.find(one, rule)
                if kernel is not None:
                    where = f"{f'of {d} classes ' if d > 1 else ''}on {network} with {mailbox}, {rounds} rounds"
                    same(reference_run(one, rule), kernel(one), f"the kernel's numbers are not the rule's {where}")
                    served += 1
    if not served and kernels.numbers(rule) is None:
        raise SkipTest(f"there is no kernel for {type(rule).__name__}: it runs as it is")
    if not served:
        raise SkipTest("no kernel serves it here: is numba installed?")


def _wrapped(rule: Rule, over: Sequence[Schedule]) -> None:
    wrapped = _quantised(rule)
    _any_split(wrapped, over)
    _bits_are_true(wrapped, over)
    with suppress(SkipTest):
        _kernel_equals_rule(wrapped, over)


def _quantised(rule: Rule) -> Rule:
    """The rule with few bits; a rule for which that has no meaning is left out."""
    if type(rule.codec) is not Float64:
        raise SkipTest(f"it has a codec of its own, {rule.codec}")
    wrapped = Quantised(rule, bits=8, bound=1.0)
    if wrapped.max_score(1) <= 0:
        raise SkipTest("its messages outgrow any bound")
    return wrapped


def _live_equals_simulator(rule: Rule, over: Sequence[Schedule]) -> None:
    from collegium.checks import live

    if any(emitted.outbox.values.ndim == 3 for emitted in watched(rule, over[:1]).emitted):
        raise SkipTest("it sends one message per receiver, which live agents do not")
    rules = [rule]
    with suppress(SkipTest):
        rules.append(_quantised(rule))
    for network in over[::3]:  # two of the five, or the one that is given
        for one in rules:
            live.equals_simulator(one, network)


def _no_live(over: Sequence[Schedule]) -> str | None:
    if not isinstance(over[0], Policy):
        return "live networks do not change from round to round"
    if over[0].size > _MOST_LIVE:
        return f"a network of {over[0].size} agents is too large for one process"
    try:
        import collegium.checks.live  # noqa: F401
    except ImportError as missing:
        return f"live networks need the extra: pip install 'collegium[live]' ({missing.name} is missing)"
    return None


def _named(rule: Any) -> str:
    return f"{rule!s:.80}" if isinstance(rule, Rule) else type(rule).__name__
