"""A mapping drawn as rows that last: which loops run where, and which tiles lie in which memory."""

from collections.abc import Iterable

from tilewright.hardware import Accelerator
from tilewright.mapping import LevelLoops, Loop, Mapping, dump_mapping, nest_rows, render
from tilewright.store.mapping_record import LevelRecord, MappingRecord, NestRowRecord, RoomRecord, TileRecord
from tilewright.workload import Operator


def mapping_record(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> MappingRecord:
    """Return the record of a mapping: as data, as a YAML file, as text and as rows to draw."""
    return MappingRecord(level_records(mapping), dump_mapping(mapping, operator, accelerator),
                         render(mapping, operator, accelerator), _rows(operator, accelerator, mapping))


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


def _rows(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> tuple[NestRowRecord, ...]:
    roles = {tensor.name: tensor.role for tensor in operator.tensors}
    instances = {level.name: accelerator.instances(level.name) for level in accelerator.levels}
    instances[accelerator.compute.name] = accelerator.compute_instances
    return tuple(
        NestRowRecord(
            indent=row.indent, kind=row.kind, text=row.text, note=row.note, level=row.level, count=int(row.count),
            instances=instances[row.level],
            tiles=tuple(TileRecord(tile.tensor, roles[tile.tensor], int(tile.words), float(tile.size_bytes),
                                   tile.partition) for tile in row.tiles),
            rooms=tuple(RoomRecord(room.partition, float(room.needed_bytes),
                                   None if room.capacity_bytes is None else float(room.capacity_bytes), room.copies)
                        for room in row.occupancy))
        for row in nest_rows(mapping, operator, accelerator))
