"""A week of a live network in seconds: real engines on a virtual clock, and what happens to one that runs for years.

Every day certificates are renewed, agents restarted one after the other, one crashes, one stands still, the network
falls into two halves; clocks drift apart. In the course of the week rounds are changed, an agent is revoked, agents
leave and join, one of them while another is down, and one certificate is not renewed in time. Items come all the while,
each to every agent, whose clients ask again until they have an answer.
"""

import heapq
import random
from collections import Counter, deque

import numpy as np
import pytest

from collegium.checks.base import expect
from collegium.checks.histories import History, Plan
from collegium.errors import CheckError, LiveError
from collegium.live import results
from collegium.live.change import Change, Phase, destinations
from collegium.live.evidence import Sets
from collegium.network import collaborate

pytestmark = pytest.mark.live

HOUR = 3600.0
DAY = 24 * HOUR
RING, GRID = 2, 5  # of `networks()`: four agents and six
CERTIFICATE = 2 * DAY  # how long one is valid; renewed every day
LATE = "d"  # whose certificate is not renewed in time
MOST = 600  # values that an engine keeps, half of them about the 64 items of its table
WARNED = 5.0  # seconds until everybody knows of a revocation


class Side(History):
    """The engines of one epoch; what is cut, and who is down, the week knows."""

    def __init__(self, week, plan, names):
        super().__init__(plan)
        self.week, self.names, self.places = week, names, {name: k for k, name in enumerate(names)}
        self.clock = week
        self.hosts = [self._host(k) for k in range(self.K)]
        for host in self.hosts:
            host.is_up = False

    def _is_cut(self, a, b):
        return not self.week.linked(self.names[a], self.names[b])

    def _decided(self, host, rows, now):
        super()._decided(host, rows, now)
        table, name = host.engine.table, self.names[host.place.number]
        for row in rows.tolist():
            asked = self.week.asked_at.get(self.week.item_of(table.id.item(row)), 0.0)
            counted = host.engine.progress.sets.members[table.evidence[row]]
            for other, since in self.week.revoked.items():
                if other in self.places and name != other and asked > since + WARNED:
                    expect(not counted >> self.places[other] & 1, f"{name} counts {other}, which was revoked before")


