"""How near are our figures to those of others? Sets of reference figures, and what error is accepted."""

from importlib import import_module
from pkgutil import iter_modules

from tilewright.base import offered
from tilewright.validation.accepting import Judged as Judged
from tilewright.validation.accepting import SetOutcome as SetOutcome
from tilewright.validation.accepting import accepted_text as accepted_text
from tilewright.validation.accepting import read_accepted as read_accepted
from tilewright.validation.gemmini import gemmini_cases as gemmini_cases
from tilewright.validation.random_nests import random_case as random_case
from tilewright.validation.records import SETS as SETS
from tilewright.validation.records import Figure as Figure
from tilewright.validation.records import Kind as Kind
from tilewright.validation.records import Quantity as Quantity
from tilewright.validation.records import ReferenceSet as ReferenceSet
from tilewright.validation.records import SetFigures as SetFigures
from tilewright.validation.records import Summary as Summary
from tilewright.validation.records import ValidationWatch as ValidationWatch
from tilewright.validation.records import register as register
from tilewright.validation.records import summary as summary
from tilewright.validation.running import CaseObserver as CaseObserver
from tilewright.validation.running import Scoreboard as Scoreboard
from tilewright.validation.running import reference_sets as reference_sets
from tilewright.validation.running import validate as validate
from tilewright.validation.scalesim import ScaleSimCase as ScaleSimCase
from tilewright.validation.scalesim import scalesim_cases as scalesim_cases
from tilewright.validation.timeloop_random import timeloop_cases as timeloop_cases

for _file in iter_modules(__path__, f"{__name__}."):
    import_module(_file.name)  # each set registers itself

__all__ = list(offered(__name__))
