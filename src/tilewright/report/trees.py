"""Trees of fused groups as a person sees them: what they save, their loops, the memory over time, the roofline."""

from collections.abc import Mapping
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from tilewright.base import Plot, Table, Value
from tilewright.fusion.trees import FusionPlan, PlannedGroup
from tilewright.mapping import TREES, FusedTree, dump_fused, fused_rooms
from tilewright.report.quantities import engineering, measured, percent, seconds_of, shortened
from tilewright.report.sheet import Sheet

_INDENT = 2 * "\N{NO-BREAK SPACE}"


def tree_sheet(plan: FusionPlan, command: str = "") -> Sheet:
    """Return what is to be shown of a plan."""
    problem, cost, before = plan.problem, plan.cost, plan.unfused
    clock, fused = problem.accelerator.frequency_mhz, [group for group in plan.groups if group.fused]
    facts = (
        f"{engineering(cost.latency_cycles)} cycles = {engineering(seconds_of(cost.latency_cycles, clock), 's')}; "
        f"layer by layer {engineering(before.latency_cycles)}",
        f"{engineering(cost.energy_pj * 1e-12, 'J')}; layer by layer {engineering(before.energy_pj * 1e-12, 'J')}",
        f"{engineering(cost.dram_bytes)}B off the chip and back; layer by layer {engineering(before.dram_bytes)}B",
        f"By {problem.goal} {plan.gain:.3f} times better than layer by layer; at most {percent(plan.gap)} above the "
        "best there is" + ("" if plan.whole else "; not all ways to join its groups were compared, as there are so "
                           "many"),
        *([f"Stopped before {plan.unplanned} groups were planned: they are left out"] if plan.unplanned else []),
    )
    return Sheet(f"{problem.tensors.name} on {problem.accelerator.name}",
                 f"{len(fused)} group{'s' * (len(fused) != 1)} of operators run together, by {problem.goal}.", facts,
                 (_groups(plan), _bounds(plan), _loops(plan)), (*_footprint(plan), _roofline(plan)), {}, command)


def _groups(plan: FusionPlan) -> Table:
    rows: list[tuple[Value, ...]] = []
    for at, group in enumerate(plan.groups):
        if group.fused:
            cost, alone = group.cost, group.alone
            rows.append((at, _named(group), len(group.names), cost.latency_cycles, alone.latency_cycles,
                         measured(cost.energy_pj, "pJ"), measured(alone.energy_pj, "pJ"), cost.dram_bytes,
                         alone.dram_bytes))
    return Table("groups", "Groups", (
        "Group", "Operators", "Number", "Cycles", "Alone", "Energy", "Alone", "Off chip (B)", "Alone (B)"),
        tuple(rows), ("Alone: the same operators one after the other, each with the best mapping found. All other "
                      "operators of the network run so.",))


def _named(group: PlannedGroup) -> str:
    return " to ".join(dict.fromkeys(shortened(name, 28) for name in (group.names[0], group.names[-1])))


def _bounds(plan: FusionPlan) -> Table:
    found = plan.bounds
    rows = (("cycles of compute", found.compute_cycles), ("cycles of the vector unit", found.vector_cycles),
            ("cycles of memories on the chip", found.memory_cycles),
            ("cycles for words that no plan can leave out", found.dram_cycles),
            ("bytes of these words", found.dram_bytes), ("energy", measured(found.energy_pj, "pJ")))
    return Table("bounds", "What no plan is below", ("Of", "Bound"), rows)


def _loops(plan: FusionPlan) -> Table:
    rows = tuple((at, line.replace("  ", _INDENT)) for at, group in enumerate(plan.groups) if group.fused
                 for line in str(group).splitlines())
    return Table("loops", "Loops", ("Group", "Loops"), rows)