class Week:
    """Plays it; `run` raises CheckError at the first promise that is broken."""

    def __init__(self, seed, every=30 * 60.0):
        self.seed, self.chance, self.now, self.every = seed, random.Random(seed), 0.0, every
        self.events, self.count = [], 0
        self.names = list("abcdef")
        self.sides, self.number = {}, 0  # the engines of each epoch that somebody needs, and the newest configuration
        self.changes = {name: Change(name, 0) for name in self.names}
        self.knows = dict.fromkeys(self.names, 0)  # the newest configuration that each agent has
        self.up = set(self.names)
        self.away, self.half = set(), frozenset()  # sessions that are opened anew; one half of two
        self.pace = {name: 1 + self.chance.uniform(-1e-3, 1e-3) for name in "abcdefgh"}  # a minute a day
        self.ends = dict.fromkeys("abcdefgh", CERTIFICATE)
        self.revoked, self.left, self.looking = {}, set(), set()
        self.items, self.asked_at, self.epochs = 0, {}, {}
        self.ids, self.expected, self.answers = {}, {}, {}
        self.rough, self.harmless = [], []  # times in which something fails; in which somebody goes for a moment
        self.memory, self.seen = {}, Counter()
        self.apply(GRID, self.names, rounds=3)
        for name in self.names:
            self.bring_up(name, 0)

    # ── the clock ─────────────────────────────────────────────────────────────────────────────────────────────────

    def at(self, time, event):
        self.count += 1
        heapq.heappush(self.events, (time, self.count, event))

    def run(self, days=7):
        for day in range(days):
            self.plan_day(day * DAY)
        for event, day, hour in (
            (lambda: self.go_over(GRID, self.names, rounds=4), 1, 12),
            (lambda: self.revoke("e"), 2, 15),
            (lambda: self.go_over(RING, list("abcd"), rounds=2), 3, 10),  # while one is down
            (lambda: self.go_over(GRID, list("abcdgh"), rounds=3), 5, 12),
        ):
            if day < days:
                self.at(day * DAY + hour * HOUR, event)
        self.at(self.every, lambda: self.steady(days * DAY))
        while self.events:
            time, _, event = heapq.heappop(self.events)
            self.now = time
            expect(time < days * DAY + 60, "the network never comes to rest")
            event()
        self.check(days)
        return self

    def plan_day(self, begin):
        """Hours of a day, in which one thing happens each."""
        some = lambda: self.chance.choice([n for n in self.names if n not in {"a", *self.revoked}])  # noqa: E731
        for hour, event in (
            (2, lambda: self.renew_all(begin)),
            (5, lambda: self.restart_all(sorted(self.up - {"a"}))),  # one runs as long as it may
            (9.99, lambda: self.crash(some(), 120.0)),  # at ten o'clock an epoch may begin
            (17, lambda: self.pause(some(), self.chance.choice((0.7, 3.0)))),
            (20, lambda: self.split(self.chance.choice((1.0, 300.0)))),
            *((hour, self.measure) for hour in (4, 8, 12, 16, 19, 23)),
        ):
            self.at(begin + hour * HOUR, event)

    # ── who is there ──────────────────────────────────────────────────────────────────────────────────────────────

    def linked(self, a, b):
        """Whether a message gets from one to the other just now."""
        return (
            {a, b} <= self.up
            and not {a, b} & (self.away | self.left)
            and (a in self.half) == (b in self.half)
            and not any(one in self.revoked and self.now > self.revoked[one] for one in (a, b))
            and all(self.now * self.pace[one] < self.ends[other] for one, other in ((a, b), (b, a)))
        )

    def near(self, name, side):
        host = side.hosts[side.places[name]]
        return [side.names[peer.number] for peer in host.place.neighbours]

    def here(self, name):
        """The sides of which a process has an engine."""
        return [s for s in self.sides.values() if name in s.places and s.hosts[s.places[name]].is_up]

    def meet(self, name, side):
        """It sees its neighbours, and they see it, as far as there are links."""
        for other in self.near(name, side):
            if self.linked(name, other):
                side._presence(side.places[name], side.places[other], True)
                side._presence(side.places[other], side.places[name], True)

    def part(self, name, others=None):
        for side in list(self.sides.values()):
            for other in self.near(name, side) if name in side.places else ():
                if (others is None or other in others) and not self.linked(name, other):
                    side._presence(side.places[name], side.places[other], False)
                    side._presence(side.places[other], side.places[name], False)

    def bring_up(self, name, epoch):
        """A process has the engine of an epoch."""
        side = self.sides[epoch]
        k = side.places[name]
        life = side.hosts[k].life + 1
        side.hosts[k] = side._host(k, life)
        self.meet(name, side)

    def take_down(self, name):
        self.up.discard(name)
        for side in self.here(name):
            host = side.hosts[side.places[name]]
            host.is_up, host.is_paused, host.kept = False, False, []

    def come_back(self, name):
        self.up.add(name)
        saved = self.changes[name].number if self.changes[name].phase is Phase.OPEN else self.changes[name].number - 1
        self.changes[name], self.knows[name] = Change(name, saved), saved
        self.bring_up(name, saved)
        self.look_all()

    def say_going(self, name):
        for side in self.here(name):
            for other in self.near(name, side):
                if other in self.up:
                    side._on(side.places[other], lambda s=side, o=other: self.going(s, o, name))
                    side._on(side.places[name], lambda s=side, o=other: self.going(s, name, o))

    def going(self, side, name, other):
        host = side.hosts[side.places[name]]
        side._perform(host.place.number, host.engine.going(side.places[other], side._local(host)))

    # ── what happens ──────────────────────────────────────────────────────────────────────────────────────────────

    def burst(self, seconds, before=1.0, is_harmless=False):
        """Items come quickly while something happens; how long it lasts is noted."""
        (self.harmless if is_harmless else self.rough).append((self.now - before, self.now + seconds))
        for i in range(round((before + seconds) / 0.8)):
            self.at(self.now + i * 0.8, self.ask_all)

    def renew_all(self, begin):
        """New certificates: one session after the other is opened anew; the last one's files were not copied once."""
        names, self.seen["renewed"] = sorted(self.up), self.seen["renewed"] + 1
        self.burst(1.0 * len(names), is_harmless=True)
        for i, name in enumerate(names):
            is_forgotten = name == LATE and DAY <= begin < 3 * DAY
            if is_forgotten:  # it is cut off when the one that it has ends, until somebody copies the new one
                ends = self.ends[name]
                self.at(ends - HOUR, lambda: self.burst(2 * HOUR / 3600, 0.0))
                self.rough.append((ends - 120, begin + DAY + 6 * HOUR))
                self.at(ends + 120, lambda n=name: self.part(n))
                if begin >= 2 * DAY:
                    self.at(begin + 4 * HOUR, lambda n=name: self.renew(n))
            else:
                self.at(self.now + 1.0 * i, lambda n=name: self.renew(n))

    def renew(self, name):
        if name in self.up:
            was_linked = self.now * min(self.pace.values()) < self.ends[name]
            if was_linked:
                self.say_going(name)
            self.away.add(name)
            self.at(self.now + self.chance.uniform(0.1, 0.5), lambda: self.renewed(name))

    def renewed(self, name):
        self.away.discard(name)
        self.ends[name] = self.now + CERTIFICATE
        for side in self.here(name):
            self.meet(name, side)

    def restart_all(self, names):
        self.seen["restarted"] += len(names)
        self.burst(3.0 * len(names), is_harmless=True)
        for i, name in enumerate(names):
            self.at(self.now + 3.0 * i, lambda n=name: self.drain(n))

    def drain(self, name):
        engines = [side.hosts[side.places[name]].engine for side in self.here(name)]
        if name not in self.up or name in self.revoked:
            return
        if not all(engine.is_draining for engine in engines):
            for engine in engines:
                engine.drain()
            self.say_going(name)
        if any(engine.mine or len(engine.backlog) for engine in engines):
            self.at(self.now + 0.02, lambda: self.drain(name))
            return
        self.take_down(name)
        self.at(self.now + 0.8, lambda: self.come_back(name))

    def crash(self, name, seconds):
        self.seen["crashed"] += 1
        self.burst(5.0)
        self.rough.append((self.now, self.now + seconds + 10))
        self.take_down(name)
        self.at(self.now + self.chance.choice((0.01, 2.0)), lambda: self.part(name))
        self.at(self.now + seconds, lambda: self.come_back(name))

    def pause(self, name, seconds):
        self.burst(seconds + 5.0)
        for side in self.here(name):
            side.hosts[side.places[name]].is_paused = True
        self.at(self.now + seconds, lambda: self.go_on(name))

    def go_on(self, name):
        for side in self.here(name):
            host = side.hosts[side.places[name]]
            host.is_paused, kept, host.kept = False, host.kept, []
            for event in kept:
                event()

    def split(self, seconds):
        self.seen["split"] += 1
        self.burst(5.0)
        self.rough.append((self.now, self.now + seconds + 10))
        self.half = frozenset(self.chance.sample(sorted(self.up), len(self.up) // 2))
        if seconds > 2.0:
            self.at(self.now + 2.0, lambda: [self.part(name) for name in sorted(self.up)])
        self.at(self.now + seconds, self.join)

    def join(self):
        self.half = frozenset()
        for name in sorted(self.up):
            for side in self.here(name):
                self.meet(name, side)

    def revoke(self, name):
        """Its links are closed, and soon nobody counts it, although it goes on, as a thief with its key would."""
        self.burst(WARNED)
        self.rough.append((self.now, self.now + DAY))  # until it is taken out of the network
        self.revoked[name] = self.now
        self.at(self.now + self.chance.uniform(0.1, 2.0), lambda: self.part(name))

    # ── new epochs ────────────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, network, names, rounds):
        plan = Plan(self.seed + self.number, network, rounds=rounds, items=1, skew=1e-3)
        self.sides[self.number] = Side(self, plan, list(names))

    def go_over(self, network, names, rounds):
        self.number += 1
        self.seen["epochs"] += 1
        self.burst(3.0, is_harmless=self.up >= set(self.names) - set(self.revoked) and not self.revoked)
        joining = [name for name in names if name not in self.names]
        self.apply(network, names, rounds)
        for name in joining:
            self.ends[name] = self.now + CERTIFICATE
            self.changes[name], self.knows[name] = Change(name, self.number, True), self.number
            self.up.add(name)
            self.names.append(name)
            self.bring_up(name, self.number)
        self.learn(min(self.up & set(names)), self.number)
        self.look_all()

    def learn(self, name, number):
        if name in self.up and self.knows[name] < number:
            self.knows[name], one = number, self.changes[name]
            one.begin(number)
            self.at(self.now + self.chance.uniform(0.0, 0.3), lambda: self.prepared(name, one, number))

    def prepared(self, name, one, number):
        if self.changes[name] is one and one.phase is Phase.OLD and name in self.up:
            if name in self.sides[number].places:
                self.bring_up(name, number)
            one.prepared()

    def look_all(self):
        self.looked_at = self.now
        for name in sorted(self.up - {*self.revoked}):
            if name not in self.looking:
                self.looking.add(name)
                self.at(self.now + self.chance.uniform(0.0, 0.1), lambda n=name: self.look(n))

    def look(self, name):
        one = self.changes[name]
        is_over = one.finished and not one.is_going_on and all(c.number == self.number for c in self.changing())
        if name not in self.up or is_over:
            self.looking.discard(name)
            return
        expect(self.now < self.looked_at + 300, f"{name} is not in epoch {self.number} after minutes")
        links = [other for other in self.names if other != name and self.are_near(name, other)]
        old = [side for epoch, side in self.sides.items() if epoch < one.number and name in side.places]
        one.finished = not any(side.hosts[side.places[name]].engine.table.active for side in old)
        one.tell(links, round(self.now * 1e9))
        if one.advance(self.now) is Phase.OPEN:
            one.joins = False
            if name not in self.sides[one.number].places and not one.is_going_on:
                self.leave(name)
                return
        told = dict(one.tell(links, round(self.now * 1e9)))
        for other in links:
            self.at(self.now + self.chance.uniform(0.001, 0.02), lambda o=other: self.hear(o, told, self.knows[name]))
        self.at(self.now + self.chance.uniform(0.05, 0.15), lambda: self.look(name))

    def changing(self):
        return [self.changes[name] for name in self.names if name not in self.revoked]

    def are_near(self, name, other):
        sides = [side for side in self.here(name) if other in self.near(name, side)]
        return self.linked(name, other) and any(side.hosts[side.places[other]].is_up for side in sides)

    def hear(self, name, told, number):
        if name in self.up:
            self.changes[name].heard(told)
            self.learn(name, number)

    def leave(self, name):
        self.looking.discard(name)
        self.take_down(name)
        self.left.add(name)
        self.names.remove(name)
        self.part(name)

    def epoch_of(self, name):
        """In which epoch an agent begins items; None while it begins none."""
        one = self.changes[name]
        if one.phase is Phase.CLOSED or (one.joins and one.phase is not Phase.OPEN):
            return None
        return one.number if one.phase is Phase.OPEN else one.number - 1

    def retire(self):
        """Engines of epochs that are over are given up, as `Epochs` does."""
        for number in [number for number in self.sides if number < min(c.number for c in self.changing())]:
            side = self.sides.pop(number)
            for host in side.hosts:
                if host.is_up:
                    expect(not host.engine.table.active, f"{host.engine.name} still has items of epoch {number}")
            for (k, item), found in side.results.items():
                self.answers.setdefault((side.names[k], item), (number, found))
            self.settled(number, side)

    # ── items ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def steady(self, end):
        self.ask_all()
        if self.now + self.every < end - HOUR:
            self.at(self.now + self.every * self.chance.uniform(0.5, 1.5), lambda: self.steady(end))

    def ask_all(self):
        item, self.items = self.items, self.items + 1
        self.asked_at[item] = self.now
        self.ids[int(results.identities([item])[0])] = item
        self.expected[item] = list(self.names)
        for name in self.expected[item]:
            self.at(self.now + self.chance.uniform(0.0, 0.05), lambda n=name: self.ask(n, item))

    def item_of(self, identity):
        return self.ids[identity]

    def ask(self, name, item):
        """As a client does: until there is an answer."""
        sides = self.here(name)
        if name in self.left or (name in self.revoked and not sides):
            return
        begins = self.epoch_of(name)
        hosts = [side.hosts[side.places[name]] for side in sides]
        known = [results.knows(host.engine, [item]) for host in hosts]
        place = next((i for i, s in enumerate(sides) if s is self.sides.get(begins)), None)
        chosen = destinations(known, place)[0] if hosts else -1
        if chosen < 0 or hosts[chosen].engine.is_draining:
            self.at(self.now + 0.1, lambda: self.ask(name, item))
            return
        side, host = sides[chosen], hosts[chosen]
        side._on(host.place.number, lambda: self.submit(side, host, name, item))
        self.at(self.now + 15.0, lambda: self.ask_again(side, host, name, item))

    def submit(self, side, host, name, item):
        k = host.place.number
        score = [0.0] * (side.K + 1)
        score[k], score[-1] = self.value(name, item), -self.value(name, item)
        try:
            _, effects = host.engine.submit([item], np.array([score]), True, side._local(host))
        except LiveError:
            self.at(self.now + 0.2, lambda: self.ask(name, item))
            effects = host.engine.receive((), side._local(host))
        side._perform(k, effects)

    def value(self, name, item):
        return 1.0 + random.Random(f"{name} {item}").randrange(8) / 8

    def ask_again(self, side, host, name, item):
        answer = side.results.get((host.place.number, item))
        if answer is not None:
            return
        is_alive = side.hosts[host.place.number] is host and host.is_up and side in self.sides.values()
        expect(not is_alive or host.is_paused, f"{name} never answered item {item}")
        self.ask(name, item)

    # ── promises ──────────────────────────────────────────────────────────────────────────────────────────────────

    def measure(self):
        """How much every engine that has run for hours keeps."""
        self.retire()
        for number, side in self.sides.items():
            for k, host in enumerate(side.hosts):
                if host.is_up:
                    self.memory.setdefault((number, side.names[k], host.life), []).append(kept(host.engine))

    def settled(self, number, side):
        """What came while all was well, or somebody went for a moment only, has the simulator's numbers."""
        by_item = {}
        for (k, item), found in side.results.items():
            by_item.setdefault(item, {})[k] = found
        for item, found in by_item.items():
            asked = self.asked_at[item]
            for one in found.values():
                self.seen.update(f"without {side.names[int(name.removeprefix('agent-'))]}" for name in one.missed)
            if any(begin - 120 <= asked <= end + 10 for begin, end in self.rough):
                continue
            self.seen["quiet"] += 1
            self.seen["moments"] += any(begin <= asked <= end for begin, end in self.harmless)
            scores = np.zeros((1, side.K, side.K + 1))
            for k, name in enumerate(side.names):
                scores[0, k, k], scores[0, k, -1] = self.value(name, item), -self.value(name, item)
            run = collaborate(scores, side.policy, side.plan.rounds, side.rule, items=[item])
            expect(len(found) == side.K, f"item {item} has {len(found)} of {side.K} answers in epoch {number}")
            for k, one in found.items():
                expect(not one.missed, f"{side.names[k]} missed {one.missed} in item {item}, when all was well")
                same = np.array_equal(np.array(one.trace), run.statistics[:, 0, k])
                expect(same, f"{side.names[k]}, item {item} of epoch {number} has not the simulator's numbers")

    def check(self, days):
        for side in self.sides.values():
            side.check_end()
        self.measure()
        for number, side in self.sides.items():
            for (k, item), found in side.results.items():
                self.answers.setdefault((side.names[k], item), (number, found))
            self.settled(number, side)
        for item, names in self.expected.items():
            for name in names:
                gone = name in self.left or name in self.revoked
                expect(gone or (name, item) in self.answers, f"item {item} was lost at {name}")
        for who, sizes in self.memory.items():
            expect(max(sizes) <= MOST, f"{who} keeps more and more: {sizes}")


def kept(engine):
    """How many values an engine keeps in lists, dictionaries and the like; arrays keep their size, and `Sets` has a
    limit of its own."""
    found, ahead, seen = 0, deque([engine]), set()
    while ahead:
        one = ahead.popleft()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            inside = [*one, *one.values()]
        elif isinstance(one, list | tuple | set | frozenset | deque):
            inside = list(one)
        elif type(one).__module__.startswith("collegium") and not isinstance(one, Sets):
            inside = [*getattr(one, "__dict__", {}).values()]
            inside += [getattr(one, name) for name in getattr(type(one), "__slots__", ()) if hasattr(one, name)]
        else:
            continue
        found += len(inside)
        ahead.extend(inside)
    return found


@pytest.mark.parametrize("seed", [0, 4])
def test_a_week(seed):
    week = Week(seed).run()
    seen = week.seen
    assert {seen[what] for what in ("renewed", "crashed", "split")} == {7}
    assert (seen["epochs"], len(week.memory[1, "a", 1])) == (3, 11)  # one engine ran for two days
    assert seen["restarted"] > 25
    assert seen["quiet"] > 300
    assert seen["moments"] > 100  # came while certificates were renewed, agents restarted or an epoch began
    assert min(seen[f"without {name}"] for name in "bde") > 0  # what fails is noticed; d had no valid certificate


def leak(patch):
    """An engine remembers every item for good."""
    decided = Side._decided

    def remembering(self, host, rows, now):
        decided(self, host, rows, now)
        host.engine.__dict__.setdefault("all_items", []).extend(rows.tolist())

    patch.setattr(Side, "_decided", remembering)


def hear_the_revoked(patch):
    linked = Week.linked

    def still_linked(self, a, b):
        revoked, self.revoked = self.revoked, {}
        try:
            return linked(self, a, b)
        finally:
            self.revoked = revoked

    patch.setattr(Week, "linked", still_linked)


def go_over_one_by_one(patch):
    def at_once(self, now):
        self.phase = Phase.OPEN if self.phase is not Phase.OLD else self.phase
        return self.phase

    patch.setattr(Change, "advance", at_once)


def go_without_a_word(patch):
    patch.setattr(Week, "say_going", lambda self, name: None)


def stay_apart(patch):
    """Two halves do not find together again."""
    patch.setattr(Week, "join", lambda self: [self.part(name) for name in sorted(self.up)])


@pytest.mark.parametrize(
    ("mutate", "complaint", "days"),
    [
        (leak, "keeps more and more", 3),
        (hear_the_revoked, "which was revoked before", 3),
        (
            go_over_one_by_one,
            "has not the simulator's numbers|answers in epoch|was lost|never answered|after minutes",
            2,
        ),
        (go_without_a_word, "missed|has not the simulator's numbers", 1),
        (stay_apart, "missed|has not the simulator's numbers", 1),
    ],
)
def test_a_promise_that_is_broken_is_noticed(mutate, complaint, days, monkeypatch):
    mutate(monkeypatch)
    with pytest.raises(CheckError, match=complaint):
        Week(0).run(days)
