"""Mind Mappings: gradient descent on a network that has learnt what mappings cost (Hegde et al., ASPLOS 2021)."""

from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.base import require_extra
from tilewright.mapping import MappingBatch
from tilewright.search.checkpoint import Resumable, State, part
from tilewright.search.mapper import MAPPERS, Count, Limits, MapperOptions, Positive, Task, read_options
from tilewright.search.objective import BREAKS_CONSTRAINT, Objective, Scorer, floors
from tilewright.search.points import Points, fitted, onto_simplex, to_mappings, to_points

if TYPE_CHECKING:
    from tilewright.search.surrogate import Surrogate

UNTIMED = 2000
MOST_LEARNT = 50_000
LEAST_LEARNT = 16
DOUBLINGS = 6
DRAWN = 512


@dataclass(frozen=True)
class MindMappingsOptions(MapperOptions):
    """Options of ``mind-mappings``."""

    surrogate: Annotated[str, "File that `tilewright train-surrogate` wrote. Without one a small network is trained on "
                              "the first samples of the search itself."] = ""
    learnt: Annotated[float, Limits(gt=0, lt=1), "Without a file: share of the samples that the network is trained on "
                                                 "(2,000 where only time is limited)."] = 0.4
    hidden: Annotated[Count, "Without a file: width of its two hidden layers."] = 64
    epochs: Annotated[Count, "Without a file: passes over the samples."] = 40
    walkers: Annotated[Count, "Points that descend side by side; the published program has one."] = 8
    rate: Annotated[Positive, "Length of a step, in times the slope (in deviations of what the network was shown); "
                              "doubled for a point whose step leaves the mapping as it is, until it does not."] = 1.0
    restart: Annotated[Count, "Steps after which every point sets out afresh from a random mapping."] = 10
    whole: Annotated[bool, "Go on from the mapping that a step led to; else, as the published program does for "
                           "convolutions, from the point itself, which leaves what the network knows."] = True


