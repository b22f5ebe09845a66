"""The best plans of one group: the candidates of a shape's operators, joined; those are kept that none beats."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tilewright.cost import COMPUTE, UNIT, FusedShare, fused_shares, joined_cost
from tilewright.fusion.trees.nests import NestSearch
from tilewright.fusion.trees.network import TreeCost, TreeGoal, group_cost
from tilewright.fusion.trees.shapes import TreeShape, shapes
from tilewright.hardware import Accelerator
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedMapping,
    Mapping,
    fused_rooms,
    operations_of,
    tree_violations,
)

JOINED = 4096
"""Combinations of candidates that are joined of one shape."""
TRIED = 8
"""Combinations of one shape that are costed exactly, the best first, until one is legal."""
Place = tuple[str, str | None]
"""A memory and its partition."""


@dataclass(frozen=True)
class GroupPlan:
    """One way to run a group, and what it costs, exactly."""

    mapping: FusedMapping
    cost: TreeCost


@dataclass(frozen=True)
class _Nested:
    """An operator with loops of its own in a shape: what it takes, and the room of its tiles."""

    leaf: FusedLeaf
    share: FusedShare
    own: dict[Place, float]
    stays: dict[Place, float]


def plan_group(group: FusedGroup, accelerator: Accelerator, nests: NestSearch,
               alone: TreeCost) -> list[GroupPlan]:
    """Return plans of a group none of which beats another in cycles, energy and bytes; none where nothing fits.

    Shapes that seem to move no fewer bytes than the operators ``alone`` are left out.
    """
    found = []
    for shape in shapes(group, accelerator, nests.effort.shapes, alone.dram_bytes):
        plan = _best(shape, accelerator, nests)
        if plan is not None:
            found.append(plan)
    return unbeaten(found)


def unbeaten(plans: Sequence[GroupPlan]) -> list[GroupPlan]:
    """Return the plans that no other one equals or beats in all figures."""
    kept = list[GroupPlan]()
    for plan in sorted(plans, key=lambda each: _figures(each.cost)):
        if not any(all(a <= b for a, b in zip(_figures(other.cost), _figures(plan.cost), strict=True))
                   for other in kept):
            kept.append(plan)
    return kept


def _figures(cost: TreeCost) -> tuple[float, float, float]:
    return cost.latency_cycles, cost.energy_pj, cost.dram_bytes


def _best(shape: TreeShape, accelerator: Accelerator, nests: NestSearch) -> GroupPlan | None:
    group, choices = shape.tree.group, dict[str, list[Mapping]]()
    for operator in group.operators:
        choices[operator.name] = [Mapping(())] if operations_of(operator) is not None else nests.own(shape, operator)
        if not choices[operator.name]:
            return None
    combinations = list(product(*(range(len(own)) for own in choices.values())))[:JOINED]
    nested, held, rooms = _nested(shape, choices, accelerator)
    legal = _fitting(combinations, nested, held, rooms)
    order = np.argsort(np.where(legal, _scores(combinations, nested, accelerator, nests.goal), np.inf), kind="stable")
    for at in order[:min(TRIED, int(legal.sum()))].tolist():
        picked = [own[pick] for own, pick in zip(nested, combinations[at], strict=True)]
        tree = shape.tree.nested(tuple(one.leaf for one in picked))
        if not tree_violations(tree, accelerator):
            cost = joined_cost(tree, accelerator, dict(zip(choices, (one.share for one in picked), strict=True)))
            return GroupPlan(tree.mapping, group_cost(group, cost, accelerator))
    return None


def _nested(shape: TreeShape, choices: dict[str, list[Mapping]], accelerator: Accelerator,
            ) -> tuple[list[list[_Nested]], list[dict[Place, float]], dict[Place, float]]:
    """Return the candidates of each operator, room taken by what is held in the turns of each, and the room there is.

    What an operator takes follows from its own nest, so that one tree costs one candidate of every operator.
    """
    names = list(choices)
    found: list[list[_Nested]] = [[] for _ in names]
    held, capacity = [dict[Place, float]() for _ in names], dict[Place, float]()
    for at in range(max(map(len, choices.values()))):
        leaves = tuple(FusedLeaf(name, own[min(at, len(own) - 1)]) for name, own in choices.items())
        tree = shape.tree.nested(leaves)
        shares, taken = fused_shares(tree, accelerator), dict[tuple[str, str, Place], float]()
        for (memory, turn), rooms in fused_rooms(tree, accelerator).items():
            for room in rooms:
                place = memory, room.partition
                if room.capacity_bytes is None:
                    continue
                capacity[place] = room.capacity_bytes
                for name, size in room.bytes_by_tensor:
                    owner = name if name in names else name.rpartition(".")[0]
                    if owner == name:
                        held[names.index(turn)].setdefault(place, 0.0)
                        if at == 0:
                            held[names.index(turn)][place] += size
                        continue
                    key = owner, "own" if owner == turn else "stays", place
                    taken[key] = taken.get(key, 0.0) + (size if owner == turn or turn == _other(names, owner) else 0.0)
        for place_of, name in enumerate(names):
            if at < len(choices[name]):
                own, stays = ({where: size for (owner, kind, where), size in taken.items()
                               if owner == name and kind == wanted} for wanted in ("own", "stays"))
                found[place_of].append(_Nested(leaves[place_of], shares[name], own, stays))
    return found, held, capacity


def _other(names: list[str], name: str) -> str:
    return next((other for other in names if other != name), name)


def _fitting(combinations: list[tuple[int, ...]], nested: list[list[_Nested]], held: list[dict[Place, float]],
             rooms: dict[Place, float]) -> NDArray[np.bool_]:
    """Return ``(b)``: whether all that lives at one time fits, in the turns of every operator."""
    picks = np.array(combinations)
    legal = np.ones(len(picks), dtype=np.bool_)
    for place, capacity in rooms.items():
        own, stays = (np.stack([np.array([getattr(one, kind).get(place, 0.0) for one in each])[picks[:, at]]
                                for at, each in enumerate(nested)]) for kind in ("own", "stays"))
        for at, kept in enumerate(held):
            legal &= kept.get(place, 0.0) + own[at] + stays.sum(axis=0) - stays[at] <= capacity * (1 + 1e-12)
    return legal


def _scores(combinations: list[tuple[int, ...]], nested: list[list[_Nested]], accelerator: Accelerator,
            goal: TreeGoal) -> NDArray[np.float64]:
    """Return ``(b)``: about what combinations cost, as if all operators overlapped; only to try the best first."""
    picks = np.array(combinations)

    def summed(figure: str, name: str) -> NDArray[np.float64]:
        parts = [np.array([getattr(one.share, figure).get(name, 0.0) for one in each], dtype=np.float64)[picks[:, at]]
                 for at, each in enumerate(nested)]
        return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

    resources = [COMPUTE, UNIT, *(memory.name for memory in accelerator.memories)]
    latency = np.max([summed("cycles", name) for name in resources], axis=0)
    components = {name for each in nested for one in each for name in one.share.energy}
    energy = np.sum([summed("energy", name) for name in sorted(components)], axis=0)
    if goal == "dram":
        return summed("energy", accelerator.memories[0].name)
    return np.asarray({"latency": latency, "energy": energy, "edp": latency * energy}[goal], dtype=np.float64)
