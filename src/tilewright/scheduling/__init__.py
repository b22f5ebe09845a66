"""Which core, when? Jobs of many networks on many accelerators that share one bandwidth (M3E and MAGMA, Kao 2022)."""

from tilewright.base import offered
from tilewright.scheduling import methods  # noqa: F401  (registers)
from tilewright.scheduling.analysis import JOB_STUDY as JOB_STUDY
from tilewright.scheduling.analysis import Analysis as Analysis
from tilewright.scheduling.analysis import analyse as analyse
from tilewright.scheduling.bounds import ScheduleBound as ScheduleBound
from tilewright.scheduling.bounds import schedule_bound as schedule_bound
from tilewright.scheduling.jobs import GROUP as GROUP
from tilewright.scheduling.jobs import TASKS as TASKS
from tilewright.scheduling.jobs import LayerJob as LayerJob
from tilewright.scheduling.jobs import check_order as check_order
from tilewright.scheduling.jobs import chopped as chopped
from tilewright.scheduling.jobs import network_jobs as network_jobs
from tilewright.scheduling.jobs import read_time as read_time
from tilewright.scheduling.jobs import task_groups as task_groups
from tilewright.scheduling.jobs import task_names as task_names
from tilewright.scheduling.known import KnownPlan as KnownPlan
from tilewright.scheduling.known import adopted as adopted
from tilewright.scheduling.problem import SCHEDULE_OBJECTIVES as SCHEDULE_OBJECTIVES
from tilewright.scheduling.problem import SHARINGS as SHARINGS
from tilewright.scheduling.problem import AnalysisTable as AnalysisTable
from tilewright.scheduling.problem import PlanGenomes as PlanGenomes
from tilewright.scheduling.problem import ScheduleProblem as ScheduleProblem
from tilewright.scheduling.problem import Timeline as Timeline
from tilewright.scheduling.records import Explained as Explained
from tilewright.scheduling.records import GroupRecord as GroupRecord
from tilewright.scheduling.records import MovedJob as MovedJob
from tilewright.scheduling.records import PlannedJob as PlannedJob
from tilewright.scheduling.records import ScheduleRecord as ScheduleRecord
from tilewright.scheduling.records import explained as explained
from tilewright.scheduling.records import group_problem as group_problem
from tilewright.scheduling.records import group_record as group_record
from tilewright.scheduling.records import read_schedule as read_schedule
from tilewright.scheduling.records import schedule_record as schedule_record
from tilewright.scheduling.session import SCHEDULERS as SCHEDULERS
from tilewright.scheduling.session import Scheduled as Scheduled
from tilewright.scheduling.session import ScheduleSession as ScheduleSession
from tilewright.scheduling.session import schedule as schedule
from tilewright.scheduling.simulation import Simulated as Simulated
from tilewright.scheduling.simulation import simulate as simulate
from tilewright.scheduling.simulation import timeline as timeline
from tilewright.scheduling.system import Core as Core
from tilewright.scheduling.system import System as System
from tilewright.scheduling.system import load_system as load_system
from tilewright.scheduling.system import system_names as system_names
from tilewright.scheduling.system import system_text as system_text

__all__ = list(offered(__name__))
