"""Flexion, figures 3.7 and 3.8 and table 3.2: what flexible tiles are worth, by buffer size, and what they cost."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

from tilewright.codesign import with_buffer, with_flexibility
from tilewright.cost import network_sum
from tilewright.hardware import (
    PUBLISHED_PERCENT,
    PUBLISHED_UM2,
    T_FLEX_READ_UM2,
    Accelerator,
    FlexibilityCosts,
    TileFlexibility,
    flexibility_overhead,
    preset,
)
from tilewright.jobs import Runner
from tilewright.mapping import Flexion, TileRule, flexion, stand_ins
from tilewright.report import nested, venn_plot
from tilewright.reproduce.claims import Judgement, judge, lower, right
from tilewright.reproduce.flexion_isolation import (
    MODEL,
    Isolation,
    SweepPoint,
    Target,
    axis_targets,
    flexible_cell,
    study_table,
    sweep,
    sweep_plot,
    tile_of,
    total,
)
from tilewright.reproduce.searching import Layer
from tilewright.reproduce.study import Findings, Plot, Setting, Table, Value, claims, reproduction
from tilewright.workload import Operator

THIRDS = TileFlexibility(partitions=(("GLB", (("weights", 1.0), ("inputs", 1.0), ("outputs", 1.0))),))
BUFFER_BYTES = 4000

HARD, FIT, WHOLE, PART, SOFT, EVERY, LARGER, SMALLER = claims("flexion-tile")


def machines(capacity_bytes: float = BUFFER_BYTES) -> tuple[Target, ...]:
    """Return the machines of figure 3.7, all with a buffer of this size."""
    return axis_targets(with_buffer(preset("flexion"), capacity_bytes), "T", TileFlexibility(), _=THIRDS)


@reproduction("flexion-tile", Setting("quick", 2, {"samples": 1_000, "every": 1, "buffers": (1000, 4000, 6400, 25600)}),
              Setting("full", 5, {"samples": 10_000, "every": 1, "buffers": (
                  1000, 1600, 2400, 3200, 4000, 6400, 12_800, 25_600, 100_000)}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search the layers shown and the network on every machine, then hard and soft buffers of every size."""
    study = Isolation.of("T", machines(), (1, 16, 29), setting["every"], tile_of).searched(runner, setting)
    swept = sweep(runner, setting, study, {size: machines(size)[1:3] for size in setting["buffers"]})
    table = study_table(study, "Tile flexibility on layers of MnasNet, 4 KB buffer (figure 3.7)")
    whole = _worked_off(runner, study)
    by_area = 100 * (PUBLISHED_UM2["T-Flex"] / PUBLISHED_UM2["InFlex"] - 1)
    tables = (table, _whole_table(study, whole), _formal_table(study), _sweep_table(swept), _area_table())
    plot = sweep_plot(
        "buffers", "Runtime and W-F by buffer size (figure 3.8)", swept, ("hard 1:1:1", "soft"), {0: "hard", 1: "soft"},
        {"xaxis": {"type": "log", "title": {"text": "Buffer (bytes)"}}, "yaxis": {"title": {"text": "Cycles"}}}, 1)
    return Findings(tables, _judge(study, whole, swept), (_venn(study), plot), (
        f"Table 3.2 says that flexible tiles cost 0.004 % of area; by its own areas it is {by_area:+.2f} %, and "
        f"more than FullFlex, which contains it; {T_FLEX_READ_UM2:,} would fit both.",))


