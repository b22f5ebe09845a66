"""What it costs: counts, cycles, energy and bounds of mappings."""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.cost.bounds.boxes import best_of_box, box_bounds
    from tilewright.cost.bounds.kept import KeptBounds, kept_bounds, kept_least
    from tilewright.cost.bounds.layer import LowerBounds, Roofline, outermost_bytes, roofline
    from tilewright.cost.bounds.machines import BoundBatch, hardware_bounds, layer_bounds, likely_chains, space_bounds
    from tilewright.cost.bounds.traffic import ENERGY, Traffic
    from tilewright.cost.dense.derivations import Explanation
    from tilewright.cost.dense.engine import compile_aside
    from tilewright.cost.dense.scoring import DenseModel
    from tilewright.cost.explained import FigureExplanation, explain
    from tilewright.cost.fused.model import fused_cost, fused_shares, joined_cost
    from tilewright.cost.fused.shares import FusedShare
    from tilewright.cost.hardware import Columns, HardwareBatch
    from tilewright.cost.limits import Relief, limits_of, relief, with_twice
    from tilewright.cost.network import NOTHING, NetworkModel, Totals, network_sum
    from tilewright.cost.records import (
        COMPUTE,
        KINDS,
        Cost,
        Count,
        CycleLimit,
        Expected,
        FusedCost,
        MemoryTraffic,
        limited_by,
    )
    from tilewright.cost.sparse.explain import left_of, sparse_cost
    from tilewright.cost.sparse.model import SparseModel, cost_model
    from tilewright.cost.systolic.array_energy import ArrayEnergy, PartitionedEnergy, array_energy, partitioned_energy
    from tilewright.cost.systolic.counts import systolic_counts, systolic_runtime
    from tilewright.cost.systolic.layers import SystolicLayer, systolic_array, systolic_energy, systolic_layer
    from tilewright.cost.systolic.partitions import (
        ARRAY_OBJECTIVES,
        BestConfigurations,
        PartitionedCounts,
        best_configurations,
        partitioned_counts,
        partitioned_cycles,
    )
    from tilewright.cost.systolic.products import SystolicProduct
    from tilewright.cost.systolic.reconfigurable import (
        ARRAY_SPACES,
        DISTRIBUTED,
        DRAM_MEMORIES,
        FIXED_ARRAYS,
        MONOLITHIC,
        RECONFIGURABLE_ARRAYS,
        SAGAR,
        STALL_FREE,
        SUMMATIONS,
        TIE_RULE,
        ArrayConfiguration,
        PartitionEffects,
        ReconfigurableArray,
        reconfigurable_array,
    )
    from tilewright.cost.systolic.records import (
        SCALE_SIM,
        SCALE_SIM_PAPER,
        SYSTOLIC_ASSUMPTIONS,
        SYSTOLIC_CONVENTIONS,
        SYSTOLIC_DATAFLOWS,
        SYSTOLIC_RESTING,
        SYSTOLIC_RULES,
        SystolicArray,
        SystolicConventions,
        SystolicCounts,
        SystolicMemories,
        SystolicWords,
    )
    from tilewright.cost.systolic.rounds import RoundLatency, Sequencer, round_latency
    from tilewright.cost.systolic.traffic import systolic_words
    from tilewright.cost.tables import CostBatch, LayerCosts, Needs
    from tilewright.cost.vector import UNIT, VectorModel, VectorShare, VectorWork, vector_shares, vector_work

__all__ = [
    "ARRAY_OBJECTIVES",
    "ARRAY_SPACES",
    "COMPUTE",
    "DISTRIBUTED",
    "DRAM_MEMORIES",
    "ENERGY",
    "FIXED_ARRAYS",
    "KINDS",
    "MONOLITHIC",
    "NOTHING",
    "RECONFIGURABLE_ARRAYS",
    "SAGAR",
    "SCALE_SIM",
    "SCALE_SIM_PAPER",
    "STALL_FREE",
    "SUMMATIONS",
    "SYSTOLIC_ASSUMPTIONS",
    "SYSTOLIC_CONVENTIONS",
    "SYSTOLIC_DATAFLOWS",
    "SYSTOLIC_RESTING",
    "SYSTOLIC_RULES",
    "TIE_RULE",
    "UNIT",
    "ArrayConfiguration",
    "ArrayEnergy",
    "BestConfigurations",
    "BoundBatch",
    "Columns",
    "Cost",
    "CostBatch",
    "Count",
    "CycleLimit",
    "DenseModel",
    "Expected",
    "Explanation",
    "FigureExplanation",
    "FusedCost",
    "FusedShare",
    "HardwareBatch",
    "KeptBounds",
    "LayerCosts",
    "LowerBounds",
    "MemoryTraffic",
    "Needs",
    "NetworkModel",
    "PartitionEffects",
    "PartitionedCounts",
    "PartitionedEnergy",
    "ReconfigurableArray",
    "Relief",
    "Roofline",
    "RoundLatency",
    "Sequencer",
    "SparseModel",
    "SystolicArray",
    "SystolicConventions",
    "SystolicCounts",
    "SystolicLayer",
    "SystolicMemories",
    "SystolicProduct",
    "SystolicWords",
    "Totals",
    "Traffic",
    "VectorModel",
    "VectorShare",
    "VectorWork",
    "array_energy",
    "best_configurations",
    "best_of_box",
    "box_bounds",
    "compile_aside",
    "cost_model",
    "explain",
    "fused_cost",
    "fused_shares",
    "hardware_bounds",
    "joined_cost",
    "kept_bounds",
    "kept_least",
    "layer_bounds",
    "left_of",
    "likely_chains",
    "limited_by",
    "limits_of",
    "network_sum",
    "outermost_bytes",
    "partitioned_counts",
    "partitioned_cycles",
    "partitioned_energy",
    "reconfigurable_array",
    "relief",
    "roofline",
    "round_latency",
    "space_bounds",
    "sparse_cost",
    "systolic_array",
    "systolic_counts",
    "systolic_energy",
    "systolic_layer",
    "systolic_runtime",
    "systolic_words",
    "vector_shares",
    "vector_work",
    "with_twice",
]

__getattr__ = late_names(__name__)
