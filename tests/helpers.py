"""Lists of everything, so that one test runs over all of it."""

from dataclasses import dataclass

import numpy as np

from collegium import policy, protocol, topology
from collegium.agents import Scores
from collegium.data import Dataset
from collegium.protocol import DeGroot, DeltaTrigger, LabelStability, Outbox, Quantised, Rule, SocialLearning
from collegium.protocol.combine import WeightedMean

BASE_RULES = [
    DeGroot(),
    SocialLearning(),
    DeltaTrigger(0.1),
    DeltaTrigger(0.0),
    LabelStability(1, 0.0),
    LabelStability(2, 0.3),
]
RULES: list[Rule] = (
    BASE_RULES
    + [Quantised(rule, bits, bound=40.0) for rule in BASE_RULES for bits in (8, 32)]
    + [Quantised(DeGroot(), 1, 2.0), Quantised(DeltaTrigger(0.2), 4, 2.0), Quantised(LabelStability(1, 0.5), 2, 2.0)]
)

POLICIES = {
    "ring": policy.uniform(topology.ring(12)),
    "grid": policy.metropolis(topology.grid(3, 4)),
    "directed": policy.uniform(topology.erdos_renyi(12, links=24, seed=7)),
    "no-self-loops": policy.Policy([[0.0, 0.5, 0.3], [1.0, 0.0, 0.7], [0.0, 0.5, 0.0]]),
    "lonely": policy.uniform(topology.ring(1)),
}
MAILBOXES = [protocol.HoldLast(), protocol.Renormalise()]


def scores(n: int, K: int, seed: int = 0, bound: float = 0.5) -> np.ndarray:
    """Scores of both signs with exact zeros and ties among them, within the bound."""
    values = np.tanh(np.random.default_rng(seed).normal(size=(n, K))) * bound
    values[::7] = 0.0
    values[3::7] = np.round(values[3::7], 1)
    return values


def of_classes(n: int, K: int, d: int, seed: int = 0, bound: float = 0.5) -> np.ndarray:
    """Scores of d classes that sum to zero, with ties among them, within the bound."""
    values = np.random.default_rng(seed).normal(size=(n, K, d))
    values[3::7] = np.round(values[3::7])
    values -= values.mean(axis=2, keepdims=True)
    values[::7] = 0.0
    return bound * values / np.abs(values).max(initial=1.0)


@dataclass(frozen=True)
class Stubborn(Rule):
    """Friedkin–Johnsen without memory: half of the old opinion, half of the neighbours'."""

    share: float

    def init(self, seat, scores):
        return (scores,)

    def emit(self, seat, state, draws):
        return Outbox(state[0]), state

    def absorb(self, seat, state, inbox):
        heard = WeightedMean()(inbox.values, inbox.weights, inbox.own)
        return (self.share * state[0] + (1 - self.share) * heard,)

    def statistic(self, state):
        return state[0]


def tiny_images(n: int, K: int, seed: int = 0, contrast: int = 30) -> Dataset:
    """n noisy 8×8 pictures in bytes, both classes in turn, that K agents see alike but for the noise: +1 is brighter
    in the upper half, -1 in the lower."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, -1, 1)
    tilt = contrast * y[:, None, None] * np.where(np.arange(8) < 4, 1, -1)[:, None]
    views = [np.clip(128 + tilt + rng.normal(0, 40, (n, 8, 8)), 0, 255).astype(np.uint8) for _ in range(K)]
    return Dataset(views, y, ("up", "down"), tuple(f"eye {k}" for k in range(K)), source="tiny images")


def score_record(N=300, M=200, n=400, K=5, seed=0, tilt=0.3) -> Scores:
    """K agents of different strength, scale and offset, dependent given the class."""
    rng = np.random.default_rng(seed)
    strength, scale, offset = rng.uniform(0.2, 1.2, K), rng.uniform(0.3, 3.0, K), rng.normal(0, tilt, K)

    def draw(count):
        y = np.where(np.arange(count) % 2, -1, 1)
        common = rng.normal(size=(count, 1))
        return scale * (y[:, None] * strength + 0.5 * common + rng.normal(size=(count, K)) + offset), y

    (train, y_train), (val, y_val), (test, y_test) = draw(N), draw(M), draw(n)
    return Scores(train, val, test, y_train, y_val, y_test)


def labelled(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labelled scores of four agents, the last of which has it the wrong way round."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1, -1)
    return np.array([1.0, 0.9, 0.8, -1.0]) * y[:, None] + rng.normal(size=(n, 4)), y
