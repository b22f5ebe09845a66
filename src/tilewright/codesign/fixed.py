"""The best machine that can do one thing only: a fixed tile, order, pair and shape for a whole network."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, Rows
from tilewright.codesign.variants import stated
from tilewright.cost import DenseModel, Totals
from tilewright.hardware import (
    Accelerator,
    Flexibility,
    Memory,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    TileFlexibility,
)
from tilewright.mapping import Layout, MappingBatch, flexible_machine, held_bits, stand_ins
from tilewright.workload import Operator, UniqueOperator

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FixedDesign(Rows):
    """``b`` fixed designs over ``d`` dimensions of the machine's flexibility."""

    tiles: Ints
    """``(b, d)``: extent of each dimension for one element; along a side it is taken once for each lane."""
    ranks: Ints
    """``(b, d)``: place of each dimension in the loop order, 0 outermost."""
    pairs: Ints
    """``(b, 2)``: dimensions (by index) along X and Y."""
    sides: Ints
    """``(b, 2)``: the array."""

    def flexibility(self, index: int, base: Flexibility) -> Flexibility:
        """Return one design as the (in)flexibility of a machine like ``base``."""
        dims = base.dimensions
        order = tuple(dims[d] for d in np.argsort(self.ranks[index], kind="stable"))
        extents = tuple((dims[d], int(extent)) for d, extent in enumerate(self.tiles[index]))
        x, y = self.pairs[index].tolist()
        width, height = self.sides[index].tolist()
        return replace(base, tile=TileFlexibility(per_element=((base.memory, extents),)),
                       order=OrderFlexibility((order,)), parallelism=ParallelismFlexibility(((dims[x], dims[y]),)),
                       shape=ShapeFlexibility(fixed=(width, height)))


def fixed_mappings(designs: FixedDesign, operator: Operator, accelerator: Accelerator) -> MappingBatch:
    """Return the one mapping of ``operator`` that each design has, in the layout of a machine of any shape.

    Equal to the only member of `flexible_spaces` for the design, written down without a search.
    """
    flexibility, machine = stated(accelerator), _of_any_shape(accelerator)
    layout = Layout.of(operator, machine)
    names, count = list(operator.sizes), len(designs)
    sizes = np.array(list(operator.sizes.values()))[:, None]
    lanes, extents, ranks, along = _in_operator(designs, operator, flexibility)
    tile = np.minimum(sizes, extents * lanes)
    lanes = np.minimum(lanes, sizes)
    inside = [level.name for level in machine.levels]
    at, array = inside.index(flexibility.memory), inside.index(flexibility.array)
    if not 0 < at < array:
        raise InputError(f"{accelerator.name}.flexibility.memory",
                         "must lie between the outermost memory and the array", flexibility.memory)
    steps = np.ones((len(layout.slots), len(names), count), dtype=np.int32)
    for s, slot in enumerate(layout.slots):
        if slot.level < at:
            steps[s] = tile
        elif slot.level < array:
            steps[s] = lanes
        elif slot.level == array and slot.axis == "X":
            steps[s] = np.where(along, 1, lanes)
    order = np.broadcast_to(ranks.astype(np.int8), (len(layout.slots), len(names), count)).copy()
    return MappingBatch(layout, steps, order)


def _of_any_shape(accelerator: Accelerator) -> Accelerator:
    return flexible_machine(replace(accelerator, flexibility=replace(
        stated(accelerator), shape=ShapeFlexibility(), tile=TileFlexibility())))


def _in_operator(designs: FixedDesign, operator: Operator,
                 flexibility: Flexibility) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
    """Return lanes, extents for one element, ranks, and what lies along X, of the operator's dimensions ``(d, b)``."""
    ours, names, count = stand_ins(operator, flexibility), list(operator.sizes), len(designs)
    lanes, extents = np.ones((len(names), count), dtype=np.int64), np.ones((len(names), count), dtype=np.int64)
    along = np.zeros((len(names), count), dtype=np.bool_)
    places = np.tile(np.arange(len(names))[:, None] - len(names), (1, count))  # those not spoken of: outside
    for d, dimension in enumerate(flexibility.dimensions):
        name = ours[dimension]
        if name is None:
            continue
        row = names.index(name)
        extents[row], places[row] = designs.tiles[:, d], designs.ranks[:, d]
        along[row] |= designs.pairs[:, 0] == d
        for side in (0, 1):
            lanes[row] = np.where(designs.pairs[:, side] == d, designs.sides[:, side], lanes[row])
    return lanes, extents, np.argsort(np.argsort(places, axis=0, kind="stable"), axis=0, kind="stable"), along


