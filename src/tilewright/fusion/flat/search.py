"""The best plan of an attention in a space of plans, by trying them all."""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

import numpy as np

from tilewright.base import InputError
from tilewright.fusion.flat.blocks import Attention
from tilewright.fusion.flat.bounds import AttentionBound, attention_bound
from tilewright.fusion.flat.costs import (
    Counts,
    Floats,
    PlanCosts,
    Softmax,
    TilePlans,
    fused_costs,
    sides,
    unfused_costs,
)
from tilewright.fusion.flat.machines import FlatMachine

FlatObjective = Literal["latency", "energy", "edp", "dram"]
FLAT_OBJECTIVES: tuple[FlatObjective, ...] = ("latency", "energy", "edp", "dram")
Space = Literal["flex", "flat", "online"]
"""Plans that are not fused; those of FLAT besides, one tile of keys each; those with an online softmax besides."""
SPACES: tuple[Space, ...] = ("flex", "flat", "online")


@dataclass(frozen=True)
class TilePlan:
    """One plan: its tile of rows by keys, the order of its loops, and what is held; see `TilePlans`.

    ``operators`` are the ones it is of: ``L-A`` fused, or ``L`` or ``A`` alone.
    """

    operators: str
    rows: int
    keys: int
    keys_outer: bool
    key_chunk: int
    value_chunk: int
    buffers: int
    sparing: bool = False

    def loops(self, attention: Attention) -> str:
        """Return its loops as people read them."""
        over = {"rows": (self.rows, attention.rows), "keys": (self.keys, attention.keys)}
        lines = [f"for instance in {attention.instances}"]
        for name in ("keys", "rows") if self.keys_outer else ("rows", "keys"):
            size, whole = over[name]
            lines.append(f"for {name} in {whole} by {size}" + (" (one tile)" if size >= whole else ""))
        if self.operators == "L-A":
            kept = [f"{name} {'held' if chunk >= self.keys else f'in chunks of {chunk}'}"
                    for name, chunk in (("K", self.key_chunk), ("V", self.value_chunk))]
            online = "online softmax" if self.keys < attention.keys else "softmax"
            lines.append(f"L, {online}, A: logits {self.rows} x {self.keys}"
                         f"{' twice' if self.buffers > 1 else ''} on the chip, {', '.join(kept)}")
        else:
            lines.append(f"{self.operators}: tile {self.rows} x {self.keys}, logits in DRAM")
        return "\n".join("  " * depth + line for depth, line in enumerate(lines))


@dataclass(frozen=True)
class AttentionCost:
    """What a plan of an attention costs, once through all instances."""

    words: dict[str, int]
    footprint_words: int
    compute_cycles: float
    vector_cycles: float
    latency_cycles: float
    buffer_words: int
    energy_pj: float

    @property
    def dram_words(self) -> int:
        """Words of DRAM of all tensors, read and written."""
        return sum(self.words.values())

    def __add__(self, other: "AttentionCost") -> "AttentionCost":
        """Return the cost of both, one after the other."""
        words = {name: self.words.get(name, 0) + other.words.get(name, 0) for name in {**self.words, **other.words}}
        added = {name: getattr(self, name) + getattr(other, name) for name in (
            "compute_cycles", "vector_cycles", "latency_cycles", "buffer_words", "energy_pj")}
        return AttentionCost(words, max(self.footprint_words, other.footprint_words), **added)

    def value(self, objective: FlatObjective) -> float:
        """Return what an objective asks for."""
        return {"latency": self.latency_cycles, "energy": self.energy_pj, "dram": float(self.dram_words),
                "edp": self.energy_pj * self.latency_cycles}[objective]

    def order(self, objective: FlatObjective) -> tuple[float, ...]:
        """Return what is compared: the objective, then cycles, then footprint, then words of DRAM."""
        return self.value(objective), self.latency_cycles, self.footprint_words, self.dram_words


@dataclass(frozen=True)
class AttentionPlan:
    """The best plan found of an attention: fused where it has one part, else L and A; cost, and what none can beat."""

    attention: Attention
    parts: tuple[TilePlan, ...]
    cost: AttentionCost
    bound: AttentionBound
    objective: FlatObjective

    @property
    def fused(self) -> bool:
        """Whether logits stay on the chip."""
        return len(self.parts) == 1

    @property
    def online(self) -> bool:
        """Whether the softmax is made over tiles of keys, as FlashAttention does."""
        return self.fused and self.parts[0].keys < self.attention.keys

    @property
    def gap(self) -> float:
        """How far it can be from the best of any plan: cost / bound - 1."""
        return self.cost.value(self.objective) / self.bound.value(self.objective) - 1

    @property
    def loops(self) -> str:
        """The loops of its parts."""
        return "\n".join(part.loops(self.attention) for part in self.parts)


