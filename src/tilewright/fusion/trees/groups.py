"""The best plans of one group: the candidates of a shape's operators, joined; those are kept that none beats.

The nest of an operator in a group is a mapping of the operator whose outermost loops are the shared ones, and which
keeps intermediate tensors in no memory outside the one that holds them. So the mappers search it as it is: a map space
with these constraints, on the machine with the room that is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, digest
from tilewright.cost import COMPUTE, UNIT, FusedShare, fused_shares, joined_cost
from tilewright.fusion.trees.network import TreeCost, TreeGoal, group_cost
from tilewright.fusion.trees.shapes import TreeShape, shapes, turn_of
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import (
    Bounds,
    Constraints,
    FusedGroup,
    FusedLeaf,
    FusedMapping,
    FusedTree,
    KeptSets,
    LevelLoops,
    Mapping,
    MapSpace,
    fused_rooms,
    operations_of,
    tile_bytes,
    tree_violations,
    violations,
)
from tilewright.search import Start, Watch, search
from tilewright.workload import Operator

METRIC = {"latency": "latency", "energy": "energy", "edp": "edp", "dram": "traffic"}
"""What a search minimises for each goal."""
JOINED = 4096
"""Combinations of candidates that are joined of one shape."""
TRIED = 8
"""Combinations of one shape that are costed exactly, the best first, until one is legal."""
Place = tuple[str, str | None]
"""A memory and its partition."""


@dataclass(frozen=True)
class NestEffort:
    """How nests are searched: mappings scored of each, the seed, shapes tried of each group."""

    samples: int = 500
    seed: int = 0
    shapes: int = 4


class NestSearch:
    """Searches nests, each once: those of equal operators in equal surroundings are the same.

    They begin from how operators run alone, where ``alone`` gives that by their signatures; what
    memories let pass there passes in groups too, but for homes.
    """

    def __init__(self, accelerator: Accelerator, goal: TreeGoal, effort: NestEffort) -> None:
        self.accelerator, self.goal, self.effort = accelerator, goal, effort
        self.alone: dict[object, Mapping] = {}
        self.known: dict[str, Mapping | None] = {}

    def own(self, shape: TreeShape, operator: Operator) -> list[Mapping]:
        """Return loops of its own for an operator of a shape: the best by the objective in all the room that is left.

        And in the share of it that the tiles of its turns have of those of all operators: so much each can keep there.
        Where the best is no larger than that, there is none else.
        """
        tiles = {each.name: _outside(shape.tree, each, self.accelerator) for each in shape.tree.group.operators}
        part, found = tiles[operator.name] / max(1.0, sum(tiles.values())), list[Mapping]()
        for share in dict.fromkeys((1.0, part)):
            if found and all(wrong.kind != "capacity" for wrong in violations(
                    found[0], operator, self._machine(shape, operator, part))):
                break
            nest = self._searched(shape, operator, share)
            if nest is not None and nest not in found:
                found.append(nest)
        steps = self._steps(shape, operator)
        return [self._own(nest, steps) for nest in found]

    def _machine(self, shape: TreeShape, operator: Operator, share: float) -> Accelerator:
        homes = homes_of(shape.tree, operator, self.accelerator)
        return _with_room(self.accelerator, operator, homes, shape, share)

    @staticmethod
    def _steps(shape: TreeShape, operator: Operator) -> dict[str, int]:
        """Return the steps of the shared loops that cut a dimension of an operator."""
        return {loop.dimension: loop.step for loop in shape.tree.shared(operator.name)
                if loop.step < operator.sizes[loop.dimension]}

    def _own(self, nest: Mapping, steps: dict[str, int]) -> Mapping:
        """Return a nest without the shared loops."""
        outer = self.accelerator.memories[0].name
        return Mapping(tuple(LevelLoops(
            entry.level, tuple(loop for loop in entry.loops if entry.level != outer or loop.dimension not in steps),
            entry.keeps) for entry in nest.levels))

    def _searched(self, shape: TreeShape, operator: Operator, share: float) -> Mapping | None:
        homes, steps = homes_of(shape.tree, operator, self.accelerator), self._steps(shape, operator)
        machine = self._machine(shape, operator, share)
        key = digest((operator.signature, steps, sorted(homes.items()), machine.level(shape.memory)))
        if key not in self.known:
            self.known[key] = self._found(operator, machine, homes, steps)
        return self.known[key]

    def _found(self, operator: Operator, machine: Accelerator, homes: dict[str, str],
               steps: dict[str, int]) -> Mapping | None:
        outer, inner = machine.memories[0].name, machine.memories[1].name
        alone = self.alone.get(operator.signature)
        rules = Constraints(
            keeps=_keeps(operator, machine, homes), orders={outer: ((*steps, "*"),)} if steps else {},
            tiles={inner: {name: Bounds(step, step) for name, step in steps.items()}} if steps else {})
        try:
            kept = KeptSets(MapSpace(operator, machine, constraints=rules))
            space = kept.space if alone is None else kept[kept.number_of(alone)]
            return search(operator, machine, objective=METRIC[self.goal], budget=self.effort.samples,
                          seed=self.effort.seed, space=space, watch=Watch(threads=1),
                          start=None if alone is None else Start.of(alone, operator)).mapping
        except InputError:
            return None


def _outside(tree: FusedTree, operator: Operator, accelerator: Accelerator) -> float:
    """Return the bytes that a turn of an operator uses of tensors which come from outside the group, or leave it."""
    if operations_of(operator) is not None:
        return 0.0
    _, extents = turn_of(tree, operator)
    homes = homes_of(tree, operator, accelerator)
    return sum(tile_bytes(tensor, extents, accelerator) for tensor in operator.tensors if tensor.name not in homes)


def homes_of(tree: FusedTree, operator: Operator, accelerator: Accelerator) -> dict[str, str]:
    """Return the memories that hold those tensors of an operator that pass between it and others of its group."""
    homes = {link.operand: tree.home(link.producer, accelerator) for link in tree.group.sources(operator.name)}
    if tree.group.readers(operator.name):
        homes[operator.output.name] = tree.home(operator.name, accelerator)
    return homes


def _keeps(operator: Operator, machine: Accelerator, homes: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Return what memories keep that are outside the home of a tensor they could keep."""
    found, names = {}, [memory.name for memory in machine.memories]
    for at, memory in enumerate(machine.memories):
        able = [tensor.name for tensor in operator.tensors if memory.can_keep(tensor.name, tensor.role)]
        kept = tuple(name for name in able if name not in homes or at >= names.index(homes[name]))
        if len(kept) < len(able):
            found[memory.name] = kept
    return found


def _with_room(accelerator: Accelerator, operator: Operator, homes: dict[str, str], shape: TreeShape,
               share: float) -> Accelerator:
    """Return the machine with a share of the room that intermediate tensors leave.

    A map space takes a tensor to be whole in its home: room for that comes on top.
    """
    levels = list[Memory | Fanout]()
    for level in accelerator.levels:
        if isinstance(level, Memory) and level.name == shape.memory and level.capacity_bytes is not None:
            whole = sum(tile_bytes(operator.tensor(name), operator.sizes, accelerator, level.name)
                        for name, home in homes.items() if home == level.name)
            room = int(share * (level.capacity_bytes - shape.held_bytes))
            levels.append(replace(level, capacity_bytes=level.copies * whole + room))
        else:
            levels.append(level)
    return replace(accelerator, levels=tuple(levels))


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
