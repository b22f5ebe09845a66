"""What follows from a fused tree: the nest of each operator, its turns, and what is held meanwhile.

Turns are arrays: the box of indices that each works on, in the order in which they run, and the iteration of a node in
which each runs. Counts of turns are those that happen; loops whose last tiles are smaller leave out what is empty.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Memory
from tilewright.mapping.fit import kept_tensors
from tilewright.mapping.fused import FusedGroup, FusedLeaf, FusedLink, FusedMapping, FusedNode, HeldTensor, SharedLoop
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import AxisLink, Digit, Operator

Integers = NDArray[np.int64]
Steps = tuple[tuple[str, int], ...]
"""Loops in time as (dimension, step), outermost first."""


@dataclass(frozen=True, eq=False)
class Turns:
    """Boxes of indices ``(n,)`` by dimension, from ``low`` to before ``end``, in the order in which they run."""

    low: dict[str, Integers]
    end: dict[str, Integers]

    def __len__(self) -> int:
        return len(next(iter(self.low.values())))

    def at(self, places: Integers) -> "Turns":
        """Return some of them."""
        return Turns({d: low[places] for d, low in self.low.items()}, {d: end[places] for d, end in self.end.items()})

    def extents(self, dimension: str) -> Integers:
        """Return the indices of a dimension in each."""
        return self.end[dimension] - self.low[dimension]


def turns_of(sizes: dict[str, int], loops: Steps) -> Turns:
    """Return the iterations of ``loops`` over a box of ``sizes``."""
    low = {name: np.zeros(1, dtype=np.int64) for name in sizes}
    extent = {name: np.full(1, size, dtype=np.int64) for name, size in sizes.items()}
    for name, step in loops:
        counts = -(-extent[name] // step)
        outer = np.repeat(np.arange(len(counts)), counts)
        index = np.arange(len(outer)) - np.repeat(np.cumsum(counts) - counts, counts)
        low, extent = ({d: held[outer] for d, held in part.items()} for part in (low, extent))
        low[name] = low[name] + index * step
        extent[name] = np.minimum(step, extent[name] - index * step)
    return Turns(low, {name: low[name] + extent[name] for name in sizes})


def needed(link: FusedLink, sizes: dict[str, int], readers: Turns) -> Turns:
    """Return the box of a producer of ``sizes`` that each turn of the reader needs; empty where it is all padding."""
    count = len(readers)
    low = {name: np.zeros(count, dtype=np.int64) for name in sizes}
    end = {name: np.full(count, size, dtype=np.int64) for name, size in sizes.items()}
    for name, axis in link.axes:
        first = np.full(count, axis.offset, dtype=np.int64)
        last = first.copy()
        for digit in axis.digits:
            ends = _digit_ends(digit, readers.low[str(digit.axis)], readers.end[str(digit.axis)] - 1)
            first += digit.stride * ends[digit.stride < 0]
            last += digit.stride * ends[digit.stride >= 0]
        low[name], end[name] = np.clip(first, 0, sizes[name]), np.clip(last + 1, 0, sizes[name])
    return Turns(low, end)


def first_needed(axis: AxisLink, size: int, extents: dict[str, int]) -> int:
    """Return how many places of a producer's dimension a reader's first turn needs; `needed` for one box at zero."""
    first = last = axis.offset
    for digit in axis.digits:
        high = (extents[str(digit.axis)] - 1) // digit.divisor
        most = digit.stride * min(high, digit.extent - 1)
        first, last = first + min(0, most), last + max(0, most)
    return max(0, min(last + 1, size) - max(first, 0))


def _digit_ends(digit: Digit, first: Integers, last: Integers) -> tuple[Integers, Integers]:
    """Return the least and largest value of a digit over places from ``first`` to ``last``."""
    low, high = first // digit.divisor, last // digit.divisor
    whole = low // digit.extent != high // digit.extent  # it starts over on the way
    return np.where(whole, 0, low % digit.extent), np.where(whole, digit.extent - 1, high % digit.extent)


def filled(boxes: Turns) -> NDArray[np.bool_]:
    """Whether each box holds something."""
    found: NDArray[np.bool_] = np.all([boxes.end[name] > low for name, low in boxes.low.items()], axis=0)
    return found


class _Tiles:
    """All turns of one operator, found by what they hold: a grid of pieces of each dimension, numbered as they run."""

    def __init__(self, sizes: dict[str, int], loops: Steps) -> None:
        extents, counts = dict(sizes), []
        for name, step in loops:
            counts.append(-(-extents[name] // step))
            extents[name] = min(step, extents[name])
        self.codes: dict[str, Integers] = {}
        for name, size in sizes.items():
            rest, code = np.arange(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
            for at, (own, step) in enumerate(loops):
                if own == name:
                    index, rest = np.divmod(rest, step)
                    code += index * prod(counts[at + 1:])
            self.codes[name] = code
        pieces = {name: np.unique(code, return_counts=True) for name, code in self.codes.items()}
        self.piece = {name: np.searchsorted(pieces[name][0], code) for name, code in self.codes.items()}
        self.extents = {name: widths for name, (_, widths) in pieces.items()}
        self.shape = tuple(len(codes) for codes, _ in pieces.values())
        self.code = _grid(np.add, [codes for codes, _ in pieces.values()])

    def words(self, dimensions: Iterable[str]) -> Integers:
        """Words of each tile of a tensor whose axes are these dimensions, on the grid."""
        return _grid(np.multiply, [widths if name in set(dimensions) else np.ones_like(widths)
                                   for name, widths in self.extents.items()])

    def last_needed(self, boxes: Turns) -> Integers:
        """Return the code of the last tile that each box touches, -1 where it is empty."""
        found = sum((self.codes[name][np.maximum(end, 1) - 1] for name, end in boxes.end.items()),
                    start=np.zeros(len(boxes), dtype=np.int64))
        return np.where(filled(boxes), found, -1)

    def latest(self, boxes: Turns, times: Integers) -> Integers:
        """Return on the grid the last of ``times``, which ascend, at which a box touches each tile; -1 if none does."""
        found = np.full(self.shape, -1, dtype=np.int64)
        inside = np.flatnonzero(filled(boxes))
        rows = np.stack([part for name, low in boxes.low.items() for part in (
            self.piece[name][low[inside]], self.piece[name][boxes.end[name][inside] - 1] + 1)], axis=1)
        unique, first = np.unique(rows[::-1], axis=0, return_index=True)
        last = times[inside][::-1][first]
        for at in np.argsort(last, kind="stable").tolist():
            row = unique[at].tolist()
            found[tuple(slice(a, b) for a, b in zip(row[::2], row[1::2], strict=True))] = last[at]
        return found


def _grid(join: np.ufunc, parts: list[Integers]) -> Integers:
    found = parts[0]
    for part in parts[1:]:
        found = join.outer(found, part)
    return found


@dataclass(frozen=True)
class HeldWords:
    """Words of an intermediate tensor: the most that are held at one time, and that stay from one turn to the next."""

    most: int
    staying: int


class FusedTree:
    """A group and its mapping together, and all that follows from them.

    Raises an `InputError` if the tree has not each operator of the group once, in an order in which results come before
    they are read, or names unknown dimensions or operators, or a step that is not positive.
    """

    def __init__(self, group: FusedGroup, mapping: FusedMapping) -> None:
        self.group, self.mapping = group, mapping
        self._paths: dict[str, tuple[FusedNode, ...]] = {}
        self._times: dict[tuple[str, int], Integers] = {}
        self._carried: dict[int, dict[str, tuple[tuple[str, int] | None, ...]]] = {}
        self._walk(mapping.root, ())
        names = mapping.root.names
        if sorted(names) != sorted(operator.name for operator in group.operators):
            raise InputError("plan.tree", "must hold each operator of the group once", ", ".join(names),
                             f"The group has {', '.join(operator.name for operator in group.operators)}")
        for link in group.links:
            if names.index(link.producer) > names.index(link.reader):
                raise InputError("plan.tree", f"must run {link.producer} before {link.reader}, which reads its result",
                                 ", ".join(names))
        for held in mapping.held:
            group.operator(held.producer, "plan.held")

    def _walk(self, node: FusedNode, path: tuple[FusedNode, ...]) -> None:
        if not node.parts:
            raise InputError("plan.tree", "must have an operator in each node", "an empty one")
        sizes = self.group.operator(node.last, "plan.tree").sizes
        for loop in node.loops:
            if loop.dimension not in sizes or loop.step < 1:
                raise InputError("plan.tree.loops", f"must give dimensions of {node.last}, the last of the node, and "
                                 "positive steps", f"{loop.dimension}: {loop.step}", f"It has {', '.join(sizes)}")
        for part in node.parts:
            if isinstance(part, FusedNode):
                if node.again:
                    raise InputError("plan.tree.again", "must be of a node that holds operators alone", "a node inside",
                                     "Give it to the innermost node")
                self._walk(part, (*path, node))
                continue
            sizes = self.group.operator(part.operator, "plan.tree").sizes
            self._paths[part.operator] = (*path, node)
            for name, step in part.steps:
                if name not in sizes or step < 1:
                    raise InputError(f"plan.tree.{part.operator}.steps", "must give its dimensions and positive steps",
                                     f"{name}: {step}", f"It has {', '.join(sizes)}")

    def nested(self, leaves: tuple[FusedLeaf, ...]) -> "FusedTree":
        """Return the tree of one node with other own loops of its operators; what is held does not change by them."""
        found = FusedTree(self.group, replace(self.mapping, root=replace(self.mapping.root, parts=leaves)))
        found.held_words = self.held_words
        return found

    def leaf(self, name: str) -> FusedLeaf:
        """Return the leaf of an operator."""
        return next(leaf for leaf in self.mapping.root.leaves if leaf.operator == name)

    def held(self, producer: str) -> HeldTensor | None:
        """Return what holds the result of an operator, None where the plan does not say."""
        return next((held for held in self.mapping.held if held.producer == producer), None)

    def runs_again(self, name: str) -> FusedNode | None:
        """Return the node in each of whose iterations the operator runs anew, None where it runs once."""
        node = self._paths[name][-1]
        return node if node.again and node.last != name else None

    def carried(self, node: FusedNode) -> dict[str, tuple[tuple[str, int] | None, ...]]:
        """Return for each operator of a node what each shared loop is in it: dimension and step, None if nothing.

        A loop is carried from a reader to its producer along the first link that leads on. Of an axis that was merged
        it becomes the part which its step moves.
        """
        if id(node) not in self._carried:
            found: dict[str, tuple[tuple[str, int] | None, ...]] = {
                node.last: tuple((loop.dimension, loop.step) for loop in node.loops)}
            for name in reversed(node.names[:-1]):
                links = [link for link in self.group.readers(name) if link.reader in found]
                found[name] = tuple(self._first(links, [found[link.reader][at] for link in links])
                                    for at in range(len(node.loops)))
            self._carried[id(node)] = found
        return self._carried[id(node)]

    @staticmethod
    def _first(links: list[FusedLink], loops: list[tuple[str, int] | None]) -> tuple[str, int] | None:
        return next(((name, abs(digit.stride) * -(-loop[1] // digit.divisor))
                     for link, loop in zip(links, loops, strict=True) if loop is not None
                     for name, axis in link.axes for digit in axis.digits
                     if digit.axis == loop[0] and digit.divisor <= loop[1] < digit.divisor * digit.extent), None)

    def shared(self, name: str, down_to: FusedNode | None = None) -> tuple[SharedLoop, ...]:
        """Return the shared loops of an operator, in its own dimensions, down to a node; none of what runs again."""
        if self.runs_again(name) is not None:
            return ()
        own = dict(self.leaf(name).steps)
        found: list[tuple[FusedNode, SharedLoop]] = []
        for node in self._paths[name]:
            found += [(node, SharedLoop(loop.level, *inside))
                      for loop, inside in zip(node.loops, self.carried(node)[name], strict=True) if inside is not None]
        for at in reversed(range(len(found))):
            node, loop = found[at]
            if loop.dimension in own:
                found[at] = node, replace(loop, step=own.pop(loop.dimension))
        path = self._paths[name]
        nodes = path if down_to is None else path[:path.index(down_to) + 1]
        return tuple(loop for node, loop in found if node in nodes)

    def nest(self, name: str, accelerator: Accelerator) -> Mapping:
        """Return the whole mapping of an operator: shared loops outside its own, homes where tensors are held."""
        operator, shared = self.group.operator(name), self.shared(name)
        own = {entry.level: entry for entry in self.leaf(name).mapping.levels}
        homes = {operator.output.name: self.home(name, accelerator)} if self.group.readers(name) else {}
        homes |= {link.operand: self.home(link.producer, accelerator) for link in self.group.sources(name)}
        names = [level.name for level in accelerator.levels]
        extents, levels = dict(operator.sizes), []
        for at, level in enumerate(accelerator.levels):
            entry = own.get(level.name, LevelLoops(level.name))
            outer, loops = [Loop(loop.dimension, loop.step) for loop in shared if loop.level == level.name], []
            for loop in (*outer, *entry.loops):
                step = min(loop.step, extents.get(loop.dimension, loop.step))
                extents[loop.dimension] = step
                loops.append(replace(loop, step=step))
            keeps = entry.keeps
            if isinstance(level, Memory):
                kept = [tensor.name for tensor in kept_tensors(entry, level, operator)]
                keeps = tuple(tensor.name for tensor in operator.tensors if (
                    level.name == homes.get(tensor.name)
                    or (tensor.name in kept and at >= names.index(homes.get(tensor.name, names[0])))))
            levels.append(LevelLoops(level.name, tuple(loops), keeps))
        return Mapping(tuple(levels))

    def home(self, producer: str, accelerator: Accelerator) -> str:
        """Return the memory that holds the result of an operator of the group: stated, or the outermost able to."""
        held, output = self.held(producer), self.group.operator(producer).output
        if held is None:
            able = [memory.name for memory in accelerator.memories if memory.can_keep(output.name, output.role)]
            return able[0] if able else accelerator.memories[0].name
        if held.memory not in [memory.name for memory in accelerator.memories]:
            raise InputError(f"plan.held.{producer}", "must be a memory of the machine", held.memory,
                             f"It has {', '.join(memory.name for memory in accelerator.memories)}")
        return held.memory

    def turns(self, name: str, node: FusedNode) -> Turns:
        """Return the turns of an operator by loops down to ``node``; of what runs again, one for each of the last."""
        again = self.runs_again(name)
        if again is None:
            sizes = self.group.operator(name).sizes
            return turns_of(sizes, tuple((loop.dimension, loop.step) for loop in self.shared(name, node)))
        inside = {again.last: self.turns(again.last, node)}
        for producer in reversed(again.names[:-1]):
            inside[producer] = self._hull(producer, inside)
            if producer == name:
                break
        return inside[name]

    def _hull(self, producer: str, readers: dict[str, Turns]) -> Turns:
        sizes, found = self.group.operator(producer).sizes, None
        for link in self.group.readers(producer):
            if link.reader not in readers:
                continue
            boxes, count = needed(link, sizes, readers[link.reader]), len(readers[link.reader])
            some = filled(boxes) & filled(readers[link.reader])
            boxes = Turns({d: np.where(some, boxes.low[d], size) for d, size in sizes.items()},
                          {d: np.where(some, boxes.end[d], 0) for d in sizes})
            found = boxes if found is None else Turns(
                {d: np.minimum(found.low[d], boxes.low[d]) for d in sizes},
                {d: np.maximum(found.end[d], boxes.end[d]) for d in sizes})
        if found is None:
            count = len(next(iter(readers.values())))
            return Turns({d: np.zeros(count, np.int64) for d in sizes}, {d: np.zeros(count, np.int64) for d in sizes})
        return found

    def runs(self, name: str) -> Turns:
        """Return the boxes of all runs of an operator: one of all of it, or those that happen of what runs again."""
        again = self.runs_again(name)
        if again is None:
            return turns_of(self.group.operator(name).sizes, ())
        found = self.turns(name, again)
        return found.at(np.flatnonzero(filled(found)))

    def around(self, names: Iterable[str]) -> FusedNode:
        """Return the smallest node that holds operators."""
        paths = [self._paths[name] for name in names]
        return next(node for node in reversed(paths[0]) if all(node in path for path in paths))

    def time(self, name: str, node: FusedNode) -> Integers:
        """Return the iteration of ``node`` in which each turn of an operator runs, in their order."""
        again = self.runs_again(name)
        leader = name if again is None else again.last
        if leader == node.last:
            return np.arange(len(self.turns(leader, node)), dtype=np.int64)
        if (leader, id(node)) not in self._times:
            tiles = self._tiles(leader, node)
            self._times[leader, id(node)] = self._made(leader, node, tiles)[np.argsort(tiles.code, axis=None)]
        return self._times[leader, id(node)]

    def _tiles(self, name: str, node: FusedNode) -> _Tiles:
        return _Tiles(self.group.operator(name).sizes,
                      tuple((loop.dimension, loop.step) for loop in self.shared(name, node)))

    def _made(self, name: str, node: FusedNode, tiles: _Tiles) -> Integers:
        """Return the iteration of ``node`` in which each tile of an operator is made, flat over its grid."""
        codes = tiles.code.ravel()
        found = np.full(len(codes), len(self.turns(node.last, node)) - 1, dtype=np.int64)
        for link in self.group.readers(name):
            if link.reader in node.names:
                boxes = needed(link, self.group.operator(name).sizes, self.turns(link.reader, node))
                reach = np.maximum.accumulate(np.where(filled(self.turns(link.reader, node)),
                                                       tiles.last_needed(boxes), -1))
                first = np.searchsorted(reach, codes)
                times = np.append(self.time(link.reader, node), np.iinfo(np.int64).max)
                found = np.minimum(found, times[first])
        return found

    @cached_property
    def held_words(self) -> dict[str, HeldWords]:
        """Words held of each intermediate tensor, by its producer."""
        return {operator.name: self._held_words(operator) for operator in self.group.operators
                if self.group.readers(operator.name)}

    def _held_words(self, operator: Operator) -> HeldWords:
        name, axes = operator.name, operator.output.dimensions
        if self.runs_again(name) is not None:
            boxes = self.runs(name)
            words = prod((boxes.extents(d) for d in axes), start=np.ones(len(boxes), dtype=np.int64))
            return HeldWords(int(words.max(initial=0)), 0)
        links = self.group.readers(name)
        node = self.around([name, *(link.reader for link in links)])
        tiles = self._tiles(name, node)
        made = self._made(name, node, tiles)
        gone = made.copy()
        for link in links:
            readers = self.turns(link.reader, node)
            some = np.flatnonzero(filled(readers))
            boxes = needed(link, operator.sizes, readers.at(some))
            gone = np.maximum(gone, tiles.latest(boxes, self.time(link.reader, node)[some]).ravel())
        words, end = tiles.words(axes).ravel(), int(gone.max()) + 2
        change = np.zeros((2, end), dtype=np.int64)
        for row, until in zip(change, (gone + 1, gone), strict=True):
            np.add.at(row, made, words)
            np.add.at(row, until, -words)
        most, staying = np.cumsum(change, axis=1).max(axis=1).tolist()
        return HeldWords(most, staying)
