"""Systems: accelerators that share one memory, each with a style of mapping or free, a clock and a bandwidth."""

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilewright.base import late_module, unknown_name
from tilewright.hardware import Accelerator, read_bandwidth
from tilewright.mapping import MapSpace, dataflow_constraints
from tilewright.workload import Operator

system_files = late_module("tilewright.scheduling.system_files")  # pydantic loads only when a file is read
FOLDER = Path(__file__).parent / "systems"


@dataclass(frozen=True)
class Core:
    """An accelerator of a system."""

    name: str
    accelerator: Accelerator
    """The machine alone, with all the bandwidth it asks for: what its outermost memory moves is the system's matter."""
    dataflow: str = ""
    """The style that its mappings follow, as in `DATAFLOWS`; empty where they are free."""

    @property
    def style(self) -> str:
        """The style as people read it."""
        return self.dataflow or "free"

    def space(self, operator: Operator) -> MapSpace:
        """Return the mappings of an operator on this core."""
        if not self.dataflow:
            return MapSpace(operator, self.accelerator)
        limits = dataflow_constraints(self.dataflow, operator, self.accelerator)
        return MapSpace(operator, self.accelerator, constraints=limits)


@dataclass(frozen=True)
class System:
    """Cores that share the bandwidth of one memory (Kao 2022, 7.1.3)."""

    name: str
    cores: tuple[Core, ...]
    clock_mhz: float
    bandwidth: float
    """Bytes a cycle that all cores together get: the lesser of the host's link and the memory's."""
    sources: tuple[str, ...] = field(default=(), compare=False)
    assumptions: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def kinds(self) -> tuple[Core, ...]:
        """The first core of each machine and style: equal cores are analysed once."""
        return tuple({self._kind(core): core for core in reversed(self.cores)}.values())[::-1]

    @cached_property
    def kind_of(self) -> NDArray[np.int64]:
        """``(a)``: the place of each core's kind in `kinds`."""
        places = {self._kind(core): place for place, core in enumerate(self.kinds)}
        return np.array([places[self._kind(core)] for core in self.cores], dtype=np.int64)

    @property
    def gigabytes_per_second(self) -> float:
        """The bandwidth in GB/s."""
        return self.bandwidth * self.clock_mhz / 1e3

    @property
    def peak_gflops(self) -> float:
        """Two operations for each multiply-accumulate unit and cycle."""
        return 2e-3 * self.clock_mhz * sum(core.accelerator.compute_instances for core in self.cores)

    def with_bandwidth(self, text: str | float) -> "System":
        """Return the system with another bandwidth, as `read_bandwidth` reads it."""
        return replace(self, bandwidth=read_bandwidth(text, self.clock_mhz))

    @staticmethod
    def _kind(core: Core) -> tuple[Accelerator, str]:
        return replace(core.accelerator, name=""), core.dataflow


def system_names() -> tuple[str, ...]:
    """Return the names of the systems that are known."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def load_system(source: str | Path | System) -> System:
    """Return the system of this name, or in this file or YAML text; a system is returned as it is.

    Raises an `InputError` if there is none, or it says something wrong.
    """
    if isinstance(source, System):
        return source
    text = str(source)
    if text in system_names():
        return _known(text)
    if "\n" not in text and not Path(text).is_file() and not text.endswith((".yaml", ".yml")) and "/" not in text:
        raise unknown_name("system", text, list(system_names()))
    found: System = system_files.read_system(text if "\n" in text else Path(text))
    return found


def system_text(name: str) -> str:
    """Return the file of a system that is known, to begin one of your own.

    Raises an `InputError` if there is none.
    """
    if name not in system_names():
        raise unknown_name("system", name, list(system_names()))
    return (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


@cache
def _known(name: str) -> System:
    found: System = system_files.read_system(FOLDER / f"{name}.yaml")
    return found
