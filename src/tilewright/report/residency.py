"""A plan for scratchpads as a person sees it: addresses over time, traffic by operation, and what stood in the way."""

from bisect import bisect_left
from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.allocation import PlanRecord, ResidentTensor, Stay
from tilewright.base import Plot, Table, Value
from tilewright.hardware import format_bytes
from tilewright.report.fronts import LEGEND
from tilewright.report.quantities import engineering, measured, percent, shortened, titled
from tilewright.report.sheet import Sheet

MOST_ROWS = 200
_UNITS = {"bytes": "B", "thesis": "B", "latency": "cycles", "energy": "pJ", "edp": "pJ x cycles", "peak": "B"}
_COLOURS = (("weights", "@curve-1"), ("inputs of the network", "@curve-2"), ("between operations", "@curve-0"))


def residency_sheet(record: PlanRecord) -> Sheet:
    """Return what is to be shown of a plan."""
    took = record.tally
    facts = (_verdict(record),
             f"{took.dram_bytes:,} bytes from and to the main memory: {took.loaded_bytes:,} loaded, "
             f"{took.stored_bytes:,} stored" + (
                 f"; {took.moved_bytes:,} moved between scratchpads." if took.moves else "."),
             f"{engineering(took.latency_cycles)} cycles one after the other ({engineering(took.compute_cycles)} of "
             f"operations); {engineering(record.simulated_cycles)} where transfers overlap them on {record.channels} "
             f"channel{'s' if record.channels > 1 else ''}, of which compute waits {engineering(sum(record.stalls))}.",
             f"Bounds: {', '.join(f'{name} {value:,.0f}' for name, value in record.bounds.items())}.",
             *record.assumptions)
    title = f"{record.network} on {len(record.pads)} scratchpads"
    lead = (", ".join(f"{pad.name} {format_bytes(pad.capacity_bytes)}" for pad in record.pads) +
            f"; {len(record.steps):,} operations, {len(record.tensors):,} tensors; by "
            f"{', then '.join(record.objective)}.")
    tables = [*([_solvers(record)] if len(record.solvers) > 1 else []), _spilled(record), _stays(record)]
    plots = [*(_addresses(record, pad) for pad in range(len(record.pads))), _traffic(record)]
    return Sheet(title, lead, facts, tuple(tables), tuple(plots), {}, record.command)


def _verdict(record: PlanRecord) -> str:
    unit = _UNITS[record.objective[0]]
    told = f"{titled(record.objective[0])} {record.score:,.0f} {unit} by {record.solver}"
    if record.proven:
        return f"{told}: no plan does better."
    return (f"{told}. No plan can do with less than {record.bound:,.0f}: this one is at most {percent(record.gap)} "
            "above.")


def _solvers(record: PlanRecord) -> Table:
    rows = tuple((one.solver, one.score, one.tally.dram_bytes, one.tally.latency_cycles,
                  measured(one.tally.energy_pj, "pJ"), percent(one.score / record.score - 1) if record.score else "-",
                  "yes" if one.proven else "no", one.by, f"{one.seconds:.2f}") for one in record.solvers)
    return Table("solvers", "Solvers", ("Solver", f"Score ({_UNITS[record.objective[0]]})", "Bytes", "Cycles", "Energy",
                                        "Above the best", "Proven", "Found by", "Seconds"), rows)


def _gaps(record: PlanRecord) -> Iterator[tuple[int, int, int]]:
    """Give tensors that leave between two uses, with the operations before and after."""
    uses: dict[int, list[int]] = {}
    for at, step in enumerate(record.steps):
        for tensor in step.touches:
            uses.setdefault(tensor, []).append(at)
    for one in record.transfers:
        before = bisect_left(uses.get(one.tensor, []), one.step)
        if one.kind == "load" and before:
            yield one.tensor, uses[one.tensor][before - 1], one.step


def _live(record: PlanRecord) -> NDArray[np.int64]:
    """Return the bytes on all scratchpads in each step."""
    change = np.zeros(len(record.steps) + 1, dtype=np.int64)
    for stay in record.residency:
        change[stay.first] += record.tensors[stay.tensor].size_bytes
        change[stay.last + 1] -= record.tensors[stay.tensor].size_bytes
    return np.cumsum(change)


