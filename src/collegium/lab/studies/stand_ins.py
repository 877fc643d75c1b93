"""Pictures of our own in place of items of the data sets, which are not ours to hand on."""

from __future__ import annotations

from typing import Any

import numpy as np

ELEVATION = np.radians(30)


def faces(count: int, side: int = 32, seed: int = 0) -> list[Any]:
    """Heads with pointed ears and with hanging ears, in turn, as bytes of shape (side, side, 3)."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:side, :side] / (side - 1) * 2 - 1
    found = []
    for i in range(count):
        x, y = column - rng.uniform(-0.12, 0.12), row - rng.uniform(-0.05, 0.15)
        away = np.abs(x)
        head = (x / 0.58) ** 2 + (y / 0.55) ** 2 < 1
        pointed = (away > 0.15) & (away < 0.6) & (y < -0.2) & (y > -0.95 + 2.2 * np.abs(away - 0.42))
        hanging = ((away - 0.58) / 0.17) ** 2 + ((y + 0.05) / 0.5) ** 2 < 1
        ears = hanging if i % 2 else pointed
        eyes = ((away - 0.24) / 0.09) ** 2 + ((y + 0.1) / 0.09) ** 2 < 1
        nose = (x / 0.12) ** 2 + ((y - 0.18) / 0.08) ** 2 < 1
        fur, ground = rng.uniform(110, 220, 3), rng.uniform(60, 200, 3)
        picture = ground * (0.8 + 0.2 * row[..., None])
        for part, colour in ((head, fur), (ears, 0.7 * fur), (eyes | nose, np.full(3, 20.0))):
            picture[part] = colour
        found.append(np.clip(picture, 0, 255).astype(np.uint8))
    return found


def boxes(count: int, views: int, side: int = 56) -> list[list[Any]]:
    """Wide and narrow boxes with drawers, in turn, from azimuths all around: bytes of shape (side, side)."""
    return [
        [_box(2 * np.pi * k / views, (0.8 - 0.3 * (i % 2), 0.4, 0.55), 3 - i % 2, side) for k in range(views)]
        for i in range(count)
    ]


def _box(azimuth: float, half: tuple[float, float, float], drawers: int, side: int) -> Any:
    """A box of half these sizes, seen along parallel rays: every pixel shows the face that its ray meets first."""
    c, s = np.cos(azimuth), np.sin(azimuth)
    towards = np.array([np.cos(ELEVATION) * c, np.cos(ELEVATION) * s, np.sin(ELEVATION)])
    right, up = np.array([-s, c, 0]), np.array([-np.sin(ELEVATION) * c, -np.sin(ELEVATION) * s, np.cos(ELEVATION)])
    row, column = np.mgrid[:side, :side] / (side - 1) * 2.4 - 1.2
    start = column[..., None] * right - row[..., None] * up + 5 * towards
    step = np.where(np.abs(towards) < 1e-9, 1e-9, -towards)
    meets = np.sort(np.stack([(np.array(half) * sign - start) / step for sign in (1, -1)]), axis=0)
    near, far = meets[0].max(axis=-1), meets[1].min(axis=-1)
    face = meets[0].argmax(axis=-1)
    shade = np.array([150.0, 110.0, 200.0])[face]
    height = (start + near[..., None] * step)[..., 2] / half[2]
    front = (face == 1) & (towards[1] < 0)
    line = np.abs((height + 1) / 2 * drawers % 1 - 0.5) > 0.44
    shade[front & line] = 50
    return np.where(near < far, shade, 255).astype(np.uint8)