def score_designs(designs: FixedDesign, layers: Sequence[UniqueOperator], accelerator: Accelerator,
                  models: Sequence[DenseModel] = ()) -> Floats:
    """Return ``(b, 2)``: cycles and picojoules of a network on fixed designs; infinite where a layer does not fit."""
    total = Totals.of((layer.count, Totals.legal(model.score(
        fixed_mappings(designs, layer.operator, accelerator))))
        for layer, model in zip(layers, models or _models(layers, accelerator), strict=True))
    return np.stack([total.latency_cycles, total.energy_pj], axis=1)


def _models(layers: Sequence[UniqueOperator], accelerator: Accelerator) -> list[DenseModel]:
    machine = _of_any_shape(accelerator)
    return [DenseModel(layer.operator, machine) for layer in layers]


def _roomy(designs: FixedDesign, layers: Sequence[UniqueOperator], accelerator: Accelerator) -> NDArray[np.bool_]:
    """Return ``(b)``: whether the whole tile fits the buffer for every layer, where layers would cut it too."""
    memory = accelerator.level(stated(accelerator).memory)
    assert isinstance(memory, Memory)
    fits = np.ones(len(designs), dtype=np.bool_)
    for operator in (layer.operator for layer in layers):
        lanes, extents, *_ = _in_operator(designs, operator, stated(accelerator))
        whole = dict(zip(operator.sizes, lanes * extents, strict=True))
        bits = sum((prod((1 + sum(c * (whole[d] - 1) for d, c in axis.terms) for axis in tensor.axes),
                         start=float(held_bits(tensor, accelerator))) for tensor in operator.tensors),
                   start=np.zeros(len(designs))) * memory.copies
        fits &= bits <= 8 * (memory.capacity_bytes or np.inf)
    return fits


def tune(layers: Sequence[UniqueOperator], accelerator: Accelerator, *, samples: int = 10_000, seed: int = 0,
         objective: str = "latency") -> tuple[Flexibility, float, float]:
    """Search the fixed design that suits a network best: InFlex-0000-X-Opt of figure 3.13.

    A genetic algorithm of elites: the best quarter breeds, by exchanging axes and changing some; its first generation
    is drawn at random, but for the machine's own design if it is inflexible. ``samples`` designs are scored, each on
    all layers. The whole tile of a design must fit the buffer, so that it can run any other network as well.

    Returns
    -------
    tuple
        The flexibility (of class 0000), and the cycles and picojoules of the network on it.

    Raises
    ------
    InputError
        If no design that was tried fits, or the objective is unknown.
    """
    if objective not in ("latency", "energy", "edp"):
        raise InputError("objective", "must be latency, energy or edp", objective)
    if samples < 1 or not layers:
        raise InputError("tune", "must be given layers and samples", f"{len(layers)} layers, {samples} samples")
    breeder, models = _Breeder(accelerator, layers, np.random.default_rng(seed)), _models(layers, accelerator)

    def worthy(tried: FixedDesign) -> Floats:
        fits = _roomy(tried, layers, accelerator)[:, None]
        return np.where(fits, score_designs(tried, layers, accelerator, models=models), np.inf)

    population = breeder.first(min(samples, 256))
    figures, spent = worthy(population), len(population)
    while spent < samples:
        keep = np.argsort(_worth(figures, objective), kind="stable")[:64]
        population, figures = population.take(keep), figures[keep]
        children = breeder.children(population, min(192, samples - spent))
        population, figures = population.joined(children), np.concatenate([figures, worthy(children)])
        spent += len(children)
    best = int(np.argmin(_worth(figures, objective)))
    if not np.isfinite(figures[best]).all():
        raise InputError("tune", "found no fixed design that runs every layer", f"{samples} designs tried",
                         "Give more samples or a larger buffer")
    return (population.flexibility(best, stated(accelerator)), float(figures[best, 0]), float(figures[best, 1]))


