"""Ruby, figure 7: the best EDP over the first samples of four map spaces, on toy arrays that do or do not match."""

import math
from dataclasses import dataclass
from statistics import median
from typing import Any

from tilewright.jobs import Runner
from tilewright.mapping import MapSpace
from tilewright.reproduce.claims import Judgement, apart, cases, judge, lower, same
from tilewright.reproduce.ruby_contest import FLOWS, RANDOM, TILINGS, change
from tilewright.reproduce.ruby_machines import toy
from tilewright.reproduce.searching import (
    best_so_far,
    bound_figures,
    median_curve,
    median_run,
    oracle_cell,
    search_cell,
)
from tilewright.reproduce.study import REPRODUCTIONS, Findings, Plot, Setting, Study, Table, Value
from tilewright.workload import Operator, convolution, matmul

STRATEGIES = ("perfect", "ruby-s", "ruby-t", "ruby")
_BATCH = 50
"""Mappings drawn at a time; a curve has a point for each batch."""


@dataclass(frozen=True)
class Panel:
    """One of the four plots: an operator on a line of elements."""

    name: str
    text: str
    operator: Operator
    elements: int
    flow: str


def panels() -> tuple[Panel, ...]:
    """Return the four plots. The paper gives no number of filters; 64 are taken, as many as input channels.

    Panel b1 is ours: with two dimensions to spread, 4 x 4 lanes fill 16 elements, and there is no mismatch to study.
    """
    product = matmul("matmul-100", m=100, n=100, k=100)
    layer = convolution("conv-3x3x64", in_channels=64, out_channels=64, out_size=(28, 28), kernel=3)
    return (Panel("a", "matmul 100 x 100, 5 elements", product, 5, "free"),
            Panel("b", "matmul 100 x 100, 16 elements", product, 16, "free"),
            Panel("b1", "matmul 100 x 100, 16 elements, one dimension across", product, 16, "one"),
            Panel("c", "conv 3x3x64 on 28x28, 8 elements, C and M", layer, 8, "channels"),
            Panel("d", "conv 3x3x64 on 28x28, 15 elements, C and M", layer, 15, "channels"))


SAME_A = same("(a) Where 5 elements divide 100, Ruby-S ends where perfect tiling does", "the same", 0.86,
              "the ratio of the best EDPs")
LATE_A = cases("(a) Ruby and Ruby-T have more to offer, but cannot all be evaluated", "cross late, if at all",
               "the share of the two that are above perfect tiling at a tenth of the samples")
BELOW_B = cases("(b) On 16 elements all of Ruby's spaces beat perfect tiling", "all below", "the share of the three")
TEMPORAL_B = cases("(b) Ruby and Ruby-T beat Ruby-S there, as temporal reuse weighs more", "both below Ruby-S",
                   "the share of the two")
ALIGNED_C = cases("(c) Where 8 elements divide the channels, perfect tiling is best, Ruby-S close, the others are not",
                  "PFM, Ruby-S, then Ruby-T and Ruby", "the share of neighbours in that order (of four pairs)")
LOWEST_D = cases("(d) On 15 elements Ruby-S beats all other spaces", "Ruby-S lowest", "the share of the three others")
CLAIMS = (SAME_A, LATE_A, BELOW_B, TEMPORAL_B, ALIGNED_C, LOWEST_D)


