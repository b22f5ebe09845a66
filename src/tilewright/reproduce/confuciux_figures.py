"""ConfuciuX, figures 8.4 to 8.9: layers of MobileNet-V2 alone, what a critic learns of them, how searches converge."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from math import inf, nan
from statistics import mean, median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.allocation import PE_LEVELS, AllocationProblem, AllocationTable, allocate, observations
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
from tilewright.reproduce.confuciux_tables import FULL, METHODS, QUICK, STAGES, TRAFFIC
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, Value, claims, reproduction

Floats = NDArray[np.float64]
NETWORK = "mobilenet-v2"
LAYERS = {"layer 12": 11, "layer 23 (depthwise)": 22, "layer 34": 33}
OBJECTIVES = ("latency", "energy")
NEAR = 1.01
"""Figures that are no further apart are alike."""
PAIRS, FLAT, DEPTHWISE, AGENT, HEURISTICS = claims("confuciux-fig8.4")


def contour_cell(free: bool) -> Cell:
    """Return the cell of all pairs: each layer's figures, rows of elements, and what they are summed over layers."""
    def compute() -> dict[str, Any]:
        known = table(NETWORK, "dla", 12, free)
        figures = {"latency": known.latency_cycles[:, 0], "energy": known.energy_pj[:, 0]}
        heavy = int(known.stages.macs.argmax())
        return {objective: {"all": rows.sum(axis=0).tolist(), "heaviest": rows[heavy].tolist(),
                            **{name: rows[at].tolist() for name, at in LAYERS.items()}}
                for objective, rows in figures.items()}

    return Cell({"contours": NETWORK, "free": free}, compute)


def contours(runner: Runner, free: bool) -> Mapping[tuple[str, str], Floats]:
    """Return the figures of all pairs ``(p, k)``, by objective and layer."""
    (value,) = runner.run([contour_cell(free)])
    return {(objective, name): np.array(rows) for objective in OBJECTIVES for name, rows in value[objective].items()}


def layer_cell(name: str, objective: str, free: bool, epochs: int, seed: int) -> Cell:
    """Return the cell of the agent on one layer."""
    def compute() -> dict[str, Any]:
        whole, at = table(NETWORK, "dla", 12, free), slice(LAYERS[name], LAYERS[name] + 1)
        stages = whole.stages
        alone = type(stages)(stages.operators[at], stages.names[at], stages.runs[at], stages.machine)
        one = AllocationTable(alone, whole.latency_cycles[at], whole.energy_pj[at], whole.area_um2[at],
                              whole.power_mw[at])
        found = allocate(AllocationProblem(one, objective=objective),  # type: ignore[arg-type]
                         ONE_STAGE, epochs=epochs, seed=seed)
        return {"last": found.value}

    return Cell({"layer": name, "objective": objective, "free": free, "epochs": epochs, "seed": seed}, compute, epochs)


def smallest(figures: Floats) -> tuple[int, int]:
    """Return the levels of the pair with the fewest bytes in all of those that are as good as the best."""
    size = np.array(PE_LEVELS)[:, None] * (10 * np.arange(1, figures.shape[1] + 1) + 9)
    p, k = np.unravel_index(np.where(figures <= NEAR * figures.min(), size, np.inf).argmin(), figures.shape)
    return int(p), int(k)


@reproduction("confuciux-fig8.4", Setting("quick", 2, {"epochs": 600, "traffic": ("free", "dram")}),
              Setting("full", 10, {"epochs": 5_000, "traffic": ("free", "dram")}), cells=OWNER)
def run84(setting: Setting, runner: Runner) -> Findings:
    """Look at all pairs, and let the agent choose."""
    tables, plots, judged = [], [], list[Judgement]()
    for free in setting.free:
        known = contours(runner, free)
        each = [(objective, name) for objective in OBJECTIVES for name in LAYERS]
        values = iter(runner.run([layer_cell(name, objective, free, setting["epochs"], seed)
                                  for objective, name in each for seed in range(setting.seeds)]))
        found = {one: [next(values)["last"] for _ in range(setting.seeds)] for one in each}
        rules = {one: [float(known[one][smallest(known[one[0], rule])]) for rule in ("heaviest", "all")]
                 for one in each}
        rows: list[tuple[Value, ...]] = [(name, objective, *(level + 1 for level in smallest(known[objective, name])),
                 *(shown(value) for value in (float(known[objective, name].min()), float(np.median(
                     found[objective, name])), *rules[objective, name]))) for objective, name in each]
        tables.append(Table("layers" if free else "layers-dram", f"The best pair of each layer, {TRAFFIC[free]}", (
            "Layer", "Objective", "Level of elements", "Level of buffers", "Best", "Agent (median)", "Heuristic A",
            "Heuristic B"), tuple(rows)))
        plots += [Plot(f"{objective}-{name.split()[1]}{'' if free else '-dram'}", f"{objective} of {name}, "
                       f"{TRAFFIC[free]}", [{"type": "contour", "z": known[objective, name].tolist()}],
                       {"xaxis": {"title": {"text": "buffer level"}}, "yaxis": {"title": {"text": "element level"}}})
                  for objective, name in each]
        judged = judged or _judged(known, found, rules)
    return Findings(tuple(tables), tuple(judged), tuple(plots), (
        confirmed_note(runner, NETWORK, "dla", setting.free),))


