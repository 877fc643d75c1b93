"""Simulated histories of live networks: real engines, a virtual clock, seeded faults, invariants after every event.

    histories.run(histories.plan(7))

A plan says what happens; a history plays it and raises `CheckError` at the first event after which an invariant is
broken:

- an item is decided at most once in an agent's life;
- every item that was accepted is decided by its deadline, or its request fails with the reason;
- evidence is never overstated: every score has a coordinate of its own, which shows whose views are in a statistic;
- what an agent keeps stays within its limits;
- no decision counts an agent that was revoked before, and no item is lost by a change of epoch (`EpochHistory`);
- where nothing fails, the numbers are the simulator's, even if one frame in twenty is lost on quick links; and if none
  is lost and none overtakes another, nothing waits for a timer.
"""

from __future__ import annotations

from collegium.checks.histories.epochs import EpochHistory
from collegium.checks.histories.history import History
from collegium.checks.histories.plans import (
    KINDS,
    RULES,
    EpochPlan,
    Fault,
    Plan,
    epochs_plan,
    networks,
    operations_plan,
    plan,
    restarts_plan,
)
from collegium.errors import CheckError

__all__ = [
    "KINDS",
    "RULES",
    "EpochHistory",
    "EpochPlan",
    "Fault",
    "History",
    "Plan",
    "epochs_plan",
    "networks",
    "operations_plan",
    "plan",
    "restarts_plan",
    "run",
]


def run(plan: Plan | EpochPlan) -> str:
    """Play a plan; a digest of its history. What breaks is raised with the plan."""
    history = EpochHistory(plan) if isinstance(plan, EpochPlan) else History(plan)
    try:
        return history.run() or ""
    except Exception as problem:
        raise CheckError(f"{problem} (at {history.now:.3f} s of {plan})") from problem
