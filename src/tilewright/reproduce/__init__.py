"""What was published, beside what we measure: one file for each table or figure.

A study is a record in `REPRODUCTIONS`: its claims, two settings, and ``run(setting, watch)``, which gives all work that
takes time to ``watch.run`` as cells (kept on the disk as they end) and returns tables, plots and a judgement for every
claim. `run_study` runs one; `tilewright.report` shows its `Outcome`.
"""

from tilewright.reproduce import (
    flexion_future,
    flexion_order,
    flexion_parallelism,
    flexion_shape,
    flexion_tile,
    gamma_fig4_4,
    gamma_table4_5,
    gamma_table4_6,
    ruby_fig7,
    ruby_fig8,
    ruby_fig9,
    ruby_fig10,
    ruby_fig11,
    ruby_fig13,
    ruby_table1,
)
from tilewright.reproduce.cells import CellFile
from tilewright.reproduce.flexion_venn import Circle, Diagram, nested, venn, venn_plot
from tilewright.reproduce.oracle import Check, check, same, twin
from tilewright.reproduce.running import DEFAULT_FOLDER, Cell, Outcome, Standing, Watch, run_study
from tilewright.reproduce.searching import (
    best_run,
    best_so_far,
    bound_figures,
    costs,
    median_curve,
    median_run,
    oracle_cell,
    search_cell,
)
from tilewright.reproduce.study import (
    REPRODUCTIONS,
    Claim,
    Findings,
    Judgement,
    Plot,
    Setting,
    Study,
    Table,
    Value,
    Verdict,
)

__all__ = [
    "DEFAULT_FOLDER",
    "REPRODUCTIONS",
    "Cell",
    "CellFile",
    "Check",
    "Circle",
    "Claim",
    "Diagram",
    "Findings",
    "Judgement",
    "Outcome",
    "Plot",
    "Setting",
    "Standing",
    "Study",
    "Table",
    "Value",
    "Verdict",
    "Watch",
    "best_run",
    "best_so_far",
    "bound_figures",
    "check",
    "costs",
    "flexion_future",
    "flexion_order",
    "flexion_parallelism",
    "flexion_shape",
    "flexion_tile",
    "gamma_fig4_4",
    "gamma_table4_5",
    "gamma_table4_6",
    "median_curve",
    "median_run",
    "nested",
    "oracle_cell",
    "ruby_fig7",
    "ruby_fig8",
    "ruby_fig9",
    "ruby_fig10",
    "ruby_fig11",
    "ruby_fig13",
    "ruby_table1",
    "run_study",
    "same",
    "search_cell",
    "twin",
    "venn",
    "venn_plot",
]
