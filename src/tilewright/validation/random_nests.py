"""Seeded random operators, accelerators and mappings that reach every counting rule, small enough to be walked."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from tilewright.hardware import Accelerator, AccessEnergy, Along, Bandwidth, Compute, Fanout, Memory, Merging
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Axis, Operator, Role, Tensor

LARGEST_LOOP_OF_LANES = 6
LARGEST_ARRAYS = 96
RATES = (None, None, None, None, None, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0, 16.0)
ODD_RATES = (None, 0.7, 0.1, 0.3, 1.1, 2.5, 0.333, 1 / 3, 2 / 7, 12.8)
"""Where rounding of decimal numbers, and of words that they do not divide, would show."""

Terms = tuple[tuple[str, int], ...]


def random_case(rng: np.random.Generator, most_macs: int = 10_000, *,
                sliding: bool = False) -> tuple[Operator, Accelerator, Mapping]:
    """Return one case; most have far fewer than ``most_macs`` multiply-accumulates.

    ``sliding``: axes of the output slide, or operands have holes, lanes lie over them inside and outside of memories,
    and ports are slow, at `ODD_RATES`, and block: what makes another instance than the first the busiest.
    """
    operator = random_operator(rng, int(np.exp(rng.uniform(np.log(40), np.log(most_macs)))),
                               _SLIDING_KINDS if sliding else _KINDS)
    kinds = _random_kinds(rng)
    if sliding:
        kinds = ["memory", "fanout", *kinds[1:], "memory"]
    loops = _random_loops(rng, operator, kinds)
    levels: list[Memory | Fanout] = []
    keeps: list[tuple[str, ...] | None] = []
    fanned = False
    for at, kind in enumerate(kinds):
        if kind == "fanout":
            levels.append(_random_fanout(rng, f"Fan{at}", loops[at], _nominal_counts(operator, loops, at)))
            keeps.append(None)
            fanned = True
        else:
            able = operator.tensors if at == 0 else [t for t in operator.tensors if rng.random() < 0.7]
            levels.append(_random_memory(rng, f"Mem{at}", able, fanned, ODD_RATES if sliding else RATES))
            bypass = at > 0 and rng.random() < 0.2
            keeps.append(tuple(t.name for t in able if rng.random() < 0.5) if bypass else None)
    accelerator = Accelerator(
        "random", tuple(levels),
        Compute("MAC", float(rng.choice([0.0, 0.2, 1.0])), leakage_mw=float(rng.choice([0.0, 0.001]))),
        frequency_mhz=float(rng.choice([200.0, 1000.0])),
        word_bits=tuple((role, int(rng.choice([8, 8, 16, 32]))) for role in ("inputs", "weights", "outputs")),
    )
    entries = tuple(LevelLoops(level.name, tuple(found), kept)
                    for level, found, kept in zip(levels, loops, keeps, strict=True))
    return operator, accelerator, Mapping(entries)


class _Kind(NamedTuple):
    """A kind of operator: how large its dimensions may be (from 1, or between two sizes), and axes by tensor.

    ``P/R`` is any sliding axis; of ``P+R`` the first step is 2 or 3 and the second 1, which leaves holes where R is
    short; of ``P*R`` the second is 2 to 6, so that inputs lie far apart.
    """

    name: str
    sizes: str
    weights: str
    inputs: str
    outputs: str


_CONV1D = _Kind("conv1d", "C5 K6 P40 R9", "K C R", "C P/R", "K P")
_CONV2D = _Kind("conv2d", "N3 K8 C8 P12 Q8 R5 S4", "K C R S", "N C P/R Q/S", "N K P Q")
_TRANSPOSED1D = _Kind("transposed1d", "C6 K6 P30 R9", "C K R", "C P", "K P/R")
_TRANSPOSED2D = _Kind("transposed2d", "C5 K5 P10 Q6 R5 S4", "C K R S", "C P Q", "K P/R Q/S")
_CROSSED = _Kind("crossed", "A12 B12 D8 E8", "A/D E", "B/D E/A", "A/B E")
_HOLES1D = _Kind("holes1d", "K3 P5-59 R2-6", "K R", "P*R", "K P")
_KINDS = (
    _CONV1D, _CONV2D, _CONV2D, _Kind("depthwise", "G8 P14 Q8 R6 S4", "G R S", "G P/R Q/S", "G P Q"),
    _Kind("grouped", "G4 K4 C3 P8 Q5 R3 S3", "G K C R S", "G C P/R Q/S", "G K P Q"),
    _Kind("matmul", "B3 M20 N20 K20", "B K N", "B M K", "B M N"), _TRANSPOSED1D, _TRANSPOSED2D,
    _Kind("pointwise", "K12 C12 P12 Q9 R1 S1", "K C R S", "C P+R Q+S", "K P Q"), _CROSSED)
_SLIDING_KINDS = (_TRANSPOSED1D, _TRANSPOSED1D, _TRANSPOSED2D, _CROSSED, _HOLES1D, _HOLES1D, _CONV1D)


def random_operator(rng: np.random.Generator, most_macs: int, kinds: Sequence[_Kind] = _KINDS) -> Operator:
    """Return a convolution of some kind, a matrix product, or a nest with unusual sliding axes; or one of ``kinds``."""
    kind = kinds[int(rng.choice(len(kinds)))]
    sizes = {each[0]: _size(rng, each[1:]) for each in kind.sizes.split()}
    axes = [[_axis(rng, axis) for axis in tensor.split()] for tensor in (kind.weights, kind.inputs, kind.outputs)]
    names = list(sizes)
    while prod(sizes.values()) > most_macs:
        largest = [name for name in names if sizes[name] > 1]
        name = largest[rng.integers(len(largest))]
        sizes[name] -= max(1, sizes[name] // 4)
    order = [names[i] for i in rng.permutation(len(names))]
    roles: tuple[Role, ...] = ("weights", "inputs", "outputs")
    tensors = tuple(
        Tensor(name, role, tuple(Axis(terms) for terms in found),
               None if rng.random() < 0.7 else int(rng.choice([8, 16, 32])))
        for name, role, found in zip(("W", "I", "O"), roles, axes, strict=True))
    return Operator(kind.name, "einsum", tuple((name, sizes[name]) for name in order), tensors)


def _size(rng: np.random.Generator, ends: str) -> int:
    low, _, high = ends.rpartition("-")
    return int(rng.integers(int(low or 1), int(high) + 1))


def _axis(rng: np.random.Generator, axis: str) -> Terms:
    if "/" in axis:
        return _slide(rng, *axis.split("/"))
    if "+" in axis:
        return ((axis[0], int(rng.integers(2, 4))), (axis[2], 1))
    if "*" in axis:
        return ((axis[0], int(rng.integers(1, 4))), (axis[2], int(rng.integers(2, 7))))
    return ((axis, 1),)


def _slide(rng: np.random.Generator, first: str, second: str) -> Terms:
    """Draw a sliding axis, its terms in either order, its coefficients 1 to 3 (or both 2, 4 for a common divisor)."""
    stride, dilation = (int(c) for c in rng.integers(1, 4, size=2))
    if rng.random() < 0.15:
        stride, dilation = ((2, 2), (2, 4), (4, 2), (3, 3))[rng.integers(4)]
    elif rng.random() < 0.4:
        stride = dilation = 1
    terms = ((first, stride), (second, dilation))
    return terms if rng.random() < 0.5 else terms[::-1]


def _random_kinds(rng: np.random.Generator) -> list[str]:
    rest = ["memory"] * int(rng.integers(0, 4)) + ["fanout"] * int(rng.choice([0, 1, 1, 2, 2, 3, 4]))
    return ["memory", *(rest[i] for i in rng.permutation(len(rest)))]


def _random_step(rng: np.random.Generator, extent: int, least: int = 1) -> int:
    """Draw a step in ``least .. extent``: any, one that divides the extent, 1, or the extent itself (no loop)."""
    draw = rng.random()
    if draw < 0.25:
        return least
    if draw < 0.35:
        return extent
    if draw < 0.6:
        divisors = [step for step in range(least, extent + 1) if extent % step == 0]
        return int(rng.choice(divisors))
    return int(rng.integers(least, extent + 1))


def _random_loops(rng: np.random.Generator, operator: Operator, kinds: list[str]) -> list[list[Loop]]:
    """Draw loops level by level, then place what is left of each dimension inside its last loop."""
    names = list(operator.sizes)
    extents = dict(operator.sizes)
    loops: list[list[Loop]] = [[] for _ in kinds]
    lanes = 1
    for at, kind in enumerate(kinds):
        spatial = kind == "fanout"
        for _ in range(int(rng.integers(0, 4 if spatial else 6))):
            name = names[rng.integers(len(names))]
            extent = extents[name]
            least = -(-extent // LARGEST_LOOP_OF_LANES) if spatial else 1
            step = _random_step(rng, extent, least)
            count = -(-extent // step)
            if spatial and lanes * count > LARGEST_ARRAYS:
                continue
            lanes *= count if spatial else 1
            loops[at].append(_loop(rng, name, step, spatial))
            extents[name] = step
    for name in names:
        if extents[name] > 1:
            lanes *= _cover(rng, loops, kinds, (name, extents[name]), lanes)
    return loops


def _loop(rng: np.random.Generator, name: str, step: int, spatial: bool) -> Loop:
    return Loop(name, step, ("X", "Y")[rng.integers(2)] if spatial else None)


def _cover(rng: np.random.Generator, loops: list[list[Loop]], kinds: list[str], left: tuple[str, int],
           lanes: int) -> int:
    """Add the loop of step 1 over what is left of a dimension inside its other loops; return by how much lanes grow."""
    name, extent = left
    last = max((at for at, found in enumerate(loops) if any(loop.dimension == name for loop in found)), default=0)
    small = extent <= LARGEST_LOOP_OF_LANES and lanes * extent <= LARGEST_ARRAYS
    places = [at for at in range(last, len(kinds)) if kinds[at] == "memory" or small]
    if not places:  # the last loop is at the innermost fan-out: shorten a temporal loop outside it instead
        return _cover_outside(loops, kinds, name)
    at = places[rng.integers(len(places))]
    first = max((i + 1 for i, loop in enumerate(loops[at]) if loop.dimension == name), default=0)
    spatial = kinds[at] == "fanout"
    loops[at].insert(int(rng.integers(first, len(loops[at]) + 1)), _loop(rng, name, 1, spatial))
    return extent if spatial else 1


def _cover_outside(loops: list[list[Loop]], kinds: list[str], name: str) -> int:
    """Take ``name`` off all fan-outs and finish it at the outermost memory (lanes only shrink)."""
    for at, kind in enumerate(kinds):
        if kind == "fanout":
            loops[at] = [loop for loop in loops[at] if loop.dimension != name]
    loops[0].append(Loop(name, 1))
    for at in range(1, len(kinds)):
        loops[at] = [Loop(name, 1, loop.axis) if loop.dimension == name else loop for loop in loops[at]]
    return 1


def _nominal_counts(operator: Operator, loops: list[list[Loop]], level: int) -> list[int]:
    extents = dict(operator.sizes)
    counts: list[int] = []
    for at, found in enumerate(loops[:level + 1]):
        for loop in found:
            if at == level:
                counts.append(-(-extents[loop.dimension] // loop.step))
            extents[loop.dimension] = loop.step
    return counts


def _random_fanout(rng: np.random.Generator, name: str, loops: list[Loop], counts: list[int]) -> Fanout:
    used = [prod(n for loop, n in zip(loops, counts, strict=True) if loop.axis == axis) for axis in ("X", "Y")]
    second = any(loop.axis == "Y" for loop in loops)
    shape = (used[0] + int(rng.integers(0, 2)), max(2, used[1] + int(rng.integers(0, 2))) if second else 1)
    return with_networks(rng, Fanout(
        name, shape, multicast=bool(rng.random() < 0.65), reduce=bool(rng.random() < 0.65),
        network_energy_pj_per_word=float(rng.choice([0.0, 0.125, 0.5]))))


def with_networks(rng: np.random.Generator, array: Fanout) -> Fanout:
    """Return every other array with networks that tell tensors apart, and sides where these are fixed.

    They are drawn from a child of ``rng``, which itself goes on as if there were none.
    """
    own = rng.spawn(1)[0]
    choices: list[Along] = [True, False] if array.one_piece else [True, False, "x", "y"]

    def along() -> Along:
        return choices[own.integers(len(choices))]

    def drawn() -> Merging:
        told = [(name, along()) for name in ("inputs", "weights", "O", "outputs") if own.random() < 0.8]
        return tuple(told) if told and own.random() < 0.5 else along()

    return replace(array, multicast=drawn(), reduce=drawn()) if own.random() < 0.5 else array


def _random_memory(rng: np.random.Generator, name: str, able: list[Tensor] | tuple[Tensor, ...],
                   fanned: bool, rates: tuple[float | None, ...]) -> Memory:
    read, write = rates[rng.integers(len(rates))], rates[rng.integers(len(rates))]
    shared = None
    if rng.random() < 0.3:
        read, write, shared = None, None, rates[rng.integers(len(rates))]
    energies = [float(e) for e in rng.choice([0.25, 0.5, 1.0, 1.25, 6.0, 100.0], size=4)]
    return Memory(
        name, tuple(t.name if rng.random() < 0.5 else t.role for t in able), AccessEnergy(*energies),
        word_bits=int(rng.choice([8, 8, 16, 32])), block_words=1 if fanned else int(rng.choice([1, 1, 4, 8])),
        bandwidth=Bandwidth(read, write, shared), buffering=("single", "double", "buffet")[rng.integers(3)],
        leakage_mw=float(rng.choice([0.0, 0.0, 0.01])),
    )
