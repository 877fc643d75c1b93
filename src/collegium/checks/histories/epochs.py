"""A network that becomes another one, in simulated time."""

from __future__ import annotations

import random
from functools import partial

import numpy as np

from collegium.checks.base import expect
from collegium.checks.histories.clock import Clock
from collegium.checks.histories.history import History
from collegium.checks.histories.plans import EpochPlan, Fault, Plan
from collegium.live import results
from collegium.live.change import Change, Phase, Seen, destinations
from collegium.network import collaborate


class EpochHistory:
    """Two histories on one clock, and agents that go over from the one to the other as `live.change` says.

    Beside what holds in each of them: an item is submitted in one epoch by all agents that stay, whoever begins it, and
    where nobody crashes it has the simulator's numbers for that epoch's network.
    """

    def __init__(self, plan: EpochPlan) -> None:
        self.plan, self._chance, self.clock = plan, random.Random(plan.seed), Clock()
        self.sides = tuple(
            History(Plan(plan.seed + side, network, rule, rounds, plan.items, jitter=1e-4), self.clock)
            for side, network, rule, rounds in zip(
                (0, 1), (plan.before, plan.after), plan.rules, plan.rounds, strict=True
            )
        )
        old, new = self.sides
        names = self._chance.sample(range(old.K), old.K)
        self.places: list[dict[int, int]] = [{name: name for name in names}, {}]
        """For each epoch, the places of agents in it, by the number they have in both."""
        for place, name in enumerate([*names[: plan.stay], *range(old.K, old.K + new.K - plan.stay)]):
            self.places[1][name] = place
        self.stay = names[: plan.stay]
        self.everybody = sorted({*self.places[0], *self.places[1]})
        self.changes = {name: Change(str(name), int(name >= old.K), name >= old.K) for name in self.everybody}
        self.is_up = dict.fromkeys(self.everybody, True)
        self.knows_of_it = {name: name >= old.K for name in self.everybody}
        self.epoch_of: dict[int, int] = {}
        self.over = False

    @property
    def now(self) -> float:
        """The time."""
        return self.clock.now

    def run(self) -> None:
        """Play it to its end."""
        at = self.clock.at
        for side in self.sides:
            side.connect()
        for name in self.everybody:
            at(self._chance.uniform(0.0, 0.1), partial(self._look, name))
        at(1.0, lambda: self._learn(self._chance.choice(self.stay)))
        for item in range(self.plan.items):
            when = self._chance.uniform(0.5, 3.5)
            for name in self.everybody:
                at(when + self._chance.uniform(0.0, 0.05), partial(self._submit, name, item))
        if self.plan.crash is not None:
            begin, seconds = self.plan.crash
            at(begin, partial(self._crash, self.stay[0], True))
            at(begin + seconds, partial(self._crash, self.stay[0], False))
        self.clock.run()
        for name, one in self.changes.items():
            expect(one.phase is Phase.OPEN and one.number == 1, f"agent {name} is not in the new epoch")
        for epoch, side in enumerate(self.sides):
            side.check_end()
            if self.plan.crash is None:
                self._equals_simulator(epoch)

    def _equals_simulator(self, epoch: int) -> None:
        side = self.sides[epoch]
        items = [item for item, one in self.epoch_of.items() if one == epoch]
        run = collaborate(side.scores, side.policy, side.plan.rounds, side.rule, items=list(range(self.plan.items)))
        for name, k in self.places[epoch].items():
            for item in items:
                result = side.results.get((k, item))
                expect(result is not None, f"item {item} was lost at agent {name} by the change")
                same = np.array_equal(np.array(result.trace), run.statistics[:, item, k])  # type: ignore[union-attr]
                expect(same, f"agent {name}, item {item} of epoch {epoch} has not the simulator's numbers")

    def _submit(self, name: int, item: int) -> None:
        one = self.changes[name]
        epochs = [epoch for epoch in (0, 1) if name in self.places[epoch]]
        hosts = {epoch: self.sides[epoch].hosts[self.places[epoch][name]] for epoch in epochs}
        if one.phase is Phase.OPEN and one.number == 1 and 1 not in epochs:
            return  # it has left
        is_between = one.phase is Phase.CLOSED or (one.joins and one.phase is not Phase.OPEN)
        begins = None if is_between else int(one.phase is Phase.OPEN and one.number == 1)
        known = [results.knows(hosts[epoch].engine, [item]) for epoch in epochs]
        chosen = destinations(known, None if begins is None else epochs.index(begins))[0]
        if not self.is_up[name] or chosen < 0:
            self.clock.at(self.now + 0.02, partial(self._submit, name, item))
            return
        epoch = epochs[chosen]
        if name in self.stay and self.plan.crash is None:
            first = self.epoch_of.setdefault(item, epoch)
            expect(first == epoch, f"item {item} is in both epochs: agent {name} has it in {epoch}")
        self.sides[epoch].submit(self.places[epoch][name], [item])

    def _crash(self, name: int, begins: bool) -> None:
        self.is_up[name] = not begins
        for side, places in zip(self.sides, self.places, strict=True):
            side.fault(Fault("crash", places[name], 0.0, 0.0), begins)
        if not begins:  # its folder has the configuration, if it knew of it
            has_it = self.knows_of_it[name]
            saved = int(self.changes[name].phase is Phase.OPEN) * self.changes[name].number
            self.changes[name], self.knows_of_it[name] = Change(str(name), saved), bool(saved)
            if has_it and not saved:
                self._learn(name)

    def _learn(self, name: int) -> None:
        if not self.is_up[name]:
            self.clock.at(self.now + 1.0, partial(self._learn, name))
        elif not self.knows_of_it[name]:
            self.knows_of_it[name], one = True, self.changes[name]
            one.begin(1)
            self.clock.at(self.now + self._chance.uniform(0.0, 0.3), partial(self._prepared, name, one))

    def _prepared(self, name: int, one: Change) -> None:
        if self.changes[name] is one and one.phase is Phase.OLD:
            one.prepared()

    def _near(self, name: int) -> set[int]:
        """Neighbours, in any epoch; those of the next one are there once both have prepared."""
        found = set()
        for epoch, places in enumerate(self.places):
            if name in places:
                names = {place: one for one, place in places.items()}
                near = {names[peer.number] for peer in self.sides[epoch].hosts[places[name]].place.neighbours}
                ready = {one for one in near if self.changes[one].number == 1 and self.changes[one].phase > Phase.OLD}
                found |= near if epoch == 0 else ready if name in ready or self.changes[name].phase else set()
        return {one for one in found if self.is_up[one]}

    def _look(self, name: int) -> None:
        if self.now > 6.0 and all(one.phase is Phase.OPEN and one.number == 1 for one in self.changes.values()):
            return
        self.clock.at(self.now + self._chance.uniform(0.02, 0.06), partial(self._look, name))
        if self.is_up[name]:
            self.changes[name].tell([str(one) for one in self._near(name)], round(self.now * 1e9))
            if self.changes[name].advance(self.now) is Phase.OPEN:
                self.changes[name].joins = False
            told = dict(self.changes[name].tell([str(one) for one in self._near(name)], round(self.now * 1e9)))
            for one in self._near(name):
                when = self.now + self._chance.uniform(0.001, 0.02)
                self.clock.at(when, partial(self._hear, one, name, told))

    def _hear(self, name: int, sender: int, told: dict[str, Seen]) -> None:
        if self.is_up[name]:
            self.changes[name].heard(told)
            if self.knows_of_it[sender]:
                self._learn(name)
