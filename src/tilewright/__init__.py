"""Tilewright maps tensor workloads onto DNN accelerators, and says how far from the optimum it can still be.

Names load when first used, so that ``import tilewright`` costs next to nothing.

Examples
--------
>>> import tilewright as tw
>>> operator = tw.matmul("scores", m=128, n=128, k=64)
>>> tw.bounds(operator, arch="tpu-like")["scores"].macs
1048576
"""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.api import (
        AllocationRun,
        ArrayRun,
        CheckedClaim,
        DesignRun,
        Evaluation,
        FusedEvaluation,
        LayersRun,
        MachineSweep,
        MicroBatchRun,
        PackingRun,
        Pipeline,
        Recommendation,
        Run,
        SchedulePlan,
        ScratchpadPlan,
        TreeRun,
        allocate,
        array,
        bounds,
        compare,
        design,
        evaluate,
        evaluate_fused,
        explore,
        flexibility,
        fuse,
        load_accelerator,
        load_design_space,
        load_mapping,
        load_network,
        map_space,
        open_plan,
        open_run,
        open_schedule,
        pack,
        pick_operator,
        pipeline,
        recommend,
        replay,
        schedule,
        study_axes,
        study_landscape,
        study_orders,
        sweep,
        systolic,
        validate,
        vector_work,
        verify,
    )
    from tilewright.api import map_network as map
    from tilewright.base import InputError
    from tilewright.base.version import __version__
    from tilewright.cost import explain
    from tilewright.hardware import Accelerator, describe, dump_accelerator
    from tilewright.mapping import (
        Constraints,
        Mapping,
        MapSpace,
        dataflow,
        dataflow_constraints,
        dump_constraints,
        dump_mapping,
        dump_space,
        is_legal,
        load_constraints,
        load_space,
        render,
        repair,
        violations,
    )
    from tilewright.search import Budget
    from tilewright.store import Store
    from tilewright.workload import Graph, Operator, convolution, depthwise, einsum, matmul, transposed_convolution

__all__ = [
    "Accelerator",
    "AllocationRun",
    "ArrayRun",
    "Budget",
    "CheckedClaim",
    "Constraints",
    "DesignRun",
    "Evaluation",
    "FusedEvaluation",
    "Graph",
    "InputError",
    "LayersRun",
    "MachineSweep",
    "MapSpace",
    "Mapping",
    "MicroBatchRun",
    "Operator",
    "PackingRun",
    "Pipeline",
    "Recommendation",
    "Run",
    "SchedulePlan",
    "ScratchpadPlan",
    "Store",
    "TreeRun",
    "__version__",
    "allocate",
    "array",
    "bounds",
    "compare",
    "convolution",
    "dataflow",
    "dataflow_constraints",
    "depthwise",
    "describe",
    "design",
    "dump_accelerator",
    "dump_constraints",
    "dump_mapping",
    "dump_space",
    "einsum",
    "evaluate",
    "evaluate_fused",
    "explain",
    "explore",
    "flexibility",
    "fuse",
    "is_legal",
    "load_accelerator",
    "load_constraints",
    "load_design_space",
    "load_mapping",
    "load_network",
    "load_space",
    "map",
    "map_space",
    "matmul",
    "open_plan",
    "open_run",
    "open_schedule",
    "pack",
    "pick_operator",
    "pipeline",
    "recommend",
    "render",
    "repair",
    "replay",
    "schedule",
    "study_axes",
    "study_landscape",
    "study_orders",
    "sweep",
    "systolic",
    "transposed_convolution",
    "validate",
    "vector_work",
    "verify",
    "violations",
]

__getattr__ = late_names(__name__)

def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
