"""Tilewright from Python: the verbs of the command line as functions. Modules load when first used."""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.api.allocating import AllocationRun
    from tilewright.api.arrays import ArrayRun, array
    from tilewright.api.catalogue import (
        DEFAULT_MAPPER,
        Option,
        mapper_extra,
        mapper_names,
        mapper_options,
        mapper_summary,
        mappers_page,
        member_options,
        member_summary,
    )
    from tilewright.api.converting import convert, read_foreign
    from tilewright.api.designing import DesignRun, LayersRun, design
    from tilewright.api.evaluation import Evaluation, bounds, case_cost, evaluate, vector_work
    from tilewright.api.exploring import explore, flexibility
    from tilewright.api.fused_evaluation import FusedEvaluation, evaluate_fused, fused_counts, fused_nest
    from tilewright.api.fusing import (
        FUSION_SPACES,
        FusedAttention,
        attention_counts,
        evaluate_saved,
        fuse,
        fused_space_of,
    )
    from tilewright.api.inputs import (
        load_accelerator,
        load_design_space,
        load_mapping,
        load_network,
        load_target,
        load_together,
        pick_operator,
        refuse_density,
    )
    from tilewright.api.micro_batching import MicroBatchRun
    from tilewright.api.packing import PackingRun, pack
    from tilewright.api.pipelines import Pipeline, pipeline
    from tilewright.api.places import ready_place
    from tilewright.api.proving import CheckedClaim, is_run, verify
    from tilewright.api.recommending import (
        LayerAdvice,
        Recommendation,
        RecommenderTraining,
        find_array,
        recommend,
        train_recommender,
    )
    from tilewright.api.replaying import Replayed, replay, replay_effort
    from tilewright.api.residing import ScratchpadPlan, allocate, open_plan
    from tilewright.api.runs import Broken, Run, map_network, open_run
    from tilewright.api.scheduling import JobPlan, SchedulePlan, open_schedule, schedule
    from tilewright.api.spaces import SpaceChoice, SpaceFigures, choose_space, drawn_mappings, map_space, space_figures
    from tilewright.api.studying import compare, study_axes, study_landscape, study_orders
    from tilewright.api.sweeping import MachineSweep, side_by_side, sweep
    from tilewright.api.systolics import SystolicRow, SystolicRun, systolic
    from tilewright.api.text import Watcher
    from tilewright.api.training import TrainedFuser, TrainedSurrogate, train_fuser, train_surrogate
    from tilewright.api.tree_fusing import TreeRun
    from tilewright.validation import validate

__all__ = [
    "DEFAULT_MAPPER",
    "FUSION_SPACES",
    "AllocationRun",
    "ArrayRun",
    "Broken",
    "CheckedClaim",
    "DesignRun",
    "Evaluation",
    "FusedAttention",
    "FusedEvaluation",
    "JobPlan",
    "LayerAdvice",
    "LayersRun",
    "MachineSweep",
    "MicroBatchRun",
    "Option",
    "PackingRun",
    "Pipeline",
    "Recommendation",
    "RecommenderTraining",
    "Replayed",
    "Run",
    "SchedulePlan",
    "ScratchpadPlan",
    "SpaceChoice",
    "SpaceFigures",
    "SystolicRow",
    "SystolicRun",
    "TrainedFuser",
    "TrainedSurrogate",
    "TreeRun",
    "Watcher",
    "allocate",
    "array",
    "attention_counts",
    "bounds",
    "case_cost",
    "choose_space",
    "compare",
    "convert",
    "design",
    "drawn_mappings",
    "evaluate",
    "evaluate_fused",
    "evaluate_saved",
    "explore",
    "find_array",
    "flexibility",
    "fuse",
    "fused_counts",
    "fused_nest",
    "fused_space_of",
    "is_run",
    "load_accelerator",
    "load_design_space",
    "load_mapping",
    "load_network",
    "load_target",
    "load_together",
    "map_network",
    "map_space",
    "mapper_extra",
    "mapper_names",
    "mapper_options",
    "mapper_summary",
    "mappers_page",
    "member_options",
    "member_summary",
    "open_plan",
    "open_run",
    "open_schedule",
    "pack",
    "pick_operator",
    "pipeline",
    "read_foreign",
    "ready_place",
    "recommend",
    "refuse_density",
    "replay",
    "replay_effort",
    "schedule",
    "side_by_side",
    "space_figures",
    "study_axes",
    "study_landscape",
    "study_orders",
    "sweep",
    "systolic",
    "train_fuser",
    "train_recommender",
    "train_surrogate",
    "validate",
    "vector_work",
    "verify",
]

__getattr__ = late_names(__name__)
