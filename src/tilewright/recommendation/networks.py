"""Recommenders that learnt: AdaptNet, perceptrons, and a network on what is known of an axis.

Whether folds are whole or not, cycles are, nearly, a product of one term for each size of a matrix product. So what a
class takes is, in logarithms, nearly a sum of one figure for each size; the network ``terms`` looks these up (where
AdaptNet learns its embeddings from nothing), adds them, and leaves to its hidden layer what they do not tell.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, Registry, require_extra
from tilewright.recommendation.choices import Choices, Whole
from tilewright.recommendation.labels import LARGEST, LabelledProducts, Score, score

if TYPE_CHECKING:
    from tilewright.learn import Classifier, Epoch, TrainingOptions, TrainingWatch

Floats = NDArray[np.float32]
VERB = "train-recommender"
GAIN = 2_000.0
"""What shares of waste are multiplied by, as classes differ by thousandths: straight weights then stay about one."""
EMBEDDING = 13
"""Width of AdaptNet's embeddings, which the paper does not tell: the most that 512 KB hold at a byte a weight."""
TOP = 8


@dataclass(frozen=True)
class NetworkKind:
    """A network by name: what it is, tables for an array, hidden layers, and whether figures also go past these."""

    about: str
    tables: Callable[[Choices], Any]
    hidden: tuple[int, ...] = (128,)
    straight: bool = False
    rate: float = 3e-3


def _embeddings(choices: Choices) -> tuple[int, int, int]:
    return 3, LARGEST, EMBEDDING


def _sizes(choices: Choices) -> list[Floats]:
    sizes = np.arange(1, LARGEST + 1)
    return [np.stack([sizes / LARGEST, np.log2(sizes)], axis=1).astype(np.float32)] * 3


