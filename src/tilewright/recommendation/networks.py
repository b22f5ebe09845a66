"""Recommenders that learnt: AdaptNet, perceptrons, and a network on what is known of an axis.

What a configuration takes is a sum of a few products of one term for each size: folds, and what fills and drains. The
network ``terms`` is given this structure, and of each size how far it is from whole multiples of the lengths that an
axis may be cut by. Which of these a configuration cuts by, what rests, what streams, and what is added, it learns from
the cycles of some thousand products; AdaptNet and the perceptrons learn from the best class of each.
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
    from tilewright.learn import Classifier, Epoch, TermNetwork, TrainingOptions, TrainingWatch

Floats = NDArray[np.float32]
VERB = "train-recommender"
EMBEDDING = 13
"""Width of AdaptNet's embeddings, which the paper does not tell: the most that 512 KB hold at a byte a weight."""
TOP = 8
ROWS = 8_000
"""Products whose cycles on every live class ``terms`` is shown, half of them held out."""


@dataclass(frozen=True)
class NetworkKind:
    """A network by name: what it is, tables for an array, hidden layers; or whether it adds terms, and has none."""

    about: str
    tables: Callable[[Choices], Any]
    hidden: tuple[int, ...] = (128,)
    rate: float = 3e-3
    adds: bool = False


def _embeddings(choices: Choices) -> tuple[int, int, int]:
    return 3, LARGEST, EMBEDDING


def _sizes(choices: Choices) -> list[Floats]:
    sizes = np.arange(1, LARGEST + 1)
    return [np.stack([sizes / LARGEST, np.log2(sizes)], axis=1).astype(np.float32)] * 3


def _terms(choices: Choices) -> NDArray[np.float64]:
    """Return ``(sizes, f)``: a size, 1, and what it lacks of whole multiples of each length, in these lengths."""
    sizes, array = np.arange(1, LARGEST + 1), choices.array
    parts = [1 << each for each in range(array.cells.bit_length())]
    lengths = sorted({*parts, *(array.cell * part for part in parts)} - {1})
    return np.stack([sizes / 100, np.ones(LARGEST), *(-sizes % each / each for each in lengths)], axis=1)


SIZES = "The three sizes and their logarithms"
NETWORKS: Registry[NetworkKind] = Registry("recommender network")
NETWORKS.register("adaptnet")(NetworkKind("Learnt embeddings of the three sizes, as published", _embeddings, rate=1e-2))
NETWORKS.register("terms")(NetworkKind("Sums of products of terms, by what is known of each size", _terms, adds=True))
NETWORKS.register("mlp-a")(NetworkKind(SIZES, _sizes, (128,)))
NETWORKS.register("mlp-b")(NetworkKind(SIZES, _sizes, (256, 128)))
NETWORKS.register("mlp-c")(NetworkKind(SIZES, _sizes, (256, 256, 128)))
NETWORKS.register("mlp-d")(NetworkKind(SIZES, _sizes, (512, 256, 128, 64)))


@dataclass(frozen=True)
class Fallback:
    """How far a network is trusted: its first guesses are scored, and more is done where these may be poor."""

    top: int = TOP
    """Guesses that are scored."""
    within: float = 0.01
    """All configurations are looked at where the best guess may take longer than the best by more than this share:
    where it does than `Choices.least`."""

    def __post_init__(self) -> None:
        if self.top < 1:
            raise InputError("top", "must be at least 1", self.top)
        if not 0 <= self.within:
            raise InputError("within", "must be a share that is not negative", self.within)


@dataclass(frozen=True)
class Predictions:
    """What a recommender tells of ``p`` products."""

    classes: Whole
    """Of each."""
    sure: Floats
    """How likely it is as good as the best."""
    searched: NDArray[np.bool_]
    """Whether all configurations were looked at, as the guesses were too poor."""


