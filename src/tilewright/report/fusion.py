"""A plan of fused groups as a person sees it: what it saves, its groups, and the memory over time."""

from itertools import accumulate
from typing import Any

from tilewright.base import Plot, Table
from tilewright.fusion.microbatch import SYNC, Fused, MicroBatchGroup, MicroBatchPlan, bounds
from tilewright.report.quantities import engineering, percent, seconds_of, shortened
from tilewright.report.sheet import Sheet

CLOSED = 1e-6
COLOURS = 7
OUT = "out"
"""What a table says of a layer whose result goes off chip."""


def fusion_sheet(plan: MicroBatchPlan, search: Fused | None, gap: float, command: str) -> Sheet:
    """Return what is to be shown of a plan; ``search`` is how it was found, if it was not given."""
    problem = plan.problem
    unfused = MicroBatchPlan.of(problem, problem.unfused).cost
    title = f"{problem.name} on {problem.machine.name}, batch {problem.batch}"
    lead = (f"{len(problem.entries) - 1} layers in {len(plan.groups)} groups, by {problem.objective}; "
            f"{engineering(problem.memory_bytes, 'B')} for micro-batches"
            + (f", {engineering(problem.weight_bytes, 'B')} for weights." if problem.weight_bytes else
               "; weights apart."))
    facts = (_gain(plan, unfused.latency_cycles), _traffic(plan, unfused.offchip_bytes, unfused.energy_pj),
             "No plan does better." if gap < CLOSED else f"At most {percent(gap)} above the best there is.",
             *([_search(plan, search)] if search is not None else []),
             "All elements multiply all the time, vector work takes no time, and groups run one after the other.")
    return Sheet(title, lead, facts, (_groups(plan), _bounds(plan)), (_footprint(plan), _layers(plan)), {}, command)


def _gain(plan: MicroBatchPlan, unfused: float) -> str:
    cycles = plan.cost.latency_cycles
    told = f"{engineering(cycles)} cycles = {engineering(seconds_of(cycles, plan.problem.machine.clock_mhz), 's')}"
    if abs(unfused / cycles - 1) < CLOSED:
        return f"{told}, as layer by layer."
    return f"{told}; layer by layer {engineering(unfused)}: speedup {unfused / cycles:.3f}."


def _traffic(plan: MicroBatchPlan, unfused_bytes: float, unfused_pj: float) -> str:
    cost = plan.cost
    return (f"Off chip {engineering(cost.offchip_bytes, 'B')} (layer by layer {engineering(unfused_bytes, 'B')}), of "
            f"which weights {engineering(cost.weight_bytes, 'B')}; {engineering(cost.energy_pj * 1e-12, 'J')} (layer "
            f"by layer {engineering(unfused_pj * 1e-12, 'J')}). Micro-batches take "
            f"{engineering(cost.memory_bytes, 'B')} at most.")


def _search(plan: MicroBatchPlan, search: Fused) -> str:
    plans = "plan" if search.samples == 1 else "plans"
    told = (f"Mapper {search.mapper}, seed {search.seed}: {search.samples:,} {plans} scored in "
            f"{engineering(search.seconds, 's')}.")
    return told if search.found else (
        f"{told} None fits: the nearest takes {engineering(search.least_memory_bytes, 'B')}. Shown is layer by layer.")


def _groups(plan: MicroBatchPlan) -> Table:
    rows = tuple((place, _named(group), len(group.layers), " ".join(
        OUT if size == SYNC else str(size) for size in group.micro_batches), engineering(group.cost.latency_cycles),
        group.cost.limit, engineering(group.cost.memory_bytes, "B"), engineering(group.cost.offchip_bytes, "B"),
        engineering(group.cost.weight_bytes, "B")) for place, group in enumerate(plan.groups))
    return Table("groups", "Groups, one after the other", (
        "Group", "Layers", "Number", "Micro-batches", "Cycles", "Limit", "Memory", "Off chip", "Weights"), rows,
        (f"Micro-batches: samples of each result that stay on chip; {OUT}: it goes off chip, and ends the group.",))


def _named(group: MicroBatchGroup) -> str:
    first, last = shortened(group.layers[0], 24), shortened(group.layers[-1], 24)
    return first if len(group.layers) == 1 else f"{first} to {last}"


def _bounds(plan: MicroBatchPlan) -> Table:
    found = bounds(plan.problem)
    rows = (("multiplications on all elements", engineering(found.compute_cycles)),
            ("input, results and weights off chip, once", engineering(found.compulsory_cycles)),
            ("the same, and what the memory forces off chip", engineering(found.capacity_cycles)),
            ("operands and results past the memory on chip", engineering(found.onchip_cycles)))
    return Table("bounds", "What no plan is below", ("Of", "Cycles"), rows)


def _footprint(plan: MicroBatchPlan) -> Plot:
    """Return the memory that micro-batches take over time, a bar a group, and the memory that there is."""
    problem, clock = plan.problem, plan.problem.machine.clock_mhz
    ends = list(accumulate(seconds_of(group.cost.latency_cycles, clock) for group in plan.groups))
    starts = [0.0, *ends[:-1]]
    bars: dict[str, Any] = {
        "type": "bar", "name": "micro-batches", "x": [(a + b) / 2 for a, b in zip(starts, ends, strict=True)],
        "width": [b - a for a, b in zip(starts, ends, strict=True)],
        "y": [group.cost.memory_bytes for group in plan.groups], "customdata": [_named(one) for one in plan.groups],
        "marker": {"color": [f"@curve-{place % COLOURS}" for place in range(len(ends))],
                   "line": {"color": "@surface", "width": 0.5}},
        "hovertemplate": "<b>%{customdata}</b><br>%{y:.3s}B from %{x:.3s}s<extra></extra>"}
    line = {"type": "scatter", "mode": "lines", "name": "the memory", "x": [0, ends[-1]],
            "y": [problem.memory_bytes] * 2, "line": {"color": "@strong", "width": 1.5, "dash": "dash"}}
    return Plot("footprint", "Memory over time", [bars, line], {
        "xaxis": {"title": {"text": "Time"}, "tickformat": "~s", "ticksuffix": "s", "range": [0, ends[-1]]},
        "yaxis": {"title": {"text": "On chip"}, "tickformat": "~s", "ticksuffix": "B"}, "hovermode": "closest"},
        "A bar is a group; a group without one stages nothing.")


def _layers(plan: MicroBatchPlan) -> Plot:
    """Return what each layer stages, coloured by group."""
    entries, places, group = plan.problem.entries, list[int](), -int(plan.strategy[0] == SYNC)
    for size in plan.strategy:
        places.append(group)
        group += size == SYNC
    taken = [max(size, 0) * tile for size, tile in zip(plan.strategy, plan.problem.tiles.tolist(), strict=True)]
    bars: dict[str, Any] = {
        "type": "bar", "x": [shortened(entry.name, 32) for entry in entries], "y": taken,
        "customdata": ["goes off chip" if size == SYNC else f"{size} samples" for size in plan.strategy],
        "marker": {"color": [f"@curve-{place % COLOURS}" for place in places]},
        "hovertemplate": "<b>%{x}</b>: %{customdata}, %{y:.3s}B<extra></extra>"}
    return Plot("layers", "What each layer keeps on chip", [bars], {
        "xaxis": {"tickangle": -60, "automargin": True}, "showlegend": False,
        "yaxis": {"title": {"text": "On chip"}, "tickformat": "~s", "ticksuffix": "B"}},
        "Bars of one colour are one group.")
