"""What tuning left an agent with: a gain and a shift, in memory and in a file beside the agent's own.

They change in two steps, so that all agents of a network use the new ones or none does: `propose` writes a second,
pending file, and only `use` makes it the one that counts. Both survive a restart, and `drop` takes either back.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from collegium._util.files import atomic_write
from collegium.errors import InputFileError, LiveError
from collegium.live.answers import Name, Number

Doubles = NDArray[np.float64]
_REMEMBERED = 10_000  # items whose scores before the gain are known


def gain_file(agent: Path) -> Path:
    """Where the gain of an agent is kept, beside its file."""
    return agent.with_name(f"{agent.stem}.gain.json")


class Gain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much an agent counts: what enters the network is gain · (score - shift)."""

    gain: Number = 1.0
    """One number; of more than two classes there may be one for each: then what enters loses its mean over them."""
    shift: Number = 0.0
    """One number; of more than two classes, one for each."""
    session: str = ""
    """The tuning it is of; none if there was none."""
    before: Gain | None = None
    """What it took the place of."""
    online: tuple[float, float, int] = (0.0, 0.0, 0)
    """Power, size and number of items whose labels became known one by one; see `collegium.tuning.Online`."""
    largest: float = 0.0
    """The largest score of these items, before the gain."""

    def __call__(self, scores: Doubles) -> Doubles:
        """What enters the network of scores (n,) or (n, C)."""
        entering = (scores - np.asarray(self.shift, np.float64)) * np.asarray(self.gain, np.float64)
        return entering - entering.mean(axis=-1, keepdims=True) if isinstance(self.gain, list) else entering

    def scaled(self, factor: float) -> Gain:
        """The same, times a factor that all agents have in common."""
        return msgspec.structs.replace(self, gain=plain(np.asarray(self.gain, np.float64) * factor))


def plain(values: Any) -> Number:
    """Numbers of shape () or (C,) as a file has them."""
    found: Number = np.asarray(values, np.float64).tolist()
    return found


class NoSuchTuning(LiveError):
    """No gain of this tuning is proposed here."""


class AnotherLabel(LiveError):
    """An item has one label."""


class Gains:
    """The gain an agent uses, and the one that is proposed; without a path, in memory only."""

    def __init__(self, path: Path | None = None, classes: int = 2) -> None:
        self._path, self._classes = path, classes
        self.now = self._read("") or Gain()
        self._pending = self._read(".pending")
        self._scores: OrderedDict[Name, Doubles] = OrderedDict()
        self._told: OrderedDict[Name, int] = OrderedDict()
        self._lock = threading.Lock()
        self.is_untouched = not self.now.session
        """Whether no gain was ever used: then what entered the network are the scores themselves."""
        self._began_untouched = self.is_untouched

    def enter(self, names: Sequence[Name], scores: Doubles) -> Doubles:
        """What enters the network; scores of tuned agents are remembered as they were, to tune them again."""
        if self.is_untouched:
            return scores
        self._scores.update(zip(names, scores, strict=True))
        while len(self._scores) > _REMEMBERED:
            self._scores.popitem(last=False)
            self._began_untouched = False  # what is not remembered may have had a gain
        return self.now(scores)

    def original(self, name: Name, entered: Number) -> Doubles | None:
        """An item's score before the gain, from what entered the network; None if it is not known."""
        if name in self._scores:
            return self._scores[name]
        return np.asarray(entered, np.float64) if self._began_untouched else None

    def told(self, name: Name, label: int, x: Doubles, s: Number, rate: float, bound: float) -> bool:
        """Move the gain, now that the label of an item is known; whether it was not known before.

        label: +1 / -1, or a place. x: the agent's own score, before the gain. s: what the network made of the item.
        A gain that could make such scores larger than half of the agent's bound stays as it is.
        """
        from collegium.tuning.online import Online

        with self._lock:
            if name in self._told:
                if self._told[name] != label:
                    raise AnotherLabel(f"the label of item {name!r:.220} was another when it was given before")
                return False
            now = self.now
            own = x - np.asarray(now.shift, np.float64)
            gain = np.array(now.gain) if isinstance(now.gain, list) else now.gain
            after = Online(gain, *now.online).told(own, s, label, rate=rate)
            largest = max(now.largest, float(np.abs(own).max()))
            fits = float(np.abs(after.gain).max()) * largest <= bound / 2
            new = msgspec.structs.replace(
                now, gain=plain(after.gain) if fits else now.gain, session=now.session or "online",
                online=(after.power, after.size, after.seen), largest=largest,
            )  # fmt: skip
            self._write("", new)
            self.is_untouched, self.now = False, new
            self._told[name] = label
            while len(self._told) > _REMEMBERED:
                self._told.popitem(last=False)
            return True

    def propose(self, gain: Number, shift: Number, session: str) -> None:
        """Keep a gain that all may agree on."""
        before = msgspec.structs.replace(self.now, before=None)
        self._pending = Gain(gain, shift, session, before)
        self._write(".pending", self._pending)

    def use(self, session: str, scale: float = 1.0) -> Gain:
        """From now on the proposed gain counts, times a common factor; doing it again changes nothing."""
        if self.now.session != session:
            if self._pending is None or self._pending.session != session:
                raise NoSuchTuning(f"no gain of the tuning {session!r:.80} is proposed here")
            new = self._pending.scaled(scale)
            self._write("", new)
            self.is_untouched, self.now = False, new
        self._forget()
        return self.now

    def drop(self, session: str) -> Gain:
        """The gain of a tuning is not used, or no longer; doing it again changes nothing."""
        if self.now.session == session and self.now.before is not None:
            before = self.now.before
            self._write("", before if before.session else None)
            self.now = before
        if self._pending is not None and self._pending.session == session:
            self._forget()
        return self.now

    def _forget(self) -> None:
        self._pending = None
        self._write(".pending", None)

    def _read(self, ending: str) -> Gain | None:
        path = self._file(ending)
        if path is None or not path.exists():
            return None
        try:
            found = msgspec.json.decode(path.read_bytes(), type=Gain)
        except (OSError, msgspec.DecodeError) as problem:
            raise InputFileError(f"{path} is not an agent's gain: {problem}; without the file it is 1") from None
        for one in (found, found.before or found):
            for what, value in (("shift", one.shift), ("gain", one.gain)):
                many = len(value) if isinstance(value, list) else None
                if many not in (None, self._classes) or (many is not None and self._classes == 2):
                    raise InputFileError(
                        f"{path} has a {what} of {many} numbers, and there are {self._classes} classes"
                    )
        return found

    def _write(self, ending: str, gain: Gain | None) -> None:
        """Whole or not at all, whenever the process or the machine ends."""
        path = self._file(ending)
        if path is None:
            return
        try:
            if gain is None:
                path.unlink(missing_ok=True)
                return
            with atomic_write(path, sync=True) as file:
                file.write(msgspec.json.encode(gain))
        except (OSError, InputFileError) as problem:
            raise LiveError(f"the gain cannot be written: {problem}") from None

    def _file(self, ending: str) -> Path | None:
        return None if self._path is None else self._path.with_name(self._path.name + ending)
