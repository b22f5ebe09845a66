"""Trees of fused groups (docs/concepts.md): which operators of a network run together, in what shared loops."""

from tilewright.fusion.trees.bounds import TreeBounds, tree_bounds
from tilewright.fusion.trees.groups import GroupPlan, plan_group
from tilewright.fusion.trees.joining import GroupLimits
from tilewright.fusion.trees.nests import NestEffort
from tilewright.fusion.trees.network import TreeCost, TreeGoal, TreeProblem
from tilewright.fusion.trees.planning import TreeSearch, fuse_trees
from tilewright.fusion.trees.plans import FusionPlan, PlannedGroup

__all__ = [
    "FusionPlan",
    "GroupLimits",
    "GroupPlan",
    "NestEffort",
    "PlannedGroup",
    "TreeBounds",
    "TreeCost",
    "TreeGoal",
    "TreeProblem",
    "TreeSearch",
    "fuse_trees",
    "plan_group",
    "tree_bounds",
]
