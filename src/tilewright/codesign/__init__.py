"""Which hardware? Machines within a budget and their mappings; what flexibility is worth; the best fixed machine."""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.codesign.designs import DESIGNERS as DESIGNERS
    from tilewright.codesign.designs import Designed as Designed
    from tilewright.codesign.designs import DesignedLayer as DesignedLayer
    from tilewright.codesign.designs import Designer as Designer
    from tilewright.codesign.designs import budget_bound as budget_bound
    from tilewright.codesign.designs import design as design
    from tilewright.codesign.designs import design_each as design_each
    from tilewright.codesign.designs import design_front as design_front
    from tilewright.codesign.designs import design_structures as design_structures
    from tilewright.codesign.exploration import FIGURES as FIGURES
    from tilewright.codesign.exploration import Exploration as Exploration
    from tilewright.codesign.exploration import Outcome as Outcome
    from tilewright.codesign.exploration import explore as explore
    from tilewright.codesign.exploration import pareto as pareto
    from tilewright.codesign.fixed import FixedDesign as FixedDesign
    from tilewright.codesign.fixed import fixed_mappings as fixed_mappings
    from tilewright.codesign.fixed import score_designs as score_designs
    from tilewright.codesign.fixed import tune as tune
    from tilewright.codesign.flexions import SPACES as SPACES
    from tilewright.codesign.flexions import AverageFlexion as AverageFlexion
    from tilewright.codesign.flexions import LayerFlexion as LayerFlexion
    from tilewright.codesign.flexions import NetworkFlexion as NetworkFlexion
    from tilewright.codesign.flexions import measure_flexion as measure_flexion
    from tilewright.codesign.limits import Limit as Limit
    from tilewright.codesign.limits import figures_of as figures_of
    from tilewright.codesign.limits import read_limits as read_limits
    from tilewright.codesign.problem import GOALS as GOALS
    from tilewright.codesign.problem import DesignProblem as DesignProblem
    from tilewright.codesign.problem import Figures as Figures
    from tilewright.codesign.problem import Nests as Nests
    from tilewright.codesign.session import Candidate as Candidate
    from tilewright.codesign.session import Session as Session
    from tilewright.codesign.session import figures_told as figures_told
    from tilewright.codesign.sided import SidedMachine as SidedMachine
    from tilewright.codesign.sided import SidedMachines as SidedMachines
    from tilewright.codesign.sided import machine_bounds as machine_bounds
    from tilewright.codesign.sweep import SweptMachine as SweptMachine
    from tilewright.codesign.sweep import sweep_machines as sweep_machines
    from tilewright.codesign.variants import assumed as assumed
    from tilewright.codesign.variants import class_choices as class_choices
    from tilewright.codesign.variants import with_array as with_array
    from tilewright.codesign.variants import with_buffer as with_buffer
    from tilewright.codesign.variants import with_flexibility as with_flexibility

__getattr__, __all__ = late_names(__name__)