def _spilled(record: PlanRecord) -> Table:
    rows: list[tuple[Value, ...]] = []
    live, stays, stored = _live(record), dict[int, list[Stay]](), dict[int, int]()
    for stay in record.residency:
        stays.setdefault(stay.tensor, []).append(stay)
    for moved in record.transfers:
        if moved.kind == "store":
            stored[moved.tensor] = min(moved.step, stored.get(moved.tensor, moved.step))
    for tensor, first, last in _gaps(record):
        one = record.tensors[tensor]
        full = first + 1 + int(live[first + 1:last].argmax()) if last > first + 1 else first
        mine = sum(stay.first <= full <= stay.last for stay in stays[tensor])
        rows.append((shortened(one.name, 36), one.size_bytes, shortened(record.steps[first].name, 30),
                     shortened(record.steps[last].name, 30), one.size_bytes * (1 + (stored.get(tensor, last) <= first)),
                     shortened(record.steps[full].name, 30), int(live[full]) - mine * one.size_bytes))
    rows.sort(key=lambda row: -int(row[4] or 0))
    return Table("spilled", "What left between two uses", (
        "Tensor", "Bytes", "After", "Back for", "Bytes moved", "Fullest at", "Bytes beside it there"),
        tuple(rows[:MOST_ROWS]), ("Bytes moved: loaded again and, where the main memory had not got them, stored.",
                                  *([] if rows else ["Nothing did: no more room would save anything."])))


def _stays(record: PlanRecord) -> Table:
    rows = tuple((shortened(record.tensors[one.tensor].name, 36), record.pads[one.pad].name, one.address,
                  record.tensors[one.tensor].size_bytes, record.steps[one.first].name, record.steps[one.last].name,
                  one.begins) for one in record.residency[:MOST_ROWS])
    return Table("residency", "Residency", ("Tensor", "Scratchpad", "Address", "Bytes", "From", "To", "Comes by"), rows,
                 (f"The first {MOST_ROWS} of {len(record.residency):,}; the JSON has all.",)
                 if len(record.residency) > MOST_ROWS else ())


def _colour(tensor: ResidentTensor) -> int:
    return 0 if tensor.weights else 1 if tensor.outside else 2


def _addresses(record: PlanRecord, pad: int) -> Plot:
    """Return the addresses of a scratchpad over operations: a box for each stay."""
    data: list[dict[str, Any]] = []
    for kind, (name, colour) in enumerate(_COLOURS):
        mine = [stay for stay in record.residency
                if stay.pad == pad and _colour(record.tensors[stay.tensor]) == kind]
        if mine:
            data.append({
                "type": "bar", "name": name, "x": [(stay.first + stay.last) / 2 for stay in mine],
                "width": [stay.last - stay.first + 1 for stay in mine], "base": [stay.address for stay in mine],
                "y": [record.tensors[stay.tensor].size_bytes for stay in mine],
                "marker": {"color": colour, "line": {"color": "@surface", "width": 0.5}},
                "customdata": [[escape(shortened(record.tensors[stay.tensor].name, 60)),
                                escape(record.steps[stay.first].name), escape(record.steps[stay.last].name),
                                stay.begins] for stay in mine],
                "hovertemplate": "<b>%{customdata[0]}</b>, %{y:,} B at %{base:,}<br>%{customdata[1]} to "
                                 "%{customdata[2]}, by %{customdata[3]}<extra></extra>"})
    size = record.pads[pad].capacity_bytes
    return Plot(f"addresses-{pad}", f"Scratchpad {record.pads[pad].name}: addresses over operations", data, {
        "barmode": "overlay", "bargap": 0, "height": 300, "hovermode": "closest", "legend": LEGEND,
        "xaxis": {"title": {"text": "Operation"}, "range": [-0.5, len(record.steps) - 0.5], "zeroline": False},
        "yaxis": {"title": {"text": "Address"}, "range": [0, size], "tickformat": "~s", "zeroline": False}})


def _traffic(record: PlanRecord) -> Plot:
    data: list[dict[str, Any]] = []
    for place, (kind, name) in enumerate((("load", "loaded"), ("store", "stored"), ("move", "moved"))):
        moved = [0] * len(record.steps)
        for one in record.transfers:
            moved[one.step] += one.bytes * (one.kind == kind)
        if any(moved):
            data.append({"type": "bar", "name": name, "x": list(range(len(moved))), "y": moved,
                         "marker": {"color": f"@curve-{place}"},
                         "customdata": [escape(step.name) for step in record.steps],
                         "hovertemplate": f"%{{customdata}}: %{{y:,}} B {name}<extra></extra>"})
    return Plot("traffic", "Traffic by operation", data, {
        "barmode": "stack", "height": 300, "legend": LEGEND, "hovermode": "closest",
        "xaxis": {"title": {"text": "Operation"}, "range": [-0.5, len(record.steps) - 0.5]},
        "yaxis": {"title": {"text": "Bytes"}, "tickformat": "~s"}})
