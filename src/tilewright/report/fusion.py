"""Plans of fused operators as a person sees them: what they save, their loops, the memory over time, the roofline."""

from collections.abc import Mapping
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from tilewright.base import Plot, Table, Value
from tilewright.fusion.flat import AttentionFusion, AttentionPlan
from tilewright.fusion.microbatch import SYNC, Fused, MicroBatchGroup, MicroBatchPlan, bounds
from tilewright.fusion.trees import FusionPlan, PlannedGroup
from tilewright.mapping import TREES, FusedTree, dump_fused, fused_rooms
from tilewright.report.quantities import engineering, measured, percent, seconds_of, shortened
from tilewright.report.sheet import Sheet

_KINDS = {(False, False): "not fused", (True, False): "fused, whole rows", (True, True): "fused, online softmax"}
_INDENT = 2 * "\N{NO-BREAK SPACE}"


def attention_sheet(found: AttentionFusion, network: str, command: str = "") -> Sheet:
    """Return what is to be shown of the attentions of a network."""
    machine, gap = found.machine, found.gap
    facts = (
        f"{machine.rows} x {machine.columns} elements, "
        f"{engineering(machine.capacity_words * machine.word_bytes, 'B')} on the chip, {machine.word_bits}-bit words, "
        f"{machine.dram_rate:.4g} words of DRAM a cycle at {machine.clock_mhz:g} MHz",
        f"Attention: {engineering(found.latency_cycles)} cycles, {found.speedup:.2f} times faster than the best plans "
        f"that are not fused; within {percent(max(gap, 0.0))} of what no plan can beat",
        f"All matrix products: {engineering(found.latency_cycles + found.others.latency_cycles)} cycles, "
        f"{found.whole_speedup:.2f} times faster than not fused; the others are not fused")
    tables = (_plans(found), _words(found), _attention_loops(found))
    return Sheet(f"{network}: attention on {machine.name}",
                 "Which parts of an attention stay on the chip, in what tiles.", facts, tables, tuple(_plots(found)),
                 {}, command)


def _plans(found: AttentionFusion) -> Table:
    rows: list[tuple[Value, ...]] = []
    for plan, plain in zip(found.plans, found.unfused, strict=True):
        cost, one = plan.cost, plan.attention
        rows.append((one.name, one.count, f"{one.instances} x {one.rows:,} x {one.keys:,}",
                     _KINDS[plan.fused, plan.online], " ".join(f"{part.rows}x{part.keys}" for part in plan.parts),
                     cost.latency_cycles,
                     plan.bound.latency_cycles, percent(max(plan.gap, 0.0)),
                     plain.cost.latency_cycles / cost.latency_cycles,
                     percent(one.macs / found.machine.elements / cost.latency_cycles),
                     min(cost.footprint_words, found.machine.capacity_words) * found.machine.word_bytes,
                     measured(cost.energy_pj, "pJ")))
    return Table("plans", "Plans", (
        "Attention", "Times", "Instances x rows x keys", "Plan", "Tile", "Cycles", "Bound (cycles)", "Gap", "Speedup",
        "Used", "Buffer (B)", "Energy"), tuple(rows), (
        "Gap: cost of the objective over what no plan can beat. Speedup: over the best plan that is not fused. Of "
        "plans that cost the same the fastest is taken, then the one of the least buffer.",
        "Rows are positions times the heads that share keys.") + ((
            "Masked tiles are left out; of the others all pairs are worked on.",) if found.goal.causal else ()))


def _words(found: AttentionFusion) -> Table:
    names = ("Q", "K", "V", "O", "logits")
    rows: list[tuple[Value, ...]] = [
        (plan.attention.name, label, *(of.cost.words.get(name, 0) for name in names), of.cost.dram_words,
         plan.bound.dram_words) for plan, plain in zip(found.plans, found.unfused, strict=True)
        for label, of in (("this plan", plan), ("not fused", plain))]
    return Table("words", "Words of DRAM", ("Attention", "Plan", *names, "All", "Bound"), tuple(rows), (
        "O: with the maxima and sums of rows where these leave the chip. Bound: compulsory words, or those that the "
        "capacity forces if these are more.",))


def _attention_loops(found: AttentionFusion) -> Table:
    rows = tuple((plan.attention.name, line.replace("  ", _INDENT)) for plan in found.plans
                 for line in plan.loops.splitlines())
    return Table("loops", "Loops", ("Attention", "Loops"), rows)


def _plots(found: AttentionFusion) -> list[Plot]:
    names = [plan.attention.name for plan in found.plans]
    kinds = (("this plan", found.plans), ("not fused", found.unfused))
    words: list[dict[str, Any]] = [
        {"type": "bar", "name": name, "x": [f"{one}, {label}" for label, _ in kinds for one in names],
         "y": [plan.cost.words.get(name, 0) for _, plans in kinds for plan in plans],
         "marker": {"color": f"@curve-{place}"}} for place, name in enumerate(("Q", "K", "V", "O", "logits"))]
    machine = found.machine
    points = {label: ([plan.attention.macs / plan.cost.dram_words for plan in plans],
                      [plan.attention.macs / plan.cost.latency_cycles for plan in plans]) for label, plans in kinds}
    axis = sorted([*(2.0**power for power in range(-2, 14)), machine.elements / machine.dram_rate])
    return [
        Plot("words", "Words of DRAM", words, {"barmode": "stack", "yaxis": {"title": {"text": "words"}}}),
        _roofs(axis, (machine.elements, machine.dram_rate), names, points,
               ("Multiply-accumulates per word of DRAM", "Multiply-accumulates per cycle")),
        _room_plot(found)]


