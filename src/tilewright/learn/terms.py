"""Classifiers by amounts: terms of each of three numbers, and a sum of their products for each class; least is best.

A term is a weighed sum of figures that are known of a number, and a core weighs the products of one term of each: a
decomposition after Tucker (Psychometrika 31, 1966) whose factors are linear in figures. Weights are found by the
method of Levenberg and Marquardt (SIAM J. Appl. Math. 11, 1963): where such terms exist it ends at the precision of
numbers, which steps along a gradient do not.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.learn.classifier import KIND, UNKNOWN, Classifier, TrainedClassifier, Whole, calibrated, checked
from tilewright.learn.epochs import Epoch, TrainingOptions, TrainingWatch, run_epochs
from tilewright.learn.files import read_arrays, write_arrays
from tilewright.learn.regressor import Floats
from tilewright.learn.threads import one_thread

Amounts = NDArray[np.float64]
AXES, TERMS = 3, 2
"""Numbers of a row, and terms of each."""
PIECE = 1 << 13
GAIN = 2_000.0
"""What logarithms of amounts are multiplied by to be odds: classes differ by thousandths and less."""
ENDLESS = 1e30
"""What stands for an amount that cannot be: a class with it is told last."""
STEPS, TRIES, CLOSE = 60, 6, 1e-10
"""Steps from a start, attempts at a step, and the relative deviation (root of the mean square) at which a class is
learnt."""
SPREAD = 0.05
"""Deviation of the weights of a start."""


@dataclass(frozen=True, eq=False)
class TermNetwork:
    """A trained classifier by amounts, which are whole."""

    figures: torch.Tensor
    """``(entries, f)``: what is known of a number; numbers count from 0."""
    weights: torch.Tensor
    cores: torch.Tensor
    """``weights`` and ``cores``: of each class: of figures in terms ``(c, 3, terms, f)``, and of products of terms
    ``(c, terms, terms, terms)``."""
    reliability: Floats = field(default_factory=UNKNOWN.copy)
    """As of `Classifier`; right is what amounts to no more than the least."""

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        """All that training changes."""
        return self.weights, self.cores

    @property
    def size(self) -> int:
        """How many numbers it holds, figures included."""
        return sum(part.numel() for part in (self.figures, *self.parameters))

    def amounts(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return ``(n, c)``: what each class amounts to for rows ``(n, 3)``, in whole numbers; `ENDLESS` below 1."""
        first, second, third = (torch.tensordot(self.figures[numbers[:, axis]], self.weights[:, axis], ([1], [2]))
                                for axis in range(AXES))
        products = first[..., :, None, None] * second[..., None, :, None] * third[..., None, None, :]
        found = (products * self.cores).sum((2, 3, 4)).round()
        return torch.where(found < 1, ENDLESS, found)

    def probabilities(self, numbers: Whole) -> Floats:
        """Return ``(n, c)``: how likely each class is, for rows of numbers ``(n, 3)``, on one thread.

        Raises an `InputError` if a number is beyond its table.
        """
        checked(numbers, np.full(AXES, len(self.figures)))
        with one_thread(), torch.no_grad():
            found = [torch.softmax(-GAIN * torch.log2(self.amounts(part)), dim=1).float().numpy()
                     for part in torch.from_numpy(numbers).split(PIECE)]
        return np.concatenate(found)

    def confidence(self, told: Floats) -> Floats:
        """Return ``(n)``: how likely the likeliest class is right, for ``probabilities`` ``(n, c)``."""
        sure: Floats = np.interp(told.max(axis=1), *self.reliability).astype(np.float32)
        return sure

    def save(self, path: Path, about: Mapping[str, Any]) -> None:
        """Write it, and plain data about it."""
        arrays = {name: getattr(self, name).numpy() for name in ("figures", "weights", "cores")}
        write_arrays(path, KIND, arrays | {"reliability": self.reliability}, {"about": dict(about)})


def load_classifier(path: Path, field: str, verb: str) -> "tuple[Classifier | TermNetwork, dict[str, Any]]":
    """Return the classifier in a file and what is said about it; see `tilewright.learn.files.read_arrays`."""
    arrays, told = read_arrays(path, KIND, field, verb)
    if "cores" not in arrays:
        return Classifier.from_arrays(arrays, told["learnt"]), told["about"]
    figures, weights, cores = (torch.from_numpy(arrays[name]) for name in ("figures", "weights", "cores"))
    return TermNetwork(figures, weights, cores, arrays["reliability"]), told["about"]


def train_terms(figures: Amounts, numbers: Whole, amounts: Amounts, options: TrainingOptions,
                watch: TrainingWatch | None = None) -> TrainedClassifier:
    """Train on rows ``(n, 3)`` of numbers, of which ``figures`` ``(entries, f)`` are known, and ``amounts`` ``(n, c)``.

    An epoch is a start from fresh weights for each class that is not learnt yet; there are no more than asked for. Its
    losses are means over classes of squared relative deviations.

    Raises an `InputError` if a checkpoint is of another training.
    """
    order = np.random.default_rng(options.seed).permutation(len(numbers))
    held, learnt = np.split(order, [max(1, int(len(order) * options.held_out))])
    shown, unseen = ([torch.from_numpy(each[rows]) for each in (numbers, amounts)] for rows in (learnt, held))
    run = _Training(shown, unseen, torch.from_numpy(figures), options.seed)
    with one_thread(), torch.no_grad():
        run_epochs(run, options.epochs, watch or TrainingWatch())
    return calibrated(run.network, tuple(run.curve), numbers[held],
                      lambda told: amounts[held, told] == amounts[held].min(axis=1))


