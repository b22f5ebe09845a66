"""Timeloop's YAML (versions 0.3 and 0.4), both ways; Timeloop itself is not needed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.interop.formats import Foreign, ForeignText, refuse_sizes
from tilewright.interop.notes import Notes
from tilewright.interop.timeloop.design import energise, load_timeloop
from tilewright.interop.timeloop.program import dump_program
from tilewright.interop.timeloop.writing import dump_timeloop
from tilewright.mapping import Constraints
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator

__all__ = ["dump_program", "dump_timeloop", "energise", "load_timeloop", "read", "write", "write_program"]

Dump = Callable[[Operator, Accelerator, Nest | None, Constraints | None], ForeignText]


def read(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read files that belong together, as a format does."""
    refuse_sizes(bind, "a Timeloop problem")
    return load_timeloop(paths)


def _written(dump: Dump, made: Foreign) -> ForeignText:
    operator, accelerator = made.operator, made.accelerator
    if operator is None or accelerator is None:
        raise InputError("timeloop", "must be written of a layer with an accelerator",
                         "no layer" if operator is None else "no accelerator")
    found, notes = dump(operator, accelerator, made.mappings.get(operator.name), made.constraints), Notes()
    if made.graph is not None:
        notes.others(made.graph)
    return replace(found, notes=(*found.notes, *notes))


write = partial(_written, dump_timeloop)
"""Writes what Timeloop's front end reads, as a format does."""
write_program = partial(_written, dump_program)
"""Writes what timeloop-model reads without a front end, as a format does."""
