"""All attentions of a network, planned, and their plans as YAML; and the best of each kind within every footprint.

.. code-block:: yaml

    network: bert-base
    signature: 0be6a0fbb22b9a33
    asked: {objective: latency, softmax: free, causal: false, memory_bytes: 524288, clock_mhz: 940, word_bits: 16}
    attentions:
      layer.0.attention:
      - {operators: L-A, rows: 4, keys: 64, keys_outer: true, key_chunk: 64, value_chunk: 64, buffers: 1}

The signature, that of the attentions, and what was asked for may be left out. An attention has one part, ``L-A``, or
two that are not fused, ``L`` and ``A``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from tilewright.base import Fields, FieldsDocument, InputError, digest
from tilewright.cost import network_sum
from tilewright.fusion.flat.blocks import Attention, attentions, other_products
from tilewright.fusion.flat.bounds import AttentionBound
from tilewright.fusion.flat.costs import Softmax, fused_costs
from tilewright.fusion.flat.dataflows import DataflowCost, product_cost
from tilewright.fusion.flat.machines import FlatMachine
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
Parts = tuple[TilePlan, ...]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


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
        return AttentionBound(**{one.name: network_sum((plan.attention.count, getattr(plan.bound, one.name))
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
        cost: float = network_sum((plan.attention.count, plan.cost.value(plan.objective)) for plan in self.plans)
        bound: float = network_sum((plan.attention.count, plan.bound.value(plan.objective)) for plan in self.plans)
        return cost / bound - 1

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


class _Part(Fields):
    operators: Literal["L-A", "L", "A"]
    rows: Annotated[int, Field(ge=1)]
    keys: Annotated[int, Field(ge=1)]
    keys_outer: bool = False
    key_chunk: Annotated[int, Field(ge=1)] | None = None
    value_chunk: Annotated[int, Field(ge=1)] | None = None
    buffers: Annotated[int, Field(ge=1, le=2)] = 1
    sparing: bool = False


class _Asked(Fields):
    objective: FlatObjective = "latency"
    softmax: Softmax = "free"
    causal: bool = False
    memory_bytes: _Positive | None = None
    clock_mhz: _Positive | None = None
    word_bits: Annotated[int, Field(ge=1)] | None = None


class _PlanFields(Fields):
    network: Annotated[str, Field(min_length=1)]
    signature: str = ""
    asked: _Asked = _Asked()
    attentions: Annotated[dict[str, list[_Part]], Field(min_length=1)]


def attention_yaml(network: str, plans: Sequence[AttentionPlan], machine: FlatMachine, softmax: Softmax) -> str:
    """Return the plans of a network's attentions as YAML, with what they are for."""
    found = tuple(plan.attention for plan in plans)
    asked = _Asked(objective=plans[0].objective, softmax=softmax, causal=any(one.causal for one in found),
                   memory_bytes=machine.capacity_words * machine.word_bytes, clock_mhz=machine.clock_mhz,
                   word_bits=machine.word_bits)
    lines = [f"network: {json.dumps(network)}", f'signature: "{_signature(found)}"',
             f"asked: {_inline(asked.model_dump())}", "attentions:"]
    for plan in plans:
        lines.append(f"  {json.dumps(plan.attention.name)}:")
        lines += (f"  - {_inline(vars(part))}" for part in plan.parts)
    return "\n".join((*lines, ""))


def _inline(fields: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{field}: {json.dumps(value)}" for field, value in fields.items()) + "}"


def _signature(attentions: tuple[Attention, ...]) -> str:
    """Return what tells attentions of other sizes apart; a mask is asked for besides."""
    return digest(tuple(replace(one, causal=False) for one in attentions))


def _read(source: str | Path) -> tuple[FieldsDocument, _PlanFields]:
    document = FieldsDocument.of(source, "plan", "network:, attentions:")
    return document, document.validated(_PlanFields, document.plain())


def attention_terms(source: str | Path) -> dict[str, Any]:
    """Return what plans were made for: ``objective``, ``softmax``, ``causal``, and of the machine what it was then.

    Those are ``memory_bytes``, ``clock_mhz`` and ``word_bits``; None where the file does not say.

    Raises an `InputError` if the file says something wrong.
    """
    return _read(source)[1].asked.model_dump()


def read_attention_plans(source: str | Path, attentions: tuple[Attention, ...]) -> dict[str, Parts]:
    """Return the plans in a file, or in YAML text, of the attentions of a network.

    Raises an `InputError` if the file says something wrong, is of other attentions, or has a tile that is larger than
    its attention.
    """
    document, fields = _read(source)
    known = {one.name: one for one in attentions}
    if set(fields.attentions) != set(known):
        raise document.fail(("attentions",), "must name the attentions of the network, each once",
                            ", ".join(fields.attentions), f"It has {', '.join(known)}; the plan is of {fields.network}")
    if fields.signature not in ("", _signature(attentions)):
        raise document.fail(("signature",), "must be that of the network: attentions have the same names, but other "
                            "sizes", fields.signature, f"The plan is of {fields.network}")
    found = {}
    for name, parts in fields.attentions.items():
        if [part.operators for part in parts] not in (["L-A"], ["L", "A"]):
            raise document.fail(("attentions", name), "must have one part L-A, or L and then A",
                                ", ".join(part.operators for part in parts))
        for place, part in enumerate(parts):
            for field, most in (("rows", known[name].rows), ("keys", known[name].keys)):
                if getattr(part, field) > most:
                    raise document.fail(("attentions", name, place, field), f"must be at most {most}",
                                        getattr(part, field))
        found[name] = tuple(TilePlan(
            part.operators, part.rows, part.keys, part.keys_outer, min(part.keys, part.key_chunk or part.keys),
            min(part.keys, part.value_chunk or part.keys), part.buffers, part.sparing) for part in parts)
    return found