def best_plan(attention: Attention, machine: FlatMachine, space: Space = "online",
              objective: FlatObjective = "latency", softmax: Softmax = "free") -> AttentionPlan:
    """Return the best plan of a space; of equal ones the fastest, then the one of the least footprint.

    Every pair of the sides that `sides` names is tried, in both orders, keys and values held or streaming. TilePlans of
    several instances are left out: instances share no words, so such a tile takes more room and saves none.

    Raises an `InputError` if no plan fits the buffer, or the space or the objective is unknown.

    Examples
    --------
    >>> from tilewright.fusion.flat import flat_block, flat_machine
    >>> from tilewright.hardware import preset
    >>> found = best_plan(flat_block("BERT", 4096).attention, flat_machine(preset("flat-edge")))
    >>> found.online, round(found.gap, 4)
    (True, 0.0)
    """
    for name, value, known in (("space", space, SPACES), ("objective", objective, FLAT_OBJECTIVES),
                               ("softmax", softmax, ("free", "vector"))):
        if value not in known:
            raise InputError(name, f"must be one of {', '.join(known)}", value)
    found = [plan for plan in (_unfused(attention, machine, objective, softmax),
                               *([_fused(attention, machine, space, objective, softmax)] if space != "flex" else []))
             if plan is not None]
    if not found:
        least = 2 * (attention.depth + attention.width + 1)
        raise InputError("capacity", f"must hold a row of queries, one of keys and what they make: {least} words",
                         f"{machine.capacity_words} words", "Give a larger buffer")
    bound = attention_bound(attention, machine, softmax)
    parts, cost = min(found, key=lambda each: each[1].order(objective))
    return AttentionPlan(attention, parts, cost, bound, objective)


MOST_MASKED_TILES = 8192
_Found = tuple[tuple[TilePlan, ...], AttentionCost]


def given_plan(attention: Attention, machine: FlatMachine, parts: tuple[TilePlan, ...],
               objective: FlatObjective = "latency", softmax: Softmax = "free") -> AttentionPlan:
    """Return what given parts cost: one that fuses, or L and A.

    Raises an `InputError` if a part does not fit the buffer; the message has the most rows with which it does.
    """
    costs = []
    for part in parts:
        values = tuple(vars(part).values())[1:]
        tiles = TilePlans(*(np.array([value]) for value in values))
        found = (fused_costs(attention, machine, tiles, softmax) if part.operators == "L-A" else
                 unfused_costs(attention, machine, tiles, softmax)[part.operators == "A"])
        if not found.legal[0]:
            fewer = next((rows for rows in range(part.rows - 1, 0, -1) if _fits(attention, machine, part, rows)), 0)
            raise InputError(f"plan.{attention.name}.{part.operators}.rows",
                             f"must let its tile fit the {machine.capacity_words} words of the buffer",
                             f"{part.rows} rows, {found.footprint_words[0]} words",
                             f"Take {fewer} rows at most" if fewer else "Take fewer keys, or a larger buffer")
        costs.append(_cost(found, 0))
    cost = costs[0] if len(costs) == 1 else costs[0] + costs[1]
    return AttentionPlan(attention, parts, cost, attention_bound(attention, machine, softmax), objective)


def _fits(attention: Attention, machine: FlatMachine, part: TilePlan, rows: int) -> bool:
    tiles = TilePlans(*(np.array([value]) for value in tuple(vars(replace(part, rows=rows)).values())[1:]))
    both = (fused_costs(attention, machine, tiles),) if part.operators == "L-A" else unfused_costs(
        attention, machine, tiles)
    return bool(both[-1 if part.operators == "A" else 0].legal[0])


def fused_space(attention: Attention, machine: FlatMachine, space: Space, softmax: Softmax = "free",
                objective: FlatObjective = "latency") -> TilePlans:
    """Return all fused plans that are tried: FLAT's alone, or those with more tiles of keys too."""
    rows = _row_sides(attention, machine)
    keys = _key_sides(attention, machine) if space == "online" else np.array([attention.keys])
    buffers = (1, 2) if softmax == "vector" else (1,)
    both = False, True
    grid = np.array(list(product(rows, keys, both, both, both, buffers, _sparing(objective))), dtype=np.int64)
    key_chunk, value_chunk = (np.where(grid[:, place] > 0, np.minimum(grid[:, 1], machine.columns), grid[:, 1])
                              for place in (3, 4))
    tiles = TilePlans(grid[:, 0], grid[:, 1], grid[:, 2] > 0, key_chunk, value_chunk, grid[:, 5], grid[:, 6] > 0)
    twice = ((grid[:, 3] > 0) & (key_chunk == grid[:, 1])) | ((grid[:, 4] > 0) & (value_chunk == grid[:, 1]))
    return tiles.take(~twice)


