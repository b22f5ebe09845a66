"""Which hardware? Machines within a budget and their mappings; what flexibility is worth; the best fixed machine."""

from tilewright.codesign import auto, methods  # noqa: F401  (registers)
from tilewright.codesign.designs import (
    DESIGNERS,
    Designed,
    DesignedLayer,
    Designer,
    budget_bound,
    design,
    design_each,
    design_front,
    design_structures,
)
from tilewright.codesign.exploration import FIGURES, Exploration, Outcome, explore, pareto
from tilewright.codesign.fixed import FixedDesign, fixed_mappings, score_designs, tune
from tilewright.codesign.flexions import SPACES, AverageFlexion, LayerFlexion, NetworkFlexion, measure_flexion
from tilewright.codesign.limits import Limit, figures_of, read_limits
from tilewright.codesign.problem import GOALS, DesignProblem, Figures, Nests
from tilewright.codesign.session import Candidate, DesignStep, Session, figures_told
from tilewright.codesign.sided import SidedMachine, SidedMachines, machine_bounds
from tilewright.codesign.sweep import SweptMachine, sweep_machines
from tilewright.codesign.variants import assumed, class_choices, with_array, with_buffer, with_flexibility

__all__ = [
    "DESIGNERS",
    "FIGURES",
    "GOALS",
    "SPACES",
    "AverageFlexion",
    "Candidate",
    "DesignProblem",
    "DesignStep",
    "Designed",
    "DesignedLayer",
    "Designer",
    "Exploration",
    "Figures",
    "FixedDesign",
    "LayerFlexion",
    "Limit",
    "Nests",
    "NetworkFlexion",
    "Outcome",
    "Session",
    "SidedMachine",
    "SidedMachines",
    "SweptMachine",
    "assumed",
    "budget_bound",
    "class_choices",
    "design",
    "design_each",
    "design_front",
    "design_structures",
    "explore",
    "figures_of",
    "figures_told",
    "fixed_mappings",
    "machine_bounds",
    "measure_flexion",
    "pareto",
    "read_limits",
    "score_designs",
    "sweep_machines",
    "tune",
    "with_array",
    "with_buffer",
    "with_flexibility",
]
