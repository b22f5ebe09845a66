"""Training of regressors: a Huber loss, held-out data, and the same result anywhere."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.learn.epochs import Epoch, TrainingOptions, TrainingWatch, train_epochs
from tilewright.learn.regressor import Floats, Regressor, Scale
from tilewright.learn.threads import one_thread


@dataclass(frozen=True)
class Trained:
    """A trained network."""

    regressor: Regressor
    curve: tuple[Epoch, ...]
    """One entry for each epoch."""
    errors: tuple[float, ...]
    ranks: tuple[float, ...]
    """``errors`` and ``ranks``: on the held-out rows, for each output: root of the mean squared error in its own unit,
    and the rank correlation (Spearman) of predicted and true values."""
    held_out: int
    """How many rows these were."""


def train(  # noqa: PLR0913  (keywords of the one entry point)
    features: Floats, targets: Floats, options: TrainingOptions, *, threads: int = 1,
    progress: Callable[[Epoch], None] | None = None, stop: threading.Event | None = None,
) -> Trained:
    """Train a network to tell ``targets`` ``(n, o)`` from ``features`` ``(n, f)``.

    The network kept is that of the epoch with the least held-out loss. ``stop`` ends training after the present epoch.

    Raises an `InputError` if there are fewer than two rows, or a value is not finite.
    """
    if len(features) < 2:
        raise InputError("samples", "must be at least 2, to train on some and test on others", len(features))
    if not (np.isfinite(features).all() and np.isfinite(targets).all()):
        raise InputError("samples", "must be finite numbers")
    order = np.random.default_rng(options.seed).permutation(len(features))
    held = order[:max(1, int(len(order) * options.held_out))]
    learnt = order[len(held):]
    scales = Scale.of(features[learnt]), Scale.of(targets[learnt])
    network = Regressor.fresh((features.shape[1], *options.hidden, targets.shape[1]), scales, options.seed)
    with one_thread():
        pairs = (_pair(network, features, targets, rows) for rows in (learnt, held))
        curve = train_epochs(_Fitting(network, *pairs), options, TrainingWatch(progress, stop, threads=threads))
        kept = Regressor.from_arrays(network.arrays())
    predicted, true = kept.predict(features[held]), targets[held]
    return Trained(kept, tuple(curve), tuple(float(e) for e in np.sqrt(((predicted - true) ** 2).mean(axis=0))),
                   tuple(rank_correlation(p, t) for p, t in zip(predicted.T, true.T, strict=True)), len(held))


def rank_correlation(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    """Return Spearman's rank correlation of two rows (ties in order of appearance); 0 where one does not vary."""
    if len(first) < 2 or first.std() == 0 or second.std() == 0:
        return 0.0
    one, other = (np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)
                  for values in (first, second))
    return float(np.corrcoef(one, other)[0, 1])


Pair = tuple[torch.Tensor, torch.Tensor]


def _pair(network: Regressor, features: Floats, targets: Floats, rows: NDArray[np.intp]) -> Pair:
    return (network.inputs.to(torch.from_numpy(features[rows].astype(np.float32))),
            network.outputs.to(torch.from_numpy(targets[rows].astype(np.float32))))


@dataclass(frozen=True)
class _Fitting:
    """A network, the rows that it is fitted to, and those held out."""

    network: Regressor
    learnt: Pair
    held: Pair

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        return self.network.parameters

    @property
    def rows(self) -> int:
        return len(self.learnt[0])

    def loss(self, rows: torch.Tensor, whole: int) -> torch.Tensor:
        features, targets = (part[rows] for part in self.learnt)
        return _huber(self.network.normalised(features), targets) / (whole * targets.shape[1])

    def held_out(self) -> float:
        parts = zip(*(part.split(1 << 16) for part in self.held), strict=True)
        total: float = sum(float(_huber(self.network.normalised(x), y)) for x, y in parts)
        return total / int(self.held[1].numel())


def _huber(predicted: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.smooth_l1_loss(predicted, true, reduction="sum")
