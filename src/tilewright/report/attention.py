"""Fused attention as a person sees it: plans, what they save, how far from the best they can be, and their loops."""

from collections.abc import Mapping
from typing import Any

from tilewright.base import Plot, Table, Value
from tilewright.fusion.flat import AttentionFusion, AttentionPlan
from tilewright.report.quantities import engineering, measured, percent
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
    tables = (_plans(found), _words(found), _loops(found))
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


def _loops(found: AttentionFusion) -> Table:
    rows = tuple((plan.attention.name, line.replace("  ", _INDENT)) for plan in found.plans
                 for line in plan.loops.splitlines())
    return Table("loops", "Loops", ("Attention", "Loops"), rows)


def _plots(found: AttentionFusion) -> list[Plot]:
    names = [plan.attention.name for plan in found.plans]
    kinds = (("this plan", found.plans, "@curve-0"), ("not fused", found.unfused, "@curve-1"))
    words: list[dict[str, Any]] = [
        {"type": "bar", "name": name, "x": [f"{one}, {label}" for label, _, _ in kinds for one in names],
         "y": [plan.cost.words.get(name, 0) for _, plans, _ in kinds for plan in plans],
         "marker": {"color": f"@curve-{place}"}} for place, name in enumerate(("Q", "K", "V", "O", "logits"))]
    machine = found.machine
    axis = sorted([*(2.0**power for power in range(-2, 14)), machine.elements / machine.dram_rate])
    roof: list[dict[str, Any]] = [{
        "type": "scatter", "mode": "lines", "name": "roof", "x": axis, "line": {"color": "@muted"},
        "y": [min(machine.elements, each * machine.dram_rate) for each in axis]}]
    roof += [{
        "type": "scatter", "mode": "markers", "name": label, "text": names, "marker": {"color": colour, "size": 9},
        "x": [plan.attention.macs / plan.cost.dram_words for plan in plans],
        "y": [plan.attention.macs / plan.cost.latency_cycles for plan in plans]} for label, plans, colour in kinds]
    return [
        Plot("words", "Words of DRAM", words, {"barmode": "stack", "yaxis": {"title": {"text": "words"}}}),
        Plot("roofline", "Roofline, before and after", roof, {
            "xaxis": {"type": "log", "title": {"text": "Multiply-accumulates per word of DRAM"}},
            "yaxis": {"type": "log", "title": {"text": "Multiply-accumulates per cycle"}}}),
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
