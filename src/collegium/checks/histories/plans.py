"""What happens in a history of a live network: written by hand, or drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from collegium.policy import Policy, metropolis, uniform
from collegium.protocol import DeGroot, DeltaTrigger, LabelStability, Rule, SocialLearning
from collegium.topology import Graph, complete, grid, ring

RULES: Sequence[Rule] = (DeGroot(), DeltaTrigger(0.2), LabelStability(1, 0.1), SocialLearning())


def networks() -> list[Policy]:
    """Small networks of every kind."""
    return [
        uniform(complete(2)),
        metropolis(grid(1, 3)),
        uniform(ring(4)),
        uniform(complete(4)),
        uniform(Graph.from_links(4, [1, 2, 0, 0, 3], [0, 0, 1, 3, 2])),
        metropolis(grid(2, 3)),
    ]


NETWORKS = networks()


@dataclass(frozen=True)
class Fault:
    """Something that happens to one agent (or, for `partition`, to those with smaller numbers) for some time."""

    kind: str
    """crash (memory is lost), pause (it is kept), partition, mute, slow, liar; see also OPERATIONS."""
    agent: int
    begin: float
    end: float


KINDS = ("crash", "pause", "partition", "mute", "slow", "liar")
OPERATIONS = ("renew", "revoke")
"""renew: its links are opened anew, frames are lost meanwhile; revoke: neighbours refuse it, one after the other;
restart: it finishes what it has, and a new process comes after `end - begin` (`restarts_plan`)."""


@dataclass(frozen=True)
class Plan:
    """What happens in a history; chances are per frame."""

    seed: int = 0
    network: int = 2
    rule: int = 0
    rounds: int = 3
    items: int = 2
    batches: int = 1
    """In how many requests the items come."""
    missing: float = 0.0
    """Chance that an agent never gets its view of an item, or gets it late."""
    loss: float = 0.0
    duplicate: float = 0.0
    jitter: float = 0.0
    """Seconds by which frames may overtake each other."""
    skew: float = 0.0
    """How much faster or slower clocks may run."""
    pending: int | None = None
    start: float = 0.0
    """When the first items come."""
    faults: tuple[Fault, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether at most a few frames are lost, and there is time to ask for them: the links are quick."""
        is_lossless = not self.loss or (self.loss <= 0.05 and self.jitter <= 0.03)
        return is_lossless and not (self.missing or self.faults or self.skew or self.pending)

    @property
    def is_only_restarted(self) -> bool:
        """Whether agents are restarted one at a time and nothing else happens: then nobody misses anybody."""
        return bool(self.faults) and replace(self, faults=()).is_exact and {f.kind for f in self.faults} == {"restart"}

    @property
    def is_healthy(self) -> bool:
        """Whether all frames come, and in order: then nothing waits for a timer."""
        return self.is_exact and not self.loss and not self.jitter


def plan(seed: int) -> Plan:
    """A plan drawn from a seed: about a tenth of them healthy."""
    chance = random.Random(seed)
    one = Plan(
        seed,
        chance.randrange(len(NETWORKS)),
        chance.choice((0, 0, 1, 2, 3)),
        chance.randint(1, 4),
        chance.randint(1, 3),
        chance.randint(1, 2),
    )
    if chance.random() < 0.1:
        return replace(one, duplicate=chance.choice((0.0, 0.3)), jitter=chance.choice((0.0, 0.03)))
    faults = []
    K = NETWORKS[one.network].size
    for _ in range(chance.choice((0, 1, 1, 2))):
        begin = chance.choice((0.0, chance.uniform(0.0, 0.2), chance.uniform(0.0, 2.0)))
        faults.append(Fault(chance.choice(KINDS), chance.randrange(K), begin, begin + chance.choice((0.3, 1.5, 4.0))))
    faulted = replace(
        one,
        missing=chance.choice((0.0, 0.0, 0.2)),
        loss=chance.choice((0.0, 0.0, 0.05, 0.2)),
        duplicate=chance.choice((0.0, 0.1)),
        jitter=chance.choice((0.0, 0.01, 0.2)),
        skew=chance.choice((0.0, 0.0, 0.1)),
        pending=chance.choice((None, None, None, 1)),
        faults=tuple(faults),
    )
    # Of six items one runs and four wait: some requests are refused.
    return replace(faulted, items=6, batches=2) if faulted.pending and chance.random() < 0.5 else faulted


def operations_plan(seed: int) -> Plan:
    """A plan in which a certificate is renewed, an agent is revoked, or both, before or while items come."""
    chance = random.Random(seed)
    network = chance.randrange(len(NETWORKS))
    faults = []
    for kind in chance.choice((("renew",), ("revoke",), OPERATIONS)):
        begin = chance.uniform(0.0, 2.0)
        faults.append(Fault(kind, chance.randrange(NETWORKS[network].size), begin, begin + chance.uniform(0.1, 0.5)))
    return Plan(
        seed, network, chance.randrange(len(RULES)), chance.randint(1, 4), chance.randint(1, 3),
        loss=chance.choice((0.0, 0.05)), start=chance.uniform(0.0, 3.0), faults=tuple(faults),
    )  # fmt: skip


def restarts_plan(seed: int) -> Plan:
    """A plan in which agents are restarted one after the other, before, while and after items come."""
    chance = random.Random(seed)
    network, begin, faults = chance.randrange(len(NETWORKS)), 0.0, []
    for _ in range(chance.randint(1, 3)):
        begin += chance.uniform(0.0, 1.0)
        faults.append(Fault("restart", chance.randrange(NETWORKS[network].size), begin, begin + 1.2))
        begin += 3.0  # it has finished what it has, and is back
    return Plan(
        seed, network, chance.randrange(len(RULES)), chance.randint(1, 4), chance.randint(1, 6), chance.randint(1, 2),
        jitter=chance.choice((0.0, 0.03)), start=chance.uniform(0.0, 2.0), faults=tuple(faults),
    )  # fmt: skip


@dataclass(frozen=True)
class EpochPlan:
    """A network that becomes another one while items come: agents join and leave, rule and rounds change."""

    seed: int
    before: int
    after: int
    """The two networks."""
    stay: int
    """How many agents are in both."""
    rules: tuple[int, int]
    rounds: tuple[int, int]
    items: int
    crash: tuple[float, float] | None = None
    """When the first agent that stays crashes, and for how long."""


def epochs_plan(seed: int) -> EpochPlan:
    """A plan drawn from a seed; in every third an agent crashes in the middle."""
    chance = random.Random(seed)
    before, after = chance.randrange(len(NETWORKS)), chance.randrange(len(NETWORKS))
    most = min(NETWORKS[before].size, NETWORKS[after].size)
    crash = (chance.uniform(0.9, 2.2), chance.uniform(0.3, 3.0)) if seed % 3 == 2 else None
    rules, rounds = (
        (chance.randrange(len(RULES)), chance.randrange(len(RULES))),
        (chance.randint(1, 4), chance.randint(1, 4)),
    )
    return EpochPlan(
        seed, before, after, most - chance.randint(0, most - 1), rules, rounds, chance.randint(4, 12), crash
    )
