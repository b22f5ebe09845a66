"""A mapping drawn as rows: which loops run where, and which tiles lie in which memory."""

from collections.abc import Iterator

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping import LevelLoops, Mapping
from tilewright.store.record import NestRow, TileRecord
from tilewright.workload import Operator, Tensor


def word_bits(tensor: Tensor, accelerator: Accelerator) -> int:
    """Return the width of a tensor's words: its own, or the one that the machine gives its role."""
    if tensor.word_bits is not None:
        return tensor.word_bits
    widths = dict(accelerator.word_bits)
    if tensor.role not in widths:
        raise InputError(f"{accelerator.name}.word_bits", f"must give a width for {tensor.role}", list(widths))
    return widths[tensor.role]


def nest_rows(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> tuple[NestRow, ...]:
    """Return the rows of a mapping, outermost first: a row per level, per loop, and one for the compute unit.

    Tiles are nominal extents (DESIGN rule 1): what an instance in the middle of the operator holds.
    """
    extents = dict(operator.sizes)
    rows: list[NestRow] = []
    indent = 0
    for level, entry in zip(accelerator.levels, mapping.levels, strict=True):
        instances = accelerator.instances(level.name)
        if isinstance(level, Memory):
            capacity = None if level.capacity_bytes is None else float(level.capacity_bytes)
            rows.append(NestRow(indent, "memory", level.name, level.name, 1, instances, capacity,
                                2 if level.buffering == "double" else 1,
                                _tiles(level, entry, operator, accelerator, extents)))
        else:
            rows.append(_fanout_row(level, entry, extents, indent, instances))
        indent += 1
        for row in _loop_rows(entry, extents, indent, spatial=isinstance(level, Fanout)):
            rows.append(row)
            indent += 1
    tensors = " x ".join(tensor.name for tensor in operator.operands)
    rows.append(NestRow(indent, "compute", f"{operator.output.name} += {tensors}", accelerator.compute.name,
                        instances=accelerator.compute_instances))
    return tuple(rows)


def _tiles(
    memory: Memory, entry: LevelLoops, operator: Operator, accelerator: Accelerator, extents: dict[str, int],
) -> tuple[TileRecord, ...]:
    """Return the tiles of the tensors that a memory keeps, in the operator's order."""
    partitions = dict(memory.partitions_bytes)
    tiles = []
    for tensor in operator.tensors:
        kept = memory.can_keep(tensor.name, tensor.role) if entry.keeps is None else tensor.name in entry.keeps
        if kept:
            words = tensor.words(extents)
            own = partitions.get(tensor.name, partitions.get(tensor.role))
            tiles.append(TileRecord(tensor.name, tensor.role, words, words * word_bits(tensor, accelerator) / 8,
                                    None if own is None else float(own)))
    return tuple(tiles)


def _fanout_row(fanout: Fanout, entry: LevelLoops, extents: dict[str, int], indent: int, instances: int) -> NestRow:
    used = {"X": 1, "Y": 1}
    inner = dict(extents)
    for loop in entry.loops:
        trips = -(-inner[loop.dimension] // loop.step)
        used[loop.axis or "X"] *= trips
        inner[loop.dimension] = min(loop.step, inner[loop.dimension])
    shape = f"{fanout.instances} flexible" if fanout.flexible else f"{fanout.shape[0]} x {fanout.shape[1]}"
    text = f"{fanout.name}: {used['X']} x {used['Y']} of {shape}"
    return NestRow(indent, "fanout", text, fanout.name, used["X"] * used["Y"], instances * fanout.instances)


def _loop_rows(entry: LevelLoops, extents: dict[str, int], indent: int, *, spatial: bool) -> Iterator[NestRow]:
    """Yield the loops of one level and shrink ``extents`` to the tile inside them; loops that run once are left out."""
    for loop in entry.loops:
        extent = extents[loop.dimension]
        trips = -(-extent // loop.step)
        extents[loop.dimension] = min(loop.step, extent)
        if trips == 1:
            continue
        last = extent - (trips - 1) * loop.step
        steps = "" if loop.step == 1 else f" by {loop.step}" + ("" if last == loop.step else f" (last {last})")
        word = f"spread {loop.dimension}" if spatial else f"for {loop.dimension}"
        where = f" along {loop.axis}" if spatial and loop.axis else ""
        text = f"{word} in 0..{extent - 1}{steps}{where}"
        yield NestRow(indent, "spatial" if spatial else "temporal", text, entry.level, trips)
        indent += 1
