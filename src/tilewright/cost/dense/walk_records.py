"""What `walks` writes down of an operator on a machine, and `busiest_kernels` reads: kinds, columns and records."""

from typing import Any, NamedTuple

from tilewright.cost.records import KINDS
from tilewright.hardware import PORTS

FILL, READ, EVICT, UPDATE, HELD, LOWEST, FIRST = range(7)
"""Kinds of entries: what crosses a boundary, what stays at home, and the instances from which sums are counted."""
PLAIN, SLIDING, LACKING = range(3)
"""Kinds of units, and of dimensions to the output."""
VIEWS = (*PORTS, "blocking")
"""The instance that is busiest at each port, and the one that blocks longest."""
READ_PORT, WRITE_PORT, SHARED_PORT, BLOCKING = range(len(VIEWS))
READS, FILLS, UPDATES, DRAINS = range(len(KINDS))
LATENCY, ENERGY, EXCESS, STEPS, STEADY, RAMP, TRAFFIC, BLOCKED, OTHERS = range(9)
"""Rows of the output of every program.

The last two stand only where memories are walked, to make steady cycles of: steps with all that blocks them at the
other memories, and the cycles of the other memories' ports.
"""
LEVEL, LANES, MERGES = range(3)
"""Columns of a slot: its level, whether it holds lanes, and, for each tensor from here on, whether they merge it."""
NO_LANES, OUTER_LANES, INNER_LANES = range(3)
"""Slots of temporal loops, of lanes that make instances of a memory, and of lanes inside one instance of it."""


class PackedNests(NamedTuple):
    """The loop nests of a batch."""

    steps: Any
    ranks: Any
    """``steps`` and ``ranks``: ``(s, d, b)``."""


class UnpackedNest(NamedTuple):
    """One of them."""

    sizes: Any
    """``(d)``."""
    steps: Any
    ranks: Any
    outside: Any
    counts: Any
    """``(s, d)`` each; the last two: nominal extents outside slots, and nominal iterations of loops."""


class WalkHead(NamedTuple):
    """A memory in numbers."""

    end: int
    """Slots outside it."""
    entries: int
    units: int
    output: int
    """Number of the output where the memory keeps it; -1 where it does not."""
    last: int
    """Number of the last keeper of the output, the memory itself."""
    single: int
    """Whether it has one buffer alone, so that its transfers block."""


class WalkEntry(NamedTuple):
    """What is counted at a memory: a product of factors, one for each `WalkUnit` of its tensor."""

    kind: int
    tensor: int
    child: int
    """Slots outside the child."""
    computes: int
    """Whether the child does."""
    advancing: int
    """Slots whose loops may advance."""
    alone: int
    """The slot from which on lanes must be the first."""
    number: int
    """Among its kind."""
    keeper: int


class WalkUnit(NamedTuple):
    """A dimension that one of the factors of an entry comes from, or two of one sliding axis."""

    tensor: int
    kind: int
    first: int
    stride: int
    second: int
    """-1 but for a sliding axis."""
    dilation: int


class WalkTables(NamedTuple):
    """All that is known of the memories that are walked; what differs between them has a row ``m`` each."""

    slots: Any
    """``(m, s, 2 + t)``: `LEVEL`, `LANES` and `MERGES`."""
    heads: Any
    """``(m, 6)``: a `WalkHead`."""
    entries: Any
    """``(m, e, 8)``: an `WalkEntry` each."""
    units: Any
    """``(m, u, 6)``: a `WalkUnit` each."""
    kinds: Any
    """``(d)``: what dimensions are to the output, `PLAIN`, `SLIDING` or `LACKING`."""
    ends: Any
    """``(m, k)``: slots outside each keeper of the output, down to the memory."""
    clusters: Any
    """``(d)``: dimensions of one sliding axis are in one; -1 where a dimension is on none."""
    relevant: Any
    """``(t, d)``: whether a tensor has a dimension."""
    bits: Any
    """``(m, t)``: of a word."""
    telling: Any
    """``(d)``: whether loops over a dimension tell if another instance than the first may be the busiest."""


class WalkedMemory(NamedTuple):
    """One memory's rows of `WalkTables`."""

    slots: Any
    head: WalkHead
    entries: Any
    units: Any
    kinds: Any
    ends: Any
    clusters: Any
    relevant: Any
    bits: Any


class WalkWork(NamedTuple):
    """Arrays for one thread to work in."""

    nest: UnpackedNest
    values: Any
    """``(2, 8, n)``: rows of the values of the two dimensions of an axis, as `axis_kernels` names them."""
    factors: Any
    """``(e, i)``: factors of instances."""
    touches: Any
    """``(2, n)``: keys of the touches of a word, and their instances."""
    pieces: Any
    """``(2, s)``: extents of pieces, and how many there are of each."""
    cuts: Any
    """``(k, 2)``: see `axis_kernels.order_loops`."""
    worth: Any
    """``(s, 2)``: likewise."""
    lanes: Any
    """``(d)``: lanes that make instances along each dimension."""
    tables: Any
    """``(c + 1, e, i)``: factors of every entry by cluster and instance; last, of what is on none."""
    words: Any
    """``(t, kind)``: of one instance."""
    most: Any
    """``(view)``: what the busiest instance so far has."""
    busiest: Any
    """``(view, t, kind)``: words of the busiest instances."""