@dataclass(frozen=True, eq=False)
class Recommender:
    """A trained network, the classes that its outputs stand for, and what it is of.

    Only classes that are the best of any product learnt from have an output: others would never be told.
    """

    classifier: "Classifier | TermNetwork"
    classes: Whole
    choices: Choices
    about: dict[str, Any]

    def advise(self, products: Whole, fallback: Fallback | None = None) -> Predictions:
        """Return what the network tells of products ``(p, 3)``, at its word or with a fallback.

        With one, no advice takes longer than the best by more than the share it admits. It is sure of what takes no
        longer than `Choices.least`, and else as sure as the network is that the best is among the guesses.

        Raises an `InputError` if a size is beyond those that it learnt from.
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
            return Predictions(found[:, 0], sure, searched)
        cycles, least = self.choices.cycles(products, found), self.choices.least(products)
        classes, cost = found[np.arange(len(found)), cycles.argmin(axis=1)], cycles.min(axis=1)
        searched = cost > least * (1 + fallback.within)
        if searched.any():
            classes[searched] = self.choices.best(products[searched]).classes
        sure[searched | (cost == least)] = 1
        return Predictions(classes, sure, searched)

    def judged(self, known: LabelledProducts, fallback: Fallback | None = None) -> Score:
        """Return how it does on labelled products, and how long it takes."""
        return self.tried(known, fallback)[1]

    def tried(self, known: LabelledProducts, fallback: Fallback | None = None) -> tuple[Predictions, Score]:
        """Return what it tells of labelled products, and how that does."""
        began = time.process_time()
        told = self.advise(known.products, fallback)
        spent = time.process_time() - began
        name = str(self.about["network"]) + ("" if fallback is None else f", top {fallback.top} scored")
        return told, replace(score(name, self.choices, known, told.classes), searched=float(told.searched.mean()),
                             microseconds=1e6 * spent / len(known.products))

    def save(self, path: Path) -> None:
        """Write it with the mark of its choices."""
        self.classifier.save(path, {**self.about, "classes": self.classes.tolist(), "mark": self.choices.mark})


def load_recommender(path: Path, choices: Choices) -> Recommender:
    """Return the recommender in a file.

    Raises an `InputError` if PyTorch is missing, there is no such file, or it is of another array, space or other
    rules.
    """
    require_extra("learn", "model", "PyTorch")
    from tilewright.learn import load_classifier  # noqa: PLC0415  (PyTorch loads late)

    classifier, about = load_classifier(path, "model", VERB)
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
    return TrainingOptions(kind.hidden, epochs, batch, kind.rate, 0.5 if kind.adds else 0.05, seed)


def train_recommender(choices: Choices, known: LabelledProducts, network: str, options: "TrainingOptions",
                      watch: "TrainingWatch | None" = None) -> TrainedRecommender:
    """Train a network on labelled products.

    Raises an `InputError` if PyTorch is missing, the network is unknown, or labels are of other choices.
    """
    require_extra("learn", "train-recommender", "PyTorch")
    from tilewright.learn import (  # noqa: PLC0415  (PyTorch loads late)
        Classifier,
        TrainingWatch,
        train_classifier,
        train_terms,
    )

    kind = NETWORKS.get(network)
    if known.about["choices"] != choices.mark:
        raise InputError("labels", "must be of the same array, space and rules", known.about["choices"])
    live, tables = known.live, kind.tables(choices)
    about = {"network": network, "array": choices.array.name, "space": choices.space, "options": asdict(options),
             "labels": known.about}
    watch = replace(watch or TrainingWatch(), mark=f"{network} {known.mark} {options}")
    if kind.adds:
        shown = known.products[:ROWS]
        cycles = choices.all_cycles(shown, live.tolist()).astype(np.float64)
        found = train_terms(tables, shown - 1, cycles, options, watch)
    else:
        found = train_classifier(Classifier.fresh(tables, len(live), options), known.products - 1,
                                 np.searchsorted(live, known.classes), options, watch)
    return TrainedRecommender(Recommender(found.classifier, live, choices, about), found.curve,
                              found.calibration_error)
