"""Classifiers of whole numbers: a table for each, side by side, then a perceptron, and how sure it is.

A recommender's network (Naumov et al., DLRM, arXiv 1906.00091, with an embedding alone for each input). A table's
entries are learnt, or are figures that are known of a number and only looked up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from tilewright.base import InputError
from tilewright.learn.epochs import Epoch, TrainingOptions, TrainingWatch, train_epochs
from tilewright.learn.files import write_arrays
from tilewright.learn.regressor import Floats, Regressor, Scale
from tilewright.learn.threads import one_thread

if TYPE_CHECKING:
    from tilewright.learn.terms import TermNetwork

Whole = NDArray[np.int64]
KIND = "tilewright-classifier-3"
PIECE = 1 << 15
BINS = 15
"""Of confidence, for `calibration_error`."""
FRESH = 0.05
"""Deviation of fresh learnt tables. With 1 these stay noise to the layer above: on 200,000 products AdaptNet then tells
16 % as well as can be after three epochs, not 65 %."""
UNKNOWN: Floats = np.array([[0, 1], [0, 1]], dtype=np.float32)
"""Reliability before it was measured: confidence as told."""
Network = TypeVar("Network", "Classifier", "TermNetwork")


@dataclass(frozen=True, eq=False)
class Classifier:
    """A trained classifier."""

    tables: tuple[torch.Tensor, ...]
    """One for each number of a row: ``(entries, width)``; numbers count from 0."""
    perceptron: Regressor
    """From the tables' entries to a figure for each class."""
    learnt: bool
    """Whether the tables are trained too."""
    reliability: Floats = field(default_factory=UNKNOWN.copy)
    """``(2, bins)``: the likelihood of the likeliest class, and how often it is right (Zadrozny and Elkan, KDD
    2002)."""

    @classmethod
    def fresh(cls, tables: Sequence[Floats] | tuple[int, int, int], classes: int,
              options: TrainingOptions) -> "Classifier":
        """Return an untrained one; ``tables`` are known figures, or ``(numbers, entries, width)`` of learnt ones."""
        drawn = torch.Generator().manual_seed(options.seed + 2)
        learnt = isinstance(tables[0], int)
        if learnt:
            count, entries, width = tables
            made = [FRESH * torch.randn(entries, width, generator=drawn) for _ in range(count)]
        else:
            made = [torch.from_numpy(one) for one in tables]
        width = sum(one.shape[1] for one in made)
        seen = Scale(torch.zeros(width), torch.ones(width))
        if not learnt:
            each = [Scale.of(one.numpy()) for one in made]
            seen = Scale(torch.cat([one.mean for one in each]), torch.cat([one.deviation for one in each]))
        told = Scale(torch.zeros(classes), torch.ones(classes))
        perceptron = Regressor.fresh((width, *options.hidden, classes), (seen, told), options.seed)
        return cls(tuple(made), perceptron, learnt)

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        """All that training changes."""
        return (*(self.tables if self.learnt else ()), *self.perceptron.parameters)

    def figures(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return ``(n, c)``: the logarithms of odds of classes for rows ``(n, t)``; differentiable."""
        seen = torch.cat([torch.nn.functional.embedding(numbers[:, at], table)
                          for at, table in enumerate(self.tables)], dim=1)
        return self.perceptron.normalised(self.perceptron.inputs.to(seen))

    def on(self, device: str) -> "Classifier":
        """Return it on a device, apart from what it was trained by."""
        return replace(self, tables=tuple(table.detach().to(device) for table in self.tables),
                       perceptron=self.perceptron.on(device))

    def probabilities(self, numbers: Whole) -> Floats:
        """Return ``(n, c)``: how likely each class is, for rows of numbers ``(n, t)``, on one thread.

        Raises an `InputError` if a number is beyond its table.
        """
        checked(numbers, np.array([len(table) for table in self.tables]))
        with one_thread(), torch.no_grad():
            found = [torch.softmax(self.figures(part), dim=1).numpy()
                     for part in torch.from_numpy(numbers).split(PIECE)]
        return np.concatenate(found)

    def confidence(self, told: Floats) -> Floats:
        """Return ``(n)``: how likely the likeliest class is right, for ``probabilities`` ``(n, c)``."""
        sure: Floats = np.interp(told.max(axis=1), *self.reliability).astype(np.float32)
        return sure

    @property
    def size(self) -> int:
        """How many numbers it holds, tables included."""
        return sum(part.numel() for part in (*self.tables, *self.perceptron.parameters))

    def save(self, path: Path, about: Mapping[str, Any]) -> None:
        """Write it, and plain data about it."""
        arrays = {f"table{at}": table.detach().numpy() for at, table in enumerate(self.tables)}
        write_arrays(path, KIND, self.perceptron.arrays() | arrays | {"reliability": self.reliability},
                     {"learnt": self.learnt, "about": dict(about)})

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], learnt: bool) -> "Classifier":
        """Return the classifier that `save` wrote as these."""
        tables = [torch.from_numpy(arrays.pop(name)) for name in sorted(arrays) if name.startswith("table")]
        reliability = arrays.pop("reliability")
        return cls(tuple(tables), Regressor.from_arrays(arrays), learnt, reliability)


@dataclass(frozen=True)
class TrainedClassifier:
    """A classifier, losses by epoch, and its calibration error on half of the rows held out (the other half set it)."""

    classifier: "Classifier | TermNetwork"
    curve: tuple[Epoch, ...]
    calibration_error: float


def train_classifier(fresh: Classifier, numbers: Whole, classes: Whole, options: TrainingOptions,
                     watch: TrainingWatch | None = None) -> TrainedClassifier:
    """Train on rows ``(n, t)`` and their classes ``(n)`` by cross-entropy, then measure its reliability.

    Raises an `InputError` if there are fewer than two rows, or a checkpoint is of another training.
    """
    if len(numbers) < 2:
        raise InputError("samples", "must be at least 2, to train on some and test on others", len(numbers))
    order = np.random.default_rng(options.seed).permutation(len(numbers))
    held = order[:max(1, int(len(order) * options.held_out))]
    watch = watch or TrainingWatch()
    with one_thread():
        there = fresh.on(watch.device)
        lesson = _Classing(there, *(tuple(torch.from_numpy(each[rows]).to(watch.device) for each in (numbers, classes))
                                    for rows in (order[len(held):], held)))
        curve = train_epochs(lesson, options, watch)
    return calibrated(there.on("cpu"), tuple(curve), numbers[held], lambda told: told == classes[held])


def calibrated(network: Network, curve: tuple[Epoch, ...], numbers: Whole,
               right: Callable[[NDArray[np.intp]], NDArray[np.bool_]]) -> TrainedClassifier:
    """Return a network with its reliability, by rows ``(n, t)`` held out and whether classes told of them are right."""
    told = network.probabilities(numbers)
    good, half = right(told.argmax(axis=1)), -(-len(numbers) // 2)
    found = replace(network, reliability=reliability(told[:half].max(axis=1), good[:half]))
    return TrainedClassifier(found, curve, calibration_error(found.confidence(told[half:]), good[half:]))


def checked(numbers: Whole, limits: Whole) -> None:
    """Refuse rows of other than so many numbers, or a number beyond its limit."""
    if numbers.shape[1] != len(limits) or (numbers < 0).any() or (numbers >= limits).any():
        raise InputError("numbers", f"must be {len(limits)} a row, from 0 to {limits.max() - 1}",
                         numbers.max(initial=0))


def reliability(confidence: Floats, right: NDArray[np.bool_]) -> Floats:
    """Return ``(2, bins)``: means of confidence ``(n)`` over equal parts, and the shares of right answers, growing."""
    parts = np.array_split(np.argsort(confidence, kind="stable"), min(BINS, len(right)))
    seen, shares = (np.array([each[part].mean() for part in parts]) for each in (confidence, right))
    return np.stack([seen, isotonic_regression(shares).x]).astype(np.float32)


def calibration_error(confidence: Floats, right: NDArray[np.bool_]) -> float:
    """Return the mean distance of confidence ``(n)`` from the share of right answers, over equal bins (Guo et al.)."""
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    apart = np.bincount(bins, confidence.astype(np.float64) - right, minlength=BINS)
    return float(np.abs(apart).sum() / max(1, len(right)))


Rows = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class _Classing:
    """A classifier, the rows (numbers, classes) that it learns from, and those held out."""

    classifier: Classifier
    learnt: Rows
    held: Rows

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        return self.classifier.parameters

    @property
    def rows(self) -> int:
        return len(self.learnt[0])

    def loss(self, rows: torch.Tensor, whole: int) -> torch.Tensor:
        numbers, classes = (part[rows] for part in self.learnt)
        return torch.nn.functional.cross_entropy(self.classifier.figures(numbers), classes, reduction="sum") / whole

    def held_out(self) -> float:
        numbers, classes = self.held
        figures = torch.cat([self.classifier.figures(part) for part in numbers.split(PIECE)])
        return float(torch.nn.functional.cross_entropy(figures, classes))
