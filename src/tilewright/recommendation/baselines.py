"""What learns classes besides networks (section III-A), and what remembers instead (III-C)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.base import Registry, require_extra
from tilewright.recommendation.choices import Whole
from tilewright.recommendation.labels import LARGEST, LabelledProducts

Classify = Callable[[Whole], Whole]
Baseline = Callable[[LabelledProducts, int], Classify]
BASELINES: Registry[Baseline] = Registry("baseline of recommenders")
MOST_SUPPORTED = 20_000
"""Products that a support vector classifier is shown, whose time grows with their square or faster."""
ROUNDS = 40
NEIGHBOURS = 5


def _figures(products: Whole) -> Any:
    """Return sizes and their logarithms, each of about one: what all of them are shown."""
    return np.concatenate([products / LARGEST, np.log2(products) / np.log2(LARGEST)], axis=1)


@BASELINES.register("svc")
def _svc(known: LabelledProducts, seed: int) -> Classify:
    """Fit a support vector classifier of scikit-learn, with its defaults, to the first products."""
    require_extra("optimizers", "svc", "scikit-learn")
    from sklearn.svm import SVC  # noqa: PLC0415  (an extra)

    first = known.rows(slice(None, MOST_SUPPORTED))
    model = SVC().fit(_figures(first.products), first.classes)
    return lambda products: np.asarray(model.predict(_figures(products)))


@BASELINES.register("neighbours")
def _neighbours(known: LabelledProducts, seed: int) -> Classify:
    """Tell the class that most of the five nearest products have, by sizes and their logarithms."""
    require_extra("optimizers", "neighbours", "scikit-learn")
    from sklearn.neighbors import KNeighborsClassifier  # noqa: PLC0415  (an extra)

    model = KNeighborsClassifier(NEIGHBOURS).fit(_figures(known.products), known.classes)
    return lambda products: np.asarray(model.predict(_figures(products)))


@BASELINES.register("xgboost")
def _xgboost(known: LabelledProducts, seed: int) -> Classify:
    """Fit trees by XGBoost, with its defaults but for the rounds."""
    require_extra("recommend", "xgboost", "XGBoost")
    from xgboost import XGBClassifier  # noqa: PLC0415  (an extra)

    live = known.live
    model = XGBClassifier(n_estimators=ROUNDS, tree_method="hist", random_state=seed, n_jobs=1)
    model.fit(_figures(known.products), np.searchsorted(live, known.classes))
    return lambda products: live[model.predict(_figures(products))]


@BASELINES.register("memory")
def _memory(known: LabelledProducts, seed: int) -> Classify:
    """Remember products that were seen, and tell the most frequent class for all others."""
    seen = {tuple(product): each for product, each in zip(
        known.products.tolist(), known.classes.tolist(), strict=True)}
    often = int(np.bincount(known.classes).argmax())
    return lambda products: np.array([seen.get(tuple(each), often) for each in products.tolist()])
