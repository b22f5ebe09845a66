"""Buffers in a memory as a person sees them: addresses over time, what lives below them, and how near the best."""

from collections.abc import Iterator
from html import escape
from typing import Any

from tilewright.base import Plot, Table
from tilewright.packing import Buffers, Packing
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import engineering, percent, shortened
from tilewright.report.sheet import Sheet

COLOURS, MOST_ROWS = 7, 400


def packing_sheet(name: str, buffers: Buffers, packing: Packing, capacity: int | None, command: str) -> Sheet:
    """Return what is to be shown of a placement, or of there being none."""
    times, live = buffers.live
    peak = (f"Live peak {buffers.live_peak:,} at time {times[live.argmax()]:,}: the most that lives at one time"
            + (", each buffer at a place of its own." if any(buffers.inplace) else ".")
            if len(buffers) else "No buffers.")
    steps = f"{packing.nodes:,} nodes in " if packing.nodes else ""
    facts = (_verdict(packing, capacity), peak, *_shared(buffers, packing),
             f"Method {packing.method}: {steps}{engineering(packing.seconds, 's')}.")
    lead = f"{len(buffers):,} buffers" + ("" if capacity is None else f" in {capacity:,} addresses") + "."
    return Sheet(f"Addresses of {name}", lead, facts, (_table(buffers, packing),),
                 (_drawing(buffers, packing, capacity),), {}, command)


def _verdict(packing: Packing, capacity: int | None) -> str:
    if packing.offsets is None:
        if packing.proven:
            return f"Not placed: there is no placement within {capacity:,}."
        return f"Not placed in the time given: whether there is a placement within {capacity:,} is open."
    if packing.proven:
        return f"Placed. Height {packing.height:,}: no placement is lower."
    return (f"Placed. Height {packing.height:,}; no placement is below {packing.bound:,}, so that this one is at most "
            f"{percent(packing.gap)} above the lowest.")


def _shared(buffers: Buffers, packing: Packing) -> Iterator[str]:
    """Say how many buffers are in the place of others."""
    may = [place for place, names in enumerate(buffers.inplace) if names]
    if may and packing.offsets is not None:
        at = dict(zip(buffers.ids, packing.offsets.tolist(), strict=True))
        taken = sum(any(at[one] == at[buffers.ids[place]] for one in buffers.inplace[place]) for place in may)
        yield f"{taken:,} of {len(may):,} buffers that may be in the place of another are."


def _table(buffers: Buffers, packing: Packing) -> Table:
    offsets = [None] * len(buffers) if packing.offsets is None else packing.offsets.tolist()
    rows = tuple((shortened(name, 40), lower, upper, size, offset, None if offset is None else offset + size)
                 for name, lower, upper, size, offset in list(zip(
                     buffers.ids, buffers.lower.tolist(), buffers.upper.tolist(), buffers.size.tolist(), offsets,
                     strict=True))[:MOST_ROWS])
    notes = (f"The first {MOST_ROWS} of {len(buffers):,}; the JSON has all.",) if len(buffers) > MOST_ROWS else ()
    return Table("buffers", "Buffers", ("Buffer", "From", "Until before", "Size", "Address", "End"), rows, notes)


def _drawing(buffers: Buffers, packing: Packing, capacity: int | None) -> Plot:
    """Return addresses over time, and below what lives; without a placement that alone."""
    times, live = buffers.live
    data: list[dict[str, Any]] = []
    if packing.offsets is not None:
        data += [_bars(buffers, packing.offsets.tolist(), colour) for colour in range(min(COLOURS, len(buffers)))]
    axis = {"yaxis": "y2"} if data else {}
    ends = [int(times[0]), int(times[-1])] if len(times) else [0, 1]
    data.append({"type": "scatter", "mode": "lines", "name": "what lives", "x": times.tolist(), "y": live.tolist(),
                 "line": {"shape": "hv", "width": 1.5, "color": "@curve-0"}, "fill": "tozeroy", **axis,
                 "hovertemplate": "%{y:,} from time %{x}<extra></extra>"})
    for name, level, dash in (("capacity", capacity, "dash"), ("height", packing.height or None, "solid")):
        if level is not None and not (name == "height" and level == capacity):
            data += [{"type": "scatter", "mode": "lines", "name": name, "x": ends, "y": [level, level],
                      "hoverinfo": "skip", "line": {"color": "@strong", "width": 1.5, "dash": dash}, **where}
                     for where in ([{}, {"showlegend": False, **axis}] if axis else [{}])]
    most = 1.05 * max(capacity or 0, packing.height, buffers.live_peak)
    layout: dict[str, Any] = {
        "barmode": "overlay", "bargap": 0, "hovermode": "closest", "legend": LEGEND, "height": 620 if axis else 330,
        "xaxis": {"title": {"text": "Time"}, "range": ends, "anchor": "y2" if axis else "y"},
        "yaxis": {"title": {"text": "Address" if axis else "Live"}, "range": [0, most],
                  "domain": [0.3, 1] if axis else [0, 1]}}
    if axis:
        layout["yaxis2"] = {"title": {"text": "Live"}, "range": [0, most], "domain": [0, 0.22]}
    return Plot("addresses", "Addresses over time", data, layout,
                "Each box is a buffer while it holds something; colours only tell neighbours apart.")


def _bars(buffers: Buffers, offsets: list[int], colour: int) -> dict[str, Any]:
    """Return every seventh buffer as boxes, one for each time in which it holds something."""
    boxes = [(place, *span) for place in range(colour, len(buffers), COLOURS) for span in buffers.spans(place)]
    return {"type": "bar", "showlegend": False, "x": [(first + last) / 2 for _, first, last in boxes],
            "width": [last - first for _, first, last in boxes], "base": [offsets[place] for place, *_ in boxes],
            "y": [int(buffers.size[place]) for place, *_ in boxes],
            "marker": {"color": f"@curve-{colour}", "line": {"color": "@surface", "width": 0.5}},
            "customdata": [[escape(shortened(buffers.ids[place], 60)), first, last] for place, first, last in boxes],
            "hovertemplate": "<b>%{customdata[0]}</b><br>address %{base:,}, size %{y:,}<br>time %{customdata[1]} until "
                             "before %{customdata[2]}<extra></extra>"}
