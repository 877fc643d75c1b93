"""Evidence over many items: who contradicts the others, and a fusion that limits everybody."""

import numpy as np
import pytest

from collegium.errors import ScoreError
from collegium.trust import evidence


def test_evidence_names_who_lies_and_nobody_else():
    rng = np.random.default_rng(2)
    y = rng.choice([-1, 1], 300)
    scores = 0.5 * y[:, None] + rng.normal(size=(300, 12))
    assert evidence.suspects(scores).tolist() == []
    scores[:, [3, 8]] = -2.0 * y[:, None]
    assert evidence.suspects(scores).tolist() == [3, 8]
    by_hand = np.mean(np.sign(scores[:, 3]) != np.sign(np.median(np.delete(scores, 3, axis=1), axis=1)))
    assert evidence.contradictions(scores)[3] == by_hand
    with_liars, without = evidence.fuse(scores, 0.25), evidence.fuse(scores, 0.25, evidence.suspects(scores))
    assert (without * y <= 0).mean() < (with_liars * y <= 0).mean()
    honest = np.clip(np.delete(scores, [3, 8], axis=1), -0.25, 0.25).mean(axis=1)
    np.testing.assert_allclose(without, honest, atol=1e-15)
    with pytest.raises(ScoreError, match="items, agents"):
        evidence.fuse(np.ones(4), 0.5)


def test_who_has_no_score_is_evidence_against_nobody():
    """Two silent agents between positive and negative scores make the median zero: that says nothing of the others."""
    rng = np.random.default_rng(4)
    y = rng.choice([-1, 1], 300)
    scores = 0.3 * y[:, None] + rng.normal(size=(300, 6))
    scores[:, [1, 4]] = 0.0
    found = evidence.contradictions(scores)
    assert np.isnan(found[[1, 4]]).all()
    assert (found[[0, 2, 3, 5]] < 0.5).all()
    assert evidence.suspects(scores).tolist() == []


def test_evidence_of_several_classes():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 300)
    scores = 2.0 * np.eye(4)[y][:, None] + rng.normal(size=(300, 9, 4))
    scores -= scores.mean(axis=2, keepdims=True)
    scores[:, 5] = 9.0 * (np.eye(4)[(y + 1) % 4] - 0.25)
    assert evidence.suspects(scores).tolist() == [5]
    fused = evidence.fuse(scores, 0.5)
    by_hand = np.mean([[x * min(1.0, 0.5 / np.abs(x).max()) for x in item] for item in scores], axis=1)
    np.testing.assert_allclose(fused, by_hand, atol=1e-14)
    assert (fused.argmax(axis=1) != y).mean() < (scores.mean(axis=1).argmax(axis=1) != y).mean()
