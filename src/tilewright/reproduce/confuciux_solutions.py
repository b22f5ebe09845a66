"""ConfuciuX, figures 8.6 to 8.9: how searches converge, and what layers get in the end."""

from collections.abc import Callable, Mapping, Sequence
from math import inf, nan
from statistics import mean, median
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, judge, lower
from tilewright.reproduce.confuciux_allocation import (
    CONX,
    ONE_STAGE,
    OWNER,
    STYLES,
    TWO_STAGES,
    Query,
    confirmed_note,
    method_cell,
    optimum_cell,
    shown,
    table,
)
from tilewright.reproduce.confuciux_contest import TRAFFIC
from tilewright.reproduce.confuciux_tables import FULL, METHODS, QUICK, STAGES
from tilewright.reproduce.study import Findings, Plot, Setting, Table, Value, claims, reproduction

Run = Mapping[str, Any]
Search = tuple[Query, str]
IOT = Query("mobilenet-v2")


def runs(searches: Sequence[Search], free: bool, setting: Setting, runner: Runner) -> dict[Search, list[Run]]:
    """Return the runs of searches by seed; also the proven optimum where the method is ``optimum``."""
    every = [(asked._replace(free=free), method) for asked, method in searches]
    cells = [optimum_cell(asked) if method == "optimum" else method_cell(asked, method, setting["epochs"], seed)
             for asked, method in every for seed in range(1 if method == "optimum" else setting.seeds)]
    values = iter(runner.run(cells))
    return {one: [next(values) for _ in range(1 if one[1] == "optimum" else setting.seeds)] for one in searches}


def last(run: Run) -> float:
    """Return what a run ends with; infinite where nothing was found."""
    return float(run["history"][-1][1]) if run["history"] else inf


def reached(run: Run, value: float) -> float:
    """Return after how many epochs a run was as good as a value; infinite if never."""
    return next((at for at, score in run["history"] or () if score <= value), inf)


