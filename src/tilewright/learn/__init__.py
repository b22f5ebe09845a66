"""Networks and training loops; knows nothing of accelerators. Loads PyTorch (extra ``learn``)."""

from tilewright.learn.agents import train_agent
from tilewright.learn.classifier import Classifier, TrainedClassifier, calibration_error, reliability, train_classifier
from tilewright.learn.epochs import Epoch, TrainingOptions, TrainingWatch
from tilewright.learn.policy import RecurrentPolicy
from tilewright.learn.regressor import Regressor, Scale, load_regressor, save_regressor
from tilewright.learn.sequences import SEQUENCE_KINDS, Episodes, SequenceModel, SequenceOptions, train_sequences
from tilewright.learn.terms import TermNetwork, load_classifier, train_terms
from tilewright.learn.threads import one_thread
from tilewright.learn.training import Trained, rank_correlation, train

__all__ = [
    "SEQUENCE_KINDS",
    "Classifier",
    "Episodes",
    "Epoch",
    "RecurrentPolicy",
    "Regressor",
    "Scale",
    "SequenceModel",
    "SequenceOptions",
    "TermNetwork",
    "Trained",
    "TrainedClassifier",
    "TrainingOptions",
    "TrainingWatch",
    "calibration_error",
    "load_classifier",
    "load_regressor",
    "one_thread",
    "rank_correlation",
    "reliability",
    "save_regressor",
    "train",
    "train_agent",
    "train_classifier",
    "train_sequences",
    "train_terms",
]
