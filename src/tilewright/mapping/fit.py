"""What a mapping asks of the machine: extents, tile bytes, room in memories, places in arrays."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tilewright.base import InputError
from tilewright.hardware import PARTIAL_SUMS, Accelerator, Fanout, Memory
from tilewright.mapping.footprint import compression, footprint_bits
from tilewright.mapping.mapping import LevelLoops
from tilewright.mapping.mapping import Mapping as Nest
from tilewright.workload import Operator, Tensor

Extents = dict[str, int]


def tensor_bits(tensor: Tensor, accelerator: Accelerator) -> int | Fraction:
    """Return the bits of one word of ``tensor``, of outputs of a final one: its own, or else the accelerator's.

    Raises an `InputError` if neither says.
    """
    if tensor.word_bits is not None:
        return _exact(tensor.word_bits)
    bits = dict(accelerator.word_bits)
    if tensor.role not in bits:
        raise InputError(f"{accelerator.name}.word_bits", "must give a width for the role of every tensor",
                         ", ".join(bits), f"Add {tensor.role}, the role of {tensor.name}")
    return bits[tensor.role]


def held_bits(tensor: Tensor, accelerator: Accelerator) -> int | Fraction:
    """Return the bits that a word of ``tensor`` takes wherever it lies and moves: of outputs those of a partial sum.

    Only as it comes home for the last time has a word of an output its final width, that of `tensor_bits`.
    """
    final = tensor_bits(tensor, accelerator)
    if not tensor.is_output:
        return final
    own = dict(accelerator.word_bits).get(PARTIAL_SUMS, 0)
    return max(final, own if tensor.partial_bits is None else _exact(tensor.partial_bits))


def _exact(bits: int | float) -> int | Fraction:
    found = Fraction(bits)
    return int(found) if found.denominator == 1 else found


def tile_bytes(tensor: Tensor, extents: Extents, accelerator: Accelerator, memory: str = "") -> float:
    """Return the bytes of the tile of ``tensor`` that a box of ``extents`` touches, as ``memory`` keeps it."""
    bits, box = float(held_bits(tensor, accelerator)), accelerator.footprint == "box"
    if accelerator.sparsity is None or compression(accelerator, memory, tensor) is None:
        return tensor.words(extents, box) * bits / 8
    sides = [np.asarray(float(axis.words(extents, box))) for axis in tensor.axes]
    return float(footprint_bits(accelerator, memory, tensor, bits, sides)) / 8


def step_inside(step: int, extent: int) -> int:
    """Return the extent that a loop of ``step`` leaves of ``extent``: the step, clipped to what there is."""
    return min(max(step, 1), extent)


def extents_at(mapping: Nest, sizes: Extents) -> list[Extents]:
    """Return the extents outside each level's loops, and last those that remain inside all (all 1 where covered)."""
    current = dict(sizes)
    found = [dict(current)]
    for entry in mapping.levels:
        for loop in entry.loops:
            if loop.dimension in current:
                current[loop.dimension] = step_inside(loop.step, current[loop.dimension])
        found.append(dict(current))
    return found


def kept_tensors(entry: LevelLoops, memory: Memory, operator: Operator) -> tuple[Tensor, ...]:
    """Return the tensors that ``memory`` keeps: those that ``entry`` names, or all that it can keep."""
    if entry.keeps is None:
        return tuple(t for t in operator.tensors if memory.can_keep(t.name, t.role))
    return tuple(t for t in operator.tensors if t.name in entry.keeps)


def full_keeps(mapping: Nest, operator: Operator, accelerator: Accelerator) -> dict[str, tuple[str, ...]]:
    """Return the tensors kept at each memory, by name, in the operator's order."""
    memories = {memory.name: memory for memory in accelerator.memories}
    return {entry.level: tuple(t.name for t in kept_tensors(entry, memories[entry.level], operator))
            for entry in mapping.levels if entry.level in memories}


