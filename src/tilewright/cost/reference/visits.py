"""One boundary walked visit by visit, under any `Conventions`: what each lane is sent, what its parent is asked.

Tiles are plain sets of words. Lanes and visits are tuples of loop indices, so that every assumption can be stated in a
line or two; nothing here is fast.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import prod

from tilewright.base import InputError
from tilewright.cost.reference.conventions import Conventions
from tilewright.cost.reference.plain import PlainLoop, PlainNest
from tilewright.hardware import Fanout
from tilewright.workload import Tensor

Lane = tuple[int, ...]
Words = frozenset[tuple[int, ...]]
Centre = tuple[float, ...]
SIDES = ("X", "Y")
NEIGHBOURS = ((1, 0), (-1, 0), (0, 1), (0, -1))
SPARED = 2
"""Iterations of a loop that are always walked."""
VISIT_BUDGET = 3_000_000
"""Words of tiles that one boundary may bring up over all lanes and visits."""


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

    def times(self, copies: int) -> "Crossing":
        """Return what so many parents and their lanes move, that of one being known."""
        return replace(self, sent={lane: words * copies for lane, words in self.sent.items()},
                       asked={place: words * copies for place, words in self.asked.items()},
                       unlinked=self.unlinked * copies, linked=self.linked * copies)


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
        self.copies = conventions.copied_lanes and nest.ragged
        self._check_size()

    def _check_size(self) -> None:
        visits = prod(len(self._steps(loop, loop.count)) for loop in self.times)
        sizes = dict(self.nest.operator.sizes) | {loop.dimension: loop.step for loop in self.loops}
        tile = prod(1 + sum(c * (sizes[d] - 1) for d, c in axis.terms) for axis in self.tensor.axes)
        if visits * len(self.lanes) * tile > VISIT_BUDGET:
            raise InputError(self.nest.operator.name, f"must bring up at most {VISIT_BUDGET} words to be replayed",
                             visits * len(self.lanes) * tile, "Replay a smaller layer with the same loops")

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
        for index, weight in self._visits():
            visit = tuple(index[loop] for loop in self.times)
            sent = self._copied(index, visit, history) if self.copies else {
                lane: self._sent(tile, history, self._number(visit, lane), visit)
                for lane in self.lanes if (tile := self._tile(visit, lane)) is not None}
            self._charge(crossing, sent, before, weight, self._shares(visit))
            before = sent
        return crossing.times(crossing.parents) if self.copies else crossing

    def _copied(self, index: dict[PlainLoop, int], visit: Lane, history: dict[Lane, _History]) -> dict[Lane, Words]:
        """Return what the lanes of the first parent are sent: what the first lane is, moved to their places."""
        first = (0,) * len(self.spaces)
        tile = self._tile(visit, first)
        assert tile is not None, "the first lane works as long as any does"
        words = self._sent(tile, history, first, visit)
        return {lane: _moved(words, self._shift(lane)) for lane in self._round(index, self.spaces)}

    def _round(self, index: dict[PlainLoop, int], spaces: list[PlainLoop]) -> Iterator[Lane]:
        """Yield the lanes of the first parent that work in a round."""
        if not spaces:
            yield ()
            return
        loop = spaces[0]
        for at in range(1 if loop.level < self.parent else self.nest.left(loop, index)):
            for rest in self._round({**index, loop: at}, spaces[1:]):
                yield (at, *rest)

    def _shift(self, lane: Lane) -> tuple[int, ...]:
        """Return how far a lane's words lie from the first lane's, along each axis."""
        low = dict.fromkeys(self.nest.operator.sizes, 0)
        for loop, at in zip(self.spaces, lane, strict=True):
            low[loop.dimension] += at * loop.step
        return tuple(sum(c * low[d] for d, c in axis.terms) for axis in self.tensor.axes)

    def lanes_of_first_parent(self) -> list[Lane]:
        """Return the lanes behind the parent's first instance."""
        return [lane for lane in self.lanes if not any(self._instance(lane))]

    def tile_words(self, lane: Lane) -> int:
        """Return how many words a lane holds at its first visit, 0 where it has no work."""
        tile = self._tile((0,) * len(self.times), lane)
        return 0 if tile is None else len(tile[0])

    def _visits(self, loops: list[PlainLoop] | None = None,
                index: dict[PlainLoop, int] | None = None) -> Iterator[tuple[dict[PlainLoop, int], int]]:
        """Yield the index of each temporal loop at each visit that is walked, and how many it is charged as."""
        loops, index = self.times if loops is None else loops, index or {}
        if not loops:
            yield index, 1
            return
        loop = loops[0]
        runs = self.nest.left(loop, index) if self.on.extrapolation or self.copies else loop.count
        for at, weight in self._steps(loop, runs):
            for inside, rest in self._visits(loops[1:], {**index, loop: at}):
                yield inside, weight * rest

    def _steps(self, loop: PlainLoop, runs: int) -> list[tuple[int, int]]:
        """Return the iterations that are walked, and how many each is charged as."""
        if not self.on.extrapolation or runs <= SPARED:
            return [(at, 1) for at in range(runs)]
        if not self.nest.remains(loop):
            return [(0, 1), (1, runs - 1)]
        own = [other for other in self.times if other.level == self.parent]
        charged = not own or loop is not own[-1] or any(other.level > self.parent for other in self.spaces)
        return [(0, 1), (1, runs - 1 - charged), (runs - 1, int(charged))]

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
        for index, weight in self._visits():
            visit = tuple(index[loop] for loop in self.times)
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
        handed = {lane for (_, words), lanes in merged.items() for lane in lanes
                  if self.links and self._from_neighbour(lane, words, before)}
        spared = {self._instance(lanes[0]) for lanes in merged.values() if handed.issuperset(lanes)}
        crossing.linked += weight * sum(len(sent[lane]) for lane in handed if self._instance(lane) in spared)
        asking: dict[Lane, set[tuple[int, ...]]] = defaultdict(set)
        for (group, words), lanes in merged.items():
            together = asking[group]
            own = self.on.identical_tile_multicast or not shares
            alone = len(words) if own else len(words - together)
            crossing.unlinked += weight * alone
            if not handed.issuperset(lanes):
                crossing.asked[self._instance(lanes[0])] += weight * alone
                together |= words

    def _from_neighbour(self, lane: Lane, words: Words, before: dict[Lane, Words]) -> bool:
        instance, x, y = self.places[lane]
        neighbours = (self.lane_at.get((instance, x + dx, y + dy)) for dx, dy in NEIGHBOURS)
        return any(near is not None and before.get(near) == words for near in neighbours)


def _moved(words: Words, shift: tuple[int, ...]) -> Words:
    """Return words moved by so much along each axis."""
    if not any(shift):
        return words
    return frozenset(tuple(at + by for at, by in zip(word, shift, strict=True)) for word in words)


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
