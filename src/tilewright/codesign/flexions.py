"""How flexible a machine is on a network: the sizes of its spaces on every layer, and their averages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot

from tilewright.base import InputError
from tilewright.codesign.variants import stated
from tilewright.hardware import AXES, Accelerator
from tilewright.mapping import EstimatedCount, Flexion, flexion
from tilewright.workload import Graph, Operator, unique_operators

SPACES = ("class_space", "target_space", "workload_space", "class_on_workload", "target_on_workload")
"""C, A, W, C^w and A^w."""


@dataclass(frozen=True)
class LayerFlexion:
    """The sizes on one layer, by axes: each letter, and all of them together where there are several."""

    name: str
    count: int
    operator: Operator
    axes: Mapping[str, Flexion]


@dataclass(frozen=True)
class AverageFlexion:
    """Means over layers: of the five sizes, and of the two Flexions (which are not the quotients of mean sizes)."""

    axes: str
    class_space: EstimatedCount
    target_space: EstimatedCount
    workload_space: EstimatedCount
    class_on_workload: EstimatedCount
    target_on_workload: EstimatedCount
    hardware: float
    workload: float


@dataclass(frozen=True)
class NetworkFlexion:
    """How flexible ``accelerator`` is on a network; its distinct layers count once each in ``average``."""

    network: str
    accelerator: Accelerator
    layers: tuple[LayerFlexion, ...]
    average: Mapping[str, AverageFlexion]


def measure_flexion(network: Graph, accelerator: Accelerator, axes: str = AXES, seed: int = 0) -> NetworkFlexion:
    """Return the sizes of the spaces of every layer for each of ``axes`` (letters of TOPS), and all of them together.

    Raises an `InputError` if there is no layer, the machine states no flexibility, or an axis is unknown.
    """
    stated(accelerator)
    if not axes or len(set(axes)) < len(axes) or set(axes) - set(AXES):
        raise InputError("axes", f"must be different letters of {AXES}", axes)
    layers = list(unique_operators(network))
    if not layers:
        raise InputError(network.name, "must have at least one layer of multiply-accumulates", "none")
    wanted = [*axes, axes] if len(axes) > 1 else [axes]
    measured = tuple(
        LayerFlexion(layer.names[0], layer.count, layer.operator,
                     {each: flexion(layer.operator, accelerator, each, seed=seed) for each in wanted})
        for layer in layers)
    return NetworkFlexion(network.name, accelerator, measured,
                          {each: _average([layer.axes[each] for layer in measured]) for each in wanted})


def _average(found: Sequence[Flexion]) -> AverageFlexion:
    def mean(name: str) -> EstimatedCount:
        counts: list[EstimatedCount] = [getattr(one, name) for one in found]
        return EstimatedCount(sum(count.value for count in counts) / len(counts),
                              hypot(*(count.error for count in counts)) / len(counts))

    c, a, w, c_w, a_w = (mean(name) for name in SPACES)
    return AverageFlexion(found[0].axes, c, a, w, c_w, a_w, sum(one.hardware for one in found) / len(found),
                          sum(one.workload for one in found) / len(found))
