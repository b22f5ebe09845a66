"""Runs of operations in tiles one inside the other, so that a product is read soon after it is made, and stays.

A run cuts the results of its operations along one axis each (rows, tokens, heads) into as many parts, and each part is
made as late as those after it allow: depth first. Weights stay until the last part of their operation. Where all that
lives at one time fits, a run moves what it reads from outside, and what is read outside, once, and nothing else. A
shortest path over the operations takes the runs, and operations tiled by themselves, that move least by that estimate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, inf

from tilewright.allocation.problem import OperationStep, Pad, ResidentTensor
from tilewright.allocation.tiles import MOST_TILES, Key, OperationTiles, PlacedTile, TensorSlices, TileChoice, sliced

PARTS_OF_RUNS = (1, 2, 4, 7, 8, 14, 16, 28, 32, 56)
FILLED, PIECES = 0.85, 3
"""Share of the scratchpads that a run may fill, which leaves room between addresses; and slices of weights that one
scratchpad holds at least."""


@dataclass(frozen=True)
class _Span:
    """Where the parts of an operation touch a tensor: first and end along one axis, by part; all of it without one."""

    axis: int | None
    ends: tuple[tuple[int, int], ...]
    writes: bool


class _Parts:
    """An operation cut along the first axis of its result that is no channel of an image, into at most so many."""

    def __init__(self, operation: OperationTiles, parts: int, room: int) -> None:
        loops = operation.loops
        channels = 1 if len(loops.shape) == 4 else len(loops.shape) - 1
        axis = next((at for at, size in enumerate(loops.shape) if size > 1 and at != channels), None)
        along = 1 if axis is None else loops.shape[axis]
        chunks: dict[Key, int] = {axis: ceil(along / parts)} if axis is not None and parts > 1 else {}
        rows = [loops.touches(places) for places in loops.tiles(chunks, tuple(chunks))]
        self.count = len(rows)
        self.spans: dict[int, _Span] = {}
        for row in zip(*rows, strict=False):
            span = _span(loops.slices, [one.box for one in row], row[0].tensor, row[0].writes)
            before = self.spans.get(row[0].tensor)
            self.spans[row[0].tensor] = span if before is None else _Span(
                None, ((0, loops.slices.tensors[row[0].tensor].size_bytes),) * self.count, before.writes or span.writes)
        self.regular = _equal(along, parts) and all(
            [one.tensor for one in row] == [one.tensor for one in rows[0]] for row in rows)
        weights = max((loops.slices.bytes(one) for one in rows[0] if loops.slices.tensors[one.tensor].weights),
                      default=0)
        if weights > room and loops.operator is not None and channels < len(loops.shape):
            size = loops.shape[channels]
            most = max(1, size * room // weights)
            chunks[channels] = next((one for one in range(most, most // 2, -1) if size % one == 0), most)
        self.chunks, self.operation = chunks, operation

    def tiles(self) -> list[list[PlacedTile]]:
        """Return the tiles of each part."""
        sizes = self.operation.loops.sizes
        many = any(chunk < sizes.get(key, 1) for key, chunk in self.chunks.items())
        found = self.operation.tiles(TileChoice(0, 2 if many else 1, tuple(self.chunks), self.chunks))
        each = iter(found)
        return [list(islice(each, len(found) // self.count)) for _ in range(self.count)]


def _equal(size: int, parts: int) -> bool:
    """Whether so many parts are equal, or single places; or none of `PARTS_OF_RUNS` are.

    Slices of one size take each other's place, so that less room is lost between addresses.
    """
    return parts >= size or size % parts == 0 or all(size % one for one in PARTS_OF_RUNS[1:])


def _span(slices: TensorSlices, boxes: Sequence[tuple[tuple[int, int], ...]], tensor: int, writes: bool) -> _Span:
    size, differ = slices.tensors[tensor].size_bytes, [
        axis for axis in range(len(boxes[0])) if len({box[axis] for box in boxes}) > 1]
    if len(differ) != 1:
        return _Span(None, ((0, size),) * len(boxes), writes)
    unit = size / slices.shapes[tensor][differ[0]]
    return _Span(differ[0], tuple((int(box[differ[0]][0] * unit), ceil((box[differ[0]][1] + 1) * unit))
                                  for box in boxes), writes)


class _Run:
    """Some operations one after the other, all in parts."""

    def __init__(self, parts: Sequence[_Parts]) -> None:
        self.parts, self.done = parts, [0] * len(parts)
        self.touching: dict[int, list[int]] = {}
        for at, one in enumerate(parts):
            for tensor in one.spans:
                self.touching.setdefault(tensor, []).append(at)
        self.maker = {tensor: next((at for at in users if parts[at].spans[tensor].writes), None)
                      for tensor, users in self.touching.items()}
        self.along = {tensor: len({parts[at].spans[tensor].axis for at in users if parts[at].count > 1}) == 1
                      for tensor, users in self.touching.items()}

    @property
    def allowed(self) -> bool:
        """Whether each tensor is written by one operation at most, before all that read it, and parts are alike."""
        return all(one.regular for one in self.parts) and all(
            sum(self.parts[at].spans[tensor].writes for at in users) < 2
            and self.maker[tensor] in (None, users[0]) for tensor, users in self.touching.items())

    def order(self) -> Iterator[tuple[int, int]]:
        """Give operations and their parts, depth first."""
        self.done = [0] * len(self.parts)
        for at, one in reversed([*enumerate(self.parts)]):
            while self.done[at] < one.count:
                yield from self._emit(at)

    def _emit(self, at: int) -> Iterator[tuple[int, int]]:
        part = self.done[at]
        for tensor, span in self.parts[at].spans.items():
            maker = self.maker[tensor]
            if maker is None or maker == at:
                continue
            need = span.ends[part][1] if self.along[tensor] and span.axis is not None else inf
            while self.done[maker] < self.parts[maker].count and self._made(tensor, maker) < need:
                yield from self._emit(maker)
        yield at, part
        self.done[at] += 1

    def _made(self, tensor: int, maker: int) -> float:
        span, done = self.parts[maker].spans[tensor], self.done[maker]
        return span.ends[done - 1][1] if done and span.axis is not None else 0

    def peak(self, most: float) -> float:
        """Return the bytes that live at one time, or the first that are above ``most``."""
        found = 0.0
        for at, part in self.order():
            found = max(found, sum(self._living(tensor, at, part) for tensor in self.touching))
            if found > most:
                break
        return found

    def _living(self, tensor: int, now: int, part: int) -> float:
        low, high = inf, 0.0
        for at in self.touching[tensor]:
            ends, done = self.parts[at].spans[tensor].ends, self.done[at]
            if at == now:
                high = max(high, ends[part][1])
            elif done:
                high = max(high, ends[done - 1][1])
            if done < len(ends):
                low = min(low, ends[done][0] if self.along[tensor] else 0)
        return max(0.0, high - low)


def interleaved(slices: TensorSlices, operations: Sequence[OperationTiles], pads: Sequence[Pad],
                ) -> tuple[tuple[ResidentTensor, ...], tuple[OperationStep, ...]] | None:
    """Return slices and tiles of the runs that move least by estimate; None where tiles would be too many."""
    count, room = len(operations), FILLED * sum(pad.capacity_bytes for pad in pads)
    piece = min(pad.capacity_bytes for pad in pads) // PIECES
    users: dict[int, list[int]] = {}
    for at, one in enumerate(operations):
        for tensor in one.step.touches:
            users.setdefault(tensor, []).append(at)
    best: list[tuple[float, int, int]] = [(0.0, 0, 0), *[(inf, 0, 0)] * count]
    """By operation: what those before it move, where the last run began, and its parts; 0 for one by itself."""
    cut = {parts: [_Parts(one, parts, piece) for one in operations] for parts in PARTS_OF_RUNS}
    ends = {parts: _ends(cut[parts], room) for parts in PARTS_OF_RUNS}
    for first in range(count):
        choice, touches = operations[first].choice, operations[first].step.touches
        alone = choice.traffic if choice.tiles > 1 else sum(slices.tensors[one].size_bytes for one in touches)
        best[first + 1] = min(best[first + 1], (best[first][0] + alone, first, 0))
        for parts, last in ((parts, ends[parts][first]) for parts in PARTS_OF_RUNS):
            for end in range(first + 1, last + 1):
                moved = best[first][0] + _outside(slices, operations, users, first, end)
                best[end] = min(best[end], (moved, first, parts))
    runs, at = [], count
    while at:
        runs.append((best[at][1], at, best[at][2]))
        at = best[at][1]
    made: list[PlacedTile] = []
    for first, end, parts in reversed(runs):
        if not parts:
            made += operations[first].tiles()
            continue
        run = _Run(cut[parts][first:end])
        tiles = [one.tiles() for one in run.parts]
        made += [tile for which, part in run.order() for tile in tiles[which][part]]
    return sliced(slices, made) if len(made) <= MOST_TILES else None


def _ends(parts: Sequence[_Parts], room: float) -> list[int]:
    """Return for each operation the end of the longest run that begins there and fits; its own place for none."""
    found: list[int] = []
    for first in range(len(parts)):
        end = max(first, found[-1] if found else 0)
        while end < len(parts):
            run = _Run(parts[first:end + 1])
            if not run.allowed or run.peak(room) > room:
                break
            end += 1
        found.append(end)
    return found


def _outside(slices: TensorSlices, operations: Sequence[OperationTiles], users: dict[int, list[int]], first: int,
             end: int) -> int:
    """Return the bytes that a run reads from outside and that are read outside."""
    moved = 0
    for tensor in {one for operation in operations[first:end] for one in operation.step.touches}:
        mine, held = users[tensor], slices.tensors[tensor]
        comes = held.outside or mine[0] < first
        goes = held.leaves or (mine[-1] >= end and not held.outside and any(
            tensor in one.step.writes for one in operations[first:end]))
        moved += held.size_bytes * (comes + goes)
    return moved
