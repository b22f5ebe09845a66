"""Studies of searches: which mapper is better and how surely, which axis matters, what the space looks like."""

from tilewright.search.studies.contest import (
    Attempt,
    Band,
    Contender,
    Contest,
    Kept,
    parse_contenders,
    run_contest,
)
from tilewright.search.studies.statistics import CONFIDENCE, Comparison, Interval, compare, holm, median_interval

__all__ = [
    "CONFIDENCE",
    "Attempt",
    "Band",
    "Comparison",
    "Contender",
    "Contest",
    "Interval",
    "Kept",
    "compare",
    "holm",
    "median_interval",
    "parse_contenders",
    "run_contest",
]
