"""The mappings that pairs of rows of `proofs` stand for: factors shared out to dimensions, sides of arrays, orders."""

from collections.abc import Iterator
from itertools import permutations, product
from math import prod
from typing import Any

from tilewright.cost.reference.proof_space import GivenUp, Kept, ProofSpace, laid_out
from tilewright.hardware import Fanout
from tilewright.mapping import LevelLoops, Loop, Mapping

Factors = dict[str, int]
MOST_PERMUTED = 7
"""Loops at a memory of which every order is tried at most."""


def mappings_of(space: ProofSpace, kept: Kept, counts: list[list[int]]) -> Iterator[Mapping]:
    """Yield the mappings whose loops at each level run so often, ``[level][group]``, in every order that may be best.

    Dimensions of a group get their factors in one way, as the others cost the same.
    """
    levels, shared = space.accelerator.levels, _shared_out(space, counts)
    choices: list[list[list[tuple[str, int, Any]]]] = []
    for at, (level, own) in enumerate(zip(levels, shared, strict=True)):
        if isinstance(level, Fanout):
            choices.append([[(name, count, "X") for name, count in across.items()] + [
                (name, count, "Y") for name, count in down.items()] for across, down in _sides(level, own)])
        else:
            last = at == space.places[len(space.memories) - 1]
            choices.append([[(name, own[name], None) for name in order] for order in (
                [tuple(own)] if last else orders(space, own))])
    for chosen in product(*choices):
        extents, entries = dict(space.operator.sizes), []
        for level, loops in zip(levels, chosen, strict=True):
            made = []
            for name, count, axis in loops:
                extents[name] //= count
                made.append(Loop(name, extents[name], axis))
            entries.append(LevelLoops(level.name, tuple(made), kept.get(level.name)))
        yield Mapping(tuple(entries))


def _shared_out(space: ProofSpace, counts: list[list[int]]) -> list[Factors]:
    """Return how often the loops of each dimension run, by level, those above 1."""
    found: list[Factors] = [{} for _ in counts]
    left = dict(space.operator.sizes)
    for own, at in zip(found, counts, strict=True):
        for group, count in zip(space.groups, at, strict=True):
            for name in group:
                part = next(n for n in range(min(count, left[name]), 0, -1) if count % n == 0 and left[name] % n == 0)
                if part > 1:
                    own[name] = part
                    left[name] //= part
                count //= part  # noqa: PLW2901  (what is left to share out)
    return found


def _sides(array: Fanout, lanes: Factors) -> Iterator[tuple[Factors, Factors]]:
    """Yield the ways to lay lanes along the two sides of an array."""
    names = list(lanes)
    for chosen in product(*([n for n in range(lanes[name], 0, -1) if lanes[name] % n == 0] for name in names)):
        across = {name: n for name, n in zip(names, chosen, strict=True) if n > 1}
        down = {name: lanes[name] // n for name, n in zip(names, chosen, strict=True) if n < lanes[name]}
        if laid_out(array, prod(across.values()), prod(down.values())):
            yield across, down
            if array.flexible:
                return


def orders(space: ProofSpace, loops: Factors) -> list[tuple[str, ...]]:
    """Return the orders of loops at a memory that may be best.

    Where no dimension is unused by several tensors, the innermost loop leaves one tensor in place at most; what else
    that does not use may then stand inside all others, and only which of these comes next, and which loop is
    innermost, tell one order from another (rules 2 and 3).
    """
    names, tensors = list(loops), space.operator.tensors
    unused = {name: [tensor.name for tensor in tensors if name not in tensor.dimensions] for name in names}
    if any(len(those) > 1 for those in unused.values()) or len(names) < 3:
        if len(names) > MOST_PERMUTED:
            raise GivenUp(f"more than {MOST_PERMUTED} loops at a memory may stand in any order")
        return list(permutations(names))
    found = dict[tuple[str, ...], None]()
    for innermost in names:
        alike = [name for name in names if unused[name] and unused[name] == unused[innermost] and name != innermost]
        others = [name for name in names if name != innermost and name not in alike]
        for following in others or [innermost]:
            rest = [name for name in others if name != following]
            found[*rest, *([following] if others else []), *alike, innermost] = None
    return list(found)
