"""What a person sees: tables on the terminal and one HTML page; reads records and never recomputes.

Nothing but names loads at once; the modules, and the libraries behind them, when first used.
"""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.report.allocation import allocation_sheet as allocation_sheet
    from tilewright.report.allocation import allocation_tree as allocation_tree
    from tilewright.report.arrays import array_sheet as array_sheet
    from tilewright.report.arrays import recommendation_sheet as recommendation_sheet
    from tilewright.report.arrays import training_sheet as training_sheet
    from tilewright.report.circles import nested as nested
    from tilewright.report.circles import venn as venn
    from tilewright.report.circles import venn_plot as venn_plot
    from tilewright.report.design import design_sheet as design_sheet
    from tilewright.report.design import design_tree as design_tree
    from tilewright.report.design import machines_sheet as machines_sheet
    from tilewright.report.design import machines_tree as machines_tree
    from tilewright.report.exploration import exploration_sheet as exploration_sheet
    from tilewright.report.exploration import exploration_tree as exploration_tree
    from tilewright.report.flexibility import flexibility_sheet as flexibility_sheet
    from tilewright.report.flexibility import flexibility_tree as flexibility_tree
    from tilewright.report.fusion import attention_sheet as attention_sheet
    from tilewright.report.fusion import attention_tree as attention_tree
    from tilewright.report.fusion import fusion_sheet as fusion_sheet
    from tilewright.report.fusion import tree_plan as tree_plan
    from tilewright.report.fusion import tree_sheet as tree_sheet
    from tilewright.report.packing import packing_sheet as packing_sheet
    from tilewright.report.page import page_colours as page_colours
    from tilewright.report.page import render_page as render_page
    from tilewright.report.page import run_figures as run_figures
    from tilewright.report.page import write_page as write_page
    from tilewright.report.pipeline import pipeline_sheet as pipeline_sheet
    from tilewright.report.pipeline import pipeline_tree as pipeline_tree
    from tilewright.report.progress import Bar as Bar
    from tilewright.report.progress import LayersBar as LayersBar
    from tilewright.report.progress import SearchBar as SearchBar
    from tilewright.report.progress import in_notebook as in_notebook
    from tilewright.report.quantities import engineering as engineering
    from tilewright.report.quantities import finite as finite
    from tilewright.report.quantities import measured as measured
    from tilewright.report.quantities import padding_words as padding_words
    from tilewright.report.quantities import percent as percent
    from tilewright.report.quantities import significant as significant
    from tilewright.report.residency import residency_sheet as residency_sheet
    from tilewright.report.schedule import explanation_sheet as explanation_sheet
    from tilewright.report.schedule import schedule_sheet as schedule_sheet
    from tilewright.report.search_plots import contest_plot as contest_plot
    from tilewright.report.search_plots import landscape_plots as landscape_plots
    from tilewright.report.search_plots import orders_plot as orders_plot
    from tilewright.report.sheet import Sheet as Sheet
    from tilewright.report.sheet import print_sheet as print_sheet
    from tilewright.report.sheet import print_tables as print_tables
    from tilewright.report.sheet import write_plots as write_plots
    from tilewright.report.sheet import write_sheet as write_sheet
    from tilewright.report.studies import axes_sheet as axes_sheet
    from tilewright.report.studies import axes_tree as axes_tree
    from tilewright.report.studies import contest_curves as contest_curves
    from tilewright.report.studies import contest_sheet as contest_sheet
    from tilewright.report.studies import contest_tree as contest_tree
    from tilewright.report.studies import landscape_points as landscape_points
    from tilewright.report.studies import landscape_sheet as landscape_sheet
    from tilewright.report.studies import landscape_tree as landscape_tree
    from tilewright.report.studies import orders_sheet as orders_sheet
    from tilewright.report.studies import orders_tree as orders_tree
    from tilewright.report.sweep import sweep_sheet as sweep_sheet
    from tilewright.report.sweep import sweep_tree as sweep_tree
    from tilewright.report.terminal import lost_lines as lost_lines
    from tilewright.report.terminal import print_layer as print_layer
    from tilewright.report.terminal import print_listing as print_listing
    from tilewright.report.terminal import print_run as print_run
    from tilewright.report.terminal import print_vectors as print_vectors
    from tilewright.report.tokens import token_lines as token_lines
    from tilewright.report.validation import accuracy_page as accuracy_page
    from tilewright.report.validation import print_scoreboard as print_scoreboard

__getattr__, __all__ = late_names(__name__)
