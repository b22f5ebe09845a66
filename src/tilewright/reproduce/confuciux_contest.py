"""What ConfuciuX's tables have in common: searches in rows and columns, a figure of each, and claims measured on them.

The same measure says what a claim is by the printed figures and what it is by ours.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from statistics import geometric_mean, median
from typing import Any, NamedTuple

from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, between, follows, judge, less
from tilewright.reproduce.confuciux_allocation import (
    ONE_STAGE,
    TWO_STAGES,
    Query,
    confirmed_note,
    method_cell,
    optimum_cell,
    shown,
)
from tilewright.reproduce.study import Findings, Setting, Table, claims, published, published_cells

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


@dataclass(frozen=True)
class ContestOutcome:
    """What came of a table's searches: figures by seed of each traffic, and the table of all."""

    seeds: Mapping[bool, Sequence[Figures]]
    table: Table

    def findings(self, measured: Sequence[Measures], *judged: Judgement, notes: tuple[str, ...] = ()) -> Findings:
        """Judge what is measured (with free traffic, if that was asked for), and add what was judged otherwise."""
        figures = next(iter(self.seeds.values()))
        return Findings((self.table,), (*(one.judged(figures) for one in measured), *judged), notes=notes)


def contest(printed: Printed, setting: Setting, runner: Runner) -> ContestOutcome:
    """Search what a table is of, in the rows of the setting's ``networks`` and ``budgets``, by its ``methods``."""
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
    notes = tuple(confirmed_note(runner, *one) for one in every_style)
    return ContestOutcome(seeds, _table(printed, ways, seeds, optima, notes))


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
