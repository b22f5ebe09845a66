"""Ruby, figure 7: the best EDP over the first samples of four map spaces, on toy arrays that do or do not match."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, apart, judge, lower
from tilewright.reproduce.ruby_contest import RANDOM, change, space_of, toy
from tilewright.reproduce.searching import Tried, best_so_far, bound_figures, median_curve, play, said, searched
from tilewright.reproduce.study import Findings, Plot, Setting, Table, Value, claims, reproduction
from tilewright.workload import Operator, convolution, matmul

STRATEGIES = ("perfect", "ruby-s", "ruby-t", "ruby")
_BATCH = 50
"""Mappings drawn at a time; a curve has a point for each batch."""


@dataclass(frozen=True)
class _Panel:
    """One of the four plots: an operator on a line of elements."""

    name: str
    text: str
    operator: Operator
    elements: int
    flow: str


def panels() -> tuple[_Panel, ...]:
    """Return the four plots. The paper gives no number of filters; 64 are taken, as many as input channels.

    Panel b1 is ours: with two dimensions to spread, 4 x 4 lanes fill 16 elements, and there is no mismatch to study.
    """
    product = matmul("matmul-100", m=100, n=100, k=100)
    layer = convolution("conv-3x3x64", in_channels=64, out_channels=64, out_size=(28, 28), kernel=3)
    return (_Panel("a", "matmul 100 x 100, 5 elements", product, 5, "free"),
            _Panel("b", "matmul 100 x 100, 16 elements", product, 16, "free"),
            _Panel("b1", "matmul 100 x 100, 16 elements, one dimension across", product, 16, "one"),
            _Panel("c", "conv 3x3x64 on 28x28, 8 elements, C and M", layer, 8, "channels"),
            _Panel("d", "conv 3x3x64 on 28x28, 15 elements, C and M", layer, 15, "channels"))


SAME_A, LATE_A, BELOW_B, TEMPORAL_B, ALIGNED_C, LOWEST_D = claims("ruby-fig7")


Found = dict[tuple[str, str], Tried[tuple[_Panel, str]]]
"""By name of the panel and strategy."""


@reproduction("ruby-fig7", Setting("quick", 3, {"samples": 10_000, "panels": ("a", "b", "b1", "c", "d")}),
              Setting("full", 100, {"samples": 10_000, "panels": ("a", "b", "b1", "c", "d")}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Sample every space of every panel with every seed."""
    shown = [panel for panel in panels() if panel.name in setting["panels"]]
    tried = play(runner, [(panel, strategy) for panel in shown for strategy in STRATEGIES], lambda one: searched(
        {"panel": one[0].name, "strategy": one[1]},
        space_of(one[0].operator, toy(one[0].elements), one[1], one[0].flow), setting.seeds,
        mapper=RANDOM, samples=setting["samples"], options={"batch": _BATCH, "dividing": 0.0}))
    found: Found = {(each.of[0].name, each.of[1]): each for each in tried}
    tenth = setting["samples"] // 10
    at = sorted({round(setting["samples"] ** (part / 60)) for part in range(61)} | {tenth})
    table = Table("best", f"Median of the best EDP after {setting['samples']:,} samples, {setting.seeds} seeds", (
        "Panel", "Space", "EDP bound", "EDP", "over PFM", "Energy (pJ)", "Cycles", "Compute bound (cycles)", "Use (%)",
        "Oracle"), tuple(_row(each, found[each.of[0].name, "perfect"]) for each in tried), (
        "Sampled by random-pruned: mappings that fit, each once; order of loops free. EDP in pJ x cycles.",))
    return Findings((table,), tuple(_judge(found, tenth)), tuple(_plot(panel, found, at) for panel in shown))


def _row(tried: Tried[tuple[_Panel, str]], perfect: Tried[tuple[_Panel, str]]) -> tuple[Value, ...]:
    (panel, strategy), found = tried.of, tried.median
    bound = bound_figures(panel.operator, toy(panel.elements))
    start, compute = (f"{panel.name}: {panel.text}", strategy, bound["edp"]), int(bound["compute_cycles"])
    if found is None or perfect.median is None:
        return (*start, None, None, None, None, compute, None, "nothing found")
    return (*start, found["edp"], found["edp"] / perfect["edp"], found["energy_pj"], int(found["latency_cycles"]),
            compute, 100 * found["utilisation"], said(tried.oracle))


def _judge(found: Found, tenth: int) -> list[Judgement]:
    """Judge every claim whose panel was sampled, seed by seed."""
    def at(panel: str, samples: int = 0) -> list[list[float]]:
        """Return the best EDP of the four spaces by seed, in the end or after some samples."""
        best = [[(best_so_far(run.get("history", []), [samples])[0] if samples else run["edp"]) or math.inf
                 for run in found[panel, strategy].runs] for strategy in STRATEGIES]
        return [list(column) for column in zip(*best, strict=True)]

    def told(panel: str, samples: int = 0) -> str:
        middle = [median(column) for column in zip(*at(panel, samples), strict=True)]
        values = [change(value / middle[0]) if value < math.inf else "none" for value in middle]
        return ", ".join(f"{name} {text}" for name, text in zip(STRATEGIES[1:], values[1:], strict=True)) + " to PFM"

    def why(panel: str) -> str:
        """Say what stands behind panel b: how much of the array perfect tiling uses, and panel b1."""
        if panel != "b" or (perfect := found["b", "perfect"].median) is None:
            return ""
        used = f"perfect tiling uses {100 * perfect['utilisation']:.0f} % of the 16 elements (4 x 4 lanes)"
        if ("b1", "perfect") in found and found["b1", "perfect"].median is not None:
            used += f"; with only one dimension across (b1): {told('b1')}"
        return used

    measures: tuple[tuple[Claim, str, int, Callable[..., float]], ...] = (
        (SAME_A, "a", 0, lambda p, s, t, r: apart(s, p)),
        (LATE_A, "a", tenth, lambda p, s, t, r: lower(((p, t), (p, r)))),
        (BELOW_B, "b", 0, lambda p, s, t, r: lower(((s, p), (t, p), (r, p)))),
        (TEMPORAL_B, "b", 0, lambda p, s, t, r: lower(((t, s), (r, s)))),
        (ALIGNED_C, "c", 0, lambda p, s, t, r: lower(((p, t), (p, r), (s, t), (s, r)))),
        (LOWEST_D, "d", 0, lambda p, s, t, r: lower(((s, p), (s, t), (s, r)))))
    return [judge(claim, [measure(*each) for each in at(panel, samples)], told(panel, samples), why(panel))
            if (panel, "perfect") in found else
            Judgement(claim, f"panel {panel} was not sampled", "not judged")
            for claim, panel, samples, measure in measures]


def _plot(panel: _Panel, found: Found, at: list[int]) -> Plot:
    colours = ("@strong", "@curve-0", "@curve-1", "@curve-2")
    data = [{"type": "scatter", "mode": "lines", "name": strategy, "x": at,
             "y": median_curve([run.get("history", []) for run in found[panel.name, strategy].runs], at),
             "line": {"color": colour, "shape": "hv"}} for strategy, colour in zip(STRATEGIES, colours, strict=True)]
    return Plot(f"panel-{panel.name}", f"({panel.name}) {panel.text}", data, {
        "xaxis": {"type": "log", "title": {"text": "Samples"}},
        "yaxis": {"type": "log", "title": {"text": "Best EDP so far (pJ x cycles)"}}},
        "Median over seeds of the best EDP so far.")
