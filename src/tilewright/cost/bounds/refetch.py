"""What memories of limited capacity must fetch again: the least traffic over all tiles that fit and all loop orders.

A *stage* is everything that crosses into one memory m. From the counting rules, for a tile of extents e at m:

- *Pieces.* Each instance of m holds at most e_d of dimension d, so that all loops in time and space outside m cut d
  into at least ceil(size / e_d) pieces; a rest only makes more. Lanes that share words behind a fan-out count as one
  piece: of n pieces, l lanes leave at least n / l (the first lane's piece is the largest and has the most parts).
- *Visits.* If the innermost loop in time outside m runs over a dimension that tensor t uses, all loops advance t's tile
  (rule 2), and each of its words comes once for each piece of the dimensions that t does not use. If t does not use it,
  t may be fetched as little as once. So the tensors that need not be fetched again are those that some one dimension
  leaves in place: the least over dimensions is a bound, whatever the order.
- *Passing.* A tensor that m does not keep comes from the same parent to a child further in. Loops inside m can only
  make more pieces and later ones advance; it is fetched at least as often as if m kept it, at no cost of room there.
  It stays in place only if no loop in time between m and its child is over a dimension that it uses: then the children
  of an instance of m hold all of its tile there. Compute holds nothing from step to step.
- *Windows.* Words that carry over along a sliding axis (rule 3) are in no way assumed to be fetched again: of every
  axis all words come at least once for each piece of the dimensions that the tensor does not use.
- *Lanes.* Those that share words of t are along dimensions that t does not use; all of them together are at most the
  instances of the fan-outs between. How many go to which tensor is relaxed to real numbers, and the least over them
  bounded from below by Lagrange's dual, where any multiplier is right and a poor one merely weaker.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.groups import Tiles, tiles_of
from tilewright.cost.bounds.rows import Floats, MachineRows
from tilewright.cost.bounds.rules import Extents, LoopsOutside
from tilewright.hardware import Fanout
from tilewright.workload import Operator, Tensor

_HALVINGS, _FEW = 9, 2048
"""Halvings of the multiplier's logarithm, and sums that are raised sooner than it is told which need not be."""
ROOM = 1 + 1e-9

Ways = tuple[NDArray[np.intp], Floats]
"""Rows (w), and how often tensors are fetched there (t, w)."""


@dataclass(frozen=True)
class Lanes:
    """Instances between a memory and its parents, by row: all, and by tensor those that can share its words."""

    total: NDArray[np.int64]
    each: Floats
    """(r), (t, r)."""


