"""The table of a network's costs: what each layer costs under each mapping, on each machine; and what all cost."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, Protocol

import numpy as np

from tilewright.cost.dense.scoring import DenseModel
from tilewright.cost.hardware import HardwareBatch
from tilewright.cost.sparse.model import SparseModel, cost_model
from tilewright.cost.tables import CostBatch, LayerCosts, Needs
from tilewright.cost.vector import vector_work
from tilewright.hardware import Accelerator
from tilewright.mapping import MappingBatch
from tilewright.workload import Graph, UniqueOperator


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

    @classmethod
    def beside(cls, graph: Graph, accelerator: Accelerator) -> "Totals":
        """Return what all vector work of a network takes, which totals of its layers leave out."""
        return cls.of((one.node.count, one) for one in vector_work(graph, accelerator))

    @property
    def edp(self) -> Any:
        """Product of both sums, in picojoule-cycles."""
        return self.energy_pj * self.latency_cycles


NOTHING = Totals(0, 0.0)
"""What takes no time and no energy."""


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
        return self.models[layer].table(mappings, hardware, threads)

    def needs(self, layer: int, mappings: MappingBatch, threads: int = 1) -> Needs:
        """Return the bytes and lanes that mappings of one layer take, alone: quicker than `score`."""
        return self.models[layer].needs(mappings, threads)

    def totals(self, scored: Sequence[CostBatch]) -> Totals:
        """Return ``(b)`` what the network takes where mapping ``i`` of every layer runs on machine ``i``.

        ``scored`` are the layers' `CostBatch`, in order; infinite where a mapping of any layer is illegal.
        """
        return Totals.of((layer.count, Totals.legal(costs)) for layer, costs in zip(self.layers, scored, strict=True))
