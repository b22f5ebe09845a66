"""Studies of searches: which mapper is better and how surely, which axis matters, what the space looks like."""

from tilewright.search.studies.axes import (
    AXES,
    AxisStudy,
    axis_sets,
    axis_space,
    base_mapping,
    given_mapping,
    label,
    study_axes,
)
from tilewright.search.studies.contest import (
    CROSSOVER_ONLY,
    Attempt,
    Band,
    Contender,
    Contest,
    crossover_contenders,
    parse_contenders,
)
from tilewright.search.studies.holding import Terms, run_contest
from tilewright.search.studies.landscape import (
    ENCODING,
    Landscape,
    Points,
    encode,
    feature_names,
    study_landscape,
)
from tilewright.search.studies.orders import OrderGroup, OrderStudy, study_orders
from tilewright.search.studies.statistics import CONFIDENCE, Comparison, Interval, compare, holm, median_interval

__all__ = [
    "AXES",
    "CONFIDENCE",
    "CROSSOVER_ONLY",
    "ENCODING",
    "Attempt",
    "AxisStudy",
    "Band",
    "Comparison",
    "Contender",
    "Contest",
    "Interval",
    "Landscape",
    "OrderGroup",
    "OrderStudy",
    "Points",
    "Terms",
    "axis_sets",
    "axis_space",
    "base_mapping",
    "compare",
    "crossover_contenders",
    "encode",
    "feature_names",
    "given_mapping",
    "holm",
    "label",
    "median_interval",
    "parse_contenders",
    "run_contest",
    "study_axes",
    "study_landscape",
    "study_orders",
]