def _terms(choices: Choices) -> list[Floats]:
    """Return what an axis of each size wastes on 1, 2, 4 ... cells, how full its folds are, and what filling takes."""
    sizes, cell = np.arange(1, LARGEST + 1), choices.array.cell
    parts = [1 << each for each in range(choices.array.cells.bit_length())]
    waste = [GAIN * np.log2(-(-sizes // (cell * part)) * (cell * part) / sizes) for part in parts]
    full = [-(-sizes // part) / -(-sizes // (cell * part)) for part in parts]
    return [np.stack([*waste, GAIN / sizes, np.log2(sizes), *full], axis=1).astype(np.float32)] * 3


SIZES = "The three sizes and their logarithms"
NETWORKS: Registry[NetworkKind] = Registry("recommender network")
NETWORKS.register("adaptnet")(NetworkKind("Learnt embeddings of the three sizes, as published", _embeddings, rate=1e-2))
NETWORKS.register("terms")(NetworkKind("Figures that are known of each axis", _terms, straight=True))
NETWORKS.register("mlp-a")(NetworkKind(SIZES, _sizes, (128,)))
NETWORKS.register("mlp-b")(NetworkKind(SIZES, _sizes, (256, 128)))
NETWORKS.register("mlp-c")(NetworkKind(SIZES, _sizes, (256, 256, 128)))
NETWORKS.register("mlp-d")(NetworkKind(SIZES, _sizes, (512, 256, 128, 64)))


@dataclass(frozen=True)
class Fallback:
    """How far a network is trusted: its first guesses are scored, and more is done where these may be poor.

    Parameters
    ----------
    top
        Guesses that are scored.
    within
        All configurations are looked at where the best guess may take longer than the best by more than this share:
        where it does than `Choices.least`.
    """

    top: int = TOP
    within: float = 0.01

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError("top", "must be at least 1", self.top)
        if not 0 <= self.within:
            raise InputError("within", "must be a share that is not negative", self.within)


@dataclass(frozen=True)
class Told:
    """What a recommender tells of ``p`` products.

    Parameters
    ----------
    classes
        Of each.
    sure
        How likely it is as good as the best.
    searched
        Whether all configurations were looked at, as the guesses were too poor.
    """

    classes: Whole
    sure: Floats
    searched: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Recommender:
    """A trained network, the classes that its outputs stand for, and what it is of.

    Only classes that are the best of any product learnt from have an output: others would never be told.
    """

    classifier: "Classifier"
    classes: Whole
    choices: Choices
    about: dict[str, Any]

    def advise(self, products: Whole, fallback: Fallback | None = None) -> Told:
        """Return what the network tells of products ``(p, 3)``, at its word or with a fallback.

        With one, no advice takes longer than the best by more than the share it admits. It is sure of what takes no
        longer than `Choices.least`, and else as sure as the network is that the best is among the guesses.

        Raises
        ------
        InputError
            If a size is beyond those that it learnt from.
        """
        if len(products) and (products.max() > LARGEST or products.min() < 1):
            raise InputError("product", f"must have sizes from 1 to {LARGEST:,} for a model to answer",
                             products[(products > LARGEST).any(axis=1) | (products < 1).any(axis=1)][0].tolist(),
                             "Ask without --model: the exact path takes any")
        told = self.classifier.probabilities(products - 1)
        top = 1 if fallback is None else min(fallback.top, told.shape[1])
        first = np.argsort(-told, axis=1, kind="stable")[:, :top]
        sure = self.classifier.confidence(told)
        if top > 1:
            sure = np.maximum(sure, np.take_along_axis(told, first, axis=1).sum(axis=1).clip(0, 1))
        found = np.sort(self.classes[first], axis=1)
        searched = np.zeros(len(products), dtype=np.bool_)
        if fallback is None:
            return Told(found[:, 0], sure, searched)
        cycles, least = self.choices.cycles(products, found), self.choices.least(products)
        classes, cost = found[np.arange(len(found)), cycles.argmin(axis=1)], cycles.min(axis=1)
        searched = cost > least * (1 + fallback.within)
        if searched.any():
            classes[searched] = self.choices.best(products[searched]).classes
        sure[searched | (cost == least)] = 1
        return Told(classes, sure, searched)

    def judged(self, known: LabelledProducts, fallback: Fallback | None = None) -> Score:
        """Return how it does on labelled products, and how long it takes."""
        began = time.process_time()
        told = self.advise(known.products, fallback)
        spent = time.process_time() - began
        name = str(self.about["network"]) + ("" if fallback is None else f", top {fallback.top} scored")
        return replace(score(name, self.choices, known, told.classes), searched=float(told.searched.mean()),
                       microseconds=1e6 * spent / len(known.products))

    def save(self, path: Path) -> None:
        """Write it with the mark of its choices."""
        self.classifier.save(path, {**self.about, "classes": self.classes.tolist(), "mark": self.choices.mark})


def load_recommender(path: Path, choices: Choices) -> Recommender:
    """Return the recommender in a file.

    Raises
    ------
    InputError
        If PyTorch is missing, there is no such file, or it is of another array, space or other rules.
    """
    require_extra("learn", "model", "PyTorch")
    from tilewright.learn import Classifier  # noqa: PLC0415  (PyTorch loads late)

    classifier, about = Classifier.load(path, "model", VERB)
    if about.get("mark") != choices.mark:
        raise InputError("model", f"must be of {choices.array.name}, its space {choices.space} and the same rules",
                         f"{about.get('array')}, {about.get('space')}, rules {about.get('mark')}",
                         f"Train one: tilewright {VERB}, or name what it is of")
    return Recommender(classifier, np.array(about["classes"], dtype=np.int64), choices, about)


@dataclass(frozen=True)
class TrainedRecommender:
    """A recommender, losses by epoch, and its calibration error on rows held out."""

    recommender: Recommender
    curve: "tuple[Epoch, ...]"
    calibration_error: float


def training_options(network: str, epochs: int, batch: int, seed: int) -> "TrainingOptions":
    """Return how a network is trained."""
    from tilewright.learn import TrainingOptions  # noqa: PLC0415  (PyTorch loads late)

    kind = NETWORKS.get(network)
    return TrainingOptions(hidden=kind.hidden, epochs=epochs, batch=batch, rate=kind.rate, seed=seed)


def train_recommender(choices: Choices, known: LabelledProducts, network: str, options: "TrainingOptions",
                      watch: "TrainingWatch | None" = None) -> TrainedRecommender:
    """Train a network on labelled products.

    Raises
    ------
    InputError
        If PyTorch is missing, the network is unknown, or labels are of other choices.
    """
    require_extra("learn", "train-recommender", "PyTorch")
    from tilewright.learn import Classifier, TrainingWatch, train_classifier  # noqa: PLC0415  (PyTorch loads late)

    kind = NETWORKS.get(network)
    if known.about["choices"] != choices.mark:
        raise InputError("labels", "must be of the same array, space and rules", known.about["choices"])
    live = known.live
    fresh = Classifier.fresh(kind.tables(choices), len(live), options, kind.straight)
    about = {"network": network, "array": choices.array.name, "space": choices.space, "options": asdict(options),
             "labels": known.about}
    mark = f"{network} {known.mark} {options}"
    found = train_classifier(fresh, known.products - 1, np.searchsorted(live, known.classes), options,
                             replace(watch or TrainingWatch(), mark=mark))
    return TrainedRecommender(Recommender(found.classifier, live, choices, about), found.curve,
                              found.calibration_error)
