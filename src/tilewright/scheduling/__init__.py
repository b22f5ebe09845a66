"""Which core, when? Jobs of many networks on many accelerators that share one bandwidth (M3E and MAGMA, Kao 2022)."""

from tilewright.scheduling.bounds import ScheduleBound, schedule_bound
from tilewright.scheduling.problem import (
    SCHEDULE_OBJECTIVES,
    SHARINGS,
    AnalysisTable,
    PlanGenomes,
    ScheduleProblem,
    Timeline,
)
from tilewright.scheduling.simulation import Simulated, simulate, timeline
from tilewright.scheduling.system import Core, System, load_system, read_bandwidth, system_names

__all__ = [
    "SCHEDULE_OBJECTIVES",
    "SHARINGS",
    "AnalysisTable",
    "Core",
    "PlanGenomes",
    "ScheduleBound",
    "ScheduleProblem",
    "Simulated",
    "System",
    "Timeline",
    "load_system",
    "read_bandwidth",
    "schedule_bound",
    "simulate",
    "system_names",
    "timeline",
]
