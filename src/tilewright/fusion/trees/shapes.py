"""Shapes of a group's tree: which loops its operators share, in what steps, and which memory holds what passes between.

A shape is a tree whose operators have no loops of their own yet. Of all that the memory has room for those are kept
that seem to move the fewest bytes of the outermost memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod

from tilewright.hardware import Accelerator, Memory
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedMapping,
    FusedNode,
    FusedTree,
    HeldTensor,
    SharedLoop,
    fused_rooms,
    operations_of,
    tile_bytes,
)
from tilewright.workload import Operator

STEPS = 8
"""Steps tried of one loop, from one to half of the dimension."""
PAIRED = 3
"""Steps tried of each of two loops."""


@dataclass(frozen=True)
class TreeShape:
    """A tree without the operators' own loops.

    Parameters
    ----------
    held_bytes
        Room that the intermediate tensors take in ``memory``, at most.
    estimate_bytes
        What it may move of the outermost memory; only to choose by.
    """

    tree: FusedTree
    memory: str
    held_bytes: float
    estimate_bytes: float


def holding(accelerator: Accelerator) -> tuple[Memory, ...]:
    """Return the memories on the chip that can hold what passes between operators, outermost first."""
    return tuple(memory for memory in accelerator.memories[1:] if accelerator.instances(memory.name) == 1)


def shapes(group: FusedGroup, accelerator: Accelerator, most: int) -> list[TreeShape]:
    """Return the most promising shapes of a group's tree, no more than ``most``."""
    between = [operator for operator in group.operators if group.readers(operator.name)]
    found = []
    for memory in holding(accelerator):
        if not all(memory.can_keep(operator.output.name, operator.output.role) for operator in between):
            continue
        twice = any(operations_of(operator) is not None for operator in group.operators)
        singles = [shape for loops in _singles(group, accelerator) for copies in ((1, 2) if twice else (1,))
                   if (shape := _shape(group, accelerator, (memory, copies), loops)) is not None]
        found += singles
        if len(singles) < most:
            found += [shape for loops in _pairs(group, accelerator)
                      if (shape := _shape(group, accelerator, (memory, 1), loops)) is not None]
    found.sort(key=lambda shape: (shape.estimate_bytes, shape.held_bytes))
    return found[:most]


def steps_of(size: int, most: int) -> list[int]:
    """Return steps of a loop over a dimension: equal parts of it, ragged ones too, spread over all scales.

    Examples
    --------
    >>> steps_of(56, 8)
    [28, 19, 14, 8, 7, 4, 2, 1]
    """
    parts = sorted({-(-size // count) for count in (2, 3, 4, 7, 8, 14, 16, 32, 64, 128, 256, 512, 1024, size)
                    if count <= size} - {size}, reverse=True)
    if len(parts) <= most:
        return parts
    return [parts[round(at * (len(parts) - 1) / (most - 1))] for at in range(most)]


def _dimensions(group: FusedGroup) -> list[str]:
    """Return the dimensions of the last operator whose loops lead to another one's."""
    last = group.operators[-1]
    leaves = tuple(FusedLeaf(operator.name) for operator in group.operators)
    found = []
    for name, size in last.dimensions:
        summed = name not in last.output.dimensions
        if size > 1 and not (summed and (operations_of(last) is not None or group.readers(last.name))):
            node = FusedNode((SharedLoop("", name, 1),), leaves)
            carried = FusedTree(group, FusedMapping(node)).carried(node)
            if any(carried[operator.name] != (None,) for operator in group.operators[:-1]):
                found.append(name)
    return found


def _singles(group: FusedGroup, accelerator: Accelerator) -> Iterator[tuple[SharedLoop, ...]]:
    outer, sizes = accelerator.memories[0].name, group.operators[-1].sizes
    yield ()
    for name in _dimensions(group):
        for step in steps_of(sizes[name], STEPS):
            yield (SharedLoop(outer, name, step),)


def _pairs(group: FusedGroup, accelerator: Accelerator) -> Iterator[tuple[SharedLoop, ...]]:
    outer, sizes = accelerator.memories[0].name, group.operators[-1].sizes
    for one, other in permutations(_dimensions(group), 2):
        for step in steps_of(sizes[one], PAIRED):
            for inner in steps_of(sizes[other], PAIRED):
                yield SharedLoop(outer, one, step), SharedLoop(outer, other, inner)


def _shape(group: FusedGroup, accelerator: Accelerator, where: tuple[Memory, int],
           loops: tuple[SharedLoop, ...]) -> TreeShape | None:
    """Return a shape, None where the memory has no room for what it holds."""
    memory, copies = where
    held = tuple(HeldTensor(operator.name, memory.name, 2 if copies == 2 else 1)
                 for operator in group.operators if group.readers(operator.name))
    tree = FusedTree(group, FusedMapping(FusedNode(loops, tuple(
        FusedLeaf(operator.name) for operator in group.operators)), held))
    names = {operator.name for operator in group.operators}
    most = 0.0
    for (place, _), rooms in fused_rooms(tree, accelerator).items():
        for room in rooms:
            taken = sum(size for name, size in room.bytes_by_tensor if name in names)
            if taken and room.capacity_bytes is not None and taken >= room.capacity_bytes:
                return None
            most = max(most, taken) if place == memory.name else most
    return TreeShape(tree, memory.name, most, _estimate(tree, accelerator, memory, most))


def _estimate(tree: FusedTree, accelerator: Accelerator, memory: Memory, held: float) -> float:
    """Return about how many bytes of the outermost memory a shape moves.

    What stays in the memory comes once, all else in every turn that it is used in.
    """
    moves = list[tuple[float, float, float]]()
    for operator in tree.group.operators:
        inside = {link.operand for link in tree.group.sources(operator.name)}
        if tree.group.readers(operator.name) and not tree.group.leaves(operator.name):
            inside.add(operator.output.name)
        counts, extents = turn_of(tree, operator)
        for tensor in operator.tensors:
            if tensor.name in inside:
                continue
            vector = operations_of(operator) is not None
            whole = tensor.words(operator.sizes) if vector else tile_bytes(tensor, operator.sizes, accelerator)
            tile = memory.copies * (0 if vector else tile_bytes(tensor, extents, accelerator))
            able = memory.can_keep(tensor.name, tensor.role)
            moving = [at for at, (name, _) in enumerate(counts) if name in tensor.dimensions]
            fewest = prod(count for name, count in counts[:max(moving, default=-1) + 1]
                          if name not in tensor.dimensions)
            often = prod(count for name, count in counts if name not in tensor.dimensions)
            moves.append((whole * fewest, whole * (often if able and tensor.role != "outputs" else 2 * often - 1),
                          tile))
    room = float("inf") if memory.capacity_bytes is None else memory.capacity_bytes - held
    total = 0.0
    for least, most, tile in sorted(moves, key=lambda move: (move[0] - move[1]) / max(move[2], 1.0)):
        total += least if tile <= room else most
        room -= tile if tile <= room else 0.0
    return total


def turn_of(tree: FusedTree, operator: Operator) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """Return how often each shared loop of an operator runs, outermost first, and the extents of one turn."""
    extents, counts = dict(operator.sizes), []
    for loop in tree.shared(operator.name):
        step = min(loop.step, extents[loop.dimension])
        counts.append((loop.dimension, -(-extents[loop.dimension] // step)))
        extents[loop.dimension] = step
    return counts, extents
