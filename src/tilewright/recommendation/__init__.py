"""Which configuration, without searching? Of arrays: exactly, or by networks that learnt; mappings: by like layers."""

from tilewright.base import offered
from tilewright.recommendation.advice import Advice as Advice
from tilewright.recommendation.advice import advise as advise
from tilewright.recommendation.baselines import BASELINES as BASELINES
from tilewright.recommendation.choices import Choices as Choices
from tilewright.recommendation.hardware import AdviserCore as AdviserCore
from tilewright.recommendation.hardware import cycles_on_cells as cycles_on_cells
from tilewright.recommendation.labels import SAMPLERS as SAMPLERS
from tilewright.recommendation.labels import Confusion as Confusion
from tilewright.recommendation.labels import LabelledProducts as LabelledProducts
from tilewright.recommendation.labels import ProductSample as ProductSample
from tilewright.recommendation.labels import Score as Score
from tilewright.recommendation.labels import best_fixed as best_fixed
from tilewright.recommendation.labels import confusions as confusions
from tilewright.recommendation.labels import label as label
from tilewright.recommendation.labels import regrets as regrets
from tilewright.recommendation.labels import score as score
from tilewright.recommendation.mappings import GUESSES as GUESSES
from tilewright.recommendation.mappings import LIKE as LIKE
from tilewright.recommendation.mappings import NEAREST as NEAREST
from tilewright.recommendation.mappings import first_guess as first_guess
from tilewright.recommendation.networks import NETWORKS as NETWORKS
from tilewright.recommendation.networks import Fallback as Fallback
from tilewright.recommendation.networks import NetworkKind as NetworkKind
from tilewright.recommendation.networks import Predictions as Predictions
from tilewright.recommendation.networks import Recommender as Recommender
from tilewright.recommendation.networks import TrainedRecommender as TrainedRecommender
from tilewright.recommendation.networks import load_recommender as load_recommender
from tilewright.recommendation.networks import train_recommender as train_recommender
from tilewright.recommendation.networks import training_options as training_options

__all__ = list(offered(__name__))
