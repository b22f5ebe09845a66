"""A fusion plan: groups in their order, each with its tree and what it costs; unfused beside it, and bounds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from tilewright.fusion.trees.bounds import TreeBounds, tree_bounds
from tilewright.fusion.trees.groups import GroupPlan
from tilewright.fusion.trees.network import TreeCost, TreeProblem, summed_costs
from tilewright.mapping import FusedGroup, FusedLeaf, FusedMapping, FusedNode, dump_fused
from tilewright.workload import MacNode

Renamed = Mapping[str, str]


@dataclass(frozen=True)
class PlannedGroup:
    """Operators that run together, or one that runs alone."""

    names: tuple[str, ...]
    mapping: FusedMapping | None
    """Its tree; None of vector work alone, which has none, and of steps of a recurrence, whose mapping is ``step``."""
    cost: TreeCost
    alone: TreeCost
    """What the operators take one after the other."""
    step: FusedMapping | None = None

    @property
    def fused(self) -> bool:
        """Whether several operators run together."""
        return self.mapping is not None and len(self.names) > 1

    def __str__(self) -> str:
        shown = self.mapping or self.step
        return ", ".join(self.names) if shown is None else str(shown)


@dataclass(frozen=True)
class FusionPlan:
    """How a network runs: groups, one after the other, and vector work that belongs to none."""

    problem: TreeProblem
    groups: tuple[PlannedGroup, ...]
    whole: bool = True
    """Whether it is the best of all plans of the groups considered; else some that keep no order of the network's, or
    whose cycles and energy lie close to others', were left out."""
    unplanned: int = 0
    """Groups that were left out, as the run was stopped."""

    @cached_property
    def cost(self) -> TreeCost:
        """What it takes."""
        inside = summed_costs(self.problem.moved_inside(group.names) for group in self.groups if group.fused)
        return summed_costs([self.problem.work_cost(self.problem.rest), inside.times(-1),
                             *(group.cost for group in self.groups)])

    @cached_property
    def unfused(self) -> TreeCost:
        """What layer by layer takes, with the best mapping found of each."""
        return summed_costs([self.problem.work_cost(self.problem.rest), *(group.alone for group in self.groups)])

    @cached_property
    def bounds(self) -> TreeBounds:
        """What no plan can beat."""
        return tree_bounds(self.problem)

    @property
    def gap(self) -> float:
        """By which share the objective is at most above the best there is."""
        bound = self.bounds.value(self.problem.goal)
        return max(0.0, self.cost.value(self.problem.goal) / bound - 1) if bound > 0 else inf

    @property
    def gain(self) -> float:
        """The objective of layer by layer over that of the plan."""
        return self.unfused.value(self.problem.goal) / self.cost.value(self.problem.goal)

    def group(self, group: PlannedGroup) -> FusedGroup:
        """Return the operators of a group with a tree, linked as in the network."""
        return self.problem.group(group.names)

    def yaml(self) -> str:
        """Return the groups that have a tree as a file, which `tilewright evaluate` costs."""
        return dump_fused([group.mapping for group in self.groups if group.mapping is not None],
                          self.problem.tensors.name)


def joined_plan(problem: TreeProblem, chosen: Sequence[tuple[tuple[int, ...], GroupPlan | None]],
                alone: Sequence[GroupPlan], whole: bool) -> FusionPlan:
    """Return the plan of chosen groups of units; those without a plan of their own run alone."""
    groups = []
    for places, plan in chosen:
        names = problem.names(places)
        before = summed_costs(alone[place].cost for place in places)
        if plan is not None and len(places) > 1:
            groups.append(PlannedGroup(names, plan.mapping, plan.cost, before))
            continue
        node = problem.tensors.nodes[names[0]]
        step = alone[places[0]].mapping if isinstance(node, MacNode) else None
        once = step if isinstance(node, MacNode) and node.count == 1 and len(names) == 1 else None
        groups.append(PlannedGroup(names, once, before, before, step))
    return FusionPlan(problem, tuple(groups), whole)


def renamed(mapping: FusedMapping, names: Renamed) -> FusedMapping:
    """Return a mapping of one node with other names of operators."""
    parts = tuple(replace(leaf, operator=names[leaf.operator]) for leaf in mapping.root.leaves)
    held = tuple(replace(each, producer=names[each.producer]) for each in mapping.held)
    return FusedMapping(FusedNode(mapping.root.loops, parts, mapping.root.again), held)


def numbered(group: FusedGroup) -> tuple[FusedGroup, Renamed]:
    """Return a group with numbers for names, by which groups are equal that differ in names alone; and the names."""
    numbers = {operator.name: f"op{at}" for at, operator in enumerate(group.operators)}
    found = FusedGroup(
        tuple(replace(operator, name=numbers[operator.name]) for operator in group.operators),
        tuple(replace(link, producer=numbers[link.producer], reader=numbers[link.reader]) for link in group.links),
        tuple(numbers[name] for name in group.leaving))
    return found, {number: name for name, number in numbers.items()}


def single(name: str, leaf: FusedLeaf | None = None) -> FusedMapping:
    """Return the tree of one operator."""
    return FusedMapping(FusedNode((), (leaf or FusedLeaf(name),)))
