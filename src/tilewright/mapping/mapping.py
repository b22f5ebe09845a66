"""How it runs: one mapping as an object that a person can read."""

from dataclasses import dataclass
from typing import Literal

from tilewright.base import text_html

SpatialAxis = Literal["X", "Y"]


@dataclass(frozen=True)
class Loop:
    """One loop: ``step`` is the extent of the tile just inside it, so it runs ceil(extent / step) times.

    ``axis`` says along which side of the array a spatial loop spreads; it is None for temporal loops.
    """

    dimension: str
    step: int
    axis: SpatialAxis | None = None

    def __str__(self) -> str:
        return f"{self.dimension}{'@' + self.axis if self.axis else ''}: {self.step}"


@dataclass(frozen=True)
class LevelLoops:
    """The loops that run at one level of the accelerator, outer to inner.

    ``keeps`` names the tensors that a memory really keeps; None means all that it can keep. It is None at fan-outs.
    """

    level: str
    loops: tuple[Loop, ...] = ()
    keeps: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Mapping:
    """A schedule of one operator on one accelerator: the loops at every level, outermost first.

    There is one entry per level of the accelerator, in its order. Dimensions without a loop at a level keep the extent
    they have outside it.
    """

    levels: tuple[LevelLoops, ...]

    def at(self, level: str) -> LevelLoops:
        """Return the entry for ``level``."""
        return next(entry for entry in self.levels if entry.level == level)

    def __str__(self) -> str:
        """Return one line per level: what is kept and the steps; `tilewright.mapping.render` draws the whole nest."""
        width = max((len(entry.level) for entry in self.levels), default=0)
        lines = []
        for entry in self.levels:
            kept = "" if entry.keeps is None else f" keeps {' '.join(entry.keeps) or 'nothing'}"
            lines.append(f"{entry.level:<{width}}  [{', '.join(map(str, entry.loops))}]{kept}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return text_html(self)
