"""Ways to place buffers: in one go, by constraint programming, and by a search of canonical placements.

The search is restarted in several orders of preference, for one height after the other. Its ideas are those of
MiniMalloc (Moffitt, ASPLOS 2023): canonical placements, bounds by section of time, dominance, several orders. Here a
node has two branches, the lowest buffer where it rests or above that, and positions are raised by what must lie below
them. Parts that share no time are searched apart.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from tilewright.base import require_extra
from tilewright.packing.buffers import Ints
from tilewright.packing.session import PACKERS, PackingSession, kernels

if TYPE_CHECKING:
    from tilewright.packing.kernels import Instance, SearchState

TRIES = 100
"""Orders that `hill-climb` tries."""
SPARE, GROWTH, LONGER = 150, 1.05, 3
"""Nodes of a search in the first round beside one for each buffer, and how many times as many in each further round:
luck in the first placements decides, so that many short searches are better than few long ones. The first order goes on
where it was, for so many times as many, until it is placed or proven not to be."""
SPREAD = 0.3
"""How far drawn orders are from those by life, area or size: of the logarithm of these."""
SLICE = 10_000
"""Nodes between two looks at the clock."""
LARGEST = 1_500
"""Buffers of a part that is searched: a search keeps positions of each, and what they come from, at each depth."""


def _place(session: PackingSession, order: Ints, tightest: bool, tries: int = 0) -> None:
    own = np.arange(len(order))
    instance = session.instance(own)
    apart = np.ones((len(order), len(order)), np.bool_)
    apart[np.repeat(own, np.diff(instance.near_starts)), instance.near] = False
    offsets = np.empty(len(order), np.int64)
    draws = np.random.default_rng(0).random((tries, 2))
    kernels.place_in_order(instance, apart, order.astype(np.int64), tightest, draws, offsets)
    session.offer(offsets)


def _by_size(session: PackingSession) -> Ints:
    buffers = session.buffers
    return np.lexsort((buffers.lower, buffers.lower - buffers.upper, -buffers.size))


@PACKERS.register("greedy-by-size")
def greedy_by_size(session: PackingSession) -> None:
    """Place the largest first, each at the lowest address that is free for its life (TensorFlow Lite's planner)."""
    _place(session, _by_size(session), tightest=False)


@PACKERS.register("best-fit")
def best_fit(session: PackingSession) -> None:
    """Place buffers as they come, the largest of those that come together first, into the smallest gap."""
    _place(session, np.lexsort((-session.buffers.size, session.buffers.lower)), tightest=True)


@PACKERS.register("hill-climb")
def hill_climb(session: PackingSession) -> None:
    """Swap a buffer at the top with one beside it while that is no worse, from `greedy-by-size` on (TVM)."""
    _place(session, _by_size(session), tightest=False, tries=TRIES)


@PACKERS.register("cp-sat")
def cp_sat(session: PackingSession) -> None:
    """Place rectangles of time and address without overlap, by CP-SAT of OR-Tools on one thread."""
    require_extra("cp-sat", "method", "cp-sat")
    from ortools.sat.python import cp_model  # noqa: PLC0415  (an extra)

    model = cp_model.CpModel()
    most = session.capacity if session.capacity is not None else session.height
    height = model.new_int_var(session.bound, max(most, session.bound), "height")
    offsets, times, rows, sizes = list[Any](), list[Any](), list[Any](), list[int]()
    for i, (size, alignment) in enumerate(zip(session.size.tolist(), session.alignment.tolist(), strict=True)):
        step = model.new_int_var(0, max(0, most - size) // alignment, "")
        offsets.append(step * alignment)
        model.add(offsets[-1] + size <= height)
        if session.bank:
            at = model.new_int_var(0, session.bank - size, "")
            model.add(offsets[-1] - at == session.bank * model.new_int_var(0, most // session.bank, ""))
        for first, last in session.buffers.spans(i):
            rows.append(model.new_fixed_size_interval_var(offsets[-1], size, ""))
            times.append(model.new_fixed_size_interval_var(first, last - first, ""))
            sizes.append(size)
    model.add_no_overlap_2d(times, rows)
    model.add_cumulative(times, sizes, height)
    if session.capacity is None:
        model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if session.seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.01, session.seconds - session.used_seconds)
    status = solver.solve(model)
    session.spent = solver.num_branches
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        session.offer(np.array([solver.value(offset) for offset in offsets]))
    if status == cp_model.INFEASIBLE and session.capacity is not None:
        session.bound = max(session.bound, session.capacity + 1)
    elif session.capacity is None and status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        session.bound = max(session.bound, int(np.ceil(solver.best_objective_bound - 1e-6)))


@PACKERS.register("exact")
def exact(session: PackingSession) -> None:
    """Search all canonical placements, from the heuristics' best on; ends with a proof unless time ends it."""
    for heuristic in (greedy_by_size, best_fit, hill_climb):
        if not session.ended:
            heuristic(session)
    if not session.ended and len(session.buffers) <= LARGEST:
        _Search(session).run()


class _Search:
    """Rounds of searches of all parts, for several heights each."""

    def __init__(self, session: PackingSession) -> None:
        self.session = session
        _, self.part = connected_components(csr_array(session.buffers.covers @ session.buffers.covers.T))
        self.held: dict[int, tuple[int, Ints]] = {}
        self.begun: dict[tuple[int, int], tuple[Instance, SearchState]] = {}
        """By part and height, where the search in the first order is: one at the least height, to save room."""

    def run(self) -> None:
        """Search until the session has ended, or has nothing left to spend."""
        rounds = 0
        while not self.session.ended:
            for height in self.heights():
                if self.session.exhausted:
                    return
                before = self.session.bound, self.session.height
                self.search(height, rounds)
                if (self.session.bound, self.session.height) != before:
                    break
            else:
                rounds += 1

    def heights(self) -> list[int]:
        """Return the heights to search, the least that there may be first."""
        session = self.session
        if session.capacity is not None:
            return [session.capacity]
        low, width = session.bound, session.height - session.bound
        return sorted({low, *(low + width * part // 8 for part in (1, 2, 4, 6)), low + width - 1})

    def search(self, height: int, rounds: int) -> None:
        """Search each part for a placement of a height; tell the session what is shown."""
        offsets = np.zeros(len(self.part), np.int64)
        for part in range(self.part.max() + 1):
            places = np.flatnonzero(self.part == part)
            if part not in self.held or self.held[part][0] > height:
                found = self.search_part(part, places, height, rounds)
                if found is None:
                    return
                self.held[part] = int((found + self.session.size[places]).max()), found
            offsets[places] = self.held[part][1]
        self.session.offer(offsets)

    def start(self, order: Ints) -> tuple["Instance", "SearchState"]:
        """Return where a search in an order begins."""
        instance = self.session.instance(order)
        return instance, kernels.search_state(instance)

    def search_part(self, part: int, places: Ints, height: int, rounds: int) -> Ints | None:
        """Search one part in every order; None where nothing was found, or shown to be impossible."""
        for at, order in enumerate(self.orders(places, rounds)):
            instance, state = self.begun[part, height] if (part, height) in self.begun and not at else self.start(order)
            if at == 0 and height == self.heights()[0]:
                self.begun = {(part, height): (instance, state)}
            left, result = int((len(order) + SPARE) * GROWTH**rounds) * (1 if at else LONGER), kernels.OPEN
            while result == kernels.OPEN and left > 0 and not self.session.exhausted:
                result, nodes = kernels.search(instance, height, state, min(left, SLICE),
                                               (at + rounds) % 3 == 1 and at > 0)
                self.session.spent += nodes
                left -= nodes
            if result == kernels.IMPOSSIBLE:
                self.session.bound = max(self.session.bound, height + 1)
                return None
            if result == kernels.PLACED:
                found = np.empty(len(order), np.int64)
                found[np.searchsorted(places, order)] = state.rest[-1]
                return found
        return None

    def orders(self, places: Ints, rounds: int) -> Iterator[Ints]:
        """Yield orders of preference: by life, area and crowding (three ways), by beginning and end, and drawn ones.

        After two rounds, in both of which each is searched in another way, the first one alone is no drawn one.
        """
        buffers, size = self.session.buffers, self.session.size[places]
        covers = buffers.covers[places].astype(np.int64)
        life = covers.sum(axis=1)
        crowd = (covers * (size @ covers)).max(axis=1)
        area = life * size
        first, last = covers.argmax(axis=1), -covers[:, ::-1].argmax(axis=1)
        rng = np.random.default_rng(rounds)
        for place, keys in enumerate(((crowd, area, life), (life, area, crowd), (area, life, crowd), (life, -first),
                                      (life, last))):
            drawn = [places[np.argsort(-(life, area, size)[place % 3] * np.exp(rng.normal(0, SPREAD, len(places))))]
                     for _ in range(2)]
            yield places[np.lexsort([-key for key in keys])] if place == 0 or rounds < 2 else drawn[0]
            yield drawn[1]
