"""Which tensor stays on which scratchpad, when, and at which address? Plans for whole networks.

A plan says for each operation of a network what is on which scratchpad, where it came from, and at which address; what
it moves; and what no plan can do with less of. It is checked by carrying it out, word by word (`verify`).
"""

from tilewright.allocation.bounds import role_bound as role_bound
from tilewright.allocation.network import MOST_PARTS as MOST_PARTS
from tilewright.allocation.network import Parts as Parts
from tilewright.allocation.network import network_problem as network_problem
from tilewright.allocation.objectives import PlanTask as PlanTask
from tilewright.allocation.objectives import peak_plan as peak_plan
from tilewright.allocation.objectives import product_plan as product_plan
from tilewright.allocation.objectives import summed_plan as summed_plan
from tilewright.allocation.offline import METADATA as METADATA
from tilewright.allocation.offline import offline_plan as offline_plan
from tilewright.allocation.offline import offline_words as offline_words
from tilewright.allocation.order import best_order as best_order
from tilewright.allocation.order import in_order as in_order
from tilewright.allocation.order import predecessors as predecessors
from tilewright.allocation.order import reordered as reordered
from tilewright.allocation.problem import Bus as Bus
from tilewright.allocation.problem import OperationStep as OperationStep
from tilewright.allocation.problem import Pad as Pad
from tilewright.allocation.problem import ResidencyProblem as ResidencyProblem
from tilewright.allocation.problem import ResidentTensor as ResidentTensor
from tilewright.allocation.problem import cut_tensors as cut_tensors
from tilewright.allocation.problem import packed as packed
from tilewright.allocation.problem import read_pads as read_pads
from tilewright.allocation.records import PlanRecord as PlanRecord
from tilewright.allocation.records import SolverResult as SolverResult
from tilewright.allocation.records import plan_record as plan_record
from tilewright.allocation.records import read_plan as read_plan
from tilewright.allocation.search import SOLVERS as SOLVERS
from tilewright.allocation.search import PlanSearch as PlanSearch
from tilewright.allocation.search import standing_bounds as standing_bounds
from tilewright.allocation.simulation import simulate as simulate
from tilewright.allocation.stays import DmaTransfer as DmaTransfer
from tilewright.allocation.stays import PlanTally as PlanTally
from tilewright.allocation.stays import Prices as Prices
from tilewright.allocation.stays import Stay as Stay
from tilewright.allocation.stays import tally as tally
from tilewright.allocation.stays import transfers_of as transfers_of
from tilewright.allocation.tiles import TILE as TILE
from tilewright.allocation.verifying import PlanFault as PlanFault
from tilewright.allocation.verifying import verify as verify
from tilewright.base import offered

__all__ = list(offered(__name__))
