"""What comes of designs: machines, and networks on them as runs."""

import math
import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Protocol

from tilewright.api.places import ready_place
from tilewright.api.runs import Run
from tilewright.api.sheets import OnSheet
from tilewright.base import write_whole
from tilewright.hardware import Accelerator, dump_accelerator
from tilewright.store import LayerRecord, RunRecord


class OnMachines(OnSheet, Protocol):
    """What came of a design: ``runs`` are the networks on the machines that were found, if any."""

    runs: tuple[Run, ...]

    @property
    def score(self) -> float:
        """The objective; infinite where nothing was found."""

    @property
    def bound(self) -> float:
        """What nothing within the limits scores below; 0 where nothing is proven."""

    @property
    def gap(self) -> float | None:
        """By which share the score can be above the best there is; None where nothing was found or proven."""
        return self.score / self.bound - 1.0 if math.isfinite(self.score) and self.bound > 0 else None

    @property
    def verdict(self) -> str:
        """How good it is, in a sentence or two."""
        return self.sheet.facts[0]

    @cached_property
    def layers(self) -> dict[str, LayerRecord]:
        """Every layer by its name (of several networks, ``NETWORK/LAYER``); equal layers share one record."""
        return {name if len(self.runs) == 1 else f"{run.record.network.name}/{name}": layer
                for run in self.runs for name, layer in run.layers.items()}

    @property
    def records(self) -> tuple[RunRecord, ...]:
        """Those of the runs."""
        return tuple(run.record for run in self.runs)


def write_machines(path: str | os.PathLike[str], machines: Accelerator | Mapping[str, Accelerator],
                   layers: Mapping[str, LayerRecord], command: str,
                   mappings: str | os.PathLike[str] | None = None) -> Path:
    """Write a machine as YAML, or into a folder those of several layers; into another the mappings of the layers."""
    place = Path(path)
    if isinstance(machines, Accelerator):
        write_whole(ready_place(place), f"# {command}\n{dump_accelerator(machines)}")
    else:
        for name, machine in machines.items():
            write_whole(ready_place(_file(place, name)), f"# {command}\n{dump_accelerator(machine)}")
    for name, layer in layers.items() if mappings is not None else ():
        if layer.mapping is not None:
            write_whole(ready_place(_file(Path(mappings or ""), name)), layer.mapping.yaml)
    return place


def _file(folder: Path, name: str) -> Path:
    return folder / (re.sub(r"[^\w.-]", "_", name) + ".yaml")
