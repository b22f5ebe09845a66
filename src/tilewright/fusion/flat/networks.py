"""All attentions of a network, planned; and the best that plans of each kind reach within every footprint."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.base import InputError, digest
from tilewright.fusion.flat.blocks import Attention, attentions, other_products
from tilewright.fusion.flat.bounds import AttentionBound
from tilewright.fusion.flat.costs import Softmax, fused_costs
from tilewright.fusion.flat.dataflows import DataflowCost, product_cost
from tilewright.fusion.flat.machines import FlatMachine
from tilewright.fusion.flat.plan_files import read_attention_plans
from tilewright.fusion.flat.search import (
    AttentionCost,
    AttentionPlan,
    FlatObjective,
    Space,
    TilePlan,
    best_plan,
    fused_space,
    given_plan,
)
from tilewright.jobs import Job, Runner
from tilewright.workload import Graph

Front = tuple[tuple[float, float], ...]
"""Bytes of buffer and cycles, in which fewer bytes take more cycles."""


@dataclass(frozen=True)
class AttentionFusion:
    """The attentions of a network with their best plans, the best ones that do not fuse, and the other products."""

    machine: FlatMachine
    goal: "FusionGoal"
    plans: tuple[AttentionPlan, ...]
    unfused: tuple[AttentionPlan, ...]
    others: DataflowCost

    @property
    def groups(self) -> tuple[AttentionPlan, ...]:
        """The plans, by the name that they have in all spaces."""
        return self.plans

    @cached_property
    def cost(self) -> AttentionCost:
        """What all attentions take, one after the other."""
        return _total(self.plans)

    @cached_property
    def unfused_cost(self) -> AttentionCost:
        """What they take with the best plans that do not fuse."""
        return _total(self.unfused)

    @cached_property
    def bounds(self) -> AttentionBound:
        """What no plans can beat."""
        return AttentionBound(**{one.name: sum(plan.attention.count * getattr(plan.bound, one.name)
                                               for plan in self.plans) for one in fields(AttentionBound)})

    @property
    def latency_cycles(self) -> float:
        """Cycles of all attentions, one after the other."""
        return self.cost.latency_cycles

    @property
    def speedup(self) -> float:
        """How many times faster all attentions are than with the best plans that do not fuse."""
        return self.unfused_cost.latency_cycles / self.latency_cycles

    @property
    def whole_speedup(self) -> float:
        """The same of all matrix products of the network."""
        other = self.others.latency_cycles
        return (self.unfused_cost.latency_cycles + other) / (self.latency_cycles + other)

    @property
    def gap(self) -> float:
        """How far all attentions together can be from the best of any plans, in what was asked for."""
        cost = sum(plan.attention.count * plan.cost.value(plan.objective) for plan in self.plans)
        return cost / sum(plan.attention.count * plan.bound.value(plan.objective) for plan in self.plans) - 1

    @cached_property
    def fronts(self) -> Mapping[str, Front]:
        """Of the first attention, by kind of plan, the least cycles within every footprint."""
        attention = self.plans[0].attention
        tiles = fused_space(attention, self.machine, "online", self.goal.softmax)
        costs = fused_costs(attention, self.machine, tiles, self.goal.softmax)
        rows = tiles.keys >= attention.keys
        return {name: _front(costs.footprint_words[chosen] * self.machine.word_bytes, costs.latency_cycles[chosen])
                for name, chosen in (("whole rows", rows & costs.legal), ("online softmax", ~rows & costs.legal))}


@dataclass(frozen=True)
class FusionGoal:
    """What plans of attention are sought for: in which space, for what, with which softmax, masked or not."""

    space: Space = "online"
    objective: FlatObjective = "latency"
    softmax: Softmax = "free"
    causal: bool = False


def fuse_attention(graph: Graph, machine: FlatMachine, goal: FusionGoal, given: str | Path | None = None,
                   runner: Runner | None = None) -> AttentionFusion:
    """Plan all attentions of a network, or take the plans that are ``given`` in a file or in YAML.

    Each is a job of the ``runner``, which may keep them.

    Raises an `InputError` if it has none, a plan fits nowhere, or the given ones are of another network.
    """
    found = attentions(graph, causal=goal.causal)
    if not found:
        raise InputError(graph.name, "must have an attention: two products with a softmax between them", None,
                         "Take a network with transformer or decoder blocks, as bert-base")
    sought = goal.objective, goal.softmax
    unfused = tuple(best_plan(one, machine, "flex", *sought) for one in found)
    if given is None:
        jobs: list[Job[list[dict[str, Any]]]] = [
            Job({"of": digest((one, machine, goal))}, _parts, inputs=(one, machine, goal)) for one in found]
        planned = (runner or Runner(workers=1)).run(jobs)
        known = {one.name: tuple(TilePlan(**part) for part in parts)
                 for one, parts in zip(found, planned, strict=True)}
    else:
        known = read_attention_plans(given, found)
    plans = tuple(given_plan(one, machine, known[one.name], *sought) for one in found)
    others = DataflowCost(0.0, 0.0, 0.0, 0.0, 0.0)
    for product in other_products(graph):
        others = others.plus(product_cost(product, machine), product.count)
    return AttentionFusion(machine, goal, plans, unfused, others)


def _total(plans: tuple[AttentionPlan, ...]) -> AttentionCost:
    return reduce(add, (plan.cost for plan in plans for _ in range(plan.attention.count)))


def _parts(attention: Attention, machine: FlatMachine, goal: FusionGoal) -> list[dict[str, Any]]:
    """Return the parts of the best plan as plain data."""
    return [vars(part) for part in best_plan(attention, machine, goal.space, goal.objective, goal.softmax).parts]


def _front(rooms: np.ndarray, cycles: np.ndarray) -> Front:
    found, least = list[tuple[float, float]](), np.inf
    for place in np.lexsort((cycles, rooms)).tolist():
        if cycles[place] < least:
            least = float(cycles[place])
            found.append((float(rooms[place]), least))
    return tuple(found)
