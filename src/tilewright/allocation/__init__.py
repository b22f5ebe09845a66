"""Which tensor stays on which scratchpad, when, and at which address? Plans for whole networks.

A plan says for each operation of a network what is on which scratchpad, where it came from, and at which address; what
it moves; and what no plan can do with less of. It is checked by carrying it out, word by word (`verify`).
"""

import tilewright.allocation.solvers  # noqa: F401  (they register themselves)
from tilewright.allocation.bounds import role_bound, standing_bounds
from tilewright.allocation.network import network_problem
from tilewright.allocation.objectives import PlanTask, peak_plan, product_plan, summed_plan
from tilewright.allocation.offline import METADATA, offline_plan, offline_words
from tilewright.allocation.order import in_order, predecessors, reordered
from tilewright.allocation.parts import MOST_PARTS, PART, Parts
from tilewright.allocation.problem import (
    Bus,
    OperationStep,
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
from tilewright.allocation.search import SOLVERS, PlanSearch
from tilewright.allocation.sets import best_order
from tilewright.allocation.simulation import simulate
from tilewright.allocation.stays import (
    PlanTally,
    Prices,
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
    "SOLVERS",
    "TILE",
    "Bus",
    "OperationStep",
    "Pad",
    "Parts",
    "PlanFault",
    "PlanRecord",
    "PlanSearch",
    "PlanTally",
    "PlanTask",
    "PlannedStay",
    "PlannedTransfer",
    "Prices",
    "ResidencyProblem",
    "ResidentTensor",
    "SolverResult",
    "Stay",
    "best_order",
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
    "standing_bounds",
    "summed_plan",
    "tally",
    "transfers_of",
    "verify",
]
