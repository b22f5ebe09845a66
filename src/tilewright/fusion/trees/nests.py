"""Nests of an operator inside a shape: the search of mappings, held to the shared loops and the homes of tensors.

The operator's whole nest in a group is a mapping of the operator whose outermost loops are the shared ones, and which
keeps intermediate tensors in no memory outside the one that holds them. So the mappers search it as it is: a map space
with these constraints, on the machine with the room that is left.
"""

from dataclasses import dataclass, replace

from tilewright.base import InputError, digest
from tilewright.fusion.trees.network import TreeGoal
from tilewright.fusion.trees.shapes import TreeShape, turn_of
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import (
    Bounds,
    Constraints,
    FusedTree,
    KeptSets,
    LevelLoops,
    Mapping,
    MapSpace,
    operations_of,
    tile_bytes,
    violations,
)
from tilewright.search import Start, Watch, search
from tilewright.workload import Operator

METRIC = {"latency": "latency", "energy": "energy", "edp": "edp", "dram": "traffic"}
"""What a search minimises for each goal."""


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
