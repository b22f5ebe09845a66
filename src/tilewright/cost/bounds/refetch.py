"""What memories of limited capacity must fetch again: the least traffic over all tiles that fit and all loop orders.

A *stage* is everything that crosses into one memory m. From the counting rules, for a tile of extents e at m:

- *Pieces.* Each instance of m holds at most e_d of dimension d, so that all loops in time and space outside m cut d
  into at least ceil(size / e_d) pieces; a rest only makes more. Lanes that share words behind a fan-out count as one
  piece: of n pieces, l lanes leave at least n / l (the first lane's piece is the largest and has the most parts).
- *Visits.* If the innermost loop in time outside m runs over a dimension that tensor t uses, all loops advance t's tile
  (rule 2), and each of its words comes once for each piece of the dimensions that t does not use. If t does not use it,
  t may be fetched as little as once. So the tensors that need not be fetched again are those that some one dimension
  leaves in place: the least over dimensions is a bound, whatever the order.
- *Passing.* A tensor that m does not keep comes from the same parent to a child further in. Loops inside m can only
  make more pieces and later ones advance; it is fetched at least as often as if m kept it, at no cost of room there.
- *Windows.* Words that carry over along a sliding axis (rule 3) are in no way assumed to be fetched again: of every
  axis all words come at least once for each piece of the dimensions that the tensor does not use.
- *Lanes.* Those that share words of t are along dimensions that t does not use; all of them together are at most the
  instances of the fan-outs between. How many go to which tensor is relaxed to real numbers, and the least over them
  bounded from below by Lagrange's dual, where any multiplier is right and a poor one merely weaker.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.groups import Tiles, distinct, tiles_of
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import by_room, tensor_bits
from tilewright.workload import Operator

Floats = NDArray[np.float64]

_HALVINGS = 9
_ROOM = 1 + 1e-9


@dataclass(frozen=True)
class MemoryStage:
    """Tiles that fit one memory, as cells of `Tiles`; cells that another fitting cell beats are left out.

    Parameters
    ----------
    often
        (n, t) how often tensors are fetched at least, for each cell and kind of innermost loop.
    lanes
        All instances between, and by tensor those that can share its words.
    """

    often: Floats
    lanes: tuple[int, Floats]

    def least(self, merged: Floats, received: Floats) -> Floats:
        """Return (o) the least of a sum over tensors for each pair of rows of weights (o, t).

        ``merged`` weighs how often the tensor's words cross the parent's port, ``received`` how often they come to the
        instances; both count 1 where every word comes once.
        """
        found: Floats = (received @ self.often.T + self._shared(merged)).min(axis=1)
        return found

    @cached_property
    def _shares(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Among how many lanes (n, t) each tensor's words may be shared, and where (n) these are too many together."""
        total, each = self.lanes
        shares = np.minimum(self.often, each)
        return shares, np.log(shares).sum(axis=1) > np.log(total) + 1e-12

    def _shared(self, weights: Floats) -> Floats:
        """Return (o, n) the least weighted sum where lanes share words."""
        shares, excess = self._shares
        plain = weights @ (self.often / shares).T
        if excess.any():
            costs = weights[:, None, :] * self.often[excess]
            plain[:, excess] = _dual(costs, shares[excess], float(np.log(self.lanes[0])))
        return plain


def _dual(costs: Floats, most: Floats, room: float) -> Floats:
    """Return (o, c) a lower bound on the sum of costs / l over 1 <= l <= ``most`` whose logarithms sum to ``room``."""
    least = np.where(costs > 0, costs / most, np.inf).min(axis=2)
    low = np.log(np.where(np.isfinite(least), least, 1.0))
    high = np.log(np.maximum(costs.max(axis=2), np.exp(low)))
    logs, tops = np.log(np.maximum(costs, 1e-300)), np.log(most)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        over = np.minimum(np.maximum(logs - middle[:, :, None], 0.0), tops).sum(axis=2) > room
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    lanes = np.clip(logs - high[:, :, None], 0.0, tops)
    bound = (costs * np.exp(-lanes)).sum(axis=2) + np.exp(high) * (lanes.sum(axis=2) - room)
    found: Floats = np.maximum(bound, (costs / most).sum(axis=2))
    return found


