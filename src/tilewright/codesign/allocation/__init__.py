"""How many elements, and how large a buffer, does each layer of a pipeline get? (ConfuciuX, Kao 2022, chapter 8)."""

from tilewright.codesign.allocation.agents import GLOBAL, observations
from tilewright.codesign.allocation.budgets import FPGAS, MEASURES, SHARES, AllocationBudget, read_budget
from tilewright.codesign.allocation.exact import ExactAllocation, Knapsack, solve
from tilewright.codesign.allocation.methods import METHODS, AllocatedLayer, AllocationResult, Trial, allocate
from tilewright.codesign.allocation.problem import DEPLOYMENTS, OBJECTIVES, AllocationProblem
from tilewright.codesign.allocation.styles import STYLES, AllocationStyle, buffer_bytes, style_mappings
from tilewright.codesign.allocation.table import PE_LEVELS, AllocationTable, PipelineStages, allocation_table

__all__ = [
    "DEPLOYMENTS",
    "FPGAS",
    "GLOBAL",
    "MEASURES",
    "METHODS",
    "OBJECTIVES",
    "PE_LEVELS",
    "SHARES",
    "STYLES",
    "AllocatedLayer",
    "AllocationBudget",
    "AllocationProblem",
    "AllocationResult",
    "AllocationStyle",
    "AllocationTable",
    "ExactAllocation",
    "Knapsack",
    "PipelineStages",
    "Trial",
    "allocate",
    "allocation_table",
    "buffer_bytes",
    "observations",
    "read_budget",
    "solve",
    "style_mappings",
]
