"""Studies of one layer's mappings as a person sees them: axes, loop orders, and the map space in two dimensions."""

from typing import Any

import numpy as np

from tilewright.base import Plot, Table, Value
from tilewright.report.contest import contest_tree
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import engineering, finite, percent, significant
from tilewright.report.search_plots import contest_plot, landscape_plots, orders_plot, shown_goal
from tilewright.report.sheet import Sheet
from tilewright.search.studies import (
    AXES,
    ENCODING,
    AxisStudy,
    Landscape,
    OrderStudy,
    label,
    median_interval,
)

_NEAR = (1.05, 2.0, 10.0)


def axes_sheet(found: AxisStudy, asked: str, command: str = "") -> Sheet:
    """Return what each axis is worth; ``asked`` tells how it was made."""
    contest = found.contest
    ordered = sorted(AXES, key=lambda axis: -median_interval(found.shares(axis)).median)
    words = ", ".join(f"{axis} {percent(median_interval(found.shares(axis)).median)}" for axis in ordered)
    return Sheet(f"Axes of mappings on {contest.layer}, {contest.machine}",
                 "One axis is explored, the others stay as in a fixed mapping. Gains are ratios of scores, compared as "
                 "logarithms.", (asked, f"Share of the gain (medians): {words}."), axes_tables(found),
                 (axes_plot(found), contest_plot(contest, "samples", (*AXES, label(AXES)), bands=False)), {}, command)


def axes_tables(found: AxisStudy) -> tuple[Table, Table]:
    """Return what each axis, and each set of axes, gains."""
    rows: list[tuple[Value, ...]] = []
    for axis in AXES:
        alone, fixed, share = (median_interval(values) for values in (
            found.alone(axis), found.fixed(axis), found.shares(axis)))
        gain = median_interval(found.gains([axis]))
        rows.append((axis, f"{significant(10**gain.median)}x", *(
            f"{percent(each.median)} ({percent(each.low)} to {percent(each.high)})" for each in (alone, fixed, share))))
    contest = found.contest
    sets: list[tuple[Value, ...]] = []
    for name in contest.names:
        gain, final = median_interval(found.gains(name.split("+"))), contest.final(name)
        sets.append((name, final.median, *(f"{significant(10**each)}x" for each in (gain.median, gain.low, gain.high))))
    cover = median_interval(found.bases).coverage
    return (
        Table("axes", f"What each axis is worth, {len(found.bases)} seeds",
              ("Axis", "Gain alone", "Alone, of the gain of all", "Lost where it is fixed", "Share"), tuple(rows),
              ("Share: mean of what the axis adds over all orders of freeing the axes; shares add up to 100 % for each "
               "seed (Shapley values).",
               f"Medians over seeds, in brackets order statistics that enclose the true one with {percent(cover)}.")),
        Table("sets", "Sets of axes that were explored",
              ("Axes", f"Median ({contest.unit})", "Gain", "Low", "High"), tuple(sets),
              ("Gain: the score of the fixed mapping over the best found, by seed.",)))


def axes_tree(found: AxisStudy, asked: str) -> dict[str, Any]:
    """Return all of it as plain data."""
    return {"asked": asked, "mapper": found.mapper, "bases": [finite(base) for base in found.bases],
            "axes": [{"axis": axis, "log10_gain_alone": found.gains([axis]), "alone": found.alone(axis),
                      "lost_where_fixed": found.fixed(axis), "share": found.shares(axis)} for axis in AXES],
            "searches": contest_tree(found.contest, asked)}


def axes_plot(found: AxisStudy) -> Plot:
    """Return bars of what each axis is worth."""
    data = []
    for index, (name, values) in enumerate((("alone", found.alone), ("lost where it is fixed", found.fixed),
                                            ("share", found.shares))):
        each = [median_interval(values(axis)) for axis in AXES]
        data.append({"type": "bar", "name": name, "x": list(AXES), "y": [one.median for one in each],
                     "marker": {"color": f"@curve-{index}"}, "error_y": {
                         "type": "data", "symmetric": False, "color": "@strong", "thickness": 1.2, "width": 4,
                         "array": [one.high - one.median for one in each],
                         "arrayminus": [one.median - one.low for one in each]},
                     "hovertemplate": f"%{{x}} {name}: %{{y:.1%}}<extra></extra>"})
    return Plot("axes", "What each axis is worth", data, {
        "barmode": "group", "bargap": 0.35, "legend": LEGEND, "xaxis": {"showgrid": False},
        "yaxis": {"title": {"text": "Of the gain of all axes"}, "tickformat": ".0%", "rangemode": "tozero"}},
        "Shares of the gain (in logarithms) that all axes together have. Lines: order statistics over seeds.")


def orders_sheet(found: OrderStudy, asked: str, command: str = "") -> Sheet:
    """Return how many costs the orders of a mapping have."""
    return Sheet(f"Loop orders on {found.layer}, {found.machine}",
                 f"One mapping with every order of its loops ({', '.join(found.dimensions)}), the same at "
                 f"{', '.join(found.memories)}.", (asked, orders_words(found)), (orders_table(found),),
                 (orders_plot(found),), {}, command)


