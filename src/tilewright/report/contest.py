"""Mappers side by side as a person sees them: who is better and how surely, at equal samples and at equal time."""

import math
from dataclasses import asdict
from typing import Any

from tilewright.base import Table, Value
from tilewright.report.quantities import engineering, finite, percent, significant
from tilewright.report.search_plots import CLOCKS, contest_plot
from tilewright.report.sheet import Sheet
from tilewright.search.studies import CONFIDENCE, Contest, Interval

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
