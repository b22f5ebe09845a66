"""What was published, beside what we measure: one file for each table or figure.

A study is a record in `REPRODUCTIONS`: its claims, two settings, and ``run(setting, runner)``, which gives all
work that takes time to ``runner.run`` as cells (kept as they end) and returns tables, plots and a judgement for every
claim. `run_study` runs one; `print_reproduction` shows its `StudyOutcome`.
"""

from importlib import import_module
from pkgutil import iter_modules

from tilewright.base import offered
from tilewright.reproduce.claims import Claim as Claim
from tilewright.reproduce.claims import Judgement as Judgement
from tilewright.reproduce.claims import Verdict as Verdict
from tilewright.reproduce.oracle import Check as Check
from tilewright.reproduce.oracle import check as check
from tilewright.reproduce.oracle import same as same
from tilewright.reproduce.oracle import twin as twin
from tilewright.reproduce.papers import write_page as write_page
from tilewright.reproduce.running import DEFAULT_FOLDER as DEFAULT_FOLDER
from tilewright.reproduce.running import StudyOutcome as StudyOutcome
from tilewright.reproduce.running import print_reproduction as print_reproduction
from tilewright.reproduce.running import run_study as run_study
from tilewright.reproduce.running import write_reproduction as write_reproduction
from tilewright.reproduce.study import REPRODUCTIONS as REPRODUCTIONS
from tilewright.reproduce.study import Cell as Cell
from tilewright.reproduce.study import Findings as Findings
from tilewright.reproduce.study import Setting as Setting
from tilewright.reproduce.study import Study as Study

for _file in iter_modules(__path__, f"{__name__}."):
    import_module(_file.name)  # each study registers itself

__all__ = list(offered(__name__))