@MAPPERS.register("mind-mappings", MindMappingsOptions)
class MindMappingsMapper(Resumable):
    """Descends a network that has learnt from samples what mappings cost (Hegde et al., Mind Mappings, ASPLOS 2021).

    Needs the extra `learn` (PyTorch). Points set out from random mappings and follow the network's gradient; after
    each step the nearest mapping that fits is scored, and after ten they set out afresh. A network of a file
    (`tilewright train-surrogate`) was trained on one machine and one kind of layers; on another machine it is used
    as far as memories and arrays have the same names, and knows nothing of the rest.
    """

    covers_space = False
    takes_start = True
    extra = "learn"
    changing = "rows", "points", "age", "rng"

    def __init__(self, task: Task) -> None:
        require_extra("learn", "mapper", "mind-mappings")
        from tilewright.search import surrogate as networks  # noqa: PLC0415  (PyTorch loads late)

        self.space, self.rng, self.late = task.space, task.rng, task.late
        self.start = task.space.empty(0) if task.start is None else task.start
        self.options = read_options(MindMappingsOptions, task.options, "mind-mappings")
        operator, accelerator = task.space.operator, task.space.accelerator
        self.scorer = Scorer(task.objective or Objective.parse("edp"), operator, accelerator)
        self.learnt = UNTIMED if task.samples is None else min(MOST_LEARNT, int(task.samples * self.options.learnt))
        self.surrogate: Surrogate | None = None
        self.family = networks.Family.of(task.space)
        if self.options.surrogate:
            self.surrogate = networks.Surrogate.load(Path(self.options.surrogate))
            self.surrogate.family.check(task.space)
            self.family = self.surrogate.family
        self.rows = np.empty((0, 0), dtype=np.float32)
        """What was drawn to learn from: features, and the logarithm of the score last."""
        slots, dims = task.space.layout.shape
        self.points: Points = np.empty((0, slots, dims)), np.empty((0, len(task.space.layout.temporal), dims))
        self.age = np.array([0, 0], dtype=np.int64)
        """Steps since the points set out; samples seen."""

    def ask(self, most: int) -> MappingBatch:
        """Propose what to begin from, random mappings to learn from, or the next step of every point."""
        if self.age[1] < len(self.start):
            return self.start.take(slice(int(self.age[1]), int(self.age[1]) + most))
        enough = len(self.rows) >= LEAST_LEARNT or self.age[1] == 0
        if self.surrogate is None and self.age[1] >= self.learnt and enough:
            self._learn()
        if self.surrogate is None:
            left = max(1, self.learnt - int(self.age[1]))
            return fitted(self.space.sample(self.rng, min(most, DRAWN, left), 0.5), self.space)
        if self.age[0] == 0 and len(self.start):
            self.points = to_points(self.start.take(np.arange(self.options.walkers) % len(self.start)), self.space)
            batch = self._step()
        elif self.age[0] % self.options.restart == 0:
            batch = fitted(self.space.sample(self.rng, self.options.walkers, 0.5), self.space)
            self.points = to_points(batch, self.space)
        else:
            batch = self._step()
        self.age[0] += 1
        return batch.take(slice(0, most))

    def _learn(self) -> None:
        from tilewright.learn import TrainingOptions, train  # noqa: PLC0415  (PyTorch loads late)
        from tilewright.search.surrogate import Surrogate  # noqa: PLC0415

        if len(self.rows) < 2:
            return
        options = TrainingOptions(
            (self.options.hidden,) * 2, self.options.epochs, batch=64, rate=3e-3, held_out=0.1,
            seed=int(self.rng.integers(1 << 31)))
        stop = Event()
        trained = train(self.rows[:, :-1], self.rows[:, -1:], options, stop=stop,
                        progress=lambda _: stop.set() if self.late() else None)
        self.surrogate = Surrogate(trained.regressor, self.family)
        self.rows = self.rows[:0]

    def _step(self) -> MappingBatch:
        """Move all points down the network's slope, those whose mapping stays the same further."""
        assert self.surrogate is not None
        regressor, family = self.surrogate.regressor, self.surrogate.family
        features = family.features(self.points, self.space)
        slopes = regressor.slopes(features, self._weights(regressor.predict(features)))
        logs, orders = family.back(slopes, self.space, regressor.inputs.deviation.numpy())
        free, totals = self.space.arrays.free > 0, np.log(self.space.arrays.sizes.astype(np.float64))
        logs = (logs - (logs * free).sum(1, keepdims=True) / np.maximum(free.sum(0), 1)) * free
        before = to_mappings(self.points, self.space)
        rates = np.full((len(logs), 1, 1), self.options.rate)
        for _ in range(DOUBLINGS):
            moved = (onto_simplex(self.points[0] - rates * logs, free, totals),
                     np.clip(self.points[1] - rates * orders, -0.5, 1.5))
            batch = to_mappings(moved, self.space)
            still = (batch.steps == before.steps).all((0, 1)) & (batch.ranks == before.ranks).all((0, 1))
            if not still.any():
                break
            rates[still] *= 2
        self.points = to_points(batch, self.space) if self.options.whole else moved
        return batch

    def _weights(self, predicted: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return ``(n, o)``: how much each output of the network counts in the objective, at what it predicts."""
        if predicted.shape[1] == 1:
            return np.ones_like(predicted)
        least = floors(self.scorer.operator, self.scorer.accelerator)
        cycles, energy = (floor * 2.0 ** np.clip(part.astype(np.float64), -60, 60)
                          for floor, part in zip(least, predicted.T, strict=True))
        area, clock = self.scorer.accelerator.area_um2, self.scorer.accelerator.frequency_mhz
        parts = [weight * np.asarray(metric.of(cycles, energy, area, clock)) for weight, metric in self.scorer.weights]
        shares = [part / sum(parts) for part in parts]
        metrics = [metric for _, metric in self.scorer.weights]
        return np.stack([sum(share * metric.latency for share, metric in zip(shares, metrics, strict=True)),
                         sum(share * metric.energy for share, metric in zip(shares, metrics, strict=True))],
                        axis=1).astype(np.float32) * np.ones((len(predicted), 1), dtype=np.float32)

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Keep what is to be learnt from; a network that is trained learns nothing more."""
        self.age[1] += len(batch)
        if self.surrogate is not None:
            return
        fine = np.flatnonzero((scores < BREAKS_CONSTRAINT) & (scores > 0))
        features = self.family.features(to_points(batch.take(fine), self.space), self.space)
        rows = np.concatenate([features, np.log2(scores[fine, None]).astype(np.float32)], axis=1)
        self.rows = np.concatenate([self.rows, rows]) if len(self.rows) else rows

    def state(self) -> State:
        """Return all that changes; a network only where it was trained here."""
        trained = self.surrogate is not None and not self.options.surrogate
        network = self.surrogate.regressor.arrays() if self.surrogate is not None and trained else {}
        return super().state() | {f"network.{name}": array for name, array in network.items()}

    def restore(self, state: State) -> None:
        """Set all that changes."""
        from tilewright.learn import Regressor  # noqa: PLC0415  (PyTorch loads late)
        from tilewright.search.surrogate import Surrogate  # noqa: PLC0415

        super().restore(state)
        if network := part(state, "network"):
            self.surrogate = Surrogate(Regressor.from_arrays(network), self.family)