class _Training:
    """One training under way: rows learnt and held out (numbers, amounts), and the best of the starts so far."""

    def __init__(self, learnt: Sequence[torch.Tensor], held: Sequence[torch.Tensor], figures: torch.Tensor,
                 seed: int) -> None:
        (self.numbers, self.amounts), self.held, self.figures, self.seed = learnt, held, figures, seed
        self.seen = [figures[self.numbers[:, axis]] for axis in range(AXES)]
        classes, terms = self.amounts.shape[1], (TERMS,) * AXES
        self.network = TermNetwork(figures, figures.new_zeros(classes, AXES, TERMS, figures.shape[1]),
                                   figures.new_zeros(classes, *terms))
        self.losses, self.curve = torch.full((classes,), torch.inf, dtype=figures.dtype), list[Epoch]()

    @property
    def ended(self) -> bool:
        """Whether all classes are learnt."""
        return bool((self.losses < CLOSE**2).all())

    def epoch(self, began: float) -> None:
        """Begin anew with each class that is not learnt."""
        for one in torch.nonzero(self.losses >= CLOSE**2)[:, 0].tolist():
            self.begin(one)
        numbers, amounts = self.held
        apart = (self.network.amounts(numbers) / amounts - 1).clamp(max=1)
        self.curve.append(Epoch(len(self.curve) + 1, float(self.losses.mean()), float(apart.square().mean()),
                                time.perf_counter() - began))

    def begin(self, one: int) -> None:
        """Descend from fresh weights of a class, and keep what this comes to where it is the best yet.

        The first terms begin near the first figures, and the core at its best for these.
        """
        drawn = np.random.default_rng((self.seed, len(self.curve), one))
        at = torch.from_numpy(SPREAD * drawn.standard_normal(self.network.weights.shape[1:]))
        at[:, range(TERMS), range(TERMS)] += 1
        goal = self.amounts[:, one, None]
        slopes, _ = self.slopes(at, self.network.cores[one].new_zeros((TERMS,) * AXES), goal)
        core = torch.linalg.lstsq(slopes[:, at.numel():], torch.ones_like(goal), driver="gelsd").solution
        found, loss = self.descend(torch.cat([at.flatten(), core.flatten()]), goal)
        if loss < self.losses[one]:
            self.losses[one] = loss
            self.network.weights[one], self.network.cores[one] = self.parts(found)

    def parts(self, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the weights and the core of a class that lie in a row."""
        weights, core = at.split([at.numel() - TERMS**AXES, TERMS**AXES])
        return weights.reshape(AXES, TERMS, -1), core.reshape((TERMS,) * AXES)

    def slopes(self, weights: torch.Tensor, core: torch.Tensor,
               goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return how relative amounts ``(n)`` grow with weights and core ``(n, w)``, and what these lack of 1."""
        first, second, third = (seen @ part.T for seen, part in zip(self.seen, weights, strict=True))
        rates = [torch.einsum(rule, core, one, other) / goal for rule, one, other in (
            ("abc,nb,nc->na", second, third), ("abc,na,nc->nb", first, third), ("abc,na,nb->nc", first, second))]
        products = torch.einsum("na,nb,nc->nabc", first, second, third).flatten(1) / goal
        grow = [(rate[:, :, None] * seen[:, None]).flatten(1) for rate, seen in zip(rates, self.seen, strict=True)]
        return torch.cat([*grow, products], dim=1), 1 - (rates[0] * first).sum(1)

    def descend(self, at: torch.Tensor, goal: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return where steps of Levenberg and Marquardt lead, and the mean squared relative deviation there."""
        slopes, apart = self.slopes(*self.parts(at), goal)
        loss, damping, whole = apart.square().mean(), 1e-2, torch.eye(len(at), dtype=at.dtype)
        for _ in range(STEPS):
            scale = slopes.norm(dim=0) + 1e-12
            slopes = slopes / scale
            normal, pull = slopes.T @ slopes, slopes.T @ apart
            for _ in range(TRIES):
                step = torch.linalg.solve_ex(normal + damping * whole, pull).result / scale
                slopes, apart = self.slopes(*self.parts(at + step), goal)
                if (there := apart.square().mean()) < loss:
                    at, loss, damping = at + step, there, max(damping / 10, 1e-15)
                    break
                damping *= 3
            else:
                break
            if loss < CLOSE**2:
                break
        return at, loss

    def state(self) -> dict[str, Any]:
        """Return all that a later run needs to go on."""
        return {"weights": self.network.weights, "cores": self.network.cores, "losses": self.losses,
                "curve": [astuple(one) for one in self.curve]}

    def restore(self, state: dict[str, Any] | None) -> None:
        """Undo `state`."""
        if state is not None:
            for part, kept in zip((*self.network.parameters, self.losses), state.values(), strict=False):
                part.copy_(kept)
            self.curve = [Epoch(*one) for one in state["curve"]]
