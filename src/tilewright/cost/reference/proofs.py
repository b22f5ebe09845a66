"""Checks that nothing in a space of mappings scores below a claim, here of perfectly tiled ones; a program of its own.

It shares no code with the searches, bounds and engine whose claims it checks, nor their method. Every mapping is split
at the last memory but one (the *neck*): *outer* rows say what happens outside the neck's loops, *inner* rows what
happens inside. Both are listed whole. What crosses a boundary depends on the loops outside alone, so that the words of
outer rows are known, and of inner rows all but what the loops at the neck leave in place. Rows that no other half can
bring below the claim are left out; all pairs of the rest whose tiles divide are counted, for every tensor that may stay
in place at each memory. Counts are exact but for what only the order of several loops, or the sides of arrays, decide:
there the least is taken, so that the few pairs left are written out as mappings, and scored by who asks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np

from tilewright.cost.reference.proof_mappings import mappings_of
from tilewright.cost.reference.proof_rows import Half, Loops, crossing, factors, of_rows
from tilewright.cost.reference.proof_space import (
    EQUAL,
    Edge,
    GivenUp,
    Indices,
    Kept,
    ProofSpace,
    Values,
    WordSums,
    whole,
)
from tilewright.cost.reference.ragged import RaggedProof
from tilewright.cost.reference.ragged_space import RaggedSpace
from tilewright.hardware import Fanout
from tilewright.mapping import Mapping

MOST_ROWS = 30_000_000
MOST_TRIED, SCORED_AT_ONCE = 1_000_000, 2000
MOST_PAIRS = 20_000_000_000
"""Pairs of halves that are looked at for what memories keep, at most: a quarter of an hour."""
CHUNK = 1 << 20
MIX = 0x9E3779B97F4A7C15


@dataclass(eq=False)
class KeptProof:
    """The proof for what memories keep: that no mapping which keeps it scores below ``claim``."""

    space: ProofSpace
    kept: Kept
    claim: float
    known: dict[object, Half]
    """Inner rows by what the last memory keeps."""
    look: Callable[[], None] = lambda: None
    """Called between steps of some seconds at most; may raise `GivenUp`."""

    def __post_init__(self) -> None:
        space = self.space
        self.sums: WordSums = space.sums(self.kept)
        self.edges = self.sums.edges
        self.neck = max(0, len(space.memories) - 2)
        """The last memory but one, or the only one."""
        self.last = len(space.memories) - 1
        self.kinds: list[tuple[bool, ...] | None] = [*dict.fromkeys(space.patterns), None]
        self.count = self.seen = 0
        """Pairs that were counted, and that were looked at."""

    # What a mapping scores, and how much energy may go into one that scores below the claim.

    def score(self, cycles: Any, energy: Any) -> Any:
        """Return scores, leakage counted in."""
        energy = energy + self.space.leak * cycles
        return sum(weight * (cycles if a else 1.0) * (energy if b else 1.0) for weight, a, b in self.space.weights)

    def budget(self, cycles: Any) -> Any:
        """Return the energy at which the score is the claim."""
        fixed = sum(weight * (cycles if a else 1.0) for weight, a, b in self.space.weights if not b)
        slope = sum(weight * (cycles if a else 1.0) for weight, a, b in self.space.weights if b)
        left = self.claim * (1 - EQUAL) - fixed
        if not any(b for *_, b in self.space.weights):
            return np.where(left > 0, np.inf, -np.inf)
        return left / slope - self.space.leak * cycles

    # Rows of both halves.

    def outer(self) -> Half:
        """Return all that the loops outside the neck may be."""
        levels = tuple(range(self.space.places[self.neck]))
        return self._listed(levels, [(self.neck, m) for m in range(1, self.neck + 1)])

    def inner(self) -> Half:
        """Return all that loops inside the neck's may be; where the last memory keeps nothing, it needs none."""
        levels = tuple(range(self.space.places[self.neck] + 1, self.space.places[-1]))
        chains = [self.space.keepers(self.kept, tensor) for tensor in self.space.operator.tensors]
        key = tuple((self.last in chain, chain[0] == self.last) for chain in chains)
        if key not in self.known:
            self.known[key] = self._listed(levels, [(self.last, self.last)] if self.last > self.neck else [])
        return self.known[key]

    def _listed(self, levels: tuple[int, ...], rooms: list[tuple[int, int]]) -> Half:
        space, machine = self.space, self.space.accelerator
        idle = [place for place, level in enumerate(levels) if not isinstance(machine.levels[level], Fanout)
                and level > space.places[self.neck] and not self.kept[machine.levels[level].name]]
        chains = [np.array(found, dtype=np.int64).reshape(len(found), len(levels))
                  for found in (factors(size, len(levels)) for size in space.sizes)]
        chains = [own[(own[:, idle] == 1).all(axis=1)] for own in chains]
        rows = np.zeros((1, 0), dtype=np.int64)
        for g, own in enumerate(chains):
            parts = []
            for block in np.array_split(rows, max(1, len(rows) * len(own) // CHUNK)):
                self.look()
                every = np.hstack([np.repeat(block, len(own), axis=0),
                                   np.tile(np.arange(len(own)), len(block))[:, None]])
                parts.append(every[self._fits(Half(levels, tuple(chains[:g + 1]), every), rooms)])
                if sum(map(len, parts)) > MOST_ROWS:
                    raise GivenUp(f"there are more than {MOST_ROWS:,} choices of loops for one half")
            rows = np.concatenate(parts)
        return Half(levels, tuple(chains), rows)

    def _fits(self, half: Half, rooms: list[tuple[int, int]]) -> Any:
        """Whether rows fit; of groups that are not among them yet tiles count as 1."""
        space, ok = self.space, np.ones(len(half.rows), dtype=np.bool_)
        whole_row = len(half.chains) == len(space.sizes)
        for level in half.levels:
            if level in space.lanes:
                most = space.lanes[level]
                used = np.ones(len(half.rows), dtype=np.int64)
                for count in half.counts(level):
                    used = np.minimum(used * count, len(most))
                inside = used < len(most)
                ok &= inside
                if whole_row:
                    ok &= most[np.where(inside, used, 0)]
        for _, m in rooms:
            ok &= space.room(self.kept, m, [*self.tile(half, m), *([1] * (len(space.sizes) - len(half.chains)))])
        return ok

    def tile(self, half: Half, m: int) -> list[Any]:
        """Return the extents at a memory: of outer rows what loops outside leave, of inner what those inside make."""
        place = self.space.places[m]
        if half.levels and half.levels[0] > self.space.places[self.neck]:
            return half.product(range(place, self.space.places[-1]))
        return [size // used for size, used in zip(self.space.sizes, half.product(range(place)), strict=False)]

    def merged(self, edge: Edge, half: Half) -> list[Any]:
        """Return the lanes of each group in a half that share what crosses an edge, at most: both sides do or none."""
        tensor = self.space.operator.tensors[edge.tensor]
        crossed = enumerate(self.space.accelerator.levels[:self.space.places[edge.child]])
        return half.product(at for at, level in crossed if at >= self.space.places[edge.parent] and isinstance(
            level, Fanout) and any(level.merges(tensor.name, tensor.role)))

    def lanes(self, half: Half, before: int) -> Any:
        """Return the lanes of a half outside a level, of all groups together."""
        found: Any = np.ones(len(half.rows))
        for count in half.product(at for at in range(before) if at in self.space.lanes):
            found = found * count
        return found

    def ramp(self, half: Half, m: int) -> Any:
        """Return the cycles of the ramp of a memory whose tiles rows of a half say."""
        places = self.space.places
        return self.space.ramp(self.kept, m, self.tile(half, m), half.product(
            at for at in range(places[m - 1] if m else 0, places[m]) if at in self.space.lanes))

    # Words, by halves.

    def outside(self, half: Half) -> Iterator[tuple[Half, Loops, Values]]:
        """Yield, for each choice of who may stay in place at memories outside the neck, rows, loops and words."""
        space = self.space
        for kinds in product(self.kinds, repeat=self.neck):
            self.look()
            ok = np.ones(len(half.rows), dtype=np.bool_)
            for m, kind in enumerate(kinds):
                ok &= self.able(half.counts(space.places[m]), kind)
            rows, loops = half.take(ok), Loops.none(space)
            words = np.zeros((1 + 2 * len(self.edges), len(rows.rows)))
            words[0] = 1.0
            for m in range(1, self.neck + 1):
                place = space.places[m - 1]
                steps = [size // used for size, used in zip(space.sizes, rows.product(range(place + 1)), strict=True)]
                loops = loops.inside(space, rows.counts(place), steps, kinds[m - 1])
                for e, edge in enumerate(self.edges):
                    if edge.child == m:
                        self._write(words, e, crossing(space, edge.tensor, self.tile(rows, m), self.merged(
                            edge, rows), loops))
            yield rows, loops, words

    def able(self, counts: list[Any], kind: tuple[bool, ...] | None) -> Any:
        """Whether the innermost of loops may run along a group of a kind; without a kind, whether there are none."""
        found: Any = np.False_
        for g, count in enumerate(counts):
            if kind is None or self.space.patterns[g] == kind:
                found = found | (count > 1)
        return ~found if kind is None else found

    def _write(self, words: Values, e: int, crossed: tuple[Any, Any]) -> None:
        words[1 + e], words[1 + len(self.edges) + e] = crossed

    def fed(self, edge: Edge, outer: Half, inner: Half) -> tuple[Any, Any]:
        """Return what the compute units take: lanes share a word of the same step (rule 6)."""
        lanes = [a * b for a, b in zip(self.merged(edge, outer), self.merged(edge, inner), strict=True)]
        ones = [1] * len(lanes)
        out, _ = crossing(self.space, edge.tensor, ones, lanes, Loops.none(self.space))
        return out, float(self.space.operator.macs)

    def least(self, outer: Half, inner: Half, kind: tuple[bool, ...] | None) -> tuple[Values, Values | None]:
        """Return words of inner rows, whatever is outside: at least, and at most where more may take less energy."""
        space = self.space
        low, high = (np.zeros((1 + 2 * len(self.edges), len(inner.rows))) for _ in range(2))
        falls = bool((self.sums.energy[1:] < 0).any())
        far = Half((), tuple(np.ones((1, 0), dtype=np.int64) for _ in space.sizes),
                   np.zeros((1, len(space.sizes)), dtype=np.int64))
        spread = float(self._every(outer.levels))
        inside = inner.product(range(space.places[-1]))
        counts = [np.where(np.array(size // used) > 1, size // used, 1) for size, used in zip(
            space.sizes, inside, strict=True)]
        none = Loops.none(space)
        for e, edge in enumerate(self.edges):
            if edge.child == len(space.memories):
                out, into = self.fed(edge, far, inner)
                share = spread if edge.parent < self.neck else 1.0
                self._write(low, e, (np.maximum(out / share, space.words(edge.tensor, space.sizes)), into))
                self._write(high, e, (out, into))
            elif edge.child == self.last and self.last > self.neck:
                tile, lanes = self.tile(inner, self.last), self.merged(edge, inner)
                if falls:
                    self._write(high, e, crossing(space, edge.tensor, tile, lanes, none))
                every = float(space.words(edge.tensor, space.sizes))
                alike: Any = 1.0
                for g, count in enumerate(inner.product(at for at in inner.levels if at < space.places[self.last]
                                                        and at in space.lanes)):
                    alike = alike if space.uses[edge.tensor][g] else alike * count
                if kind is None or kind[edge.tensor]:
                    self._write(low, e, (every, every * alike))
                    continue
                out, into = crossing(space, edge.tensor, tile, lanes, none.inside(space, counts, inside, kind))
                share = spread if edge.parent < self.neck else 1.0
                self._write(low, e, (np.maximum(out / share, every), np.maximum(into, every * alike)))
        return low, high if falls else None

    def cycles(self, words: Values, lanes: Callable[[int], Any], compute: Any) -> Any:
        """Return steady cycles (rule 8): of compute with its waits, or of a port, which serves all instances alike."""
        waits: Any = 0.0
        for m, row in self.sums.waits:
            waits = waits + row @ words / lanes(m)
        slowest = whole(compute + waits)
        for m, row in self.sums.ports:
            slowest = np.maximum(slowest, whole(row @ words / lanes(m)))
        return slowest

    # Both halves together.

    def written(self, outer: Half, inner: Half, row: int) -> list[list[int]]:
        """Return how often the loops of each group run at every level, for a pair of rows."""
        found = []
        neck = [tile[row] // used[row] for tile, used in zip(self.tile(outer, self.neck), inner.product(
            range(self.space.places[-1])), strict=True)]
        for at in range(self.space.places[-1]):
            half = outer if at in outer.levels else inner
            found.append(neck if at == self.space.places[self.neck] else [count[row] for count in half.counts(at)])
        return [[int(count) for count in counts] for counts in found]

    def mappings(self) -> Iterator[Mapping]:
        """Yield mappings of which it is not shown that they score no less than the claim."""
        for outer, inner in self.survivors():
            for row in range(len(outer.rows)):
                yield from mappings_of(self.space, self.kept, self.written(outer, inner, row))

    def survivors(self) -> Iterator[tuple[Half, Half]]:
        """Yield pairs of rows of which it is not shown that no mapping scores below the claim."""
        outer, inner = self.outer(), self.inner()
        parts = list(self.outside(outer))
        rows = Half(outer.levels, outer.chains, np.concatenate([part.rows for part, *_ in parts]))
        words = np.concatenate([part for *_, part in parts], axis=1)
        self._outer = _Side(rows, words, Loops.joined([(loops, len(part.rows)) for part, loops, _ in parts]),
                            *self._outer_figures(rows, words), np.array(self.tile(rows, self.neck)).reshape(
                                len(self.space.sizes), -1))
        if not len(rows.rows):
            return
        for block in np.array_split(inner.rows, len(inner.rows) // CHUNK + 1):
            some = self._able(Half(inner.levels, inner.chains, block), None)[0]
            for kind in self.kinds if self.last > self.neck else [None]:
                self.look()
                yield from self._pairs(some, kind)

    def _inner_steps(self, inner: Half) -> Any:
        """Return cycles of compute of inner rows, on as many lanes outside as there are."""
        return self._steps(self._every(self._outer.rows.levels), self.lanes(inner, self.space.places[-1]))

    def _every(self, levels: Iterable[int]) -> Any:
        """Return the instances of all arrays at some levels."""
        return np.prod([len(self.space.lanes[at]) - 1 for at in levels if at in self.space.lanes])

    def _outer_figures(self, rows: Half, words: Values) -> tuple[Any, Any, Any]:
        space, every = self.space, words.copy()
        for e, edge in enumerate(self.edges):
            if edge.child > self.neck:
                self._write(every, e, (space.words(edge.tensor, space.sizes),) * 2)
        unknown = np.array([False] + [edge.child > self.neck for edge in self.edges] * 2)
        steady = np.full(len(rows.rows), self._steps(self.lanes(rows, space.places[self.neck])))
        for m, row in self.sums.ports:
            if m <= self.neck and (row[unknown] >= 0).all():
                steady = np.maximum(steady, whole(row @ every / self.lanes(rows, space.places[m])))
        ramp = np.zeros(len(rows.rows))
        for m in range(self.neck + 1):
            ramp = ramp + self.ramp(rows, m)
        return self.sums.energy @ words, steady, ramp

    def _steps(self, outside: Any, inside: Any = None) -> Any:
        """Return cycles of compute on so many lanes; inside where None, all that there are."""
        lanes = outside * (self._every(range(self.space.places[self.neck], self.space.places[-1])) if (
            inside is None) else inside)
        return self.space.operator.macs * self.space.pace / lanes

    def _able(self, inner: Half, kind: tuple[bool, ...] | None) -> tuple[Half, Any, Any, Any, Any]:
        """Return inner rows that some outer row may bring below the claim, with those of a kind in place at the neck.

        And steps and the ramp inside, energy at least, and what energy is left for the outer row.
        """
        side, spend = self._outer, self.sums.energy[1:]
        low, high = self.least(side.rows, inner, kind)
        energy = np.maximum(spend, 0.0) @ low[1:]
        if high is not None:
            energy += np.minimum(spend, 0.0) @ high[1:]
        steps = self._inner_steps(inner)
        ramp = self.ramp(inner, self.last) if self.last > self.neck else 0.0
        cycles = np.maximum(whole(steps), side.steady.min()) + ramp + side.ramp.min()
        left = self.budget(cycles) - energy
        some = np.flatnonzero(left > side.energy[0])
        return inner.take(some), of_rows(steps, some), of_rows(ramp, some), energy[some], left[some]

    def _pairs(self, inner: Half, kind: tuple[bool, ...] | None) -> Iterator[tuple[Half, Half]]:
        """Yield what is left of pairs with some inner rows, those of a kind in place at the neck."""
        space, side = self.space, self._outer
        inner, steady, ramp, energy, left = self._able(inner, kind)
        inside = np.stack(inner.product(range(space.places[-1]))) if space.sizes else np.zeros((0, len(left)), int)
        for outside, within in self._matches(inside, left, kind):
            o, r = outside, within
            together = np.maximum(whole(steady[r]), side.steady[o]) + of_rows(ramp, r) + side.ramp[o]
            near = side.energy[o] + energy[r] < self.budget(together)
            o, r = o[near], r[near]
            for g in range(len(space.sizes)):
                fits = side.tiles[g][o] % inside[g][r] == 0
                o, r = o[fits], r[fits]
            self.count += len(o)
            if len(o):
                pair, own = side.rows.take(o), inner.take(r)
                below, known = self._counted(pair, own, side, o, kind)
                if below.any():
                    yield pair.take(known[below]), own.take(known[below])

    def _matches(self, inside: Indices, left: Values, kind: tuple[bool, ...] | None) -> Iterator[tuple[Any, Any]]:
        """Yield places of outer and inner rows that may make a mapping of less energy than is left."""
        side, space = self._outer, self.space
        if self.last > self.neck and kind is None:
            scale = np.array([pow(MIX, g + 1, 1 << 62) for g in range(len(space.sizes))], dtype=np.int64)[:, None]
            keys, own = (scale * side.tiles).sum(axis=0), (scale * inside).sum(axis=0)
            order = np.argsort(keys, kind="stable")
            first, last = (np.searchsorted(keys[order], own, end) for end in ("left", "right"))
        else:
            order, first = np.arange(len(side.energy)), np.zeros(len(left), dtype=np.int64)
            last = np.searchsorted(side.energy, left)
        many = last - first
        ends = np.cumsum(many)
        self.seen += int(many.sum())
        if self.seen > MOST_PAIRS:
            raise GivenUp(f"there are more than {MOST_PAIRS:,} pairs of halves")
        at = 0
        while at < len(many):
            to = max(at + 1, int(np.searchsorted(ends, (ends[at - 1] if at else 0) + 4 * CHUNK)))
            r = np.repeat(np.arange(at, to), many[at:to])
            before = np.repeat(ends[at:to] - many[at:to] - first[at:to], many[at:to])
            o = order[np.arange(len(r)) + (ends[at] - many[at]) - before]
            self.look()
            yield o, r
            at = to

    def _counted(self, outer: Half, inner: Half, side: "_Side", o: Indices,
                 kind: tuple[bool, ...] | None) -> tuple[Any, Any]:
        """Return whether pairs score below the claim as far as it is known, and the places of those that can be."""
        space = self.space
        inside = inner.product(range(space.places[-1]))
        counts = [tile[o] // used for tile, used in zip(side.tiles, inside, strict=True)]
        able = np.flatnonzero(self.able(counts, kind) | np.zeros(len(o), dtype=np.bool_)
                              ) if self.last > self.neck else np.arange(len(o))
        outer, inner, o = outer.take(able), inner.take(able), o[able]
        counts, inside = [one[able] for one in counts], [one[able] for one in inside]
        words = side.words[:, o].copy()
        if self.last > self.neck:
            loops = side.loops.take(o).inside(space, counts, inside, kind)
        for e, edge in enumerate(self.edges):
            if edge.child == len(space.memories):
                self._write(words, e, self.fed(edge, outer, inner))
            elif edge.child > self.neck:
                lanes = [a * b for a, b in zip(self.merged(edge, outer), self.merged(edge, inner), strict=True)]
                self._write(words, e, crossing(space, edge.tensor, self.tile(inner, self.last), lanes, loops))

        def lanes_at(m: int) -> Any:
            return self.lanes(outer, space.places[m]) * self.lanes(inner, space.places[m])

        steady = self.cycles(words, lanes_at, self._steps(*(self.lanes(half, space.places[-1]) for half in (
            outer, inner))))
        ramp = self.ramp(inner, self.last) if self.last > self.neck else 0.0
        cycles = steady + ramp + side.ramp[o]
        return self.score(cycles, self.sums.energy @ words) < self.claim * (1 - EQUAL), able


@dataclass(eq=False)
class _Side:
    """All outer rows, by rising energy: words, loops, tiles at the neck ``(g, r)``, energy, and cycles at least."""

    rows: Half
    words: Values
    loops: Loops
    energy: Values
    steady: Values
    ramp: Values
    tiles: Indices

    def __post_init__(self) -> None:
        order = np.argsort(self.energy, kind="stable")
        self.tiles = self.tiles[:, order]
        self.rows, self.words, self.loops = self.rows.take(order), self.words[:, order], self.loops.take(order)
        self.energy, self.steady, self.ramp = self.energy[order], self.steady[order], self.ramp[order]


@dataclass(frozen=True)
class Verdict:
    """What came of checking a claim: ``holds`` is None where that could not be told, and ``better`` what beats it."""

    holds: bool | None
    reason: str
    better: Mapping | None = None
    score: float | None = None


def check_claim(space: ProofSpace, claim: float, score: Callable[[list[Mapping]], Sequence[float]],
                most: int = MOST_TRIED, look: Callable[[int, int], None] = lambda done, total: None) -> Verdict:
    """Check that no mapping of a space, whatever memories keep, scores below ``claim``.

    Parameters
    ----------
    score
        Returns what mappings that keep the same score, by the model's rules.
    most
        Mappings that are written out and scored at most.
    look
        Called every few seconds with the kept sets gone through, and how many there are; may raise `GivenUp`.
    """
    tried, count, known = 0, 0, dict[object, Half]()
    if claim <= 0:
        return Verdict(True, "nothing scores below nothing")
    total, what = sum(1 for _ in space.kept_sets()), "regions bounded" if space.ragged else "pairs of rows counted"
    for number, kept in enumerate(space.kept_sets()):
        told = partial(look, number, total)
        proof = RaggedProof(RaggedSpace(space, kept), claim, told) if space.ragged else KeptProof(
            space, kept, claim, known, told)
        try:
            for some in _together(proof.mappings()):
                found, tried = score(some), tried + len(some)
                least, better = min(zip(found, some, strict=True), key=itemgetter(0))
                if least < claim * (1 - EQUAL):
                    return Verdict(False, f"a mapping scores {least:.9g}", better, least)
                if tried > most:
                    raise GivenUp(f"there are more than {most:,} mappings that would have to be scored")
                told()
        except GivenUp as end:
            return Verdict(None, f"after {number:,} of {total:,} kept sets {end}")
        count += proof.count
    return Verdict(True, f"{total:,} kept sets, {count:,} {what}, {tried:,} mappings scored")


def _together(mappings: Iterator[Mapping]) -> Iterator[list[Mapping]]:
    """Yield mappings some at once, also those that come before it is given up."""
    some = list[Mapping]()
    try:
        for mapping in mappings:
            some.append(mapping)
            if len(some) == SCORED_AT_ONCE:
                yield some
                some = []
    except GivenUp:
        if some:
            yield some
        raise
    if some:
        yield some
