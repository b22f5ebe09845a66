"""The oracle of the sparse model: walks the nest with tensors whose zeros are given, one by one.

Every multiply-accumulate is listed, with the words it takes and the crossing that brought each of them. A crossing is
made if some product that it serves asks for it; nothing here is a mean. Means over all tensors with so many words
other than zero, or over samples of them, are what the fast model must give.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import ceil, floor, log2, prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.cost.records import KINDS
from tilewright.cost.reference.boundary import WalkedBoundary, boundaries
from tilewright.cost.reference.latency import steady, traffic
from tilewright.cost.reference.nest import Indices, WalkedLoop, WalkedNest, write_out
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import Mapping, compute_cycles, lane_use, tensor_bits
from tilewright.workload import Operator, Tensor

Flags = NDArray[np.bool_]
Masks = dict[str, Flags]
MOST_MACS = 200_000


@dataclass(frozen=True, eq=False)
class AccessWords:
    """What one kind of access moves at the instances of a memory, each array ``(i,)``.

    ``words`` of the tensor that take energy, ``timed`` those that take time, ``bits`` of metadata.
    """

    words: Indices
    timed: Indices
    bits: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SparseWalk:
    """What given tensors cost. ``flows`` are by (memory, tensor, kind of access)."""

    flows: dict[tuple[str, str, str], AccessWords]
    performed_macs: int
    steps: int
    steady_cycles: int
    energy_pj: float
    """Of memories, compute and networks; without leakage."""

    def words(self, memory: str, tensor: str, kind: str) -> int:
        """Words that take energy, summed over instances."""
        return int(self.flows[memory, tensor, kind].words.sum())


class SparseNest:
    """One mapping, with every multiply-accumulate and every crossing written out once for many tensors."""

    def __init__(self, operator: Operator, accelerator: Accelerator, mapping: Mapping) -> None:
        if operator.macs > MOST_MACS:
            raise InputError(operator.name, f"must have at most {MOST_MACS} MACs to be walked with its zeros",
                             operator.macs, "Use the fast model")
        self.nest: WalkedNest = write_out(operator, accelerator, mapping)
        self.operator, self.accelerator = operator, accelerator
        names = list(operator.sizes)
        grid = np.indices(tuple(operator.sizes.values())).reshape(len(names), -1)
        self.at = dict(zip(names, grid, strict=True))
        self.word = {tensor.name: self._words(tensor) for tensor in operator.tensors}
        self.touched = {name: np.unique(words) for name, words in self.word.items()}
        self.crossings = {tensor.name: self._crossings(tensor) for tensor in operator.tensors}

    def _words(self, tensor: Tensor) -> Indices:
        """Word of each multiply-accumulate, numbered as at a `WalkedBoundary`."""
        total = np.zeros(self.operator.macs, dtype=np.int64)
        for axis in tensor.axes:
            total = total * axis.words(self.operator.sizes, box=True) + sum(c * self.at[d] for d, c in axis.terms)
        return total

    def _crossings(self, tensor: Tensor) -> list["Crossed"]:
        found: list[Crossed] = []
        delivered, visits = np.zeros(0, dtype=np.int64), 1
        for boundary in boundaries(self.nest, tensor):
            crossed = Crossed(boundary, self._touches(boundary), delivered, visits)
            delivered, visits = crossed.delivered, boundary.visits
            found.append(crossed)
        return found

    def _number(self, loops: list[WalkedLoop]) -> Indices:
        total = np.zeros(self.operator.macs, dtype=np.int64)
        for loop in loops:
            total = total * loop.count + loop.index[self.at[loop.dimension]]
        return total

    def _touches(self, boundary: WalkedBoundary) -> Indices:
        """Touch of the child that each multiply-accumulate works on."""
        lane, visit = self._number(boundary.lanes), self._number(boundary.advancing)
        return (lane * boundary.visits + visit) * boundary.words + self.word[boundary.tensor.name]

    def tile(self, level: int, tensor: Tensor) -> list[int]:
        """Words of the nominal tile of a memory along each axis."""
        extents = dict(self.operator.sizes)
        for name in extents:
            own = [loop for loop in self.nest.outside(level) if loop.dimension == name]
            together = np.zeros(self.operator.sizes[name], dtype=np.int64)
            for loop in own:
                together = together * loop.count + loop.index
            extents[name] = int(np.max(np.unique(together, return_counts=True)[1]))
        return [_axis(axis.terms, extents) for axis in tensor.axes] or [1]

    def walk(self, nonzero: Masks) -> SparseWalk:
        """Return what these tensors cost; ``nonzero`` says of each word of a tensor whether it is other than zero."""
        return _Walk(self, nonzero).result()

    def samples(self, rng: Generator, count: int) -> Iterator[Masks]:
        """Draw tensors at the densities of the operator, uniformly or evenly (`even_mask`)."""
        for _ in range(count):
            yield {tensor.name: self._sample(rng, tensor) for tensor in self.operator.tensors}

    def _sample(self, rng: Generator, tensor: Tensor) -> Flags:
        known = self.touched[tensor.name]
        if tensor.even:
            return self._mask(tensor, known[even_mask(len(known), tensor.density, rng.random())])
        mean = tensor.density * len(known)
        few = floor(mean + 1e-9)
        few += bool(rng.random() < mean - few)
        return self._mask(tensor, rng.choice(known, few, replace=False))

    def _mask(self, tensor: Tensor, nonzero: Indices) -> Flags:
        """Return of each word of a tensor whether it is among some."""
        mask = np.zeros(int(self.word[tensor.name].max()) + 1, dtype=np.bool_)
        mask[nonzero] = True
        return mask

    def every(self) -> Iterator[Masks]:
        """Yield all tensors with the number of words that the densities give, which must be whole.

        Of tensors that are even, those that `even_mask` gives.
        """
        choices = []
        for tensor in self.operator.tensors:
            known = self.touched[tensor.name]
            few = round(tensor.density * len(known))
            if abs(few - tensor.density * len(known)) > 1e-9:
                raise InputError(f"{tensor.name}.density", "must give a whole number of words", tensor.density)
            if tensor.even:
                kinds = Fraction(tensor.density).limit_denominator(len(known)).denominator
                nonzero = [known[even_mask(len(known), tensor.density, (turn + 0.5) / kinds)] for turn in range(kinds)]
            else:
                nonzero = [known[list(some)] for some in combinations(range(len(known)), few)]
            choices.append([self._mask(tensor, words) for words in nonzero])
        for masks in product(*choices):
            yield dict(zip(self.word, masks, strict=True))


class Crossed:
    """The crossings of one boundary, and which of them each multiply-accumulate was served by.

    Parameters
    ----------
    touches
        Touch of each multiply-accumulate.
    delivered, visits
        Of the parent, for outputs (see `WalkedBoundary.output`).
    """

    def __init__(self, boundary: WalkedBoundary, touches: Indices, delivered: Indices, visits: int) -> None:
        self.boundary = boundary
        known, of_mac = np.unique(touches, return_inverse=True)
        self.delivered = np.zeros(0, dtype=np.int64)
        root = np.arange(len(known))
        brought = np.ones(len(known), dtype=np.bool_)
        self.given_back, self.read_groups = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if boundary.tensor.is_output:
            moved = boundary.output(delivered, visits)
            self.delivered = moved.delivered
            self.given_back, self.read_groups = moved.delivered, boundary.groups(moved.crossed[moved.held])
        elif not boundary.feeds_compute:
            brought = np.isin(known, boundary.brought_in(known))
            for index in np.flatnonzero(~brought):  # in the order of visits, so that the earlier root is known
                root[index] = root[np.searchsorted(known, known[index] - boundary.words)]
        groups = boundary.groups(known)
        self.group_names, first, group = np.unique(groups[brought], return_index=True, return_inverse=True)
        crossing = np.full(len(known), -1)
        crossing[brought] = group
        self.of_mac = crossing[root[of_mac]]
        """Crossing of each multiply-accumulate."""
        self.count = len(self.group_names)
        representative = known[brought][first]
        instance = representative // (boundary.visits * boundary.words)
        self.parent = instance // (boundary.instances // boundary.parents)
        self.word = representative % boundary.words
        self.touch = known[brought]
        self.touch_group = group

    def served(self, wanted: Flags) -> Flags:
        """Whether any multiply-accumulate of each crossing is wanted."""
        return np.bincount(self.of_mac, weights=wanted, minlength=self.count) > 0


class _Walk:
    """One walk with given tensors."""

    def __init__(self, nest: SparseNest, nonzero: Masks) -> None:
        self.nest, self.nonzero = nest, nonzero
        self.sparsity = nest.accelerator.sparsity
        self.live = {name: mask[nest.word[name]] for name, mask in nonzero.items()}
        self.flows: dict[tuple[str, str, str], AccessWords] = {}
        self.carried: dict[str, float] = {}

    def _named(self, names: tuple[str, ...]) -> list[Tensor]:
        return [t for t in self.nest.operator.operands if t.name in names or t.role in names]

    def _leaders(self, level: int, tensor: Tensor, *, time: bool) -> list[Tensor]:
        if self.sparsity is None:
            return []
        found, name = [], self.nest.accelerator.levels[level].name
        for elision in self.sparsity.elisions:
            if elision.memory == name and elision.tensor in (tensor.name, tensor.role):
                if elision.action == "skip" or not time:
                    found += self._named(elision.on)
        return found

    def _made(self, tensor: Tensor, *, time: bool) -> list[Flags]:
        """Whether each crossing is made, boundary by boundary: asked for, and there to be read."""
        found = []
        there = np.ones(self.nest.operator.macs, dtype=np.bool_)
        for crossed in self.nest.crossings[tensor.name]:
            leaders = self._leaders(crossed.boundary.parent, tensor, time=time)
            if tensor.is_output:
                wanted = np.ones(self.nest.operator.macs, dtype=np.bool_)
                for leader in leaders:
                    wanted &= self.live[leader.name]
                found.append(crossed.served(wanted))
                continue
            made = crossed.served(there)
            for leader in leaders:
                made &= crossed.served(self.live[leader.name])
            there = made[crossed.of_mac]
            found.append(made)
        return found

    def _stored(self, level: int, tensor: Tensor, word: Indices) -> tuple[Flags, NDArray[np.float64]]:
        """Whether each word is stored, and the bits of metadata that move with it."""
        memory = self.nest.accelerator.levels[level]
        given = self.sparsity.compression(memory.name, tensor.name, tensor.role) if self.sparsity else None
        alive = self.nonzero[tensor.name][word]
        if given is None:
            return np.ones(len(word), dtype=np.bool_), np.zeros(len(word))
        sides = self.nest.tile(level, tensor)
        tile, row = prod(sides), sides[-1]
        if given.format == "bitmask":
            return alive, np.ones(len(word))
        offsets = {"coordinates": 0, "csr": (tile // row + 1) * _bits(tile + 1), "uop-cp": (given.bits or _bits(
            tile + 1)) * sum(prod(sides[:rank]) * (sides[rank] + 1) for rank in range(len(sides) - 1))}
        if given.format not in offsets:
            raise InputError(f"{memory.name}.{tensor.name}", "must have another format to be walked", given.format,
                             "See run_length_words")
        place = given.bits or _bits(tile if given.format == "coordinates" else row)
        return alive, alive.astype(np.float64) * place + offsets[given.format] / tile

    def _record(self, level: int, tensor: Tensor, kind: str, what: tuple[NDArray[Any], ...]) -> None:
        """Note accesses: the word and the instance of each, and whether it takes energy and time."""
        word, instance, made, timed = what
        stored, bits = self._stored(level, tensor, word)
        lanes = self.nest.nest.lanes(level)

        def total(weights: NDArray[Any]) -> NDArray[np.float64]:
            return np.asarray(np.bincount(instance, weights=weights, minlength=lanes), dtype=np.float64)

        self.flows[self.nest.accelerator.levels[level].name, tensor.name, kind] = AccessWords(
            total(stored & made).astype(np.int64), total(stored & timed).astype(np.int64), total(bits))

    def _tensor(self, tensor: Tensor) -> None:
        nothing = (np.zeros(0, dtype=np.int64),) * 2 + (np.zeros(0, dtype=np.bool_),) * 2
        energy, timed = self._made(tensor, time=False), self._made(tensor, time=True)
        top = self.nest.crossings[tensor.name][0].boundary.parent
        for kind in ("fills", "drains"):
            self._record(top, tensor, kind, nothing)
        for crossed, made, takes in zip(self.nest.crossings[tensor.name], energy, timed, strict=True):
            boundary = crossed.boundary
            out = (crossed.word, crossed.parent, made, takes)
            held = np.isin(crossed.group_names, crossed.read_groups)
            read = tuple(part[held] for part in out) if tensor.is_output else out
            self._record(boundary.parent, tensor, "reads", read)
            self._record(boundary.parent, tensor, "updates", out if tensor.is_output else nothing)
            self._child(crossed, made, takes)

    def _child(self, crossed: Crossed, made: Flags, takes: Flags) -> None:
        """Note what the child is given and gives up."""
        boundary, tensor = crossed.boundary, crossed.boundary.tensor
        instance = crossed.touch // (boundary.visits * boundary.words)
        group = crossed.touch_group
        all_of = (crossed.touch % boundary.words, instance, made[group], takes[group])
        back = np.isin(crossed.touch, crossed.given_back)
        fills = tuple(part[back] for part in all_of) if tensor.is_output else all_of
        none = tuple(part[:0] for part in all_of)
        moves = {"fills": fills, "drains": all_of if tensor.is_output else none}
        for kind, what in moves.items():
            if boundary.feeds_compute:
                words, bits = float(what[2].sum()), 0.0
            else:
                self._record(boundary.child, tensor, kind, what)
                flow = self.flows[self.nest.accelerator.levels[boundary.child].name, tensor.name, kind]
                words, bits = float(flow.words.sum()), float(flow.bits.sum())
            moved = words + bits / tensor_bits(tensor, self.nest.accelerator)
            for level, fanout in enumerate(self.nest.accelerator.levels):
                if isinstance(fanout, Fanout) and boundary.parent < level < boundary.child:
                    self.carried[fanout.name] = self.carried.get(fanout.name, 0.0) + moved

    def result(self) -> SparseWalk:
        """Walk all tensors, then add up."""
        for tensor in self.nest.operator.tensors:
            self._tensor(tensor)
        skipped = np.ones(self.nest.operator.macs, dtype=np.bool_)
        gated = skipped.copy()
        if self.sparsity is not None:
            for tensor in self._named(self.sparsity.skipped):
                skipped &= self.live[tensor.name]
            for tensor in self._named(self.sparsity.gated):
                gated &= self.live[tensor.name]
        lanes = self.nest._number([loop for loop in self.nest.nest.loops if loop.spatial])
        steps = int(np.bincount(lanes, weights=skipped).max())
        performed = int((skipped & gated).sum())
        cycles = compute_cycles(steps, self.nest.operator, self.nest.accelerator)
        moved = traffic(self.nest.accelerator.memories, self._port)
        return SparseWalk(self.flows, performed, steps, steady(moved, cycles)[0], self._energy(performed))

    def _memory_words(self, memory: Memory, kind: str, *, time: bool) -> NDArray[np.float64]:
        """Words of the memory's own width at each instance."""
        level = self.nest.accelerator.levels.index(memory)
        total = np.zeros(self.nest.nest.lanes(level))
        for name in self.nest.nest.keeps[level]:
            flow = self.flows[memory.name, name, kind]
            bits = float(tensor_bits(self.nest.operator.tensor(name), self.nest.accelerator))
            total += ((flow.timed if time else flow.words) * bits + flow.bits) / memory.word_bits
        return total

    def _port(self, memory: Memory, *kinds: str) -> list[Fraction]:
        """Words that take time at each instance, as `Transfers.port`."""
        first, *others = (self._memory_words(memory, kind, time=True) for kind in kinds)
        return [Fraction(words) for words in sum(others, first).tolist()]

    def _energy(self, performed: int) -> float:
        accelerator = self.nest.accelerator
        total = performed * accelerator.compute.energy_pj_per_mac * lane_use(self.nest.operator, accelerator).energy
        for memory in accelerator.memories:
            total += sum(float(self._memory_words(memory, kind, time=False).sum())
                         * getattr(memory.energy, f"{kind[:-1]}_pj") for kind in KINDS)
        return total + sum(self.carried.get(fanout.name, 0.0) * fanout.network_energy_pj_per_word
                           for fanout in accelerator.fanouts)


def even_mask(words: int, density: float, start: float) -> Flags:
    """Return which of ``words`` in a row are not zero, spread evenly from ``start`` (0 to 1) on.

    Any n that follow one another hold n times the density of them, rounded up or down.
    """
    passed = np.floor(np.arange(words + 1) * density + start + 1e-9)
    return np.asarray(np.diff(passed) > 0)


def run_length_words(nonzero: Flags, bits: int) -> int:
    """Encode the words of a tile, one after another; return how many words are stored, zeros that end a run included.

    A stored word says how many zeros came before it, up to 2^bits - 1 of them.
    """
    stored = run = 0
    for alive in nonzero.tolist():
        if alive or run == 2**bits - 1:
            stored, run = stored + 1, 0
        else:
            run += 1
    return stored


def _bits(values: int) -> int:
    return max(1, ceil(log2(values)))


def _axis(terms: tuple[tuple[str, int], ...], extents: dict[str, int]) -> int:
    """Count the distinct coordinates of a box by listing them."""
    reached = {0}
    for name, coefficient in terms:
        reached = {value + coefficient * step for value in reached for step in range(extents[name])}
    return len(reached)
