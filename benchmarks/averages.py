"""Averages in few rounds: how many rounds and transmissions, what a Chebyshev round costs, and losses."""

from typing import Any

import numpy as np

import collegium
from collegium import links, policy, protocol, schedule, topology
from machine import best_of

ROUNDS = 20


def measure() -> list[dict[str, Any]]:
    return [*exact(), *losses(), *torus(), *million()]


def _off(run: collegium.Run, x: np.ndarray) -> float:
    return float(np.abs(run.statistics[-1] - x.mean(axis=1, keepdims=True)).max())


def exact() -> list[dict[str, Any]]:
    x = np.random.default_rng(0).normal(size=(1000, 12))
    run = collegium.collaborate(x, schedule.exact(12))
    ring = collegium.collaborate(x, policy.uniform(topology.ring(12)), 20)
    return [
        {"figure": "12 agents, exact schedule: rounds", "value": run.rounds, "target": "4"},
        {"figure": "12 agents, exact schedule: transmissions", "value": int(run.transmissions[0]), "target": "48"},
        {"figure": "12 agents, exact schedule: largest error", "value": _off(run, x), "target": "≤ 1e-12"},
        {"figure": "12 agents, ring, 20 rounds: transmissions", "value": int(ring.transmissions[0]), "target": ""},
        {"figure": "12 agents, ring, 20 rounds: largest error", "value": _off(ring, x), "target": ""},
    ]


def losses() -> list[dict[str, Any]]:
    """24 agents, directed, 30 % lost, 60 rounds."""
    x = np.random.default_rng(0).normal(size=(100, 24))
    directed, lossy = policy.uniform(topology.erdos_renyi(24, links=72, seed=1)), links.Lossy(0.3, seed=1)
    return [
        {
            "figure": f"24 agents, 30 % lost, 60 rounds of {type(rule).__name__}: largest error",
            "value": _off(collegium.collaborate(x, directed, 60, rule, links=lossy), x),
            "target": target,
        }
        for rule, target in ((protocol.RunningSums(), "≤ 1e-5"), (protocol.PushSum(), "stalls above 1e-2"))
    ]


def torus() -> list[dict[str, Any]]:
    """10⁴ agents on a torus: rounds until 1 % of the disagreement is left, of scores that differ slowly in space."""
    network = policy.metropolis(topology.torus(100, 100))
    place = np.arange(10_000)
    x = np.sin(2 * np.pi * (place % 100) / 100)[None] + np.random.default_rng(0).normal(size=(1, 10_000))
    found = {}
    for rule, most in ((protocol.DeGroot(), 20_000), (protocol.Chebyshev(network.slem), 1_000)):
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            last = collegium.collaborate(x, network, middle, rule, record="final").statistics[-1]
            low, high = (low, middle) if last.std() <= 0.01 * x.std() else (middle, high)
        found[type(rule).__name__] = high
    what, ratio = "torus of 10⁴: rounds to 1 %", found["DeGroot"] / found["Chebyshev"]
    return [
        *({"figure": f"{what}, {name}", "value": value, "target": ""} for name, value in found.items()),
        {"figure": f"{what}, DeGroot ÷ Chebyshev", "value": ratio, "target": "≥ 10"},
    ]


def million() -> list[dict[str, Any]]:
    """10⁶ agents on a torus: a round of Chebyshev against a round of DeGroot."""
    network = policy.metropolis(topology.torus(1000, 1000))
    x = np.random.default_rng(0).normal(size=(1, 1_000_000))
    seconds = {}
    for name, rule in (("DeGroot", protocol.DeGroot()), ("Chebyshev", protocol.Chebyshev(0.99999))):
        whole = best_of(lambda r=rule: collegium.collaborate(x, network, ROUNDS, r, record="final"), 3)
        nothing = best_of(lambda r=rule: collegium.collaborate(x, network, 0, r, record="final"), 3)
        seconds[name] = (whole - nothing) / ROUNDS
    ratio = seconds["Chebyshev"] / seconds["DeGroot"]
    return [
        {"figure": "10⁶ agents: ms per DeGroot round", "value": 1e3 * seconds["DeGroot"], "target": ""},
        {"figure": "10⁶ agents: Chebyshev ÷ DeGroot round", "value": ratio, "target": "≤ 1.5"},
    ]
