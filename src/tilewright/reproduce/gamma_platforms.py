"""What Gamma's evaluation runs on: platforms, layers, fixed dataflows and methods (Kao 2022, section 4.4).

Gamma's released environment calls MAESTRO with a network of 81,920,000 words a cycle (github.com/maestro-project/gamma,
src/GAMMA/gamma_env.py), so that only compute and start-up count as latency. The platforms here are those of the zoo
(tables 4.2 and 4.3) with ports that never limit. Layers are those of its model files (data/modelfile): convolutions,
no dense layers. Those files give input sizes without padding and no strides, which changes the work of a layer; here
layers are as their networks have them.
"""

from dataclasses import replace
from functools import cache

from tilewright.hardware import Accelerator, Bandwidth, Memory, preset
from tilewright.reproduce.searching import Layer, bound_figures, network_layers

PLATFORMS, SYSTEMS = ("edge", "cloud"), ("s1", "s2", "s3")


@cache
def machine(platform: str, system: str) -> Accelerator:
    """Return a platform of table 4.2 as a system of table 4.3, with ports that never limit."""
    given = preset(f"{platform}-{system}")
    levels = tuple(replace(level, bandwidth=Bandwidth()) if isinstance(level, Memory) else level
                   for level in given.levels)
    return replace(given, name=f"{given.name}-open", levels=levels)


@cache
def convolutions(network: str, every: int = 1) -> tuple[Layer, ...]:
    """Return the distinct convolutions of a zoo network, or every so manieth; dense layers are left out."""
    return tuple(layer for layer in network_layers(network) if "P" in layer.operator.sizes)[::every]


def layer_bound(network: str, layer: str, accelerator: Accelerator, name: str) -> float:
    """Return what a layer can't be below on a machine: ``compute_cycles`` or ``energy_pj``."""
    operator = next(each.operator for each in convolutions(network) if each.name == layer)
    return bound_figures(operator, accelerator)[name]