def _judged(known: Mapping[tuple[str, str], Floats], found: Mapping[tuple[str, str], list[float]],
            rules: Mapping[tuple[str, str], list[float]]) -> list[Judgement]:
    best = {one: smallest(known[one]) for one in found}
    differ = [best[objective, one] != best[objective, other] for objective in OBJECTIVES
              for one, other in combinations(LAYERS, 2)]
    first, second, _ = (known["latency", name] for name in LAYERS)
    flat = np.abs(first[8:, 2:] / first[-1, -1] - 1) < NEAR - 1
    helps = second.min(axis=1) * NEAR >= second[:, 0]
    seeds = range(len(next(iter(found.values()))))
    agent = [float(np.mean([found[one][seed] <= NEAR * known[one].min() for one in found])) for seed in seeds]
    rule = [float(np.mean([found[one][seed] <= NEAR * value for one in found for value in rules[one]]))
            for seed in seeds]
    return [*(judge(claim, float(np.mean(told)), f"{np.sum(told)} of {np.size(told)}") for claim, told in (
        (PAIRS, differ), (FLAT, flat), (DEPTHWISE, helps))),
        *(judge(claim, values, f"{np.mean(values):.0%}") for claim, values in ((AGENT, agent), (HEURISTICS, rule)))]


CRITIC, IRREGULAR = claims("confuciux-fig8.5")


def critic_cell(points: int, told: bool, free: bool, seed: int) -> Cell:
    """Return the cell of a critic learnt from states of equation 8.1, and where ``told`` the present choices.

    ``rmse`` is that of 20,000 other states, ``spread`` the standard deviation there; ``floor`` is the least RMSE of any
    function of the states, which lack the present choices: the latter's own spread at each layer.
    """
    def compute() -> dict[str, Any]:
        from tilewright.learn import TrainingOptions, train  # noqa: PLC0415 - loads PyTorch

        of = AllocationProblem(table(NETWORK, "dla", 12, free))
        rng, known = np.random.default_rng(seed), observations(of)
        latency = of.table.latency_cycles.reshape(len(known), 12, 12)

        def drawn(count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            layer, levels = rng.integers(len(known), size=count), rng.integers(12, size=(count, 4))
            seen = np.concatenate([known[layer], levels[:, :4 if told else 2] / 5.5 - 1], axis=1)
            rewards = latency[layer, levels[:, 2], levels[:, 3]][:, None]
            return seen.astype(np.float32), rewards.astype(np.float32)

        seen, reward = drawn(points)
        network = train(seen, reward, TrainingOptions(batch=256, seed=seed)).regressor
        seen, reward = drawn(20_000)
        error = np.sqrt(np.mean((network.predict(seen) - reward) ** 2))
        return {"rmse": float(error), "spread": float(reward.std()),
                "floor": float(np.sqrt(latency.reshape(len(known), -1).var(axis=1).mean()))}

    return Cell({"critic": points, "told": told, "seed": seed} | ({} if free else {"free": False}), compute)


@reproduction("confuciux-fig8.5", Setting("quick", 2, {"points": (2_600, 26_000), "traffic": ("free",)}),
              Setting("full", 5, {"points": (2_600, 26_000, 260_000), "traffic": ("free", "dram")}), cells=OWNER)
def run85(setting: Setting, runner: Runner) -> Findings:
    """Let critics learn from ever more points."""
    points, seeds = setting["points"], range(setting.seeds)
    asked = [(free, told, count) for free in setting.free for told in (False, True) for count in points]
    values = iter(runner.run([critic_cell(count, told, free, seed) for free, told, count in asked for seed in seeds]))
    found = {one: [next(values) for _ in seeds] for one in asked}
    tables = tuple(Table(
        "critics" if free else "critics-dram", f"Cycles of layers of MobileNet-V2 told by critics: medians over seeds, "
        f"{TRAFFIC[free]}", ("Points", "Told the present choices", "RMSE", "Spread"), tuple(
            (count, "yes" if told else "no", *(float(np.median([run[name] for run in found[free, told, count]]))
                                               for name in ("rmse", "spread")))
            for told in (False, True) for count in points)) for free in setting.free)
    first, judged = setting.free[0], list[Judgement]()
    for claim, told in ((CRITIC, False), (IRREGULAR, True)):
        runs = [found[first, told, count] for count in points]
        left = [min(each[seed]["rmse"] / each[seed]["spread"] for each in runs) for seed in seeds]
        best = min(run["rmse"] for each in runs for run in each)
        judged.append(judge(claim, left, f"{np.median(left):.2f}, at best {best:.1E} cycles"))
    floors = ", ".join(f"{found[free, False, points[0]][0]['floor']:.1E} cycles or more, {TRAFFIC[free]}"
                       for free in setting.free)
    return Findings(tables, tuple(judged), notes=(
        f"The states of equation 8.1 have the choices of the step before but not the present ones: whatever a "
        f"critic learns from them, its RMSE is {floors}.", confirmed_note(runner, NETWORK, "dla", setting.free)))


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
                    tuple(plot for _, plots in told for plot in plots),
                    (confirmed_note(runner, IOT.network, "dla", setting.free),))


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


*_NARROW, WIDE = claims("confuciux-fig8.7")
NARROW = dict(zip(("elements", "filters"), _NARROW, strict=True))
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
        for what, claim in NARROW.items():
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
