"""What share of the static schedule's words is moved, in the mean over the zeros (docs/sparsity.md).

Each crossing of a word at a boundary serves equally many multiply-accumulates in the mean: all of them over all
crossings. No two of these meet the same word of another operand, so that is how many words of it the crossing is made
for; the crossing is left out where they are all zero.
"""

from functools import lru_cache
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.cost.dense.nest import Boundary
from tilewright.cost.sums import Tallies
from tilewright.hardware import Accelerator, Elision, Sparsity
from tilewright.mapping import Zeros
from tilewright.workload import Operator, Tensor

Floats = NDArray[np.float64]
Share = Floats | float
PAIRED = 256
"""Most products merged into one update for which the chance that all are zero is summed up exactly."""


class Shares:
    """Shares of crossings that are made, for one operator on one machine."""

    def __init__(self, operator: Operator, accelerator: Accelerator, sparsity: Sparsity) -> None:
        self.operator, self.accelerator, self.sparsity = operator, accelerator, sparsity
        self.zeros = {tensor.name: Zeros.of(tensor, operator) for tensor in operator.tensors}

    def named(self, names: tuple[str, ...]) -> list[Tensor]:
        """Return the operands with these names or roles."""
        return [t for t in self.operator.operands if t.name in names or t.role in names]

    def _elisions(self, level: int, tensor: Tensor, *, time: bool) -> list[Elision]:
        name = self.accelerator.levels[level].name
        return [e for e in self.sparsity.elisions if e.memory == name and e.tensor in (tensor.name, tensor.role)
                and (e.action == "skip" or not time)]

    def leaders(self, crossing: Boundary, every: list[Boundary], *, time: bool) -> dict[str, int]:
        """Return what decides whether crossings are made (or, for ``time``, take time): names, with their parents.

        A crossing is left out where the words that it is made for of any of these are zero, seen from that parent. An
        operand's word that was left out further out cannot be read further in; of several boundaries the innermost
        looks at the fewest words, which are among those of the others.
        """
        found: dict[str, int] = {}
        for at in every:
            if at.tensor is not crossing.tensor or at.parent > crossing.parent:
                continue
            if crossing.tensor.is_output and at.parent != crossing.parent:
                continue
            for elision in self._elisions(at.parent, crossing.tensor, time=time):
                for leader in self.named(elision.on):
                    if leader is not crossing.tensor and self.zeros[leader.name].density < 1:
                        found[leader.name] = at.parent
        return found

    def made(self, crossing: Boundary, every: list[Boundary], tallies: Tallies, *, time: bool) -> Share:
        """Return the share of crossings that are made (or take time), from the words of all by `TallyKey`."""
        leaders, tensor = self.leaders(crossing, every, time=time), crossing.tensor
        if not leaders:
            return 1.0
        if tensor.is_output:
            products = self.operator.macs / tallies["total", crossing.parent, tensor.name, "updates"]
            return 1.0 - all_zero(tuple(self.zeros[name] for name in leaders), products)
        share: Share = 1.0
        for name, parent in leaders.items():
            words = self.operator.tensor(name).words(self.operator.sizes)
            products = self.operator.macs / tallies["total", parent, tensor.name, "reads"]
            share = share * (1.0 - self.zeros[name].empty(np.minimum(products, words)))
        return share

    def performed(self, *, time: bool) -> float:
        """Return the share of multiply-accumulates that take energy (or, for ``time``, time)."""
        names = self.sparsity.skipped if time else (*self.sparsity.skipped, *self.sparsity.gated)
        share = 1.0
        for tensor in self.named(names):
            share *= self.zeros[tensor.name].density
        return share


def all_zero(zeros: tuple[Zeros, ...], products: Floats) -> Floats:
    """Return the chance that so many products of words of different tensors are all zero, elementwise.

    No word is in two of them. Summed up exactly up to `PAIRED` products, from where on they count as independent.
    """
    if len(zeros) == 1:
        return zeros[0].empty(products)
    table = _products_table(tuple(sorted(zeros, key=lambda each: (each.words, each.density))))
    alone = 1.0 - float(np.prod([each.density for each in zeros]))
    low = np.minimum(np.floor(products), len(table) - 2).astype(np.int64)
    near = table[low] + (products - low) * (table[low + 1] - table[low])
    return np.asarray(np.where(products <= len(table) - 1, near, alone**products))


@lru_cache(maxsize=64)
def _products_table(zeros: tuple[Zeros, ...]) -> Floats:
    """Chance that 0, 1, 2 ... products are all zero: those left by the first tensor's zeros must be the others'."""
    most = min(PAIRED, *(each.words for each in zeros))
    even = [each for each in zeros if each.even]
    if even:
        others = (*even[1:], *(each for each in zeros if not each.even))
        found = [_even_and(even[0], others, count) for count in range(most + 1)]
    else:
        found = _none_left(zeros, most, most).tolist()
    return np.array(found + ([0.0] if most == 0 else []))


