"""Micro-batches (DNNFuser, Kao, Huang and Krishna 2022): the problem, costs, bounds, the proven best, and mappers."""

from tilewright.base import offered
from tilewright.fusion.microbatch import mappers  # noqa: F401  (registers)
from tilewright.fusion.microbatch.costs import MicroBatchBounds as MicroBatchBounds
from tilewright.fusion.microbatch.costs import bound_of as bound_of
from tilewright.fusion.microbatch.costs import bounds as bounds
from tilewright.fusion.microbatch.costs import figures as figures
from tilewright.fusion.microbatch.costs import of_groups as of_groups
from tilewright.fusion.microbatch.costs import repaired as repaired
from tilewright.fusion.microbatch.costs import scores as scores
from tilewright.fusion.microbatch.exact import GroupSearch as GroupSearch
from tilewright.fusion.microbatch.learned import Demonstration as Demonstration
from tilewright.fusion.microbatch.learned import demonstrations as demonstrations
from tilewright.fusion.microbatch.learned import load_fuser as load_fuser
from tilewright.fusion.microbatch.learned import speedups as speedups
from tilewright.fusion.microbatch.learned import train_fuser as train_fuser
from tilewright.fusion.microbatch.learned import written as written
from tilewright.fusion.microbatch.plans import MicroBatchCost as MicroBatchCost
from tilewright.fusion.microbatch.plans import MicroBatchCounts as MicroBatchCounts
from tilewright.fusion.microbatch.plans import MicroBatchGroup as MicroBatchGroup
from tilewright.fusion.microbatch.plans import MicroBatchPlan as MicroBatchPlan
from tilewright.fusion.microbatch.plans import micro_batch_terms as micro_batch_terms
from tilewright.fusion.microbatch.plans import read_micro_batches as read_micro_batches
from tilewright.fusion.microbatch.problem import OVER as OVER
from tilewright.fusion.microbatch.problem import SYNC as SYNC
from tilewright.fusion.microbatch.problem import ChainEntry as ChainEntry
from tilewright.fusion.microbatch.problem import FusedMachine as FusedMachine
from tilewright.fusion.microbatch.problem import MicroBatchProblem as MicroBatchProblem
from tilewright.fusion.microbatch.session import FUSION_MAPPERS as FUSION_MAPPERS
from tilewright.fusion.microbatch.session import Fused as Fused
from tilewright.fusion.microbatch.session import FusionEpisode as FusionEpisode
from tilewright.fusion.microbatch.session import FusionSession as FusionSession
from tilewright.fusion.microbatch.session import fuse as fuse
from tilewright.fusion.microbatch.walk import WalkedStrategy as WalkedStrategy
from tilewright.fusion.microbatch.walk import walk_strategy as walk_strategy

__all__ = list(offered(__name__))
