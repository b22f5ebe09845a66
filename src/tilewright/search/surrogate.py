"""A network that stands for the cost model of one machine: what it is shown, what it tells, and how it is trained.

After Hegde et al., Mind Mappings (ASPLOS 2021): mappings that fit, of many layers of one kind, are drawn and scored;
a perceptron learns what they cost from the layer's sizes and the mapping. Where their network tells twelve figures
(energy by level and tensor, utilisation, cycles), ours tells two, from which every objective follows: the logarithms
(base 2) of latency and energy over what no mapping of the layer can beat.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, share
from tilewright.hardware import Accelerator
from tilewright.learn import (
    Epoch,
    Regressor,
    Trained,
    TrainingOptions,
    load_regressor,
    rank_correlation,
    save_regressor,
    train,
)
from tilewright.mapping import MappingBatch, MapSpace, Tiling
from tilewright.search.objective import floors
from tilewright.search.points import Points, fitted
from tilewright.workload import Operator, convolution

Floats = NDArray[np.float32]
OUTPUTS = ("latency", "energy")
DRAWS = 8
"""Times that mappings of a layer are drawn, where some do not fit."""
TESTED = 500
"""Mappings of each layer by which a network is assessed."""


@dataclass(frozen=True)
class Family:
    """What layers and machines have in common that one network can be shown."""

    dimensions: tuple[str, ...]
    """Of the operators."""
    places: tuple[str, ...]
    """Slots of the machine by name: a memory (``GLB``) or one side of an array (``PEs.X``), outermost first."""
    windows: tuple[tuple[str, str], ...]
    """Pairs of dimensions that slide along one axis; their coefficients are shown too."""

    @classmethod
    def of(cls, space: MapSpace) -> "Family":
        """Return the family of a space's operator and machine."""
        layout = space.layout
        return cls(layout.dimensions, tuple(layout.places), tuple(axis.dimensions for axis in _windows(space)))

    def check(self, space: MapSpace) -> None:
        """Raise `InputError` if the operator of ``space`` is of another family; machines may differ."""
        other = Family.of(space)
        if (self.dimensions, self.windows) != (other.dimensions, other.windows):
            raise InputError("options.surrogate", f"was trained on layers of dimensions {', '.join(self.dimensions)}",
                             f"{space.operator.name} of {', '.join(other.dimensions)}",
                             "Train one on such layers, or leave the option out")

    def features(self, points: Points, space: MapSpace) -> Floats:
        """Return ``(b, f)``: sizes, coefficients, logarithms (base 2) of loop counts, and order scores of the memories.

        Counts at places that the network does not know are shown at the nearest known place outside; places that
        the machine lacks are empty, and orders there as those of no loops.
        """
        logs, orders = points
        shown = np.zeros((len(logs), len(self.places), len(self.dimensions)))
        for s, at in enumerate(self._seats(space)):
            shown[:, at] += logs[:, s]
        own = [space.layout.places[s] for s in space.layout.temporal]
        memories = self._memories
        ranked = np.full((len(logs), len(memories), len(self.dimensions)), 0.5)
        for m, place in enumerate(own):
            if place in memories:
                ranked[:, memories.index(place)] = orders[:, m]
        layer = self._layer(space)
        parts = [np.broadcast_to(layer, (len(logs), len(layer))),
                 *(part.reshape(len(logs), part.shape[1] * part.shape[2]) for part in (shown / np.log(2), ranked))]
        return np.concatenate(parts, axis=1).astype(np.float32)

    def encode(self, batch: MappingBatch, space: MapSpace, features: Floats) -> None:
        """Write to ``features`` ``(b, f)`` what `features` returns of the points of mappings, in one compiled pass."""
        from tilewright.search.encoding_kernels import encode  # noqa: PLC0415  (Numba loads late)

        memories = self._memories
        sizes, dims = np.array(list(space.operator.sizes.values())), len(self.dimensions)
        first, most = dims + 2 * len(self.windows), int(sizes.max())
        layer = np.zeros(self.width, dtype=np.float32)
        layer[:first], layer[first + len(self.places) * dims:] = self._layer(space), 0.5
        counts = first + dims * np.array(self._seats(space))
        orders = np.array([first + dims * (len(self.places) + memories.index(place)) if place in memories else -1
                           for place in space.layout.places])
        logs = _logarithms(1 << most.bit_length())
        encode(batch.steps, batch.ranks, sizes, logs, layer, counts, orders, features)

    @property
    def width(self) -> int:
        """``f``."""
        return 2 * len(self.windows) + len(self.dimensions) * (1 + len(self.places) + len(self._memories))

    def _layer(self, space: MapSpace) -> Floats:
        sizes = [float(size) for size in space.operator.sizes.values()]
        return np.log2([*sizes, *(float(c) for axis in _windows(space) for _, c in axis.terms)]).astype(np.float32)

    def back(self, slopes: Floats, space: MapSpace, deviations: Floats) -> Points:
        """Return what ``slopes`` ``(b, f)`` of normalised features say of points, as steps of one deviation each."""
        first = len(self.dimensions) + 2 * len(self.windows)
        steps = (slopes * deviations)[:, first:].astype(np.float64)
        count = len(self.places) * len(self.dimensions)
        shown = steps[:, :count].reshape(len(steps), len(self.places), -1) * np.log(2)
        ranked = steps[:, count:].reshape(len(steps), -1, len(self.dimensions))
        seats, known = self._seats(space), [place in self.places for place in space.layout.places]
        logs = np.stack([shown[:, at] * here for at, here in zip(seats, known, strict=True)], axis=1)
        memories = self._memories
        orders = [ranked[:, memories.index(place)] if place in memories else np.zeros_like(ranked[:, 0])
                  for place in (space.layout.places[s] for s in space.layout.temporal)]
        return logs, np.stack(orders, axis=1)

    @property
    def _memories(self) -> list[str]:
        return [place for place in self.places if "." not in place]

    def _seats(self, space: MapSpace) -> list[int]:
        seats, seat = [], 0
        for place in space.layout.places:
            seat = self.places.index(place) if place in self.places else seat
            seats.append(seat)
        return seats


