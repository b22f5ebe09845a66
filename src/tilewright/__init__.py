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

from tilewright.base import late_names, offered_as

if TYPE_CHECKING:
    from tilewright.api import AllocationRun as AllocationRun
    from tilewright.api import ArrayRun as ArrayRun
    from tilewright.api import CheckedClaim as CheckedClaim
    from tilewright.api import DesignRun as DesignRun
    from tilewright.api import Evaluation as Evaluation
    from tilewright.api import FusedEvaluation as FusedEvaluation
    from tilewright.api import LayersRun as LayersRun
    from tilewright.api import MachineSweep as MachineSweep
    from tilewright.api import MicroBatchRun as MicroBatchRun
    from tilewright.api import PackingRun as PackingRun
    from tilewright.api import Pipeline as Pipeline
    from tilewright.api import Recommendation as Recommendation
    from tilewright.api import Run as Run
    from tilewright.api import SchedulePlan as SchedulePlan
    from tilewright.api import ScratchpadPlan as ScratchpadPlan
    from tilewright.api import TreeRun as TreeRun
    from tilewright.api import allocate as allocate
    from tilewright.api import array as array
    from tilewright.api import bounds as bounds
    from tilewright.api import compare as compare
    from tilewright.api import design as design
    from tilewright.api import evaluate as evaluate
    from tilewright.api import evaluate_fused as evaluate_fused
    from tilewright.api import explore as explore
    from tilewright.api import flexibility as flexibility
    from tilewright.api import fuse as fuse
    from tilewright.api import load_accelerator as load_accelerator
    from tilewright.api import load_design_space as load_design_space
    from tilewright.api import load_mapping as load_mapping
    from tilewright.api import load_network as load_network
    from tilewright.api import map_network as map
    from tilewright.api import map_space as map_space
    from tilewright.api import open_plan as open_plan
    from tilewright.api import open_run as open_run
    from tilewright.api import open_schedule as open_schedule
    from tilewright.api import pack as pack
    from tilewright.api import pick_operator as pick_operator
    from tilewright.api import pipeline as pipeline
    from tilewright.api import recommend as recommend
    from tilewright.api import replay as replay
    from tilewright.api import schedule as schedule
    from tilewright.api import study_axes as study_axes
    from tilewright.api import study_landscape as study_landscape
    from tilewright.api import study_orders as study_orders
    from tilewright.api import sweep as sweep
    from tilewright.api import systolic as systolic
    from tilewright.api import validate as validate
    from tilewright.api import vector_work as vector_work
    from tilewright.api import verify as verify
    from tilewright.base import InputError as InputError
    from tilewright.base.version import __version__ as __version__
    from tilewright.cost import explain as explain
    from tilewright.hardware import Accelerator as Accelerator
    from tilewright.hardware import describe as describe
    from tilewright.hardware import dump_accelerator as dump_accelerator
    from tilewright.mapping import Constraints as Constraints
    from tilewright.mapping import Mapping as Mapping
    from tilewright.mapping import MapSpace as MapSpace
    from tilewright.mapping import dataflow as dataflow
    from tilewright.mapping import dataflow_constraints as dataflow_constraints
    from tilewright.mapping import dump_constraints as dump_constraints
    from tilewright.mapping import dump_mapping as dump_mapping
    from tilewright.mapping import dump_space as dump_space
    from tilewright.mapping import is_legal as is_legal
    from tilewright.mapping import load_constraints as load_constraints
    from tilewright.mapping import load_space as load_space
    from tilewright.mapping import render as render
    from tilewright.mapping import repair as repair
    from tilewright.mapping import violations as violations
    from tilewright.search import Budget as Budget
    from tilewright.store import Store as Store
    from tilewright.workload import Graph as Graph
    from tilewright.workload import Operator as Operator
    from tilewright.workload import convolution as convolution
    from tilewright.workload import depthwise as depthwise
    from tilewright.workload import einsum as einsum
    from tilewright.workload import matmul as matmul
    from tilewright.workload import transposed_convolution as transposed_convolution

__getattr__, __all__ = late_names(__name__, offered_as)
__all__ += ["map"]

def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
