"""Studies of searches: which mapper is better and how surely, which axis matters, what the space looks like."""

from tilewright.base import offered
from tilewright.search.studies.axes import AXES as AXES
from tilewright.search.studies.axes import AxisStudy as AxisStudy
from tilewright.search.studies.axes import axis_sets as axis_sets
from tilewright.search.studies.axes import axis_space as axis_space
from tilewright.search.studies.axes import base_mapping as base_mapping
from tilewright.search.studies.axes import given_mapping as given_mapping
from tilewright.search.studies.axes import label as label
from tilewright.search.studies.axes import study_axes as study_axes
from tilewright.search.studies.contest import CROSSOVER_ONLY as CROSSOVER_ONLY
from tilewright.search.studies.contest import Attempt as Attempt
from tilewright.search.studies.contest import Band as Band
from tilewright.search.studies.contest import Contender as Contender
from tilewright.search.studies.contest import Contest as Contest
from tilewright.search.studies.contest import crossover_contenders as crossover_contenders
from tilewright.search.studies.contest import parse_contenders as parse_contenders
from tilewright.search.studies.holding import Terms as Terms
from tilewright.search.studies.holding import run_contest as run_contest
from tilewright.search.studies.landscape import ENCODING as ENCODING
from tilewright.search.studies.landscape import Landscape as Landscape
from tilewright.search.studies.landscape import Points as Points
from tilewright.search.studies.landscape import encode as encode
from tilewright.search.studies.landscape import feature_names as feature_names
from tilewright.search.studies.landscape import study_landscape as study_landscape
from tilewright.search.studies.orders import OrderGroup as OrderGroup
from tilewright.search.studies.orders import OrderStudy as OrderStudy
from tilewright.search.studies.orders import study_orders as study_orders
from tilewright.search.studies.statistics import CONFIDENCE as CONFIDENCE
from tilewright.search.studies.statistics import Comparison as Comparison
from tilewright.search.studies.statistics import Interval as Interval
from tilewright.search.studies.statistics import compare as compare
from tilewright.search.studies.statistics import holm as holm
from tilewright.search.studies.statistics import median_interval as median_interval

__all__ = list(offered(__name__))
