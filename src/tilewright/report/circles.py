"""Venn diagrams drawn to scale: circles and their overlaps have areas in proportion to the sizes of the sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import acos, cos, pi, sin, sqrt
from typing import Any

from tilewright.base import Plot

_STEPS = 200
_POINTS = 90


@dataclass(frozen=True)
class Circle:
    """A circle on the x axis."""

    x: float
    r: float


@dataclass(frozen=True)
class Diagram:
    """Circles for W, C and A (in the order given to `venn`), and the largest error of an overlap over the largest set.

    The error is not 0 where three circles cannot have the overlaps asked for.
    """

    circles: tuple[Circle, ...]
    error: float


def lens(a: float, b: float, distance: float) -> float:
    """Return the area that circles of radii ``a`` and ``b`` share at a distance of their centres."""
    if distance >= a + b:
        return 0.0
    if distance <= abs(a - b):
        return pi * min(a, b) ** 2
    one = acos(max(-1.0, min(1.0, (distance**2 + a**2 - b**2) / (2 * distance * a))))
    other = acos(max(-1.0, min(1.0, (distance**2 + b**2 - a**2) / (2 * distance * b))))
    kite = (-distance + a + b) * (distance + a - b) * (distance - a + b) * (distance + a + b)
    return a * a * one + b * b * other - sqrt(max(0.0, kite)) / 2


def apart(a: float, b: float, shared: float) -> float:
    """Return the distance of centres at which circles share an area (bisection; the overlap falls with distance)."""
    near, far = abs(a - b), a + b
    for _ in range(_STEPS):
        middle = (near + far) / 2
        near, far = (middle, far) if lens(a, b, middle) > shared else (near, middle)
    return (near + far) / 2


def venn(workload: float, klass: float, target: float, klass_shared: float, target_shared: float) -> Diagram:
    """Return circles of areas W, C and A: C overlaps W by C^w, A lies in C and overlaps W by A^w as well as can be."""
    w, c, a = (sqrt(size / pi) for size in (workload, klass, target))
    centre = apart(w, c, min(klass_shared, workload, klass))
    # W at 0, C at `centre`; A may move along the axis as far as it stays in C.
    room = max(0.0, c - a)
    near, far = max(0.0, centre - room), centre + room  # from the largest overlap to the least
    for _ in range(_STEPS):
        middle = (near + far) / 2
        near, far = (middle, far) if lens(w, a, abs(middle)) > target_shared else (near, middle)
    place = (near + far) / 2
    errors = (abs(lens(w, c, abs(centre)) - klass_shared), abs(lens(w, a, abs(place)) - target_shared))
    return Diagram((Circle(0.0, w), Circle(centre, c), Circle(place, a)), max(errors) / max(workload, klass))


def nested(*sizes: float) -> Diagram:
    """Return circles of these areas, largest first, each inside the one before and touching it on the left."""
    radii = [sqrt(size / pi) for size in sizes]
    return Diagram(tuple(Circle(r - radii[0], r) for r in radii), 0.0)


def venn_plot(name: str, title: str, panels: Sequence[tuple[str, Diagram, Sequence[str]]], note: str) -> Plot:
    """Return a plot of diagrams side by side, each scaled to the same width, with a legend text for every circle."""
    data: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for index, (heading, diagram, labels) in enumerate(panels):
        left = min(circle.x - circle.r for circle in diagram.circles)
        right = max(circle.x + circle.r for circle in diagram.circles)
        scale, middle = 2.0 / (right - left), (left + right) / 2
        offset = 2.5 * index
        for place, circle in enumerate(diagram.circles):
            turns = [2 * pi * point / _POINTS for point in range(_POINTS + 1)]
            data.append({
                "type": "scatter", "mode": "lines", "fill": "toself", "opacity": 0.45, "hoverinfo": "text",
                "text": labels[place], "name": labels[place], "showlegend": False,
                "fillcolor": f"@curve-{place}", "line": {"color": f"@curve-{place}", "width": 2},
                "x": [offset + scale * (circle.x - middle + circle.r * cos(turn)) for turn in turns],
                "y": [scale * circle.r * sin(turn) for turn in turns]})
            notes.append({"x": offset, "y": -1.16 - 0.16 * place, "text": labels[place], "showarrow": False,
                          "font": {"color": f"@curve-{place}", "size": 11}})
        notes.append({"x": offset, "y": 1.2, "text": heading, "showarrow": False, "font": {"size": 12}})
    hidden = {"visible": False, "showgrid": False, "zeroline": False}
    return Plot(name, title, data, {
        "xaxis": {**hidden, "range": [-1.25, 2.5 * len(panels) - 1.25]},
        "yaxis": {**hidden, "scaleanchor": "x", "range": [-1.7, 1.35]}, "annotations": notes, "height": 380}, note)
