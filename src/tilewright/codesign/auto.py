"""The design method of our own: bounds choose the machines, few searches map them, and both meet."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.designs import DESIGNERS
from tilewright.codesign.screening import HardwareBoxes, Places, Screened, values_at
from tilewright.codesign.session import Candidate, Session
from tilewright.hardware import Number
from tilewright.search import MapperOptions, Options, read_options

Machine = Mapping[Number, float]
SPLITS = 24
"""Boxes that are split at once."""
FIRST_ROUNDS = 6
"""Rounds of splitting before the first machine is mapped, at most."""
ABREAST = 2
"""Machines mapped at once; fixed, so that results do not depend on the machine that this runs on."""
SHARE, MOST = 64, 4096
"""Samples for each layer of a machine, at first and at most: they grow where no other machine is better."""
FACTORS = 2.0, 1.41, 1.19, 1.09, 1.04
"""By which a number is changed, ever finer."""
NEAR = 1.02, 1.1, 1.3
"""By which factors bounds of the first machines may be above the least."""
FINE, NEAREST = 1.2, 24
"""Factor from which on all values near that of the best are tried of counts and rates, and how many either way."""
POLISH = 0.3
"""Share of the samples, or of the time, that goes to the best machine alone at the end."""
CLOSE = 0.01
"""Bounds are tightened no further where they are this close to the best score."""


@DESIGNERS.register("auto")
class Auto:
    """Branch and bound over boxes of machines names those worth mapping; from the best, numbers are traded by turns.

    Boxes are split where their bounds are least. The best machine found then trades one number for another on the edge
    of the budget (more of one, as much less of another as that takes): neighbours whose bound is not below the best
    score are left out, the others are mapped, each search beginning from the mappings of the best. Steps become finer
    where none of them helps.
    """

    def __init__(self, session: Session, options: Options) -> None:
        read_options(MapperOptions, options, "auto")
        self.session = session
        self.queue: list[tuple[float, Machine]] = []
        self.seen: set[tuple[float, ...]] = set()
        self.finest, self.share = 0, SHARE

    def steps(self) -> Iterator[None]:
        """Work until the session is over, step by step."""
        session = self.session
        self.boxes = HardwareBoxes.whole(session.problem)
        session.bound = self.boxes.least
        self.known = self.boxes.low[:0]
        """Machines of boxes that were split."""
        if session.problem.space.alone:
            yield from self._longer()
            return
        for _ in range(FIRST_ROUNDS):
            self._split()
            yield
        while not session.over and (part := self._next()):
            if session.best is not None and session.spent_share > 1 - POLISH:
                session.map([session.best.chosen], MOST, [session.best])
                yield
                continue
            before = session.nearest
            session.map(part, self.share, [before] * len(part))
            if session.nearest is not before:
                self.queue, self.finest = [], max(0, self.finest - 1)
            if self.boxes.least < session.score_so_far * (1 - CLOSE):
                self._split()
            yield

    def _longer(self) -> Iterator[None]:
        """Search the only machine that there is, ever longer, each time from the best mappings so far."""
        samples = SHARE
        while not self.session.over:
            self.session.map([dict(self.session.problem.smallest)], samples, [self.session.best])
            samples *= 2
            yield

    def _split(self) -> bool:
        """Split boxes, and take note of a machine of each new one; return whether there was any."""
        session = self.session
        found = self.boxes.split(SPLITS, session.score_so_far)
        self.known = np.concatenate([self.known, found])
        session.bound = min(max(session.bound, self.boxes.least), session.score_so_far)
        return bool(len(found))

    def _next(self) -> list[Machine]:
        """Return the machines to map next; none where bounds rule all others out, or more samples help no more."""
        while not self.queue and not self.session.over:
            best = self.session.nearest
            if best is None:
                self._fill(self.known)
                self._roomiest_first()
                if not self.queue and not self._split():
                    return []
            elif self.finest < len(FACTORS):
                self._fill(self._neighbours(best, FACTORS[self.finest]))
                self.finest += not self.queue
            elif len(self.known):
                self._fill(self.known)
                self.known = self.known[:0]
            elif self.boxes.least < best.score * (1 - CLOSE) and self.share < MOST:
                self._split()
                self.share, self.finest, self.seen = 4 * self.share, 0, set()
                return [best.chosen]
            else:
                return []
        part = [machine for bound, machine in self.queue[:ABREAST] if bound < self.session.score_so_far]
        self.queue = self.queue[ABREAST:]
        self.seen |= {tuple(machine.values()) for machine in part}
        return part or (self._next() if not self.session.over else [])

    def _fill(self, places: Places) -> None:
        """Queue the machines that were not mapped and whose bound is below the best score, the least first."""
        if not len(places):
            return
        bounds = Screened(self.session.problem, places).bound
        values = values_at(self.session.problem, places)
        for row in np.argsort(bounds, kind="stable").tolist():
            machine = {key: float(column[row]) for key, column in values.items()}
            if bounds[row] < self.session.score_so_far and tuple(machine.values()) not in self.seen:
                self.queue.append((float(bounds[row]), machine))

    def _roomiest_first(self) -> None:
        """Put first the machines with the largest numbers among those whose bounds are near the least.

        What small buffers cost, bounds hardly tell.
        """
        if not self.queue:
            return
        least = self.queue[0][0]
        first = []
        for near in NEAR:
            first.append(max((entry for entry in self.queue if entry[0] <= least * near),
                             key=lambda entry: float(np.log(list(entry[1].values())).sum())))
        self.queue = [*first, *(entry for entry in self.queue if not any(entry is one for one in first))]

    def _neighbours(self, best: Candidate, factor: float) -> Places:
        """Return the machines that have one number more or less by a factor, and another as large as then fits."""
        problem = self.session.problem
        ranges, rows = problem.space.ranges, []
        for key, values in ranges.items():
            for wanted in (best.chosen[key] * factor, best.chosen[key] / factor):
                changed = {**best.chosen, key: float(values.value(values.place(wanted)))}
                if changed[key] == best.chosen[key]:
                    continue
                for other in ranges:
                    least = {**changed, other: ranges[other].low} if other != key else changed
                    most = problem.budget.largest(least, other) if other != key else changed[key]
                    if most is not None and problem.budget.excess({**changed, other: most}) <= 0:
                        rows.append([one.place({**changed, other: most}[name]) for name, one in ranges.items()])
        found = np.array(rows, dtype=np.int64).reshape(-1, len(ranges))
        if factor <= FINE:
            found = np.concatenate([found, *(self._counts(best, at) for at, key in enumerate(ranges)
                                             if not key[1].startswith("capacity"))])
        return np.unique(found, axis=0)

    def _counts(self, best: Candidate, at: int) -> Places:
        """Return the machines that have another of the nearest values of one number: layers divide by some of them."""
        problem = self.session.problem
        own = np.array([one.place(best.chosen[key]) for key, one in problem.space.ranges.items()], dtype=np.int64)
        places = np.tile(own, (2 * NEAREST + 1, 1))
        places[:, at] += np.arange(-NEAREST, NEAREST + 1)
        places = places[(places[:, at] >= 0) & (places[:, at] < len([*problem.space.ranges.values()][at]))]
        fits: NDArray[np.bool_] = np.asarray(problem.budget.excess(values_at(problem, places)) <= 0)
        return places[fits]
