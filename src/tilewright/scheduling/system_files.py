"""System files: YAML that lists accelerators, a clock and bandwidths, checked at the edge.

.. code-block:: yaml

    name: mine
    clock_mhz: 200
    host_bandwidth: 32GB/s
    memory_bandwidth: 16GB/s          # cores share the lesser of both
    cores:
    - {accelerator: magma-core, dataflow: nvdla, count: 3, with: {PEs.shape: 64x1, SG.capacity: 128KiB}}
    - {name: small, accelerator: mine.yaml}     # beside this file; mappings are free
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tilewright.base import Fields, FieldsDocument, InputError, unknown_name
from tilewright.hardware import (
    Accelerator,
    Bandwidth,
    Fanout,
    Number,
    find_accelerator,
    read_bandwidth,
    read_change,
    with_numbers,
)
from tilewright.mapping import DATAFLOWS
from tilewright.scheduling.system import Core, System

MOST_CORES = 256


class CoreFields(Fields):
    """A core, or several alike."""

    accelerator: Annotated[str, Field(min_length=1)]
    """A preset or a file."""
    name: Annotated[str, Field(min_length=1)] | None = None
    """What schedules call it."""
    count: Annotated[int, Field(ge=1, le=MOST_CORES)] = 1
    """How many there are."""
    dataflow: str | None = None
    """The dataflow that its mappings follow."""
    flexible: bool = False
    """Whether its array can be arranged anew."""
    numbers: Annotated[dict[str, float | int | str], Field(alias="with")] = Field(default_factory=dict)
    """Numbers that differ from the accelerator's, as ``PEs.shape: 8x8``."""


class SystemFields(Fields):
    """A system file."""

    name: Annotated[str, Field(min_length=1)]
    """Of the system."""
    clock_mhz: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
    """Of all cores."""
    host_bandwidth: str | float
    """Between host and memory: bytes a second, or ``32GB/s``."""
    memory_bandwidth: str | float
    """Of the memory that cores share."""
    cores: Annotated[list[CoreFields], Field(min_length=1)]
    """The cores."""
    sources: list[str] = Field(default_factory=list)
    """Where figures come from."""
    assumptions: list[str] = Field(default_factory=list)
    """What no figure was known for."""


def read_system(source: str | Path) -> System:
    """Return the system in a file, or in YAML text; what is wrong with it is an `InputError`."""
    document = FieldsDocument.of(source, "system", "name:, clock_mhz:, host_bandwidth:, memory_bandwidth:, cores:")
    fields = document.validated(SystemFields, document.plain())
    folder = source.parent if isinstance(source, Path) else Path()
    rates = []
    for name in ("host_bandwidth", "memory_bandwidth"):
        try:
            rates.append(read_bandwidth(getattr(fields, name), fields.clock_mhz))
        except InputError as error:
            raise document.fail((name,), error.rule, error.given, error.mend) from None
    machines, assumptions = list[tuple[Accelerator, str]](), list(fields.assumptions)
    for place, given in enumerate(fields.cores):
        machine = _machine(document, place, given, fields.clock_mhz, folder)
        assumptions += [line for line in machine.assumptions if line not in assumptions]
        machines += [(machine, given.dataflow or "")] * given.count
    if len(machines) > MOST_CORES:
        raise document.fail(("cores",), f"must be at most {MOST_CORES} in all", len(machines))
    names = [machine.name for machine, _ in machines]
    labels = [name if names.count(name) == 1 else f"{name}.{names[:place].count(name) + 1}"
              for place, name in enumerate(names)]
    cores = [Core(label, *each) for label, each in zip(labels, machines, strict=True)]
    return System(fields.name, tuple(cores), float(fields.clock_mhz), min(rates), tuple(fields.sources),
                  tuple(assumptions))


def _machine(document: FieldsDocument, place: int, given: CoreFields, clock_mhz: float, folder: Path) -> Accelerator:
    """Return the machine of a core, with the system's clock and all the bandwidth that it asks for."""
    where = ("cores", place)
    if given.dataflow is not None and given.dataflow not in DATAFLOWS:
        raise document.fail((*where, "dataflow"), "must be a known dataflow, or left out where mappings are free",
                            given.dataflow, unknown_name("dataflow", given.dataflow, list(DATAFLOWS)).mend)
    beside = folder / given.accelerator
    try:
        machine = find_accelerator(str(beside) if beside.is_file() else given.accelerator)
        if machine.flexibility is not None or machine.sparsity is not None:
            raise InputError("accelerator", "must have no flexibility or sparsity section as a core", machine.name,
                             "Write flexible: true for arrays of any shape; take the sections out")
    except InputError as error:
        raise document.fail((*where, "accelerator"), f"{error.field}: {error.rule}", error.given, error.mend) from None
    machine = replace(machine, frequency_mhz=float(clock_mhz))  # first, as bandwidths in GB/s depend on it
    numbers: dict[Number, float] = {}
    for key, value in given.numbers.items():
        try:
            own = read_change(machine, f"{key}={value}")
        except InputError as error:
            raise document.fail((*where, "with", key), error.rule, error.given, error.mend) from None
        if own.keys() & numbers:
            raise document.fail((*where, "with", key), "must be set once", value)
        numbers |= own
    try:
        machine = with_numbers(machine, numbers, given.name)
    except InputError as error:
        raise document.fail((*where, "with"), f"{error.field}: {error.rule}", error.given, error.mend) from None
    levels = [replace(level, flexible=given.flexible or level.flexible) if isinstance(level, Fanout) else level
              for level in machine.levels[1:]]
    outermost = replace(machine.memories[0], bandwidth=Bandwidth())
    return replace(machine, levels=(outermost, *levels))
