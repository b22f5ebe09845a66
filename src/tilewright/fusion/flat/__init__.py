"""Which parts of an attention stay on the chip? FLAT (Kao 2022, appendix A), and online softmax beyond it."""

from tilewright.base import offered
from tilewright.fusion.flat.blocks import FLAT_MODELS as FLAT_MODELS
from tilewright.fusion.flat.blocks import Attention as Attention
from tilewright.fusion.flat.blocks import AttentionBlock as AttentionBlock
from tilewright.fusion.flat.blocks import Product as Product
from tilewright.fusion.flat.blocks import attentions as attentions
from tilewright.fusion.flat.blocks import flat_block as flat_block
from tilewright.fusion.flat.blocks import other_products as other_products
from tilewright.fusion.flat.bounds import AttentionBound as AttentionBound
from tilewright.fusion.flat.bounds import attention_bound as attention_bound
from tilewright.fusion.flat.bounds import forced_words as forced_words
from tilewright.fusion.flat.costs import PlanCosts as PlanCosts
from tilewright.fusion.flat.costs import TilePlans as TilePlans
from tilewright.fusion.flat.costs import fused_costs as fused_costs
from tilewright.fusion.flat.costs import unfused_costs as unfused_costs
from tilewright.fusion.flat.dataflows import DATAFLOWS as DATAFLOWS
from tilewright.fusion.flat.dataflows import DataflowCost as DataflowCost
from tilewright.fusion.flat.dataflows import block_cost as block_cost
from tilewright.fusion.flat.dataflows import dataflow_cost as dataflow_cost
from tilewright.fusion.flat.dataflows import product_cost as product_cost
from tilewright.fusion.flat.dataflows import table_words as table_words
from tilewright.fusion.flat.explaining import AttentionCounts as AttentionCounts
from tilewright.fusion.flat.machines import FlatMachine as FlatMachine
from tilewright.fusion.flat.machines import flat_machine as flat_machine
from tilewright.fusion.flat.networks import AttentionFusion as AttentionFusion
from tilewright.fusion.flat.networks import FusionGoal as FusionGoal
from tilewright.fusion.flat.networks import attention_terms as attention_terms
from tilewright.fusion.flat.networks import attention_yaml as attention_yaml
from tilewright.fusion.flat.networks import fuse_attention as fuse_attention
from tilewright.fusion.flat.rerun import RerunCost as RerunCost
from tilewright.fusion.flat.rerun import RerunPlan as RerunPlan
from tilewright.fusion.flat.rerun import rerun_best as rerun_best
from tilewright.fusion.flat.rerun import rerun_cost as rerun_cost
from tilewright.fusion.flat.search import SPACES as SPACES
from tilewright.fusion.flat.search import AttentionCost as AttentionCost
from tilewright.fusion.flat.search import AttentionPlan as AttentionPlan
from tilewright.fusion.flat.search import TilePlan as TilePlan
from tilewright.fusion.flat.search import best_plan as best_plan
from tilewright.fusion.flat.search import fused_space as fused_space
from tilewright.fusion.flat.search import given_plan as given_plan

__all__ = list(offered(__name__))
