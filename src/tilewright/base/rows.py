"""Rows that lie in arrays side by side."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Rows of a dataclass whose fields are arrays, each with a row at every place of its first axis."""

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All arrays, in order."""
        return tuple(getattr(self, one.name) for one in fields(self))

    def __len__(self) -> int:
        return len(self.arrays[0])

    def take(self, rows: Any) -> Self:
        """Return copies of some of the rows."""
        places = np.arange(len(self))[rows] if isinstance(rows, slice) else rows
        return replace(self, **{one.name: getattr(self, one.name)[places] for one in fields(self)})

    def joined(self, *others: Self) -> Self:
        """Return these rows and then others."""
        every = zip(*(one.arrays for one in (self, *others)), strict=True)
        return replace(self, **{one.name: np.concatenate(each) for one, each in zip(fields(self), every, strict=True)})