@cache
def _logarithms(count: int) -> Floats:
    return np.log2(np.maximum(np.arange(count), 1)).astype(np.float32)


def _windows(space: MapSpace) -> list[Any]:
    return [axis for tensor in space.operator.tensors for axis in tensor.axes if len(axis.terms) == 2]


@dataclass(frozen=True)
class Surrogate:
    """A trained network, and the family that it is of."""

    regressor: Regressor
    family: Family

    @classmethod
    def load(cls, path: Path) -> "Surrogate":
        """Read the file that `save` wrote; `InputError` if it is none."""
        regressor, about = load_regressor(path)
        family = about["family"]
        return cls(regressor, Family(tuple(family["dimensions"]), tuple(family["places"]),
                                     tuple((first, second) for first, second in family["windows"])))

    def save(self, path: Path, about: dict[str, Any]) -> None:
        """Write the network and what else is known ``about`` it."""
        family = {name: getattr(self.family, name) for name in ("dimensions", "places", "windows")}
        save_regressor(path, self.regressor, {**about, "family": family})


@dataclass(frozen=True)
class Samples:
    """Drawn mappings as a network is shown them: ``features`` ``(n, f)`` and ``targets`` ``(n, 2)``."""

    family: Family
    features: Floats
    targets: Floats


def targets_of(space: MapSpace, batch: MappingBatch) -> tuple[Floats, NDArray[np.bool_]]:
    """Return ``(b, 2)``: what mappings cost over the floors of their layer, in powers of 2; and which are legal."""
    from tilewright.cost import DenseModel  # noqa: PLC0415  (Numba loads late)

    costs = DenseModel(space.operator, space.accelerator, space.layout).score(batch, threads=1)
    least = floors(space.operator, space.accelerator)
    both = np.log2(np.stack([costs.latency_cycles / least[0], costs.energy_pj / least[1]], axis=1))
    return both.astype(np.float32), costs.legal


