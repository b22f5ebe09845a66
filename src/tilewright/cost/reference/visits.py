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

    @property
    def shared(self) -> int:
        """Position of the memory that all arrays share: the last one outside them."""
        levels = self.accelerator.levels
        arrays = [at for at, level in enumerate(levels) if isinstance(level, Fanout) and level.instances > 1]
        outside = [at for at, level in enumerate(levels) if not isinstance(level, Fanout)]
        return max(at for at in outside if at < arrays[0]) if arrays else outside[:-1][-1] if outside[1:] else 0


def lockstep(nest: PlainNest, visit: tuple[int, ...] | None = None) -> int:
    """Return the steps of compute where all lanes wait for the busiest of them, iteration by iteration.

    Parameters
    ----------
    visit
        Indices of the outermost temporal loops, where only the steps inside that iteration count.
    """
    names = [name for name, _ in nest.operator.dimensions]
    known: dict[tuple[int, tuple[int, ...]], int] = {}

    def inside(at: int, extents: tuple[int, ...], chosen: tuple[int, ...]) -> int:
        if at == len(nest.loops):
            return prod(extents)
        if not chosen and (at, extents) in known:
            return known[at, extents]
        loop = nest.loops[at]
        place = names.index(loop.dimension)

        def of(extent: int, rest: tuple[int, ...]) -> int:
            return inside(at + 1, (*extents[:place], extent, *extents[place + 1:]), rest) if extent > 0 else 0

        whole, last = divmod(extents[place], loop.step)
        if chosen and loop.side is None:
            return of(min(loop.step, extents[place] - chosen[0] * loop.step), chosen[1:])
        full, part = of(loop.step, chosen) if whole else 0, of(last, chosen)
        found = max(full, part) if loop.side else whole * full + part
        if not chosen:
            known[at, extents] = found
        return found

    return inside(0, tuple(size for _, size in nest.operator.dimensions), visit or ())


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
        self.inside = parent >= nest.shared and not self.at_compute
        self.filling = [loop for loop in self.times if self._sent_full(loop)]
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

    def _sent_full(self, loop: PlainLoop) -> bool:
        """Whether the last tile of a temporal loop counts as a full one (not where lanes take turns)."""
        if not (self.on.full_edge_tiles and self.inside) or self.tensor.is_output:
            return False
        return not self._takes_turns(loop)

    def _takes_turns(self, loop: PlainLoop) -> bool:
        """Whether a temporal loop only says in how many turns the lanes of the next loop cover its dimension."""
        inner = [other for other in self.loops[self.loops.index(loop) + 1:] if other.dimension == loop.dimension]
        return bool(inner) and inner[0].side is not None

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
            self._charge(crossing, sent, before, weight, self._shares(visit))
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
            left = extent[loop.dimension] - start
            if left < 1:
                return None
            extent[loop.dimension] = loop.step if loop in self.filling else min(loop.step, left)
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
        if self.on.outputs_every_step and self.inside and self.tensor.is_output:
            return words
        if self.on.carried_window:
            return self._carried(words, centre, last)
        new = words
        if advance == last.advance:
            new = frozenset()
        elif not self.tensor.is_output and advance[:-1] == last.advance[:-1] and advance[-1] == last.advance[-1] + 1:
            new = words - last.words
        if self._wraps_free(visit):
            new = frozenset()
        history[lane] = _History(words, centre, advance)
        return new

    def _wraps_free(self, visit: Lane) -> bool:
        """Whether the loop that has stepped forward is none of the tensor's."""
        if not (self.on.free_wrap and self.inside) or self.tensor.is_output:
            return False
        stepped = self._stepped(visit)
        return stepped is not None and self.times[stepped].dimension not in self.tensor.dimensions

    @staticmethod
    def _stepped(visit: Lane) -> int | None:
        """Return which temporal loop has stepped forward: the innermost that is not at its start, None at the first."""
        return max((at for at, index in enumerate(visit) if index), default=None)

    def _shares(self, visit: Lane) -> bool:
        """Whether lanes whose windows overlap are sent shared words once at a visit."""
        if not (self.on.shared_at_restart and self.inside) or self.tensor.is_output:
            return True
        sliding = {d for axis in self.tensor.axes if len(axis.terms) > 1 for d in axis.dimensions}
        stepped = self._stepped(visit)
        for space in self.spaces:
            if space.level > self.parent and space.dimension in sliding:
                turns = [at for at, loop in enumerate(self.times)
                         if loop.dimension == space.dimension and self._takes_turns(loop)]
                if stepped is None or not turns or stepped > turns[-1]:
                    return False
                inside = [loop for loop in self.times[turns[-1] + 1:] if loop.dimension in self.tensor.dimensions]
                if stepped == turns[-1] and inside:
                    return False
        return True

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

    def by_step(self) -> Iterator[tuple[Lane, int]]:
        """Yield the indices of the temporal loops at each visit, and the words asked of all instances of the parent."""
        history: dict[Lane, _History] = {}
        for visit, weight in self._visits():
            crossing = Crossing(len(self.lanes), self.nest.lanes(self.parent))
            sent = {lane: self._sent(tile, history, self._number(visit, lane), visit)
                    for lane in self.lanes if (tile := self._tile(visit, lane)) is not None}
            self._charge(crossing, sent, {}, weight, self._shares(visit))
            yield visit, sum(crossing.asked.values())

    def _charge(self, crossing: Crossing, sent: dict[Lane, Words], before: dict[Lane, Words], weight: int,
                shares: bool) -> None:
        """Add one visit's words to the lanes and to their parents; ``shares``: overlapping sets once."""
        merged: dict[tuple[Lane, Words], list[Lane]] = defaultdict(list)
        for lane, words in sent.items():
            crossing.sent[lane] += weight * len(words)
            if words:
                merged[self.groups[lane], words].append(lane)
        asking: dict[Lane, tuple[Lane, set[tuple[int, ...]]]] = {}
        for (group, words), lanes in merged.items():
            instance = self._instance(lanes[0])
            together = asking.setdefault(group, (instance, set()))[1]
            own = self.on.identical_tile_multicast or not shares
            alone = len(words) if own else len(words - together)
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
