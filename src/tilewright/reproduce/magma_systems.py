"""What studies of MAGMA have in common: parts of its systems, and the oracle's word on mappings of jobs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.reproduce.searching import oracle_cell
from tilewright.reproduce.study import Cell
from tilewright.scheduling import LayerJob, System, load_system


def without(name: str, cores: Iterable[int]) -> System:
    """Return a known system with only some of its cores."""
    system = load_system(name)
    return replace(system, cores=tuple(system.cores[place] for place in cores))


def oracles(runner: Runner, asked: Sequence[tuple[Cell, LayerJob, Accelerator, Mapping[str, Any]]]) -> str:
    """Return what the oracle says of a mapping of each cell."""
    told = runner.run([oracle_cell(cell.key or {}, job.operator, machine, value["mapping"])
                       for cell, job, machine, value in asked])
    right = sum(bool(one["agrees"]) for one in told)
    return f"The oracle confirms {right} of {len(told)} mappings." + (" It disagrees." if right < len(told) else "")
