"""SCALE-Sim's configurations (``.cfg``) and topologies (``.csv``), versions 1 to 3, both ways; no tool is needed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.base import InputError, read_text
from tilewright.hardware import Accelerator
from tilewright.interop.formats import Foreign, refuse_sizes
from tilewright.interop.notes import Notes
from tilewright.interop.scalesim.config import ScaleSimConfig, read_config
from tilewright.interop.scalesim.topology import read_topology
from tilewright.interop.scalesim.writing import dump_scalesim
from tilewright.interop.signs import ARRAY, is_array
from tilewright.workload import Graph, MacNode

__all__ = ["ScaleSimConfig", "dump_scalesim", "read_config", "read_scalesim"]


def read_scalesim(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read topologies, whose layers follow one another, and at most one configuration.

    Raises an `InputError` with file and line, if something is missing or wrong.
    """
    refuse_sizes(bind, "SCALE-Sim's files")
    notes = Notes()
    nodes: list[MacNode] = []
    topologies: list[Path] = []
    machine: Accelerator | None = None
    for path in map(Path, paths):
        if is_array(read_text(path)) or path.suffix.lower() == ".cfg":
            if machine is not None:
                raise InputError(str(path), "must be the only configuration")
            config, told = read_config(path)
            machine = _machine(config, path, tuple(map(str, told)))
            notes += told
        else:
            nodes += read_topology(path, notes)
            topologies.append(path)
    graph = None
    if topologies:
        names = [node.name for node in nodes]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(str(topologies[-1]), "must not have layers of the other files", twice)
        graph = Graph(topologies[0].stem, tuple(nodes), ", ".join(path.name for path in topologies))
    return Foreign(graph=graph, accelerator=machine, notes=tuple(notes))


def _machine(config: ScaleSimConfig, path: Path, told: tuple[str, ...]) -> Accelerator:
    """Return the machine of a configuration, with what it takes otherwise than that means it."""
    machine = config.accelerator(f"{path.name} {ARRAY}")
    if config.bandwidth is not None:
        told = (f"Inputs and weights, which come by {config.bandwidth} words a cycle each, share twice as many.", *told)
    return replace(machine, assumptions=(*machine.assumptions, *told))
