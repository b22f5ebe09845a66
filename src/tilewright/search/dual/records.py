"""What compiled code reads of a space, and where it works."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tilewright.search.dual.ranges import Floats, Integers

NEVER, BOUND = -1e3, 1e-9
"""The logarithm of a weight of 0, and what rounding may have added to a bound's logarithm."""
ATOMS, MOST_BINS = 40, 256
"""Chains of a group that are kept; and how many lanes of several dimensions along a side are told apart, at most."""
CYCLES, ENERGY = range(2)
"""Factors of a score."""
BEGIN, END, FIRST_LANES, SECOND_LANES, OWN_LANES = range(5)
"""Columns of the ends of a way through an array: its nodes, rows of lanes of both dimensions, and, from here, these."""
WHENCE, LAYER, CELL = range(3)
"""Columns of where a beginning of a chain came from."""
Marks = NDArray[np.uint8]


class DualProblem(NamedTuple):
    """What `kernels` reads. Quantities (n) are sums over groups of dimensions, all in logarithms.

    Layers are the extents at the top of each memory, and those inside its loops; by layer come for each tensor the
    pieces that the dimensions fall into which it does not use, and its words, for each result the words of its last
    tile wherever tiles are cut and where they are cut first, and for each window how often it makes words cross again.
    Then come steps of compute, how often compute reads at its boundaries, how many lanes fill copies of a tensor, and
    lanes by limit of an array.
    """

    scale: float
    factors: Integers
    """What scores are multiplied by (its logarithm), and ``(2)`` whether `CYCLES` and `ENERGY` are factors."""
    floors: Floats
    """``(2)``: cycles and energy, at least."""
    steps: int
    """The place of steps among quantities."""
    weights: Floats
    stages: Integers
    """``(i, 2 + r)``: picojoules, and cycles of compute and of each port, of the terms (no logarithms), and ``(i)`` in
    which stage these pass while nothing else does (0: in none)."""
    others: Integers
    """``(i)``: another term that a term is no less than, either in place of the other (-1: none)."""
    rooms: Floats
    held: Integers
    """``(q, t)`` shares of a room that a tensor's word takes, and ``(q, t, 1)`` its words among quantities."""
    sides: Integers
    limits: Floats
    """``(s)``: limits of arrays: the place among quantities, and how many lanes there may be."""
    dims: Integers
    shapes: Integers
    """``(g, 2)``: the dimensions of a group (twice the same of one), and how many ranges of extents each has."""
    cells: Floats
    cell_starts: Integers
    """``(c, w)`` quantities of pairs of ranges, and ``(g + 1)`` where those of a group begin."""
    sizes: Integers
    unused: Integers
    extents: Integers
    extent_starts: Integers
    array_sides: Integers
    """``(g, 2)`` and ``(g, 2, t)`` sizes of the dimensions of a group, and whether tensors do not use them; ``(x, 2)``
    least and largest extents of their ranges, ``(g, 2)`` where these begin; and ``(g, 2, m)`` along how many sides of
    the array inside a memory they may have lanes, 1 at least (0: there is none)."""
    states: Integers
    """``(g, l)``: what else tells nodes apart there: what is left of the dimensions for the arrays further in."""
    edges: Floats
    ends: Integers
    edge_starts: Integers
    """``(e, 1 + b + o)`` quantities of ways through an array, from steps on; ``(e, 6)`` where they begin and end
    (`BEGIN` and what follows); ``(g, m, 2)`` which are those of a
    group inside a memory."""
    lane_spans: Integers
    lane_sides: Integers
    lane_logs: Floats
    """``(v + 1)`` the ways (w) to part some lanes between sides; ``(w, 2)`` limits, and the logarithms of lanes."""
    loads: Integers
    load_rows: Integers
    load_starts: Integers
    fits: Floats
    fit_starts: Integers
    limit_starts: Integers
    many: Floats
    """``(e)`` which loads (o) of an array ways are, two rows of lanes together, ``(o, 2)`` these rows, ``(g, m + 1)``
    where loads of a group inside a memory begin; ``(x, 2)`` lanes along both sides of each load, the fewest, and
    ``(o + 1)`` where these begin; ``(m + 1)`` where limits of the array inside a memory begin, and ``(s + 1)`` how many
    lanes they let be."""


class SmoothParts(NamedTuple):
    """What a smooth largest is made of."""

    tops: Floats
    shares: Floats
    """``tops`` and ``shares``: the logarithms that compete, and what part of the largest each is."""
    sums: Floats
    grown: Floats
    """``sums`` and ``grown``: sums of terms, and the terms, over the largest of these."""


