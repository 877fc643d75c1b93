"""The study of ways to average, on records that nobody had to train."""

import numpy as np
import pytest

from collegium.lab.studies import BEYOND
from collegium.lab.studies import averages as studies
from collegium.lab.study import Options
from collegium.lab.table import to_table, values

STUDY = BEYOND["averages"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    (root / "records").mkdir()
    rng = np.random.default_rng(0)
    for r in range(2):
        arrays = {}
        for part, n in (("train", 20), ("val", 10), ("test", 20)):
            y = np.where(np.arange(n) % 2, -1, 1)
            arrays |= {part: (y[:, None] + 2 * rng.normal(size=(n, 12))).astype(np.float32), f"y_{part}": y}
        np.savez(root / "records" / f"modelnet-{r}.npz", **arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(studies, "ITEMS", {"modelnet": 20})
        patch.setattr(studies, "LOSSES", (0.0, 0.3))
        patch.setattr(studies, "LARGE", {30: 12})
        yield to_table(STUDY.examine(Options(root=str(root), reps=2)), STUDY.factors)


def found(table, quantity, method, where, **levels):
    at = {"data": "modelnet", "loss": 0.0} | levels
    return values(table, quantity=quantity, method=method, network=where, **at)


def test_numbers_follow_from_the_methods(table):
    for method, where, t, sent, width in (
        ("exact", "any two", 4, 48, 64),
        ("exact, 8 bits", "any two", 4, 48, 8),
        ("DeGroot", "ring", 20, 480, 64),
        ("DeGroot, 8 bits", "ring", 20, 480, 8),
        ("running sums", "ring", 20, 480, 128),
        ("flood", "ring", 6, 144, 13 * 64),
    ):
        assert (found(table, "transmissions", method, where, round=t) == sent).all(), method
        assert (found(table, "bits", method, where, round=t) == sent * width).all(), method
    # the slowest wave on a ring of 12 shrinks by (1 + 2 cos 30°)/3 a round
    left = found(table, "disagreement", "DeGroot", "ring", round=40) / found(
        table, "disagreement", "DeGroot", "ring", round=20
    )
    np.testing.assert_allclose(left, ((1 + 2 * np.cos(np.pi / 6)) / 3) ** 20, rtol=0.02)
    for method in ("eigenvalue steps", "flood"):
        assert (found(table, "distance from the average", method, "ring", round=6) < 1e-12).all()
    centre = values(table, data="modelnet", method=studies.CENTRE)
    np.testing.assert_allclose(found(table, "error", "exact", "any two", round=4), centre, atol=1e-12)
    assert (found(table, "error", "DeGroot", "ring", round=1) > centre).all()


def test_every_method_is_there_on_every_network_with_every_loss(table):
    """Made-up scores too; a round of pairwise gossip is K/2 pairs, so that everybody sends once on average."""
    assert (found(table, "transmissions", studies.PAIRWISE, "ring", round=1) == 12).all()
    distances = table[table["quantity"] == "distance from the average"]
    for data, K in (("modelnet", 12), ("made-up", 30)):
        part = distances[(distances["data"] == data) & (distances["agents"] == K)]
        for where in studies.NETWORKS:
            here = part[part["network"] == where]
            methods = {name for name, _, _ in studies.on_network(studies.network(where, K))}
            assert methods >= {"DeGroot", "Chebyshev", "push-sum", "running sums", "flood", studies.PAIRWISE}
            assert {(m, loss) for m in methods for loss in (0.0, 0.3)} <= set(
                zip(here["method"], here["loss"], strict=True)
            )


def test_losses(table):
    at = {"loss": 0.3, "round": 40}
    apart, each_other = (
        found(table, what, "DeGroot", "geometric", **at) for what in ("distance from the average", "disagreement")
    )
    assert (apart > 100 * each_other).all()  # they agree, on something else
    assert (found(table, "distance from the average", "running sums", "geometric", **at) < 1e-4).all()
    assert (found(table, "distance from the average", "exact", "any two", **at) > 0.1).all()


def test_figures_and_claims(table):
    assert set(STUDY.draw(table)) == {"averages", "averages-costs", "averages-losses", "averages-large"}
    claims = STUDY.claims(table)
    assert len(claims) == 15
    assert [one.verdict for one in claims[:2]] == ["holds", "holds"]
    made_up = table[(table["data"] == "made-up") & (table["agents"] == 30)]
    assert "error" not in set(made_up["quantity"])
    assert {"exact", "flood", "Chebyshev"} <= set(made_up["method"])
