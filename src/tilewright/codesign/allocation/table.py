"""The table that all of allocation looks up: what each layer costs by style, elements and buffer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.codesign.allocation.styles import STYLES, StageLevels, buffer_bytes, style_mappings
from tilewright.cost import DenseModel, HardwareBatch
from tilewright.hardware import Accelerator, DesignSpace, Number
from tilewright.mapping import Mapping, MappingBatch
from tilewright.workload import Graph, Operator

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PE_LEVELS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of elements of table 8.1; buffers have room for 1 to 12 filters there."""


@dataclass(frozen=True)
class PipelineStages:
    """The layers of a network as stages, and what each may be built of."""

    operators: tuple[Operator, ...]
    names: tuple[str, ...]
    runs: tuple[int, ...]
    """``operators``, ``names`` and ``runs``: the layers, what they are called, and how often each runs for one
    input."""
    machine: Accelerator
    """One stage, with room for the most elements: its numbers hold where the choice leaves them."""
    styles: tuple[str, ...] = ("nvdla",)
    """Names of `STYLES`."""
    elements: tuple[int, ...] = PE_LEVELS
    filters: tuple[int, ...] = tuple(range(1, 13))
    """``elements`` and ``filters``: numbers of elements; filters that a buffer has room for."""
    together: bool = False
    """Whether the layers run in turn on one machine: its shared memory has room for any of them in any style."""

    @classmethod
    def of(cls, graph: Graph, machine: Accelerator | DesignSpace, *, convolutions: bool = False,
           together: bool = False, **choices: Sequence[int | str]) -> "PipelineStages":
        """Return the stages of a network, one for each operator; of its ``convolutions`` alone, as published.

        ``choices`` are ``styles``, ``elements`` and ``filters``; those of a design space are its own, where not given.

        Raises an `InputError` if there is no such layer, a style is unknown, a choice is empty, or the machine is built
        otherwise.
        """
        if isinstance(machine, DesignSpace):
            choices, machine = StageLevels.choices(machine) | choices, machine.accelerator
        nodes = [node for node in graph.mac_nodes if not convolutions or "R" in node.operator.sizes]
        if not nodes:
            raise InputError("network", "must have a layer", graph.name)
        for what, given in choices.items():
            if not given or (what != "styles" and min(given) < 1):  # type: ignore[operator]
                raise InputError(what, "must be one or more" + (" positive numbers" if what != "styles" else ""), given)
        found = cls(tuple(node.operator for node in nodes), tuple(node.name for node in nodes),
                    tuple(node.count for node in nodes), machine, together=together,
                    **{what: tuple(given) for what, given in choices.items()})  # type: ignore[arg-type]
        for style in found.styles:
            STYLES.get(style)
        StageLevels.of(machine)
        return found

    def __len__(self) -> int:
        return len(self.operators)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """``(l, s, p, k)``: layers, styles, numbers of elements, buffers."""
        return len(self), len(self.styles), len(self.elements), len(self.filters)

    @property
    def buffers(self) -> tuple[int, ...]:
        """Bytes of each buffer."""
        return tuple(int(buffer_bytes(filters)) for filters in self.filters)

    @cached_property
    def macs(self) -> Floats:
        """Multiply-accumulates of each stage ``(l)`` for one input."""
        return np.array([operator.macs * runs for operator, runs in zip(self.operators, self.runs, strict=True)], float)

    def _mapped(self, style: str, operator: Operator) -> tuple[MappingBatch, dict[Number, Any]]:
        """Return the mapping ``(p * k)`` of every cell of a layer and a style, and the numbers of its machine."""
        grid = np.meshgrid(np.array(self.elements), np.array(self.filters), indexing="ij")
        elements, filters = (axis.reshape(-1) for axis in grid)
        stage = StageLevels.of(self.machine)
        mappings = style_mappings(STYLES.get(style), operator, self.machine, elements, filters)
        needed = DenseModel(operator, self.machine).needs(mappings).numbers(self.machine)
        shared = stage.shared.name, "capacity_bytes"
        least = stage.shared.storage.read_pj_per_bit.low if stage.shared.storage else 1.0
        return mappings, {(stage.array.name, "x"): elements, (stage.array.name, "y"): np.ones_like(elements),
                          shared: np.maximum(needed[shared], least),
                          (stage.private.name, "capacity_bytes"): buffer_bytes(filters)}

    @cached_property
    def _roomy(self) -> dict[Number, Any]:
        """The shared memory ``(p * k)`` that has room for any layer in any style."""
        shared = StageLevels.of(self.machine).shared.name, "capacity_bytes"
        return {shared: np.max([self._mapped(style, operator)[1][shared] for style in self.styles
                                for operator in {one.signature: one for one in self.operators}.values()], axis=0)}

    def cells(self, style: str, operator: Operator) -> tuple[MappingBatch, HardwareBatch]:
        """Return the mapping and the machine ``(p * k)`` of every cell of a layer and a style."""
        mappings, values = self._mapped(style, operator)
        values |= self._roomy if self.together else {}
        return mappings, HardwareBatch({key: np.asarray(column, dtype=np.float64) for key, column in values.items()},
                                       self.machine)

    def built(self, layer: int, cell: Sequence[int]) -> tuple[Mapping, Accelerator]:
        """Return the mapping and the machine of a cell (style, elements, buffer by their places) of a layer."""
        style, p, k = cell
        mappings, machines = self.only(p, k).cells(self.styles[style], self.operators[layer])
        return mappings.mapping(0, self.operators[layer].sizes), machines.machine(0)

    def only(self, p: int, k: int) -> "PipelineStages":
        """Return the stages with no choice but of the style: of elements and buffer those at these places."""
        return replace(self, elements=(self.elements[p],), filters=(self.filters[k],))


