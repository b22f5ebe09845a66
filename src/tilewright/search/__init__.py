"""Which mapping? The one search loop, the mappers, objectives and budgets."""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.search.bounding import Bounding as Bounding
    from tilewright.search.bounding import KeptBounding as KeptBounding
    from tilewright.search.boxes import BlackBox as BlackBox
    from tilewright.search.boxes import Optimiser as Optimiser
    from tilewright.search.boxes import PointSearch as PointSearch
    from tilewright.search.boxes import Problem as Problem
    from tilewright.search.boxes import black_box as black_box
    from tilewright.search.checkpoint import Resumable as Resumable
    from tilewright.search.checkpoint import State as State
    from tilewright.search.checkpoint import load_checkpoint as load_checkpoint
    from tilewright.search.checkpoint import save_checkpoint as save_checkpoint
    from tilewright.search.front import Front as Front
    from tilewright.search.front import FrontPoint as FrontPoint
    from tilewright.search.front import first_of_front as first_of_front
    from tilewright.search.front import joined as joined
    from tilewright.search.front import read_front as read_front
    from tilewright.search.hull import hull_corners as hull_corners
    from tilewright.search.layers import largest_first as largest_first
    from tilewright.search.mapper import MAPPERS as MAPPERS
    from tilewright.search.mapper import Count as Count
    from tilewright.search.mapper import Mapper as Mapper
    from tilewright.search.mapper import MapperOptions as MapperOptions
    from tilewright.search.mapper import Natural as Natural
    from tilewright.search.mapper import Options as Options
    from tilewright.search.mapper import Share as Share
    from tilewright.search.mapper import Task as Task
    from tilewright.search.mapper import preset_options as preset_options
    from tilewright.search.mapper import read_options as read_options
    from tilewright.search.mappers.gamma.paper import Decoding as Decoding
    from tilewright.search.mappers.gamma.paper import GenomeBreeding as GenomeBreeding
    from tilewright.search.mappers.gamma.paper import Genomes as Genomes
    from tilewright.search.merged_fronts import MergedFront as MergedFront
    from tilewright.search.merged_fronts import network_front as network_front
    from tilewright.search.network import search_network as search_network
    from tilewright.search.objective import METRICS as METRICS
    from tilewright.search.objective import Constraint as Constraint
    from tilewright.search.objective import Metric as Metric
    from tilewright.search.objective import Objective as Objective
    from tilewright.search.objective import Scorer as Scorer
    from tilewright.search.objective import Term as Term
    from tilewright.search.offspring import Offspring as Offspring
    from tilewright.search.pipeline import Pace as Pace
    from tilewright.search.pipeline import PipelineFigures as PipelineFigures
    from tilewright.search.pipeline import PipelineLayer as PipelineLayer
    from tilewright.search.pipeline import PipelineResult as PipelineResult
    from tilewright.search.pipeline import search_pipeline as search_pipeline
    from tilewright.search.plan_members import AgentMethod as AgentMethod
    from tilewright.search.plan_members import PointPlans as PointPlans
    from tilewright.search.plan_members import register_points as register_points
    from tilewright.search.plans import PlanMethod as PlanMethod
    from tilewright.search.plans import PlanSession as PlanSession
    from tilewright.search.race import search_flexible as search_flexible
    from tilewright.search.race import search_spaces as search_spaces
    from tilewright.search.records import Budget as Budget
    from tilewright.search.records import Improvement as Improvement
    from tilewright.search.records import LayerResult as LayerResult
    from tilewright.search.records import NetworkResult as NetworkResult
    from tilewright.search.records import Progress as Progress
    from tilewright.search.records import ProgressObserver as ProgressObserver
    from tilewright.search.records import SearchResult as SearchResult
    from tilewright.search.run import Watch as Watch
    from tilewright.search.run import search as search
    from tilewright.search.scoring import CostModel as CostModel
    from tilewright.search.start import MOST_STARTS as MOST_STARTS
    from tilewright.search.start import Origin as Origin
    from tilewright.search.start import Source as Source
    from tilewright.search.start import Start as Start
    from tilewright.search.sweep import PAPER as PAPER
    from tilewright.search.sweep import Densities as Densities
    from tilewright.search.sweep import Sweep as Sweep
    from tilewright.search.sweep import SweptCosts as SweptCosts
    from tilewright.search.sweep import SweptModel as SweptModel
    from tilewright.search.vectors import VectorSpace as VectorSpace
    from tilewright.search.warm import NEIGHBOURS as NEIGHBOURS
    from tilewright.search.warm import WARM_STARTS as WARM_STARTS
    from tilewright.search.warm import Beginning as Beginning
    from tilewright.search.warm import WarmStart as WarmStart
    from tilewright.search.warm import beginnings as beginnings
    from tilewright.search.warm import rounds as rounds

__getattr__, __all__ = late_names(__name__)
