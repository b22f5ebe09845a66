"""The formalism of flexibility: sizes of map spaces C, A, W and their intersections, and the two Flexions.

Source: Kao, dissertation, Georgia Tech 2022, section 3.2 and table 3.3. A point of a space is what one axis can be:

==== =============================================== ====================================================
axis of the hardware (C, A)                          of a workload (W)
==== =============================================== ====================================================
T    a tile of all dimensions that fits the buffer   a tile of its divisors (or of any extents it has)
O    an order of all dimensions                      an order of those larger than 1
P    a pair of different dimensions, for X and Y     a pair of those larger than 1
S    a side X of the array (Y is what that leaves)   a side X up to the size of the dimension along it
==== =============================================== ====================================================

The intersection of a hardware space with W is what its points come to on the workload: tiles, and sides of arrays, are
clipped to its sizes, orders keep the dimensions that it has. Every count of the paper's tables follows from these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from math import factorial, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import AXES, CONVOLUTION, Accelerator, Flexibility, Memory
from tilewright.mapping.flexible import Pair, stand_ins
from tilewright.mapping.footprint import axis_sides
from tilewright.mapping.tile_counts import (
    MOST_BITS,
    EstimatedCount,
    Ints,
    estimated_tiles,
    fitting_tiles,
    parted_buffer,
    parted_triples,
    shared_buffer,
    triples,
    workload_tiles,
)
from tilewright.workload import ROLES, Axis, Operator, Tensor

Extents = Mapping[str, Ints]
Fits = Callable[[Extents], NDArray[np.bool_]]
Numbers = NDArray[Any]
Words = Callable[[Extents], dict[str, Numbers]]


@dataclass(frozen=True)
class TileRule:
    """What counts as a tile."""

    workload: Literal["divisors", "all"] = "divisors"
    """``divisors``: a workload's tiles divide its sizes, as in the paper's figures; ``all``: any extents, as in its
    text."""
    inputs: Literal["box", "window"] = "box"
    """``box``: a tile of inputs has the extents of the outputs, C*P*Q words, as in the paper's figures; ``window``:
    the words that it really touches (for the workload's spaces; the hardware's have no stride, and stay boxes)."""
    hardware: Literal["sizes", "tiles"] = "sizes"
    """``sizes``: the hardware's spaces hold triples of words of weights, inputs and outputs, which gives the paper's
    0.22 for thirds; ``tiles``: extents of all six dimensions, as in its definition."""

    def __post_init__(self) -> None:
        for name, known in (("workload", ("divisors", "all")), ("inputs", ("box", "window")),
                            ("hardware", ("sizes", "tiles"))):
            if getattr(self, name) not in known:
                raise InputError(f"tile rule.{name}", f"must be {' or '.join(known)}", getattr(self, name))


@dataclass(frozen=True)
class Flexion:
    """Sizes of the spaces of one axis, or of a product of axes."""

    axes: str
    class_space: EstimatedCount
    target_space: EstimatedCount
    """``class_space`` and ``target_space``: c_X and A_X: a machine of this class that is fully flexible, and this
    machine."""
    workload_space: EstimatedCount
    """W_X^w."""
    class_on_workload: EstimatedCount
    target_on_workload: EstimatedCount
    """``class_on_workload`` and ``target_on_workload``: c_X^w and A_X^w: what of them the workload can use."""

    @property
    def hardware(self) -> float:
        """Hardware-dependent Flexion, A_X / C_X."""
        return self.target_space.value / self.class_space.value

    @property
    def workload(self) -> float:
        """Workload-dependent Flexion, A_X^w / W_X^w."""
        return self.target_on_workload.value / self.workload_space.value

    def __mul__(self, other: "Flexion") -> "Flexion":
        _, *mine = vars(self).values()
        _, *others = vars(other).values()
        return Flexion(self.axes + other.axes, *(a * b for a, b in zip(mine, others, strict=True)))


def flexion(operator: Operator, accelerator: Accelerator, axes: str = AXES, rule: TileRule | None = None,
            seed: int = 0) -> Flexion:
    """Return the sizes of the spaces of ``axes`` (letters of TOPS), exact where they can be counted.

    Estimates, with their standard error, stand for the tiles of buffers and workloads with millions of them; ``seed``
    is that of their draws.

    Raises an `InputError` if the machine states no flexibility, or an axis is unknown.

    Example
    -------
    >>> from tilewright.hardware import preset
    >>> from tilewright.workload import convolution
    >>> layer = convolution("c", in_channels=24, out_channels=72, in_size=(56, 56), kernel=1)
    >>> found = flexion(layer, preset("flexion"), "P")
    >>> found.class_space.value, found.workload_space.value, round(found.workload, 2)
    (30, 12, 0.08)
    """
    flexibility = accelerator.flexibility
    if flexibility is None:
        raise InputError(f"{accelerator.name}.flexibility", "must be stated to be measured", None,
                         "Add a flexibility: section")
    if not axes or len(set(axes)) < len(axes) or set(axes) - set(AXES):
        raise InputError("axes", f"must be different letters of {AXES}", axes)
    counts = _Counts(operator, accelerator, flexibility, rule or TileRule(), np.random.default_rng(seed))
    found = [{"T": counts.tile, "O": counts.order}[axis]() for axis in axes if axis in "TO"]
    if "P" in axes and "S" in axes:
        found.append(counts.parallelism_and_shape())
    elif "P" in axes:
        found.append(counts.parallelism())
    elif "S" in axes:
        found.append(counts.shape())
    return reduce(Flexion.__mul__, found)


@dataclass(frozen=True)
class _Counts:
    """The counts of one operator on one machine."""

    operator: Operator
    accelerator: Accelerator
    flexibility: Flexibility
    rule: TileRule
    rng: np.random.Generator

    @property
    def ours(self) -> dict[str, str | None]:
        return stand_ins(self.operator, self.flexibility)

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each dimension that the machine speaks of; 1 where the operator has none."""
        return {d: self.operator.sizes[name] if name is not None else 1 for d, name in self.ours.items()}

    @property
    def active(self) -> list[str]:
        return [d for d, size in self.sizes.items() if size > 1]

    def order(self) -> Flexion:
        choices, dims = self.flexibility.order.choices, self.flexibility.dimensions
        every, useful = factorial(len(dims)), factorial(len(self.active))
        effective = {tuple(d for d in order if d in self.active) for order in choices}
        return _flexion("O", every, len(choices) or every, useful, useful, len(effective) if choices else useful)

    def parallelism(self) -> Flexion:
        dims = len(self.flexibility.dimensions)
        if self.flexibility.parallelism.dimensions_per_side is None:
            # Each dimension may be spread along neither side, one, or both.
            every, useful = 4**dims, 4**len(self.active)
            return _flexion("P", every, every, useful, useful, useful)
        pairs, chosen = self._workload_pairs(), self._chosen_pairs()
        every = dims * (dims - 1)
        return _flexion("P", every, len(self.flexibility.parallelism.choices) or every, len(pairs), len(pairs),
                        len(chosen))

    def _workload_pairs(self) -> list[Pair]:
        """Return the pairs of dimensions larger than 1; with fewer than two of them, the one pair that there is."""
        active = self.active
        if len(active) < 2:
            return [(active[0] if active else None, None)]
        return [(x, y) for x in active for y in active if x != y]

    def _chosen_pairs(self) -> list[Pair]:
        """Return those of the workload's pairs that the machine has.

        A dimension that is larger than 1 alone may lie along either side, with anything along the other.
        """
        choices, pairs = self.flexibility.parallelism.choices, self._workload_pairs()
        if not choices or not self.active:
            return pairs
        if len(self.active) == 1:
            return pairs if any(self.active[0] in pair for pair in choices) else []
        return [pair for pair in pairs if pair in choices]

    def shape(self) -> Flexion:
        """Count shapes for the first pair that the machine can spread; without one, for its two largest dimensions."""
        choices = self.flexibility.parallelism.choices
        along_x = choices[0][0] if choices else max(self.sizes, key=lambda d: self.sizes[d])
        return _flexion("S", self._instances, self._shapes, *self._sides(along_x))

    @property
    def _instances(self) -> int:
        array = self.accelerator.level(self.flexibility.array)
        assert not isinstance(array, Memory)
        return array.instances

    @property
    def _shapes(self) -> int:
        shape = self.flexibility.shape
        return 1 if shape.fixed else len(self._block_sides()) if shape.blocks else self._instances

    def _block_sides(self) -> range:
        """Return the X sides of arrays made of whole blocks."""
        width, height = self.flexibility.shape.blocks or (1, 1)
        return range(width, width * (self._instances // (width * height)) + 1, width)

    def _sides(self, along_x: str | None) -> tuple[int, int, int]:
        """Return how many X sides the workload has, how many of them any array, and how many this one."""
        size = 1 if along_x is None else self.sizes[along_x]
        reachable = min(size, self._instances)
        if self.flexibility.shape.fixed:
            return size, reachable, 1
        if self.flexibility.shape.blocks:
            return size, reachable, len({min(side, size) for side in self._block_sides()})
        return size, reachable, reachable

    def parallelism_and_shape(self) -> Flexion:
        """Count shapes for every pair, as what sides a workload has depends on what lies along them."""
        if self.flexibility.parallelism.dimensions_per_side is None:
            return self.parallelism() * self.shape()
        alone = self.parallelism()
        pairs = [self._sides(pair[0]) for pair in self._workload_pairs()]
        chosen = [self._sides(pair[0]) for pair in self._chosen_pairs()]
        return _flexion("PS", alone.class_space.value * self._instances, alone.target_space.value * self._shapes,
                        sum(w for w, _, _ in pairs), sum(c for _, c, _ in pairs), sum(a for _, _, a in chosen))

    def tile(self) -> Flexion:
        room = _Room.of(self.accelerator, self.flexibility)
        sizes, fixed = self.sizes, self._fixed_tile()
        extents = dict(zip(sizes, workload_tiles(list(sizes.values()), self.rule.workload == "divisors"), strict=True))
        words = self._words()
        whole = EstimatedCount(prod(len(values) for values in extents.values()))
        shared = fitting_tiles(extents, room.shared_fit(words), self.rng)
        hardware = self._hardware_tiles(room)
        if fixed is not None:
            clipped = {d: np.array([min(extent, sizes[d])]) for d, extent in fixed}
            mine = EstimatedCount(int(room.shared_fit(words)(clipped).sum()))
            return Flexion("T", hardware[0], EstimatedCount(1), whole, shared, mine)
        mine = shared if room.parts is None else fitting_tiles(extents, room.parted_fit(words), self.rng)
        return Flexion("T", hardware[0], hardware[1], whole, shared, mine)

    def _fixed_tile(self) -> tuple[tuple[str, int], ...] | None:
        """Return the one tile of the buffer; where it follows the array, with as many lanes as its sides have."""
        tile, flexibility = self.flexibility.tile, self.flexibility
        fixed = dict(tile.fixed or tile.per_element).get(flexibility.memory)
        if fixed is None or not tile.per_element:
            return fixed
        pair = flexibility.parallelism.choices[0] if len(flexibility.parallelism.choices) == 1 else ()
        sides = dict(zip(pair, flexibility.shape.fixed or (1, 1), strict=False))
        return tuple((d, extent * sides.get(d, 1)) for d, extent in fixed)

    def _hardware_tiles(self, room: "_Room") -> tuple[EstimatedCount, EstimatedCount]:
        """Return how many tiles any use of the buffer has, and how many its partitions."""
        capacity, bits, parts = room.capacity, room.bits, room.parts
        if self.rule.hardware == "sizes":
            words = capacity // min(bits.values())
            every = EstimatedCount(triples(words))
            return every, every if parts is None else EstimatedCount(parted_triples(
                [parts[role] // bits[role] for role in ROLES]))
        if set(self.flexibility.dimensions) == set(CONVOLUTION) and capacity <= MOST_BITS:
            order = ("weights", "inputs", "outputs")
            unit = np.gcd.reduce([bits[role] for role in order])
            each = tuple(int(bits[role] // unit) for role in order)
            every = EstimatedCount(shared_buffer(int(capacity // unit), each))  # type: ignore[arg-type]
            return every, every if parts is None else EstimatedCount(parted_buffer(
                tuple(int(parts[role] // unit) for role in order), each))  # type: ignore[arg-type]
        words_of = _box_words(_convolution_tensors() if set(self.flexibility.dimensions) == set(CONVOLUTION)
                              else self._tensors())
        limits = dict.fromkeys(self.flexibility.dimensions, int(capacity // min(bits.values())))
        every = estimated_tiles(limits, room.shared_fit(words_of), self.rng)
        return every, every if parts is None else estimated_tiles(limits, room.parted_fit(words_of), self.rng)

    def _tensors(self) -> tuple[Tensor, ...]:
        """Return the operator's tensors in the machine's names of dimensions."""
        names = {name: d for d, name in self.ours.items() if name is not None}
        return tuple(Tensor(t.name, t.role, tuple(
            Axis(kept) for axis in t.axes if (kept := tuple((names[d], c) for d, c in axis.terms if d in names))))
            for t in self.operator.tensors)

    def _words(self) -> Words:
        return _box_words(self._tensors()) if self.rule.inputs == "box" else _window_words(self._tensors())


@dataclass(frozen=True)
class _Room:
    """The buffer whose tiles are counted: bits of one tile's share, shared and (None: not) in hard partitions."""

    capacity: int
    bits: dict[str, int]
    parts: dict[str, int] | None

    @classmethod
    def of(cls, accelerator: Accelerator, flexibility: Flexibility) -> "_Room":
        memory = accelerator.level(flexibility.memory)
        assert isinstance(memory, Memory)
        size = memory.capacity_bytes or sum(part for _, part in memory.partitions_bytes)
        if not size:
            raise InputError(f"{accelerator.name}.{memory.name}", "must be limited for its tiles to be counted", None,
                             "Name another memory in flexibility.memory")
        ratio = dict(dict(flexibility.tile.partitions).get(memory.name, ()))
        total = sum(ratio.values())
        parts = {role: int(8 * (size * share / total // 1)) // memory.copies for role, share in ratio.items()}
        if parts and set(parts) != set(ROLES):
            raise InputError(f"{accelerator.name}.flexibility.tile.partitions.{memory.name}",
                             f"must give {', '.join(ROLES)} to be counted", ", ".join(parts))
        return cls(int(8 * size) // memory.copies, dict(accelerator.word_bits), parts or None)

    def shared_fit(self, words: Words) -> Fits:
        """Return what tells whether tiles fit the buffer together."""
        return lambda extents: reduce(np.add, [count * self.bits[role]
                                               for role, count in words(extents).items()]) <= self.capacity

    def parted_fit(self, words: Words) -> Fits:
        """Return what tells whether the tile of each role fits its partition."""
        parts = self.parts or {}
        return lambda extents: reduce(np.logical_and, [count * self.bits[role] <= parts[role]
                                                       for role, count in words(extents).items()])


def _flexion(axes: str, *values: float) -> Flexion:
    return Flexion(axes, *(EstimatedCount(value) for value in values))


def _convolution_tensors() -> tuple[Tensor, ...]:
    return tuple(Tensor(name, role, tuple(Axis(((d, 1),)) for d in dims))  # type: ignore[arg-type]
                 for name, role, dims in (("I", "inputs", "CPQ"), ("W", "weights", "KCRS"), ("O", "outputs", "KPQ")))


def _box_words(tensors: tuple[Tensor, ...]) -> Words:
    """Return words by role where a sliding axis counts as its first dimension alone."""
    return lambda extents: _by_role(tensors, lambda axis: extents[axis.terms[0][0]])


def _window_words(tensors: tuple[Tensor, ...]) -> Words:
    """Return words by role as they are touched (rule 1 of the counting rules)."""
    def along(axis: Axis, extents: Extents) -> Numbers:
        sides = [np.float64(1) * extents[d] for d in axis.dimensions]
        return axis_sides(tuple(times for _, times in axis.terms), sides, box=False)

    return lambda extents: _by_role(tensors, lambda axis: along(axis, extents))


def _by_role(tensors: tuple[Tensor, ...], along: Callable[[Axis], Numbers]) -> dict[str, Numbers]:
    """Return the words of all tensors of each role, from those along each axis."""
    found: dict[str, Numbers] = {}
    for tensor in tensors:
        count = reduce(np.multiply, [along(axis) for axis in tensor.axes], np.ones((), dtype=np.int64))
        found[tensor.role] = found[tensor.role] + count if tensor.role in found else count
    return found
