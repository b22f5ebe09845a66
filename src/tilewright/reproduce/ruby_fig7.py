"""Ruby, figure 7: the best EDP over the first samples of four map spaces, on toy arrays that do or do not match."""

import math
from dataclasses import dataclass
from typing import Any

from tilewright.mapping import MapSpace
from tilewright.reproduce.ruby_contest import FLOWS, RANDOM, TILINGS, change
from tilewright.reproduce.ruby_machines import toy
from tilewright.reproduce.running import Watch
from tilewright.reproduce.searching import bound_figures, median_curve, median_run, oracle_cell, search_cell
from tilewright.reproduce.study import (
    REPRODUCTIONS,
    Claim,
    Findings,
    Judgement,
    Plot,
    Setting,
    Study,
    Table,
    Value,
    Verdict,
)
from tilewright.workload import Operator, convolution, matmul

STRATEGIES = ("perfect", "ruby-s", "ruby-t", "ruby")
CLOSE = 1.05
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


CLAIMS = (
    Claim("(a) Where 5 elements divide 100, Ruby-S ends where perfect tiling does", "the same",
          "holds where the medians differ by at most 5 %, in direction where Ruby-S is not above perfect tiling"),
    Claim("(a) Ruby and Ruby-T have more to offer, but cannot all be evaluated", "cross late, if at all",
          "holds where at a tenth of the samples both are above perfect tiling"),
    Claim("(b) On 16 elements all of Ruby's spaces beat perfect tiling", "all below",
          "holds where all three medians are below, in direction where Ruby-S is, or where they are in b1"),
    Claim("(b) Ruby and Ruby-T beat Ruby-S there, as temporal reuse weighs more", "both below Ruby-S",
          "holds where both medians are below Ruby-S's, in direction where one is, or where both are in b1"),
    Claim("(c) Where 8 elements divide the channels, perfect tiling is best, Ruby-S close, the others are not",
          "PFM, Ruby-S, then Ruby-T and Ruby",
          "holds where Ruby-S is within 5 % of perfect tiling and the others are more than 5 % above it, in direction "
          "where Ruby-S is nearer to perfect tiling than both"),
    Claim("(d) On 15 elements Ruby-S beats all other spaces", "Ruby-S lowest",
          "holds where its median is the lowest, in direction where it is below perfect tiling"),
)


def run(setting: Setting, watch: Watch) -> Findings:
    """Sample every space of every panel with every seed."""
    shown = [panel for panel in panels() if panel.name in setting["panels"]]
    spaces = {(panel.name, strategy): _space(panel, strategy) for panel in shown for strategy in STRATEGIES}
    keys = {(name, strategy): {"panel": name, "strategy": strategy} for name, strategy in spaces}
    seeds = range(setting.seeds)
    values = iter(watch.run([
        search_cell(watch, keys[where], space, mapper=RANDOM, samples=setting["samples"], seed=seed,
                    options={"batch": _BATCH, "dividing": 0.0})
        for where, space in spaces.items() for seed in seeds]))
    runs = {where: [next(values) for _ in seeds] for where in spaces}
    medians = {where: median_run(found) for where, found in runs.items()}
    checks = {where: oracle_cell(keys[where], space.operator, space.accelerator, middle["mapping"])
              for where, space in spaces.items() if (middle := medians[where]) is not None}
    told = dict(zip(checks, watch.run(list(checks.values())), strict=True))
    at = _places(setting["samples"])
    curves = {where: median_curve([value.get("history", []) for value in found], at) for where, found in runs.items()}
    rows = tuple(_row(panel, strategy, spaces, medians, told) for panel in shown for strategy in STRATEGIES)
    table = Table("best", f"Median of the best EDP after {setting['samples']:,} samples, {setting.seeds} seeds", (
        "Panel", "Space", "EDP bound", "EDP", "over PFM", "Energy (pJ)", "Cycles", "Compute bound (cycles)", "Use (%)",
        "Oracle"), rows, (
        "Sampled by random-pruned: mappings that fit, each once; order of loops free. EDP in pJ x cycles.",))
    return Findings((table,), tuple(_judge(medians, curves, at)), tuple(_plot(panel, curves, at) for panel in shown))


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


def _judge(medians: Any, curves: Any, at: list[int]) -> list[Judgement]:
    """Judge every claim whose panel was sampled."""
    edp = {where: math.inf if found is None else found["edp"] for where, found in medians.items()}
    sampled = {panel for panel, _ in edp}

    def over(panel: str) -> list[float]:
        return [edp[panel, strategy] / edp[panel, "perfect"] for strategy in STRATEGIES[1:]]

    def early(panel: str) -> list[float]:
        place = next(index for index, samples in enumerate(at) if samples >= at[-1] // 10)
        found = [curves[panel, strategy][place] or math.inf for strategy in STRATEGIES]
        return [value / found[0] for value in found[1:]]

    judges = (("a", over, _same), ("a", early, _late), ("b", over, _all_below), ("b", over, _temporal),
              ("c", over, _aligned), ("d", over, _lowest))
    found = []
    for claim, (panel, figures, judge) in zip(CLAIMS, judges, strict=True):
        if panel not in sampled:
            found.append(Judgement(claim, f"panel {panel} was not sampled", "not judged"))
            continue
        values = figures(panel)
        text = ", ".join(f"{name} {change(value)}" for name, value in zip(STRATEGIES[1:], values, strict=True))
        verdict = judge(*values)
        if panel == "b" and verdict == "does not hold" and "b1" in sampled and judge(*over("b1")) == "holds":
            verdict = "holds in direction"
        found.append(Judgement(claim, f"{text} against PFM", verdict, _why(panel, medians, over)))
    return found


def _why(panel: str, medians: Any, over: Any) -> str:
    """Say what stands behind panel b: how much of the array perfect tiling uses, and panel b1."""
    if panel != "b" or medians["b", "perfect"] is None:
        return ""
    told = f"perfect tiling uses {100 * medians['b', 'perfect']['utilisation']:.0f} % of the 16 elements (4 x 4 lanes)"
    if medians.get(("b1", "perfect")) is not None:
        values = ", ".join(f"{name} {change(value)}" for name, value in zip(STRATEGIES[1:], over("b1"), strict=True))
        told += f"; with only one dimension across (b1): {values}"
    return told


def _verdict(holds: bool, direction: bool) -> Verdict:
    return "holds" if holds else "holds in direction" if direction else "does not hold"


def _same(s: float, t: float, both: float) -> Verdict:
    return _verdict(1 / CLOSE <= s <= CLOSE, s <= 1)


def _late(s: float, t: float, both: float) -> Verdict:
    return _verdict(min(t, both) > 1, max(t, both) > 1)


def _all_below(s: float, t: float, both: float) -> Verdict:
    return _verdict(max(s, t, both) < 1, s < 1)


def _temporal(s: float, t: float, both: float) -> Verdict:
    return _verdict(max(t, both) < s, min(t, both) < s)


def _aligned(s: float, t: float, both: float) -> Verdict:
    return _verdict(1 / CLOSE <= s <= CLOSE and min(t, both) > CLOSE, abs(s - 1) < min(abs(t - 1), abs(both - 1)))


def _lowest(s: float, t: float, both: float) -> Verdict:
    return _verdict(s < min(t, both, 1), s < 1)


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
