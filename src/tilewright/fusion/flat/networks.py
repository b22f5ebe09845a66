"""All attentions of a network, planned; and the best that plans of each kind reach within every footprint."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from tilewright.base import InputError
from tilewright.fusion.flat.blocks import attentions, other_products
from tilewright.fusion.flat.costs import Softmax, fused_costs
from tilewright.fusion.flat.dataflows import DataflowCost, product_cost
from tilewright.fusion.flat.machines import FlatMachine
from tilewright.fusion.flat.plan_files import read_attention_plans
from tilewright.fusion.flat.search import AttentionPlan, FlatObjective, Space, best_plan, fused_space, given_plan
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

    def _cycles(self, plans: tuple[AttentionPlan, ...]) -> float:
        return sum(plan.attention.count * plan.cost.latency_cycles for plan in plans)

    @property
    def latency_cycles(self) -> float:
        """Cycles of all attentions, one after the other."""
        return self._cycles(self.plans)

    @property
    def speedup(self) -> float:
        """How many times faster all attentions are than with the best plans that do not fuse."""
        return self._cycles(self.unfused) / self.latency_cycles

    @property
    def whole_speedup(self) -> float:
        """The same of all matrix products of the network."""
        other = self.others.latency_cycles
        return (self._cycles(self.unfused) + other) / (self.latency_cycles + other)

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


def fuse_attention(graph: Graph, machine: FlatMachine, goal: FusionGoal,
                   given: str | Path | None = None) -> AttentionFusion:
    """Plan all attentions of a network, or take the plans that are ``given`` in a file or in YAML.

    Raises
    ------
    InputError
        If it has none, a plan fits nowhere, or the given ones are of another network.
    """
    found = attentions(graph, causal=goal.causal)
    if not found:
        raise InputError(graph.name, "must have an attention: two products with a softmax between them", None,
                         "Take a network with transformer or decoder blocks, as bert-base")
    sought = goal.objective, goal.softmax
    unfused = tuple(best_plan(one, machine, "flex", *sought) for one in found)
    if given is None:
        plans = tuple(best_plan(one, machine, goal.space, *sought) for one in found)
    else:
        known = read_attention_plans(given, found)
        plans = tuple(given_plan(one, machine, known[one.name], *sought) for one in found)
    others = DataflowCost(0.0, 0.0, 0.0, 0.0, 0.0)
    for product in other_products(graph):
        others = others.plus(product_cost(product, machine), product.count)
    return AttentionFusion(machine, goal, plans, unfused, others)


def _front(rooms: np.ndarray, cycles: np.ndarray) -> Front:
    found, least = list[tuple[float, float]](), np.inf
    for place in np.lexsort((cycles, rooms)).tolist():
        if cycles[place] < least:
            least = float(cycles[place])
            found.append((float(rooms[place]), least))
    return tuple(found)
