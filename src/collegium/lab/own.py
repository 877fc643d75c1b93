"""A user's data and models, by entry point or as FILE.py:NAME, checked before anything is trained on them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from collegium import agents, fusion
from collegium._util import plugins
from collegium.data import Dataset
from collegium.errors import DataError, ModelError

if TYPE_CHECKING:
    from collegium.agents import SklearnModel
    from collegium.fusion import CentralOracle


def data(written: str) -> tuple[Dataset, Dataset]:
    """Training and test items from a user's function without arguments; read once per process."""
    return _data(written, plugins.fingerprint(written, plugins.DATA))


@lru_cache(1)
def _data(written: str, fingerprint: str) -> tuple[Dataset, Dataset]:
    found = plugins.call(written, plugins.DATA)
    if not isinstance(found, (tuple, list)) or len(found) != 2 or not all(isinstance(part, Dataset) for part in found):
        raise DataError(f"{plugins.short(written)} must return two Datasets, (train, test); got {_described(found)}")
    return found[0], found[1]


def models(written: str, train: Dataset) -> list[Any]:
    """One model per agent, from a user's function of the training items: it returns one for all, or a list of K."""
    from collegium.agents.independent import recipes

    found = plugins.call(written, plugins.MODELS, train)
    try:
        return [agents.as_model(one) for one in recipes(found, train.size)]
    except ModelError as problem:
        raise ModelError(f"{plugins.short(written)}: {problem}") from None


def logistic() -> SklearnModel:
    """What agents of a user's data learn with unless told: any view will do."""
    from sklearn.linear_model import LogisticRegression

    return agents.SklearnModel(LogisticRegression(max_iter=1000))


def standardised() -> SklearnModel:
    """Logistic regression for views whose columns differ much in scale."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return agents.SklearnModel(make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)))


def trees() -> SklearnModel:
    """40 boosted trees of at most six leaves, for numbers with which the odds of a class rise here and fall there."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return agents.SklearnModel(
        HistGradientBoostingClassifier(max_iter=40, max_leaf_nodes=6, min_samples_leaf=10, early_stopping=False)
    )


def can_train_jointly(chosen: list[Any]) -> bool:
    """Whether VFL-JT, which needs derivatives, can train these models."""
    return all(isinstance(model, agents.TorchModel) for model in chosen)


def oracle(chosen: list[Any], grid: tuple[int, int] | None, seed: int) -> CentralOracle | None:
    """The agents' model on all views, where they share one that takes them: a network is made for one view's shape."""
    if not isinstance(chosen[0], agents.SklearnModel) or len(set(map(repr, chosen))) > 1:
        return None
    return fusion.CentralOracle(chosen[0], grid, random_state=seed)


def _described(found: Any) -> str:
    if isinstance(found, (tuple, list)):
        return f"{len(found)} things: {', '.join(type(part).__name__ for part in found)}" if found else "nothing"
    return "nothing" if found is None else type(found).__name__
