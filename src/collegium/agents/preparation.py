"""How a team's scores are prepared for the network: the settings by name, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from collegium.agents.base import Doubles
from collegium.agents.calibration import vector_scaling
from collegium.agents.cross_fitting import HeldOut
from collegium.agents.held_out import class_places, fit_pipeline
from collegium.agents.pipeline import ScorePipeline
from collegium.errors import ModelError

CENTERS = ("auto", "midpoint", "mean", "none")


class Preparation(NamedTuple):
    """The settings `center`, `calibrate` and `bounded` of a `Team`, checked.

    center: "auto", each agent's own threshold unless held-out items say otherwise; "midpoint" of the class means of
        held-out scores, less the prior [hu2026, Prop. 1]; "mean" of training scores, the paper's; "none".
    calibrate: whether scores are divided by a temperature, or one per class, "vector".
    """

    center: str
    calibrate: bool | str
    bounded: bool

    @classmethod
    def of(cls, center: Any, calibrate: Any, bounded: Any) -> Preparation:
        """From what a user wrote: True and False are "mean" and "none", and "auto" calibrates where it centers."""
        if isinstance(center, (bool, np.bool_)):
            center = "mean" if center else "none"
        if center not in CENTERS:
            raise ModelError(f"center must be one of {', '.join(CENTERS)}; got {center!r}")
        if isinstance(calibrate, str) and calibrate == "auto":
            calibrate = center in ("auto", "midpoint")
        if not isinstance(calibrate, (bool, np.bool_)) and calibrate != "vector":
            raise ModelError(f"calibrate must be True, False, 'auto' or 'vector'; got {calibrate!r}")
        return cls(center, calibrate if calibrate == "vector" else bool(calibrate), bool(bounded))

    @property
    def needs_held_out(self) -> bool:
        """Whether something is learned from items nobody was fitted on."""
        return self.center in ("auto", "midpoint") or bool(self.calibrate)

    def held_out(self, models: Iterable[Any]) -> HeldOut:
        """How such items are had: refitting is too costly for models that stop early, and not what the paper does."""
        if any(getattr(model, "uses_validation", False) for model in models):
            return "part"
        if not self.needs_held_out:
            return "none"
        return "in turn" if self.center in ("auto", "midpoint") else "part"

    def pipeline(self, train: Doubles, held_out: Doubles, y: NDArray[Any]) -> ScorePipeline:
        """The pipeline of K agents from their scores of training items and of held-out ones, and the labels of these.

        Without held-out items, "auto" and "midpoint" leave the scores as they are.
        """
        C = 2 if held_out.ndim == 2 else held_out.shape[2]
        if self.center in ("auto", "midpoint"):
            if not len(held_out):
                return ScorePipeline(np.ones(held_out.shape[1]), bounded=self.bounded, classes=C)
            return fit_pipeline(held_out, y, center=self.center, calibrate=self.calibrate, bounded=self.bounded)
        if self.calibrate == "vector":
            return self._vector(train, held_out, class_places(y, C))
        return ScorePipeline.fit(
            train, held_out, y, center=self.center == "mean", calibrate=bool(self.calibrate), bounded=self.bounded
        )

    def _vector(self, train: Doubles, held_out: Doubles, places: NDArray[np.intp]) -> ScorePipeline:
        if held_out.ndim == 2:
            raise ModelError('calibrate="vector" with the paper\'s centering is for more than two classes: use True')
        T = np.array([vector_scaling(held_out[:, k], places)[0] for k in range(held_out.shape[1])])
        start = ScorePipeline(T, np.zeros(T.shape), bounded=self.bounded, classes=T.shape[1])
        return start.centred(train) if self.center == "mean" else start
