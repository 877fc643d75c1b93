"""Certificates that are renewed, agents that are revoked, join and leave, and new epochs, in simulated histories."""

import pytest

from collegium.checks import histories
from collegium.errors import CheckError
from collegium.live.change import Change, Phase

pytestmark = pytest.mark.live


def test_renewed_and_revoked_in_histories():
    plans = [histories.operations_plan(seed) for seed in range(300)]
    before = [one for one in plans for fault in one.faults if fault.kind == "revoke" and fault.end < one.start]
    assert len(before) > 40  # in so many the revoked agent must be counted by nobody
    for plan in plans:
        histories.run(plan)


def test_a_history_in_which_a_revoked_agent_is_still_heard_is_found(monkeypatch):
    monkeypatch.setattr(histories.History, "_refuse", lambda self, k, agent: None)
    plans = [histories.operations_plan(seed) for seed in range(100)]
    wrong = next(one for one in plans if any(f.kind == "revoke" and f.end < one.start for f in one.faults))
    with pytest.raises(CheckError, match="which was revoked before"):
        histories.run(wrong)


def test_a_renewal_before_or_after_the_items_changes_no_number():
    plan = histories.Plan(seed=3, network=2, start=1.0, faults=(histories.Fault("renew", 1, 0.2, 0.5),))
    history = histories.History(plan)
    history.run()
    history._equals_simulator()


def test_agents_restarted_one_at_a_time_change_no_number():
    """What comes while one is away waits for it: all items are decided by all, as by the simulator."""
    plans = [histories.restarts_plan(seed) for seed in range(100)]
    assert all(plan.is_only_restarted for plan in plans)
    for plan in plans:
        histories.run(plan)
    away = [one for one in plans for fault in one.faults if fault.begin < one.start < fault.end]
    assert len(away) > 20  # in so many the items came while an agent was away


def test_a_history_in_which_nobody_waits_for_a_restarted_agent_is_found(monkeypatch):
    monkeypatch.setattr(histories.History, "_say_going", lambda self, k: None)
    with pytest.raises(CheckError, match="is not the simulator's"):
        [histories.run(histories.restarts_plan(seed)) for seed in range(30)]


def test_no_item_is_lost_by_a_change_of_epoch():
    """Agents join and leave, rule and rounds change, some crash in the middle, while items come."""
    plans = [histories.epochs_plan(seed) for seed in range(60)]
    assert sum(plan.crash is not None for plan in plans) == 20
    in_each = set()
    for plan in plans:
        history = histories.EpochHistory(plan)
        history.run()
        in_each.add(frozenset(history.epoch_of.values()))
    assert frozenset((0, 1)) in in_each


def test_a_history_in_which_agents_go_over_one_by_one_is_found(monkeypatch):
    def at_once(self, now):
        self.phase = Phase.OPEN if self.phase is not Phase.OLD else self.phase
        return self.phase

    monkeypatch.setattr(Change, "advance", at_once)
    with pytest.raises(CheckError, match=r"is in both epochs|has not the simulator's numbers|was lost"):
        [histories.run(histories.epochs_plan(seed)) for seed in range(20)]
