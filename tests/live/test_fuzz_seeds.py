"""The fuzzers' own inputs, and as many changed at random: so that they still run when somebody wants to fuzz."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

import pytest

TARGETS = runpy.run_path(str(Path(__file__).with_name("fuzz_frames.py")))["TARGETS"]


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_fuzzers_begin_with(target: str) -> None:
    one_input, seeds = TARGETS[target]()
    chance = random.Random(1)
    for seed in seeds:
        one_input(seed)
        changed = bytearray(seed)
        for _ in range(3):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        one_input(bytes(changed) + chance.randbytes(chance.randrange(30)))
