"""Which mapping? The one search loop, the mappers, objectives and budgets."""

from tilewright.search import mappers
from tilewright.search.bounding import Bounding, KeptBounding, score_bound
from tilewright.search.boxes import BlackBox, Optimiser, PointSearch, Problem, black_box
from tilewright.search.checkpoint import Resumable, State, load_checkpoint, save_checkpoint
from tilewright.search.front import Front, FrontPoint, first_of_front, joined, read_front
from tilewright.search.hull import hull_corners
from tilewright.search.layers import largest_first
from tilewright.search.mapper import (
    MAPPERS,
    Count,
    Mapper,
    MapperOptions,
    Natural,
    Options,
    Share,
    Task,
    preset_options,
    read_options,
)
from tilewright.search.mappers.gamma.paper import Decoding, Genomes
from tilewright.search.merged_fronts import MergedFront, network_front
from tilewright.search.network import search_network
from tilewright.search.objective import METRICS, Constraint, Metric, Objective, Scorer, Term
from tilewright.search.offspring import Offspring
from tilewright.search.pipeline import Pace, PipelineFigures, PipelineLayer, PipelineResult, search_pipeline
from tilewright.search.plans import PlanSession
from tilewright.search.race import search_flexible, search_spaces
from tilewright.search.records import (
    Budget,
    Improvement,
    LayerResult,
    NetworkResult,
    Progress,
    ProgressObserver,
    SearchResult,
)
from tilewright.search.run import Watch, search
from tilewright.search.scoring import CostModel
from tilewright.search.start import MOST_STARTS, Origin, Source, Start
from tilewright.search.sweep import PAPER, Densities, Sweep, SweptCosts, SweptModel
from tilewright.search.vectors import VectorSpace
from tilewright.search.warm import NEIGHBOURS, WARM_STARTS, Beginning, WarmStart, beginnings, rounds

__all__ = [
    "MAPPERS",
    "METRICS",
    "MOST_STARTS",
    "NEIGHBOURS",
    "PAPER",
    "WARM_STARTS",
    "Beginning",
    "BlackBox",
    "Bounding",
    "Budget",
    "Constraint",
    "CostModel",
    "Count",
    "Decoding",
    "Densities",
    "Front",
    "FrontPoint",
    "Genomes",
    "Improvement",
    "KeptBounding",
    "LayerResult",
    "Mapper",
    "MapperOptions",
    "MergedFront",
    "Metric",
    "Natural",
    "NetworkResult",
    "Objective",
    "Offspring",
    "Optimiser",
    "Options",
    "Origin",
    "Pace",
    "PipelineFigures",
    "PipelineLayer",
    "PipelineResult",
    "PlanSession",
    "PointSearch",
    "Problem",
    "Progress",
    "ProgressObserver",
    "Resumable",
    "Scorer",
    "SearchResult",
    "Share",
    "Source",
    "Start",
    "State",
    "Sweep",
    "SweptCosts",
    "SweptModel",
    "Task",
    "Term",
    "VectorSpace",
    "WarmStart",
    "Watch",
    "beginnings",
    "black_box",
    "first_of_front",
    "hull_corners",
    "joined",
    "largest_first",
    "load_checkpoint",
    "mappers",
    "network_front",
    "preset_options",
    "read_front",
    "read_options",
    "rounds",
    "save_checkpoint",
    "score_bound",
    "search",
    "search_flexible",
    "search_network",
    "search_pipeline",
    "search_spaces",
]