def _worth(figures: NDArray[np.float64], objective: str) -> NDArray[np.float64]:
    found: NDArray[np.float64] = {"latency": figures[:, 0], "energy": figures[:, 1]}.get(
        objective, figures[:, 0] * figures[:, 1])
    return found


class _Breeder:
    """Draws and varies fixed designs."""

    def __init__(self, accelerator: Accelerator, layers: Sequence[UniqueOperator], rng: Generator) -> None:
        self.flexibility, self.rng = stated(accelerator), rng
        array = accelerator.level(self.flexibility.array)
        assert not isinstance(array, Memory)
        self.instances = array.instances
        sizes = [[layer.operator.sizes[name] if name else 1 for name in
                  stand_ins(layer.operator, self.flexibility).values()] for layer in layers]
        self.most = np.array(sizes).max(axis=0)
        """Largest size of each dimension in any layer."""

    def first(self, count: int) -> FixedDesign:
        dims = len(self.most)
        tiles = np.stack([self._extents(np.full(count, d)) for d in range(dims)], axis=1)
        ranks = self.rng.permuted(np.tile(np.arange(dims), (count, 1)), axis=1)
        pairs = np.stack([self.rng.permutation(dims)[:2] for _ in range(count)])
        drawn = FixedDesign(tiles, ranks, pairs, self._sides(count))
        own = self._own()
        return drawn if own is None else own.joined(drawn.take(slice(1, None)))

    def _own(self) -> FixedDesign | None:
        """Return the machine's own design, if it is inflexible."""
        flexibility, dims = self.flexibility, self.flexibility.dimensions
        tile = dict(flexibility.tile.per_element).get(flexibility.memory)
        if flexibility.class_bits != "0000" or tile is None or flexibility.shape.fixed is None:
            return None
        extents, order, pair = dict(tile), flexibility.order.choices[0], flexibility.parallelism.choices[0]
        return FixedDesign(np.array([[extents[d] for d in dims]]), np.array([[order.index(d) for d in dims]]),
                           np.array([[dims.index(d) for d in pair]]), np.array([flexibility.shape.fixed]))

    def _extents(self, dims: Ints) -> Ints:
        """Draw an extent of each dimension of ``dims``, uniform in its logarithm."""
        drawn = np.exp(self.rng.random(len(dims)) * np.log(self.most[dims] + 1.0))
        clipped: Ints = np.clip(drawn.astype(np.int64), 1, self.most[dims])
        return clipped

    def _sides(self, count: int) -> Ints:
        """Draw arrays: one side uniform in its logarithm, the other all that this leaves."""
        one = np.clip(np.exp(self.rng.random(count) * np.log(self.instances + 1.0)).astype(np.int64), 1, self.instances)
        sides = np.stack([one, self.instances // one], axis=1)
        turn = self.rng.random(count) < 0.5
        sides[turn] = sides[turn, ::-1]
        return sides

    def children(self, parents: FixedDesign, count: int) -> FixedDesign:
        rng, dims = self.rng, len(self.most)
        mothers, fathers = rng.integers(len(parents), size=count), rng.integers(len(parents), size=count)
        born = parents.take(mothers)
        for name in ("tiles", "ranks", "pairs", "sides"):
            swap = rng.random(count) < 0.2
            getattr(born, name)[swap] = getattr(parents, name)[fathers[swap]]
        for _ in range(2):
            rows = np.flatnonzero(rng.random(count) < 0.6)
            which = rng.integers(dims, size=len(rows))
            near = np.clip(born.tiles[rows, which] + rng.integers(-2, 3, size=len(rows)), 1, self.most[which])
            born.tiles[rows, which] = np.where(rng.random(len(rows)) < 0.5, near, self._extents(which))
        rows = np.flatnonzero(rng.random(count) < 0.3)
        one, other = rng.integers(dims, size=len(rows)), rng.integers(dims, size=len(rows))
        born.ranks[rows, one], born.ranks[rows, other] = born.ranks[rows, other], born.ranks[rows, one].copy()
        rows = np.flatnonzero(rng.random(count) < 0.2)
        for row in rows:
            born.pairs[row] = rng.permutation(dims)[:2]
        rows = np.flatnonzero(rng.random(count) < 0.3)
        born.sides[rows] = self._sides(len(rows))
        return born
