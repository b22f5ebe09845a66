"""FLAT's dataflows by name: naive, Flex and FLAT at four granularities, and the best of each (table A.2).

The ones that are named stage tiles of a granularity as large as they are (table A.1). Of a tile that does not fit the
buffer, the share beyond it spills and moves as in the naive dataflow; so the authors' model does it (a run of it is in
`rerun`). The best ones (``flex-opt``, ``flat-opt``, ``online-opt``) are `best_plan` of a space, and spill word by word.
"""

import re
from dataclasses import dataclass, replace

import numpy as np

from tilewright.base import InputError
from tilewright.fusion.flat.blocks import Attention, AttentionBlock, Product
from tilewright.fusion.flat.costs import TilePlans, fused_costs, sides
from tilewright.fusion.flat.machines import FlatMachine
from tilewright.fusion.flat.search import FlatObjective, Space, best_plan

DATAFLOWS = ("naive", "flex-m", "flex-b", "flex-h", "flex-r64", "flex-opt", "flat-m", "flat-b", "flat-h", "flat-r64",
             "flat-opt", "online-opt")
"""Of ``-r`` any number of rows may follow."""
_BEST: dict[str, Space] = {"flex-opt": "flex", "flat-opt": "flat", "online-opt": "online"}


@dataclass(frozen=True)
class DataflowCost:
    """What a dataflow takes for an attention, or products besides: words of DRAM, room, cycles, energy."""

    dram_words: float
    footprint_words: float
    compute_cycles: float
    latency_cycles: float
    energy_pj: float

    def plus(self, other: "DataflowCost", times: int = 1) -> "DataflowCost":
        """Return this and, after it, another ``times``."""
        summed = {name: value + times * getattr(other, name) for name, value in vars(self).items()}
        return DataflowCost(**summed | {"footprint_words": max(self.footprint_words, other.footprint_words)})


def table_words(attention: Attention, granularity: str, rows: int = 0) -> int:
    """Return the words of buffer of table A.1: twice what touches DRAM, the logits once.

    A tile is of the whole batch (``m``), one sequence (``b``), one head (``h``) or some ``rows`` of one (``r``).

    >>> table_words(Attention("bert", 768, 512, 512, 64, 64, heads=12), "h"), 8 * 512 * 64 + 512**2
    (524288, 524288)
    """
    instances, rows = _granule(attention, granularity, rows)
    features = attention.depth + attention.width
    return instances * (2 * features * (rows + attention.keys) + rows * attention.keys)


def dataflow_cost(attention: Attention, machine: FlatMachine, name: str,
                  objective: FlatObjective = "latency") -> DataflowCost:
    """Return what a dataflow of FLAT's names takes of an attention, its softmax free.

    Raises an `InputError` if there is none of that name.
    """
    if name in _BEST:
        cost = best_plan(attention, machine, _BEST[name], objective).cost
        return DataflowCost(cost.dram_words, cost.footprint_words, cost.compute_cycles, cost.latency_cycles,
                            cost.energy_pj)
    told = re.fullmatch(r"(naive)|(flex|flat)-([mbh]|r(\d+))", name)
    if told is None:
        raise InputError("dataflow", f"must be one of {', '.join(DATAFLOWS)}", name)
    naive, naive_cycles = _naive(attention, machine)
    logits = attention.instances * attention.rows * attention.keys
    if told[1]:
        granularity, rows, staged, room = "r", machine.rows, naive, 0
    else:
        granularity, rows = told[3][0], int(told[4] or 0)
        fused = told[2] == "flat" or granularity == "m"  # what stages all logits keeps them
        staged = attention.compulsory_words + (0 if fused else 2 * logits)
        room = table_words(attention, granularity, rows) if fused else _apart(attention, granularity, rows)
    share = 1.0 if told[1] else min(1.0, machine.capacity_words / room)
    words = share * staged + (1 - share) * naive
    tile = fused_costs(attention, replace(machine, capacity_words=2**60), _rows(
        attention, min(attention.rows, _granule(attention, granularity, rows)[1])))
    inner = float(tile.buffer_words[0] - tile.dram_words[0])
    compute = naive_cycles if told[1] else float(tile.compute_cycles[0])
    latency = max(compute, words / machine.dram_rate, (inner + words) / machine.buffer_rate)
    energy = attention.macs * machine.mac_pj + (inner + words) * machine.buffer_pj + words * machine.dram_pj
    return DataflowCost(words, room, compute, latency, energy)


