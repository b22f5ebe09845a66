"""A mapping as an annotated loop nest: rows for a page to draw, lines for a terminal to print."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.fit import (
    Extents,
    Room,
    array_use,
    extents_at,
    kept_tensors,
    lanes,
    rooms,
    step_inside,
    tile_bytes,
)
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Axis, Operator, Tensor

RowKind = Literal["memory", "fanout", "for", "par-for", "compute"]


@dataclass(frozen=True)
class Tile:
    """What one memory holds of one tensor: ``size_bytes`` is a single tile, ``partition`` the room it stays in."""

    tensor: str
    words: int
    size_bytes: float
    partition: str | None = None


@dataclass(frozen=True)
class NestRow:
    """One row of a drawn loop nest."""

    indent: int
    """Loops that stand around the row."""
    kind: RowKind
    """``memory`` or ``fanout`` (head of a level), ``for`` or ``par-for`` (a loop), ``compute`` (the last row)."""
    text: str
    note: str
    """``text`` and ``note``: the row as one reads it, for example ``for P in 0..7`` and ``step 8, last 6``."""
    level: str
    """Level that it belongs to."""
    memory: str
    """Nearest memory at or outside the row: where its tiles come from."""
    tiles: tuple[Tile, ...] = ()
    occupancy: tuple[Room, ...] = ()
    """``tiles`` and ``occupancy``: what a memory holds, and how full that makes it; empty elsewhere."""
    loop: Loop | None = None
    count: int = 1
    last: int = 1
    """``loop``, ``count`` and ``last``: the loop, how often it runs (nominally), and the extent of its last tile."""
    array: tuple[tuple[str, int, int], ...] = ()
    """``(side, used, available)`` at fan-outs."""

    @property
    def exceeds(self) -> bool:
        """Whether more is asked of the level than it has."""
        full = not all(room.fits for room in self.occupancy)
        return full or any(used > available for _, used, available in self.array)


def nest_rows(mapping: Mapping, operator: Operator, accelerator: Accelerator) -> tuple[NestRow, ...]:
    """Return the rows of a mapping, outermost first: heads of levels, loops that run more than once, the compute unit.

    A mapping need not be legal, but must have the accelerator's levels.
    """
    rows: list[NestRow] = []
    indent, memory = 0, ""
    every_extents = extents_at(mapping, operator.sizes)
    for entry, extents in zip(mapping.levels, every_extents, strict=False):
        level = accelerator.level(entry.level)
        if isinstance(level, Memory):
            memory = level.name
            rows.append(_memory_row(indent, level, entry, (operator, accelerator), extents))
        else:
            rows.append(_fanout_row(indent, level, entry, memory, extents))
        for row in _loop_rows(indent, entry, memory, extents):
            rows.append(row)
            indent += 1
    compute = accelerator.compute.name
    rows.append(NestRow(indent, "compute", statement(operator), "", compute, memory))
    return tuple(rows)


def _memory_row(indent: int, memory: Memory, entry: LevelLoops, on: tuple[Operator, Accelerator],
                extents: Extents) -> NestRow:
    operator, accelerator = on
    kept = kept_tensors(entry, memory, operator)
    taken = rooms(memory, kept, extents, accelerator)
    partitions = {name: room.partition for room in taken for name, _ in room.bytes_by_tensor}
    tiles = tuple(Tile(t.name, t.words(extents), tile_bytes(t, extents, accelerator, memory.name), partitions[t.name])
                  for t in kept)
    own: dict[str | None, Room] = {room.partition: room for room in taken
                                   if room.partition and len(room.bytes_by_tensor) == 1}
    text = "   ".join(_tile_text(tile, own.get(tile.partition)) for tile in tiles) or "keeps nothing"
    note = ", ".join(filter(None, (_occupancy_text(room) for room in taken if room.partition not in own)))
    return NestRow(indent, "memory", text, note, memory.name, memory.name, tiles, taken)


def _fanout_row(indent: int, fanout: Fanout, entry: LevelLoops, memory: str, extents: Extents) -> NestRow:
    x, y = lanes(entry, extents)
    shape = f"{fanout.shape[0]} x {fanout.shape[1]}"
    kind = "flexible " if fanout.flexible else ""
    built = f" of {fanout.blocks[0]} x {fanout.blocks[1]} blocks" if fanout.blocks else ""
    share = f"{x * y / fanout.instances:.0%}" if fanout.instances else ""
    return NestRow(indent, "fanout", f"{kind}array {shape}{built}", f"uses {x} x {y}, {share}", fanout.name, memory,
                   array=array_use(fanout, x, y))


def _loop_rows(indent: int, entry: LevelLoops, memory: str, outside: Extents) -> Iterator[NestRow]:
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
        yield NestRow(indent, kind, text, note, entry.level, memory, loop=loop, count=count, last=last)
        indent += 1


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


def _tile_text(tile: Tile, room: Room | None) -> str:
    if room is None or room.capacity_bytes is None:
        return f"{tile.tensor} {bytes_text(tile.size_bytes)}"
    return f"{tile.tensor} {_twice(room)}{bytes_text(tile.size_bytes)} of {bytes_text(room.capacity_bytes)}"


def _occupancy_text(room: Room) -> str:
    if room.capacity_bytes is None:
        return ""
    name = f"{room.partition} " if room.partition else ""
    share = room.needed_bytes / room.capacity_bytes if room.capacity_bytes else inf
    used = f"{_twice(room)}{bytes_text(room.needed_bytes / room.copies)}"
    return f"{name}{used} of {bytes_text(room.capacity_bytes)}, {share:.0%}"


def _twice(room: Room) -> str:
    return "2x " if room.copies == 2 else ""


_STYLES: dict[RowKind, str] = {"memory": "bold cyan", "fanout": "bold magenta", "for": "", "par-for": "magenta",
                               "compute": "bold green"}


def render(mapping: Mapping, operator: Operator, accelerator: Accelerator, markup: bool = False) -> str:
    """Return the annotated loop nest, one line per row.

    Heads of levels say what the level holds; ``for`` loops how often they run, their step, and the last tile where it
    is smaller; ``par-for`` loops spread over an array. Loops that run once are left out. With ``markup`` the lines
    carry `rich` styles (print them with ``highlight=False``); what exceeds its capacity is red.
    """
    rows = nest_rows(mapping, operator, accelerator)
    names = max(len(row.level) for row in rows)
    left = [row.text if row.kind in _HEADS else " " * (row.indent + 2) + row.text for row in rows]
    width = max((len(text) for text, row in zip(left, rows, strict=True) if row.note), default=0)
    title = f"{operator.name} on {accelerator.name}   " + " ".join(f"{d}={n}" for d, n in operator.dimensions)
    lines = [_styled(title, "bold", markup)]
    for row, text in zip(rows, left, strict=True):
        name = _styled(f"{row.level if row.kind in _HEADS else '':<{names}}", _STYLES[row.kind], markup)
        body = _styled(f"{text:<{width}}" if row.note else text, "red" if row.exceeds else _STYLES[row.kind], markup)
        lines.append(f"{name}  {body}   {_styled(row.note, 'red' if row.exceeds else 'dim', markup)}".rstrip())
    return "\n".join(lines)


_HEADS = ("memory", "fanout", "compute")


def _styled(text: str, style: str, markup: bool) -> str:
    if not markup:
        return text
    escaped = text.replace("[", "\\[")
    return f"[{style}]{escaped}[/]" if style and text.strip() else escaped
