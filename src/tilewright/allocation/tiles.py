"""Operations whose tensors cannot be on scratchpads together, as sequences of tiles over slices (thesis, figure 6.1).

A tile makes a box of an operation's result, from those parts of what it reads that links of axes tell. Its loops are
the axes of the result and, of a multiply-accumulate operator, the dimensions that it sums over: tiles that differ in
these add to one box of partial sums. All tiles that touch a tensor cut it, and words that the same tiles touch are one
slice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations, product
from math import ceil, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.allocation.problem import OperationStep, Pad, ResidentTensor, fits
from tilewright.base import InputError
from tilewright.workload import ROLES, AxisLink, DataMovement, MacNode, Role, TensorGraph

MOST_TILES = 8_000
"""Steps of all operations together."""
WINDOW = 16
"""Dimensions up to this size that are summed over (windows, images' channels) are cut only where nothing else does."""
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
"""Of a loop, besides single places."""
TILE = " #"
"""Between the name of an operation or of a tensor, and the number of a tile or a slice of it."""
SLICE_BYTES = 1024
"""What the estimate takes for each slice beside its words, so that there are few where bytes are alike."""

Key: TypeAlias = int | str
Loops: TypeAlias = Sequence[tuple[str, int]]
"""Dimensions, and how many places of each the tile inside a loop over it has; outermost loop first."""
Given: TypeAlias = Mapping[str, Sequence[Loops]]
"""By operation, the loops of its mapping at each level, outermost first."""
View: TypeAlias = tuple[AxisLink, ...]
Range: TypeAlias = tuple[int, int]
"""First and last place, both included."""
Box: TypeAlias = tuple[Range, ...]


@dataclass(frozen=True)
class SliceTouch:
    """A box of a tensor that has bytes of its own, read or written by a tile."""

    tensor: int
    box: Box
    writes: bool


@dataclass(frozen=True)
class PlacedTile:
    """A tile of an operation: its name (``conv1 #2``), its share of the operation, and what it touches."""

    name: str
    step: OperationStep
    share: float
    touches: tuple[SliceTouch, ...]


def _seen(view: View | None, at: Mapping[Key, Range], shape: Sequence[int]) -> Box:
    """Return the least box around what places see of a tensor; all of it where that is not known."""
    found = []
    for axis, size in enumerate(shape):
        low, high = (0, size - 1) if view is None else (view[axis].offset, view[axis].offset)
        for digit in () if view is None else view[axis].digits:
            first, last = (place // digit.divisor for place in at[digit.axis])
            wraps = last - first + 1 >= digit.extent or first % digit.extent > last % digit.extent
            ends = (0, digit.extent - 1) if wraps else (first % digit.extent, last % digit.extent)
            low += min(digit.stride * end for end in ends)
            high += max(digit.stride * end for end in ends)
        found.append((max(low, 0), min(high, size - 1)))
    return tuple(found)


def _words(box: Box) -> int:
    return prod(max(0, last - first + 1) for first, last in box)


def _places(box: Box) -> dict[Key, Range]:
    return dict(enumerate(box))


def _all(shape: Sequence[int]) -> Box:
    return tuple((0, size - 1) for size in shape)


class TensorSlices:
    """The tensors of a network that have bytes of their own, and how they are cut."""

    def __init__(self, network: TensorGraph, tensors: Sequence[ResidentTensor]) -> None:
        self.network, self.tensors = network, list(tensors)
        self.places = {tensor.name: at for at, tensor in enumerate(tensors)}
        self.shapes = [network.tensors[tensor.name].shape or () for tensor in tensors]

    def bytes(self, touch: SliceTouch) -> int:
        """Bytes of a box, rounded up."""
        whole = self.tensors[touch.tensor].size_bytes
        return ceil(whole * _words(touch.box) / prod(self.shapes[touch.tensor]))

    def role(self, touch: SliceTouch) -> Role:
        """Return what it is to the tile."""
        return "weights" if self.tensors[touch.tensor].weights else "outputs" if touch.writes else "inputs"

    def held(self, name: str, box: Box, writes: bool = False) -> SliceTouch:
        """Return the box of the tensor whose bytes a view shares."""
        tensor = self.network.tensors[name]
        if tensor.storage == name:
            return SliceTouch(self.places[name], box, writes)
        edges, around = self.network.edges[tensor.producer], self.network.tensors
        source = next((one for one in edges.reads if around[one.tensor].storage == tensor.storage), None)
        made = next(one for one in edges.makes if one.name == name)
        if source is None or source.view is None or made.view is None:
            at = self.places[tensor.storage]
            return SliceTouch(at, _all(self.shapes[at]), writes)
        space = edges.space or tensor.shape or ()
        inner = _seen(made.view, _places(box), space[:len(made.view)])
        seen = _places((*inner, *_all(space)[len(inner):]))
        return self.held(source.tensor, _seen(source.view, seen, around[source.tensor].shape or ()), writes)

    def gathered(self, table: str, shape: Sequence[int]) -> int:
        """Return a new tensor: the rows of a table that a gather brings in, one for each that it makes."""
        old = self.tensors[self.places[table]]
        rows = ceil(old.size_bytes * prod(shape) / self.network.tensors[table].words)
        self.tensors.append(replace(old, name=f"{table}.rows {len(self.tensors)}", size_bytes=rows))
        self.shapes.append(tuple(shape))
        return len(self.tensors) - 1


class TileLoops:
    """What an operation runs over: its tiles touch boxes of what it reads and makes."""

    def __init__(self, node: str, slices: TensorSlices, pads: Sequence[Pad]) -> None:
        self.slices, self.node = slices, slices.network.nodes[node]
        self.edges, tensors = slices.network.edges[node], slices.network.tensors
        self.shape = tensors[self.edges.makes[0].name].shape or () if self.edges.makes else ()
        self.operator = self.node.operator if isinstance(self.node, MacNode) and self.node.count == 1 else None
        self.summed: dict[Key, int] = {} if self.operator is None else {
            name: size for name, size in self.operator.sizes.items()
            if size > 1 and name not in self.operator.output.dimensions}
        self.gathers: dict[str, int] = {}
        for read in self.edges.reads:
            tensor = tensors[read.tensor]
            if isinstance(self.node, DataMovement) and tensor.kind == "weights" and read.view is None and (
                    slices.tensors[slices.places[tensor.storage]].size_bytes > max(pad.capacity_bytes for pad in pads)):
                self.gathers[read.tensor] = slices.gathered(tensor.storage, self.shape)

    @property
    def sizes(self) -> dict[Key, int]:
        """Size of each loop: axes of the result by place, and what is summed over by name."""
        return {axis: size for axis, size in enumerate(self.shape) if size > 1} | self.summed

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What decides its tiles."""
        tensors = self.slices.network.tensors
        return (type(self.node), self.operator and self.operator.signature, self.shape, self.edges.space,
                tuple((one.view, tensors[one.tensor].shape, tensors[one.tensor].kind, one.tensor in self.gathers,
                       tensors[one.tensor].word_bits) for one in self.edges.reads),
                tuple((one.view, tensors[one.name].shape, tensors[one.name].word_bits) for one in self.edges.makes))

    def _dimensions(self, at: Mapping[Key, Range]) -> dict[Key, Range]:
        """Return the places along the dimensions of the node for a tile."""
        made = self.edges.makes[0].view if self.edges.makes else None
        results: dict[Key, Range] = {axis: at.get(axis, (0, size - 1)) for axis, size in enumerate(self.shape)}
        if self.operator is None:
            space = self.edges.space or self.shape
            inner = _seen(made, results, space[:len(made or ())])
            return _places((*inner, *_all(space)[len(inner):]))
        operator = self.operator
        found: dict[Key, Range] = {name: at.get(name, (0, size - 1)) for name, size in operator.sizes.items()}
        inner = _seen(made, results, [axis.words(operator.sizes, box=True) for axis in operator.output.axes])
        found.update((axis.terms[0][0], ends) for axis, ends in zip(operator.output.axes, inner, strict=True)
                     if len(axis.terms) == 1)
        return found

    def given(self, steps: Loops) -> "TileChoice":
        """Return the tiling inside some loops over dimensions of the operator, each in the place of its outermost."""
        assert self.operator is not None
        whole, inside = self.operator.sizes, dict(steps)
        ranks = {name: rank for rank, name in reversed([*enumerate(name for name, _ in steps)])}
        chunks, cut = dict[Key, int](), list[tuple[int, Key]]()
        for key, size in self.sizes.items():
            one = self._dimensions({key: (0, 0)})
            names = [name for name, step in inside.items()
                     if step < whole[name] and one[name][1] - one[name][0] + 1 < whole[name]]
            chunks[key] = min((max(1, size * inside[name] // whole[name]) for name in names), default=size)
            if names:
                cut.append((min(ranks[name] for name in names), key))
        order = tuple(key for _, key in sorted(cut, key=lambda one: one[0]))
        return TileChoice(0, prod(ceil(self.sizes[key] / chunks[key]) for key in order), order, chunks)

    def touches(self, at: Mapping[Key, Range]) -> list[SliceTouch]:
        """Return what a tile touches, given its places along the loops that are cut."""
        slices, tensors, found = self.slices, self.slices.network.tensors, list[SliceTouch]()
        results = tuple(at.get(axis, (0, size - 1)) for axis, size in enumerate(self.shape))
        dimensions = self._dimensions(at)
        for read in self.edges.reads:
            view, seen, shape = read.view, dimensions, tensors[read.tensor].shape or ()
            if isinstance(self.node, MacNode):
                tensor = self.operator and next((t for t in self.operator.operands if t.name == read.name), None)
                view = view if tensor else None
                seen = {place: (sum(by * dimensions[name][0] for name, by in axis.terms),
                                sum(by * dimensions[name][1] for name, by in axis.terms))
                        for place, axis in enumerate(tensor.axes)} if tensor else {}
            if read.tensor in self.gathers:
                found.append(SliceTouch(self.gathers[read.tensor], results, False))
            else:
                found.append(slices.held(read.tensor, _seen(view, seen, shape)))
        for made in self.edges.makes:
            shape = tensors[made.name].shape or ()
            found.append(slices.held(made.name, results if shape == self.shape else _all(shape), True))
        return [touch for touch in dict.fromkeys(found) if _words(touch.box)]

    def tiles(self, chunks: Mapping[Key, int], order: Sequence[Key]) -> Iterator[dict[Key, Range]]:
        """Give the places of all tiles, the last loop of ``order`` innermost."""
        sizes = self.sizes
        for starts in product(*(range(0, sizes[one], chunks[one]) for one in order)):
            yield {one: (start, min(start + chunks[one], sizes[one]) - 1)
                   for one, start in zip(order, starts, strict=True)}


@dataclass(frozen=True)
class TileChoice:
    """How an operation is tiled: places of each loop in a tile, loops outermost first, and an estimate of bytes."""

    traffic: int
    tiles: int
    order: tuple[Key, ...]
    chunks: Mapping[Key, int]


def _choices(loops: TileLoops, keys: Sequence[Key], room: int, most: Mapping[Role, int]) -> list[TileChoice]:
    """Return tilings whose typical tile may fit, by the bytes that move if only what the next tile touches stays."""
    sizes = loops.sizes
    whole = loops.touches({})
    moves: dict[tuple[Key, int], bool] = {}
    """Whether a tensor's box changes along a loop, where that is known."""
    for key in keys:
        first, *others = (loops.touches({key: (at, at)}) for at in (0, sizes[key] // 2, sizes[key] - 1))
        if all(len(each) == len(whole) for each in (first, *others)):
            moves |= {(key, place): any(each[place] != one for each in others) for place, one in enumerate(first)}
    found = []
    for chosen in product(*(sorted({ceil(sizes[key] / part) for part in (*PARTS, sizes[key])}) for key in keys)):
        chunks = dict(zip(keys, chosen, strict=True))
        parts = {key: ceil(sizes[key] / chunk) for key, chunk in chunks.items()}
        if prod(parts.values()) > MOST_TILES:
            continue
        cut = [key for key in keys if parts[key] > 1]
        typical = loops.touches({key: (chunks[key], min(2 * chunks[key], sizes[key]) - 1) for key in cut})
        bytes_ = [loops.slices.bytes(one) for one in typical]
        if sum(bytes_) > room or any(
                size > most[loops.slices.role(one)] for size, one in zip(bytes_, typical, strict=True)):
            continue
        best = None
        for order in permutations(cut):
            traffic = SLICE_BYTES * sum(prod(parts[key] for key in cut if moves.get((key, place), True))
                                        for place in range(len(typical)))
            for place, (size, one) in enumerate(zip(bytes_, typical, strict=True)):
                inner = max((at for at, key in enumerate(order) if moves.get((key, place), True)), default=-1)
                spilled = bool(one.writes) and any(key in loops.summed for key in order[:inner + 1])
                traffic += size * prod(parts[key] for key in order[:inner + 1]) * (2 if spilled else 1)
            if best is None or traffic < best.traffic:
                best = TileChoice(traffic, prod(parts.values()), order, chunks)
        assert best is not None
        found.append(best)
    return sorted(found, key=lambda one: (one.traffic, one.tiles))


def _fits(slices: TensorSlices, node: str, touches: Sequence[SliceTouch], pads: Sequence[Pad]) -> bool:
    """Whether the boxes of a tile fit on scratchpads together; an `InputError` where none may hold one of them."""
    boxes = list(dict.fromkeys((one.tensor, one.box) for one in touches))
    held = [ResidentTensor(str(at), slices.bytes(SliceTouch(*box, False)), slices.tensors[box[0]].weights)
            for at, box in enumerate(boxes)]
    reads, writes = (tuple(boxes.index((one.tensor, one.box)) for one in touches if one.writes == wanted)
                     for wanted in (False, True))
    return fits(OperationStep(node, reads, writes), held, pads)


def _chosen(loops: TileLoops, pads: Sequence[Pad]) -> TileChoice | None:
    """Return the tiling that moves least by estimate, of those whose tiles all fit; None where there is none."""
    slices, name = loops.slices, loops.node.name
    most: dict[Role, int] = {role: max((pad.capacity_bytes for pad in pads if role in pad.roles), default=0)
                             for role in ROLES}
    if _fits(slices, name, loops.touches({}), pads):
        return TileChoice(0, 1, (), {})
    every = list(loops.sizes)
    first = [key for key in every if not (key == 3 if isinstance(key, int) else loops.sizes[key] <= WINDOW)]
    for keys in dict.fromkeys((tuple(first), tuple(every))):
        for one in _choices(loops, keys, sum(pad.capacity_bytes for pad in pads), most):
            if _all_fit(loops, one, pads):
                return one
    return None


def _mapped(loops: TileLoops, levels: Sequence[Loops], pads: Sequence[Pad]) -> TileChoice | None:
    """Return the tiling inside the loops of so many levels that tiles fit; None where those inside all do not."""
    for count in range(len(levels) + 1):
        found = loops.given([loop for level in levels[:count] for loop in level])
        if found.tiles <= MOST_TILES and _all_fit(loops, found, pads):
            return found
    return None


def _all_fit(loops: TileLoops, choice: TileChoice, pads: Sequence[Pad]) -> bool:
    return all(_fits(loops.slices, loops.node.name, touches, pads) for touches in {
        tuple(loops.slices.bytes(touch) for touch in touches): touches
        for touches in map(loops.touches, loops.tiles(choice.chunks, choice.order))}.values())


@dataclass(frozen=True)
class OperationTiles:
    """An operation, what it runs over, and how it is tiled where it runs by itself."""

    step: OperationStep
    loops: TileLoops
    choice: TileChoice

    def tiles(self, choice: TileChoice | None = None) -> list[PlacedTile]:
        """Return its tiles, in order."""
        choice, sizes = choice or self.choice, self.loops.sizes
        found = []
        for at, places in enumerate(self.loops.tiles(choice.chunks, choice.order)):
            share = prod((last - first + 1) / sizes[key] for key, (first, last) in places.items())
            name = f"{self.step.name}{TILE}{at}" if choice.tiles > 1 else self.step.name
            found.append(PlacedTile(name, self.step, share, tuple(self.loops.touches(places))))
        return found


def tilings(slices: TensorSlices, steps: Sequence[OperationStep], pads: Sequence[Pad], given: Given,
            ) -> list[OperationTiles]:
    """Return how each operation is tiled where it runs by itself, some inside the loops that are ``given``.

    Raises an `InputError` if not even the finest tile fits, of its mapping where that is given, or there are more than
    `MOST_TILES` steps.
    """
    name, known = slices.network.name, dict[object, TileChoice | None]()
    found: list[OperationTiles] = []
    count = 0
    for step in steps:
        loops = TileLoops(step.name, slices, pads)
        mapped = given.get(step.name) if loops.operator is not None else None
        key = loops.key, str(mapped)
        if key not in known:
            known[key] = _chosen(loops, pads) if mapped is None else _mapped(loops, mapped, pads)
        choice = known[key]
        if choice is None:
            raise InputError(f"{name}.{step.name}", "must have tiles whose tensors fit on scratchpads together",
                             ", ".join(f"{pad.capacity_bytes:,}" for pad in pads), "Enlarge the scratchpads" + (
                                 "" if mapped is None else ", or map for an accelerator whose buffers hold less"))
        count += choice.tiles
        if count > MOST_TILES:
            raise InputError(f"{name}.{step.name}", f"must have at most {MOST_TILES:,} tiles with those before",
                             count, "Enlarge the scratchpads")
        found.append(OperationTiles(step, loops, choice))
    return found


def sliced(slices: TensorSlices, made: Sequence[PlacedTile],
           ) -> tuple[tuple[ResidentTensor, ...], tuple[OperationStep, ...]]:
    """Return slices and tiles instead of tensors and operations: words that the same tiles touch are one slice.

    Slices are called by the name of the tensor and a number. Cycles of an operation are shared by words made.
    """
    ends = [[{0, size} for size in shape] for shape in slices.shapes]
    for tile in made:
        for one in tile.touches:
            for axis, (first, last) in enumerate(one.box):
                ends[one.tensor][axis] |= {first, last + 1}
    lines = [[np.array(sorted(axis)) for axis in each] for each in ends]
    labels = [np.zeros([len(axis) - 1 for axis in each], dtype=np.int64) for each in lines]
    count = [1] * len(labels)

    def cells(one: SliceTouch) -> tuple[slice, ...]:
        return tuple(slice(*np.searchsorted(axis, (first, last + 1)).tolist())
                     for axis, (first, last) in zip(lines[one.tensor], one.box, strict=True))

    for one in (touch for tile in made for touch in tile.touches):
        part = labels[one.tensor][cells(one)]
        old, new = np.unique(part, return_inverse=True)
        labels[one.tensor][cells(one)] = new.reshape(part.shape) + count[one.tensor]
        count[one.tensor] += len(old)
    held, places = list[ResidentTensor](), list[dict[int, int]]()
    for tensor, each, axes in zip(slices.tensors, labels, lines, strict=True):
        words: NDArray[np.float64] = np.ones(())
        for cuts in axes:
            words = np.multiply.outer(words, np.diff(cuts))
        found = [label for label in np.unique(each).tolist() if label]
        share = tensor.size_bytes / words.sum()
        places.append({label: len(held) + at for at, label in enumerate(found)})
        sizes = [ceil(round(share * words[each == label].sum(), 6)) for label in found]
        held += [replace(tensor, name=tensor.name if len(found) == 1 else f"{tensor.name}{TILE}{at}", size_bytes=size)
                 for at, size in enumerate(sizes)]
    steps = []
    spent = dict[str, float]()
    for tile in made:
        step, before = tile.step, spent.get(tile.step.name, 0.0)
        spent[step.name] = before + tile.share
        reads, writes = (tuple(dict.fromkeys(
            places[one.tensor][label] for one in tile.touches if one.writes == wanted
            for label in np.unique(labels[one.tensor][cells(one)]).tolist())) for wanted in (False, True))
        cycles = round(step.cycles * spent[step.name]) - round(step.cycles * before)
        steps.append(OperationStep(tile.name, reads, writes, cycles, step.energy_pj * tile.share))
    return tuple(held), tuple(steps)