def product_cost(product: Product, machine: FlatMachine) -> DataflowCost:
    """Return what the best tile of outputs takes for a matrix product, alike in all dataflows (figure A.13).

    Sums of a tile of rows by columns stay in the buffer, operands stream past it in strips as deep as the array.
    """
    rows, columns = (each.ravel() for each in np.meshgrid(
        sides(product.rows, machine.rows), sides(product.columns, machine.columns)))
    deep = min(product.depth, max(machine.rows, machine.columns))
    room = 2 * rows * columns + 2 * deep * (rows + columns)
    down, across = -(-product.rows // rows), -(-product.columns // columns)
    words = product.instances * (product.depth * (product.rows * across + product.columns * down)
                                 + product.rows * product.columns)
    strips = _strips(product.rows, rows, machine.rows) * _strips(product.columns, columns, machine.columns)
    compute = product.instances * product.depth * strips
    inner = words + product.macs * (1 / machine.rows + 1 / machine.columns)
    latency = np.maximum(np.maximum(compute, words / machine.dram_rate), inner / machine.buffer_rate)
    latency = np.where(room <= machine.capacity_words, latency, np.inf)
    best = int(np.lexsort((words, latency))[0])
    if not np.isfinite(latency[best]):
        raise InputError("capacity", f"must hold one output and its strips: {room.min()} words",
                         machine.capacity_words)
    energy = product.macs * machine.mac_pj + inner[best] * machine.buffer_pj + words[best] * machine.dram_pj
    moved, kept, busy, whole = (float(values[best]) for values in (words, room, compute, latency))
    return DataflowCost(moved, kept, busy, whole, float(energy))


def block_cost(block: AttentionBlock, machine: FlatMachine, name: str) -> DataflowCost:
    """Return what a whole block takes where its attention runs in a dataflow; the other products are not fused."""
    whole = dataflow_cost(block.attention, machine, name)
    for product in block.products:
        whole = whole.plus(product_cost(product, machine), product.count)
    return whole


def _granule(attention: Attention, granularity: str, rows: int) -> tuple[int, int]:
    """Return instances and rows of a tile."""
    if granularity == "r":
        if rows < 1:
            raise InputError("rows", "must be positive", rows)
        return 1, min(rows, attention.rows)
    instances = {"m": attention.instances, "b": min(attention.heads, attention.instances), "h": 1}
    return instances[granularity], attention.rows


def _apart(attention: Attention, granularity: str, rows: int) -> int:
    """Return the words of a tile of L, or of A, alone: its logits touch DRAM and take the buffer twice."""
    instances, rows = _granule(attention, granularity, rows)
    features = max(attention.depth, attention.width)
    return instances * 2 * (features * (rows + attention.keys) + rows * attention.keys)


def _rows(attention: Attention, rows: int) -> TilePlans:
    keys = np.array([attention.keys])
    return TilePlans(np.array([rows]), keys, np.array([False]), keys, keys, np.array([1]))


def _naive(attention: Attention, machine: FlatMachine) -> tuple[int, int]:
    """Return words and cycles of tiles as large as the array, stationary in it: keys in L, values in A.

    Rows pass each of them anew, and partial sums leave and come back.
    """
    (a, b), one = (machine.rows, machine.columns), attention
    down, across, strips = -(-one.depth // a), -(-one.width // b), -(-one.keys // a)
    scores = one.depth * (one.rows * -(-one.keys // b) + one.keys) + one.rows * one.keys * (2 * down - 1)
    mixed = one.rows * one.keys * across + one.width * one.keys + one.width * one.rows * (2 * strips - 1)
    cycles = one.rows * (down * -(-one.keys // b) + strips * across)
    return one.instances * (scores + mixed), one.instances * cycles


def _strips(size: int, tiles: np.ndarray, array: int) -> np.ndarray:
    """Return the strips of an array over all tiles of a side."""
    full, rest = size // tiles, size % tiles
    found: np.ndarray = full * -(-tiles // array) + -(-rest // array)
    return found
