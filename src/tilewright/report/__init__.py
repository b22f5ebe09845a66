"""What a person sees: tables on the terminal and one HTML page; reads records and never recomputes.

Nothing but names loads at once; the modules, and the libraries behind them, when first used.
"""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.report.allocation import allocation_sheet, allocation_tree
    from tilewright.report.arrays import array_sheet
    from tilewright.report.attention import attention_sheet, attention_tree
    from tilewright.report.circles import nested, venn, venn_plot
    from tilewright.report.contest import contest_curves, contest_sheet, contest_tree
    from tilewright.report.design import design_sheet, design_tree, machines_sheet, machines_tree
    from tilewright.report.exploration import exploration_sheet, exploration_tree
    from tilewright.report.flexibility import flexibility_sheet, flexibility_tree
    from tilewright.report.fusion import fusion_sheet
    from tilewright.report.packing import packing_sheet
    from tilewright.report.page import page_colours, render_page, run_figures, write_page
    from tilewright.report.pipeline import pipeline_sheet, pipeline_tree
    from tilewright.report.progress import Bar, LayersBar, SearchBar, in_notebook
    from tilewright.report.quantities import (
        byte_size,
        engineering,
        finite,
        measured,
        padding_words,
        percent,
        shortened,
        significant,
    )
    from tilewright.report.recommendation import recommendation_sheet, training_sheet
    from tilewright.report.residency import residency_sheet
    from tilewright.report.schedule import explanation_sheet, schedule_sheet
    from tilewright.report.search_plots import contest_plot, landscape_plots, log_axis, orders_plot
    from tilewright.report.sheet import Sheet, print_sheet, print_tables, write_plots, write_sheet
    from tilewright.report.studies import (
        axes_sheet,
        axes_tree,
        landscape_points,
        landscape_sheet,
        landscape_tree,
        orders_sheet,
        orders_tree,
    )
    from tilewright.report.sweep import sweep_sheet, sweep_tree
    from tilewright.report.terminal import (
        cost_table,
        energy_table,
        layer_table,
        listing,
        lost_lines,
        print_layer,
        print_listing,
        print_run,
        print_vectors,
    )
    from tilewright.report.tokens import token_lines
    from tilewright.report.trees import tree_plan, tree_sheet
    from tilewright.report.validation import accuracy_page, print_scoreboard

__all__ = [
    "Bar",
    "LayersBar",
    "SearchBar",
    "Sheet",
    "accuracy_page",
    "allocation_sheet",
    "allocation_tree",
    "array_sheet",
    "attention_sheet",
    "attention_tree",
    "axes_sheet",
    "axes_tree",
    "byte_size",
    "contest_curves",
    "contest_plot",
    "contest_sheet",
    "contest_tree",
    "cost_table",
    "design_sheet",
    "design_tree",
    "energy_table",
    "engineering",
    "explanation_sheet",
    "exploration_sheet",
    "exploration_tree",
    "finite",
    "flexibility_sheet",
    "flexibility_tree",
    "fusion_sheet",
    "in_notebook",
    "landscape_plots",
    "landscape_points",
    "landscape_sheet",
    "landscape_tree",
    "layer_table",
    "listing",
    "log_axis",
    "lost_lines",
    "machines_sheet",
    "machines_tree",
    "measured",
    "nested",
    "orders_plot",
    "orders_sheet",
    "orders_tree",
    "packing_sheet",
    "padding_words",
    "page_colours",
    "percent",
    "pipeline_sheet",
    "pipeline_tree",
    "print_layer",
    "print_listing",
    "print_run",
    "print_scoreboard",
    "print_sheet",
    "print_tables",
    "print_vectors",
    "recommendation_sheet",
    "render_page",
    "residency_sheet",
    "run_figures",
    "schedule_sheet",
    "shortened",
    "significant",
    "sweep_sheet",
    "sweep_tree",
    "token_lines",
    "training_sheet",
    "tree_plan",
    "tree_sheet",
    "venn",
    "venn_plot",
    "write_page",
    "write_plots",
    "write_sheet",
]

__getattr__ = late_names(__name__)
