"""Timeloop's YAML (versions 0.3 and 0.4), both ways; Timeloop itself is not needed."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.interop.formats import FORMATS, Foreign, ForeignText, Format, refuse_sizes
from tilewright.interop.timeloop.design import energise, holds_timeloop, load_timeloop
from tilewright.interop.timeloop.program import dump_program
from tilewright.interop.timeloop.writing import dump_timeloop
from tilewright.mapping import Constraints
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator

__all__ = ["dump_program", "dump_timeloop", "load_timeloop"]

Dump = Callable[[Operator, Accelerator, Nest | None, Constraints | None], ForeignText]


def _read(paths: Sequence[Path], bind: Mapping[str, int]) -> Foreign:
    refuse_sizes(bind, "a Timeloop problem")
    return load_timeloop(paths)


def _writer(dump: Dump) -> Callable[[Foreign], ForeignText]:
    return lambda made: _write(made, dump)


def _write(made: Foreign, dump: Dump) -> ForeignText:
    operator, accelerator = made.operator, made.accelerator
    if operator is None or accelerator is None:
        raise InputError("timeloop", "must be written of a layer with an accelerator",
                         "no layer" if operator is None else "no accelerator")
    return dump(operator, accelerator, made.mappings.get(operator.name), made.constraints)


FORMATS.register("timeloop")(Format(
    "timeloop", "Timeloop's YAML, versions 0.3 and 0.4: architecture, problem, mapping, constraints, ERT, ART",
    holds_timeloop, _read, _writer(dump_timeloop), energise, together=True))
FORMATS.register("timeloop-model")(Format(
    "timeloop-model", "Timeloop's YAML as timeloop-model reads it without a front end; read as timeloop",
    lambda path: frozenset(), _read, _writer(dump_program)))
