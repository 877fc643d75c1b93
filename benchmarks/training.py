"""One epoch of nine PatchCNN agents on 8 000 patches each, and of twelve MicroCNN agents on 312 objects, as ratios."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from collegium.agents import ADAM, SGD, MicroCNN, PatchCNN
from collegium.agents.independent import Task, fit_side_by_side
from machine import best_of

PATCHES = [(h, w, 3) for h in (11, 11, 10) for w in (11, 11, 10)]
TRAIN, HELD_OUT = 8000, 2000
OBJECTS, OBJECTS_HELD_OUT, SIZE = 312, 78, (224, 224, 1)


class Textbook(nn.Module):
    """PatchCNN as one would write it down, in PyTorch's default layout."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.second = nn.Conv2d(32, 64, 3, padding=1)
        self.hidden = nn.Linear(64 * ((height + 1) // 4) * ((width + 1) // 4), 128)
        self.head = nn.Linear(128, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.first(x))
        x = F.max_pool2d(F.relu(self.second(x)), 2)
        return self.head(F.relu(self.hidden(x.flatten(1))))


def plain_epoch(views: list[np.ndarray], y: np.ndarray) -> float:
    """Seconds of one epoch of all agents, one after the other, with DataLoader and PyTorch's own threads."""
    target = torch.from_numpy((y > 0).astype(np.int64))
    seconds = 0.0
    for view in views:
        x = torch.from_numpy(view).permute(0, 3, 1, 2).contiguous().float() / 255
        network = Textbook(*view.shape[1:3])
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-4)
        train = DataLoader(TensorDataset(x[:TRAIN], target[:TRAIN]), batch_size=256, shuffle=True)
        held_out = DataLoader(TensorDataset(x[TRAIN:], target[TRAIN:]), batch_size=256)
        begun = time.perf_counter()
        for batch, labels in train:
            optimizer.zero_grad()
            F.cross_entropy(network(batch), labels).backward()
            optimizer.step()
        with torch.no_grad():
            for batch, labels in held_out:
                F.cross_entropy(network(batch), labels).item()
        seconds += time.perf_counter() - begun
    return seconds


def our_epoch(model: Any, views: list[np.ndarray], y: np.ndarray, train: int, workers: int, epochs: int = 4) -> float:
    """Seconds of one more epoch of all agents: what starting, preparing and scoring cost once is taken off."""
    inside, outside = np.arange(train), np.arange(train, len(y))

    def run(number: int) -> float:
        settings = replace(model.training, max_epochs=number, patience=number)
        recipes = [type(model)(training=settings, random_state=k) for k in range(len(views))]
        tasks = [Task(str(k), recipes[k], view, y, inside, outside) for k, view in enumerate(views)]
        begun = time.perf_counter()
        fit_side_by_side(tasks, workers)
        return time.perf_counter() - begun

    run(1)  # starts the processes
    once = min(run(1) for _ in range(2))
    return (min(run(1 + epochs) for _ in range(2)) - once) / epochs


def patch_operations() -> float:
    """Floating-point operations of that epoch, counted by PyTorch: no gradient of the images."""
    total = 0.0
    for size in PATCHES:
        network = PatchCNN().build(size)
        x = torch.zeros(100, *size)
        with FlopCounterMode(display=False) as forward:
            loss = network(x).sum()
        with FlopCounterMode(display=False) as backward:
            loss.backward()
        per_item = forward.get_total_flops() / 100, backward.get_total_flops() / 100
        total += TRAIN * sum(per_item) + HELD_OUT * per_item[0]
    return total


def matmul_peak() -> float:
    """float32 operations per second of PyTorch's matrix product with all its threads."""
    a = torch.ones(2048, 2048)
    return 2 * 2048**3 / best_of(lambda: a @ a, at_least=2)


def bfloat16_ratio(view: np.ndarray, y: np.ndarray) -> float:
    """How many times as quick a small training is in bfloat16."""

    def seconds(precision: str) -> float:
        model = PatchCNN(training=replace(ADAM, max_epochs=1, precision=precision), random_state=0)
        return best_of(lambda: model.fit(view[:512], y[:512], (view[512:640], y[512:640])), repeat=2, at_least=0)

    return seconds("float32") / seconds("bfloat16")


def measure() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    cores = torch.get_num_threads()
    peak = matmul_peak()
    y = np.where(rng.random(TRAIN + HELD_OUT) < 0.5, 1, -1).astype(np.int8)
    patches = [rng.integers(0, 256, (len(y), *size), np.uint8) for size in PATCHES]
    ours = our_epoch(PatchCNN(training=ADAM), patches, y, TRAIN, cores)
    plain = min(plain_epoch(patches, y) for _ in range(2))
    peak = max(peak, matmul_peak())
    objects = np.where(rng.random(OBJECTS + OBJECTS_HELD_OUT) < 0.5, 1, -1).astype(np.int8)
    renders = [rng.integers(0, 256, (len(objects), *SIZE), np.uint8) for _ in range(12)]
    micro = our_epoch(MicroCNN(training=SGD), renders, objects, OBJECTS, cores)
    places = ((SIZE[0] - 7) // 4 + 1) ** 2
    micro_operations = 12 * (OBJECTS + OBJECTS_HELD_OUT) * 4 * places * 50 * 16
    return [
        {"figure": "9 PatchCNN, one epoch: times as quick as a plain loop", "value": plain / ours, "target": "≥ 2.5"},
        {
            "figure": "9 PatchCNN, one epoch: part of the matmul peak",
            "value": patch_operations() / ours / peak,
            "target": "≥ 0.6",
        },
        {"figure": "9 PatchCNN, one epoch: seconds", "value": ours, "target": ""},
        {"figure": "12 MicroCNN, one epoch: seconds", "value": micro, "target": ""},
        {
            "figure": "12 MicroCNN, one epoch: part of the matmul peak",
            "value": micro_operations / micro / peak,
            "target": "",
        },
        {"figure": "PatchCNN in bfloat16: times as quick", "value": bfloat16_ratio(patches[0], y), "target": ""},
        {"figure": "matmul peak, float32 operations/s", "value": peak, "target": ""},
    ]