def in_full(operator: Operator, machine: Accelerator) -> Operator:
    """Return the operator with every dimension rounded up to whole fixed tiles, on a machine that cannot cut them."""
    flexibility = machine.flexibility
    assert flexibility is not None and flexibility.shape.fixed is not None
    ours, sizes = stand_ins(operator, flexibility), dict(operator.dimensions)
    lanes = dict(zip(flexibility.parallelism.choices[0], flexibility.shape.fixed, strict=True))
    for d, extent in dict(flexibility.tile.per_element)[flexibility.memory]:
        name = ours[d]
        if name is not None:
            tile = extent * lanes.get(d, 1)
            sizes[name] = -(-sizes[name] // tile) * tile
    return replace(operator, name=f"{operator.name} in whole tiles", dimensions=tuple(sizes.items()))


def _worked_off(runner: Runner, study: Isolation) -> dict[str, float]:
    """Return the cycles of every layer on InFlex where tiles are always worked off in full, by the layer's name."""
    base, layers = study.machine("InFlex1000"), (*study.layers, *study.model)
    # Whole tiles take more room than cut ones: the buffer of table 3.1.
    cells = [flexible_cell({"layer": layer.name, "target": "in full"}, in_full(layer.operator, base),
                           with_buffer(base, 100_000), samples=64, seed=0) for layer in layers]
    return {layer.name: float(value["latency_cycles"] or "inf")
            for layer, value in zip(layers, runner.run(cells), strict=True)}


def _whole_runtime(study: Isolation, whole: dict[str, float], target: str, name: str) -> float:
    """Return the runtime of a machine over InFlex in whole tiles."""
    members = study.members(name)
    return total(study.results, target, members) / _whole_cycles(whole, members)


def _whole_cycles(whole: dict[str, float], layers: Sequence[Layer]) -> float:
    found: float = network_sum((layer.count, whole[layer.name]) for layer in layers)
    return found


def _whole_table(study: Isolation, whole: dict[str, float]) -> Table:
    rows = []
    for row in [row for row in study.published if row.target != "InFlex1000"]:
        members = study.members(row.layer)
        cut, ours = (total(study.results, name, members) for name in ("InFlex1000", row.target))
        rows.append((row.layer, row.target, cut, _whole_cycles(whole, members), ours,
                     row.runtime, ours / cut, _whole_runtime(study, whole, row.target, row.layer)))
    return Table("whole", "What a fixed tile costs where it cannot even be cut short", (
        "Layer", "Machine", "InFlex, tiles cut (cycles)", "InFlex, in whole tiles (cycles)", "Machine (cycles)",
        "Runtime paper", "over cut", "over whole"), tuple(rows), (
        "Elsewhere a fixed tile is cut at a layer's edges, so that it costs no idle work. The paper's InFlex keeps R3 "
        "S3 on layers of 1 x 1 filters; worked off in whole tiles, that is nine times the work.",))


def _sweep_table(swept: Sequence[SweepPoint]) -> Table:
    rows = tuple((one.size, *one.cycles, one.cycles[0] / one.cycles[1], *one.workload) for one in swept)
    return Table("buffers", "Flexible tiles by buffer size (figure 3.8)", (
        "Buffer (bytes)", "Cycles hard 1:1:1", "Cycles soft", "Hard / soft", "W-F hard", "W-F soft"), rows, (
        "W-F averaged over the layers, each once.",))


def _formal_table(study: Isolation) -> Table:
    """Return how the Flexions of figure 3.7 come out under each way of counting."""
    rows: list[tuple[Value, ...]] = []
    rules = (("as the figures count", TileRule()), ("six extents in the buffer", TileRule(hardware="tiles")),
             ("inputs with their windows", TileRule(inputs="window")),
             ("all extents, not divisors", TileRule(workload="all")))
    for name, operator in study.written.items():
        for told, rule in rules:
            found = [flexion(operator, target.machine, "T", rule) for target in study.isolated]
            rows.append((name, told, found[1].hardware, *(one.workload for one in found),
                         found[2].workload_space.value, _largest_error(found)))
    for layer in study.layers:
        if layer.operator.name == layer.name:
            found = [flexion(layer.operator, target.machine, "T") for target in study.isolated]
            rows.append((layer.name, "as a depthwise layer", found[1].hardware, *(one.workload for one in found),
                         found[2].workload_space.value, _largest_error(found)))
    return Table("flexions", "Flexions of figure 3.7 by what is counted", (
        "Layer", "Counted", "H-F PartFlex", "W-F InFlex", "W-F PartFlex", "W-F FullFlex", "W", "Error"), tuple(rows), (
        "The paper's figures come out when W holds the tiles of divisors (its text says all extents), a tile of inputs "
        "is C Y X words without its window, 4 KB hold 2,000 words twice, and C and A hold triples of tensor sizes: "
        "thirds then hold (1/3)^3 / (1/3!) = 2/9 of them. Layer 29 has outputs for each channel, which its figures "
        "leave out. Error: largest standard error of a count, relative (0: exact).",))


def _largest_error(found: Sequence[Flexion]) -> float:
    counts = [count for one in found for count in (one.class_space, one.target_space, one.target_on_workload)]
    return max(count.error / max(count.value, 1.0) for count in counts)


def _area_table() -> Table:
    base = PUBLISHED_UM2["InFlex"]
    ours = {"InFlex": 0.0, **{name: _added(name) for name in PUBLISHED_PERCENT}}
    rows = tuple((name, area, 100 * (area - base) / base, PUBLISHED_PERCENT.get(name), ours[name])
                 for name, area in PUBLISHED_UM2.items())
    return Table("areas", "Area of flexibility (table 3.2)", (
        "Machine", "Area paper (um2)", "Added by area (%)", "Added as printed (%)", "Added, our model (um2)"), rows, (
        f"T-Flex read as {T_FLEX_READ_UM2:,}: two digits exchanged. Then it is +0.004 %, and the four axes add "
        f"{sum(_added(name) for name in ('T-Flex', 'O-Flex', 'P-Flex', 'S-Flex')):,.0f} um2 against "
        f"{PUBLISHED_UM2['FullFlex'] - base:,} of FullFlex.",))


def _added(name: str) -> float:
    """Return what our model adds for a machine of table 3.2, at the published node."""
    machine = preset("flexion")
    base = machine.flexibility
    assert base is not None
    base = replace(base, costs=FlexibilityCosts())
    bits = {"T-Flex": "1000", "O-Flex": "0100", "P-Flex": "0010", "S-Flex": "0001"}.get(name, "1111")
    flexibility = base.of_class(bits)
    if name == "PartFlex":
        flexibility = replace(
            flexibility, tile=THIRDS, order=replace(flexibility.order, choices=(
                ("P", "Q", "K", "C", "R", "S"), ("K", "C", "R", "S", "P", "Q"))),
            parallelism=replace(flexibility.parallelism, choices=(("C", "K"), ("P", "Q"))),
            shape=replace(flexibility.shape, blocks=(16, 16)))
    return flexibility_overhead(with_flexibility(machine, flexibility)).total_um2


def _judge(study: Isolation, whole: dict[str, float], swept: Sequence[SweepPoint]) -> tuple[Judgement, ...]:
    hardware = study.flexions("PartFlex1000", "Layer 16")[0]
    ours = study.printed(hardware=False)
    layer, machine = study.written["Layer 16"], study.machine("InFlex1000")
    tiles = flexion(layer, machine, "T", TileRule(workload="all")).workload_space.value
    divisors = flexion(layer, machine, "T").workload_space.value
    by_tiles = flexion(layer, study.machine("PartFlex1000"), "T", TileRule(hardware="tiles")).hardware
    worked = [_whole_runtime(study, whole, name, MODEL) for name in ("PartFlex1000", "FullFlex1000")]
    groups = [shown.name for shown in study.layers] + [MODEL]
    pairs = [[(one.over_base("FullFlex1000", name)[0], one.over_base("FullFlex1111", name)[0]) for name in groups]
             for one in (study, *study.seeds)]
    slower = [name for name, (alone, every) in zip(groups, pairs[0], strict=True) if every > alone]
    return (
        judge(HARD, right([(hardware, 0.22)]), f"{hardware:.3f}",
              f"2/9, the share of triples of tensor sizes; of six-dimensional tiles, exactly {by_tiles:.3f}"),
        judge(FIT, right(ours), f"{right(ours):.0%} of {len(ours)}",
              "with the tiles of divisors and 2,000 words of room"),
        judge(WHOLE, right([(1 / tiles, 0.0002)]), f"{tiles:,.0f}",
              f"1 / W is {1 / tiles:.1g}; the figures count divisors ({divisors:,.0f})"),
        study.judged(PART, "PartFlex1000",
                     f"{worked[0]:.2f} over a fixed tile that cannot be cut short at edges"),
        study.judged(SOFT, "FullFlex1000",
                     f"{worked[1]:.2f} over a fixed tile that cannot be cut short at edges"),
        judge(EVERY, [sum(every <= alone for alone, every in one) / len(one) for one in pairs[1:]],
              f"runtime {pairs[0][-1][1]:.2f}", f"slower on {', '.join(slower)}" if slower else ""),
        *_judge_sweep(swept),
    )


def _judge_sweep(swept: Sequence[SweepPoint]) -> tuple[Judgement, Judgement]:
    early = [one.size <= 6400 for one in swept]
    if sum(early) < 2 or all(early):
        return Judgement(LARGER, "too few sizes", "not judged"), Judgement(SMALLER, "too few sizes", "not judged")

    def steps(cycles: Sequence[float]) -> float:
        gains = [before / after for before, after in pairwise(cycles)]
        first, later = gains[:sum(early) - 1], gains[sum(early) - 1:]
        return lower([*((1.0, each) for each in first), *((each, min(first)) for each in later)])

    seeds = list(zip(*(one.seeds for one in swept), strict=True))
    soft, shares = ([pair[1] for pair in pairs] for pairs in zip(*((one.cycles, one.workload) for one in swept),
                                                                  strict=True))
    middle = next(one.cycles[1] for one in swept if one.size >= 6400)
    first, last = (swept[at].cycles[0] / swept[at].cycles[1] for at in (0, -1))
    return (
        judge(LARGER, [steps([cycles for _, cycles in one]) for one in seeds],
              f"W-F {shares[0]:.2f} to {shares[-1]:.2f}; {1 - soft[-1] / middle:.0%} gained beyond 6.4 KB"),
        judge(SMALLER, [lower((b[0] / b[1], a[0] / a[1]) for a, b in combinations(one, 2)) for one in seeds],
              f"hard over soft {first:.2f} at {swept[0].size:,} B, {last:.2f} at {swept[-1].size:,} B"),
    )


def _venn(study: Isolation) -> Plot:
    panels = []
    for target in study.isolated:
        w, c, a, cw, aw = study.spaces(target).values()
        panels.append((f"{target.name}: of the workload", nested(w, cw, aw), (
            f"W {w:,.0f}", f"C of W {cw:,.0f}", f"A of W {aw:,.0f}")))
        if target.name == "PartFlex1000":
            hardware = (f"{target.name}: of the hardware", nested(c, a), (f"C {c:.3g}", f"A {a:.3g}"))
    return venn_plot("venn", "Spaces of tiles, averaged over the layers of MnasNet (figure 3.7 b)", [*panels, hardware],
                     "Areas to scale within each diagram. C holds some 10^9 sizes and would dwarf W: W and its parts "
                     "are drawn apart from C and A.")
