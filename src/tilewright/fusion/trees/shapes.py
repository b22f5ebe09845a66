"""Shapes of a group's tree: which loops its operators share, in what steps, and which memory holds what passes between.

A shape is a tree whose operators have no loops of their own yet. Of all that the memory has room for those are kept
that seem to move the fewest bytes of the outermost memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import permutations
from math import inf, prod
from typing import Literal

from tilewright.hardware import Accelerator, Memory
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedMapping,
    FusedNode,
    FusedTree,
    HeldTensor,
    HeldWords,
    SharedLoop,
    first_needed,
    held_bytes,
    operations_of,
    partition_of,
    tile_bytes,
)
from tilewright.workload import Operator

STEPS = 8
"""Steps tried of one loop, from one to half of the dimension."""
PAIRED = 3
"""Steps tried of each of two loops."""
KNOWN = 2
"""All that a shape holds is known."""


@dataclass(frozen=True)
class TreeShape:
    """A tree without the operators' own loops."""

    tree: FusedTree
    memory: str
    held_bytes: float
    """Room that the intermediate tensors take in ``memory``, at most."""
    estimate_bytes: float
    """What it may move of the outermost memory; only to choose by, of equal ones by the turns."""
    turns: int = 1


def holding(accelerator: Accelerator) -> tuple[Memory, ...]:
    """Return the memories on the chip that can hold what passes between operators, outermost first."""
    return tuple(memory for memory in accelerator.memories[1:] if accelerator.instances(memory.name) == 1)


def shapes(group: FusedGroup, accelerator: Accelerator, most: int, below: float = inf) -> list[TreeShape]:
    """Return the most promising shapes of a group's tree, no more than ``most``.

    All seem to move less than ``below`` bytes of the outermost memory. Two loops are shared where one gives too few.
    """
    between = [operator for operator in group.operators if group.readers(operator.name)]
    twice = any(operations_of(operator) is not None for operator in group.operators)
    singles = [_Looped(group, accelerator, loops) for loops in _singles(group, accelerator)]
    pairs, found = list[_Looped](), list[TreeShape]()
    for memory in holding(accelerator):
        if not all(memory.can_keep(operator.output.name, operator.output.role) for operator in between):
            continue
        ways = [_Shaped(looped, memory, copies) for looped in singles for copies in ((1, 2) if twice else (1,))]
        best = _leading(ways, most, below)
        if len(best) < most:
            pairs = pairs or [_Looped(group, accelerator, loops) for loops in _pairs(group, accelerator)]
            best += _leading([_Shaped(looped, memory, 1) for looped in pairs], most - len(best), below)
        found += best
    found.sort(key=lambda shape: (shape.estimate_bytes, shape.turns))
    return found[:most]


def _leading(ways: "list[_Shaped]", most: int, below: float) -> list[TreeShape]:
    """Return the shapes that move the fewest bytes, and of those take the fewest turns, best first.

    What they hold is found only of those that are among them by less: as if it were nothing, then the least it may be.
    """
    waiting = [(moved, way.looped.count, at, 0, 0.0) for at, way in enumerate(ways)
               if (moved := way.figures(0)[0]) < below]
    heapify(waiting)
    found = list[TreeShape]()
    while waiting and len(found) < most:
        moved, turns, at, known, held = heappop(waiting)
        if known == KNOWN:
            found.append(ways[at].shape(held, moved))
            continue
        moved, held = ways[at].figures(known + 1)
        if moved < below:
            heappush(waiting, (moved, turns, at, known + 1, held))
    return found


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


