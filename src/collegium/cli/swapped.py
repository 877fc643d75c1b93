"""A word where classes seem to be the wrong way round."""

from typing import Any

import numpy as np
import typer


def hint_swapped(alone: float, items: int, numbers: int) -> None:
    """Say so on standard error if agents are wrong more often than by guessing, beyond chance.

    alone: the mean error before any message, over so many items; numbers: in a score, 1 of two classes, else C.
    """
    C = 2 if numbers == 1 else numbers
    if items and alone - 1.96 * (alone * (1 - alone) / items) ** 0.5 > 1 - 1 / C:
        typer.echo(
            f"alone the agents are wrong about {100 * alone:.1f} %, more often than by guessing: are the classes the "
            "right way round? --classes says which is which",
            err=True,
        )


def alone(scores: Any, y: Any) -> float:
    """The mean error of agents before any message; views that are missing do not count."""
    from collegium._util.measures import wrong

    there = ~np.isnan(scores if scores.ndim == 2 else scores[..., 0])
    mistakes = [wrong(scores[own, k : k + 1], y[own]).mean() for k, own in enumerate(there.T) if own.any()]
    return float(np.mean(mistakes)) if mistakes else 0.0
