"""What was published, beside what we measure: one file for each table or figure.

A study is a record in `REPRODUCTIONS`: its claims, two settings, and ``run(setting, runner)``, which gives all
work that takes time to ``runner.run`` as cells (kept as they end) and returns tables, plots and a judgement for every
claim. `run_study` runs one; `print_reproduction` shows its `StudyOutcome`.
"""

from importlib import import_module
from pkgutil import iter_modules

from tilewright.reproduce.claims import Claim, Judgement, Verdict
from tilewright.reproduce.oracle import Check, check, same, twin
from tilewright.reproduce.papers import write_page
from tilewright.reproduce.running import DEFAULT_FOLDER, StudyOutcome, run_study
from tilewright.reproduce.showing import print_reproduction, write_reproduction
from tilewright.reproduce.study import REPRODUCTIONS, Cell, Findings, Setting, Study

for _file in iter_modules(__path__, f"{__name__}."):
    import_module(_file.name)  # each study registers itself

__all__ = [
    "DEFAULT_FOLDER",
    "REPRODUCTIONS",
    "Cell",
    "Check",
    "Claim",
    "Findings",
    "Judgement",
    "Setting",
    "Study",
    "StudyOutcome",
    "Verdict",
    "check",
    "print_reproduction",
    "run_study",
    "same",
    "twin",
    "write_page",
    "write_reproduction",
]