@dataclass(frozen=True, eq=False)
class _Looped:
    """A group in shared loops, wherever its intermediate tensors are held."""

    group: FusedGroup
    accelerator: Accelerator
    loops: tuple[SharedLoop, ...]

    @cached_property
    def tree(self) -> FusedTree:
        """The tree."""
        return FusedTree(self.group, FusedMapping(FusedNode(self.loops, tuple(
            FusedLeaf(operator.name) for operator in self.group.operators))))

    @cached_property
    def turns(self) -> dict[str, tuple[list[tuple[str, int]], dict[str, int]]]:
        """Of each operator, how often its shared loops run, and the extents of one turn."""
        return {operator.name: turn_of(self.tree, operator) for operator in self.group.operators}

    @property
    def count(self) -> int:
        """How many turns the shared loops take, of the last operator."""
        return prod(count for _, count in self.turns[self.group.operators[-1].name][0])

    @cached_property
    def least(self) -> dict[str, HeldWords]:
        """Words of each intermediate tensor that are held at least: its tile, and what a reader's first turn needs."""
        found = dict[str, HeldWords]()
        for operator in self.group.operators:
            links, axes = self.group.readers(operator.name), operator.output.dimensions
            if not links:
                continue
            words = [prod(self.turns[operator.name][1][name] for name in axes)]
            for link in links:
                box = dict(operator.sizes)
                box |= {name: first_needed(axis, box[name], self.turns[link.reader][1]) for name, axis in link.axes}
                words.append(prod(box[name] for name in axes))
            found[operator.name] = HeldWords(max(words), 0)
        return found

    def moves(self, memory: Memory) -> list[tuple[float, float, float]]:
        """Return the fewest and most bytes that each tensor from outside moves, and the room with which it is few.

        What stays in the memory comes once, all else in every turn that it is used in.
        """
        moves = list[tuple[float, float, float]]()
        for operator in self.group.operators:
            inside = {link.operand for link in self.group.sources(operator.name)}
            if self.group.readers(operator.name) and not self.group.leaves(operator.name):
                inside.add(operator.output.name)
            counts, extents = self.turns[operator.name]
            for tensor in operator.tensors:
                if tensor.name in inside:
                    continue
                vector = operations_of(operator) is not None
                whole = tensor.words(operator.sizes) if vector else tile_bytes(tensor, operator.sizes,
                                                                               self.accelerator)
                tile = memory.copies * (0 if vector else tile_bytes(tensor, extents, self.accelerator))
                able = memory.can_keep(tensor.name, tensor.role)
                moving = [at for at, (name, _) in enumerate(counts) if name in tensor.dimensions]
                fewest = prod(count for name, count in counts[:max(moving, default=-1) + 1]
                              if name not in tensor.dimensions)
                often = prod(count for name, count in counts if name not in tensor.dimensions)
                moves.append((whole * fewest, whole * (often if able and tensor.role != "outputs" else 2 * often - 1),
                              tile))
        return sorted(moves, key=lambda move: (move[0] - move[1]) / max(move[2], 1.0))


@dataclass(frozen=True, eq=False)
class _Shaped:
    """Shared loops, and the memory that holds what passes between, so many times."""

    looped: _Looped
    memory: Memory
    copies: Literal[1, 2]

    def figures(self, known: int = KNOWN) -> tuple[float, float]:
        """Return about how many bytes of the outermost memory it moves, and the bytes it holds; infinite without room.

        By what is ``known``: nothing of what it holds (0), the least that it may hold (1), all.
        """
        tree, rooms, held = self.looped.tree, self.memory.rooms, dict[str | None, list[float]]()
        for name, words in (tree.held_words if known == KNOWN else self.looped.least if known else {}).items():
            part = partition_of(self.memory, tree.group.operator(name).output)
            taken = held_bytes(tree, name, words, self.looped.accelerator)
            held[part] = [one * self.copies + other for one, other in zip(
                taken, held.get(part, [0.0] * len(taken)), strict=True)]
        most = {part: max(taken) for part, taken in held.items()}
        for part, size in most.items():
            capacity = rooms[part]
            if size and capacity is not None and size >= capacity:
                return inf, size
        size = max(most.values(), default=0.0)
        return self._estimate(size), size

    def _estimate(self, held: float) -> float:
        capacity = self.memory.capacity_bytes
        room, total = inf if capacity is None else capacity - held, 0.0
        for least, most, tile in self._moves:
            total += least if tile <= room else most
            room -= tile if tile <= room else 0.0
        return total

    @cached_property
    def _moves(self) -> list[tuple[float, float, float]]:
        return self.looped.moves(self.memory)

    def shape(self, held: float, estimate: float) -> TreeShape:
        """Return it with what it holds, and about moves."""
        tree = self.looped.tree
        tensors = tuple(HeldTensor(name, self.memory.name, self.copies) for name in tree.held_words)
        found = FusedTree(tree.group, replace(tree.mapping, held=tensors))
        found.held_words = tree.held_words
        return TreeShape(found, self.memory.name, held, estimate, self.looped.count)


def turn_of(tree: FusedTree, operator: Operator) -> tuple[list[tuple[str, int]], dict[str, int]]:
    """Return how often each shared loop of an operator runs, outermost first, and the extents of one turn."""
    extents, counts = dict(operator.sizes), []
    for loop in tree.shared(operator.name):
        step = min(loop.step, extents[loop.dimension])
        counts.append((loop.dimension, -(-extents[loop.dimension] // step)))
        extents[loop.dimension] = step
    return counts, extents
