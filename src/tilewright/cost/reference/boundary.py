"""What crosses the boundary between a memory and the next one inward that keeps the tensor, visit by visit.

Everything here works on plain sets of *touches*: (instance, visit, word) triples, one for each word of each tile that
each instance of the child holds during each of its visits. A triple is stored as one integer, ``(instance * visits +
visit) * words + word``, and a set as a sorted array of them; instances and visits are numbered by their loop indices,
outermost first, so that both count in the order of lanes and of time. Spatial loops over different dimensions commute:
the lanes of a fan-out count in the order of the operator's dimensions, whatever the order of its loops.
"""

from dataclasses import dataclass, field
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.cost.reference.nest import Indices, WalkedLoop, WalkedNest
from tilewright.workload import Tensor

LARGEST_KEY = 2**62
NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Moved:
    """Words that cross one boundary."""

    received: Indices
    evicted: Indices
    """``(i,)`` words that each instance of the child is given, and gives up."""
    read: Indices
    written: Indices
    """``(j,)`` words read from, and written to, each instance of the parent."""
    first_received: int = 0
    first_read: int = 0
    """In the first visit, at the first-lane instance of child and parent."""
    last_evicted: int = 0
    last_written: int = 0
    """In the last visit of the first-lane instance of the child, there and at the parent's first-lane instance."""
    delivered: Indices = field(default_factory=lambda: NOTHING)
    """Touches of the child whose partial sum came from the parent (outputs only)."""
    crossed: Indices = field(default_factory=lambda: NOTHING)
    held: NDArray[np.bool_] = field(default_factory=lambda: NOTHING > 0)
    """Touches of the child that stand for the words that cross, and which of those the parent held already (outputs
    only)."""


