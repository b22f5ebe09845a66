"""The training loop of all networks that learn from rows: Adam with half a cosine, and the same result anywhere."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from tilewright.base import InputError, share
from tilewright.learn.files import read_state, write_state

HALVES = 2
"""Parts of every batch, whose gradients are added in order: on threads or in turn, the result is the same."""
LEAST_SHARED = 512
"""Smaller batches are worked on in turn: a thread would take longer to wake up."""
CHECKPOINT = "tilewright-training-1"


@dataclass(frozen=True)
class TrainingOptions:
    """How to train."""

    hidden: tuple[int, ...] = (256, 256, 128)
    """Widths of the hidden layers."""
    epochs: int = 10
    """Passes over the data at most."""
    batch: int = 1024
    """Rows between two steps."""
    rate: float = 2e-3
    """Length of the first steps; it falls to a hundredth by half a cosine over all epochs."""
    held_out: float = 0.05
    """Share of the rows that is not learnt from."""
    seed: int = 0
    """Same seed, same network, on any number of threads."""

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
    """Where training stands after an epoch: losses and seconds since its start."""

    epoch: int
    loss: float
    held_out_loss: float
    seconds: float


class Lesson(Protocol):
    """What is learnt: parameters, so many rows, and losses."""

    @property
    def parameters(self) -> Sequence[torch.Tensor]:
        """All that training changes."""

    @property
    def rows(self) -> int:
        """How many there are."""

    def loss(self, rows: torch.Tensor, whole: int) -> torch.Tensor:
        """Return the part of some rows in the mean loss of a batch of ``whole`` rows."""

    def held_out(self) -> float:
        """Return the mean loss of the rows that are not learnt from."""


class EpochRun(Protocol):
    """A training under way, epoch by epoch."""

    curve: list[Epoch]

    @property
    def ended(self) -> bool:
        """Whether nothing is left to learn."""

    def epoch(self, began: float) -> None:
        """Go on by one epoch, which is added to the curve; it began at so many seconds of `time.perf_counter`."""

    def state(self) -> dict[str, Any]:
        """Return all that a later run needs to go on."""

    def restore(self, state: dict[str, Any] | None) -> None:
        """Undo `state`."""


@dataclass(frozen=True)
class TrainingWatch:
    """How training is conducted; the network does not depend on it.

    Raises an `InputError` if there is no such device.
    """

    progress: Callable[[Epoch], None] | None = None
    stop: threading.Event | None = None
    """``progress`` and ``stop``: is told of epochs; ends training after the present one."""
    checkpoint: Path | None = None
    """Where it is kept, to go on from."""
    mark: str = ""
    """Says what is trained on what: a checkpoint of another training is refused."""
    threads: int = 1
    device: str = "cpu"
    """Where classifiers learn by epochs, as PyTorch names it. A GPU adds in any order: networks differ a little."""

    def __post_init__(self) -> None:
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise InputError("device", "must be one that PyTorch can use here", self.device, str(error)[:80]) from None


def train_epochs(lesson: Lesson, options: TrainingOptions, watch: TrainingWatch) -> list[Epoch]:
    """Train parameters, in place, to those of the epoch with the least held-out loss; return the curve.

    With a checkpoint each epoch is kept, and training goes on from the last one, bit for bit.
    """
    run = _Training(lesson, options, watch.threads)
    run_epochs(run, options.epochs, watch)
    with torch.no_grad():
        for parameter, kept in zip(lesson.parameters, run.kept, strict=True):
            parameter.copy_(kept)
    return run.curve


def run_epochs(run: EpochRun, epochs: int, watch: TrainingWatch) -> None:
    """Go on with a training until it has so many epochs, is done, or is stopped; with a checkpoint keep each."""
    if watch.checkpoint is not None:
        run.restore(read_state(watch.checkpoint, CHECKPOINT, watch.mark))
    began = time.perf_counter() - (run.curve[-1].seconds if run.curve else 0.0)
    while len(run.curve) < epochs and not run.ended:
        run.epoch(began)
        if watch.checkpoint is not None:
            write_state(watch.checkpoint, CHECKPOINT, watch.mark, run.state())
        if watch.progress is not None:
            watch.progress(run.curve[-1])
        if watch.stop is not None and watch.stop.is_set():
            break


class _Training:
    """One training under way."""

    ended = False

    def __init__(self, lesson: Lesson, options: TrainingOptions, threads: int) -> None:
        self.lesson, self.options, self.threads = lesson, options, min(threads, HALVES)
        self.parameters = [part.requires_grad_() for part in lesson.parameters]
        self.adam = torch.optim.Adam(self.parameters, lr=options.rate, fused=True)
        self.shuffle = torch.Generator().manual_seed(options.seed + 1)
        self.curve, self.best, self.done = list[Epoch](), float("inf"), 0
        self.kept = self._copies()

    def _copies(self) -> list[torch.Tensor]:
        return [part.detach().clone() for part in self.parameters]

    def epoch(self, began: float) -> None:
        """Pass over the data once."""
        rows, batch = self.lesson.rows, self.options.batch
        steps = self.options.epochs * -(-rows // batch)
        total = 0.0
        order = torch.randperm(rows, generator=self.shuffle).to(self.parameters[0].device)
        for chosen in order.split(batch):
            cosine = 0.5 * (1 + np.cos(np.pi * self.done / steps))
            self.adam.param_groups[0]["lr"] = float(self.options.rate * (0.01 + 0.99 * cosine))
            parts = chosen.split(-(-len(chosen) // HALVES))
            total += len(chosen) * step(self.adam, [partial(self.lesson.loss, part, len(chosen)) for part in parts],
                                        self.threads if len(chosen) >= LEAST_SHARED else 1)
            self.done += 1
        with torch.no_grad():
            loss = self.lesson.held_out()
        self.curve.append(Epoch(len(self.curve) + 1, total / rows, loss, time.perf_counter() - began))
        if loss < self.best:
            self.best, self.kept = loss, self._copies()

    def state(self) -> dict[str, Any]:
        """Return all that a later run needs to go on."""
        return {"parameters": self._copies(), "kept": self.kept, "adam": self.adam.state_dict(), "best": self.best,
                "shuffle": self.shuffle.get_state(), "done": self.done, "curve": [astuple(one) for one in self.curve]}

    def restore(self, state: dict[str, Any] | None) -> None:
        """Undo `state`."""
        if state is None:
            return
        with torch.no_grad():
            for parameter, value in zip(self.parameters, state["parameters"], strict=True):
                parameter.copy_(value)
        self.adam.load_state_dict(state["adam"])
        self.shuffle.set_state(state["shuffle"])
        self.kept, self.best, self.done = state["kept"], state["best"], state["done"]
        self.curve = [Epoch(*one) for one in state["curve"]]


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
