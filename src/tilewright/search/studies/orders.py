"""How many costs the loop orders of one mapping have: every order, the same at all memories."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping, MappingBatch
from tilewright.search.objective import ILLEGAL, Objective, Scorer
from tilewright.workload import Operator

MOST_DIMENSIONS = 9
"""Loops that are put into every order at most: 362,880 mappings."""

_DIGITS = 12
"""Significant digits in which two scores must agree to be one."""


@dataclass(frozen=True)
class OrderGroup:
    """Orders of equal score."""

    score: float
    latency_cycles: float
    energy_pj: float
    count: int
    """How many they are."""
    innermost: tuple[tuple[str, tuple[str, ...]], ...]
    """For each memory with more than one loop, the loops that some order of the group has innermost there."""
    example: tuple[str, ...]
    """One of the orders, outermost loop first."""

    @property
    def pattern(self) -> str:
        """The innermost loops in words: ``DRAM: C, Shared: P or Q``."""
        return ", ".join(f"{memory}: {' or '.join(loops)}" for memory, loops in self.innermost)


@dataclass(frozen=True)
class OrderStudy:
    """All orders of one mapping and what they cost."""

    layer: str
    machine: str
    objective: str
    unit: str
    dimensions: tuple[str, ...]
    memories: tuple[str, ...]
    """``dimensions`` and ``memories``: loops that were put into every order, and where."""
    own: float
    """Score of the mapping with the orders that it came with."""
    groups: tuple[OrderGroup, ...]
    """Best first."""
    best_mapping: Mapping
    latencies: int
    energies: int

    @property
    def orders(self) -> int:
        """How many orders there are."""
        return math.factorial(len(self.dimensions))

    @property
    def ratio(self) -> float:
        """The worst score over the best."""
        return self.groups[-1].score / self.groups[0].score


def study_orders(operator: Operator, accelerator: Accelerator, mapping: Mapping, *,
                 objective: str | Objective = "edp", memories: Iterable[str] | None = None) -> OrderStudy:
    """Score a mapping with every order of its loops, the same at all memories (or those named).

    All orders are one batch. Loops of size one are left out; where more than `MOST_DIMENSIONS` are left, so are those
    that do not run more than once at any of the memories.

    Raises an `InputError` if a memory is unknown, there are too many loops, or the mapping is illegal.
    """
    from tilewright.cost import DenseModel  # noqa: PLC0415  (Numba loads late)

    goal, one = Objective.parse(objective), MappingBatch.from_mappings([mapping], operator, accelerator)
    chosen = _memories(accelerator, memories)
    slots = [s for s in one.layout.temporal if one.layout.levels[one.layout.slots[s].level] in chosen]
    running = _running(one, slots, operator)
    loose = _loose(running, operator)
    orders = np.array(list(permutations(loose)), dtype=np.int64)
    batch = _ordered(one, slots, orders)
    model, scorer = DenseModel(operator, accelerator, one.layout), Scorer(goal, operator, accelerator)
    own = float(scorer.scores(model.score(one))[0])
    if own >= ILLEGAL:
        raise InputError("mapping", "must be legal for its orders to be studied", str(mapping),
                         "tilewright evaluate tells what is wrong with it")
    costs = model.score(batch)
    scores = scorer.scores(costs)
    names = np.array(one.layout.dimensions)
    innermost = {one.layout.levels[one.layout.slots[s].level]: np.array(here)[batch.ranks[s][here].argmax(axis=0)]
                 for s, here in zip(slots, running, strict=True) if len(here) > 1}
    keys = np.array([float(f"{score:.{_DIGITS - 1}e}") for score in scores])
    groups = []
    for key in np.unique(keys):
        members = np.flatnonzero(keys == key)
        first = int(members[0])
        groups.append(OrderGroup(
            float(scores[first]), float(costs.latency_cycles[first]), float(costs.energy_pj[first]), len(members),
            tuple((memory, tuple(names[np.unique(found[members])].tolist())) for memory, found in innermost.items()),
            tuple(names[orders[first]].tolist())))
    return OrderStudy(
        operator.name, accelerator.name, str(goal), goal.unit, tuple(names[list(loose)].tolist()), tuple(chosen), own,
        tuple(groups), batch.mapping(int(scores.argmin()), operator.sizes), _distinct(costs.latency_cycles),
        _distinct(costs.energy_pj))


def _memories(accelerator: Accelerator, given: Iterable[str] | None) -> list[str]:
    known = [memory.name for memory in accelerator.memories]
    chosen = known if given is None else list(given)
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise InputError("memories", f"must be among {', '.join(known)}", ", ".join(unknown) or "none")
    return [name for name in known if name in chosen]


def _running(one: MappingBatch, slots: list[int], operator: Operator) -> list[list[int]]:
    """Return for each slot the dimensions whose loops run more than once there."""
    outside = np.vstack([list(operator.sizes.values()), one.steps[:-1, :, 0]])
    return [np.flatnonzero(one.steps[s, :, 0] < outside[s]).tolist() for s in slots]


def _loose(running: list[list[int]], operator: Operator) -> list[int]:
    """Return the dimensions to be put into every order."""
    found = [d for d, size in enumerate(operator.sizes.values()) if size > 1]
    if len(found) > MOST_DIMENSIONS:
        found = sorted({d for here in running for d in here})
    if len(found) > MOST_DIMENSIONS:
        raise InputError("mapping", f"must loop over {MOST_DIMENSIONS} dimensions at most for all orders to be tried",
                         len(found), "Name fewer memories")
    return found


def _ordered(one: MappingBatch, slots: list[int], orders: NDArray[np.int64]) -> MappingBatch:
    """Return the mapping once for each order ``(b, n)`` of dimensions, the other dimensions innermost."""
    count = len(orders)
    steps = np.repeat(one.steps, count, axis=2)
    ranks = np.repeat(one.ranks, count, axis=2)
    dims = one.steps.shape[1]
    rest = [d for d in range(dims) if d not in set(orders[0].tolist())]
    places = np.empty((dims, count), dtype=np.int8)
    for position in range(orders.shape[1]):
        places[orders[:, position], np.arange(count)] = position
    for position, d in enumerate(rest, start=orders.shape[1]):
        places[d] = position
    ranks[slots] = places
    return MappingBatch(one.layout, steps, ranks)


def _distinct(values: NDArray[np.float64]) -> int:
    return len({float(f"{value:.{_DIGITS - 1}e}") for value in values})

