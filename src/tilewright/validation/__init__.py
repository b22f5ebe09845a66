"""How near are our figures to those of others? Sets of reference figures, and what error is accepted."""

from importlib import import_module
from pkgutil import iter_modules

from tilewright.validation.accepting import Judged, SetOutcome, accepted_text, read_accepted
from tilewright.validation.gemmini import gemmini_cases
from tilewright.validation.random_nests import random_case
from tilewright.validation.records import (
    SETS,
    Figure,
    Kind,
    Quantity,
    ReferenceSet,
    SetFigures,
    Summary,
    ValidationWatch,
    register,
)
from tilewright.validation.records import summary as summary
from tilewright.validation.running import CaseObserver, Scoreboard, reference_sets, validate
from tilewright.validation.scalesim import ScaleSimCase, scalesim_cases
from tilewright.validation.timeloop_random import timeloop_cases

for _file in iter_modules(__path__, f"{__name__}."):
    import_module(_file.name)  # each set registers itself

__all__ = [
    "SETS",
    "CaseObserver",
    "Figure",
    "Judged",
    "Kind",
    "Quantity",
    "ReferenceSet",
    "ScaleSimCase",
    "Scoreboard",
    "SetFigures",
    "SetOutcome",
    "Summary",
    "ValidationWatch",
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
