"""The training loop of regressors: Adam on a Huber loss, held-out data, and the same result anywhere."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.base import InputError, share
from tilewright.learn.regressor import Floats, Regressor, Scale
from tilewright.learn.threads import one_thread

HALVES = 2
"""Parts of every batch, whose gradients are added in order: on threads or in turn, the result is the same."""
LEAST_SHARED = 512
"""Smaller batches are worked on in turn: a thread would take longer to wake up."""


@dataclass(frozen=True)
class TrainingOptions:
    """How to train.

    Parameters
    ----------
    hidden
        Widths of the hidden layers.
    epochs
        Passes over the data at most.
    batch
        Rows between two steps.
    rate
        Length of the first steps; it falls to a hundredth by half a cosine over all epochs.
    held_out
        Share of the rows that is not learnt from.
    seed
        Same seed, same network, on any number of threads.
    """

    hidden: tuple[int, ...] = (256, 256, 128)
    epochs: int = 10
    batch: int = 1024
    rate: float = 2e-3
    held_out: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch"):
            if getattr(self, name) < 1:
                raise InputError(name, "must be at least 1", getattr(self, name))
        if not self.hidden or min(self.hidden) < 1:
            raise InputError("hidden", "must be one or more positive widths", self.hidden)
        if not 0 < self.held_out < 1:
            raise InputError("held_out", "must be above 0 and below 1", self.held_out)
        if self.rate <= 0:
            raise InputError("rate", "must be positive", self.rate)


@dataclass(frozen=True)
class Epoch:
    """Where training stands after an epoch: losses (Huber, of normalised outputs) and seconds since its start."""

    epoch: int
    loss: float
    held_out_loss: float
    seconds: float


@dataclass(frozen=True)
class Trained:
    """A trained network.

    Parameters
    ----------
    curve
        One entry for each epoch.
    errors, ranks
        On the held-out rows, for each output: root of the mean squared error in its own unit, and the rank correlation
        (Spearman) of predicted and true values.
    held_out
        How many rows these were.
    """

    regressor: Regressor
    curve: tuple[Epoch, ...]
    errors: tuple[float, ...]
    ranks: tuple[float, ...]
    held_out: int


def train(  # noqa: PLR0913  (keywords of the one entry point)
    features: Floats, targets: Floats, options: TrainingOptions, *, threads: int = 1,
    progress: Callable[[Epoch], None] | None = None, stop: threading.Event | None = None,
) -> Trained:
    """Train a network to tell ``targets`` ``(n, o)`` from ``features`` ``(n, f)``.

    The network kept is that of the epoch with the least held-out loss. ``stop`` ends training after the present epoch.

    Raises
    ------
    InputError
        If there are fewer than two rows, or a value is not finite.
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
        learning = _Learning(network, options, threads)
        kept, curve = learning.run(_pair(network, features, targets, learnt), _pair(network, features, targets, held),
                                   progress, stop)
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


class _Learning:
    """One training under way."""

    def __init__(self, network: Regressor, options: TrainingOptions, threads: int) -> None:
        self.network, self.options, self.threads = network, options, min(threads, HALVES)
        for part in network.parameters:
            part.requires_grad_()
        self.adam = torch.optim.Adam(network.parameters, lr=options.rate, fused=False, foreach=False)
        self.shuffle = torch.Generator().manual_seed(options.seed + 1)

    def run(self, learnt: Pair, held: Pair, progress: Callable[[Epoch], None] | None,
            stop: threading.Event | None) -> tuple[Regressor, list[Epoch]]:
        """Train to the end; return the best network and the curve."""
        began, curve = time.perf_counter(), list[Epoch]()
        best, kept = float("inf"), self.network.arrays()
        rows, batch = len(learnt[0]), self.options.batch
        steps = self.options.epochs * -(-rows // batch)
        done = 0
        for epoch in range(self.options.epochs):
            order, total = torch.randperm(rows, generator=self.shuffle), 0.0
            for chosen in order.split(batch):
                cosine = 0.5 * (1 + np.cos(np.pi * done / steps))
                self.adam.param_groups[0]["lr"] = self.options.rate * (0.01 + 0.99 * cosine)
                total += self._step(learnt[0][chosen], learnt[1][chosen]) * len(chosen)
                done += 1
            with torch.no_grad():
                loss = sum(float(_huber(self.network.normalised(x), y)) for x, y in zip(
                    held[0].split(1 << 16), held[1].split(1 << 16), strict=True)) / held[1].numel()
            curve.append(Epoch(epoch + 1, total / rows, loss, time.perf_counter() - began))
            if progress is not None:
                progress(curve[-1])
            if loss < best:
                best, kept = loss, self.network.arrays()
            if stop is not None and stop.is_set():
                break
        return Regressor.from_arrays(kept), curve

    def _step(self, features: torch.Tensor, targets: torch.Tensor) -> float:
        """Take one step; return the mean loss before it."""
        size, count = -(-len(features) // HALVES), targets.numel()
        parts = list(zip(features.split(size), targets.split(size), strict=True))
        return step(self.adam, [partial(self._loss, *part, count) for part in parts],
                    self.threads if len(features) >= LEAST_SHARED else 1)

    def _loss(self, features: torch.Tensor, targets: torch.Tensor, count: int) -> torch.Tensor:
        return _huber(self.network.normalised(features), targets) / count


def step(adam: torch.optim.Optimizer, losses: Sequence[Callable[[], torch.Tensor]], threads: int) -> float:
    """Take a step against the sum of some losses, worked out on so many threads; return the sum before it.

    Their gradients are added in order: on threads or in turn, the result is the same.
    """
    parameters = [one for group in adam.param_groups for one in group["params"]]
    found: list[tuple[float, tuple[torch.Tensor, ...]]] = [(0.0, ())] * len(losses)

    def work(index: int) -> None:
        torch.set_num_threads(1)
        loss = losses[index]()
        found[index] = float(loss.detach()), torch.autograd.grad(loss, parameters)

    share(work, range(len(losses)), threads)
    for at, parameter in enumerate(parameters):
        total = found[0][1][at]
        for _, slopes in found[1:]:
            total = total + slopes[at]
        parameter.grad = total
    adam.step()
    return sum(loss for loss, _ in found)


def _huber(predicted: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.smooth_l1_loss(predicted, true, reduction="sum")