class Work(NamedTuple):
    """Where `kernels` work (``y``: terms, words in rooms, and limits)."""

    slope: Floats
    """``(n)``."""
    point: Floats
    pull: Floats
    way: Floats
    tried: Floats
    tried_pull: Floats
    """``(y)`` each: where the search is, the slope there, a way to go, and both of a point of it."""
    smooth: SmoothParts
    costs: Floats
    side_cost: Floats
    lane_cost: Floats
    lane_over: Floats
    chosen: Integers
    """The least costs of cells at a layer, of ways to part lanes, and of lanes; by how much chains cost
    too much that have them, at least; and the way to part them."""
    cells: Marks
    ways_left: Marks
    sides_left: Marks
    """``(l, c)``, ``(e)`` and ``(w)``: whether cells by layer, ways through arrays, and ways to part lanes are left."""
    f: Floats
    came: Integers
    rest: Floats
    after: Floats
    """``(2 m + 1, .)`` least costs of nodes, ``(2 m, .)`` where from, ``(2, .)`` what is left to compute, and
    ``(2 m + 1, .)`` that of all nodes."""
    kept: Integers
    lengths: Floats
    through: Floats
    spans: Integers
    """Ways through arrays that are left, what they cost, and chains that go them at least; and ``(g, m, 2)`` which are
    those inside a memory."""
    loads: Floats
    order: Integers
    fronts: Floats
    counts: Integers
    turn: Integers
    spent: Floats
    bins: Floats
    """``(3, o)`` by how much the least chains of a load exceed those of their group, what limits take for its lanes,
    and what other groups exceed theirs by, and the order of the first; lanes along sides ``(g, ., 2)`` of the loads of
    the groups before one, how many, what is next, and sums ``(2, g)`` of the first two; and room for such lanes."""
    atoms: Floats
    views: Floats
    parts: Floats
    paths: Integers
    """``(g, a, .)``: chains of groups by quantities, by ``y``, their weights (-1: none), and what `kernels.shortest`
    writes of them."""
    path: Integers
    slopes: Floats
    moved: Floats
    """``(a)``, ``(g, a)``: the slopes along chains of a group, and how weight moves between them in a step."""
    who: Integers
    kept_ways: Integers
    ways: Floats
    solved: Floats
    """``(w, 3)``: groups, with two chains, between which weight may move, ``(w)`` the numbers of those in a step,
    ``(w, y)`` where that leads, and ``(3, w)`` slopes along them, steps, and slopes of those in a step."""
    bends: Floats
    products: Floats
    matrix: Floats
    """Second derivatives by ``y``, by ``w``, and room to solve for a step."""

    @classmethod
    def of(cls, p: DualProblem) -> "Work":
        """Return room for a problem."""
        groups, n, memories = len(p.dims), p.steps + p.edges.shape[1] + len(p.sides), p.edge_starts.shape[1]
        cells = np.diff(p.cell_starts)
        nodes = int((p.states.max(axis=1) * cells).max())
        seen, ways = len(p.weights) + p.rooms.size + len(p.sides), groups * ATOMS
        return cls(
            slope=np.zeros(n), point=np.zeros(seen), pull=np.zeros(seen), way=np.zeros(seen), tried=np.zeros(seen),
            tried_pull=np.zeros(seen), smooth=SmoothParts(*np.zeros((4, max(*p.weights.shape, p.rooms.shape[1], 2)))),
            costs=np.zeros(int(cells.max())),
            side_cost=np.zeros(len(p.lane_sides)), lane_cost=np.zeros(len(p.lane_spans) - 1),
            lane_over=np.zeros(len(p.lane_spans) - 1), chosen=np.zeros(len(p.lane_spans) - 1, dtype=np.int64),
            cells=np.ones((2 * memories, len(p.cells)), dtype=np.uint8),
            ways_left=np.ones(len(p.ends), dtype=np.uint8), sides_left=np.ones(len(p.lane_sides), dtype=np.uint8),
            f=np.zeros((2 * memories + 1, nodes)), came=np.zeros((2 * memories, nodes), dtype=np.int64),
            rest=np.zeros((2, nodes)), after=np.zeros((2 * memories + 1, nodes)),
            kept=np.zeros(len(p.ends), dtype=np.int64), lengths=np.zeros(len(p.ends)), through=np.zeros(len(p.ends)),
            spans=np.zeros((groups, memories, 2), dtype=np.int64), loads=np.zeros((3, len(p.load_rows))),
            order=np.zeros(len(p.load_rows), dtype=np.int64), fronts=np.ones((groups, 1 + MOST_BINS, 2)),
            counts=np.zeros(groups, dtype=np.int64), turn=np.zeros(groups, dtype=np.int64),
            spent=np.zeros((2, groups)), bins=np.zeros((1 + MOST_BINS, 2)), atoms=np.zeros((groups, ATOMS, n)),
            views=np.zeros((groups, ATOMS, seen)), parts=np.zeros((groups, ATOMS)),
            paths=np.zeros((groups, ATOMS, 5 * memories), dtype=np.int64),
            path=np.zeros(5 * memories, dtype=np.int64), slopes=np.zeros(ATOMS), moved=np.zeros((groups, ATOMS)),
            who=np.zeros((ways, 3), dtype=np.int64), kept_ways=np.zeros(ways, dtype=np.int64),
            ways=np.zeros((ways, seen)), solved=np.zeros((3, ways)), bends=np.zeros((seen, seen)),
            products=np.zeros((ways, ways)), matrix=np.zeros((ways, ways)))
