"""Networks and training loops; knows nothing of accelerators. Loads PyTorch (extra ``learn``)."""

from tilewright.learn.agents import train_agent
from tilewright.learn.policy import RecurrentPolicy
from tilewright.learn.regressor import Regressor, Scale, load_regressor, save_regressor
from tilewright.learn.sequences import SEQUENCE_KINDS, Episodes, SequenceModel, SequenceOptions, train_sequences
from tilewright.learn.threads import one_thread
from tilewright.learn.training import Epoch, Trained, TrainingOptions, rank_correlation, train

__all__ = [
    "SEQUENCE_KINDS",
    "Episodes",
    "Epoch",
    "RecurrentPolicy",
    "Regressor",
    "Scale",
    "SequenceModel",
    "SequenceOptions",
    "Trained",
    "TrainingOptions",
    "load_regressor",
    "one_thread",
    "rank_correlation",
    "save_regressor",
    "train",
    "train_agent",
    "train_sequences",
]
