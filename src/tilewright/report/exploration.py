"""What flexibility is worth, as a person sees it: every choice on every network, and which of them pay."""

from math import isfinite
from typing import Any

from tilewright.base import Plot, Table, Value
from tilewright.codesign import FIGURES, Exploration, Outcome, pareto
from tilewright.report.quantities import engineering, finite, significant
from tilewright.report.sheet import Sheet

_HEADS = {"latency": "runtime", "energy": "energy", "edp": "EDP"}
_NONE = "no mapping"


def exploration_sheet(found: Exploration, asked: str, command: str = "") -> Sheet:
    """Return what is to be shown of an exploration; ``asked`` tells how it was made."""
    head, front = _HEADS[found.objective], pareto(found, FIGURES[found.objective])
    rows = tuple((_name(found, choice), *_worth(found, choice), "pays" if choice in front else "")
                 for choice in found.choices)
    columns = ("Choice", *(f"{head} {network}" for network in found.networks),
               *([f"{head} mean"] if len(found.networks) > 1 else []), "Adds (um2)", "Area", "Power", "Pays")
    table = Table("choices", f"{head[0].upper()}{head[1:]} over that of {_name(found, found.base)}", columns, rows, (
        "Pays: no other choice adds as little area and is as good (the mean is geometric). Power as the added area.",
        "At few samples a choice can end worse than one that it contains."))
    return Sheet(f"Which flexibility pays on {', '.join(found.networks)}",
                 "Classes are digits for tile, order, parallelism, shape; 1 is fully flexible.", (asked,),
                 (table, _figures_table(found)), (_plot(found, front, head),), {}, command)


def exploration_tree(found: Exploration, asked: str) -> dict[str, Any]:
    """Return the same as plain data; what has no mapping is null."""
    front = pareto(found, FIGURES[found.objective])
    firsts = [(choice, _first(found, choice)) for choice in found.choices]
    return {
        "asked": asked, "objective": found.objective, "base": found.base, "pareto": list(front),
        "choices": [{"choice": choice, "name": first.flexibility.name,
                     "worth": finite(found.worth(choice, FIGURES[found.objective])), "added_um2": first.added_um2,
                     "area_um2": first.area_um2, "area_share": _area_share(first), "power_share": _power_share(first),
                     "pays": choice in front} for choice, first in firsts],
        "outcomes": [{"network": one.network, "choice": one.choice, "latency_cycles": finite(one.latency_cycles),
                      "energy_pj": finite(one.energy_pj), "edp": finite(one.edp), "samples": one.samples,
                      "over_base": finite(found.relative(one.network, one.choice, FIGURES[found.objective]))}
                     for one in found.outcomes],
    }


def _first(found: Exploration, choice: str) -> Outcome:
    return found.of(found.networks[0], choice)


def _name(found: Exploration, choice: str) -> str:
    name = _first(found, choice).flexibility.name
    return name if choice in name else f"{choice} ({name})"


def _worth(found: Exploration, choice: str) -> tuple[Value, ...]:
    figure, first = FIGURES[found.objective], _first(found, choice)
    cells = [found.relative(network, choice, figure) for network in found.networks]
    if len(found.networks) > 1:
        cells.append(found.worth(choice, figure))
    area, power = _area_share(first), _power_share(first)
    return (*(significant(cell) if isfinite(cell) else _NONE for cell in cells), f"{first.added_um2:,.0f}",
            f"{area:+.3%}" if area is not None else None, f"{power:+.3%}" if power is not None else None)


def _figures_table(found: Exploration) -> Table:
    rows = tuple((one.network, one.flexibility.name, *(
        engineering(value) if isfinite(value) else _NONE for value in (
            one.latency_cycles, one.energy_pj * 1e-12, one.edp * 1e-12)), engineering(one.samples))
        for one in found.outcomes)
    return Table("figures", "All figures", (
        "Network", "Choice", "Latency (cycles)", "Energy (J)", "EDP (J·cycles)", "Samples"), rows)


def _plot(found: Exploration, front: tuple[str, ...], head: str) -> Plot:
    figure = FIGURES[found.objective]
    points = [(choice, _first(found, choice).added_um2, found.worth(choice, figure)) for choice in found.choices]
    points = [point for point in points if isfinite(point[2])]
    paying = sorted((area, worth) for choice, area, worth in points if choice in front)
    data = [
        {"type": "scatter", "mode": "lines", "name": "pays", "x": [area for area, _ in paying],
         "y": [worth for _, worth in paying], "line": {"color": "@curve-1", "shape": "hv"}, "hoverinfo": "skip"},
        {"type": "scatter", "mode": "markers+text", "name": "choices", "x": [area for _, area, _ in points],
         "y": [worth for *_, worth in points], "text": [choice for choice, *_ in points], "textposition": "top center",
         "marker": {"size": 9, "color": ["@curve-1" if choice in front else "@curve-0" for choice, *_ in points]}},
    ]
    return Plot("front", f"{head[0].upper()}{head[1:]} and the area that flexibility adds", data, {
        "xaxis": {"title": {"text": "Added area (um2)"}}, "showlegend": False,
        "yaxis": {"title": {"text": f"{head} over {_name(found, found.base)}"}, "rangemode": "tozero"}},
        "Choices on the line pay: no other adds as little area and is as good.")


def _area_share(one: Outcome) -> float | None:
    base = one.area_um2 - one.added_um2
    return one.added_um2 / base if base > 0 else None


def _power_share(one: Outcome) -> float | None:
    area = _area_share(one)
    return None if area is None else area * one.flexibility.costs.power_per_area
