"""Micro-batches (DNNFuser, Kao, Huang and Krishna 2022): the problem, costs, bounds, the proven best, and mappers."""

from tilewright.fusion.microbatch import mappers  # noqa: F401  (registers)
from tilewright.fusion.microbatch.chain import ChainEntry, chain
from tilewright.fusion.microbatch.costs import (
    GROUP_FIGURES,
    MicroBatchBounds,
    bound_of,
    bounds,
    figures,
    of_groups,
    repaired,
    scores,
)
from tilewright.fusion.microbatch.episode import FusionEpisode
from tilewright.fusion.microbatch.exact import GroupSearch
from tilewright.fusion.microbatch.learned import (
    Demonstration,
    demonstrations,
    load_fuser,
    speedups,
    train_fuser,
    written,
)
from tilewright.fusion.microbatch.plans import (
    MicroBatchCost,
    MicroBatchGroup,
    MicroBatchPlan,
    micro_batch_terms,
    read_micro_batches,
)
from tilewright.fusion.microbatch.problem import FUSION_OBJECTIVES, OVER, SYNC, FusedMachine, MicroBatchProblem
from tilewright.fusion.microbatch.session import FUSION_MAPPERS, SAMPLES, Fused, FusionMapper, FusionSession, fuse
from tilewright.fusion.microbatch.walk import WalkedStrategy, walk_strategy

__all__ = [
    "FUSION_MAPPERS",
    "FUSION_OBJECTIVES",
    "GROUP_FIGURES",
    "OVER",
    "SAMPLES",
    "SYNC",
    "ChainEntry",
    "Demonstration",
    "Fused",
    "FusedMachine",
    "FusionEpisode",
    "FusionMapper",
    "FusionSession",
    "GroupSearch",
    "MicroBatchBounds",
    "MicroBatchCost",
    "MicroBatchGroup",
    "MicroBatchPlan",
    "MicroBatchProblem",
    "WalkedStrategy",
    "bound_of",
    "bounds",
    "chain",
    "demonstrations",
    "figures",
    "fuse",
    "load_fuser",
    "micro_batch_terms",
    "of_groups",
    "read_micro_batches",
    "repaired",
    "scores",
    "speedups",
    "train_fuser",
    "walk_strategy",
    "written",
]
