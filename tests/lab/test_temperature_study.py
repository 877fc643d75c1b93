"""Temperatures as they are commonly fitted, against PyTorch's optimiser; and what the ways of fitting change."""

import numpy as np
import pytest

from collegium.agents.calibration import temperature
from collegium.lab.studies.temperature import EXACT, USUAL, usual_temperature, ways
from helpers import score_record


@pytest.mark.parametrize("scale", [0.3, 1.0, 8.0])
def test_the_usual_temperature_is_that_of_the_usual_optimiser(scale):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    y = np.where(rng.random(60) < 0.5, 1, -1)
    f = scale * (0.6 * y + rng.normal(size=60))
    log_T = torch.tensor([np.log(1.5)], requires_grad=True)
    optimiser = torch.optim.LBFGS([log_T], lr=0.01, max_iter=50)

    def closure():
        optimiser.zero_grad()
        loss = torch.nn.functional.softplus(-torch.from_numpy(f * y) / log_T.exp()).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    # its steps also end where the loss changes by less than 1e-9: it is then as near to the end as that
    assert usual_temperature(f, y) == pytest.approx(log_T.exp().item(), rel=1e-4)
    exact = temperature(f, y)
    assert min(1.5, exact) <= usual_temperature(f, y) <= max(1.5, exact)


def test_longer_it_comes_to_the_exact_one():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(80) < 0.5, 1, -1)
    f = 3 * (0.5 * y + rng.normal(size=80))
    assert usual_temperature(f, y, rate=0.5, steps=400) == pytest.approx(temperature(f, y), rel=1e-5)
    assert usual_temperature(np.zeros(4), np.array([1, -1, 1, -1])) == pytest.approx(1.5)


def test_caps_only_lower():
    s = score_record(K=4, n=30)
    found = ways(s)
    assert set(found) == {EXACT, USUAL, "at most 3", "at most 10"}
    np.testing.assert_array_equal(found["at most 3"], np.minimum(s.temperature, 3))
