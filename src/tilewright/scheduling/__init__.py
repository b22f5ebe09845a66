"""Which core, when? Jobs of many networks on many accelerators that share one bandwidth (M3E and MAGMA, Kao 2022)."""

from tilewright.scheduling import methods  # noqa: F401  (registers)
from tilewright.scheduling.analysis import JOB_SAMPLES, JOB_STUDY, Analysis, analyse
from tilewright.scheduling.bounds import ScheduleBound, schedule_bound
from tilewright.scheduling.explaining import Explained, Otherwise, explained
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
from tilewright.scheduling.known import KnownPlan, adopted
from tilewright.scheduling.problem import (
    SCHEDULE_OBJECTIVES,
    SHARINGS,
    AnalysisTable,
    PlanGenomes,
    ScheduleProblem,
    Timeline,
)
from tilewright.scheduling.records import (
    GroupRecord,
    PlannedJob,
    ScheduleRecord,
    group_problem,
    group_record,
    read_schedule,
    schedule_record,
)
from tilewright.scheduling.session import (
    SCHEDULERS,
    Scheduled,
    Scheduler,
    ScheduleSession,
    schedule,
)
from tilewright.scheduling.simulation import Simulated, simulate, timeline
from tilewright.scheduling.system import Core, System, load_system, system_names, system_text

__all__ = [
    "GROUP",
    "JOB_SAMPLES",
    "JOB_STUDY",
    "SCHEDULERS",
    "SCHEDULE_OBJECTIVES",
    "SHARINGS",
    "TASKS",
    "Analysis",
    "AnalysisTable",
    "Core",
    "Explained",
    "GroupRecord",
    "KnownPlan",
    "LayerJob",
    "Otherwise",
    "PlanGenomes",
    "PlannedJob",
    "ScheduleBound",
    "ScheduleProblem",
    "ScheduleRecord",
    "ScheduleSession",
    "Scheduled",
    "Scheduler",
    "Simulated",
    "System",
    "Timeline",
    "adopted",
    "analyse",
    "check_order",
    "chopped",
    "explained",
    "group_problem",
    "group_record",
    "load_system",
    "network_jobs",
    "read_schedule",
    "read_time",
    "schedule",
    "schedule_bound",
    "schedule_record",
    "simulate",
    "system_names",
    "system_text",
    "task_groups",
    "task_names",
    "timeline",
]
