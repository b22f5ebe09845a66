"""How many elements, and how large a buffer, does each layer of a pipeline get? (ConfuciuX, Kao 2022, chapter 8)."""

from tilewright.codesign.allocation.agents import GLOBAL
from tilewright.codesign.allocation.budgets import MEASURES, AllocationBudget, read_budget
from tilewright.codesign.allocation.exact import ExactAllocation, Knapsack, solve
from tilewright.codesign.allocation.methods import METHODS, AllocationResult, allocate
from tilewright.codesign.allocation.problem import AllocationProblem
from tilewright.codesign.allocation.styles import STYLES, AllocationStyle, buffer_bytes, style_mappings
from tilewright.codesign.allocation.table import PE_LEVELS, AllocationTable, PipelineStages, allocation_table

__all__ = [
    "GLOBAL",
    "MEASURES",
    "METHODS",
    "PE_LEVELS",
    "STYLES",
    "AllocationBudget",
    "AllocationProblem",
    "AllocationResult",
    "AllocationStyle",
    "AllocationTable",
    "ExactAllocation",
    "Knapsack",
    "PipelineStages",
    "allocate",
    "allocation_table",
    "buffer_bytes",
    "read_budget",
    "solve",
    "style_mappings",
]