def orders_words(found: OrderStudy) -> str:
    """Return what the study found in one sentence."""
    own = "no order is better than the mapping as it came" if found.own <= found.groups[0].score else (
        f"the mapping as it came scores {significant(found.own / found.groups[0].score)} times the best")
    if len(found.groups) == 1:
        return f"Every order ({found.orders:,}) has the same score."
    return (f"{found.orders:,} orders have {len(found.groups)} different scores ({found.latencies} latencies, "
            f"{found.energies} energies); the worst is {significant(found.ratio)} times the best; {own}.")


def orders_table(found: OrderStudy) -> Table:
    """Return the groups of orders of equal score."""
    best = found.groups[0].score
    rows = tuple((index + 1, group.score, significant(group.score / best), group.count, int(group.latency_cycles),
                  group.energy_pj, group.pattern, " ".join(group.example))
                 for index, group in enumerate(found.groups))
    return Table("orders", "Orders of equal score", (
        "Group", f"{shown_goal(found.objective)} ({found.unit})", "Over best", "Orders", "Cycles", "Energy (pJ)",
        "Innermost loops, by memory", "For example"), rows,
        ("Innermost loops: of those that run more than once at the memory, the ones that some order of the group has "
         "innermost.",))


def orders_tree(found: OrderStudy, asked: str) -> dict[str, Any]:
    """Return all of it as plain data."""
    return {"asked": asked, "layer": found.layer, "machine": found.machine, "objective": found.objective,
            "unit": found.unit, "dimensions": list(found.dimensions), "memories": list(found.memories),
            "orders": found.orders, "distinct": {"scores": len(found.groups), "latencies": found.latencies,
                                                 "energies": found.energies},
            "worst_over_best": found.ratio, "own": found.own,
            "groups": [{"score": group.score, "latency_cycles": group.latency_cycles, "energy_pj": group.energy_pj,
                        "orders": group.count, "innermost": {memory: list(loops) for memory, loops in group.innermost},
                        "example": list(group.example)} for group in found.groups]}


def landscape_sheet(found: Landscape, asked: str, command: str = "") -> Sheet:
    """Return the picture of a map space and what mappers sampled of it."""
    first, second = found.explained
    facts = (asked, f"The two axes hold {percent(first)} and {percent(second)} of the variance of {found.features} "
                    "features.")
    return Sheet(f"The map space of {found.layer}, {found.machine}", ENCODING, facts,
                 (landscape_table(found), landscape_axes(found)), landscape_plots(found), {}, command)


def landscape_table(found: Landscape) -> Table:
    """Return how good the points are, and where."""
    rows = []
    for name, points in (("random mappings", found.background), *found.trails.items()):
        scores = points.scores
        best = float(scores.min()) if len(points) else None
        rows.append((name, len(points), best, float(np.median(scores)) if len(points) else None,
                     *(percent(points.near(near * found.best)) for near in _NEAR),
                     significant(found.distance(name)) if name in found.trails and len(points) else None))
    return Table("points", f"Legal mappings by {shown_goal(found.objective)}", (
        "Points", "Legal", f"Best ({found.unit})", "Median", *(f"Within {near:g}x of best" for near in _NEAR),
        "Best point's distance"), tuple(rows), (
        f"Best of all points: {engineering(found.best)}"
        + (f"; no mapping of the space scores below {engineering(found.bound)}." if found.bound else "."),
        "Distance: from the middle of the random mappings in the picture, over their root mean square distance."))


def landscape_axes(found: Landscape) -> Table:
    """Return what the axes of the picture are made of."""
    rows = tuple((f"axis {index + 1}", percent(found.explained[index]),
                  ", ".join(f"{weight:+.2f} {name}" for name, weight in found.leading[index])) for index in range(2))
    return Table("components", "The axes of the picture", ("Axis", "Variance", "Largest weights"), rows)


def landscape_points(found: Landscape) -> Table:
    """Return every point, for files."""
    rows = tuple((name, int(sample), float(x), float(y), float(score))
                 for name, points in (("random mappings", found.background), *found.trails.items())
                 for sample, x, y, score in zip(points.samples, points.x, points.y, points.scores, strict=True))
    return Table("all-points", "Every point", ("Points", "Sample", "x", "y", found.objective), rows)


def landscape_tree(found: Landscape, asked: str) -> dict[str, Any]:
    """Return what was found as plain data, the points left out (`landscape_points`)."""
    return {"asked": asked, "layer": found.layer, "machine": found.machine, "objective": found.objective,
            "unit": found.unit, "encoding": ENCODING, "features": found.features, "explained": list(found.explained),
            "leading": [[list(pair) for pair in axis] for axis in found.leading], "best": found.best,
            "bound": found.bound,
            "points": {name: {"legal": len(points), "best": float(points.scores.min()) if len(points) else None,
                              "within": {f"{near:g}": points.near(near * found.best) for near in _NEAR}}
                       for name, points in (("random mappings", found.background), *found.trails.items())}}
