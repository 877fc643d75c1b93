"""The loop: rules of one's own, lossy links, changing networks and several classes, beside what is built in.

12 agents × 20 rounds × 5 000 items.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from collegium import collaborate, links, policy, protocol, schedule, topology
from collegium.network import reference_run, validated
from machine import best_of, ratio_of

AGENTS, ITEMS, ROUNDS = 12, 5000, 20


class Opinion(NamedTuple):
    first: np.ndarray
    now: np.ndarray


@dataclass(frozen=True)
class Stubborn(protocol.Rule[Opinion]):
    """A rule as a user writes it: half of one's first opinion stays."""

    share: float = 0.5

    def init(self, seat: protocol.Seat, scores: np.ndarray) -> Opinion:
        return Opinion(scores, scores)

    def emit(self, seat: protocol.Seat, state: Opinion, draws: protocol.Draws) -> tuple[protocol.Outbox, Opinion]:
        return protocol.Outbox(state.now), state

    def absorb(self, seat: protocol.Seat, state: Opinion, inbox: protocol.Inbox) -> Opinion:
        heard = (inbox.weights[:, :, None] * inbox.values).sum(axis=0)
        return state._replace(now=self.share * state.first + (1 - self.share) * heard)

    def statistic(self, state: Opinion) -> np.ndarray:
        return state.now


def measure() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    p = policy.uniform(topology.erdos_renyi(AGENTS, links=24, seed=7))
    turns = schedule.alternating([p, policy.metropolis(topology.ring(AGENTS))])
    lossy = links.Lossy(0.3, seed=1)
    x = rng.uniform(-1, 1, (ITEMS, AGENTS))
    kernel = best_of(lambda: collaborate(x, p, ROUNDS))
    own = best_of(lambda: collaborate(x, p, ROUNDS, Stubborn()))
    rows = [{"figure": "heart: a user's rule ÷ the kernel", "value": own / kernel, "target": "≤ 20"}]
    for rule in (protocol.DeGroot(), protocol.Quantised(protocol.DeGroot(), 4, 2.0), protocol.DeltaTrigger(0.05)):
        job = validated(x, p, ROUNDS, [rule], 0)
        plain = best_of(lambda rule=rule: collaborate(x, p, ROUNDS, rule))
        itself = best_of(lambda job=job, rule=rule: reference_run(job, rule))
        over_lossy = best_of(lambda rule=rule: collaborate(x, p, ROUNDS, rule, links=lossy))
        itself_lossy = best_of(lambda job=job, rule=rule: reference_run(job._replace(links=lossy), rule))
        changing = best_of(lambda rule=rule: collaborate(x, turns, ROUNDS, rule))
        name = type(rule).__name__
        rows += [
            {"figure": f"{name}: the rule itself ÷ its kernel", "value": itself / plain, "target": ""},
            {"figure": f"{name}: over lossy links ÷ without", "value": over_lossy / plain, "target": "≤ 3"},
            {
                "figure": f"{name}, the rule itself: over lossy links ÷ without",
                "value": itself_lossy / itself,
                "target": "≤ 3",
            },
            {"figure": f"{name}: over a changing network ÷ a fixed one", "value": changing / plain, "target": "≤ 3"},
        ]
    own_lossy = best_of(lambda: collaborate(x, p, ROUNDS, Stubborn(), links=lossy))
    rows.append({"figure": "a user's rule: over lossy links ÷ without", "value": own_lossy / own, "target": "≤ 3"})
    return rows + _several_classes(p)


def _several_classes(p: policy.Policy) -> list[dict[str, Any]]:
    """d classes beside d - 1 binary runs of the same items, which are all kept until the last is done.

    A record of all rounds has d entries where binary ones have d - 1, so four classes cannot beat 4/3 where writing
    them is all there is to do; and memory of more than 32 MB is had from the system anew for every run (glibc).
    """
    rows = []
    plain = protocol.DeGroot(), protocol.SocialLearning(), protocol.Quantised(protocol.DeGroot(), 4, 20.0)
    for rule in (*plain, protocol.DeltaTrigger(0.05), protocol.LabelStability(2, 0.1)):
        for d in (4, 10):
            rng = np.random.default_rng(d)
            classes = rng.normal(size=(ITEMS, AGENTS, d))
            classes -= classes.mean(axis=2, keepdims=True)
            binary = rng.uniform(-1, 1, (d - 1, ITEMS, AGENTS))
            for record in ("final", "all"):
                several, apart = (
                    lambda many=many, rule=rule, record=record: [
                        collaborate(x, p, ROUNDS, rule, record=record) for x in many
                    ]
                    for many in ([classes], binary)
                )
                figure = f"{type(rule).__name__}, record {record}: {d} classes ÷ {d - 1} binary runs"
                rows.append({"figure": figure, "value": ratio_of(several, apart), "target": "≤ 1.3"})
    return rows