def traces(found: Mapping[str, Sequence[Run]], name: str, title: str) -> Plot:
    """Return the best so far of each method's run of median end, by epochs."""
    middle = {label: sorted(some, key=last)[(len(some) - 1) // 2] for label, some in found.items()}
    curves = {label: run["history"] or () for label, run in middle.items()}
    return Plot(name, title, [{"type": "scatter", "name": label, "line": {"shape": "hv"},
                               "x": [at for at, _ in curve], "y": [value for _, value in curve]}
                              for label, curve in curves.items()],
                {"xaxis": {"type": "log", "title": {"text": "epochs"}}, "yaxis": {"type": "log"}})


def by_traffic(searches: Sequence[Search], setting: Setting, runner: Runner,
               rows: Callable[[dict[Search, list[Run]], bool], tuple[Table, list[Plot]]],
               judged: Callable[[dict[Search, list[Run]]], list[Judgement]]) -> Findings:
    """Search with free traffic and through the DRAM; show both, and judge the first."""
    found = {free: runs(searches, free, setting, runner) for free in setting.free}
    told = [rows(each, free) for free, each in found.items()]
    return Findings(tuple(one for one, _ in told), tuple(judged(next(iter(found.values())))),
                    tuple(plot for _, plots in told for plot in plots), (confirmed_note(runner, IOT.network, "dla"),))


BUDGETS = ("area=cloud", "area=iot")
FASTEST, = claims("confuciux-fig8.6")


@reproduction("confuciux-fig8.6", Setting("quick", 2, QUICK | {"budgets": BUDGETS}),
              Setting("full", 10, FULL | {"budgets": BUDGETS}), cells=OWNER)
def run86(setting: Setting, runner: Runner) -> Findings:
    """Follow agent and baselines of table 8.4; which methods and budgets are drawn is not told."""
    others, budgets = [name for name in METHODS if name != CONX], setting["budgets"]

    def rows(found: dict[Search, list[Run]], free: bool) -> tuple[Table, list[Plot]]:
        by = {within: {name: found[IOT._replace(within=within), method] for name, method in METHODS.items()}
              for within in budgets}
        lines = list[tuple[Value, ...]]()
        for within, each in by.items():
            for name, some in each.items():
                ends = [last(run) for run in some]
                own = median(reached(run, end) for run, end in zip(some, ends, strict=True))
                agent = median(reached(run, end) for run, end in zip(each[CONX], ends, strict=True))
                lines.append((within, name, shown(_known(median(ends))), _epochs(own), _epochs(agent)))
        return Table("ends" if free else "ends-dram", f"Ends and when they were found: medians, {TRAFFIC[free]}", (
            "Budget", "Method", "Cycles", "Epochs", f"Epochs of {CONX} to as much"), tuple(lines)), [
                traces(each, f"{within.split('=')[1]}{'' if free else '-dram'}", f"{within}, {TRAFFIC[free]}")
                for within, each in by.items()]

    def judged(found: dict[Search, list[Run]]) -> list[Judgement]:
        values = []
        for seed in range(setting.seeds):
            pairs = []
            for within in budgets:
                agent = found[IOT._replace(within=within), METHODS[CONX]][seed]
                for name in others:
                    other = found[IOT._replace(within=within), METHODS[name]][seed]
                    pairs.append((reached(agent, last(other)), reached(other, last(other))))
            values.append(lower(pairs))
        return [judge(FASTEST, values, f"{mean(values):.0%} of {len(budgets) * len(others)}")]

    return by_traffic([(IOT._replace(within=within), method) for within in budgets for method in METHODS.values()],
                      setting, runner, rows, judged)


def _known(value: float) -> float:
    return value if value < inf else nan


def _epochs(value: float) -> float | None:
    return value if value < inf else None


ALONE, GLOBAL, LOCAL = claims("confuciux-fig8.8")


@reproduction("confuciux-fig8.8", Setting("quick", 2, STAGES | {"epochs": 4_500}), Setting("full", 10, STAGES),
              cells=OWNER)
def run88(setting: Setting, runner: Runner) -> Findings:
    """Follow both stages, and a genetic algorithm alone."""
    both, alone = (IOT, TWO_STAGES), (IOT, "ga")

    def rows(found: dict[Search, list[Run]], free: bool) -> tuple[Table, list[Plot]]:
        lines = [(str(seed), *map(shown, (*_stages(run), _known(last(other)))))
                 for seed, (run, other) in enumerate(zip(found[both], found[alone], strict=True))]
        return Table("stages" if free else "stages-dram", f"Cycles of both stages by seed, {TRAFFIC[free]}", (
            "Seed", "First valid", "First stage", "Second stage", "GA alone"), tuple(lines)), [traces(
                {"both stages": found[both], "GA": found[alone]}, "trace" if free else "trace-dram", TRAFFIC[free])]

    def judged(found: dict[Search, list[Run]]) -> list[Judgement]:
        stages = [_stages(run) for run in found[both]]
        failed = [float(last(run) == inf) for run in found[alone]]
        ratios = {GLOBAL: [one / other for one, other, _ in stages], LOCAL: [one / other for _, one, other in stages]}
        return [judge(ALONE, failed, f"{mean(failed):.0%}"), *(
            judge(claim, values, f"{median(values):.2f} times") for claim, values in ratios.items())]

    return by_traffic([both, alone], setting, runner, rows, judged)


def _stages(run: Run) -> tuple[float, float, float]:
    if not run["history"]:
        return nan, nan, nan
    return float(run["history"][0][1]), float(run["first"]), float(run["last"])


*_DEPTHWISE, WIDE = claims("confuciux-fig8.7")
DEPTHWISE = dict(zip(("elements", "filters"), _DEPTHWISE, strict=True))
WIDE_LAYERS = (36, 42, 46)
PLACES = {"elements": 1, "filters": 2}


@reproduction("confuciux-fig8.7", Setting("quick", 2, QUICK), Setting("full", 10, FULL),
              cells=OWNER)
def run87(setting: Setting, runner: Runner) -> Findings:
    """Look at the agent's allocations, and at the best ones."""
    asked = (IOT, IOT._replace(network="resnet50"))

    def rows(found: dict[Search, list[Run]], free: bool) -> tuple[Table, list[Plot]]:
        lines = []
        for one in asked:
            names = table(one.network, one.style, 12, True).stages.names
            ours, best = found[one, ONE_STAGE][0]["layers"], found[one, "optimum"][0]["layers"]
            lines += [(one.network, name, *mine[1:], *other[1:])
                      for name, mine, other in zip(names, ours, best, strict=True)]
        return Table("layers" if free else "layers-dram", f"Elements and filters by layer, {TRAFFIC[free]}", (
            "Network", "Layer", *(f"{who} {what}" for who in ("Agent", "Optimum") for what in PLACES)), tuple(lines)), [
                Plot(f"{one.network}{'' if free else '-dram'}", f"Elements of {one.network}, {TRAFFIC[free]}", [
                    {"type": "bar", "name": who, "y": [layer[1] for layer in found[one, method][0]["layers"]]}
                    for who, method in (("agent, first seed", ONE_STAGE), ("optimum", "optimum"))], {})
                for one in asked]

    def judged(found: dict[Search, list[Run]]) -> list[Judgement]:
        kinds = [operator.kind == "depthwise" for operator in table(IOT.network, "dla", 12, True).stages.operators]
        told = []
        for what, claim in DEPTHWISE.items():
            at = PLACES[what]
            ours, best = ([lower((run["layers"][layer][at], run["layers"][layer - 1][at])
                                 for layer in range(1, len(kinds)) if kinds[layer]) for run in found[IOT, method]]
                          for method in (ONE_STAGE, "optimum"))
            told.append(judge(claim, ours, f"{median(ours):.0%}; the optimum {best[0]:.0%}"))
        ours, best = ([wide_share(run) for run in found[asked[1], method]] for method in (ONE_STAGE, "optimum"))
        return [*told, judge(WIDE, ours, f"{median(ours):.0%}; the optimum {best[0]:.0%}")]

    return by_traffic([(one, method) for one in asked for method in (ONE_STAGE, "optimum")], setting, runner, rows,
                      judged)


def wide_share(run: Run) -> float:
    """Return the share of the wide layers whose buffers have more filters than the mean."""
    filters = [layer[2] for layer in run["layers"]]
    return sum(bool(filters[at] > mean(filters)) for at in WIDE_LAYERS) / len(WIDE_LAYERS)


EARLY, = claims("confuciux-fig8.9")


@reproduction("confuciux-fig8.9", Setting("quick", 2, QUICK), Setting("full", 10, FULL), cells=OWNER)
def run89(setting: Setting, runner: Runner) -> Findings:
    """Look at the styles that the agent chooses, and at the best ones, with no limit and at IoT."""
    asked = [IOT._replace(style="MIX", within=within) for within in ("unlimited", "area=iot")]

    def rows(found: dict[Search, list[Run]], free: bool) -> tuple[Table, list[Plot]]:
        names = table(IOT.network, "dla", 12, True).stages.names
        columns = [styles_of(found[one, method][0]) for one in asked for method in (ONE_STAGE, "optimum")]
        return Table("styles" if free else "styles-dram", f"Style by layer, {TRAFFIC[free]}", (
            "Layer", *(f"{who}, {one.within}" for one in asked for who in ("Agent", "Optimum"))),
            tuple(zip(names, *columns, strict=True))), []

    def judged(found: dict[Search, list[Run]]) -> list[Judgement]:
        ours, best = ([early_share(styles_of(run)) for run in found[asked[0], method]]
                      for method in (ONE_STAGE, "optimum"))
        return [judge(EARLY, ours, f"{median(ours):.0%}; the optimum {best[0]:.0%}")]

    return by_traffic([(one, method) for one in asked for method in (ONE_STAGE, "optimum")], setting, runner, rows,
                      judged)


def styles_of(run: Run) -> list[str]:
    """Return the style of each layer."""
    return [STYLES["MIX"][int(layer[0])] for layer in run["layers"]]


def early_share(styles: Sequence[str]) -> float:
    """Return the share of the first quarter of layers not in NVDLA's style, and of the last that are."""
    quarter = len(styles) // 4
    return mean([*(style != "nvdla" for style in styles[:quarter]), *(style == "nvdla" for style in styles[-quarter:])])
