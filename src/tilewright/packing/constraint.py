"""Placements by constraint programming: CP-SAT of OR-Tools (extra ``cp-sat``), with its own proofs."""

from typing import Any

import numpy as np

from tilewright.base import require_extra
from tilewright.packing.session import PACKERS, PackingSession


@PACKERS.register("cp-sat")
def cp_sat(session: PackingSession) -> None:
    """Place rectangles of time and address without overlap, by CP-SAT of OR-Tools on one thread."""
    require_extra("cp-sat", "method", "cp-sat")
    from ortools.sat.python import cp_model  # noqa: PLC0415  (an extra)

    model = cp_model.CpModel()
    most = session.capacity if session.capacity is not None else session.height
    height = model.new_int_var(session.bound, max(most, session.bound), "height")
    offsets, times, rows, sizes = list[Any](), list[Any](), list[Any](), list[int]()
    for i, (size, alignment) in enumerate(zip(session.size.tolist(), session.alignment.tolist(), strict=True)):
        step = model.new_int_var(0, max(0, most - size) // alignment, "")
        offsets.append(step * alignment)
        model.add(offsets[-1] + size <= height)
        if session.bank:
            at = model.new_int_var(0, session.bank - size, "")
            model.add(offsets[-1] - at == session.bank * model.new_int_var(0, most // session.bank, ""))
        for first, last in session.buffers.spans(i):
            rows.append(model.new_fixed_size_interval_var(offsets[-1], size, ""))
            times.append(model.new_fixed_size_interval_var(first, last - first, ""))
            sizes.append(size)
    model.add_no_overlap_2d(times, rows)
    model.add_cumulative(times, sizes, height)
    if session.capacity is None:
        model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if session.seconds is not None:
        solver.parameters.max_time_in_seconds = max(0.01, session.seconds - session.used_seconds)
    status = solver.solve(model)
    session.spent = solver.num_branches
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        session.offer(np.array([solver.value(offset) for offset in offsets]))
    if status == cp_model.INFEASIBLE and session.capacity is not None:
        session.bound = max(session.bound, session.capacity + 1)
    elif session.capacity is None and status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        session.bound = max(session.bound, int(np.ceil(solver.best_objective_bound - 1e-6)))
