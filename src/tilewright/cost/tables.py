"""Many mappings of one layer as arrays: what each costs and moves, and what it needs of the machine."""

from collections.abc import Mapping as Dict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.records import KINDS
from tilewright.hardware import Accelerator, Fanout, Memory, Number, room_name
from tilewright.mapping import held_bits
from tilewright.workload import Operator

Floats = NDArray[np.float64]
TallyKey = tuple[str, int, str, str]
"""View (``total`` over instances, ``busiest`` instance, ``edge``: first tile of operands, last of outputs), level (the
one after the last is the compute unit; at an edge that of the child, also for what its parent reads or is updated
with), tensor and kind of access. Of memories that are walked there is an instance for each of `walks.VIEWS` instead of
the one ``busiest``.

Needs are views too: ``tile`` (bytes of a tensor), ``room`` (of all that share it; the name of its number stands in the
tensor's place) and ``lanes`` (along the side that stands last)."""


def need_keys(machine: Accelerator) -> tuple[TallyKey, ...]:
    """Return the keys of `Needs`."""
    rooms = [("room", at, room_name(owner), "bytes") for at, memory in enumerate(machine.levels)
             if isinstance(memory, Memory) for owner in memory.rooms]
    return (*rooms, *(("lanes", at, "", axis) for at, array in enumerate(machine.levels) if isinstance(array, Fanout)
                      for axis in "XY"))


def table_keys(machine: Accelerator, keeps: tuple[tuple[str, ...], ...]) -> tuple[TallyKey, ...]:
    """Return the keys of `LayerCosts` beside its costs: words and tiles where levels keep tensors, and needs."""
    kept = [(at, name) for at, names in enumerate(keeps) for name in names]
    words = [("total", at, name, kind) for at, name in kept for kind in KINDS]
    return (*words, *(("tile", at, name, "bytes") for at, name in kept), *need_keys(machine))


@dataclass(frozen=True)
class CostBatch:
    """Costs of ``b`` mappings, each array of shape (b,).

    ``excess`` says how far a mapping is over capacities and array sizes (the shares by which it exceeds them, summed);
    it is legal where that is 0. Cycles and energy are those that an illegal mapping would have on a larger machine.
    ``traffic_bytes`` are those read from and written to the outermost memory.
    """

    latency_cycles: Floats
    energy_pj: Floats
    excess: Floats
    steps: Floats
    steady_cycles: Floats
    ramp_cycles: Floats
    area_um2: float | Floats
    traffic_bytes: Floats

    @cached_property
    def legal(self) -> NDArray[np.bool_]:
        """Which mappings fit the machine."""
        legal: NDArray[np.bool_] = self.excess == 0
        return legal

    def __len__(self) -> int:
        return len(self.latency_cycles)


@dataclass(frozen=True)
class Needs:
    """What each of ``b`` mappings needs of a machine: bytes of one instance of every memory, lanes of every array.

    ``bytes`` are ``(r, b)``: by room, what the tiles there take together, twice where they are double-buffered.
    """

    rooms: tuple[Number, ...]
    """Names of capacities as in `Accelerator.numbers`, outermost memory first, unlimited ones too: of each memory the
    room that tensors share, then its partitions."""
    bytes: Floats
    arrays: tuple[str, ...]
    """Names of the fan-outs."""
    lanes: Floats
    """(a, 2, b): instances along X and Y of each that the loops there take."""

    @classmethod
    def of(cls, rows: Dict[TallyKey, Floats], accelerator: Accelerator) -> "Needs":
        """Return what ``rows`` tell at `need_keys`."""
        keys, names = need_keys(accelerator), [level.name for level in accelerator.levels]
        rooms = [key for key in keys if key[0] == "room"]
        lanes = keys[len(rooms):]
        taken = np.array([rows[key] for key in rooms])
        sides = np.array([rows[key] for key in lanes]).reshape(len(lanes) // 2, 2, taken.shape[1])
        return cls(tuple((names[level], what) for _, level, what, _ in rooms), taken,
                   tuple(names[level] for _, level, *_ in lanes[::2]), sides)

    def numbers(self, machine: Accelerator) -> dict[Number, Floats]:
        """Return the least capacities and sides that fit each mapping, by their names on ``machine`` (`HardwareBatch`).

        Of arrays of a free shape the least instances, in whole blocks. What ``machine`` has without limit stays so.
        """
        found = {room: row for room, row in zip(self.rooms, self.bytes, strict=True) if room in machine.numbers}
        for array, lanes in zip(machine.fanouts, self.lanes, strict=True):
            if array.blocks:
                blocks = np.array(array.blocks)[:, None]
                found[array.name, "instances"] = (np.ceil(lanes / blocks) * blocks).prod(axis=0)
            elif array.flexible:
                found[array.name, "instances"] = lanes[0] * lanes[1]
            else:
                found |= {(array.name, side): row for side, row in zip("xy", lanes, strict=True)}
        return found


@dataclass(frozen=True)
class LayerCosts:
    """What ``b`` mappings of one layer cost."""

    costs: CostBatch
    """Cycles, energy, area and what breaks limits; illegal mappings have the figures of a larger machine."""
    words: dict[tuple[str, str], dict[str, Floats]]
    """By (memory, tensor) and kind of access, summed over instances: ``(b)``. Those of the static schedule, also where
    zeros are made use of."""
    word_bits: dict[str, float]
    """Of one word, by tensor; of outputs of a partial sum."""
    needed_bytes: dict[tuple[str, str], Floats]
    """By (memory, tensor), what a tile takes of one instance: ``(b)``; twice where it is double-buffered."""
    needs: Needs
    """What tiles take together, and lanes."""

    @classmethod
    def of(cls, costs: CostBatch, rows: Dict[TallyKey, Floats], operator: Operator,
           accelerator: Accelerator) -> "LayerCosts":
        """Return the table of a layer: ``rows`` are those of the program that tells it."""
        names = [level.name for level in accelerator.levels]
        words: dict[tuple[str, str], dict[str, Floats]] = {}
        needed: dict[tuple[str, str], Floats] = {}
        for (view, level, tensor, kind), row in rows.items():
            if view == "total" and 0 <= level < len(names):
                words.setdefault((names[level], tensor), {})[kind] = row
            elif view == "tile":
                needed[names[level], tensor] = row
        bits = {tensor.name: float(held_bits(tensor, accelerator)) for tensor in operator.tensors}
        return cls(costs, words, bits, needed, Needs.of(rows, accelerator))

    @cached_property
    def bytes(self) -> dict[tuple[str, str], dict[str, Floats]]:
        """Bytes that `words` are."""
        return {(memory, tensor): {kind: moved * self.word_bits[tensor] / 8 for kind, moved in kinds.items()}
                for (memory, tensor), kinds in self.words.items()}
