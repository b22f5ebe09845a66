"""One boundary walked visit by visit, under any `Conventions`: what each lane is sent, what its parent is asked.

Tiles are plain sets of words. Lanes and visits are tuples of loop indices, so that every assumption can be stated in a
line or two; nothing here is fast.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod

from tilewright.base import InputError
from tilewright.cost.reference.conventions import Conventions
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping import Mapping
from tilewright.workload import Operator, Tensor

Lane = tuple[int, ...]
Words = frozenset[tuple[int, ...]]
Centre = tuple[float, ...]
SIDES = ("X", "Y")
NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1))
VISIT_BUDGET = 3_000_000
"""Words of tiles that one boundary may bring up over all lanes and visits."""


@dataclass(frozen=True)
class PlainLoop:
    """A loop: position of its level, dimension, extent of the tile just inside, nominal count, side of the array."""

    level: int
    dimension: str
    step: int
    count: int
    side: str | None
    ragged: bool


@dataclass(frozen=True)
class PlainNest:
    """A mapping as a list of loops, outermost first; the compute unit comes after the last level."""

    operator: Operator
    accelerator: Accelerator
    loops: tuple[PlainLoop, ...]

    @classmethod
    def of(cls, operator: Operator, accelerator: Accelerator, mapping: Mapping) -> "PlainNest":
        """Return the loops of a mapping that covers every dimension."""
        loops, extents = [], dict(operator.sizes)
        for at, (level, entry) in enumerate(zip(accelerator.levels, mapping.levels, strict=True)):
            for loop in entry.loops:
                extent, step = extents[loop.dimension], min(loop.step, extents[loop.dimension])
                if step < extent:
                    side = loop.axis or "X" if isinstance(level, Fanout) else None
                    loops.append(PlainLoop(at, loop.dimension, step, -(-extent // step), side, extent % step > 0))
                extents[loop.dimension] = step
        return cls(operator, accelerator, tuple(loops))

    @property
    def ragged(self) -> bool:
        """Whether some steps do not divide."""
        return any(loop.ragged for loop in self.loops)

    def outside(self, level: int) -> list[PlainLoop]:
        """Return the loops outside a level."""
        return [loop for loop in self.loops if loop.level < level]

    def lanes(self, level: int) -> int:
        """Return the nominal number of instances of a level in use."""
        return prod(loop.count for loop in self.outside(level) if loop.side)


@dataclass
class Crossing:
    """Words over one boundary.

    Parameters
    ----------
    sent
        Words that each lane of the child is sent (or sends back, for outputs).
    asked
        Words read from (or written to) each instance of the parent.
    unlinked
        The same in all, if no lane got its words from a neighbour.
    linked
        Words that lanes got from neighbours, in all.
    lanes, parents
        Nominal numbers of instances.
    combines
        Whether lanes that add to the same outputs reach the parent apart, so that it combines them.
    """

    lanes: int
    parents: int
    combines: bool = False
    sent: dict[Lane, int] = field(default_factory=lambda: defaultdict(int))
    asked: dict[Lane, int] = field(default_factory=lambda: defaultdict(int))
    unlinked: int = 0
    linked: int = 0


@dataclass
class _History:
    """What one lane held last: its words, their centre, the index of the visit, and how it last moved."""

    words: Words
    centre: Centre
    advance: Lane
    move: tuple[int, ...] | None = None


class BoundaryWalk:
    """The boundary of a tensor between the levels ``parent`` and ``child``.

    Raises
    ------
    InputError
        If there are too many words to walk.
    """

    def __init__(self, nest: PlainNest, tensor: Tensor, parent: int, child: int, conventions: Conventions) -> None:
        self.nest, self.tensor, self.parent, self.child, self.on = nest, tensor, parent, child, conventions
        self.loops = nest.outside(child)
        self.times = [loop for loop in self.loops if loop.side is None]
        self.spaces = [loop for loop in self.loops if loop.side is not None]
        self.at_compute = child == len(nest.accelerator.levels)
        self.advancing = len(self.times)
        while not self.at_compute and self.advancing and (
                self.times[self.advancing - 1].dimension not in tensor.dimensions):
            self.advancing -= 1
        self.apart = [loop for loop in self.spaces if loop.level > parent and not self._merges(loop)]
        self.lanes = list(product(*(range(loop.count) for loop in self.spaces)))
        self.groups = {lane: self._group(lane) for lane in self.lanes}
        self.places = {lane: self._place(lane) for lane in self.lanes}
        self.lane_at = {place: lane for lane, place in self.places.items()}
        self.links = conventions.neighbour_links and self._fully_used()
        self._check_size()

    def _check_size(self) -> None:
        visits = prod(min(loop.count, 2) if self._extrapolated(loop) else loop.count for loop in self.times)
        sizes = dict(self.nest.operator.sizes) | {loop.dimension: loop.step for loop in self.loops}
        tile = prod(1 + sum(c * (sizes[d] - 1) for d, c in axis.terms) for axis in self.tensor.axes)
        if visits * len(self.lanes) * tile > VISIT_BUDGET:
            raise InputError(self.nest.operator.name, f"must bring up at most {VISIT_BUDGET} words to be replayed",
                             visits * len(self.lanes) * tile, "Replay a smaller layer with the same loops")

    def _extrapolated(self, loop: PlainLoop) -> bool:
        return self.on.extrapolation and not loop.ragged and loop.count > 2

    def _merges(self, loop: PlainLoop) -> bool:
        """Whether lanes along a loop share what they are sent, or add up what they send back."""
        fanout = self.nest.accelerator.levels[loop.level]
        assert isinstance(fanout, Fanout)
        if not (fanout.reduce if self.tensor.is_output else fanout.multicast):
            return False
        return self.on.identical_tile_multicast or not self._broken(loop)

    def _broken(self, loop: PlainLoop) -> bool:
        """Whether, along a sliding axis, the tiles of a loop's lanes do not abut (rule 4)."""
        sliding = {d for axis in self.tensor.axes if len(axis.terms) > 1 for d in axis.dimensions}
        inside = self.loops[self.loops.index(loop) + 1:]
        between = [other for other in inside if other.dimension == loop.dimension]
        return loop.dimension in sliding and any(other.side is None or not self._merges(other) for other in between)

    def _group(self, lane: Lane) -> Lane:
        """Return what the parent tells apart: its own instance, and lanes that do not merge."""
        return tuple(index for loop, index in zip(self.spaces, lane, strict=True)
                     if loop.level < self.parent or loop in self.apart)

    def _instance(self, lane: Lane) -> Lane:
        return tuple(index for loop, index in zip(self.spaces, lane, strict=True) if loop.level < self.parent)

    def _place(self, lane: Lane) -> tuple[Lane, int, int]:
        """Return a lane's parent and its place in the array."""
        place = {"X": 0, "Y": 0}
        for loop, index in zip(self.spaces, lane, strict=True):
            if loop.level > self.parent and loop.side:
                place[loop.side] = place[loop.side] * loop.count + index
        return self._instance(lane), place["X"], place["Y"]

    def _fully_used(self) -> bool:
        """Whether no memory is passed and every instance in between has work; only then there are links."""
        for at in range(self.parent + 1, self.child):
            level = self.nest.accelerator.levels[at]
            if not isinstance(level, Fanout):
                return False
            used = tuple(prod(loop.count for loop in self.spaces if loop.level == at and loop.side == side)
                         for side in SIDES)
            if used != level.shape:
                return False
        return True

    def walk(self) -> Crossing:
        """Walk all visits."""
        outputs = {d for axis in self.tensor.axes if len(axis.terms) == 1 for d in axis.dimensions}
        crossing = Crossing(len(self.lanes), self.nest.lanes(self.parent), self.tensor.is_output and any(
            loop.dimension not in outputs for loop in self.apart))
        history: dict[Lane, _History] = {}
        before: dict[Lane, Words] = {}
        for visit, weight in self._visits():
            sent = {}
            for lane in self.lanes:
                tile = self._tile(visit, lane)
                if tile is not None:
                    sent[lane] = self._sent(tile, history, self._number(visit, lane), visit)
            self._charge(crossing, sent, before, weight)
            before = sent
        return crossing

    def lanes_of_first_parent(self) -> list[Lane]:
        """Return the lanes behind the parent's first instance."""
        return [lane for lane in self.lanes if not any(self._instance(lane))]

    def tile_words(self, lane: Lane) -> int:
        """Return how many words a lane holds at its first visit, 0 where it has no work."""
        tile = self._tile((0,) * len(self.times), lane)
        return 0 if tile is None else len(tile[0])

    def _visits(self) -> Iterator[tuple[Lane, int]]:
        """Yield the indices of the temporal loops at each visit that is walked, and for how many it stands."""
        ranges = [((0, 1), (1, loop.count - 1)) if self._extrapolated(loop) else
                  tuple((index, 1) for index in range(loop.count)) for loop in self.times]
        for pairs in product(*ranges):
            yield tuple(index for index, _ in pairs), prod(weight for _, weight in pairs)

    def _tile(self, visit: Lane, lane: Lane) -> tuple[Words, Centre] | None:
        """Return the words of a tile and their centre; None where the iteration does not happen (rule 7)."""
        low, extent = dict.fromkeys(self.nest.operator.sizes, 0), dict(self.nest.operator.sizes)
        times, spaces = iter(visit), iter(lane)
        for loop in self.loops:
            start = next(times if loop.side is None else spaces) * loop.step
            low[loop.dimension] += start
            extent[loop.dimension] = min(loop.step, extent[loop.dimension] - start)
            if extent[loop.dimension] < 1:
                return None
        axes, centre = [], []
        for axis in self.tensor.axes:
            first = sum(c * low[d] for d, c in axis.terms)
            last = sum(c * (low[d] + extent[d] - 1) for d, c in axis.terms)
            centre.append((first + last) / 2)
            boxes = tuple((c, extent[d]) for d, c in axis.terms)
            axes.append((first, last - first + 1 if self.on.hull_footprint else boxes))
        return _words(tuple(axes)), tuple(centre)

    def _number(self, visit: Lane, lane: Lane) -> Lane:
        """Return the lane whose last tile this lane's is compared with."""
        if not (self.on.ragged_lane_renumbering and self.nest.ragged):
            return lane
        number, extents = 0, dict(self.nest.operator.sizes)
        times, spaces = iter(visit), iter(lane)
        for loop in self.loops:
            index = next(times if loop.side is None else spaces)
            if loop.side is not None:
                number = number * -(-extents[loop.dimension] // loop.step) + index
            extents[loop.dimension] = min(loop.step, extents[loop.dimension] - index * loop.step)
        return (number,)

    def _sent(self, tile: tuple[Words, Centre], history: dict[Lane, _History], lane: Lane, visit: Lane) -> Words:
        """Return the words that come in with a tile (rules 2 and 3, or the window carried over)."""
        words, centre = tile
        last = history.get(lane)
        advance = visit[:self.advancing]
        if self.at_compute or last is None:
            history[lane] = _History(words, centre, advance)
            return words
        if self.on.carried_window:
            return self._carried(words, centre, last)
        new = words
        if advance == last.advance:
            new = frozenset()
        elif not self.tensor.is_output and advance[:-1] == last.advance[:-1] and advance[-1] == last.advance[-1] + 1:
            new = words - last.words
        history[lane] = _History(words, centre, advance)
        return new

    @staticmethod
    def _carried(words: Words, centre: Centre, last: _History) -> Words:
        move = tuple(_rounded(to - since) for to, since in zip(centre, last.centre, strict=True))
        moved = any(move)
        whole = moved and last.move not in (None, move)
        new = words if whole else words - last.words
        last.words, last.centre = words, centre
        if moved:
            last.move = None if whole else move
        return new

    def _charge(self, crossing: Crossing, sent: dict[Lane, Words], before: dict[Lane, Words], weight: int) -> None:
        """Add one visit's words to the lanes and to their parents."""
        merged: dict[tuple[Lane, Words], list[Lane]] = defaultdict(list)
        for lane, words in sent.items():
            crossing.sent[lane] += weight * len(words)
            if words:
                merged[self.groups[lane], words].append(lane)
        asking: dict[Lane, tuple[Lane, set[tuple[int, ...]]]] = {}
        for (group, words), lanes in merged.items():
            instance = self._instance(lanes[0])
            together = asking.setdefault(group, (instance, set()))[1]
            alone = len(words) if self.on.identical_tile_multicast else len(words - together)
            crossing.unlinked += weight * alone
            if self.links and all(self._from_neighbour(lane, words, before) for lane in lanes):
                crossing.linked += weight * len(words) * len(lanes)
            else:
                crossing.asked[instance] += weight * alone
                together |= words

    def _from_neighbour(self, lane: Lane, words: Words, before: dict[Lane, Words]) -> bool:
        instance, x, y = self.places[lane]
        neighbours = (self.lane_at.get((instance, x + dx, y + dy)) for dx, dy in NEIGHBOURS)
        return any(near is not None and before.get(near) == words for near in neighbours)


@lru_cache(maxsize=1 << 14)
def _words(axes: tuple[tuple[int, int | tuple[tuple[int, int], ...]], ...]) -> Words:
    """Return all words of a tile: along each axis, from ``first``, a whole range or the sums of strided ranges."""
    coordinates = []
    for first, boxes in axes:
        if isinstance(boxes, int):
            coordinates.append(range(first, first + boxes))
        else:
            values = {first}
            for stride, extent in boxes:
                values = {value + stride * index for value in values for index in range(extent)}
            coordinates.append(sorted(values))  # type: ignore[arg-type]
    return frozenset(product(*coordinates))


def _rounded(shift: float) -> int:
    """Round halves away from zero."""
    return int(abs(shift) + 0.5) * (1 if shift > 0 else -1)
