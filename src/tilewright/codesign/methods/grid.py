"""Machines first, each then mapped: a grid over the budget, and every machine of a small space."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import inf, prod
from typing import Annotated

import numpy as np

from tilewright.base import InputError
from tilewright.codesign.designs import DESIGNERS
from tilewright.codesign.methods.decoding import NeededDesigns
from tilewright.codesign.screening import Places, bounds_at, grown, values_at
from tilewright.codesign.session import Session
from tilewright.hardware import Number
from tilewright.search import Count, MapperOptions, Options, read_options

ABREAST = 2
"""Machines mapped at once; fixed, so that results do not depend on the machine that this runs on."""
MOST_MACHINES = 4096
"""Machines of a space that are all bounded."""
LARGEST_GRID = 1 << 20
"""Machines of a grid, those over the limits with them."""
FEW, BRIEF = 16, 8
"""Machines that a grid has where samples are few, if each then has so many of each layer."""
MOST_SHARE = 4096
"""Samples of each layer with which a machine is searched, at most."""


@dataclass(frozen=True)
class SharedOptions(MapperOptions):
    """Options of methods that map one machine after the other."""

    share: Annotated[Count, "Samples of each layer on each machine, at most."] = 64


@DESIGNERS.register("grid", SharedOptions)
class GridDesigner:
    """Hardware optimisation by a grid (6.3.1): of each number values even in its logarithm, up to the most that fits.

    As fine as the samples allow. Machines over the limits are left out, the others mapped by turns with equal shares.
    Where the size of an array varies and is limited, it is no number of the grid, but as large as then fits: what
    mappings do not need of it is taken away again. But where area is a part of the objective less may be better.
    """

    def __init__(self, session: Session, options: Options) -> None:
        self.session, self.share = session, read_options(SharedOptions, options, "grid").share
        self.designs, problem = NeededDesigns(session.problem), session.problem
        limited = any(limit.what != "power" for limit in problem.limits) and not problem.objective.endswith("-area")
        arrays = [at for at, key in enumerate(problem.space.ranges) if key in {side[2] for side in self.designs.sides}]
        self.grown = arrays[-1] if limited and arrays else None
        """The place of the number that is as large as fits."""

    def steps(self) -> Iterator[None]:
        """Map the machines of the grid."""
        session, layers = self.session, len(self.session.problem.layers)
        each = min(session.left, MOST_MACHINES * self.share * layers) // layers
        most = max(1, int(each // min(self.share, max(BRIEF, each // FEW))))
        machines = self.grid(most)
        for first in range(0, len(machines), ABREAST):
            ahead = len(machines) - first
            share = self.share if session.left == inf else max(1, int(session.left // (layers * ahead)))
            session.map(machines[first:first + ABREAST], share)
            yield

    def grid(self, most: int) -> list[dict[Number, float]]:
        """Return the machines of a grid, as fine as may be, of which up to ``most`` are within the limits."""
        low, high = 1, 1 + max(len(one) for one in self.session.problem.space.ranges.values())
        while high - low > 1:
            middle = min(2 * low, (low + high) // 2)
            low, high = (low, middle) if self._within(middle, most) is None else (middle, high)
        return self._within(low, most) or [dict(self.session.problem.smallest)]

    def _within(self, count: int, most: int) -> list[dict[Number, float]] | None:
        """Return the machines within the limits of a grid of so many values a number, unless they are too many.

        Of one value that is the smallest machine.
        """
        problem, ranges = self.session.problem, self.session.problem.space.ranges
        shares = np.arange(count) / max(1, count - 1)
        columns = [np.unique(ranges[key].places(self.designs.between(
            key, shares if at != self.grown else shares[:1], problem.smallest[key]))) for at, key in enumerate(ranges)]
        if prod(map(len, columns)) > LARGEST_GRID:
            return None
        places = np.stack([column.ravel() for column in np.meshgrid(*columns, indexing="ij")], axis=1)
        places = places[problem.budget.excess(values_at(problem, places)) <= 0]
        if len(places) > most:
            return None
        if self.grown is not None:
            at, whole = (np.full(len(places), value) for value in (self.grown, len([*ranges.values()][self.grown]) - 1))
            places = grown(problem, places, whole, at)
        values = values_at(problem, places)
        return [{key: float(column[row]) for key, column in values.items()} for row in range(len(places))]


@DESIGNERS.register("exhaustive", SharedOptions)
class ExhaustiveDesigner:
    """Every machine of a small space within the limits, that of the least bound first, until bounds rule out the rest.

    Where samples are left, those that no bound rules out are mapped again, with four times as many for each.
    """

    def __init__(self, session: Session, options: Options) -> None:
        self.session, self.share = session, read_options(SharedOptions, options, "exhaustive").share
        sizes = [len(one) for one in session.problem.space.ranges.values()]
        if prod(sizes) > MOST_MACHINES:
            raise InputError("method", f"must be given a space of at most {MOST_MACHINES} machines",
                             f"exhaustive: {prod(sizes)}", "List fewer values in the design section")
        self.places: Places = np.array(list(product(*map(range, sizes))), dtype=np.int64).reshape(-1, len(sizes))

    def steps(self) -> Iterator[None]:
        """Map the machines."""
        session, problem = self.session, self.session.problem
        values = values_at(problem, self.places)
        within = np.flatnonzero(np.broadcast_to(problem.budget.excess(values) <= 0, len(self.places)))
        bounds, _ = bounds_at(problem, self.places[within])
        order = np.argsort(bounds, kind="stable")
        queue = [(float(bounds[at]), {key: float(column[within[at]]) for key, column in values.items()})
                 for at in order.tolist()]
        session.bound, share = float(bounds.min()), self.share
        while queue and share <= max(self.share, MOST_SHARE) and not session.over:
            for first in range(0, len(queue), ABREAST):
                part = [machine for bound, machine in queue[first:first + ABREAST] if bound < session.score_so_far]
                if part and not session.over:
                    session.map(part, share)
                    yield
            queue, share = [entry for entry in queue if entry[0] < session.score_so_far], 4 * share
