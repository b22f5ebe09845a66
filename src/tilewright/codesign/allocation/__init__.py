"""How many elements, and how large a buffer, does each layer of a pipeline get? (ConfuciuX, Kao 2022, chapter 8)."""

from tilewright.base import offered
from tilewright.codesign.allocation.agents import GLOBAL as GLOBAL
from tilewright.codesign.allocation.budgets import AllocationBudget as AllocationBudget
from tilewright.codesign.allocation.budgets import read_budget as read_budget
from tilewright.codesign.allocation.exact import ExactAllocation as ExactAllocation
from tilewright.codesign.allocation.exact import Knapsack as Knapsack
from tilewright.codesign.allocation.exact import solve as solve
from tilewright.codesign.allocation.methods import METHODS as METHODS
from tilewright.codesign.allocation.methods import AllocatedLayer as AllocatedLayer
from tilewright.codesign.allocation.methods import AllocationResult as AllocationResult
from tilewright.codesign.allocation.methods import Trial as Trial
from tilewright.codesign.allocation.methods import allocate as allocate
from tilewright.codesign.allocation.problem import AllocationProblem as AllocationProblem
from tilewright.codesign.allocation.problem import observations as observations
from tilewright.codesign.allocation.styles import STYLES as STYLES
from tilewright.codesign.allocation.styles import AllocationStyle as AllocationStyle
from tilewright.codesign.allocation.styles import buffer_bytes as buffer_bytes
from tilewright.codesign.allocation.table import PE_LEVELS as PE_LEVELS
from tilewright.codesign.allocation.table import AllocationTable as AllocationTable
from tilewright.codesign.allocation.table import PipelineStages as PipelineStages
from tilewright.codesign.allocation.table import allocation_table as allocation_table

__all__ = list(offered(__name__))
