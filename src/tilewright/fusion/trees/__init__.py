"""Trees of fused groups (docs/concepts.md): which operators of a network run together, in what shared loops."""

from tilewright.base import offered
from tilewright.fusion.trees.bounds import TreeBounds as TreeBounds
from tilewright.fusion.trees.bounds import tree_bounds as tree_bounds
from tilewright.fusion.trees.groups import GroupPlan as GroupPlan
from tilewright.fusion.trees.groups import NestEffort as NestEffort
from tilewright.fusion.trees.joining import GroupLimits as GroupLimits
from tilewright.fusion.trees.network import TreeCost as TreeCost
from tilewright.fusion.trees.network import TreeGoal as TreeGoal
from tilewright.fusion.trees.network import TreeProblem as TreeProblem
from tilewright.fusion.trees.planning import FusionPlan as FusionPlan
from tilewright.fusion.trees.planning import PlannedGroup as PlannedGroup
from tilewright.fusion.trees.planning import TreeSearch as TreeSearch
from tilewright.fusion.trees.planning import fuse_trees as fuse_trees

__all__ = list(offered(__name__))
