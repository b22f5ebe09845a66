"""The table of a network's costs: what each layer costs under each mapping, on each machine; and what all cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.dense.scoring import CostBatch, DenseModel
from tilewright.cost.hardware import HardwareBatch
from tilewright.cost.sparse.model import SparseModel, cost_model
from tilewright.hardware import Accelerator, Memory
from tilewright.mapping import MappingBatch, axis_sides, footprint_bits, tensor_bits
from tilewright.workload import UniqueOperator

Floats = NDArray[np.float64]


def network_sum(layers: Iterable[tuple[int, Any]]) -> Any:
    """Return the sum of a figure over layers, each as often as it runs; infinite where one has none (None)."""
    given = list(layers)
    return inf if any(figure is None for _, figure in given) else sum(count * figure for count, figure in given)


class Priced(Protocol):
    """What takes cycles and energy: a `Cost`, bounds, or a batch of either."""

    @property
    def latency_cycles(self) -> Any:
        """One figure, or ``(b)``."""

    @property
    def energy_pj(self) -> Any:
        """One figure, or ``(b)``."""


@dataclass(frozen=True)
class Totals:
    """What a network takes, one layer after the other: one figure each, or ``(b)``; infinite where a layer has none."""

    latency_cycles: Any
    energy_pj: Any

    @classmethod
    def of(cls, layers: Iterable[tuple[int, Priced | None]]) -> "Totals":
        """Return the sums over layers, each as often as it runs."""
        given = list(layers)
        return cls(network_sum((count, each and each.latency_cycles) for count, each in given),
                   network_sum((count, each and each.energy_pj) for count, each in given))

    @classmethod
    def legal(cls, costs: CostBatch) -> "Totals":
        """Return what mappings of one layer take, infinite where they are illegal."""
        return cls(np.where(costs.legal, costs.latency_cycles, inf), np.where(costs.legal, costs.energy_pj, inf))

    @property
    def edp(self) -> Any:
        """Product of both sums, in picojoule-cycles."""
        return self.energy_pj * self.latency_cycles


@dataclass(frozen=True)
class LayerCosts:
    """What ``b`` mappings of one layer cost.

    Parameters
    ----------
    costs
        Cycles, energy, area and what breaks limits; illegal mappings have the figures of a larger machine.
    words, bytes
        By (memory, tensor) and kind of access, summed over instances: ``(b)``. Those of the static schedule, also where
        zeros are made use of.
    needed_bytes
        By (memory, tensor), what a tile takes of one instance: ``(b)``; twice where it is double-buffered.
    lanes
        By fan-out, instances that work: ``(b)``.
    """

    costs: CostBatch
    words: dict[tuple[str, str], dict[str, Floats]]
    bytes: dict[tuple[str, str], dict[str, Floats]]
    needed_bytes: dict[tuple[str, str], Floats]
    lanes: dict[str, Floats]


class NetworkModel:
    """Scores the layers of a network on machines of one structure.

    Parameters
    ----------
    layers
        Distinct layers with how often each runs (`unique_operators`).
    accelerator
        Its structure is that of all machines, and its numbers are those of mappings without hardware of their own.
    """

    def __init__(self, layers: Sequence[UniqueOperator], accelerator: Accelerator) -> None:
        self.layers, self.accelerator = tuple(layers), accelerator

    @cached_property
    def models(self) -> tuple[DenseModel | SparseModel, ...]:
        """The model of each layer; those of one kind share their programs."""
        return tuple(cost_model(layer.operator, self.accelerator) for layer in self.layers)

    def score(self, layer: int, mappings: MappingBatch, hardware: HardwareBatch | None = None,
              threads: int = 1) -> LayerCosts:
        """Return what mappings of one layer cost, each on its row of ``hardware``; raises as the models do."""
        model = self.models[layer]
        costs = model.score(mappings, hardware, threads)
        words = (model.dense if isinstance(model, SparseModel) else model).counts(mappings)
        bits = {tensor.name: tensor_bits(tensor, self.accelerator) for tensor in model.operator.tensors}
        sizes = {(memory, tensor): {kind: moved * bits[tensor] / 8 for kind, moved in kinds.items()}
                 for (memory, tensor), kinds in words.items()}
        return LayerCosts(costs, words, sizes, self._needed(layer, mappings), self._lanes(layer, mappings))

    def totals(self, scored: Sequence[CostBatch]) -> Totals:
        """Return ``(b)`` what the network takes where mapping ``i`` of every layer runs on machine ``i``.

        ``scored`` are the layers' `CostBatch`, in order; infinite where a mapping of any layer is illegal.
        """
        return Totals.of((layer.count, Totals.legal(costs)) for layer, costs in zip(self.layers, scored, strict=True))

    def _needed(self, layer: int, mappings: MappingBatch) -> dict[tuple[str, str], Floats]:
        operator, machine = self.layers[layer].operator, self.accelerator
        extents = mappings.extents(operator.sizes)
        found = {}
        for at, level in enumerate(machine.levels):
            if not isinstance(level, Memory):
                continue
            for name in mappings.layout.keeps[at]:
                tensor = operator.tensor(name)
                sides = [axis_sides(tuple(times for _, times in axis.terms), [extents[at][d] for d in axis.dimensions],
                                    machine.footprint == "box") for axis in tensor.axes]
                bits = footprint_bits(machine, level.name, tensor, tensor_bits(tensor, machine), sides)
                copies = 2 if level.buffering == "double" else 1
                found[level.name, name] = np.broadcast_to(copies * bits / 8, len(mappings))
        return found

    def _lanes(self, layer: int, mappings: MappingBatch) -> dict[str, Floats]:
        sizes, layout = self.layers[layer].operator.sizes, mappings.layout
        found = {fanout.name: np.ones(len(mappings)) for fanout in self.accelerator.fanouts}
        outside = np.broadcast_to(np.array([sizes[d] for d in layout.dimensions])[:, None], mappings.steps.shape[1:])
        for s, slot in enumerate(layout.slots):
            inside = np.minimum(mappings.steps[s], outside)
            if slot.axis != "T":
                found[layout.levels[slot.level]] *= (-(-outside // inside)).prod(axis=0)
            outside = inside
        return found