def barred_dimensions(operator: Operator, accelerator: Accelerator,
                      keeps: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Return dimensions that no lanes may spread, by side of an array (``PEs.X``), as one memory serves all of them.

    They are those of what such a memory keeps; ``keeps`` is by memory.
    """
    found: dict[str, set[str]] = {}
    for memory in accelerator.memories:
        used = {name for tensor in operator.tensors if tensor.name in keeps.get(memory.name, ())
                for name in tensor.dimensions}
        for array, _, side in (place.rpartition(".") for place in memory.shared):
            found.setdefault(f"{array}.{side.upper()}", set()).update(used)
    return found


def home_of(tensor: str, keeps: Sequence[Collection[str]]) -> int | None:
    """Return the level where a tensor begins and ends: the outermost that keeps it, by what each level ``keeps``."""
    return next((level for level, names in enumerate(keeps) if tensor in names), None)


def check_homes(operator: Operator, accelerator: Accelerator, keeps: Sequence[Collection[str]]) -> None:
    """Check that every tensor has a home, and the output one where its sums meet (counting rule 8).

    Raises an `InputError` if a tensor is kept nowhere, or the output's home is an array of memories.
    """
    for tensor in operator.tensors:
        home = home_of(tensor.name, keeps)
        if home is None:
            raise InputError(f"{accelerator.name}.levels", f"must let some memory keep {tensor.name}", "none",
                             f"Add {tensor.role} to the keeps of a memory")
        memory = accelerator.levels[home].name
        if tensor.is_output and accelerator.instances(memory) > 1:
            raise InputError(f"{accelerator.name}.{memory}.keeps",
                             f"must not be the home of {tensor.name}: sums of several instances never meet",
                             tensor.name, "Let a memory outside all arrays keep it")


def homed_at(level: int, mapping: Nest, operator: Operator, accelerator: Accelerator) -> dict[str, Extents]:
    """Return the sizes of the operator for each tensor whose home is at ``level``."""
    kept = full_keeps(mapping, operator, accelerator)
    keeps = [kept.get(entry.level, ()) for entry in mapping.levels]
    return {tensor.name: operator.sizes for tensor in operator.tensors if home_of(tensor.name, keeps) == level}


@dataclass(frozen=True)
class Room:
    """One capacity of a memory, and what the tiles of some tensors take of it.

    ``partition`` is the role or tensor that it is reserved for, None where it is shared. ``bytes_by_tensor`` are single
    tiles; ``copies`` is 2 where they must fit twice. ``capacity_bytes`` None is unlimited.
    """

    partition: str | None
    bytes_by_tensor: tuple[tuple[str, float], ...]
    copies: int
    capacity_bytes: float | None

    @property
    def needed_bytes(self) -> float:
        """Bytes that the tiles take, copies included."""
        return self.copies * sum(size for _, size in self.bytes_by_tensor)

    @property
    def fits(self) -> bool:
        """Whether the tiles fit."""
        return self.capacity_bytes is None or self.needed_bytes <= self.capacity_bytes


def partition_of(memory: Memory, tensor: Tensor) -> str | None:
    """Return the partition that ``tensor`` stays in: by its name, else by its role; None is the shared room."""
    names = [name for name, _ in memory.partitions_bytes]
    return next((key for key in (tensor.name, tensor.role) if key in names), None)


def by_room(memory: Memory, kept: Iterable[Tensor]) -> dict[str | None, tuple[Tensor, ...]]:
    """Return which tensors share each room of ``memory``, by its partition (`partition_of`)."""
    found: dict[str | None, tuple[Tensor, ...]] = {}
    for tensor in kept:
        owner = partition_of(memory, tensor)
        found[owner] = (*found.get(owner, ()), tensor)
    return found


def rooms(memory: Memory, kept: tuple[Tensor, ...], extents: Extents, accelerator: Accelerator,
          homed: Mapping[str, Extents] | None = None) -> tuple[Room, ...]:
    """Return each capacity of ``memory`` that holds some of ``kept``, with their tiles of ``extents`` (rules 1, 10).

    Of tensors whose home it is, ``homed`` gives the extents of all that they are.
    """
    def size(tensor: Tensor) -> float:
        return tile_bytes(tensor, (homed or {}).get(tensor.name, extents), accelerator, memory.name)

    return tuple(Room(owner, tuple((tensor.name, size(tensor)) for tensor in tensors), memory.copies,
                      memory.rooms[owner]) for owner, tensors in by_room(memory, kept).items())


def tile_fits(memory: Memory, kept: tuple[Tensor, ...], extents: Extents, accelerator: Accelerator) -> bool:
    """Whether the tiles of ``kept`` that a box of ``extents`` touches fit into ``memory``."""
    return all(room.fits for room in rooms(memory, kept, extents, accelerator))


def lanes(entry: LevelLoops, outside: Extents) -> tuple[int, int]:
    """Return how many instances the spatial loops of a fan-out's ``entry`` spread over along X and Y."""
    extents, counts = dict(outside), {"X": 1, "Y": 1}
    for loop in entry.loops:
        if loop.dimension in extents:
            extent = extents[loop.dimension]
            step = step_inside(loop.step, extent)
            if loop.axis in counts:
                counts[loop.axis] *= -(-extent // step)
            extents[loop.dimension] = step
    return counts["X"], counts["Y"]


def array_use(fanout: Fanout, x: int, y: int) -> tuple[tuple[str, int, int], ...]:
    """Return ``(side, needed, available)`` for each limit that ``x`` by ``y`` lanes must respect on ``fanout``.

    A flexible array limits the instances alone; one built of blocks the whole blocks that the lanes take; a fixed one
    each of its sides.
    """
    if fanout.flexible:
        return (("instances", x * y, fanout.instances),)
    if fanout.blocks:
        width, height = fanout.blocks
        return (("blocks", -(-x // width) * -(-y // height), fanout.instances // (width * height)),)
    return ("X", x, fanout.shape[0]), ("Y", y, fanout.shape[1])
