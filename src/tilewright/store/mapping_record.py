"""Mappings as runs hold them: as data, as text, and as the rows of a drawing."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tilewright.hardware import Accelerator
from tilewright.mapping import LevelLoops, Loop, Mapping, NestRow, dump_mapping, nest_rows, render
from tilewright.workload import Operator

SpatialAxis = Literal["X", "Y"]


@dataclass(frozen=True)
class LevelRecord:
    """The loops of a mapping at one level, as ``(dimension, step, axis)``, and the tensors that it keeps."""

    level: str
    loops: tuple[tuple[str, int, SpatialAxis | None], ...] = ()
    keeps: tuple[str, ...] | None = None


@dataclass(frozen=True)
class MappingRecord:
    """A mapping as data, as a YAML file, as an annotated loop nest in text, and as the rows of its drawing."""

    levels: tuple[LevelRecord, ...]
    yaml: str
    text: str
    nest: tuple[NestRow, ...]

    def __str__(self) -> str:
        return self.text


def mapping_record(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> MappingRecord:
    """Return the record of a mapping: as data, as a YAML file, as text and as rows to draw."""
    return MappingRecord(level_records(mapping), dump_mapping(mapping, operator, accelerator),
                         render(mapping, operator, accelerator), nest_rows(mapping, operator, accelerator))


def level_records(mapping: Mapping) -> tuple[LevelRecord, ...]:
    """Return a mapping as data."""
    return tuple(
        LevelRecord(entry.level, tuple((loop.dimension, int(loop.step), loop.axis) for loop in entry.loops),
                    entry.keeps)
        for entry in mapping.levels)


def mapping_from(levels: Iterable[LevelRecord]) -> Mapping:
    """Return the mapping that records of its levels describe; they may have lists, of JSON, in place of tuples."""
    return Mapping(tuple(
        LevelLoops(level.level, tuple(Loop(*loop) for loop in level.loops),
                   None if level.keeps is None else tuple(level.keeps)) for level in levels))
