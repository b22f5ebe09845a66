"""Machines of one structure that are bounded together: their numbers as arrays (r), a row each."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.rules import Leeway
from tilewright.cost.hardware import Columns, own_columns
from tilewright.hardware import LEAKAGE, PORTS, RATE, Accelerator, Fanout, Number, refuse_shared, room_name
from tilewright.mapping import by_room, held_bits, tensor_bits
from tilewright.workload import Tensor

Made = TypeVar("Made")
Kind = TypeVar("Kind", bound=Hashable)
Floats = NDArray[np.float64]
Whole = NDArray[np.object_]
"""Whole numbers of any size (Python's own), so that cycles are rounded up exactly."""


MOST_KEPT = 1024
"""Things made once that each `Once` keeps (some ten kilobytes each)."""


class Once:
    """What keeps all that is made of it, as kept sets share most of what is known."""

    @cached_property
    def _made(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """Return what ``make`` returns, made once for each key; of very many keys the oldest are forgotten."""
        if key not in self._made:
            self._made[key] = make()
            if len(self._made) > MOST_KEPT:
                del self._made[next(iter(self._made))]
        found: Made = self._made[key]
        return found

    def each(self, keys: Sequence[Kind], make: Callable[[list[Kind]], list[Made]]) -> list[Made]:
        """Return what ``make`` returns for each key; it is asked for those that are not made yet, all at once."""
        found = {key: self._made[key] for key in keys if key in self._made}
        new = [key for key in keys if key not in found]
        found |= dict(zip(new, make(new) if new else (), strict=True))
        return [self.once(key, partial(found.__getitem__, key)) for key in keys]


@dataclass(frozen=True)
class MachineRows(Once):
    """Some rows of `Columns`, all with the same arrays of one instance (`parts`).

    Arrays of a fixed shape have the product of their sides, as legality knows nothing else of them.
    """

    columns: Columns
    count: int
    rules: Leeway | None = None
    """What constraints leave, where they say so."""

    def __post_init__(self) -> None:
        refuse_shared(self.machine, "bounds of many machines")

    @staticmethod
    @lru_cache(maxsize=64)
    def one(machine: Accelerator, rules: Leeway | None) -> "MachineRows":
        """Return a machine, every lane with memories of its own, as a row; kept, as every layer and kept set asks."""
        return MachineRows(own_columns(machine.unshared), 1, rules)

    @property
    def machine(self) -> Accelerator:
        """What the rows have in common; its numbers are none of theirs."""
        return self.columns.machine

    def parts(self, most: int) -> list[NDArray[np.intp]]:
        """Return rows that may be looked at together, at most so many."""
        kinds = np.zeros(self.count, dtype=np.int64)
        for array in self.machine.fanouts:
            kinds = 2 * kinds + (self.instances([array]) == 1)
        alike = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]
        return [rows[first:first + most] for rows in alike for first in range(0, len(rows), most)]

    def take(self, rows: NDArray[np.intp]) -> "MachineRows":
        """Return some of the rows."""
        return MachineRows(self.columns.take(rows), len(rows), self.rules)

    @cached_property
    def numbers(self) -> dict[Number, Floats]:
        """Every number of all rows."""
        return {key: found if isinstance(found, np.ndarray) else np.full(self.count, found, dtype=np.float64)
                for key, found in self.columns.numbers.items()}

    @cached_property
    def leakage(self) -> Floats:
        """Picojoules a cycle."""
        return self.numbers[LEAKAGE]

    @cached_property
    def _word_bits(self) -> dict[str, int]:
        return {memory.name: memory.word_bits for memory in self.machine.memories}

    @cached_property
    def widths(self) -> dict[str, Whole]:
        """Bits of a word of every memory in all its instances that may be in use."""
        return {name: bits * whole(self.active[name]) for name, bits in self._word_bits.items()}

    def scale(self, tensor: Tensor, name: str) -> float:
        """Return the words of a memory's own width in a word of a tensor."""
        return float(self.bits(tensor, name)) / self._word_bits[name]

    def bits(self, tensor: Tensor, name: str) -> int | Fraction:
        """Return the bits of a word of a tensor at a memory, at least: those of partial sums where none is final."""
        return held_bits(tensor, self.machine) if self._behind[name] else tensor_bits(tensor, self.machine)

    def rooms(self, name: str, kept: Iterable[Tensor]) -> list[tuple[dict[str, float], Floats]]:
        """Return the limited rooms of a memory: bits of a word of each tensor kept there, all copies, and bytes (r)."""
        memory = self.machine.memory(name)
        return [({tensor.name: memory.copies * float(held_bits(tensor, self.machine)) for tensor in tensors},
                 self.numbers[name, room_name(owner)])
                for owner, tensors in by_room(memory, kept).items() if memory.rooms[owner] is not None]

    @cached_property
    def _instances(self) -> dict[str, NDArray[np.int64]]:
        """Instances of every array by itself."""
        sides = {array.name: ("instances",) if array.one_piece else ("x", "y")
                 for array in self.machine.fanouts}
        return {name: np.prod([self.numbers[name, side] for side in own], axis=0).astype(np.int64)
                for name, own in sides.items()}

    @cached_property
    def _one(self) -> NDArray[np.int64]:
        return np.ones(self.count, dtype=np.int64)

    @cached_property
    def none(self) -> Whole:
        """Nothing, in all rows."""
        return whole(np.zeros(self.count))

    def instances(self, arrays: Iterable[Fanout]) -> NDArray[np.int64]:
        """Return how many instances some arrays have together."""
        found = self._one
        for array in arrays:
            found = found * self._instances[array.name]
        return found

    def lanes(self, arrays: Iterable[Fanout]) -> NDArray[np.int64]:
        """Return how many instances of some arrays together may be in use."""
        arrays = list(arrays)
        found = self.instances(arrays)
        return found if self.rules is None else np.minimum(found, self.rules.used(arrays))

    def sharing(self, tensor: Tensor, arrays: Iterable[Fanout], *, sliding: bool = True) -> NDArray[np.int64]:
        """Return how many lanes of some arrays together may share a word of a tensor: those along sides that merge.

        With those that do along ``sliding`` axes, or without.
        """
        arrays = list(arrays)
        found = self._one
        for array in arrays:
            merged = array.merges(tensor.name, tensor.role)
            sides = [self.numbers[array.name, side] for side, can in zip("xy", merged, strict=True) if can]
            found = found * (self._instances[array.name] if all(merged) else np.prod(sides, axis=0).astype(np.int64))
        return found if self.rules is None else np.minimum(found, self.rules.sharing(tensor, arrays, sliding=sliding))

    @cached_property
    def outside(self) -> dict[str, NDArray[np.int64]]:
        """The instances of every level: those of the arrays outside it together."""
        found, names = [self._one], [level.name for level in self.machine.levels]
        for name in names:
            found.append(found[-1] * self._instances.get(name, 1))
        return dict(zip(names, found, strict=False))

    @cached_property
    def _behind(self) -> dict[str, bool]:
        """Whether a level lies behind arrays, where no output has its home."""
        return {name: bool(instances.min() > 1) for name, instances in self.outside.items()}

    @cached_property
    def active(self) -> dict[str, NDArray[np.int64]]:
        """The instances of every level that may be in use."""
        levels = self.machine.levels
        return {level.name: self.lanes(outer for outer in levels[:place] if isinstance(outer, Fanout))
                for place, level in enumerate(levels)}

    @cached_property
    def inside(self) -> dict[str, list[Fanout]]:
        """The arrays inside every level."""
        levels = self.machine.levels
        return {level.name: [inner for inner in levels[place + 1:] if isinstance(inner, Fanout)]
                for place, level in enumerate(levels)}

    @cached_property
    def rates(self) -> dict[tuple[str, str], tuple[Whole, Whole]]:
        """Words that ports move in so many cycles, by memory and port; only what is limited."""
        keys = {(memory.name, port): (memory.name, RATE.format(port))
                for memory in self.machine.memories for port in PORTS}
        return {place: (whole(np.full(self.count, words)), whole(np.full(self.count, cycles)))
                for place, (words, cycles) in ((place, self.columns.exact(key)) for place, key in keys.items()
                                               if key in self.columns.numbers)}


def whole(numbers: NDArray[np.float64] | NDArray[np.int64]) -> Whole:
    """Return whole numbers as Python's own."""
    return np.array([int(number) for number in numbers], dtype=np.object_)
