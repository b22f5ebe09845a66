"""Has the oracle count a mapping that a study reports: itself where it is small enough, else a scaled-down twin."""

import math
from dataclasses import dataclass, replace

from tilewright.cost import Cost, DenseModel
from tilewright.cost.reference import walk
from tilewright.hardware import Accelerator
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Operator

TOUCHES = 400_000
"""Largest nest that is walked for a study: multiply-accumulates times boundaries; some seconds."""
_LARGEST_COUNT = 5


@dataclass(frozen=True)
class Check:
    """What the oracle said: whether it agrees with the model, and on what it was asked.

    ``macs`` are those of the nest that was walked, ``scale`` those of the whole over them (1: the mapping itself).
    """

    agrees: bool
    macs: int
    scale: float


def check(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> Check:
    """Compare every count, cycle and picojoule of a mapping by the model and by the oracle.

    A mapping too large to be walked stands in as its twin: the same loops in the same order at the same places, each
    running fewer times, divisible where it was and with a smaller last tile where it had one.
    """
    small, nest = operator, mapping
    for most in range(_LARGEST_COUNT, 1, -1):
        if _touches(small, accelerator) <= TOUCHES:
            break
        small, nest = twin(operator, mapping, most)
    mine, oracle = DenseModel(small, accelerator).cost(nest), walk(small, accelerator, nest)
    return Check(same(mine, oracle), small.macs, operator.macs / small.macs)


def twin(operator: Operator, mapping: Mapping, most: int) -> tuple[Operator, Mapping]:
    """Return a smaller operator and the mapping of the same structure, whose loops run ``most`` times at most."""
    chains: dict[str, list[int]] = {name: [size] for name, size in operator.dimensions}
    for entry in mapping.levels:
        for loop in entry.loops:
            chains[loop.dimension].append(loop.step)
    small = {name: _shrunk(chain, most) for name, chain in chains.items()}
    place = dict.fromkeys(chains, 0)
    levels = []
    for entry in mapping.levels:
        loops = []
        for loop in entry.loops:
            place[loop.dimension] += 1
            loops.append(Loop(loop.dimension, small[loop.dimension][place[loop.dimension]], loop.axis))
        levels.append(LevelLoops(entry.level, tuple(loops), entry.keeps))
    sizes = tuple((name, small[name][0]) for name, _ in operator.dimensions)
    return replace(operator, dimensions=sizes), Mapping(tuple(levels))


def _shrunk(chain: list[int], most: int) -> list[int]:
    """Return a chain of steps, outermost first, of the same structure: built from the inside out."""
    small = [chain[-1]]
    for outside, inside in zip(chain[-2::-1], chain[:0:-1], strict=True):
        count = min(math.ceil(outside / inside), most)
        rest = outside % inside
        last = max(1, small[-1] * rest // inside) if rest and small[-1] > 1 else small[-1]
        small.append((count - 1) * small[-1] + last)
    return small[::-1]


def same(mine: Cost, oracle: Cost) -> bool:
    """Whether two costs agree: whole numbers exactly, energies to rounding."""
    whole = ("macs", "steps", "steady_cycles", "ramp_cycles", "counts", "bottleneck")
    return (all(getattr(mine, name) == getattr(oracle, name) for name in whole)
            and all(math.isclose(mine.energy_by_component_pj.get(name, 0.0), energy, rel_tol=1e-9, abs_tol=1e-9)
                    for name, energy in oracle.energy_by_component_pj.items())
            and math.isclose(mine.energy_pj, oracle.energy_pj, rel_tol=1e-9))


def _touches(operator: Operator, accelerator: Accelerator) -> int:
    keepers = sum(memory.can_keep(t.name, t.role) for t in operator.tensors for memory in accelerator.memories)
    return operator.macs * keepers
