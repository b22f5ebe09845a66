"""Networks and training loops; knows nothing of accelerators. Loads PyTorch (extra ``learn``)."""

from tilewright.base import offered
from tilewright.learn.agents import train_agent as train_agent
from tilewright.learn.classifier import Classifier as Classifier
from tilewright.learn.classifier import TrainedClassifier as TrainedClassifier
from tilewright.learn.classifier import calibration_error as calibration_error
from tilewright.learn.classifier import reliability as reliability
from tilewright.learn.classifier import train_classifier as train_classifier
from tilewright.learn.epochs import Epoch as Epoch
from tilewright.learn.epochs import TrainingOptions as TrainingOptions
from tilewright.learn.epochs import TrainingWatch as TrainingWatch
from tilewright.learn.policy import RecurrentPolicy as RecurrentPolicy
from tilewright.learn.regressor import Regressor as Regressor
from tilewright.learn.regressor import Scale as Scale
from tilewright.learn.regressor import load_regressor as load_regressor
from tilewright.learn.regressor import save_regressor as save_regressor
from tilewright.learn.sequences import SEQUENCE_KINDS as SEQUENCE_KINDS
from tilewright.learn.sequences import Episodes as Episodes
from tilewright.learn.sequences import SequenceModel as SequenceModel
from tilewright.learn.sequences import SequenceOptions as SequenceOptions
from tilewright.learn.sequences import train_sequences as train_sequences
from tilewright.learn.terms import TermNetwork as TermNetwork
from tilewright.learn.terms import load_classifier as load_classifier
from tilewright.learn.terms import train_terms as train_terms
from tilewright.learn.threads import one_thread as one_thread
from tilewright.learn.training import Trained as Trained
from tilewright.learn.training import rank_correlation as rank_correlation
from tilewright.learn.training import train as train

__all__ = list(offered(__name__))
