"""Timeloop's YAML (versions 0.3 and 0.4), both ways; Timeloop itself is not needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.base import InputError
from tilewright.interop.formats import FORMATS, Foreign, ForeignText, Format, refuse_sizes
from tilewright.interop.timeloop.design import energise, holds_timeloop, load_timeloop
from tilewright.interop.timeloop.writing import dump_timeloop

__all__ = ["dump_timeloop", "load_timeloop"]


def _read(paths: Sequence[Path], bind: Mapping[str, int]) -> Foreign:
    refuse_sizes(bind, "a Timeloop problem")
    return load_timeloop(paths)


def _write(made: Foreign) -> ForeignText:
    operator, accelerator = made.operator, made.accelerator
    if operator is None or accelerator is None:
        raise InputError("timeloop", "must be written of a layer with an accelerator",
                         "no layer" if operator is None else "no accelerator")
    return dump_timeloop(operator, accelerator, made.mappings.get(operator.name), made.constraints)


FORMATS.register("timeloop")(Format(
    "timeloop", "Timeloop's YAML, versions 0.3 and 0.4: architecture, problem, mapping, constraints, ERT, ART",
    holds_timeloop, _read, _write, energise))
