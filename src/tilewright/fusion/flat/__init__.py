"""Which parts of an attention stay on the chip? FLAT (Kao 2022, appendix A), and online softmax beyond it."""

from tilewright.fusion.flat.blocks import (
    FLAT_MODELS,
    Attention,
    AttentionBlock,
    Product,
    attentions,
    flat_block,
    other_products,
)
from tilewright.fusion.flat.bounds import AttentionBound, attention_bound, forced_words
from tilewright.fusion.flat.costs import PlanCosts, fused_costs, unfused_costs
from tilewright.fusion.flat.dataflows import (
    DATAFLOWS,
    DataflowCost,
    block_cost,
    dataflow_cost,
    product_cost,
    table_words,
)
from tilewright.fusion.flat.explaining import AttentionCounts
from tilewright.fusion.flat.machines import FlatMachine, flat_machine
from tilewright.fusion.flat.networks import AttentionFusion, FusionGoal, fuse_attention
from tilewright.fusion.flat.plan_files import attention_terms, attention_yaml, read_attention_plans
from tilewright.fusion.flat.rerun import RerunCost, RerunPlan, rerun_best, rerun_cost
from tilewright.fusion.flat.search import (
    FLAT_OBJECTIVES,
    SPACES,
    AttentionCost,
    AttentionPlan,
    TilePlan,
    best_plan,
    fused_space,
    given_plan,
)
from tilewright.fusion.flat.tiles import TilePlans

__all__ = [
    "DATAFLOWS",
    "FLAT_MODELS",
    "FLAT_OBJECTIVES",
    "SPACES",
    "Attention",
    "AttentionBlock",
    "AttentionBound",
    "AttentionCost",
    "AttentionCounts",
    "AttentionFusion",
    "AttentionPlan",
    "DataflowCost",
    "FlatMachine",
    "FusionGoal",
    "PlanCosts",
    "Product",
    "RerunCost",
    "RerunPlan",
    "TilePlan",
    "TilePlans",
    "attention_bound",
    "attention_terms",
    "attention_yaml",
    "attentions",
    "best_plan",
    "block_cost",
    "dataflow_cost",
    "flat_block",
    "flat_machine",
    "forced_words",
    "fuse_attention",
    "fused_costs",
    "fused_space",
    "given_plan",
    "other_products",
    "product_cost",
    "read_attention_plans",
    "rerun_best",
    "rerun_cost",
    "table_words",
    "unfused_costs",
]
