"""Mappings as runs hold them: as data, as text, and as the rows of a drawing."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["inputs", "weights", "outputs"]
SpatialAxis = Literal["X", "Y"]
RowKind = Literal["memory", "fanout", "for", "par-for", "compute"]


@dataclass(frozen=True)
class TileRecord:
    """The words of one tensor that one instance of a memory holds; ``partition`` is the room it stays in."""

    tensor: str
    role: Role
    words: int
    bytes: float
    partition: str | None = None


@dataclass(frozen=True)
class RoomRecord:
    """One capacity of a memory and what is taken of it, all copies together.

    ``partition`` is None for the shared room, ``capacity_bytes`` None where it is unlimited; ``copies`` is 2 where
    tiles stand there twice.
    """

    partition: str | None
    used_bytes: float
    capacity_bytes: float | None
    copies: int = 1


@dataclass(frozen=True)
class NestRowRecord:
    """One line of a mapping drawn as a loop nest.

    ``memory`` and ``fanout`` rows open a level, ``for`` and ``par-for`` rows are loops at it, and ``compute`` is the
    innermost line. ``count`` is how often a loop runs, nominally; ``instances`` are those of the level in the machine.
    """

    indent: int
    kind: RowKind
    text: str
    note: str
    level: str
    count: int = 1
    instances: int = 1
    tiles: tuple[TileRecord, ...] = ()
    rooms: tuple[RoomRecord, ...] = ()


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
    nest: tuple[NestRowRecord, ...]

    def __str__(self) -> str:
        return self.text
