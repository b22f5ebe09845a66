"""Which core, when? Jobs of many networks on many accelerators that share one bandwidth (M3E and MAGMA, Kao 2022)."""

from tilewright.scheduling.analysis import JOB_SAMPLES, JOB_STUDY, Analysis, analyse
from tilewright.scheduling.bounds import ScheduleBound, schedule_bound
from tilewright.scheduling.jobs import (
    GROUP,
    TASKS,
    LayerJob,
    check_order,
    chopped,
    network_jobs,
    read_time,
    task_groups,
    task_names,
)
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
    "GROUP",
    "JOB_SAMPLES",
    "JOB_STUDY",
    "SCHEDULE_OBJECTIVES",
    "SHARINGS",
    "TASKS",
    "Analysis",
    "AnalysisTable",
    "Core",
    "LayerJob",
    "PlanGenomes",
    "ScheduleBound",
    "ScheduleProblem",
    "Simulated",
    "System",
    "Timeline",
    "analyse",
    "check_order",
    "chopped",
    "load_system",
    "network_jobs",
    "read_bandwidth",
    "read_time",
    "schedule_bound",
    "simulate",
    "system_names",
    "task_groups",
    "task_names",
    "timeline",
]