def run(setting: Setting, runner: Runner) -> Findings:
    """Sample every space of every panel with every seed."""
    shown = [panel for panel in panels() if panel.name in setting["panels"]]
    spaces = {(panel.name, strategy): _space(panel, strategy) for panel in shown for strategy in STRATEGIES}
    keys = {(name, strategy): {"panel": name, "strategy": strategy} for name, strategy in spaces}
    seeds = range(setting.seeds)
    values = iter(runner.run([
        search_cell(keys[where], space, mapper=RANDOM, samples=setting["samples"], seed=seed,
                    options={"batch": _BATCH, "dividing": 0.0})
        for where, space in spaces.items() for seed in seeds]))
    runs = {where: [next(values) for _ in seeds] for where in spaces}
    medians = {where: median_run(found) for where, found in runs.items()}
    checks = {where: oracle_cell(keys[where], space.operator, space.accelerator, middle["mapping"])
              for where, space in spaces.items() if (middle := medians[where]) is not None}
    told = dict(zip(checks, runner.run(list(checks.values())), strict=True))
    at = _places(setting["samples"])
    curves = {where: median_curve([value.get("history", []) for value in found], at) for where, found in runs.items()}
    rows = tuple(_row(panel, strategy, spaces, medians, told) for panel in shown for strategy in STRATEGIES)
    table = Table("best", f"Median of the best EDP after {setting['samples']:,} samples, {setting.seeds} seeds", (
        "Panel", "Space", "EDP bound", "EDP", "over PFM", "Energy (pJ)", "Cycles", "Compute bound (cycles)", "Use (%)",
        "Oracle"), rows, (
        "Sampled by random-pruned: mappings that fit, each once; order of loops free. EDP in pJ x cycles.",))
    return Findings((table,), tuple(_judge(medians, runs, setting["samples"] // 10)),
                    tuple(_plot(panel, curves, at) for panel in shown))


def _space(panel: Panel, strategy: str) -> MapSpace:
    machine = toy(panel.elements)
    return MapSpace(panel.operator, machine, TILINGS[strategy],  # type: ignore[arg-type]
                    FLOWS[panel.flow](panel.operator, machine))


def _places(samples: int) -> list[int]:
    """Return numbers of samples, evenly spread on a logarithmic scale."""
    return sorted({round(samples ** (part / 60)) for part in range(61)} | {samples // 10})


def _row(panel: Panel, strategy: str, spaces: Any, medians: Any, told: Any) -> tuple[Value, ...]:
    where = (panel.name, strategy)
    found, perfect = medians[where], medians[panel.name, "perfect"]
    bound = bound_figures(spaces[where].operator, spaces[where].accelerator)
    start = (f"{panel.name}: {panel.text}", strategy, bound["edp"])
    if found is None or perfect is None:
        return (*start, None, None, None, None, int(bound["compute_cycles"]), None, "nothing found")
    check = told[where]
    word = "disagrees" if not check["agrees"] else "agrees" if check["scale"] == 1 else "agrees (twin)"
    return (*start, found["edp"], found["edp"] / perfect["edp"], found["energy_pj"], int(found["latency_cycles"]),
            int(bound["compute_cycles"]), 100 * found["utilisation"], word)


def _judge(medians: Any, runs: Any, tenth: int) -> list[Judgement]:
    """Judge every claim whose panel was sampled, seed by seed."""
    def at(panel: str, samples: int = 0) -> list[list[float]]:
        """Return the best EDP of the four spaces by seed, in the end or after some samples."""
        found = [[(best_so_far(run.get("history", []), [samples])[0] if samples else run["edp"]) or math.inf
                  for run in runs[panel, strategy]] for strategy in STRATEGIES]
        return [list(column) for column in zip(*found, strict=True)]

    def told(panel: str, samples: int = 0) -> str:
        middle = [median(column) for column in zip(*at(panel, samples), strict=True)]
        values = [change(value / middle[0]) if value < math.inf else "none" for value in middle]
        return ", ".join(f"{name} {text}" for name, text in zip(STRATEGIES[1:], values[1:], strict=True)) + " to PFM"

    measures: Any = (
        (SAME_A, "a", 0, lambda p, s, t, r: apart(s, p)),
        (LATE_A, "a", tenth, lambda p, s, t, r: lower(((p, t), (p, r)))),
        (BELOW_B, "b", 0, lambda p, s, t, r: lower(((s, p), (t, p), (r, p)))),
        (TEMPORAL_B, "b", 0, lambda p, s, t, r: lower(((t, s), (r, s)))),
        (ALIGNED_C, "c", 0, lambda p, s, t, r: lower(((p, t), (p, r), (s, t), (s, r)))),
        (LOWEST_D, "d", 0, lambda p, s, t, r: lower(((s, p), (s, t), (s, r)))))
    found = []
    for claim, panel, samples, measure in measures:
        if (panel, "perfect") not in runs:
            found.append(Judgement(claim, f"panel {panel} was not sampled", "not judged"))
            continue
        found.append(judge(claim, [measure(*each) for each in at(panel, samples)], told(panel, samples),
                           _why(panel, medians, told)))
    return found


def _why(panel: str, medians: Any, told: Any) -> str:
    """Say what stands behind panel b: how much of the array perfect tiling uses, and panel b1."""
    if panel != "b" or medians["b", "perfect"] is None:
        return ""
    used = f"perfect tiling uses {100 * medians['b', 'perfect']['utilisation']:.0f} % of the 16 elements (4 x 4 lanes)"
    if medians.get(("b1", "perfect")) is not None:
        used += f"; with only one dimension across (b1): {told('b1')}"
    return used


def _plot(panel: Panel, curves: Any, at: list[int]) -> Plot:
    colours = ("@strong", "@curve-0", "@curve-1", "@curve-2")
    data = [{"type": "scatter", "mode": "lines", "name": strategy, "x": at, "y": curves[panel.name, strategy],
             "line": {"color": colour, "shape": "hv"}} for strategy, colour in zip(STRATEGIES, colours, strict=True)]
    return Plot(f"panel-{panel.name}", f"({panel.name}) {panel.text}", data, {
        "xaxis": {"type": "log", "title": {"text": "Samples"}},
        "yaxis": {"type": "log", "title": {"text": "Best EDP so far (pJ x cycles)"}}},
        "Median over seeds of the best EDP so far.")


REPRODUCTIONS.register("ruby-fig7")(Study(
    "ruby-fig7", "Best EDP over the first 10,000 samples of four spaces on toy arrays",
    "Horeni et al., Ruby, ISPASS 2022, figure 7", CLAIMS,
    Setting("quick", 3, {"samples": 10_000, "panels": ("a", "b", "b1", "c", "d")}),
    Setting("full", 100, {"samples": 10_000, "panels": ("a", "b", "b1", "c", "d")}), run))
