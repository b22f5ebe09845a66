"""ConfuciuX, tables 8.3 to 8.9: what is printed, what each figure is of, and claims measured on theirs and on ours."""

from collections.abc import Mapping
from math import inf, isnan, nan
from statistics import geometric_mean

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, between, follows, judge, less, lower
from tilewright.reproduce.confuciux_allocation import (
    CONX,
    LEVELS,
    ONE_STAGE,
    OWNER,
    STYLES,
    TWO_STAGES,
    Query,
    optimum_cell,
    shown,
)
from tilewright.reproduce.confuciux_contest import (
    Figures,
    Printed,
    Row,
    Way,
    best,
    contest,
    failing,
    lead,
    repeated,
    stated_ranges,
)
from tilewright.reproduce.study import Findings, Setting, reproduction

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
    return contest(TABLE_4, setting, runner).findings(MEASURED_4, averages(TABLE_4.figures), notes=(
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
    return contest(TABLE_6, setting, runner).findings(
        MEASURED_6, stated_ranges(RANGE_6, with_best(TABLE_6.figures), [("single", "MIX", ("4", "69"))]),
        looser(TABLE_3, TABLE_6))


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
    return contest(TABLE_7, setting, runner).findings(
        MEASURED_7, stated_ranges(RANGES_7, TABLE_7.figures, STATED_7))


SOLVERS = {"GA": "ga", "PPO2": "ppo", CONX: ONE_STAGE}
TABLE_3 = Printed.read("confuciux-table8.3", 3, lambda row, column: Way(Query(row[0], row[1], row[2]), SOLVERS[column]))
MEASURED_3, (SAME,) = TABLE_3.measured(
    (best(CONX), tuple(SOLVERS)), (failing(["GA"]), ("GA",)), (lead(CONX, ["PPO2"]), ("PPO2", CONX)))


@reproduction("confuciux-table8.3", Setting("quick", 2, QUICK | {"networks": ("ncf", "gnmt"), "methods": ("GA", CONX)}),
              Setting("full", 10, FULL), cells=OWNER)
def run83(setting: Setting, runner: Runner) -> Findings:
    """Let the methods allocate for every network and style."""
    return contest(TABLE_3, setting, runner).findings(
        MEASURED_3, agreement(TABLE_3, TABLE_4, TABLE_6, TABLE_7), notes=(
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
    return contest(TABLE_5, setting, runner).findings(MEASURED_5, notes=(
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
    found = contest(TABLE_8, setting, runner)
    cells = runner.run([optimum_cell(TABLE_8.way(row, COLUMNS[0]).asked) for row in TABLE_8.rows])
    bounds = {row: float(cell["bound"]) for row, cell in zip(TABLE_8.rows, cells, strict=True)}
    return found.findings(MEASURED_8, possible(TABLE_8, bounds), stated_ranges(RANGES_8, TABLE_8.figures, STATED_8),
                          notes=("Bytes are those of one element of each layer; elements from 1 to 128, all of them. "
                                 "The first stage has a ninth of the epochs and the levels of table 8.1.",))


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
    return contest(TABLE_9, setting, runner).findings(MEASURED_9, notes=(
        f"Which numbers 10 and 14 levels are is not told; here {levels}, and as many filters. Budgets are those of 12 "
        "levels.",))