def product_space(attention: Attention, machine: FlatMachine, objective: FlatObjective = "latency") -> TilePlans:
    """Return all plans that are tried of L, or of A, alone."""
    grid = np.array(list(product(_row_sides(attention, machine), _key_sides(attention, machine),
                                 (False, True), _sparing(objective))), dtype=np.int64)
    return TilePlans(grid[:, 0], grid[:, 1], grid[:, 2] > 0, grid[:, 1], grid[:, 1], np.ones_like(grid[:, 0]),
                     grid[:, 3] > 0)


def _sparing(objective: FlatObjective) -> tuple[bool, ...]:
    """Return whether the array may spare words of the buffer, which counts where energy does."""
    return (False, True) if objective in ("energy", "edp") else (False,)


def _row_sides(attention: Attention, machine: FlatMachine) -> Counts:
    """Return the sides of tiles of rows; under a mask tiles differ, and none is tried that makes too many of them."""
    found = sides(attention.rows, machine.rows, _most(attention, machine))
    return found[found >= attention.rows / MOST_MASKED_TILES] if attention.causal else found


def _key_sides(attention: Attention, machine: FlatMachine) -> Counts:
    return sides(attention.keys, machine.columns, _most(attention, machine))


def _most(attention: Attention, machine: FlatMachine) -> int:
    """Return the rows, or keys, that the buffer could hold alone, twice each."""
    return machine.capacity_words // (2 * (attention.depth + attention.width))


def _fused(attention: Attention, machine: FlatMachine, space: Space, objective: FlatObjective,
           softmax: Softmax) -> _Found | None:
    tiles = fused_space(attention, machine, space, softmax, objective)
    costs = fused_costs(attention, machine, tiles, softmax)
    best = _best(costs, objective)
    return None if best is None else ((_plan(tiles, best, "L-A"),), _cost(costs, best))


def _unfused(attention: Attention, machine: FlatMachine, objective: FlatObjective, softmax: Softmax) -> _Found | None:
    """Return the best plans of L and A one after the other; for EDP, of all pairs that may be best."""
    tiles = product_space(attention, machine, objective)
    both = unfused_costs(attention, machine, tiles, softmax)
    if objective == "edp":
        tried = [_front(costs) for costs in both]
    else:
        tried = [[best] if (best := _best(costs, objective)) is not None else [] for costs in both]
    pairs = [((_plan(tiles, one, "L"), _plan(tiles, other, "A")), _cost(both[0], one) + _cost(both[1], other))
             for one in tried[0] for other in tried[1]]
    return min(pairs, key=lambda pair: pair[1].order(objective), default=None)


def _values(costs: PlanCosts, objective: FlatObjective) -> Floats:
    found = {"latency": costs.latency_cycles, "energy": costs.energy_pj, "dram": costs.dram_words.astype(float),
             "edp": costs.energy_pj * costs.latency_cycles}[objective]
    return np.where(costs.legal, found, math.inf)


def _best(costs: PlanCosts, objective: FlatObjective) -> int | None:
    """Return the place of the best plan, or nothing where none is legal."""
    values = _values(costs, objective)
    first = int(np.lexsort((costs.dram_words, costs.footprint_words, costs.latency_cycles, values))[0])
    return first if np.isfinite(values[first]) else None


def _front(costs: PlanCosts) -> list[int]:
    """Return the plans that none beats in both latency and energy, for pairs of which the least EDP is sought."""
    latency, energy = _values(costs, "latency"), _values(costs, "energy")
    found, least = list[int](), math.inf
    for place in np.lexsort((costs.footprint_words, energy, latency)).tolist():
        if np.isfinite(latency[place]) and energy[place] < least:
            found.append(place)
            least = energy[place]
    return found


def _plan(tiles: TilePlans, place: int, operators: str) -> TilePlan:
    rows, keys, outer, *rest = (values[place].item() for values in vars(tiles).values())
    return TilePlan(operators, rows, keys, outer, *rest)


def _cost(costs: PlanCosts, place: int) -> AttentionCost:
    return AttentionCost({name: int(words[place]) for name, words in costs.words.items()}, *(
        getattr(costs, name)[place].item() for name in ("footprint_words", "compute_cycles", "vector_cycles",
                                                        "latency_cycles", "buffer_words", "energy_pj")))