def _room_plot(found: AttentionFusion) -> Plot:
    """Return the least cycles within every footprint, of the first attention."""
    data = [{"type": "scatter", "mode": "lines", "name": name, "line": {"shape": "hv", "color": f"@curve-{place}"},
             "x": [room for room, _ in front], "y": [cycles for _, cycles in front]}
            for place, (name, front) in enumerate(found.fronts.items())]
    return Plot("room", f"Least cycles within a footprint, {found.plans[0].attention.name}", data, {
        "xaxis": {"type": "log", "title": {"text": "Bytes of buffer"}},
        "yaxis": {"type": "log", "title": {"text": "Cycles"}}}, "What plans of each kind need and take.")


def attention_tree(found: AttentionFusion, network: str, command: str) -> Mapping[str, Any]:
    """Return all of it as plain data."""
    def plain(plan: AttentionPlan) -> dict[str, Any]:
        cost, bound = plan.cost, plan.bound
        return {"operators": [vars(part) for part in plan.parts], "fused": plan.fused, "online": plan.online,
                "words": cost.words, "dram_words": cost.dram_words, "footprint_words": cost.footprint_words,
                "compute_cycles": cost.compute_cycles, "vector_cycles": cost.vector_cycles,
                "latency_cycles": cost.latency_cycles, "energy_pj": cost.energy_pj,
                "bound": {**vars(bound), "dram_words": bound.dram_words}, "gap": plan.gap}

    return {"kind": "tilewright attention 1", "network": network, "machine": vars(found.machine),
            "goal": vars(found.goal), "command": command,
            "latency_cycles": found.latency_cycles, "speedup": found.speedup, "whole_speedup": found.whole_speedup,
            "gap": found.gap, "others": vars(found.others),
            "attentions": [{**vars(plan.attention), "plan": plain(plan), "unfused": plain(before)}
                           for plan, before in zip(found.plans, found.unfused, strict=True)]}


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
    return Sheet(title, lead, facts, (_batch_groups(plan), _batch_bounds(plan)),
                 (_batch_footprint(plan), _layers(plan)), {}, command)


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


def _batch_groups(plan: MicroBatchPlan) -> Table:
    rows = tuple((place, _batch_named(group), len(group.layers), " ".join(
        OUT if size == SYNC else str(size) for size in group.micro_batches), engineering(group.cost.latency_cycles),
        group.cost.limit, engineering(group.cost.memory_bytes, "B"), engineering(group.cost.offchip_bytes, "B"),
        engineering(group.cost.weight_bytes, "B")) for place, group in enumerate(plan.groups))
    return Table("groups", "Groups, one after the other", (
        "Group", "Layers", "Number", "Micro-batches", "Cycles", "Limit", "Memory", "Off chip", "Weights"), rows,
        (f"Micro-batches: samples of each result that stay on chip; {OUT}: it goes off chip, and ends the group.",))


def _batch_named(group: MicroBatchGroup) -> str:
    first, last = shortened(group.layers[0], 24), shortened(group.layers[-1], 24)
    return first if len(group.layers) == 1 else f"{first} to {last}"


def _batch_bounds(plan: MicroBatchPlan) -> Table:
    found = bounds(plan.problem)
    rows = (("multiplications on all elements", engineering(found.compute_cycles)),
            ("input, results and weights off chip, once", engineering(found.compulsory_cycles)),
            ("the same, and what the memory forces off chip", engineering(found.capacity_cycles)),
            ("operands and results past the memory on chip", engineering(found.onchip_cycles)))
    return Table("bounds", "What no plan is below", ("Of", "Cycles"), rows)


def _batch_footprint(plan: MicroBatchPlan) -> Plot:
    """Return the memory that micro-batches take over time, a bar a group, and the memory that there is."""
    problem, clock = plan.problem, plan.problem.machine.clock_mhz
    ends = list(accumulate(seconds_of(group.cost.latency_cycles, clock) for group in plan.groups))
    starts = [0.0, *ends[:-1]]
    bars: dict[str, Any] = {
        "type": "bar", "name": "micro-batches", "x": [(a + b) / 2 for a, b in zip(starts, ends, strict=True)],
        "width": [b - a for a, b in zip(starts, ends, strict=True)],
        "y": [group.cost.memory_bytes for group in plan.groups],
        "customdata": [_batch_named(one) for one in plan.groups],
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
    points = {label: ([count / max(cost.dram_bytes, 1) for count, cost in zip(macs, costs, strict=True)],
                      [count / cost.latency_cycles for count, cost in zip(macs, costs, strict=True)])
              for label, costs in (("this plan", [group.cost for group in groups]),
                                   ("layer by layer", [group.alone for group in groups]))}
    return _roofs(axis, (peak, per_byte), [_named(group) for group in groups], points,
                  ("Operations per byte off the chip", "Operations per cycle"))


def _roofs(axis: list[float], rates: tuple[float, float], names: list[str],
           points: Mapping[str, tuple[list[float], list[float]]], titles: tuple[str, str]) -> Plot:
    """Return points by label below the roofs of a machine: its operations a cycle, and those that its DRAM feeds."""
    data: list[dict[str, Any]] = [{"type": "scatter", "mode": "lines", "name": "roof", "x": axis,
                                   "y": [min(rates[0], each * rates[1]) for each in axis], "line": {"color": "@muted"}}]
    data += [{"type": "scatter", "mode": "markers", "name": label, "text": names, "x": x, "y": y,
              "marker": {"color": f"@curve-{place}", "size": 9}}
             for place, (label, (x, y)) in enumerate(points.items())]
    across, up = ({"type": "log", "title": {"text": title}} for title in titles)
    return Plot("roofline", "Roofline, before and after", data, {"xaxis": across, "yaxis": up})


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