@dataclass(frozen=True)
class Stages:
    """The stages of an operator on an accelerator whose memories keep ``chains``: by tensor, outermost first."""

    operator: Operator
    accelerator: Accelerator
    chains: dict[str, tuple[str, ...]]
    perfect: bool = False

    @cached_property
    def tiles(self) -> Tiles:
        """Cells and words of tiles, the same at every memory."""
        return tiles_of(self.operator, self.perfect)

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of every level."""
        return {level.name: index for index, level in enumerate(self.accelerator.levels)}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names of the stages: memories, but the outermost, that keep anything."""
        kept = {name for chain in self.chains.values() for name in chain[1:]}
        return tuple(memory.name for memory in self.accelerator.memories if memory.name in kept)

    def parent(self, tensor: str, name: str) -> str:
        """Return the memory from which a tensor comes to, or passes, memory ``name``; that itself outside its home."""
        return [name, *(keeper for keeper in self.chains[tensor] if self.places[keeper] < self.places[name])][-1]

    @cached_property
    def by_name(self) -> dict[str, MemoryStage]:
        """Every stage."""
        return {name: self._known_stage(name) for name in self.order}

    def _known_stage(self, name: str) -> MemoryStage:
        """Return a stage, made once for all chains where the memory keeps the same behind the same arrays."""
        total, each = lanes = self._lanes(name)
        kept = tuple(tensor for tensor, chain in self.chains.items() if name in chain)
        key = self.accelerator.level(name), self.accelerator.word_bits, kept, total, tuple(each.tolist())
        found: MemoryStage = self.tiles.once(key, lambda: MemoryStage(self._often(name), lanes))
        return found

    def _often(self, name: str) -> Floats:
        """Return (n, t) how often tensors are fetched at least, for each cell and kind of innermost loop."""
        operator = self.operator
        fits = self._fits(name)
        fits.flat[0] |= not fits.any()
        chosen = np.argwhere(_highest(fits))
        pieces = np.ones((len(chosen), len(operator.tensors)))
        names = [tensor.name for tensor in operator.tensors]
        for place, group in enumerate(self.tiles.groups):
            pieces[:, names.index(group.tensor)] = group.pieces[chosen[:, place]]
        kinds = {tuple(dim not in tensor.dimensions for tensor in operator.tensors)
                 for dim, size in operator.dimensions if size > 1}
        resting = np.array(sorted(kinds) or [(False,) * len(names)])
        return distinct(np.concatenate([np.where(row, 1.0, pieces) for row in resting]))

    def _fits(self, name: str) -> NDArray[np.bool_]:
        memory = self.accelerator.level(name)
        assert isinstance(memory, Memory)
        shape = [len(group.least) for group in self.tiles.groups]
        fits = np.ones(shape, dtype=np.bool_)
        kept = [tensor for tensor in self.operator.tensors if name in self.chains[tensor.name]]
        for owner, tensors in by_room(memory, kept).items():
            most = memory.rooms[owner]
            if most is not None:
                bits = sum(self.tiles.by_tensor[tensor.name] * tensor_bits(tensor, self.accelerator)
                           for tensor in tensors)
                fits &= bits * memory.copies <= most * 8 * _ROOM
        return fits

    def _lanes(self, name: str) -> tuple[int, Floats]:
        """Return all instances between a memory and its parents, and how many may share each tensor's words."""
        total, each = 1, []
        for tensor in self.operator.tensors:
            first = self.places[self.parent(tensor.name, name)]
            arrays = [level for level in self.accelerator.levels[first:self.places[name]] if isinstance(level, Fanout)]
            total = max(total, prod(level.instances for level in arrays))
            each.append(float(prod(a.instances for a in arrays if (a.reduce if tensor.is_output else a.multicast))))
        return total, np.array(each)


def _highest(fits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the cells that fit and of which no neighbour one cell further along one group does."""
    surpassed = np.zeros_like(fits)
    for axis in range(fits.ndim):
        inner = [slice(None)] * fits.ndim
        inner[axis] = slice(None, -1)
        further = [slice(None)] * fits.ndim
        further[axis] = slice(1, None)
        surpassed[tuple(inner)] |= fits[tuple(further)]
    found: NDArray[np.bool_] = fits & ~surpassed
    return found
