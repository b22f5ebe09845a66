"""What a proof is about, as the checker of `proofs` sees it: factors of sizes, words of tiles, sums of words.

With perfect tiling the words of a tile, and how often it is visited, are products over dimensions. So dimensions that
the same tensors use, none along an axis that slides, count as one, of the product of their sizes; and the lanes of an
array count as their product, of which only some can be laid out on its sides.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import ACCESSES, Accelerator, Fanout, Memory, exact_rate
from tilewright.mapping import by_room, held_bits, lane_use, tensor_bits
from tilewright.workload import Operator, Tensor

Values = NDArray[np.float64]
Indices = NDArray[np.int64]
Kept = dict[str, tuple[str, ...]]
"""What every memory keeps."""
Weights = tuple[tuple[float, int, int], ...]
"""Terms of an objective: the factor, and the powers of cycles and of energy, each 0 or 1."""
EQUAL = 1e-9
"""Scores that differ by no more of them are the same."""


class GivenUp(Exception):
    """The space is not gone through to its end; it says why."""


@dataclass(frozen=True)
class Edge:
    """A boundary that a tensor crosses: from a memory to the next one inward that keeps it, or to compute.

    Memories are numbered from the outside, compute is behind the last one.
    """

    tensor: int
    parent: int
    child: int


@dataclass(frozen=True)
class WordSums:
    """What is summed over the words that cross edges, each a row ``(1 + 2 e)``: of one, words out, and words in."""

    edges: tuple[Edge, ...]
    energy: Values
    ports: tuple[tuple[int, Values], ...]
    """Of each port the memory, and cycles of all instances together."""
    waits: tuple[tuple[int, Values], ...]
    """The same of transfers that compute waits for."""


@dataclass(frozen=True)
class ProofSpace:
    """All mappings of an operator on a machine with perfect tiling, whatever memories keep, and what is minimised.

    Raises an `InputError` if the checker does not know what the machine or the operator has: the rule says what.
    """

    operator: Operator
    accelerator: Accelerator
    weights: Weights
    fixed: Kept
    """What constraints fix of what memories keep."""
    ragged: bool = False
    """Whether tiles need not divide (see `ragged`); then every dimension counts by itself."""

    def __post_init__(self) -> None:
        machine, output = self.accelerator, self.operator.output
        unknown = {
            "a sparsity section": machine.sparsity is not None,
            "memories that serve lanes together": any(memory.shared for memory in machine.memories),
            "a flexibility section": machine.flexibility is not None,
            "footprints of boxes": machine.footprint == "box",
            "memories that forward words": any(memory.forwards == "words" for memory in machine.memories),
            "an output that slides": bool(output.sliding),
            "partial sums wider than outputs": held_bits(output, machine) != tensor_bits(output, machine),
            "an objective that falls with more cycles or energy": any(
                not {a, b} <= {0, 1} for _, a, b in self.weights)}
        found = [what for what, there in unknown.items() if there]
        if found:
            raise InputError("certificate", "must be of what the checker knows: not of " + " and ".join(found),
                             f"{self.operator.name} on {machine.name}", "Search without a certificate")

    @cached_property
    def groups(self) -> list[list[str]]:
        """Names of the dimensions above 1, those together that count as one."""
        sizes, found = self.operator.sizes, dict[tuple[object, ...], list[str]]()
        sliding = {name for tensor in self.operator.tensors for axis in tensor.axes for name in axis.dimensions
                   if len(axis.terms) > 1 and all(sizes[other] > 1 for other in axis.dimensions)}
        for name, size in sizes.items():
            if size > 1:
                used = tuple(name in tensor.dimensions for tensor in self.operator.tensors)
                found.setdefault((used, name if name in sliding or self.ragged else ""), []).append(name)
        return list(found.values())

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Size of each group."""
        return tuple(prod(self.operator.sizes[name] for name in group) for group in self.groups)

    @cached_property
    def uses(self) -> list[list[bool]]:
        """Whether each tensor uses each group, ``[t][g]``."""
        return [[group[0] in tensor.dimensions for group in self.groups] for tensor in self.operator.tensors]

    @cached_property
    def patterns(self) -> list[tuple[bool, ...]]:
        """Which tensors do not use a group, of each group."""
        return [tuple(not used[g] for used in self.uses) for g in range(len(self.groups))]

    @cached_property
    def pace(self) -> float:
        """Cycles of a step of compute."""
        return float(lane_use(self.operator, self.accelerator).cycles)

    @property
    def leak(self) -> float:
        """Picojoules that leak in a cycle."""
        return self.accelerator.leakage_mw / self.accelerator.frequency_mhz * 1000

    def rates(self, m: int, port: str) -> list[float]:
        """Return how many words of a memory its own port, and one for both ways, move in a cycle, where limited."""
        bandwidth = self.memories[m].bandwidth
        return [float(exact_rate(rate)) for rate in (getattr(bandwidth, port), bandwidth.shared) if rate is not None]

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """The memories, outermost first."""
        return self.accelerator.memories

    @cached_property
    def places(self) -> list[int]:
        """The level of each memory, and last that of compute."""
        levels = self.accelerator.levels
        return [at for at, level in enumerate(levels) if isinstance(level, Memory)] + [len(levels)]

    @cached_property
    def sliding(self) -> list[list[tuple[int, int, int, int]]]:
        """Two groups, stride and dilation of the axes along which windows slide, of each tensor."""
        number = {group[0]: g for g, group in enumerate(self.groups)}
        return [[(number[first], number[second], stride, dilation)
                 for axis in tensor.axes if len(axis.terms) > 1 and all(name in number for name in axis.dimensions)
                 for (first, stride), (second, dilation) in [axis.terms]] for tensor in self.operator.tensors]

    @cached_property
    def slides(self) -> list[list["Slide"]]:
        """The axes along which windows slide, of each tensor."""
        return [[Slide.of([(first, self.sizes[first], stride), (second, self.sizes[second], dilation)])
                 for first, second, stride, dilation in axes] for axes in self.sliding]

    def words(self, tensor: int, extents: Iterable[Any]) -> Any:
        """Return the words of a tile, or arrays of them, from its extent in each group."""
        every, axes = list(extents), self.sliding[tensor]
        along = {g for first, second, *_ in axes for g in (first, second)}
        found: Any = 1.0
        for g, extent in enumerate(every):
            if self.uses[tensor][g] and g not in along:
                found = found * extent
        for first, second, stride, dilation in axes:
            found = found * words_along(every[first], every[second], stride, dilation)
        return found

    @cached_property
    def lanes(self) -> dict[int, NDArray[np.bool_]]:
        """Of each level that is an array, whether so many lanes ``(n + 1)`` can be laid out on it."""
        found = {}
        for at, level in enumerate(self.accelerator.levels):
            if isinstance(level, Fanout):
                fits = np.zeros(level.instances + 1, dtype=np.bool_)
                for across in range(1, level.instances + 1):
                    for down in range(1, level.instances // across + 1):
                        if laid_out(level, across, down):
                            fits[across * down] = True
                found[at] = fits
        return found

    def kept_sets(self) -> Iterator[Kept]:
        """Yield what memories may keep: a tensor's home all of it, those inside each tensor or not."""
        base: Kept = {memory.name: () for memory in self.memories}
        choices: list[tuple[str, str]] = []
        housed = set[str]()
        for memory in self.memories:
            for tensor in self.operator.tensors:
                stated = self.fixed.get(memory.name)
                if not memory.can_keep(tensor.name, tensor.role) or (stated is not None and tensor.name not in stated):
                    continue
                if tensor.name in housed and stated is None and not memory.always:
                    choices.append((memory.name, tensor.name))
                else:
                    base[memory.name] = (*base[memory.name], tensor.name)
                housed.add(tensor.name)
        for number in range(1 << len(choices)):
            kept = dict(base)
            for bit, (memory_name, tensor_name) in enumerate(choices):
                if not number >> bit & 1:
                    kept[memory_name] = (*kept[memory_name], tensor_name)
            yield kept

    def keepers(self, kept: Kept, tensor: Tensor) -> list[int]:
        """Return the memories that keep a tensor, outermost first."""
        return [m for m, memory in enumerate(self.memories) if tensor.name in kept[memory.name]]

    def room(self, kept: Kept, m: int, extents: list[Any]) -> Any:
        """Return whether tiles of so many extents fit a memory (rule 10)."""
        memory, fits = self.memories[m], np.ones(np.shape(extents[0]) if extents else (), dtype=np.bool_)
        names = [tensor.name for tensor in self.operator.tensors]
        mine = [tensor for tensor in self.operator.tensors if tensor.name in kept[memory.name]]
        for owner, tensors in by_room(memory, mine).items():
            most, taken = memory.rooms[owner], np.zeros(np.shape(fits))
            for tensor in tensors:
                here = self.sizes if self.keepers(kept, tensor)[0] == m else extents
                taken = taken + self.words(names.index(tensor.name), here) * float(
                    held_bits(tensor, self.accelerator)) / 8
            if most is not None:
                fits = fits & (memory.copies * taken <= most)
        return fits

    def sums(self, kept: Kept) -> WordSums:
        """Return what words cost where memories keep this (rules 5, 8 and 9), blocks of words left aside."""
        edges = [Edge(t, parent, child) for t, tensor in enumerate(self.operator.tensors)
                 for chain in [self.keepers(kept, tensor)]
                 for parent, child in zip(chain, [*chain[1:], len(self.memories)], strict=True)]
        unit, levels = np.eye(1 + 2 * len(edges)), self.accelerator.levels
        moved: dict[tuple[int, str], Values] = {}
        energy = unit[0] * self.operator.macs * self.accelerator.compute.energy_pj_per_mac * lane_use(
            self.operator, self.accelerator).energy
        started = unit[0]
        for e, edge in enumerate(edges):
            tensor, out, into = self.operator.tensors[edge.tensor], unit[1 + e], unit[1 + len(edges) + e]
            crossed = [level for level in levels[self.places[edge.parent]:self.places[edge.child]]
                       if isinstance(level, Fanout)]
            if not tensor.is_output:
                parts = {(edge.parent, "read"): out, (edge.child, "fill"): into}
                carried = into
            else:
                if not edges[e - 1].tensor == edge.tensor:
                    started = unit[0] * self.words(edge.tensor, self.sizes)
                back = out - started
                # Where lanes may meet at the parent only, nothing needs to come back to them.
                given = back if all(all(fanout.merges(tensor.name, tensor.role)) for fanout in crossed) else 0 * back
                parts = {(edge.parent, "update"): out, (edge.parent, "read"): back, (edge.child, "drain"): into,
                         (edge.child, "fill"): given}
                started = into - given if given.any() else into
                carried = into + given
            for (m, kind), row in parts.items():
                if m < len(self.memories):
                    scale = float(Fraction(held_bits(tensor, self.accelerator)) / self.memories[m].word_bits)
                    moved[m, kind] = moved.get((m, kind), 0 * unit[0]) + scale * row
                    energy = energy + scale * getattr(self.memories[m].energy, f"{kind}_pj") * row
            energy = energy + sum(fanout.network_energy_pj_per_word for fanout in crossed) * carried
        return WordSums(tuple(edges), energy, tuple(self._ports(moved)), tuple(self._waits(moved)))

    def _ports(self, moved: dict[tuple[int, str], Values]) -> Iterator[tuple[int, Values]]:
        for m, memory in enumerate(self.memories):
            for port, members in ACCESSES.items():
                rate = getattr(memory.bandwidth, port)
                rows = [moved[m, kind] for kind in members if (m, kind) in moved]
                if rate is not None and rows:
                    yield m, np.sum(rows, axis=0) / float(exact_rate(rate))

    def _waits(self, moved: dict[tuple[int, str], Values]) -> Iterator[tuple[int, Values]]:
        for m, memory in enumerate(self.memories):
            for kind, port in (("drain", "read"), ("fill", "write")):
                rates = self.rates(m, port)
                if m and memory.buffering == "single" and rates and (m, kind) in moved:
                    yield m, moved[m, kind] / min(rates)

    def ramp(self, kept: Kept, m: int, extents: list[Any], lanes: list[Any]) -> Any:
        """Return the cycles of the first operand tiles and the last output tile of a memory (rule 8).

        There of one lane; at the parent of all lanes between, of which ``lanes`` are known, those that share once.
        """
        memory, total = self.memories[m], 0.0
        if m == 0 or memory.buffering == "single":
            return total
        for ends, outputs in ((("write", "read"), False), (("read", "write"), True)):
            mine = [(t, tensor, chain[chain.index(m) - 1]) for t, tensor in enumerate(self.operator.tensors)
                    for chain in [self.keepers(kept, tensor)]
                    if tensor.is_output == outputs and m in chain and chain[0] != m]
            slowest: Any = 0.0
            for at, port in ((m, ends[0]), *((parent, ends[1]) for parent in sorted({parent for *_, parent in mine}))):
                rates = self.rates(at, port)
                around = extents if at == m else [extent * many for extent, many in zip(extents, lanes, strict=True)]
                words = sum(self.words(t, around) * float(held_bits(tensor, self.accelerator)) / self.memories[
                    at].word_bits for t, tensor, parent in mine if at in (m, parent))
                if rates:
                    slowest = np.maximum(slowest, whole(words / min(rates)))
            total = total + slowest
        return total


def words_along(first: Any, second: Any, stride: int, dilation: int) -> Any:
    """Return the words of tiles of so many extents along an axis that slides (rule 1)."""
    common = gcd(stride, dilation)
    return first * second - np.maximum(0, first - dilation // common) * np.maximum(0, second - stride // common)


def laid_out(array: Fanout, across: int, down: int) -> bool:
    """Whether so many lanes along the two sides fit an array."""
    if array.flexible:
        return True
    if array.blocks:
        width, height = array.blocks
        return -(-across // width) * -(-down // height) <= array.instances // (width * height)
    return across <= array.shape[0] and down <= array.shape[1]


def whole(cycles: Any) -> Any:
    """Return cycles rounded up to whole ones, but for what is whole already within rounding."""
    return np.ceil(cycles - 1e-9 * np.maximum(1.0, np.minimum(cycles, 1e5)))


@dataclass(frozen=True, eq=False)
class Slide:
    """An axis ``s*p + d*r``: words of its tiles, counted on sets of numbers, by places among divisors of both sizes."""

    first: int
    second: int
    place: tuple[Indices, Indices]
    """``(n + 1)``: the place of each divisor of the size."""
    new: tuple[NDArray[np.float64], ...]
    """``(p, r, lanes of p, lanes of r, step)``: words of lanes side by side that none of them held before, where the
    tile moved along one of both groups by a step; the last place is that of a tile that held nothing before."""

    @classmethod
    def of(cls, terms: list[tuple[int, int, int]]) -> "Slide":
        """Return the axis of two ``(group, size, coefficient)``."""
        (first, p_size, s), (second, r_size, d) = terms
        divisors: list[list[int]] = [[n for n in range(1, size + 1) if size % n == 0] for size in (p_size, r_size)]
        place = []
        for size, own in zip((p_size, r_size), divisors, strict=True):
            place.append(np.zeros(size + 1, dtype=np.int64))
            place[-1][own] = np.arange(len(own))
        shape = (len(divisors[0]), len(divisors[1]))
        tables = []
        for which, times in enumerate((s, d)):
            table = np.zeros((*shape, *shape, shape[which] + 1))
            for (a, p), (b, r), (x, across), (y, down) in _four(divisors):
                if p_size % (p * across) or r_size % (r * down):
                    continue
                tile = np.unique(np.add.outer(s * np.arange(p), d * np.arange(r)))
                shifts = np.add.outer(s * p * np.arange(across), d * r * np.arange(down)).ravel()
                for at, step in enumerate([*divisors[which], None]):
                    new = tile if step is None else np.setdiff1d(tile, tile - times * step, assume_unique=True)
                    table[a, b, x, y, at] = len(np.unique(np.add.outer(shifts, new)))
            tables.append(table)
        return cls(first, second, (place[0], place[1]), tuple(tables))

    def words(self, p: Any, r: Any) -> Any:
        """Return the words of tiles of so many extents."""
        return self.new[0][self.place[0][p], self.place[1][r], 0, 0, -1]

    def crossing(self, tile: tuple[Any, Any], lanes: tuple[Any, Any], which: int, step: Any) -> Any:
        """Return the words of lanes side by side that are new after a step along the first or second group."""
        own, other = self.place
        return self.new[which][own[tile[0]], other[tile[1]], own[lanes[0]], other[lanes[1]], self.place[which][step]]


def _four(divisors: list[list[int]]) -> Iterator[Any]:
    first, second = (list(enumerate(own)) for own in divisors)
    for a in first:
        for b in second:
            for x in first:
                for y in second:
                    yield a, b, x, y