class WalkedBoundary:
    """The boundary of one tensor between a parent memory and its child, a memory or the compute unit.

    Parameters
    ----------
    parent, child
        Their positions in the accelerator; the compute unit comes after the last level.
    """

    def __init__(self, nest: WalkedNest, tensor: Tensor, parent: int, child: int) -> None:
        self.nest, self.tensor, self.parent, self.child = nest, tensor, parent, child
        self.feeds_compute = child == len(nest.accelerator.levels)
        outside = nest.outside(child)
        dimensions = list(nest.operator.sizes)
        # Lanes that one instance of the child serves are not told apart; those of the parent lie inside it.
        self.lanes = sorted((loop for loop in outside if loop.spatial and not nest.serves(child, loop)),
                            key=lambda loop: (parent if nest.serves(parent, loop) else loop.level,
                                              dimensions.index(loop.dimension)))
        self.advancing = nest.advancing(tensor, child)
        self.apart = nest.apart(tensor, parent, child)
        self.instances = prod(loop.count for loop in self.lanes)
        self.parents = nest.lanes(parent)
        self.visits = prod(loop.count for loop in self.advancing)
        self.shape = [axis.words(nest.operator.sizes, box=True) for axis in tensor.axes]
        self.words = prod(self.shape)
        if self.instances * self.visits * self.words >= LARGEST_KEY:
            raise InputError("mapping", "must be a small nest to be walked literally", f"{nest.operator.macs} MACs",
                             "Use the fast model")

    @property
    def combines(self) -> bool:
        """Whether the parent adds up partial sums that arrive apart (rule 5)."""
        plain = {axis.dimensions[0] for axis in self.tensor.axes if len(axis.terms) == 1}
        return self.tensor.is_output and any(loop.dimension not in plain for loop in self.apart)

    def touches(self) -> Indices:
        """Return the set of touches (rules 1, 2 and 7).

        Axes, and dimensions that the tensor does not use, are independent of one another: each contributes its own
        digits of the numbers, so the touches are all sums of one contribution from each.
        """
        place = _places(self.lanes, self.visits * self.words) | _places(self.advancing, self.words)
        total = np.zeros(1, dtype=np.int64)
        weight = self.words
        for axis, extent in zip(self.tensor.axes, self.shape, strict=True):
            weight //= extent
            total = _sums(total, self._contribution(axis.terms, weight, place))
        for name, _ in self.nest.operator.dimensions:
            if name not in self.tensor.dimensions:
                total = _sums(total, self._contribution(((name, 0),), 0, place))
        return np.sort(total)

    def _contribution(self, terms: tuple[tuple[str, int], ...], weight: int, place: dict[WalkedLoop, int]) -> Indices:
        """Distinct (instance, visit, word) digits over all values of the dimensions in ``terms``."""
        total = np.zeros(1, dtype=np.int64)
        for dimension, coefficient in terms:
            digits = weight * coefficient * np.arange(self.nest.operator.sizes[dimension], dtype=np.int64)
            for loop, worth in place.items():
                if loop.dimension == dimension:
                    digits += worth * loop.index
            total = _sums(total, digits)
        return np.unique(total)

    def split(self, touches: Indices) -> tuple[Indices, Indices, Indices]:
        """Return the instance, visit and word of each touch."""
        rest, word = np.divmod(touches, self.words)
        instance, visit = np.divmod(rest, self.visits)
        return instance, visit, word

    def asked(self, touches: Indices) -> tuple[Indices, Indices]:
        """Merge the touches of one visit across lanes that share (rules 4 and 5).

        Returns the positions in ``touches`` of one touch for each word that crosses, always that of the lowest lane,
        and the parent's instance for each of them.
        """
        _, first = np.unique(self.groups(touches), return_index=True)
        return first, touches[first] // (self.visits * self.words) // (self.instances // self.parents)

    def groups(self, touches: Indices) -> Indices:
        """Return a number for each touch, the same for those that share a crossing; in the order of parents."""
        instance, visit, word = self.split(touches)
        group = instance // (self.instances // self.parents)
        place = _places(self.lanes, 1)
        for loop in self.apart:
            group = group * loop.count + instance // place[loop] % loop.count
        return (group * self.visits + visit) * self.words + word

    def operand(self) -> Moved:
        """Move an operand inward (rules 3, 4 and 6)."""
        touches = self.touches()
        if not self.feeds_compute:
            touches = self.brought_in(touches)
        instance, visit, _ = self.split(touches)
        asked, parent = self.asked(touches)
        return Moved(
            received=np.bincount(instance, minlength=self.instances),
            evicted=np.zeros(self.instances, dtype=np.int64),
            read=np.bincount(parent, minlength=self.parents),
            written=np.zeros(self.parents, dtype=np.int64),
            first_received=int(np.sum((instance == 0) & (visit == 0))),
            first_read=int(np.sum((parent == 0) & (visit[asked] == 0))),
        )

    def brought_in(self, touches: Indices) -> Indices:
        """Rule 3: drop the words that the instance's previous tile held, if only the innermost loop stepped forward."""
        if not self.advancing:
            return touches
        _, visit, _ = self.split(touches)
        stepped = visit % self.advancing[-1].count > 0
        previous = touches - self.words
        held = stepped & np.isin(previous, touches, assume_unique=True)
        return touches[~held]

    def output(self, delivered_to_parent: Indices, parents_visits: int) -> Moved:
        """Move partial sums inward and outward (rules 5 and 6).

        ``delivered_to_parent`` are the touches of the parent whose partial sums it was given, in its own numbering with
        ``parents_visits`` visits.
        """
        touches = self.touches()
        instance, visit, word = self.split(touches)
        asked, parent = self.asked(touches)
        visit_of, word_of = visit[asked], word[asked]
        present = visit_of // (self.visits // parents_visits)
        held = _held(visit_of, (parent * parents_visits + present) * self.words + word_of, delivered_to_parent)
        delivered = np.sort(touches[asked[held]]) if not self.combines else NOTHING
        last = visit[instance == 0].max()
        return Moved(
            received=np.bincount(delivered // (self.visits * self.words), minlength=self.instances),
            evicted=np.bincount(instance, minlength=self.instances),
            read=np.bincount(parent[held], minlength=self.parents),
            written=np.bincount(parent, minlength=self.parents),
            last_evicted=int(np.sum((instance == 0) & (visit == last))),
            last_written=int(np.sum((parent == 0) & (visit_of == last))),
            delivered=delivered, crossed=touches[asked], held=held,
        )


def _held(visit: Indices, parents_touch: Indices, delivered: Indices) -> NDArray[np.bool_]:
    """Whether the parent holds a word already when it crosses.

    It does if the word was delivered to it for its present visit, or has crossed in this visit before.
    """
    order = np.lexsort((visit, parents_touch))
    ordered = parents_touch[order]
    crossed = np.zeros(len(order), dtype=np.bool_)
    crossed[order[1:]] = ordered[1:] == ordered[:-1]
    return crossed | np.isin(parents_touch, delivered)


def _places(loops: list[WalkedLoop], unit: int) -> dict[WalkedLoop, int]:
    """Worth of one iteration of each loop in a number whose last digit is the innermost loop's and worth ``unit``."""
    places: dict[WalkedLoop, int] = {}
    for loop in reversed(loops):
        places[loop] = unit
        unit *= loop.count
    return places


def _sums(first: Indices, second: Indices) -> Indices:
    return np.add.outer(first, second).ravel()


def boundaries(nest: WalkedNest, tensor: Tensor) -> list[WalkedBoundary]:
    """Return the tensor's boundaries, from the outermost memory to the compute unit."""
    keepers = nest.keepers(tensor.name)
    children = chain(keepers[1:], [len(nest.accelerator.levels)])
    return [WalkedBoundary(nest, tensor, parent, child) for parent, child in zip(keepers, children, strict=True)]


def cross_all(nest: WalkedNest, tensor: Tensor) -> list[tuple[WalkedBoundary, Moved]]:
    """Return what crosses each of the tensor's boundaries, outermost first."""
    found: list[tuple[WalkedBoundary, Moved]] = []
    delivered, visits = NOTHING, 1
    for boundary in boundaries(nest, tensor):
        moved = boundary.output(delivered, visits) if tensor.is_output else boundary.operand()
        delivered, visits = moved.delivered, boundary.visits
        found.append((boundary, moved))
    return found
