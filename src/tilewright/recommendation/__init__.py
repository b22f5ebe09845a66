"""Which configuration, without searching? Of arrays: exactly, or by networks that learnt; mappings: by like layers."""

from tilewright.recommendation.advice import Advice, advise
from tilewright.recommendation.baselines import BASELINES
from tilewright.recommendation.choices import Choices
from tilewright.recommendation.hardware import AdviserCore, cycles_on_cells
from tilewright.recommendation.labels import (
    SAMPLERS,
    Confusion,
    Drawn,
    LabelledProducts,
    Score,
    best_fixed,
    confusions,
    label,
    regrets,
    score,
    zoo_products,
)
from tilewright.recommendation.mappings import GUESSES, LIKE, NEAREST, first_guess
from tilewright.recommendation.networks import (
    NETWORKS,
    Fallback,
    NetworkKind,
    Recommender,
    Told,
    TrainedRecommender,
    load_recommender,
    train_recommender,
    training_options,
)

__all__ = [
    "BASELINES",
    "GUESSES",
    "LIKE",
    "NEAREST",
    "NETWORKS",
    "SAMPLERS",
    "Advice",
    "AdviserCore",
    "Choices",
    "Confusion",
    "Drawn",
    "Fallback",
    "LabelledProducts",
    "NetworkKind",
    "Recommender",
    "Score",
    "Told",
    "TrainedRecommender",
    "advise",
    "best_fixed",
    "confusions",
    "cycles_on_cells",
    "first_guess",
    "label",
    "load_recommender",
    "regrets",
    "score",
    "train_recommender",
    "training_options",
    "zoo_products",
]
