"""ConfuciuX, tables 8.3 to 8.9: what is printed, what each figure is of, and claims measured on theirs and on ours.

What they have in common: searches in rows and columns, a figure of each, and claims measured on them. The same measure
says what a claim is by the printed figures and what it is by ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from statistics import geometric_mean, median
from typing import Any, NamedTuple

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, between, follows, judge, less, lower
from tilewright.reproduce.confuciux_allocation import (
    CONX,
    LEVELS,
    ONE_STAGE,
    OWNER,
    STYLES,
    TWO_STAGES,
    Query,
    confirmed_note,
    method_cell,
    optimum_cell,
    shown,
)
from tilewright.reproduce.study import Findings, Setting, Table, claims, published, published_cells, reproduction

Row = tuple[str, ...]
Figures = Mapping[Row, Mapping[str, float]]
"""Of each row, by column; NaN where nothing was found."""
Measure = Callable[[Figures], float]
TIED = 1.05
"""Figures that are no further apart are tied, as they are at the digits printed."""
TRAFFIC = {True: "free traffic", False: "through the DRAM"}
OUT_OF_REACH = "Where the optimum is none, even the smallest choices are over the budget."


class Way(NamedTuple):
    """What a figure is of: the search, and which part of its cell; ``uniform`` is the best pair for all layers."""

    asked: Query
    method: str
    part: str = "last"

    def with_traffic(self, free: bool) -> "Way":
        """Return the same with free traffic, or through the DRAM."""
        return self._replace(asked=self.asked._replace(free=free))

    @property
    def unit(self) -> float:
        """What cycles or picojoules are multiplied by: tables have nanojoules."""
        return 1e-3 if self.asked.objective == "energy" else 1.0


@dataclass(frozen=True)
class Measures:
    """A claim of figures, and how they say what it is: as a share of rows or cells, or as a ratio."""

    claim: Claim
    measure: Measure
    needs: tuple[str, ...]

    def judged(self, seeds: Sequence[Figures]) -> Judgement:
        """Judge it by the figures of every seed."""
        have = next(iter(seeds[0].values()))
        if not set(self.needs) <= set(have):
            return judge(self.claim, [], "", f"without {', '.join(name for name in self.needs if name not in have)}")
        values = [self.measure(one) for one in seeds]
        known = [value for value in values if not isnan(value)]
        middle = median(known) if known else nan
        told = f"{middle:.3g} times" if self.claim.kind == "gain" else f"{100 * middle:.0f} %"
        return judge(self.claim, values, f"{told}, {len(seeds[0])} rows" if known else "none found")


@dataclass(frozen=True)
class Printed:
    """A published table: its study, what its rows are labelled by, its columns, its rows, what each figure is of."""

    study: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Mapping[Row, Sequence[float]]
    way: Callable[[Row, str], Way]

    @classmethod
    def read(cls, name: str, labels: int, way: Callable[[Row, str], Way]) -> "Printed":
        """Return the table of a study, whose first columns are the labels."""
        head = tuple(published_cells(name)[0])
        return cls(name, head[:labels], head[labels:], published(name, labels), way)

    @property
    def figures(self) -> Figures:
        """The figures by row and column."""
        return {row: dict(zip(self.columns, values, strict=True)) for row, values in self.rows.items()}

    def measured(self, *told: tuple[Measure, tuple[str, ...]]) -> tuple[tuple[Measures, ...], tuple[Claim, ...]]:
        """Return what measures the first claims of the study, each with the columns that it needs, and other claims."""
        known = claims(self.study, *(measure(self.figures) for measure, _ in told))
        return tuple(Measures(claim, *each) for claim, each in zip(known, told, strict=False)), known[len(told):]


def lead(of: str, over: Sequence[str], within: str = "") -> Measure:
    """Measure the geometric mean of other columns over one, in all rows (or those named) where both have a figure."""
    def measure(figures: Figures) -> float:
        found = [values[name] / values[of] for row, values in figures.items() for name in over
                 if name in values and within in (*row, "")]
        known = [each for each in found if not isnan(each)]
        return geometric_mean(known) if known else nan

    return measure


def best(of: str) -> Measure:
    """Measure the share of rows where a column has the least figure, or ties."""
    def measure(figures: Figures) -> float:
        told = [values[of] <= TIED * min(inf if isnan(each) else each for each in values.values())
                for values in figures.values()]
        return sum(told) / len(told)

    return measure


def failing(columns: Sequence[str]) -> Measure:
    """Measure the share of cells of some columns, under tight budgets, where nothing was found."""
    def measure(figures: Figures) -> float:
        told = [isnan(values[name]) for row, values in figures.items() for name in columns
                if name in values and any("iot" in part for part in row)]
        return sum(told) / len(told) if told else nan

    return measure


def contest(printed: Printed, setting: Setting, runner: Runner, measured: Sequence[Measures], *judged: Judgement,
            notes: tuple[str, ...] = ()) -> Findings:
    """Search what a table is of, in the rows of the setting's ``networks`` and ``budgets``, by its ``methods``.

    What is ``measured`` is judged with free traffic, if that was asked for; ``judged`` was judged otherwise.
    """
    rows = []
    for row in printed.rows:
        asked = printed.way(row, printed.columns[-1]).asked
        if (asked.network in setting.values.get("networks", (asked.network,))
                and asked.within in setting.values.get("budgets", (asked.within,))):
            rows.append(row)
    columns = [name for name in printed.columns if name in setting.values.get("methods", printed.columns)]
    seeds, optima = dict[bool, Any](), dict[Query, Any]()
    ways = {(row, name): printed.way(row, name) for row in rows for name in columns}
    for free in setting.free:
        own = {key: way.with_traffic(free) for key, way in ways.items()}
        every = list(dict.fromkeys(way.asked for way in own.values()))
        optima |= dict(zip(every, runner.run([optimum_cell(asked) for asked in every]), strict=True))
        searches = list(dict.fromkeys((way.asked, way.method) for way in own.values() if way.method != "uniform"
                                      and optima[way.asked]["optimum"] is not None))
        values = iter(runner.run([method_cell(*search, setting["epochs"], seed) for search in searches
                                  for seed in range(setting.seeds)]))
        found = {search: [next(values) for _ in range(setting.seeds)] for search in searches}
        seeds[free] = [{row: {name: figure(own[row, name], found, optima, seed) for name in columns} for row in rows}
                       for seed in range(setting.seeds)]
    every_style = sorted({(way.asked.network, way.asked.style) for way in ways.values()})
    confirmed = tuple(confirmed_note(runner, *one, setting.free) for one in every_style)
    first = next(iter(seeds.values()))
    return Findings((_table(printed, ways, seeds, optima, confirmed),),
                    (*(one.judged(first) for one in measured), *judged), notes=notes)


def figure(way: Way, found: Mapping[tuple[Query, str], Sequence[Mapping[str, Any]]],
           optima: Mapping[Query, Mapping[str, Any]], seed: int) -> float:
    """Return a figure (cycles, nanojoules or minutes) of one seed; NaN where nothing was found, or can be."""
    if optima[way.asked]["optimum"] is None:
        return nan
    if way.method == "uniform":
        value = optima[way.asked]["uniform"]
        return nan if value is None else float(value) * way.unit
    run = found[way.asked, way.method][seed]
    if way.part == "minutes":
        return float(run["minutes"])
    if run["taken"] > 1 + 1e-9:
        return nan
    if way.part == "valid":
        return nan if run["history"] is None else float(run["history"][0][1]) * way.unit
    return float(run[way.part]) * way.unit


def _table(printed: Printed, ways: Mapping[tuple[Row, str], Way], seeds: Mapping[bool, Sequence[Figures]],
           optima: Mapping[Query, Mapping[str, Any]], notes: tuple[str, ...]) -> Table:
    """Return what is printed of each row, medians over seeds with each traffic, and the optimum of each search."""
    rows, columns = [*dict.fromkeys(row for row, _ in ways)], [*dict.fromkeys(name for _, name in ways)]
    users = [*{ways[rows[0], name].asked: name for name in columns if ways[rows[0], name].part != "minutes"}.values()]
    lines = list[tuple[str, ...]]()
    for row in rows:
        theirs = [shown(printed.figures[row][name]) for name in columns]
        lines.append((*row, "the paper", *theirs, *[""] * (len(users) + 1)))
        for free, found in seeds.items():
            ours = {name: _median([one[row][name] for one in found]) for name in columns}
            least = {name: float(optima[own.asked]["optimum"] or nan) * own.unit
                     for name in users for own in [ways[row, name].with_traffic(free)]}
            above = ours[users[-1]] / least[users[-1]] - 1
            lines.append((*row, f"ours, {TRAFFIC[free]}", *map(shown, (*ours.values(), *least.values())),
                          "" if isnan(above) else f"{100 * above:.0f} %"))
    tight = any(one["optimum"] is None for one in optima.values())
    return Table("allocations", "As published, and medians over seeds", (
        *printed.labels, "Figures", *columns, *(f"Optimum {name}" if len(users) > 1 else "Optimum" for name in users),
        f"{users[-1]} above the optimum"), tuple(lines), (*notes, *(OUT_OF_REACH,) * tight))


def _median(values: Sequence[float]) -> float:
    """Return the median, NaN where half or more found nothing."""
    found = sorted(value for value in values if not isnan(value))
    return nan if 2 * len(found) <= len(values) else found[(len(values) - 1) // 2]


def stated_ranges(claim: Claim, figures: Figures, ranges: Sequence[tuple[str, str, tuple[str, str]]]) -> Judgement:
    """Judge ranges of a text: by what percentages, from the least to the most of all rows, one column is below another.

    Each range is of two columns and has both ends as the text has them.
    """
    stated = []
    for one, other, ends in ranges:
        found = [less(between([values[one]], 2), between([values[other]], 2)) for values in figures.values()]
        stated += [(f"{other} below {one}, {name}", end, pick(found, key=sum)) for name, end, pick in (
            ("least", ends[0], min), ("most", ends[1], max))]
    return follows(claim, stated)


def repeated(*tables: Printed) -> list[tuple[Query, float, float]]:
    """Return what several tables print of one search: the first figure of it and each later one."""
    known: dict[Way, float] = {}
    found = []
    for printed in tables:
        for row, values in printed.rows.items():
            for name, value in zip(printed.columns, values, strict=True):
                way = printed.way(row, name)
                if way.method == TWO_STAGES and way.part == "first":
                    way = Way(way.asked, ONE_STAGE)  # the first stage alone
                if isnan(value) or way.part == "minutes":
                    continue
                if way in known:
                    found.append((way.asked, known[way], value))
                known.setdefault(way, value)
    return found


QUICK, FULL = {"epochs": 600, "traffic": ("free",)}, {"epochs": 5_000, "traffic": ("free", "dram")}
STAGES = {"epochs": 45_000, "traffic": ("free", "dram")}
"""A ninth is for the first stage, as published: 5,000 before 2,000 generations of 20."""

METHODS = {"Grid": "grid", "Random": "random", "SA": "annealing", "GA": "ga", "Bayes. Opt.": "bayesian",
           CONX: ONE_STAGE}
BASELINES = tuple(METHODS)[:-1]
BUDGETS = ("unlimited", "area=cloud", "area=iot", "area=iotx", "power=cloud", "power=iot", "power=iotx")
TABLE_4 = Printed.read(
    "confuciux-table8.4", 2, lambda row, column: Way(
        Query("mobilenet-v2", within=row[1], objective=row[0]), METHODS[column]))


def feasible(figures: Figures) -> float:
    """Measure the share of rows where the agent found something."""
    return sum(not isnan(values[CONX]) for values in figures.values()) / len(figures)


DRAWN = ("Random", "SA", "GA")
MEASURED_4, (AVERAGES,) = TABLE_4.measured(
    (feasible, (CONX,)), (failing(DRAWN), DRAWN), (lead(CONX, BASELINES, "latency"), (CONX,)),
    (lead(CONX, BASELINES, "energy"), (CONX,)))


@reproduction("confuciux-table8.4", Setting("quick", 2, QUICK | {"budgets": ("area=iot", "power=iotx")}),
              Setting("full", 10, FULL | {"budgets": BUDGETS}))
def run84(setting: Setting, runner: Runner) -> Findings:
    """Let every method allocate under every budget."""
    return contest(TABLE_4, setting, runner, MEASURED_4, averages(TABLE_4.figures), notes=(
        "Baselines are blind to how far they are over a budget. Energies are ours and not comparable to those "
        "published.",))


def averages(figures: Figures) -> Judgement:
    """Judge the averages of the text: by how much the agent is lower than each cell with a figure, in the mean."""
    stated = []
    for objective, text in (("latency", "86"), ("energy", "70")):
        found = [less(between([values[name]], 2), between([values[CONX]], 2)) for row, values in figures.items()
                 if row[0] == objective for name in BASELINES if not isnan(values[name])]
        low, high = (sum(each) / len(found) for each in zip(*found, strict=True))
        stated.append((objective, text, (low, high)))
    return follows(AVERAGES, stated)


SINGLE = ("dla", "shi", "eye")
TABLE_6 = Printed.read("confuciux-table8.6", 2, lambda row, column: Way(Query(row[0], column, row[1]), ONE_STAGE))


def with_best(figures: Figures) -> Figures:
    """Return the figures of a choice of styles, and of the best single style."""
    found = {}
    for row, values in figures.items():
        known = [values[name] for name in SINGLE if not isnan(values[name])]
        found[row] = {"MIX": values["MIX"], "single": min(known, default=nan)}
    return found


def over_best(figures: Figures) -> float:
    """Measure the best single style over a choice."""
    return lead("MIX", ["single"])(with_best(figures))


MEASURED_6, (RANGE_6, LOOSER) = TABLE_6.measured((best("MIX"), tuple(STYLES)), (over_best, tuple(STYLES)))


@reproduction("confuciux-table8.6", Setting("quick", 2, QUICK | {"networks": ("mobilenet-v2", "ncf")}),
              Setting("full", 10, FULL), cells=OWNER)
def run86(setting: Setting, runner: Runner) -> Findings:
    """Let the agent allocate in each style, and with a choice."""
    stated = stated_ranges(RANGE_6, with_best(TABLE_6.figures), [("single", "MIX", ("4", "69"))])
    return contest(TABLE_6, setting, runner, MEASURED_6, stated, looser(TABLE_3, TABLE_6))


def looser(*tables: Printed) -> Judgement:
    """Judge whether printed figures of the same search fall as its budget grows."""
    order = {"area=cloud": 0, "area=iot": 1, "area=iotx": 2}
    known = {way.asked: value for printed in tables for row, values in printed.rows.items()
             for name, value in zip(printed.columns, values, strict=True)
             if (way := printed.way(row, name)).method == ONE_STAGE}
    pairs = [(one, other) for one in known for other in known if one._replace(within="") == other._replace(within="")
             and order[one.within] < order[other.within]]
    worse = [(one, other) for one, other in pairs if known[one] > known[other]]
    return judge(LOOSER, 1 - len(worse) / len(pairs), f"{len(pairs) - len(worse)} of {len(pairs)}", "; ".join(
        f"{one.network} ({one.style}): {shown(known[other])} at {other.within}, {shown(known[one])} at {one.within}"
        for one, other in worse))


PARTS = {"first valid": "valid", "global": "first", "fine-tuned": "last"}
TABLE_7 = Printed.read(
    "confuciux-table8.7", 2, lambda row, column: Way(Query(row[0], within=row[1]), TWO_STAGES, PARTS[column]))
MEASURED_7, (RANGES_7,) = TABLE_7.measured(
    (lead("global", ["first valid"]), tuple(PARTS)), (lead("fine-tuned", ["global"]), tuple(PARTS)))
STATED_7 = [("first valid", "global", ("56", "99")), ("global", "fine-tuned", ("7", "93")),
            ("first valid", "fine-tuned", ("66", "99"))]


@reproduction("confuciux-table8.7",
              Setting("quick", 2, STAGES | {"epochs": 4_500, "networks": ("mobilenet-v2", "ncf"),
                                            "traffic": ("free",)}),
              Setting("full", 10, STAGES), cells=OWNER)
def run87(setting: Setting, runner: Runner) -> Findings:
    """Let both stages allocate."""
    return contest(TABLE_7, setting, runner, MEASURED_7, stated_ranges(RANGES_7, TABLE_7.figures, STATED_7))


SOLVERS = {"GA": "ga", "PPO2": "ppo", CONX: ONE_STAGE}
TABLE_3 = Printed.read("confuciux-table8.3", 3, lambda row, column: Way(Query(row[0], row[1], row[2]), SOLVERS[column]))
MEASURED_3, (SAME,) = TABLE_3.measured(
    (best(CONX), tuple(SOLVERS)), (failing(["GA"]), ("GA",)), (lead(CONX, ["PPO2"]), ("PPO2", CONX)))


@reproduction("confuciux-table8.3", Setting("quick", 2, QUICK | {"networks": ("ncf", "gnmt"), "methods": ("GA", CONX)}),
              Setting("full", 10, FULL), cells=OWNER)
def run83(setting: Setting, runner: Runner) -> Findings:
    """Let the methods allocate for every network and style."""
    return contest(TABLE_3, setting, runner, MEASURED_3, agreement(TABLE_3, TABLE_4, TABLE_6, TABLE_7), notes=(
            "T5 small stands for the transformer, whose sizes it has. Sequences and batches are the zoo's, as those of "
            "the paper are not told: cycles of GNMT, transformer and NCF cannot be compared with the printed ones.",))


def agreement(*tables: Printed) -> Judgement:
    """Judge whether tables agree on what they have in common."""
    pairs = repeated(*tables)
    other = [(asked, one, again) for asked, one, again in pairs if one != again]
    return judge(SAME, 1 - len(other) / len(pairs), f"{len(pairs) - len(other)} of {len(pairs)}", "; ".join(
        f"{asked.network} ({asked.style}, {asked.within}): {shown(one)} and {shown(again)}"
        for asked, one, again in other))


AGENTS = {"A2C": "a2c", "ACKTR": "trpo", "PPO2": "ppo", "DDPG": "ddpg", "SAC": "sac", "TD3": "td3", CONX: ONE_STAGE}
OTHERS = tuple(AGENTS)[:-1]
MINUTES = tuple(f"{name} min" for name in AGENTS)
TABLE_5 = Printed.read(
    "confuciux-table8.5", 3, lambda row, column: Way(
        Query(row[0], within=row[2], objective=row[1]), AGENTS[column.removesuffix(" min")],
        "minutes" if column in MINUTES else "last"))
"""Cycles or nJ, and minutes of search."""


def least(figures: Figures) -> float:
    """Measure the share of agents and rows that the agent of ConfuciuX is no worse than."""
    told = [values[CONX] <= values[name] or isnan(values[name]) for values in figures.values() for name in OTHERS
            if name in values]
    return sum(told) / len(told) if told else nan


def faster(figures: Figures) -> float:
    """Measure the time of the others over that of the agent, the geometric mean."""
    found = [values[f"{name} min"] / values[MINUTES[-1]] for values in figures.values() for name in OTHERS
             if f"{name} min" in values]
    return geometric_mean(found) if found else nan


MEASURED_5, _ = TABLE_5.measured((least, (CONX,)), (lead(CONX, OTHERS), (CONX,)), (faster, (CONX, MINUTES[-1])))


@reproduction("confuciux-table8.5",
              Setting("quick", 2, QUICK | {
                  "epochs": 120, "networks": ("mobilenet-v2",), "budgets": ("area=iot",),
                  "methods": tuple(f"{name}{unit}" for name in ("A2C", "ACKTR", "PPO2", CONX)
                                   for unit in ("", " min"))}),
              Setting("full", 5, FULL | {"methods": TABLE_5.columns}), cells=OWNER)
def run85(setting: Setting, runner: Runner) -> Findings:
    """Let the agents act."""
    return contest(TABLE_5, setting, runner, MEASURED_5, notes=(
        "Others are those of Stable-Baselines3 with their defaults; TRPO stands for ACKTR, which it lacks.",))


COLUMNS = ("baseline-dla", "dla global", "dla fine-tuned", "MIX global", "MIX fine-tuned")
TABLE_8 = Printed.read(
    "confuciux-table8.8", 2, lambda row, column: Way(
        Query(row[1], "MIX" if "MIX" in column else "dla", row[0], levels=128),
        "uniform" if "baseline" in column else TWO_STAGES, "first" if "global" in column else "last"))


def first_better(figures: Figures) -> float:
    """Measure the share of rows where the first stage beats one pair for all layers."""
    return sum(values["dla global"] < values["baseline-dla"] for values in figures.values()) / len(figures)


MEASURED_8, (POSSIBLE, RANGES_8) = TABLE_8.measured(
    (first_better, COLUMNS[:2]), (lead("dla fine-tuned", ["dla global"]), COLUMNS[1:3]),
    (lead("MIX fine-tuned", ["baseline-dla"]), (COLUMNS[0], COLUMNS[4])))
STATED_8 = [("dla global", "dla fine-tuned", ("7", "36")), ("baseline-dla", "MIX fine-tuned", ("50", "72"))]


@reproduction("confuciux-table8.8",
              Setting("quick", 2, STAGES | {"epochs": 4_500, "networks": ("mobilenet-v2",), "traffic": ("free",)}),
              Setting("full", 10, STAGES), cells=OWNER)
def run88(setting: Setting, runner: Runner) -> Findings:
    """Let the method allocate in one style and with a choice."""
    cells = runner.run([optimum_cell(TABLE_8.way(row, COLUMNS[0]).asked) for row in TABLE_8.rows])
    bounds = {row: float(cell["bound"]) for row, cell in zip(TABLE_8.rows, cells, strict=True)}
    stated = stated_ranges(RANGES_8, TABLE_8.figures, STATED_8)
    return contest(TABLE_8, setting, runner, MEASURED_8, possible(TABLE_8, bounds), stated, notes=(
        "Bytes are those of one element of each layer; elements from 1 to 128, all of them. The first stage has a "
        "ninth of the epochs and the levels of table 8.1.",))


def possible(printed: Printed, bounds: Mapping[Row, float]) -> Judgement:
    """Judge whether all that is printed can be."""
    below = [(row, value) for row, bound in bounds.items() for value in printed.rows[row] if value < bound]
    whole = sum(len(printed.rows[row]) for row in bounds)
    told = ", ".join(f"{network} within {within}: {bound:.2E}" for (within, network), bound in bounds.items())
    return judge(POSSIBLE, 1 - len(below) / whole, f"bounds {told}", "; ".join(
        f"{value:.1E} is published for {row[1]} within {row[0]}" for row, value in below), impossible=bool(below))


NETS = {"MLP": "reinforce-mlp", "RNN": ONE_STAGE}
COUNTS = {f"{count} levels": count for count in (10, 12, 14)}
TABLE_9 = Printed.read(
    "confuciux-table8.9", 2, lambda row, column: Way(
        Query("mobilenet-v2", within=row[1], levels=COUNTS[column]), NETS[row[0]]))


def recurrent(figures: Figures) -> float:
    """Measure the share of cells where the recurrent policy has the lower figure; equal ones count half."""
    return lower((_known(values[name]), _known(figures["MLP", within][name]))
                 for (net, within), values in figures.items() if net == "RNN" for name in values)


def twelve(figures: Figures) -> float:
    """Measure the share of rows where 12 levels are best, or tied."""
    told = [values["12 levels"] <= min(map(_known, values.values())) for values in figures.values()]
    return sum(told) / len(told)


def _known(value: float) -> float:
    return inf if isnan(value) else value


MEASURED_9, _ = TABLE_9.measured((recurrent, tuple(COUNTS)), (twelve, tuple(COUNTS)))


@reproduction("confuciux-table8.9", Setting("quick", 2, QUICK | {"budgets": ("area=iot",)}), Setting("full", 10, FULL),
              cells=OWNER)
def run89(setting: Setting, runner: Runner) -> Findings:
    """Let both policies choose among so many levels."""
    levels = ", ".join(" ".join(map(str, LEVELS[count])) for count in (10, 14))
    return contest(TABLE_9, setting, runner, MEASURED_9, notes=(
        f"Which numbers 10 and 14 levels are is not told; here {levels}, and as many filters. Budgets are those of 12 "
        "levels.",))