@dataclass(frozen=True)
class MemoryStage:
    """Tiles that fit one memory, as cells of `Tiles`; cells that another fitting cell beats are left out."""

    row: NDArray[np.intp]
    first: NDArray[np.intp]
    """(w) the row of each way to fetch, (r) the first way of each row: a cell and a kind of innermost loop."""
    often: Floats
    """(t, w) how often tensors are fetched at least."""
    lanes: Lanes

    def least(self, merged: Floats, received: Floats) -> Floats:
        """Return (s, r) the least of sums over tensors for pairs of weights (s, t, r).

        ``merged`` weighs how often the tensor's words cross the parent's port, ``received`` how often they come to the
        instances; both count 1 where every word comes once. What all lanes serve every tensor for is below each sum;
        it is raised to `_dual` first at the least way of each row, then only where it is below what was found there.
        """
        row, often = self.row, self.often
        shares, room, excess = self._shares
        plain = _weighted(received, row, often) + _weighted(merged, row, often / shares)
        found: Floats = np.minimum.reduceat(plain, self.first, axis=1)
        if not excess.any():
            return found

        def raise_at(sums: NDArray[np.intp], ways: NDArray[np.intp]) -> None:
            rows, most = row[ways], shares[:, ways]
            costs = merged[sums, :, rows].T * often[:, ways]
            plain[sums, ways] += np.maximum(0.0, _dual(costs, most, room[ways]) - (costs / most).sum(axis=0))

        left = np.broadcast_to(excess, plain.shape).copy()
        if plain.size > _FEW:
            sums, ways = np.nonzero(plain == found[:, row])
            chosen = np.diff(sums * len(self.first) + row[ways], prepend=-1) != 0
            sums, ways = sums[chosen], ways[chosen]
            raise_at(sums[excess[ways]], ways[excess[ways]])
            left[sums, ways] = False
            sure = np.minimum.reduceat(np.where(left, np.inf, plain), self.first, axis=1)
            left &= plain < sure[:, row]
        raise_at(*np.nonzero(left))
        return np.minimum.reduceat(plain, self.first, axis=1)

    @cached_property
    def _shares(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Among how many lanes (t, w) words may be shared, room for all (w), and where these are too many together."""
        shares, room = np.minimum(self.often, self.lanes.each[:, self.row]), np.log(self.lanes.total)[self.row]
        return shares, room, np.log(shares).sum(axis=0) > room + 1e-12


def _weighted(weights: Floats, row: NDArray[np.intp], often: Floats) -> Floats:
    """Return (s, w) sums over tensors of weights (s, t, r), by the row of each way, times ``often`` (t, w)."""
    total = np.zeros((len(weights), len(row)))
    for tensor, each in enumerate(often):
        if weights[:, tensor].any():
            total += weights[:, tensor, row] * each
    return total


def _dual(costs: Floats, most: Floats, room: Floats) -> Floats:
    """Return (...) a lower bound on the sum of costs / l over 1 <= l <= ``most`` whose logarithms sum to ``room``.

    ``costs`` and ``most`` are by tensor, (t, ...).
    """
    least = np.where(costs > 0, costs / most, np.inf).min(axis=0)
    low = np.log(np.where(np.isfinite(least), least, 1.0))
    high = np.log(np.maximum(costs.max(axis=0), np.exp(low)))
    logs, tops = np.log(np.maximum(costs, 1e-300)), np.log(most)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        over = np.minimum(np.maximum(logs - middle, 0.0), tops).sum(axis=0) > room
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    lanes = np.clip(logs - high, 0.0, tops)
    bound = (costs * np.exp(-lanes)).sum(axis=0) + np.exp(high) * (lanes.sum(axis=0) - room)
    found: Floats = np.maximum(bound, (costs / most).sum(axis=0))
    return found


@dataclass(frozen=True)
class StageTraits:
    """What decides, of a machine and of what keeps the tensors, how often a memory is to fetch them."""

    lanes: Lanes
    rooms: list[tuple[dict[str, float], Floats]]
    held: dict[str, Floats]

    @cached_property
    def key(self) -> Hashable:
        """All of it on the first row."""
        rooms = tuple((tuple(bits.items()), float(most[0])) for bits, most in self.rooms)
        return (rooms, int(self.lanes.total[0]), tuple(self.lanes.each[:, 0].tolist()),
                tuple((tensor, float(most[0])) for tensor, most in self.held.items()))


@dataclass(frozen=True)
class Stages:
    """The stages of an operator on machines whose memories keep ``chains``: by tensor, outermost first."""

    operator: Operator
    rows: MachineRows
    chains: dict[str, tuple[str, ...]]
    perfect: bool = False

    @cached_property
    def tiles(self) -> Tiles:
        """Cells and words of tiles, the same at every memory."""
        return tiles_of(self.operator, self.perfect)

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of every level."""
        return {level.name: index for index, level in enumerate(self.rows.machine.levels)}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names of the stages: memories, but the outermost, that keep anything."""
        kept = {name for chain in self.chains.values() for name in chain[1:]}
        return tuple(memory.name for memory in self.rows.machine.memories if memory.name in kept)

    def parent(self, tensor: str, name: str) -> str:
        """Return the memory from which a tensor comes to, or passes, memory ``name``; that itself outside its home."""
        return [name, *(keeper for keeper in self.chains[tensor] if self.places[keeper] < self.places[name])][-1]

    @cached_property
    def by_name(self) -> dict[str, MemoryStage]:
        """Every stage."""
        return {name: self._known_stage(name) for name in self.order}

    @cached_property
    def _traits(self) -> dict[tuple[str, tuple[tuple[str, ...], ...]], "StageTraits"]:
        """What is asked of memories by what keeps the tensors: the same for all layers whose tensors are alike."""
        return self.rows.once((self.operator.tensors, "traits"), dict)

    def _known_stage(self, name: str) -> MemoryStage:
        """Return a stage; of one machine it is made once for all chains where the memory keeps the same."""
        place = name, tuple(self.chains[tensor.name] for tensor in self.operator.tensors)
        if place not in self._traits:
            self._traits[place] = StageTraits(self._lanes(name), self.rows.rooms(name, [
                tensor for tensor in self.operator.tensors if name in self.chains[tensor.name]]), self._held(name))
        traits, allowed = self._traits[place], None if self.rows.rules is None else self.rows.rules.stage(name)
        if self.rows.count > 1:
            return self._stage(traits, allowed)
        return self.tiles.once((allowed, traits.key), lambda: self._stage(traits, allowed))

    def _stage(self, traits: "StageTraits", allowed: LoopsOutside | None) -> MemoryStage:
        lanes, rooms, held = traits.lanes, traits.rooms, traits.held
        fits = np.ones((self.rows.count, *(len(group.least) for group in self.tiles.groups)), dtype=np.bool_)
        for bits, most in rooms:
            fits &= self._within(sum(self.tiles.by_tensor[name] * each for name, each in bits.items()), most * 8)
        if allowed is not None:
            fits &= self._extending(allowed.widest, widest=True)
        flat = fits.reshape(self.rows.count, -1)
        flat[:, 0] |= ~flat.any(axis=1)
        found = []
        for kind, large in self._kinds(held, allowed):
            there = fits & large
            for tensor, rests in zip(self.operator.tensors, kind, strict=True):
                if rests and tensor.name in held:
                    there = there & self._within(self.tiles.by_tensor[tensor.name], held[tensor.name])
            found.append(self._cuts(np.unravel_index(np.flatnonzero(_highest(there)), fits.shape), kind))
        if not any(len(row) for row, _ in found):
            found = [self._cuts(np.nonzero(_highest(fits)), (True,) * len(self.operator.tensors))]
        rows, often = zip(*found, strict=True)
        row = np.concatenate(rows)
        order = np.argsort(row, kind="stable")
        return MemoryStage(row[order], np.searchsorted(row[order], np.arange(self.rows.count)),
                           np.concatenate(often, axis=1)[:, order], lanes)

    def _within(self, taken: Any, most: Floats) -> NDArray[np.bool_]:
        """Return (r, ...) the cells that take no more than ``most`` (r)."""
        found: NDArray[np.bool_] = taken <= (most * ROOM).reshape(-1, *[1] * len(self.tiles.groups))
        return found

    def _kinds(self, held: dict[str, Floats],
               allowed: LoopsOutside | None) -> list[tuple[tuple[bool, ...], NDArray[np.bool_]]]:
        """Return which tensors are left in place by each kind of innermost loop, those ``held`` further in or not.

        And the cells (1, ...) that it leaves: all but where rules say that other loops must not run.
        """
        names = [tensor.name for tensor in self.operator.tensors]
        every = np.ones([1] * (1 + len(self.tiles.groups)), dtype=np.bool_)
        if allowed is None:
            kinds = dict.fromkeys(self.tiles.once("resting", lambda: resting(self.operator)), every)
        else:
            kinds = {}
            for dim, least in allowed.starts:
                kind = tuple(dim not in tensor.dimensions for tensor in self.operator.tensors)
                kinds[kind] = kinds.get(kind, ~every) | self._extending(least, widest=False)
        return [(way, large) for kind, large in sorted(kinds.items(), key=lambda each: each[0]) for way in sorted(
            set(product(*({False, rests and bool(held[name].any())} if name in held else {rests}
                          for name, rests in zip(names, kind, strict=True)))))]

    def _extending(self, extents: Extents, *, widest: bool) -> NDArray[np.bool_]:
        """Return (1, ...) the cells that may have extents of so much and more, or of so much and less (``widest``)."""
        known, found = dict(extents), np.ones([1] * (1 + len(self.tiles.groups)), dtype=np.bool_)
        for place, group in enumerate(self.tiles.groups):
            limit = prod(known[name] for name in group.dimensions)
            own = group.least <= limit if widest else np.append(group.least[1:], np.inf) > limit
            found = found & own.reshape(1, *(len(own) if at == place else 1 for at in range(len(self.tiles.groups))))
        return found

    def _held(self, name: str) -> dict[str, Floats]:
        """Return (r) the words of each tensor that passes a memory which an instance of that has room for further in.

        Those of compute are none.
        """
        found = {}
        for tensor in self.operator.tensors:
            chain = self.chains[tensor.name]
            further = [keeper for keeper in chain if self.places[keeper] > self.places[name]]
            if name not in chain and further != [*chain]:
                found[tensor.name] = self._words(tensor, name, further[0]) if further else np.zeros(self.rows.count)
        return found

    def _words(self, tensor: Tensor, outside: str, name: str) -> Floats:
        """Return (r) the words of a tensor that a memory has room for in one instance of one ``outside``."""
        words = np.full(self.rows.count, np.inf)
        between = self.rows.machine.levels[self.places[outside]:self.places[name]]
        for bits, room in self.rows.rooms(name, [tensor]):
            instances = self.rows.lanes(level for level in between if isinstance(level, Fanout))
            words = room * 8 * instances / bits[tensor.name]
        return words

    def _cuts(self, cells: tuple[NDArray[np.intp], ...], resting: tuple[bool, ...]) -> Ways:
        """Return how often tensors are fetched in some cells, by row and group, if some of them rest."""
        names = [tensor.name for tensor in self.operator.tensors]
        moving = [place for place, group in enumerate(self.tiles.groups) if not resting[names.index(group.tensor)]]
        shape = self.rows.count, *(len(self.tiles.groups[place].least) for place in moving)
        different = np.zeros(shape, dtype=np.bool_)
        different[cells[0], *(cells[1 + place] for place in moving)] = True
        row, *chosen = np.unravel_index(np.flatnonzero(different), shape)
        often = np.ones((len(names), len(row)))
        for place, cell in zip(moving, chosen, strict=True):
            often[names.index(self.tiles.groups[place].tensor)] = self.tiles.groups[place].pieces[cell]
        return row, often

    def _lanes(self, name: str) -> Lanes:
        total, each = np.ones(self.rows.count, dtype=np.int64), []
        for tensor in self.operator.tensors:
            first = self.places[self.parent(tensor.name, name)]
            between = self.rows.machine.levels[first:self.places[name]]
            arrays = [level for level in between if isinstance(level, Fanout)]
            total = np.maximum(total, self.rows.lanes(arrays))
            each.append(self.rows.sharing(tensor, arrays, sliding=False))
        return Lanes(total, np.array(each, dtype=np.float64))


def resting(operator: Operator) -> list[tuple[bool, ...]]:
    """Return which tensors are left in place by each kind of innermost loop."""
    kinds = {tuple(dim not in tensor.dimensions for tensor in operator.tensors)
             for dim, size in operator.dimensions if size > 1}
    return sorted(kinds) or [(False,) * len(operator.tensors)]


def _highest(fits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the cells (r, ...) that fit and of which no neighbour one cell further along one group does."""
    surpassed = np.zeros_like(fits)
    for axis in range(1, fits.ndim):
        np.moveaxis(surpassed, axis, 0)[:-1] |= np.moveaxis(fits, axis, 0)[1:]
    found: NDArray[np.bool_] = fits & ~surpassed
    return found
