"""What an agent looks after beside its items, for a week on a virtual clock: real files, no thread, no link."""

import logging
import os
from datetime import UTC, datetime, timedelta

import pytest

from collegium.errors import LiveError
from collegium.live import keys, revocation
from collegium.live.transport.base import Place
from collegium.live.upkeep import EVERY, LIST, TURN, Upkeep

pytestmark = pytest.mark.live

NETWORK = "ab" * 8
HOUR, DAY = 3600.0, 86400.0
STEP = 60.0
BEGIN = datetime(2026, 1, 5, tzinfo=UTC).timestamp()


class Carrier:
    """What Upkeep asks of a transport; a neighbour renews its certificate first, every time."""

    def __init__(self, place):
        self.place, self.renewals, self.told, self.denied, self.is_turn = place, 0, [], [], False

    def renew(self):
        self.is_turn = not self.is_turn
        self.renewals += not self.is_turn
        return not self.is_turn

    def tell(self, notice):
        self.told.append(notice)

    def deny(self, names):
        self.denied = list(names)


class Epochs:
    def __init__(self, carrier):
        self.carrier, self.offered = carrier, []

    def look(self):
        return False

    def offer(self, content, keep=True):
        self.offered.append(content)

    def heard(self, content):
        raise LiveError(f"{content!r} cannot be read")

    def deny(self, names, reason):
        pass


class Week:
    """An agent's folder and its upkeep; files change at hours of the week."""

    def __init__(self, folder):
        self.folder, self.now, self.stopped = folder, BEGIN, 0
        at = datetime.fromtimestamp(BEGIN, UTC)
        self.authority = keys.create_authority(folder, NETWORK, start=at)
        self.tls = self.issue()
        place = Place(NETWORK, 0, "agent-0", "tls/127.0.0.1:7400", (), (), self.tls)
        self.carrier = Carrier(place)
        self.upkeep = self.begin()
        self.waits = set()

    def begin(self):
        return Upkeep(self.folder, Epochs(self.carrier), on_revoked=self.stop, clock=lambda: self.now)

    def stop(self):
        self.stopped += 1

    def issue(self, days=2):
        at = datetime.fromtimestamp(self.now, UTC)
        return keys.issue(self.authority, self.folder, "agent-0", ["127.0.0.1"], days=days, start=at, replace=True)

    def revoke(self, *names, restore=False):
        return revocation.change(self.folder, self.authority, NETWORK, list(names), [], restore=restore)

    def run(self, events, days=7):
        for minute in range(round(days * DAY / STEP)):
            self.now = BEGIN + minute * STEP
            if event := events.get(minute / 60):
                event()
            self.waits.add(self.upkeep.look())

    def warned(self, caplog, what):
        """In which hours of the week it logged that."""
        return [int(record.hours) for record in caplog.records if what in record.getMessage()]


@pytest.fixture
def week(tmp_path, caplog):
    found = Week(tmp_path)

    def stamped(record):
        record.hours = (found.now - BEGIN) / HOUR
        return True

    caplog.set_level(logging.INFO, "collegium.live")
    caplog.handler.addFilter(stamped)
    yield found
    caplog.handler.removeFilter(stamped)


def test_a_week_of_renewals_and_revocations(week, caplog):
    """Renewed every night, but not until it has ended on the fifth day; half of a pair is there for an hour."""
    half = []

    def copy_the_key_only():
        before = week.tls.certificate.read_bytes()
        week.issue()
        half.append(week.tls.certificate.read_bytes())
        week.tls.certificate.write_bytes(before)

    nights = {24.0 * day + 2: week.issue for day in (0, 1, 2, 5, 6)}
    events = nights | {
        24.0 * 4 + 3: week.issue,  # an hour after the last one ended
        24.0 * 5 + 12: copy_the_key_only,
        24.0 * 5 + 13: lambda: week.tls.certificate.write_bytes(half[0]),
        24.0 * 6 + 5: lambda: week.revoke("agent-1"),
        24.0 * 6 + 6: lambda: week.revoke("agent-1", restore=True),
        24.0 * 6 + 20: lambda: week.revoke("agent-0"),
    }
    before = len(os.listdir("/proc/self/fd"))
    week.run({hour: event for hour, event in events.items() if hour < 24 * 6 + 5}, 6)
    assert week.carrier.renewals == len(nights) - 1 + 2
    assert week.warned(caplog, "in use, valid until") == [2, 26, 50, 99, 122, 133]
    assert week.warned(caplog, "its certificate ends on") == [50 + 48 - 17]  # valid for two days and an hour
    assert week.warned(caplog, "the new certificate is not used") == [132] * 60
    assert week.waits == {EVERY, TURN}  # soon again while a neighbour renews its own first
    for hour, denied, stopped in ((5, ["agent-1"], 0), (6, [], 0), (20, ["agent-0"], 1)):
        week.now = BEGIN + 6 * DAY + hour * HOUR
        events[24.0 * 6 + hour]()
        week.upkeep.look()
        assert (week.carrier.denied, week.stopped) == (denied, stopped)
    assert week.carrier.told == [LIST + content for content in {one[1:]: None for one in week.carrier.told}]
    assert len(week.carrier.told) == 3
    assert len(os.listdir("/proc/self/fd")) == before


def test_who_is_not_renewed_is_warned_of_once_a_day_and_after_its_end(week, caplog):
    week.run({0.0: lambda: week.issue(days=6)}, 7)
    assert week.upkeep.certificate_end == BEGIN + 6 * DAY
    assert week.warned(caplog, "its certificate ends on") == [95, 119, 143, 167]


def test_an_agent_that_was_revoked_does_not_begin(week):
    week.revoke("agent-0")
    with pytest.raises(LiveError, match="agent-0 was revoked by the network's authority"):
        week.begin()
    assert not week.stopped


def test_an_expired_certificate_does_not_begin(week):
    week.now += timedelta(days=3).total_seconds()
    with pytest.raises(LiveError, match="expired since 2026-01-07"):
        week.begin()


def test_a_list_of_a_neighbour_stops_whom_it_names_before_the_first_look(week):
    """The links are open before the thread begins."""
    content = week.revoke("agent-0") and (week.folder / revocation.FILE).read_bytes()
    week.carrier.on_notice(LIST + content)
    assert week.stopped == 1
    with pytest.raises(LiveError, match="its kind is unknown"):
        week.carrier.on_notice(b"?")
