"""What is to be designed: networks, what may vary, what it may take, and what is minimised."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, Rows, digest
from tilewright.codesign.limits import DesignBudget, Floats, Limit, power_mw
from tilewright.cost import BoundBatch, DenseModel, HardwareBatch, Needs, VectorModel, hardware_bounds, likely_chains
from tilewright.hardware import Accelerator, DesignSpace, Number, with_numbers
from tilewright.mapping import (
    Constraints,
    KeptSets,
    Layout,
    MappingBatch,
    MapSpace,
    Tiling,
    dataflow_constraints,
    tile_bytes,
    tile_fits,
)
from tilewright.search import METRICS, Source, Start
from tilewright.workload import Graph, Operator, Tensor, UniqueOperator

Made = TypeVar("Made")

CHANCES = [np.cumsum(part) / sum(part) for part in ((0.6,), (0.6, 0.25), (0.6, 0.25, 0.15))]
"""Chances of the kept set of the best, second, and third best mappings of a layer (`DesignProblem.drawn_set`), each
with those before it: where one, two, or more are known."""
CHANGED, BORROWED, LED = (0.05, 0.05), (0.07, 0.2), 0.15
"""Chances that one thing more is kept than there, or one less, and that two are; that it is what memories keep of
another layer, without energy and where that counts; and that it is one of the leading sets."""
LEADING = 6
"""Kept sets of a layer that promise most on a machine."""
WORKINGS = 2
"""Problems, told apart by layers and space alone, of which what was made of their structure is kept."""
MACHINES = 64
"""Machines that are kept, at most."""
GOALS = ("latency", "energy", "edp", "latency-area", "energy-area", "edp-area")


@dataclass(frozen=True)
class Figures:
    """What networks take on machines, one figure each or ``(b)``: cycles, picojoules, square micrometres."""

    latency_cycles: Any
    energy_pj: Any
    area_um2: Any

    def of(self, metric: str, machine: Accelerator) -> Any:
        """Return a metric of them."""
        return METRICS[metric].of(self.latency_cycles, self.energy_pj, self.area_um2, machine.frequency_mhz)


@lru_cache(maxsize=WORKINGS)
def _workings(_: str) -> dict[object, Any]:
    """Return what was made for problems of one structure, which a second design need not make again."""
    return {}


@dataclass(frozen=True)
class DesignProblem:
    """The design of one machine for all layers of networks."""

    layers: tuple[Operator, ...]
    """Distinct layers of all networks."""
    weights: Floats
    """``(l)``: how often each runs, times the weight of its network, summed over networks."""
    space: DesignSpace
    """What may vary."""
    limits: tuple[Limit, ...]
    """What it may take."""
    objective: str = "latency"
    """One of `GOALS`."""
    dataflow: str = ""
    """What the mappings follow on every machine, a name of `DATAFLOWS`; empty for any mapping."""
    tiling: Tiling = "imperfect"
    spread: bool = False
    """Whether searches of a layer tell all mappings of which none is better in both cycles and picojoules, as fronts
    need; those of a product or of limited power do so anyway."""
    vector: tuple[tuple[float, Graph], ...] = field(default=(), repr=False)
    """Networks with their weights whose vector work totals have in them; searches of layers are the same without."""

    def __post_init__(self) -> None:
        if self.objective not in GOALS:
            raise InputError("objective", f"must be one of {', '.join(GOALS)}", self.objective)
        if not self.layers:
            raise InputError("networks", "must have layers of multiply-accumulates", "none")
        machine = self.space.accelerator
        for section, why in (("sparsity", "zeros are not made use of in designs"),
                             ("flexibility", "designs search all mappings of a machine")):
            if getattr(machine, section) is not None:
                raise InputError(f"{machine.name}.{section}", f"must not be there, as {why}", section,
                                 "Leave the section out")

    @classmethod
    def of(cls, networks: Sequence[tuple[Sequence[UniqueOperator], float]], space: DesignSpace,
           limits: tuple[Limit, ...], **others: Any) -> "DesignProblem":
        """Return the problem of networks, each with its weight; equal layers of several are one."""
        found: dict[object, tuple[Operator, float]] = {}
        for layers, weight in networks:
            for layer in layers:
                first, so_far = found.get(layer.operator.signature, (layer.operator, 0.0))
                found[layer.operator.signature] = first, so_far + layer.count * weight
        operators, weights = zip(*found.values(), strict=True) if found else ((), ())
        return cls(operators, np.array(weights), _useful(space, operators), limits, **others)

    @cached_property
    def identity(self) -> str:
        """A hash of all that it is."""
        return digest(replace(self, weights=self.weights.tolist()))

    @property
    def sums(self) -> str:
        """What layers add to: the objective but for area."""
        return self.objective.split("-")[0]

    @property
    def spreads(self) -> bool:
        """Whether searches tell mappings between the fewest cycles and the fewest picojoules."""
        return self.spread or self.objective.startswith("edp") or any(one.what == "power" for one in self.limits)

    @property
    def priced(self) -> bool:
        """Whether energy counts in the objective or the limits."""
        return not self.objective.startswith("latency") or any(one.what == "power" for one in self.limits)

    def bounds(self, hardware: HardwareBatch) -> BoundBatch:
        """Return ``(l, b)`` each: what no mapping of a layer can beat on a row, whatever memories keep.

        Energy where it counts.
        """
        found = [hardware_bounds(layer, hardware, self.space.accelerator, bypass=kept.open,
                                 perfect=self.tiling == "perfect", energy=self.priced)
                 for layer, kept in zip(self.layers, self.kept, strict=True)]
        return BoundBatch(*(np.array([getattr(each, name) for each in found])
                            for name in ("latency_cycles", "energy_pj", "edp")))

    @cached_property
    def budget(self) -> DesignBudget:
        """The limits, on the machines of the space."""
        return DesignBudget(self.space, self.limits, self.smallest)

    @cached_property
    def widest(self) -> Accelerator:
        """A machine with both sides of every array that may have them."""
        return self.machine({key: max(one.value(min(1, len(one) - 1)), self.space.accelerator.numbers[key])
                             for key, one in self.space.ranges.items() if key[1] in ("x", "y")})

    @cached_property
    def kept(self) -> tuple[KeptSets, ...]:
        """What memories may keep of each layer."""
        return tuple(KeptSets(MapSpace(operator, self.widest, self.tiling)) for operator in self.layers)

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """Of the mappings of each layer by which memories keep all that they can: see `layout`."""
        return tuple(self.layout(layer, 0) for layer in range(len(self.layers)))

    def layout(self, layer: int, number: int) -> Layout:
        """Return that of the mappings of a layer and kept set, with both sides of every array that may have them."""
        kept = self.kept[layer]
        return self.once(("layout", layer, number), lambda: Layout.of(
            self.layers[layer], self.widest, keeps=kept.keeps(kept.passed(number))))

    def model(self, layer: int, layout: Layout) -> DenseModel:
        """Return the model of a layer on machines of the space, for mappings of a layout."""
        return self.once(("model", layer, id(layout)), lambda: DenseModel(  # which holds the layout
            self.layers[layer], self.space.accelerator, layout))

    def once(self, key: object, make: Callable[[], Made]) -> Made:
        """Return what ``make`` returns, made once for each key, also for later problems of these layers and space."""
        known = _workings(self._structure)
        if key not in known:
            known[key] = make()
        found: Made = known[key]
        return found

    @cached_property
    def _structure(self) -> str:
        """A hash of all that machines and mappings depend on: all but budget and objective."""
        return digest((self.layers, self.space, self.tiling, self.dataflow))

    def varying(self, needs: Needs) -> dict[Number, Floats]:
        """Return ``(b)`` each: the least of the numbers that vary with which mappings of some needs fit."""
        found: dict[Number, Floats] = {}
        for key, row in needs.numbers(self.space.accelerator).items():
            name, times = self.space.follow.get(key, (key, 1.0))
            if name in self.space.ranges:
                own = row if times == 1.0 else row / times
                found[name] = np.maximum(found[name], own) if name in found else own
        return found

    def needed(self, batches: Sequence["Nests"]) -> dict[Number, Floats]:
        """Return ``(b)`` each: the least capacities, sides and instances that vary with which every layer fits.

        They are values of their ranges, the highest where more is needed. ``batches`` are ``b`` mappings of each layer.
        """
        found: dict[Number, Floats] = {}
        for layer, nests in enumerate(batches):
            for rows, batch in nests.parts(self, layer):
                for key, own in self.varying(self.model(layer, batch.layout).needs(batch)).items():
                    most = found.setdefault(key, np.zeros(len(nests)))
                    most[rows] = np.maximum(most[rows], own)
        return {key: np.asarray(one.value(one.first_places(found[key])), dtype=np.float64)
                for key, one in self.space.ranges.items() if key in found}

    def ones(self, layer: int, number: int) -> MappingBatch:
        """Return a mapping of a layer and kept set whose tiles are all a word."""
        layout = self.layout(layer, number)
        return MappingBatch(layout, np.ones((*layout.shape, 1), dtype=np.int32),
                            np.arange(layout.shape[1], dtype=np.int8)[None, :, None].repeat(layout.shape[0], 0))

    @cached_property
    def smallest(self) -> dict[Number, float]:
        """The least of every number with which any machine runs all layers: words fit that no memory lets pass."""
        lowest = {key: one.low for key, one in self.space.ranges.items()}
        ones = [Nests.of(self.ones(layer, len(kept) - 1), len(kept) - 1) for layer, kept in enumerate(self.kept)]
        return lowest | {key: float(row[0]) for key, row in self.needed(ones).items()}

    def machine(self, chosen: Mapping[Number, float], name: str | None = None) -> Accelerator:
        """Return a machine of the space; the last ones are kept, with what was made of them."""
        known: dict[object, Accelerator] = self.once("machines", dict)
        key = name, *chosen.items()
        found = known.get(key)
        if found is None:
            if len(known) >= MACHINES:
                known.clear()
            found = known[key] = with_numbers(self.space.accelerator, self.space.numbers(chosen), name)
        return found

    def map_space(self, layer: int, machine: Accelerator, number: int = 0) -> MapSpace:
        """Return the mappings of a layer and kept set on a machine."""
        operator, kept = self.layers[layer], self.kept[layer]
        ruled = replace(self._ruled(operator, machine), keeps=kept.keeps(kept.passed(number)))
        return MapSpace(operator, machine, self.tiling, ruled)

    def begun(self, layer: int, machine: Accelerator, known: Sequence[Source]) -> list["Nests"]:
        """Return mappings of a layer to begin from, each by itself, as they fit a machine.

        Mappings of machines with more levels or fewer are left out.
        """
        found = []
        for source in known:
            if len(source.mapping.levels) == len(machine.levels):
                number = self.holding(layer, machine, self.kept[layer].number_of(source.mapping))
                batch = Start((source,)).batch(self.map_space(layer, machine, number)).relaid(
                    self.layout(layer, number))
                found += [Nests.of(batch.take(slice(at, at + 1)), number) for at in range(len(batch))]
        return found

    def drawn_set(self, layer: int, known: Sequence[Sequence[int]], rng: np.random.Generator,
                  leading: Sequence[int] = (), *, anew: bool = True) -> int:
        """Draw what memories keep of a layer: as in one of its best mappings, with a change, or as in another layer's.

        ``known`` are the kept sets of the best mappings of each layer, the best first; of none it is that all is kept.
        What is ``leading`` is drawn too, and nothing but that and what is known of the layer where not ``anew``.
        """
        pairs = len(self.kept[layer].open)
        if not pairs:
            return 0
        own, drawn = (list(known[layer]) or list(leading) or [0])[:len(CHANCES)], rng.random()
        number = own[int(np.searchsorted(CHANCES[len(own) - 1], rng.random(), side="right"))]
        ways: list[tuple[float, Callable[[], Sequence[int]]]] = [
            (CHANGED[0], lambda: [number ^ 1 << bit for bit in range(pairs)]),
            (CHANGED[1], lambda: [number ^ (1 << bit | 1 << other) for bit, other in combinations(range(pairs), 2)]),
            (BORROWED[self.priced], lambda: [best[0] for best in known if best and best[0] < 1 << pairs])] * anew
        for chance, sets in (*ways, (LED, lambda: leading)):
            if drawn < chance and (found := sets()):
                return found[int(rng.integers(len(found)))]
            drawn -= chance
        return number

    def plain_sets(self, layer: int) -> list[int]:
        """Return the kept sets of a layer by which all is kept, and by which one memory is passed by all that may."""
        pairs = self.kept[layer].open
        return [0, *(sum(1 << bit for bit, (memory, _) in enumerate(pairs) if memory == name)
                     for name in dict.fromkeys(memory for memory, _ in pairs))]

    def leading(self, layer: int, machine: Accelerator) -> list[int]:
        """Return the kept sets of a layer whose bounds on energy are least on a machine, and that all is kept."""
        pairs = self.kept[layer].open
        found = [sum(1 << bit for bit, (memory, name) in enumerate(pairs) if memory not in chains[name])
                 for chains in likely_chains(self.layers[layer], machine, pairs, perfect=self.tiling == "perfect")]
        return found[:LEADING] if 0 in found[:LEADING] else [*found[:LEADING - 1], 0]

    def holding(self, layer: int, machine: Accelerator, number: int) -> int:
        """Return a kept set without what memories of a machine have no room for a word of."""
        operator = self.layers[layer]
        most = self.once(("words", layer), lambda: {memory.name: memory.copies * sum(tile_bytes(
            tensor, dict.fromkeys(operator.sizes, 1), machine, memory.name) for tensor in operator.tensors)
            for memory in machine.memories})
        small = [min(room, most[memory.name]) for memory in machine.memories for room in memory.rooms.values()
                 if room is not None]
        return self.once(("holding", layer, number, *small), lambda: self._holding(layer, machine, number))

    def _holding(self, layer: int, machine: Accelerator, number: int) -> int:
        operator, open_pairs = self.layers[layer], self.kept[layer].open
        for memory in machine.memories:
            held: tuple[Tensor, ...] = ()
            for tensor in operator.tensors:
                bit = 1 << open_pairs.index(pair) if (pair := (memory.name, tensor.name)) in open_pairs else 0
                if not memory.can_keep(tensor.name, tensor.role) or number & bit:
                    continue
                if bit and not tile_fits(memory, (*held, tensor), dict.fromkeys(operator.sizes, 1), machine):
                    number |= bit
                else:
                    held = (*held, tensor)
        return number

    def _ruled(self, operator: Operator, machine: Accelerator) -> Constraints:
        """Return what the dataflow asks for on a machine, whose sides are told apart even where one has one place."""
        if not self.dataflow:
            return Constraints()
        narrow = {key: 2.0 for key in (*self.space.ranges, *self.space.follow)
                  if key[1] in ("x", "y", "instances") and machine.numbers[key] < 2}
        asked = dataflow_constraints(self.dataflow, operator, with_numbers(machine, self.space.numbers(narrow)))
        places = {machine.levels[slot.level].name + ("" if slot.axis == "T" else f".{slot.axis}")
                  for slot in Layout.of(operator, machine).slots}
        return replace(asked, loops={place: rule for place, rule in asked.loops.items() if place in places},
                       factors={place: rule for place, rule in asked.factors.items() if place in places})

    def total(self, latency: Floats, energy: Floats, area_um2: Any, rows: HardwareBatch) -> Figures:
        """Return what the networks take on machines: ``latency`` and ``energy`` of layers are ``(l)`` or ``(l, b)``."""
        cycles, picojoules = self.beside(rows)
        return Figures(np.tensordot(self.weights, latency, 1) + cycles, np.tensordot(self.weights, energy, 1) +
                       picojoules, area_um2)

    @cached_property
    def _vector_models(self) -> list[tuple[float, VectorModel]]:
        return [(weight, VectorModel(graph, self.space.accelerator)) for weight, graph in self.vector]

    def beside(self, rows: HardwareBatch) -> tuple[Any, Any]:
        """Return cycles and picojoules ``(b)`` that the vector work of the networks takes on machines; 0 without."""
        found = [(weight * cycles, weight * picojoules) for weight, work in self._vector_models
                 for cycles, picojoules in [work.sums(rows)]]
        return sum(cycles for cycles, _ in found), sum(picojoules for _, picojoules in found)

    def value(self, figures: Figures) -> Any:
        """Return the objective."""
        return figures.of(self.objective, self.space.accelerator)

    def scores(self, figures: Figures) -> Any:
        """Return the objective; infinite where the power is over its limit."""
        return np.where(self.power(figures) <= self.budget.most("power"), self.value(figures), np.inf)

    def rows(self, chosen: Mapping[Number, Any]) -> HardwareBatch:
        """Return machines of the space as rows, of figures ``(b)`` each, or one."""
        return HardwareBatch({key: np.atleast_1d(np.asarray(column, dtype=np.float64))
                              for key, column in self.space.numbers(chosen).items()})

    def overheated(self, figures: Figures) -> Any:
        """Return by which shares the power is over its limit; 0 within."""
        return np.maximum(self.power(figures) / self.budget.most("power") - 1.0, 0.0)

    def power(self, figures: Figures) -> Any:
        """Return milliwatts, on average while the networks run."""
        return power_mw(self.space.accelerator, figures.latency_cycles, figures.energy_pj)

    def area(self, chosen: Mapping[Number, Any]) -> Any:
        """Return the area of machines of the space."""
        return self.budget.figures(chosen)["area"]


def _useful(space: DesignSpace, layers: Sequence[Operator]) -> DesignSpace:
    """Return a space without arrays larger than mappings of any layer can use, which are no quicker and take no less.

    Along a side no dimension has more lanes than its size, so that together they are at most all multiply-accumulates.
    Where both sides share the instances of an array, a dimension along both may have n / a lanes, rounded up, of a
    lanes: fewer than 2 n. A number that follows a side may be worth a larger one: such sides are as they were.
    """
    followed = {other for other, _ in space.follow.values()}
    lanes = {"x": max((layer.macs for layer in layers), default=1), "instances": max((layer.macs * 2 ** sum(
        size > 1 for size in layer.sizes.values()) for layer in layers), default=1)}
    lanes["y"] = lanes["x"]
    return replace(space, ranges={key: one.up_to(lanes[key[1]]) if key[1] in lanes and key not in followed else one
                                  for key, one in space.ranges.items()})


@dataclass(frozen=True)
class Nests(Rows):
    """Mappings of one layer, each with what memories keep in it."""

    steps: NDArray[np.int32]
    ranks: NDArray[np.int8]
    """``steps`` and ``ranks``: ``(n, s, d)``, as of a `MappingBatch`."""
    kept: NDArray[np.int64]
    """``(n)``: numbers of kept sets, those of `DesignProblem.kept`."""

    @classmethod
    def of(cls, batch: MappingBatch, kept: Any = 0) -> "Nests":
        """Return the mappings of a batch, of one kept set or several."""
        return cls(batch.steps.transpose(2, 0, 1), batch.ranks.transpose(2, 0, 1),
                   np.broadcast_to(np.asarray(kept, dtype=np.int64), len(batch)))

    def batch(self, layout: Layout) -> MappingBatch:
        """Return all of them as a batch, whatever they keep."""
        return MappingBatch(layout, np.ascontiguousarray(self.steps.transpose(1, 2, 0)),
                            np.ascontiguousarray(self.ranks.transpose(1, 2, 0)))

    def parts(self, problem: DesignProblem, layer: int) -> list[tuple[NDArray[np.intp], MappingBatch]]:
        """Return the rows and mappings of each kept set."""
        if len(self) and (self.kept == self.kept[0]).all():
            return [(np.arange(len(self)), self.batch(problem.layout(layer, int(self.kept[0]))))]
        found = [(number, np.flatnonzero(self.kept == number)) for number in np.unique(self.kept).tolist() or [0]]
        return [(rows, self.take(rows).batch(problem.layout(layer, number))) for number, rows in found]

    def costs(self, problem: DesignProblem, layer: int, hardware: HardwareBatch) -> tuple[Floats, Floats, Floats]:
        """Return ``(n)`` each: cycles, picojoules, and by how much each is illegal, on as many machines or on one."""
        found = np.zeros((3, len(self)))
        hardware.on(problem.space.accelerator)  # once for all layers and parts
        for rows, batch in self.parts(problem, layer):
            own = hardware.take(rows) if len(rows) < len(hardware) else hardware
            scored = problem.model(layer, batch.layout).score(batch, own)
            found[:, rows] = scored.latency_cycles, scored.energy_pj, np.where(scored.legal, 0.0, 1.0 + scored.excess)
        return found[0], found[1], found[2]


@dataclass(frozen=True)
class LayerFront:
    """Mappings of one layer on one machine of which none is better than another in both cycles and picojoules.

    ``latency`` and ``energy`` are ``(f)``.
    """

    latency: Floats
    energy: Floats
    nests: Nests

    @classmethod
    def joined(cls, parts: Sequence["LayerFront"]) -> "LayerFront | None":
        """Return the mappings of all parts; None where there are none."""
        return cls(np.concatenate([one.latency for one in parts]), np.concatenate([one.energy for one in parts]),
                   Nests.joined(*(one.nests for one in parts))) if parts else None


def composed(problem: DesignProblem, fronts: Sequence[LayerFront], area_um2: float,
             rows: HardwareBatch) -> tuple[NDArray[np.intp], Figures, float]:
    """Return which mapping of each layer makes the best network on a machine, what that takes, and the score.

    Of a sum alone (cycles, picojoules) each layer's own least is best. Else the best of `rated` is taken, so that the
    choice may miss the best of all combinations, but never names figures that it does not have.
    """
    sums = problem.sums
    alone = problem.budget.most("power") == np.inf and sums in ("latency", "energy")
    rates = [0.0 if sums == "energy" else np.inf] if alone else None
    choice, figures = rated(problem, fronts, area_um2, rows, rates)
    scores = np.broadcast_to(problem.scores(figures), choice.shape[1])
    best = int(scores.argmin() if np.isfinite(scores).any() else problem.power(figures).argmin())
    return choice[:, best], Figures(float(figures.latency_cycles[best]), float(figures.energy_pj[best]), area_um2), \
        float(scores[best])


def rated(problem: DesignProblem, fronts: Sequence[LayerFront], area_um2: float, rows: HardwareBatch,
          rates: Sequence[float] | None = None) -> tuple[NDArray[np.intp], Figures]:
    """Return ``(l, r)``, which mapping of each layer is best at each rate, and what the networks then take.

    All layers weigh cycles against picojoules alike, by ``rates`` in picojoules a cycle: none, infinite, and between
    them all around that of the least figures, in steps of 4 %.
    """
    if rates is None:
        least = problem.total(np.array([front.latency.min() for front in fronts]),
                              np.array([front.energy.min() for front in fronts]), area_um2, rows)
        middle = float(np.squeeze(least.energy_pj)) / max(float(np.squeeze(least.latency_cycles)), 1e-9)
        rates = [0.0, *(middle * np.exp(np.arange(-200, 201) * 0.04)).tolist(), np.inf]
    known = np.array(rates)
    latency, energy = np.empty((len(fronts), len(known))), np.empty((len(fronts), len(known)))
    chosen = np.empty((len(fronts), len(known)), dtype=np.intp)
    for at, front in enumerate(fronts):
        costs = front.energy[:, None] + np.where(known == np.inf, 0.0, known) * front.latency[:, None]
        chosen[at] = np.where(known == np.inf, front.latency.argmin(), costs.argmin(axis=0))
        latency[at], energy[at] = front.latency[chosen[at]], front.energy[chosen[at]]
    return chosen, problem.total(latency, energy, area_um2, rows)
