"""One boundary walked visit by visit, under any `Conventions`: what each lane is sent, what its parent is asked.

Tiles are sets of words. Lanes and visits are tuples of loop indices, so that every assumption can be stated in a
line or two; nothing here is fast.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from tilewright.base import InputError
from tilewright.cost.reference.conventions import Conventions
from tilewright.cost.reference.nest import WalkedLoop, WalkedNest
from tilewright.cost.reference.words import Boxes, Words, joined, moved, strided, without
from tilewright.hardware import Fanout
from tilewright.workload import Tensor

Lane = tuple[int, ...]
Centre = tuple[float, ...]
Spot = tuple[Lane, int]
SIDES = ("X", "Y")
SPARED = 2
"""Iterations of a loop that are always walked."""
VISIT_BUDGET = 3_000_000
"""Words of tiles, or whole tiles where they are boxes, that one boundary may bring up over all lanes and visits."""


@dataclass
class Crossing:
    """Words over one boundary, of all instances."""

    parents: int
    """Nominal instances of the parent."""
    combines: bool = False
    """Whether lanes that add to the same outputs reach the parent apart, so that it combines them."""
    sent: Fraction = Fraction(0)
    """Words that the lanes of the child are sent (or send back, for outputs)."""
    asked: Fraction = Fraction(0)
    """Words read from (or written to) the parent."""
    linked: Fraction = Fraction(0)
    """Words that lanes got from neighbours."""


@dataclass
class _History:
    """What one lane held last: its words, their centre, the index of the visit, and how it last moved."""

    words: Words
    centre: Centre
    advance: Lane
    move: tuple[int, ...] | None = None


class BoundaryWalk:
    """The boundary of a tensor between the levels ``parent`` and ``child``.

    Raises an `InputError` if there are too many words to walk.
    """

    def __init__(self, nest: WalkedNest, tensor: Tensor, parent: int, child: int, conventions: Conventions) -> None:
        self.nest, self.tensor, self.parent, self.child, self.on = nest, tensor, parent, child, conventions
        self.loops = nest.outside(child)
        self.times = [loop for loop in self.loops if loop.side is None]
        self.spaces = [loop for loop in self.loops if loop.side is not None]
        self.at_compute = child == len(nest.accelerator.levels)
        self.advancing = len(nest.advancing(tensor, child))
        self.between = [loop for loop in self.spaces if loop.level >= parent]
        self.apart = nest.apart(tensor, parent, child, overlapping=not conventions.identical_tile_multicast)
        self.lanes = list(product(*(range(loop.count) for loop in self.spaces)))
        self.groups = {lane: self._group(lane) for lane in self.lanes}
        self.instances = {lane: self._instance(lane) for lane in self.lanes}
        self.shifts = {lane: self._shift(lane) for lane in self.lanes} if conventions.copied_lanes else {}
        self.ragged = any(loop.ragged for loop in nest.loops)
        self.every_round: dict[Lane, Spot] = {}
        self.mesh = tuple(prod(level.shape[side] for level in nest.accelerator.levels[parent:child]
                               if isinstance(level, Fanout)) for side in range(2))
        self.inside = parent >= nest.shared and not self.at_compute
        self.cuts = [(loop.side is None, loop.dimension, loop.step, loop.side is None and self._sent_full(loop))
                     for loop in self.loops]
        """How loops cut tiles: whether in time, along which dimension, into what, and whether all count as full."""
        self.copies = conventions.copied_lanes
        self.size = self._size()
        if self.size > VISIT_BUDGET:
            raise InputError(self.nest.operator.name, f"must bring up at most {VISIT_BUDGET} words to be replayed",
                             self.size, "Replay a smaller layer with the same loops")

    def _size(self) -> int:
        """Return the words that the walk brings up, or the tiles where they are boxes."""
        visits = prod(len(self._steps(loop, loop.count, {})) for loop in self.times)
        lanes = self.nest.lanes(self.child) // (self.nest.lanes(self.parent) if self.copies else 1)
        if self.on.hull_footprint:
            return visits * lanes
        sizes = dict(self.nest.operator.sizes) | {loop.dimension: loop.step for loop in self.loops}
        return visits * lanes * self.tensor.words(sizes, box=True)

    def _sent_full(self, loop: WalkedLoop) -> bool:
        """Whether the last tile of a temporal loop counts as a full one (not where lanes take turns)."""
        if not (self.on.full_edge_tiles and self.inside) or self.tensor.is_output:
            return False
        return not self._takes_turns(loop)

    def _takes_turns(self, loop: WalkedLoop) -> bool:
        """Whether a temporal loop only says in how many turns the lanes of the next loop cover its dimension."""
        inner = [other for other in self.nest.inside(loop) if other.level < self.child]
        return bool(inner) and inner[0].side is not None

    def _group(self, lane: Lane) -> Lane:
        """Return what the parent tells apart: its own instance, and lanes that do not merge."""
        return tuple(index for loop, index in zip(self.spaces, lane, strict=True)
                     if loop.level < self.parent or loop in self.apart)

    def _instance(self, lane: Lane) -> Lane:
        return tuple(index for loop, index in zip(self.spaces, lane, strict=True) if loop.level < self.parent)

    def walk(self) -> Crossing:
        """Walk all visits."""
        outputs = {d for axis in self.tensor.axes if len(axis.terms) == 1 for d in axis.dimensions}
        totals = [0, 0, 0]
        for _, weight, charged in self._charges():
            totals = [total + weight * words for total, words in zip(totals, charged, strict=True)]
        parents = self.nest.lanes(self.parent)
        combines = self.tensor.is_output and any(loop.dimension not in outputs for loop in self.apart)
        return Crossing(parents, combines, *(Fraction(total * (parents if self.copies else 1)) for total in totals))

    def _charges(self) -> Iterator[tuple[Lane, int, tuple[int, int, int]]]:
        """Yield the indices of the temporal loops at each visit, how many it is charged as, and what is charged."""
        history: dict[Lane, _History] = {}
        before: dict[Spot, Words] = {}
        for index, weight in self._visits():
            visit = tuple(index[loop] for loop in self.times)
            spots = self._spots(index)
            sent = self._copied(visit, spots, history) if self.copies else {
                lane: self._sent(tile, history, self._number(visit, lane), visit)
                for lane in spots if (tile := self._tile(visit, lane)) is not None}
            handed = self._handed(sent, spots, before) if self.on.neighbour_links else set()
            yield visit, weight, self._charged(sent, handed, self._shares(visit))
            before = {spots[lane]: words for lane, words in sent.items()}

    def _copied(self, visit: Lane, spots: dict[Lane, Spot], history: dict[Lane, _History]) -> dict[Lane, Words]:
        """Return what the lanes of the first parent are sent: what the first lane is, moved to their places."""
        first = (0,) * len(self.spaces)
        tile = self._tile(visit, first)
        assert tile is not None, "the first lane works as long as any does"
        words = self._sent(tile, history, first, visit)
        return {lane: moved(words, self.shifts[lane]) for lane in spots}

    def _spots(self, index: dict[WalkedLoop, int]) -> dict[Lane, Spot]:
        """Return the lanes that work in a round, of the first parent only where lanes are copies, and their spots.

        Lanes of a parent are numbered along the rows of the array, without gaps.
        """
        if self.every_round:
            return self.every_round
        rows = sorted((at for at, loop in enumerate(self.spaces) if loop in self.between),
                      key=lambda at: self.spaces[at].side == "X")
        found = {}
        for steps in self._round(index, self.spaces):
            lane, number = tuple(at for at, _ in steps), 0
            for place in rows:
                at, runs = steps[place]
                number = number * runs + at
            found[lane] = (self.instances[lane], number)
        if not self.ragged:
            self.every_round = found
        return found

    def _round(self, index: dict[WalkedLoop, int],
               spaces: list[WalkedLoop]) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield, for each lane that works in a round, which iteration of each spatial loop it is, and of how many."""
        if not spaces:
            yield ()
            return
        loop = spaces[0]
        runs = self.nest.left(loop, index)
        for at in range(min(runs, 1) if self.copies and loop not in self.between else runs):
            for rest in self._round({**index, loop: at}, spaces[1:]):
                yield ((at, runs), *rest)

    def _shift(self, lane: Lane) -> tuple[int, ...]:
        """Return how far a lane's words lie from the first lane's, along each axis."""
        low = dict.fromkeys(self.nest.operator.sizes, 0)
        for loop, at in zip(self.spaces, lane, strict=True):
            low[loop.dimension] += at * loop.step
        return tuple(sum(c * low[d] for d, c in axis.terms) for axis in self.tensor.axes)

    def lanes_of_first_parent(self) -> list[Lane]:
        """Return the lanes behind the parent's first instance."""
        return [lane for lane in self.lanes if not any(self.instances[lane])]

    def tile_words(self, lane: Lane) -> int:
        """Return how many words a lane holds at its first visit, 0 where it has no work."""
        tile = self._tile((0,) * len(self.times), lane)
        return 0 if tile is None else len(tile[0])

    def _visits(self, loops: list[WalkedLoop] | None = None,
                index: dict[WalkedLoop, int] | None = None) -> Iterator[tuple[dict[WalkedLoop, int], int]]:
        """Yield the index of each temporal loop at each visit that is walked, and how many it is charged as."""
        loops, index = self.times if loops is None else loops, index or {}
        if not loops:
            yield index, 1
            return
        loop = loops[0]
        runs = self.nest.left(loop, index) if self.on.extrapolation or self.copies else loop.count
        for at, weight in self._steps(loop, runs, index):
            for inside, rest in self._visits(loops[1:], {**index, loop: at}):
                yield inside, weight * rest

    def _steps(self, loop: WalkedLoop, runs: int, index: dict[WalkedLoop, int]) -> list[tuple[int, int]]:
        """Return the iterations that are walked, and how many each is charged as.

        Where the last round of a loop inside is smaller, the last iteration is walked, and the one before it too where
        this loop's own last round is smaller. At the memory's innermost loop their words are charged as the second's,
        but for those of a last iteration after one that was walked.
        """
        if not self.on.extrapolation or runs <= SPARED:
            return [(at, 1) for at in range(runs)]
        if not (self.nest.remains(loop) and self.nest.is_last(loop, index)):
            return [(0, 1), (1, runs - 1)]
        charged = int(self.between != [] or loop is not self.times[-1] or loop.level < self.parent)
        if self.nest.remainder(loop) == loop.count:
            return [(0, 1), (1, runs - 1 - charged), (runs - 1, charged)]
        if runs == SPARED + 1:
            return [(at, 1) for at in range(runs)]
        return [(0, 1), (1, runs - 2 - charged), (runs - 2, charged), (runs - 1, 1)]

    def _tile(self, visit: Lane, lane: Lane) -> tuple[Words, Centre] | None:
        """Return the words of a tile and their centre; None where the iteration does not happen (rule 7)."""
        low, extent = dict.fromkeys(self.nest.operator.sizes, 0), dict(self.nest.operator.sizes)
        times, spaces = iter(visit), iter(lane)
        for in_time, dimension, step, full in self.cuts:
            start = next(times if in_time else spaces) * step
            low[dimension] += start
            left = extent[dimension] - start
            if left < 1:
                return None
            extent[dimension] = step if full or step < left else left
        ranges, centre = [], []
        for axis in self.tensor.axes:
            first = last = 0
            for d, c in axis.terms:
                first += c * low[d]
                last += c * (low[d] + extent[d] - 1)
            centre.append((first + last) / 2)
            ranges.append((first, last + 1))
        if self.on.hull_footprint:
            return Boxes((tuple(ranges),)), tuple(centre)
        boxes = (tuple((c, extent[d]) for d, c in axis.terms) for axis in self.tensor.axes)
        return strided(tuple((first, box) for (first, _), box in zip(ranges, boxes, strict=True))), tuple(centre)

    def _number(self, visit: Lane, lane: Lane) -> Lane:
        """Return the lane whose last tile this lane's is compared with."""
        if not (self.on.ragged_lane_renumbering and self.ragged):
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
            new = type(words)()
        elif not self.tensor.is_output and advance[:-1] == last.advance[:-1] and advance[-1] == last.advance[-1] + 1:
            new = without(words, last.words)
        if self._wraps_free(visit):
            new = type(words)()
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
        whole = any(move) and last.move not in (None, move)
        new = words if whole else without(words, last.words)
        last.words, last.centre = words, centre
        if any(move):
            last.move = None if whole else move
        return new

    def by_step(self) -> Iterator[tuple[Lane, Fraction]]:
        """Yield the indices of the temporal loops at each visit, and the words asked of all instances of the parent."""
        for visit, weight, (_, asked, _) in self._charges():
            yield visit, Fraction(weight * asked)

    def _charged(self, sent: dict[Lane, Words], handed: set[Lane], shares: bool) -> tuple[int, int, int]:
        """Return the words that lanes are sent at a visit, those asked of their parents, and those from neighbours.

        ``handed`` are the lanes whose words a neighbour has; ``shares``: overlapping sets once.
        """
        merged: dict[tuple[Lane, Words], list[Lane]] = defaultdict(list)
        for lane, words in sent.items():
            if words:
                merged[self.groups[lane], words].append(lane)
        spared = {self.instances[lanes[0]] for lanes in merged.values() if handed.issuperset(lanes)}
        linked = sum(len(sent[lane]) for lane in handed if self.instances[lane] in spared)
        asked = 0
        asking: dict[Lane, Words] = {}
        own = self.on.identical_tile_multicast or not shares
        for (group, words), lanes in merged.items():
            if not handed.issuperset(lanes):
                alone = words if own else without(words, asking.get(group))
                asked += len(alone)
                if not own:
                    asking[group] = joined(words, asking.get(group))
        return sum(map(len, sent.values())), asked, linked

    def _handed(self, sent: dict[Lane, Words], spots: dict[Lane, Spot], before: dict[Spot, Words]) -> set[Lane]:
        """Return the lanes whose words one of their up to four neighbours was sent at the visit before."""
        across, down = self.mesh
        found = set()
        for lane, words in sent.items():
            instance, number = spots[lane]
            y, x = divmod(number, across)
            near = [number + step for step, there in ((-1, x > 0), (1, x < across - 1), (-across, y > 0),
                                                      (across, y < down - 1)) if there]
            if words and any(before.get((instance, other)) == words for other in near):
                found.add(lane)
        return found


def _rounded(shift: float) -> int:
    """Round halves away from zero."""
    return int(abs(shift) + 0.5) * (1 if shift > 0 else -1)