def _even_and(first: Zeros, others: tuple[Zeros, ...], count: int) -> float:
    """Chance that ``count`` products of words of an even tensor and of others are all zero."""
    few, more = _share(first.density, count)
    left = _none_left(others, few + bool(more), count)
    return float((1 - more) * left[few] + more * left[-1])


def _none_left(zeros: tuple[Zeros, ...], most: int, group: int) -> Floats:
    """Chance that 0, 1 ... ``most`` products, which are some of ``group`` looked at together, are all zero."""
    first, rest = zeros[0], zeros[1:]
    if not rest:
        return _none(first, most, group)
    inner = _none_left(rest, most, group)
    return np.array([float(_drawn(first, count, group) @ inner[:count + 1]) for count in range(most + 1)])


def _none(zeros: Zeros, most: int, group: int) -> Floats:
    """Chance that 0, 1 ... ``most`` words, some of ``group`` looked at together, are all zero."""
    if not zeros.even or zeros.density >= 1:
        return zeros.empty(np.arange(most + 1, dtype=np.float64))
    few, more = _share(zeros.density, group)
    counts = np.arange(most + 1)
    low, high = (np.where(some <= group - counts, np.exp(_chosen(group - counts, some) - _chosen(group, some)), 0.0)
                 for some in (few, few + bool(more)))
    return np.asarray((1 - more) * low + more * high)


def _share(density: float, words: int) -> tuple[int, float]:
    """Return the words other than zero of so many, rounded down, and the chance that there is one more."""
    mean = density * words
    few = int(mean + 1e-9)
    return few, mean - few if mean - few > 1e-9 else 0.0


def _drawn(zeros: Zeros, count: int, group: int) -> Floats:
    """Chance that 0, 1 ... ``count`` of so many words, which are some of ``group``, are not zero."""
    if zeros.density >= 1 or (zeros.structure is not None and not zeros.even):
        return _binomial(count, zeros.density)
    words = group if zeros.even else zeros.words
    few, more = _share(zeros.density, words)
    found = (1 - more) * _hypergeometric(words, few, count)
    return found + more * _hypergeometric(words, few + 1, count) if more else found


_LOGARITHMS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, PAIRED + 1)))])
"""Of the factorials up to `PAIRED`."""
_log_gamma = np.vectorize(lgamma, otypes=[float])


def _chosen(total: NDArray[np.int64] | int, some: NDArray[np.int64] | int) -> Floats:
    """Logarithm of the ways to choose ``some`` of ``total``, elementwise; anything where there is none."""
    parts = total, some, np.maximum(np.subtract(total, some), 0)
    whole, *others = (_LOGARITHMS[part] for part in parts) if np.max(total) <= PAIRED else (
        _log_gamma(np.add(part, 1.0)) for part in parts)
    return np.asarray(whole - others[0] - others[1])


def _hypergeometric(words: int, few: int, count: int) -> Floats:
    """Chance that 0, 1 ... ``count`` of so many words that are drawn are among ``few`` of all."""
    drawn = np.arange(count + 1)
    able = (drawn <= few) & (count - drawn <= words - few)
    left = np.where(able, count - drawn, 0)
    ways = _chosen(few, np.where(able, drawn, 0)) + _chosen(words - few, left) - _chosen(words, count)
    return np.where(able, np.exp(ways), 0.0)


def _binomial(count: int, density: float) -> Floats:
    if density >= 1:
        return np.array([0.0] * count + [1.0])
    drawn = np.arange(count + 1)
    return np.asarray(np.exp(_chosen(count, drawn) + drawn * np.log(density) + (count - drawn) * np.log1p(-density)))


def check_leaders(operator: Operator, sparsity: Sparsity) -> None:
    """Refuse leaders whose words are met more than once in one crossing, which are not counted here.

    Raises an `InputError` if a dimension is in neither the tensor that is left out nor the one that decides.
    """
    for elision in sparsity.elisions:
        for follower in operator.tensors:
            if elision.tensor not in (follower.name, follower.role) or follower.is_output:
                continue
            for leader in operator.operands:
                if leader is follower or not {leader.name, leader.role} & set(elision.on):
                    continue
                lone = [name for name, size in operator.dimensions
                        if size > 1 and name not in follower.dimensions | leader.dimensions]
                if lone:
                    raise InputError(
                        f"{operator.name}.{follower.name}", f"cannot be left out where {leader.name} is zero: "
                        f"neither has the dimension {', '.join(lone)}", elision.action, "Leave this pair out")
