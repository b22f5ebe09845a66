"""Which hardware? What flexibility is worth on given networks, and which fixed machine suits a network best."""

from tilewright.codesign.exploration import FIGURES, Exploration, Outcome, explore, pareto
from tilewright.codesign.fixed import FixedDesign, fixed_mappings, score_designs, tune
from tilewright.codesign.flexions import SPACES, AverageFlexion, LayerFlexion, NetworkFlexion, measure_flexion
from tilewright.codesign.variants import assumed, class_choices, with_array, with_buffer, with_flexibility

__all__ = [
    "FIGURES",
    "SPACES",
    "AverageFlexion",
    "Exploration",
    "FixedDesign",
    "LayerFlexion",
    "NetworkFlexion",
    "Outcome",
    "assumed",
    "class_choices",
    "explore",
    "fixed_mappings",
    "measure_flexion",
    "pareto",
    "score_designs",
    "tune",
    "with_array",
    "with_buffer",
    "with_flexibility",
]