def draw_samples(  # noqa: PLR0913  (what is drawn, and how)
    operators: Sequence[Operator], accelerator: Accelerator, count: int, rng: Generator, *,
    tiling: Tiling = "imperfect", threads: int = 1,
) -> Samples:
    """Draw ``count`` legal mappings, as many of each layer, half of them with arrays filled, and score them.

    They do not depend on the ``threads``, which share the layers.

    Raises an `InputError` if there are no layers, or layers of different kinds, or hardly a mapping of one fits.
    """
    if not operators or count < len(operators):
        raise InputError("samples", f"must be at least 1 for each of the {len(operators)} layers", count)
    family = Family.of(MapSpace(operators[0], accelerator))
    features = np.empty((count, family.width), dtype=np.float32)
    samples = Samples(family, features, np.empty((count, len(OUTPUTS)), dtype=np.float32))
    streams = rng.spawn(len(operators))

    def draw(index: int) -> None:
        space = MapSpace(operators[index], accelerator, tiling)
        family.check(space)
        span = (count * index // len(operators), count * (index + 1) // len(operators))
        _draw_layer(space, samples, span, streams[index])

    share(draw, range(len(operators)), threads)
    return samples


def _draw_layer(space: MapSpace, samples: Samples, span: tuple[int, int], rng: Generator) -> None:
    """Fill samples from ``span[0]`` to ``span[1]`` with legal mappings of a space."""
    at, end = span
    for _ in range(DRAWS):
        batch = space.fitting(rng, end - at, 0.5)
        found, legal = targets_of(space, batch)
        if not legal.all():
            batch, found = batch.take(np.flatnonzero(legal)), found[legal]
        samples.family.encode(batch, space, samples.features[at:at + len(batch)])
        samples.targets[at:at + len(batch)] = found
        at += len(batch)
        if at == end:
            return
    raise InputError(space.operator.name, f"must have mappings that fit {space.accelerator.name}",
                     f"{end - at} missing")


def random_convolutions(count: int, rng: Generator) -> list[Operator]:
    """Return convolutions of random sizes, drawn from the ranges of the authors' program.

    N from 1 to 16 (powers of 2), C 3 or a multiple of 32 below 512, K a multiple of 32 below 512, R = S of 1, 3, 5, 7,
    P = Q from 7 to 223 (github.com/kartik-hegde/mindmappings, ``parameters.py``), all of stride 1.
    """
    found = []
    for index in range(count):
        batch, kernel, out = int(rng.choice([1, 2, 4, 8, 16])), int(rng.choice([1, 3, 5, 7])), int(rng.integers(7, 224))
        channels = int(rng.choice([3, *range(32, 512, 32)]))
        found.append(convolution(
            f"random{index}", batch=batch, in_channels=channels, out_channels=int(rng.choice(range(32, 512, 32))),
            in_size=(out + kernel - 1,) * 2, kernel=kernel))
    return found


def train_surrogate(samples: Samples, options: TrainingOptions, *, threads: int = 1,
                    progress: Callable[[Epoch], None] | None = None,
                    stop: threading.Event | None = None) -> tuple[Surrogate, Trained]:
    """Train a network on samples; see `tilewright.learn.train`."""
    trained = train(samples.features, samples.targets, options, threads=threads, progress=progress, stop=stop)
    return Surrogate(trained.regressor, samples.family), trained


@dataclass(frozen=True)
class Tested:
    """How a network does on mappings of layers that it was not trained on."""

    machine: str
    mappings: int
    latency_error: float
    energy_error: float
    """Root of the mean squared error, in powers of 2."""
    latency_rank: float
    energy_rank: float
    """Rank correlation (Spearman) over all layers."""
    layer_rank: float
    """That of the EDP among the mappings of one layer, the mean over layers."""


def assess(surrogate: Surrogate, operators: Sequence[Operator], accelerator: Accelerator,
           seed: int) -> Tested:
    """Return how a network does on drawn mappings of layers, on its own machine or another."""
    rng, predicted, true = np.random.default_rng((seed, 2)), [], []
    for operator in operators:
        space = MapSpace(operator, accelerator)
        batch = fitted(space.sample(rng, TESTED, 0.5), space)
        targets, legal = targets_of(space, batch)
        features = np.empty((len(batch), surrogate.family.width), dtype=np.float32)
        surrogate.family.encode(batch, space, features)
        predicted.append(surrogate.regressor.predict(features[legal]))
        true.append(targets[legal])
    each = [rank_correlation(p.sum(1), t.sum(1)) for p, t in zip(predicted, true, strict=True)]
    guess, fact = np.concatenate(predicted), np.concatenate(true)
    errors = np.sqrt(((guess - fact) ** 2).mean(axis=0))
    ranks = [rank_correlation(guess[:, i], fact[:, i]) for i in (0, 1)]
    return Tested(accelerator.name, len(fact), float(errors[0]), float(errors[1]), ranks[0], ranks[1],
                  float(np.mean(each)))
