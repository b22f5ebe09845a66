"""A mapping as an annotated loop nest: rows for a page to draw, lines for a terminal to print."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from typing import Literal

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.fit import (
    Extents,
    array_use,
    extents_at,
    kept_tensors,
    lanes,
    rooms,
    step_inside,
    tile_bytes,
)
from tilewright.mapping.mapping import LevelLoops, Mapping
from tilewright.workload import Axis, Operator, Role, Tensor

RowKind = Literal["memory", "fanout", "for", "par-for", "compute"]


@dataclass(frozen=True)
class NestTile:
    """The words of one tensor that one instance of a memory holds; ``partition`` is the room it stays in."""

    tensor: str
    role: Role
    words: int
    bytes: float
    partition: str | None = None


@dataclass(frozen=True)
class NestRoom:
    """One capacity of a memory and what is taken of it, all copies together.

    ``partition`` is None for the shared room, ``capacity_bytes`` None where it is unlimited; ``copies`` is 2 where
    tiles stand there twice.
    """

    partition: str | None
    used_bytes: float
    capacity_bytes: float | None
    copies: int = 1


@dataclass(frozen=True)
class NestRow:
    """One line of a mapping drawn as a loop nest, as runs hold it.

    ``memory`` and ``fanout`` rows open a level, ``for`` and ``par-for`` rows are loops at it, and ``compute`` is the
    innermost line; ``indent`` loops stand around it. ``text`` and ``note`` are the row as one reads it, for example
    ``for P in 0..7`` and ``step 8, last 6``. ``count`` is how often a loop runs, nominally; ``instances`` are those of
    the level in the machine.
    """

    indent: int
    kind: RowKind
    text: str
    note: str
    level: str
    count: int = 1
    instances: int = 1
    tiles: tuple[NestTile, ...] = ()
    rooms: tuple[NestRoom, ...] = ()


def nest_rows(mapping: Mapping, operator: Operator, accelerator: Accelerator) -> tuple[NestRow, ...]:
    """Return the rows of a mapping, outermost first: heads of levels, loops that run more than once, the compute unit.

    A mapping need not be legal, but must have the accelerator's levels.
    """
    rows: list[NestRow] = []
    instances: list[int] = []
    for entry, extents in zip(mapping.levels, extents_at(mapping, operator.sizes), strict=False):
        level = accelerator.level(entry.level)
        head = _memory_row(level, entry, (operator, accelerator), extents) if isinstance(level, Memory) else (
            _fanout_row(level, entry, extents))
        rows += head, *_loop_rows(entry, extents)
        instances += [accelerator.instances(entry.level)] * (len(rows) - len(instances))
    rows.append(NestRow(0, "compute", statement(operator), "", accelerator.compute.name))
    instances.append(accelerator.compute_instances)
    around = accumulate((row.kind in ("for", "par-for") for row in rows), initial=0)
    return tuple(replace(row, indent=indent, instances=count)
                 for row, indent, count in zip(rows, around, instances, strict=False))


def _memory_row(memory: Memory, entry: LevelLoops, on: tuple[Operator, Accelerator], extents: Extents) -> NestRow:
    operator, accelerator = on
    kept = kept_tensors(entry, memory, operator)
    taken = rooms(memory, kept, extents, accelerator)
    partitions = {name: room.partition for room in taken for name, _ in room.bytes_by_tensor}
    tiles = tuple(NestTile(t.name, t.role, int(t.words(extents)), float(
        tile_bytes(t, extents, accelerator, memory.name)), partitions[t.name]) for t in kept)
    filled = tuple(NestRoom(room.partition, float(room.needed_bytes), None if room.capacity_bytes is None else float(
        room.capacity_bytes), room.copies) for room in taken)
    own: dict[str | None, NestRoom] = {room.partition: room for room, of in zip(filled, taken, strict=True)
                                       if room.partition and len(of.bytes_by_tensor) == 1}
    text = "   ".join(_tile_text(tile, own.get(tile.partition)) for tile in tiles) or "keeps nothing"
    note = ", ".join(filter(None, (_occupancy_text(room) for room in filled if room.partition not in own)))
    return NestRow(0, "memory", text, note, memory.name, tiles=tiles, rooms=filled)


def _fanout_row(fanout: Fanout, entry: LevelLoops, extents: Extents) -> NestRow:
    x, y = lanes(entry, extents)
    shape = f"{fanout.shape[0]} x {fanout.shape[1]}"
    kind = "flexible " if fanout.flexible else ""
    built = f" of {fanout.blocks[0]} x {fanout.blocks[1]} blocks" if fanout.blocks else ""
    share = f"{x * y / fanout.instances:.0%}" if fanout.instances else ""
    return NestRow(0, "fanout", f"{kind}array {shape}{built}", f"uses {x} x {y}, {share}", fanout.name)


def _loop_rows(entry: LevelLoops, outside: Extents) -> Iterator[NestRow]:
    extents = dict(outside)
    for loop in entry.loops:
        extent = extents.get(loop.dimension, max(loop.step, 1))
        step = step_inside(loop.step, extent)
        extents[loop.dimension] = step
        count = -(-extent // step)
        if count == 1:
            continue
        last = extent - (count - 1) * step
        note = f"step {step}" + (f", last {last}" if last != step else "")
        kind: RowKind = "par-for" if loop.axis else "for"
        text = f"{kind} {loop.dimension} in 0..{count}" + (f" @{loop.axis}" if loop.axis else "")
        yield NestRow(0, kind, text, note, entry.level, count=int(count))


def statement(operator: Operator) -> str:
    """Return the innermost statement, for example ``O[N,K,P] += I[N,C,P+R] * W[K,C,R]``."""
    terms = " * ".join(_access(tensor) for tensor in operator.operands)
    return f"{_access(operator.output)} += {terms}"


def _access(tensor: Tensor) -> str:
    return f"{tensor.name}[{','.join(map(_axis_text, tensor.axes))}]"


def _axis_text(axis: Axis) -> str:
    return "+".join(name if coefficient == 1 else f"{coefficient}{name}" for name, coefficient in axis.terms)


def bytes_text(size: float) -> str:
    """Return a number of bytes as people read it: ``36.0 KiB``; whole bytes below 1024."""
    if size < 1024:
        return f"{size:.4g} B"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


def _tile_text(tile: NestTile, room: NestRoom | None) -> str:
    if room is None or room.capacity_bytes is None:
        return f"{tile.tensor} {bytes_text(tile.bytes)}"
    return f"{tile.tensor} {_twice(room)}{bytes_text(tile.bytes)} of {bytes_text(room.capacity_bytes)}"


def _occupancy_text(room: NestRoom) -> str:
    if room.capacity_bytes is None:
        return ""
    name = f"{room.partition} " if room.partition else ""
    share = room.used_bytes / room.capacity_bytes if room.capacity_bytes else inf
    used = f"{_twice(room)}{bytes_text(room.used_bytes / room.copies)}"
    return f"{name}{used} of {bytes_text(room.capacity_bytes)}, {share:.0%}"


def _twice(room: NestRoom) -> str:
    return "2x " if room.copies == 2 else ""


_STYLES: dict[RowKind, str] = {"memory": "bold cyan", "fanout": "bold magenta", "for": "", "par-for": "magenta",
                               "compute": "bold green"}


def render(mapping: Mapping, operator: Operator, accelerator: Accelerator, markup: bool = False,
           rows: Sequence[NestRow] = ()) -> str:
    """Return the annotated loop nest, one line per row; ``rows`` are those of `nest_rows`, where they are known.

    Heads of levels say what the level holds; ``for`` loops how often they run, their step, and the last tile where it
    is smaller; ``par-for`` loops spread over an array. Loops that run once are left out. With ``markup`` the lines
    carry `rich` styles (print them with ``highlight=False``); what exceeds its capacity is red.
    """
    rows, full = rows or nest_rows(mapping, operator, accelerator), _exceeded(mapping, operator, accelerator)
    names = max(len(row.level) for row in rows)
    left = [row.text if row.kind in _HEADS else " " * (row.indent + 2) + row.text for row in rows]
    width = max((len(text) for text, row in zip(left, rows, strict=True) if row.note), default=0)
    title = f"{operator.name} on {accelerator.name}   " + " ".join(f"{d}={n}" for d, n in operator.dimensions)
    lines = [_styled(title, "bold", markup)]
    for row, text in zip(rows, left, strict=True):
        name = _styled(f"{row.level if row.kind in _HEADS else '':<{names}}", _STYLES[row.kind], markup)
        red = row.kind in _HEADS and row.level in full
        body = _styled(f"{text:<{width}}" if row.note else text, "red" if red else _STYLES[row.kind], markup)
        lines.append(f"{name}  {body}   {_styled(row.note, 'red' if red else 'dim', markup)}".rstrip())
    return "\n".join(lines)


_HEADS = ("memory", "fanout", "compute")


def _exceeded(mapping: Mapping, operator: Operator, accelerator: Accelerator) -> set[str]:
    """Return the levels of which a mapping asks more than they have."""
    found = set[str]()
    for entry, extents in zip(mapping.levels, extents_at(mapping, operator.sizes), strict=False):
        level = accelerator.level(entry.level)
        if isinstance(level, Memory):
            taken = rooms(level, kept_tensors(entry, level, operator), extents, accelerator)
            fits = all(room.fits for room in taken)
        else:
            fits = all(used <= most for _, used, most in array_use(level, *lanes(entry, extents)))
        found |= set() if fits else {level.name}
    return found


def _styled(text: str, style: str, markup: bool) -> str:
    if not markup:
        return text
    escaped = text.replace("[", "\\[")
    return f"[{style}]{escaped}[/]" if style and text.strip() else escaped
