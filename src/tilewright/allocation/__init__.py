"""Which tensor stays on which scratchpad, when, and at which address? Plans for whole networks.

A plan says for each operation of a network what is on which scratchpad, where it came from, and at which address; what
it moves; and what no plan can do with less of. It is checked by carrying it out, word by word (`verify`).
"""

import tilewright.allocation.solvers  # noqa: F401  (they register themselves)
from tilewright.allocation.bounds import capacity_bound, role_bound, standing_bounds
from tilewright.allocation.network import network_problem
from tilewright.allocation.objectives import PlanTask, peak_plan, product_plan, summed_plan
from tilewright.allocation.offline import METADATA, OfflineTensor, offline_plan, offline_words
from tilewright.allocation.order import in_order, predecessors, reordered
from tilewright.allocation.parts import MOST_PARTS, PART, Parts, split_problem, stays_of_parts
from tilewright.allocation.problem import (
    Bus,
    OperationStep,
    Oversize,
    Pad,
    ResidencyProblem,
    ResidentTensor,
    cut_tensors,
    packed,
    read_pads,
)
from tilewright.allocation.records import (
    PlannedStay,
    PlannedTransfer,
    PlanRecord,
    SolverResult,
    plan_record,
    read_plan,
)
from tilewright.allocation.search import SOLVERS, AllocationSolver, PlanSearch
from tilewright.allocation.sets import BestSets, best_order, best_sets
from tilewright.allocation.simulation import PlanEvent, SimulatedPlan, simulate
from tilewright.allocation.stays import (
    RESIDENCY_METRICS,
    DmaTransfer,
    PlanTally,
    Prices,
    ResidencyMetric,
    Stay,
    tally,
    transfers_of,
)
from tilewright.allocation.tiles import MOST_TILES, TILE
from tilewright.allocation.verifying import PlanFault, verify

__all__ = [
    "METADATA",
    "MOST_PARTS",
    "MOST_TILES",
    "PART",
    "RESIDENCY_METRICS",
    "SOLVERS",
    "TILE",
    "AllocationSolver",
    "BestSets",
    "Bus",
    "DmaTransfer",
    "OfflineTensor",
    "OperationStep",
    "Oversize",
    "Pad",
    "Parts",
    "PlanEvent",
    "PlanFault",
    "PlanRecord",
    "PlanSearch",
    "PlanTally",
    "PlanTask",
    "PlannedStay",
    "PlannedTransfer",
    "Prices",
    "ResidencyMetric",
    "ResidencyProblem",
    "ResidentTensor",
    "SimulatedPlan",
    "SolverResult",
    "Stay",
    "best_order",
    "best_sets",
    "capacity_bound",
    "cut_tensors",
    "in_order",
    "network_problem",
    "offline_plan",
    "offline_words",
    "packed",
    "peak_plan",
    "plan_record",
    "predecessors",
    "product_plan",
    "read_pads",
    "read_plan",
    "reordered",
    "role_bound",
    "simulate",
    "split_problem",
    "standing_bounds",
    "stays_of_parts",
    "summed_plan",
    "tally",
    "transfers_of",
    "verify",
]
