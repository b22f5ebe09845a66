"""How near are our figures to those of others? Sets of reference figures, and what error is accepted."""

from tilewright.validation.accepting import Judged, Outcome, accepted_text, read_accepted
from tilewright.validation.eyeriss import EYERISS, EYERISS_ENERGY
from tilewright.validation.gemmini import GEMMINI, gemmini_cases
from tilewright.validation.nvdla import NVDLA
from tilewright.validation.oracle import ORACLE
from tilewright.validation.random_nests import random_case
from tilewright.validation.records import (
    SETS,
    Figure,
    Findings,
    Kind,
    Quantity,
    ReferenceSet,
    Summary,
    Watch,
    register,
    summary,
)
from tilewright.validation.running import CaseObserver, Scoreboard, reference_sets, validate
from tilewright.validation.scalesim import SCALESIM, ScaleSimCase, scalesim_cases
from tilewright.validation.timeloop_random import TIMELOOP_RANDOM, timeloop_cases
from tilewright.validation.timeloop_tutorial import TIMELOOP_DESIGNS, TIMELOOP_TUTORIAL

__all__ = [
    "EYERISS",
    "EYERISS_ENERGY",
    "GEMMINI",
    "NVDLA",
    "ORACLE",
    "SCALESIM",
    "SETS",
    "TIMELOOP_DESIGNS",
    "TIMELOOP_RANDOM",
    "TIMELOOP_TUTORIAL",
    "CaseObserver",
    "Figure",
    "Findings",
    "Judged",
    "Kind",
    "Outcome",
    "Quantity",
    "ReferenceSet",
    "ScaleSimCase",
    "Scoreboard",
    "Summary",
    "Watch",
    "accepted_text",
    "gemmini_cases",
    "random_case",
    "read_accepted",
    "reference_sets",
    "register",
    "scalesim_cases",
    "summary",
    "timeloop_cases",
    "validate",
]
