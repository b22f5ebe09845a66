"""What is computed: a perfect loop nest over named dimensions that reads operands and accumulates one output."""

from dataclasses import dataclass, field
from functools import cached_property
from math import gcd, log, prod
from numbers import Integral
from typing import Literal

from tilewright.base import InputError

Role = Literal["inputs", "weights", "outputs"]
ROLES: tuple[Role, ...] = ("inputs", "weights", "outputs")
MOST_BITS, PARTS = 1024, 1024
"""Widths are at most so many bits, and multiples of one part of so many of a bit."""


@dataclass(frozen=True)
class Axis:
    """One axis of a tensor: the coordinate is the sum of ``coefficient * dimension`` over ``terms``.

    One term is a plain axis. Two terms make a sliding axis, as the input row ``stride*P + dilation*R`` of a
    convolution.
    """

    terms: tuple[tuple[str, int], ...]

    @cached_property
    def dimensions(self) -> tuple[str, ...]:
        """Names of the dimensions that move along this axis."""
        return tuple(name for name, _ in self.terms)

    @cached_property
    def coprime(self) -> tuple[int, ...]:
        """The coefficients over what they have in common: steps of coordinates that are taken at all."""
        divisor = gcd(*(coefficient for _, coefficient in self.terms))
        return tuple(coefficient // divisor for _, coefficient in self.terms)

    def words(self, extents: dict[str, int], box: bool = False) -> int:
        """Count the distinct coordinates touched by a box of ``extents`` (counting rule 1).

        With ``box`` count all from the first to the last of them, those between that are not touched too.
        """
        if box:
            return 1 + sum(coefficient * (extents[name] - 1) for name, coefficient in self.terms)
        if len(self.terms) == 1:
            return extents[self.terms[0][0]]
        stride, dilation = self.coprime
        p, r = (extents[name] for name in self.dimensions)
        return p * r - max(0, p - dilation) * max(0, r - stride)


@dataclass(frozen=True)
class Tensor:
    """A tensor of an operator: its axes, its role, and the width and density of its words."""

    name: str
    role: Role
    axes: tuple[Axis, ...]
    word_bits: int | float | None = None
    """None where the accelerator decides (its ``word_bits`` for the role). Parts of bits are of blocks with scales."""
    density: float = 1.0
    """Share of its words that are not zero. They lie anywhere, every set of so many words as likely as any other."""
    structure: tuple[int, int] | None = None
    """``(n, m)`` where of every m neighbouring words n are not zero instead; the density is then n / m."""
    even: bool = False
    """Whether any words that are looked at together hold their share of words that are not zero instead, rounded up
    or down."""
    type: str = ""
    """What its words are (`tilewright.hardware.NumberType.name`), which decides what lanes do with them; empty where
    they are what the accelerator's lanes are made for."""
    partial_bits: int | float | None = None
    """Of an output, the width of its partial sums: of its words wherever they lie and move, but for the last time that
    each is written to its home. None where they are as wide as its words."""

    def __hash__(self) -> int:
        """Of the name alone, which is soon made: tensors of one name seldom stand in one dictionary."""
        return hash(self.name)

    @cached_property
    def dimensions(self) -> frozenset[str]:
        """The dimensions that the tensor uses (its *relevant* dimensions)."""
        return frozenset(name for axis in self.axes for name in axis.dimensions)

    @cached_property
    def sliding(self) -> frozenset[str]:
        """The dimensions of its sliding axes."""
        return frozenset(name for axis in self.axes if len(axis.terms) > 1 for name in axis.dimensions)

    @property
    def is_output(self) -> bool:
        """Whether the operator accumulates into this tensor."""
        return self.role == "outputs"

    def words(self, extents: dict[str, int], box: bool = False) -> int:
        """Count the distinct words touched by a box of ``extents``; with ``box`` all of the least box around them."""
        return prod(axis.words(extents, box) for axis in self.axes)


@dataclass(frozen=True)
class Operator:
    """A multiply-accumulate loop nest.

    Raises an `InputError` if a size is not positive, an axis has more than two terms, a dimension is unknown or used
    twice by one tensor, or there is not exactly one output.
    """

    name: str
    """What people call it, for example ``conv2_1``."""
    kind: str
    """Which builder made it: ``conv``, ``matmul``, ``einsum`` ..."""
    dimensions: tuple[tuple[str, int], ...]
    """``(name, size)`` pairs, in the order they are shown."""
    tensors: tuple[Tensor, ...]
    """Operands first, the one output last."""
    attributes: tuple[tuple[str, int | str], ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _check(self)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Size of each dimension by name."""
        return dict(self.dimensions)

    @cached_property
    def macs(self) -> int:
        """Multiply-accumulates in the whole nest."""
        return prod(size for _, size in self.dimensions)

    @property
    def output(self) -> Tensor:
        """The tensor that is accumulated."""
        return self.tensors[-1]

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The tensors that are only read."""
        return self.tensors[:-1]

    @property
    def signature(self) -> tuple[object, ...]:
        """All that decides the cost; operators of equal signature are searched once."""
        return (self.dimensions, self.tensors)

    def tensor(self, name: str) -> Tensor:
        """Return the tensor called ``name``."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise InputError(f"{self.name}.tensors", f"must be one of {', '.join(t.name for t in self.tensors)}", name)


def _check(op: Operator) -> None:
    sizes = dict(op.dimensions)
    if len(sizes) != len(op.dimensions):
        raise InputError(f"{op.name}.dimensions", "must have distinct names", [n for n, _ in op.dimensions])
    for name, size in op.dimensions:
        if not isinstance(size, Integral) or size < 1:
            raise InputError(f"{op.name}.dimensions.{name}", "must be a positive integer", size)
    if [t.is_output for t in op.tensors] != [False] * (len(op.tensors) - 1) + [True]:
        raise InputError(f"{op.name}.tensors", "must be operands followed by exactly one output",
                         [f"{t.name}:{t.role}" for t in op.tensors])
    if len({t.name for t in op.tensors}) != len(op.tensors):
        raise InputError(f"{op.name}.tensors", "must have distinct names", [t.name for t in op.tensors])
    for tensor in op.tensors:
        _check_tensor(op, tensor, sizes)


def _check_tensor(op: Operator, tensor: Tensor, sizes: dict[str, int]) -> None:
    path = f"{op.name}.{tensor.name}"
    _check_density(path, tensor)
    _check_width(path, tensor)
    used = [name for axis in tensor.axes for name in axis.dimensions]
    unknown = sorted(set(used) - set(sizes))
    if unknown:
        raise InputError(f"{path}.axes", f"must use the dimensions {', '.join(sizes)}", unknown)
    if len(set(used)) != len(used):
        raise InputError(f"{path}.axes", "must use each dimension at most once (diagonals are not boxes of words)",
                         used)
    for axis in tensor.axes:
        if not 1 <= len(axis.terms) <= 2:
            raise InputError(f"{path}.axes", "must be a dimension or the sum of two", [t[0] for t in axis.terms])
        for name, coefficient in axis.terms:
            if coefficient < 1:
                raise InputError(f"{path}.axes.{name}", "must have a positive coefficient", coefficient)


def _check_width(path: str, tensor: Tensor) -> None:
    for width in ("word_bits", "partial_bits"):
        bits = getattr(tensor, width)
        if bits is not None and not (0 < bits <= MOST_BITS and bits * PARTS % 1 == 0):
            raise InputError(f"{path}.{width}", f"must be above 0, at most {MOST_BITS}, and a multiple of 1/{PARTS}",
                             bits)
    if tensor.partial_bits is not None and (not tensor.is_output or tensor.partial_bits < (tensor.word_bits or 0)):
        raise InputError(f"{path}.partial_bits", "must be of an output, and no less than its word_bits",
                         tensor.partial_bits)


def _check_density(path: str, tensor: Tensor) -> None:
    if not 0 < tensor.density <= 1:
        raise InputError(f"{path}.density", "must be above 0 and at most 1", tensor.density)
    if tensor.structure is not None:
        some, every = tensor.structure
        if not 1 <= some <= every or tensor.density != some / every:
            raise InputError(f"{path}.structure", "must be n of m words, the density being n / m", tensor.structure)
        if tensor.even:
            raise InputError(f"{path}.even", "must not be given with a structure", tensor.even, "Leave one of them out")


def form(operator: Operator) -> str:
    """Return what operators must share to lend one another mappings: kind, dimensions and what tensors use of them."""
    tensors = " ".join(f"{tensor.name}[{' '.join('+'.join(axis.dimensions) for axis in tensor.axes)}]"
                       for tensor in operator.tensors)
    return f"{operator.kind} {' '.join(operator.sizes)}: {tensors}"


def edit_distance(first: dict[str, int], second: dict[str, int]) -> tuple[int, float]:
    """Return how many dimensions differ in size, and how much: the sum of the logarithms of the ratios.

    Both have the same dimensions (operators of one `form`). The first figure is the similarity of Kao, dissertation,
    section 5.3.1; the second breaks ties.
    """
    ratios = [abs(log(size / second[name])) for name, size in first.items()]
    return sum(ratio > 0 for ratio in ratios), sum(ratios)