def _footprint(plan: FusionPlan) -> list[Plot]:
    """Return what lives in each memory that holds tensors while each operator of a group runs."""
    found: dict[str, tuple[list[str], list[float], float]] = {}
    for group in plan.groups:
        if group.mapping is None or not group.fused:
            continue
        memories = {held.memory for held in group.mapping.held}
        for (memory, turn), rooms in fused_rooms(FusedTree(plan.group(group), group.mapping),
                                                 plan.problem.accelerator).items():
            if memory in memories:
                names, sizes, _ = found.setdefault(memory, ([], [], 0.0))
                names.append(shortened(turn, 32))
                sizes.append(sum(room.needed_bytes for room in rooms))
                found[memory] = names, sizes, sum(room.capacity_bytes or 0.0 for room in rooms)
    plots = []
    for memory, (names, sizes, room) in found.items():
        data: list[dict[str, Any]] = [
            {"type": "bar", "name": "in use", "x": names, "y": sizes, "marker": {"color": "@curve-0"}},
            {"type": "scatter", "mode": "lines", "name": "the memory", "x": [names[0], names[-1]], "y": [room] * 2,
             "line": {"color": "@strong", "dash": "dash"}}]
        plots.append(Plot(f"footprint-{memory}", f"{memory} over time", data, {
            "xaxis": {"tickangle": -60, "automargin": True},
            "yaxis": {"title": {"text": "On chip"}, "tickformat": "~s", "ticksuffix": "B"}},
            "What lives there while each operator of a group runs."))
    return plots


def _roofline(plan: FusionPlan) -> Plot:
    """Return the groups below the roofs of the machine, before and after."""
    machine, outer = plan.problem.accelerator, plan.problem.accelerator.memories[0]
    groups = [group for group in plan.groups if group.fused]
    macs = [sum(operator.macs for operator in plan.group(group).operators) for group in groups]
    rate = outer.bandwidth.shared or outer.bandwidth.read or float("inf")
    peak, per_byte = machine.compute_instances, rate * outer.word_bits / 8
    axis = [2.0**power for power in range(-4, 14)]
    data: list[dict[str, Any]] = [{"type": "scatter", "mode": "lines", "name": "roof", "x": axis,
                                   "y": [min(peak, each * per_byte) for each in axis], "line": {"color": "@muted"}}]
    for label, costs, colour in (("this plan", [group.cost for group in groups], "@curve-0"),
                                 ("layer by layer", [group.alone for group in groups], "@curve-1")):
        data.append({"type": "scatter", "mode": "markers", "name": label, "text": [_named(group) for group in groups],
                     "marker": {"color": colour, "size": 9},
                     "x": [count / max(cost.dram_bytes, 1) for count, cost in zip(macs, costs, strict=True)],
                     "y": [count / cost.latency_cycles for count, cost in zip(macs, costs, strict=True)]})
    return Plot("roofline", "Roofline, before and after", data, {
        "xaxis": {"type": "log", "title": {"text": "Operations per byte off the chip"}},
        "yaxis": {"type": "log", "title": {"text": "Operations per cycle"}}})


def tree_plan(plan: FusionPlan, command: str) -> Mapping[str, Any]:
    """Return all of it as plain data."""
    ends = accumulate(group.cost.latency_cycles for group in plan.groups)
    groups = [{"operators": list(group.names), "fused": group.fused, "cost": asdict(group.cost),
               "alone": asdict(group.alone), "end_cycles": end,
               "tree": None if group.mapping is None else dump_fused([group.mapping])}
              for group, end in zip(plan.groups, ends, strict=True)]
    bounds = {**asdict(plan.bounds), "latency_cycles": plan.bounds.latency_cycles}
    return {"kind": TREES, "command": command, "network": plan.problem.tensors.name,
            "accelerator": plan.problem.accelerator.name, "objective": plan.problem.goal, "cost": asdict(plan.cost),
            "unfused": asdict(plan.unfused), "bounds": bounds, "gap": plan.gap, "gain": plan.gain,
            "joined_exactly": plan.whole, "groups": groups}
