"""Studies of searches as a person sees them: mappers side by side, axes of mappings, loop orders, the map space."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from tilewright.base import Plot, Table, Value
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import engineering, finite, percent, significant
from tilewright.report.search_plots import CLOCKS, contest_plot, landscape_plots, orders_plot, shown_goal
from tilewright.report.sheet import Sheet
from tilewright.search.studies import (
    AXES,
    CONFIDENCE,
    ENCODING,
    AxisStudy,
    Contest,
    Interval,
    Landscape,
    OrderStudy,
    label,
    median_interval,
)

SURE = 0.05
"""Largest chance of a difference by luck alone at which one mapper is called better."""

_NEAR = (0.05, 0.01)


def contest_sheet(found: Contest, asked: str, command: str = "") -> Sheet:
    """Return what is to be shown of a comparison; ``asked`` tells how it was made."""
    plots = tuple(plot for plot in (contest_plot(found, clock) for clock in CLOCKS)
                  if any(trace["x"] for trace in plot.data))
    return Sheet(f"Mappers on {found.layer}, {found.machine}",
                 "Best score so far: medians over seeds, with intervals of order statistics.",
                 (asked, *contest_words(found)), (_mappers(found), *duel_tables(found)), plots, {}, command)


def contest_words(found: Contest) -> tuple[str, ...]:
    """Return in words which mapper is better at equal samples, and at equal time."""
    if len(found.contenders) < 2 or math.isinf(found.best):
        return () if math.isfinite(found.best) else ("No search found a mapping that meets all requirements.",)
    heads = {"samples": f"At {found.equal_samples:,} samples", "seconds": f"At {significant(found.equal_seconds)} s"}
    return tuple(f"{head}: {_leader(found, clock)}" for clock, head in heads.items())


def _leader(found: Contest, clock: str) -> str:
    """Say which mapper leads, which it beats, and from which it cannot be told apart."""
    at = found.equal_samples if clock == "samples" else found.equal_seconds
    leader = min(found.names, key=lambda name: found.standing(name, at, clock).median)
    beaten: list[str] = []
    even: list[str] = []
    for first, second, duel in found.duels(clock):
        if leader in (first, second):
            (beaten if duel.p <= SURE else even).append(second if leader == first else first)
    words = f"{leader} has the lowest median"
    if beaten:
        words += f"; it is better than {', '.join(beaten)} (p at most {SURE:g}, corrected for all pairs)"
    if even:
        words += f"; not told apart from {', '.join(even)}"
    return f"{words}."


def _mappers(found: Contest) -> Table:
    rows = []
    for name in found.names:
        attempts, final, gap = found.of(name), found.final(name), found.gap(name)
        legal = sum(each.legal_samples for each in attempts) / max(1, sum(each.samples for each in attempts))
        rows.append((name, *(finite(value) for value in (final.median, final.low, final.high)),
                     None if gap is None else percent(gap), *(_reached(found, name, near) for near in _NEAR),
                     finite(found.time(name).median), percent(legal)))
    columns = ("Mapper", f"Median ({found.unit})", "Low", "High", "Gap to bound",
               *(f"Samples to {near:.0%} of best" for near in _NEAR), "Seconds", "Legal")
    cover = found.final(found.names[0]).coverage
    notes = [f"Low to high: order statistics that enclose the true median with a chance of {percent(cover)}"
             + ("" if cover >= CONFIDENCE else f" (below {CONFIDENCE:.0%}: six seeds are needed for that)") + ".",
             f"Best: the lowest score of any search, {engineering(found.best)}. Samples to it: median over seeds, and "
             "how many seeds got there."]
    if found.bound is not None:
        notes.append(f"No mapping of the space scores below {engineering(found.bound)}.")
    return Table("mappers", f"After {len(found.seeds)} searches of each, by {found.objective}", columns, tuple(rows),
                 tuple(notes))


def _reached(found: Contest, name: str, near: float) -> Value:
    """Return the median of the samples to a goal, and the seeds that reached it."""
    goal = found.best * (1 + near)
    reached = sum(attempt.score <= goal for attempt in found.of(name)) if math.isfinite(found.best) else 0
    interval = found.reach(name, near)
    text = f"{interval.median:,.0f}" if math.isfinite(interval.median) else "-"
    return f"{text} ({reached} of {len(found.seeds)})"


def duel_tables(found: Contest) -> tuple[Table, ...]:
    """Return every pair of mappers at equal samples and at equal time; no table where there is but one mapper."""
    heads = {"samples": f"{found.equal_samples:,} samples", "seconds": f"{significant(found.equal_seconds)} s"}
    return () if len(found.contenders) < 2 else tuple(Table(
        f"pairs-{clock}", f"Every pair at {head}",
        ("First", "Second", "Medians, first/second", "First wins", "p", "Better"),
        tuple((first, second, _ratio(duel.ratio), percent(duel.wins), chance(duel.p),
               "not told apart" if duel.p > SURE else first if duel.wins > 0.5 else second)
              for first, second, duel in found.duels(clock)), (_MEANING,) if clock == "seconds" else ())
        for clock, head in heads.items())


_MEANING = ("First wins: share of all pairs of searches in which the first one's score is lower, ties half. p: "
            f"two-sided Mann-Whitney test, exact, corrected for all pairs (Holm). Better: p at most {SURE:g}.")


def contest_curves(found: Contest) -> Table:
    """Return all curves as one table, for files."""
    rows = []
    for clock in CLOCKS:
        for name in found.names:
            band = found.band(name, clock)
            rows += [(name, clock, at, *(finite(value) for value in (each.median, each.low, each.high)))
                     for at, each in zip(band.at, band.intervals, strict=True)]
    return Table("curves", "Best score so far", ("Mapper", "Clock", "At", "Median", "Low", "High"), tuple(rows))


def contest_tree(found: Contest, asked: str) -> dict[str, Any]:
    """Return all of it as plain data; what is infinite is null."""
    curves = contest_curves(found)
    return {
        "asked": asked, "layer": found.layer, "machine": found.machine, "objective": found.objective,
        "unit": found.unit, "seeds": list(found.seeds), "bound": found.bound, "best": finite(found.best),
        "equal_samples": found.equal_samples, "equal_seconds": found.equal_seconds,
        "words": list(contest_words(found)),
        "mappers": [{
            "name": one.name, "mapper": one.mapper, "options": dict(one.options),
            "final": _interval(found.final(one.name)), "gap": found.gap(one.name),
            "seconds": _interval(found.time(one.name)),
            "samples_to": {f"{near:g}": _interval(found.reach(one.name, near)) for near in _NEAR},
            "searches": [{"seed": each.seed, "score": finite(each.score), "samples": each.samples,
                          "legal_samples": each.legal_samples, "seconds": each.seconds,
                          "history": [[step.samples, step.seconds, step.score] for step in each.history]}
                         for each in found.of(one.name)],
        } for one in found.contenders],
        "pairs": {clock: [{"first": first, "second": second, "ratio": finite(duel.ratio), "wins": duel.wins,
                           "p": duel.p} for first, second, duel in found.duels(clock)] for clock in CLOCKS},
        "curves": [dict(zip(curves.columns, row, strict=True)) for row in curves.rows],
    }


def _ratio(ratio: float) -> str:
    """Return the ratio of two medians; in words where one of them found nothing."""
    if math.isnan(ratio):
        return "none found"
    return "second found none" if ratio == 0 else "first found none" if math.isinf(ratio) else significant(ratio)


def chance(p: float) -> str:
    """Return a p-value as people read it."""
    return "<0.0001" if p < 1e-4 else f"{p:.2g}"


def _interval(found: Interval) -> dict[str, float | None]:
    return {name: finite(value) for name, value in asdict(found).items()}


_WITHIN = (1.05, 2.0, 10.0)


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
                     *(percent(points.near(near * found.best)) for near in _WITHIN),
                     significant(found.distance(name)) if name in found.trails and len(points) else None))
    return Table("points", f"Legal mappings by {shown_goal(found.objective)}", (
        "Points", "Legal", f"Best ({found.unit})", "Median", *(f"Within {near:g}x of best" for near in _WITHIN),
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
                              "within": {f"{near:g}": points.near(near * found.best) for near in _WITHIN}}
                       for name, points in (("random mappings", found.background), *found.trails.items())}}
