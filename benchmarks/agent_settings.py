"""Which settings ModelNet's agents are trained with: a small sweep, judged by the validation loss.

    python benchmarks/agent_settings.py RECORDS [--repetitions 2] [--agents 0 4 8] [--csv FILE]

One setting is changed at a time: channels, batch size, background of the renders, and patience. Every training goes on
for all 100 epochs and keeps the loss of each validation item in each epoch below the folder RECORDS, so that it can be
stopped and resumed; what a patience would have kept follows from that. Test items take no part.

A longer patience chooses among more epochs, and so has the smaller loss on the items it chooses by in any case. Hence
two columns: the validation loss of the epoch that is kept, and the same with half of the validation items choosing the
epoch and the other half measuring it, in turns.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from collegium import data
from collegium._util.files import atomic_write
from collegium._util.measures import mean_interval
from collegium.agents import SGD, MicroCNN
from collegium.agents._splitting import balanced, split
from collegium.agents.optimisation import Sample, batches, forward, make_optimizer, single

N0 = 390
EPOCHS = 100
PATIENCES = (5, 10, 30, EPOCHS)


class Setting(NamedTuple):
    """What is varied."""

    channels: int
    batch: int
    background: int


SETTINGS = (
    Setting(32, 32, 255),
    Setting(16, 32, 255),
    Setting(64, 32, 255),
    Setting(32, 256, 255),
    Setting(32, 32, 0),
)


def losses(setting: Setting, agent: int, repetition: int) -> NDArray[np.float32]:
    """The loss of every validation item after every epoch, shape (epochs, items)."""
    train, _ = data.modelnet(background=setting.background)
    rng = np.random.default_rng(repetition)
    sample = balanced(train.y, N0, rng)
    inside, outside = (sample[part] for part in split(train.y[sample], 0.2, rng))
    view = train.views[agent]
    settings = replace(SGD, batch_size=setting.batch, max_epochs=EPOCHS)
    model = MicroCNN(channels=setting.channels, training=settings)
    torch.manual_seed(1000 * repetition + agent)
    network = model.new_network(view[inside])
    learned, held = (
        Sample(model.inputs(network, view[part]), torch.from_numpy((train.y[part] > 0).astype(np.int64)))
        for part in (inside, outside)
    )
    optimizer = make_optimizer(network, settings)
    found = np.empty((EPOCHS, len(outside)), np.float32)
    for epoch in range(EPOCHS):
        for rows in batches(len(inside), settings.batch_size):
            optimizer.zero_grad()
            _each(network, learned.rows(rows), settings).mean().backward()
            optimizer.step()
        with torch.no_grad():
            found[epoch] = _each(network, held, settings)
    return found


def _each(network: Any, items: Sample, settings: Any) -> Any:
    logits = single(forward(network, items.x, settings), len(items.x))
    return F.binary_cross_entropy_with_logits(logits, items.target.float(), reduction="none")


def kept_epoch(by_epoch: NDArray[Any], patience: int) -> int:
    """The epoch whose weights early stopping keeps."""
    best = 0
    for epoch, loss in enumerate(by_epoch):
        if loss < by_epoch[best]:
            best = epoch
        elif epoch - best >= patience:
            break
    return best


def halves(found: NDArray[Any], patience: int) -> float:
    """Mean loss of one half of the items at the epoch that the other half chooses."""
    one, other = found[:, ::2], found[:, 1::2]
    return float(np.mean([b[kept_epoch(a.mean(axis=1), patience)].mean() for a, b in ((one, other), (other, one))]))


def recorded(folder: Path, agents: list[int], repetitions: int) -> Iterator[tuple[Setting, list[NDArray[Any]]]]:
    """Every setting with its trainings; what is missing is trained, a repetition of all settings before the next."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[Setting, list[NDArray[Any]]] = {setting: [] for setting in SETTINGS}
    for repetition in range(repetitions):
        for setting in SETTINGS:
            for agent in agents:
                path = folder / f"{'-'.join(map(str, setting))}-a{agent}-r{repetition}.npy"
                if not path.exists():
                    made = losses(setting, agent, repetition)
                    with atomic_write(path) as file:
                        np.save(file, made)
                    print(path.name, f"{made.mean(axis=1).min():.3f}", file=sys.stderr, flush=True)
                found[setting].append(np.load(path))
    yield from found.items()


def main() -> None:
    """Train what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--agents", type=int, nargs="+", default=[0, 4, 8])
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines: list[dict[str, Any]] = []
    for setting, found in recorded(arguments.records, arguments.agents, arguments.repetitions):
        for patience in PATIENCES:
            kept = np.array([one.mean(axis=1)[kept_epoch(one.mean(axis=1), patience)] for one in found])
            other = np.array([halves(one, patience) for one in found])
            wrong = np.array([(one > np.log(2))[kept_epoch(one.mean(axis=1), patience)].mean() for one in found])
            mean, half = mean_interval(other)
            lines.append(
                setting._asdict()
                | {
                    "patience": patience,
                    "trainings": len(found),
                    "validation loss": round(float(kept.mean()), 4),
                    "loss of the other half": round(float(mean), 4),
                    "half of its 95 % interval": round(float(half), 4),
                    "validation error": round(float(wrong.mean()), 4),
                }
            )
    for line in lines:
        print("  ".join(f"{name} {value}" for name, value in line.items()))
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
