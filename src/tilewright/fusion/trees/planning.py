"""Plans of a network: every layer alone, every distinct group, and the join; each a job, kept as it ends.

A plan is groups in their order, each with its tree and what it costs; unfused beside it, and bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any, TypeAlias

from tilewright.base import InputError, digest
from tilewright.cost import outermost_bytes
from tilewright.fusion.trees.bounds import TreeBounds, tree_bounds
from tilewright.fusion.trees.groups import METRIC, GroupPlan, NestEffort, NestSearch, plan_group
from tilewright.fusion.trees.joining import GroupLimits, Places, Steps, best_join, steps_through
from tilewright.fusion.trees.network import TreeCost, TreeProblem, summed_costs
from tilewright.jobs import Job, Keeper, Observer, Runner, Stop
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedMapping,
    FusedNode,
    KeptSets,
    MapSpace,
    dump_fused,
    load_fused,
)
from tilewright.search import search_network
from tilewright.workload import MacNode, Operator

Renamed = Mapping[str, str]
Kept: TypeAlias = list[dict[str, Any]]
"""Plans as plain data: the tree as YAML, and what it costs."""


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


@dataclass(frozen=True)
class TreeSearch:
    """How plans are searched: how large groups may be, how nests are searched, where values are kept."""

    effort: NestEffort = field(default_factory=NestEffort)
    limits: GroupLimits = field(default_factory=GroupLimits)
    alone_samples: int = 2000


def fuse_trees(problem: TreeProblem, asked: TreeSearch | None = None, *, keeper: Keeper | None = None,
               told: Observer | None = None, stop: Stop | None = None) -> FusionPlan:
    """Return the best plan found for a network; never worse than layer by layer, which is one of those joined.

    Groups that differ in names alone are planned once. With a keeper each is kept as soon as it is planned, so that a
    run that was ended goes on where it was.

    Raises
    ------
    InputError
        If a layer has no legal mapping.
    KeyboardInterrupt
        If it was stopped before every layer was mapped. Groups that are not planned by then are left out.
    """
    planner = _Planner(problem, asked or TreeSearch(), Runner(
        f"fuse {problem.tensors.name}", workers=1, keeper=keeper, observer=told, stop=stop))
    return planner.plan()


class _Planner:
    def __init__(self, problem: TreeProblem, asked: TreeSearch, runner: Runner) -> None:
        self.problem, self.asked, self.runner = problem, asked, runner
        self.unplanned = 0
        self.nests = NestSearch(problem.accelerator, problem.goal, asked.effort)

    def plan(self) -> FusionPlan:
        """Return the best plan."""
        alone = self._alone()
        steps = steps_through(self.problem.units, self.asked.limits)
        plans = self._grouped(steps, alone)
        joined: dict[Places, list[TreeCost]] = {(at,): [plan.cost] for at, plan in enumerate(alone)}
        for places, (kept, _) in plans.items():
            saved = self.problem.moved_inside(self.problem.names(places)).times(-1)
            joined[places] = [TreeCost(**each["cost"]) + saved for each in kept]
        chosen, exact = best_join(steps, joined, self.problem.goal, self.problem.work_cost(self.problem.rest))
        found = joined_plan(self.problem, [(places, self._whole(plans[places], at) if places in plans else None)
                                           for places, at in chosen], alone, exact)
        return replace(found, unplanned=self.unplanned)

    def _alone(self) -> list[GroupPlan]:
        """Return what each unit takes alone, with the mapping of its layer."""
        nodes = {node.operator.signature: node.operator for node in self.problem.tensors.graph.mac_nodes}
        jobs: list[Job[Kept]] = [Job(self._key("layer", signature), self._layer, inputs=(operator,))
                for signature, operator in nodes.items()]
        found = dict(zip(nodes, (self._whole((kept, {}), 0) for kept in self.runner.run(jobs)), strict=True))
        self.nests.alone = {signature: plan.mapping.root.leaves[0].mapping for signature, plan in found.items()}
        plans = []
        for unit in self.problem.units:
            node, first = self.problem.tensors.nodes[unit.names[0]], single(unit.names[0])
            cost = self.problem.work_cost(name for name in unit.names if name in self.problem.work)
            if isinstance(node, MacNode):
                plan = found[node.operator.signature]
                first, cost = renamed(plan.mapping, {"op0": node.name}), cost + plan.cost.times(node.count)
            plans.append(GroupPlan(first, cost))
        return plans

    def _key(self, kind: str, what: object) -> Mapping[str, object]:
        return {"kind": kind, "goal": self.problem.goal, "machine": digest(self.problem.accelerator),
                "asked": asdict(self.asked.effort), "samples": self.asked.alone_samples, "of": digest(what)}

    def _whole(self, plans: tuple[Kept, Renamed], at: int) -> GroupPlan:
        """Return one of the plans that are kept of a group, by the names of its operators."""
        kept, names = plans
        (mapping,) = load_fused(kept[at]["tree"], self.problem.accelerator)
        return GroupPlan(renamed(mapping, names) if names else mapping, TreeCost(**kept[at]["cost"]))

    def _layer(self, operator: Operator) -> Kept:
        machine = self.problem.accelerator
        found = search_network([operator], machine, objective=METRIC[self.problem.goal],
                               budget=self.asked.alone_samples, seed=self.asked.effort.seed, workers=1,
                               space=lambda one: KeptSets(MapSpace(one, machine)))
        if found.unfinished:
            return []  # the run was stopped, which leaves out what comes of this
        (layer,) = found.layers
        if layer.result.mapping is None or layer.result.cost is None:
            raise InputError(operator.name, f"must have a legal mapping on {machine.name}", "none found",
                             "tilewright map tells what does not fit")
        cost = layer.result.cost
        whole = TreeCost(cost.latency_cycles, cost.energy_pj, outermost_bytes(cost, operator, machine))
        return [_plain(GroupPlan(single("op0", FusedLeaf("op0", layer.result.mapping)), whole))]

    def _grouped(self, steps: Steps, alone: list[GroupPlan]) -> dict[Places, tuple[Kept, Renamed]]:
        """Return the plans of every group of several units, as far as they were not stopped."""
        known, jobs = dict[str, int](), list[Job[Kept]]()
        made = dict[Places, tuple[int, Renamed]]()
        for places in sorted({group for groups in steps.groups.values() for group in groups if len(group) > 1}):
            try:
                group, names = numbered(self.problem.group(self.problem.names(places)))
            except InputError:
                continue
            before = summed_costs(alone[place].cost for place in places)
            key = digest((group, before))
            if key not in known:
                known[key] = len(jobs)
                jobs.append(Job(self._key("group", (group, before)), self._group, inputs=(group, before)))
            made[places] = known[key], names
        values = self.runner.part(jobs)
        self.unplanned = values.count(None)
        return {places: (kept, names) for places, (at, names) in made.items() if (kept := values[at]) is not None}

    def _group(self, group: FusedGroup, alone: TreeCost) -> Kept:
        return [_plain(plan) for plan in plan_group(group, self.problem.accelerator, self.nests, alone)]


def _plain(plan: GroupPlan) -> dict[str, Any]:
    return {"tree": dump_fused([plan.mapping]), "cost": asdict(plan.cost)}