@dataclass(frozen=True)
class AllocationTable:
    """What every cell costs, each ``(l, s, p, k)``: layers, styles, numbers of elements, buffers.

    Cycles and energy are those of all runs of a layer for one input; power is energy over time while the layer runs.
    """

    stages: PipelineStages
    latency_cycles: Floats
    energy_pj: Floats
    area_um2: Floats
    power_mw: Floats

    @cached_property
    def elements(self) -> Floats:
        """Elements of every cell."""
        return np.broadcast_to(np.array(self.stages.elements, float)[None, None, :, None], self.stages.shape)

    @cached_property
    def buffer_bytes(self) -> Floats:
        """Bytes of one element's buffer, of every cell."""
        return np.broadcast_to(np.array(self.stages.buffers, float), self.stages.shape)


def allocation_table(stages: PipelineStages) -> AllocationTable:
    """Return what every cell costs: one batched call of the engine for each distinct layer and style.

    Raises an `InputError` if a cell is illegal on its own machine, as with words wider than a byte.
    """
    costs: dict[tuple[object, ...], tuple[Floats, ...]] = {}
    for operator in stages.operators:
        if operator.signature not in costs:
            costs[operator.signature] = _layer(operator, stages)
    by_layer = [np.stack(rows) for rows in zip(*(costs[each.signature] for each in stages.operators), strict=True)]
    latency, energy, area = (rows.reshape(stages.shape) for rows in by_layer)
    runs = np.array(stages.runs, float)[:, None, None, None]
    power = energy / latency * stages.machine.frequency_mhz / 1000
    return AllocationTable(stages, latency * runs, energy * runs, area, power)


def _layer(operator: Operator, stages: PipelineStages) -> tuple[Floats, ...]:
    """Return cycles, energy and area ``(s, p * k)`` of one run of a layer."""
    model = DenseModel(operator, stages.machine)
    found = []
    for style in stages.styles:
        scored = model.score(*stages.cells(style, operator))
        if not scored.legal.all():
            raise InputError(f"layers.{operator.name}", f"must fit elements and buffers in style {style}",
                             mend="Give the machine words of 8 bits, as buffers are made for bytes")
        found.append((scored.latency_cycles, scored.energy_pj, np.broadcast_to(scored.area_um2, len(scored))))
    return tuple(np.stack(rows) for rows in zip(*found, strict=True))
