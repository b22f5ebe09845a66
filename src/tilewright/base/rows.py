"""Rows that lie in arrays side by side."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Rows of a dataclass whose fields are arrays, each with a row at every place of its first axis."""

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All arrays, in order."""
        return tuple([getattr(self, name) for name in self.__dataclass_fields__])

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.__dataclass_fields__))))

    def take(self, rows: Any) -> Self:
        """Return copies of some of the rows."""
        places = np.arange(len(self))[rows] if isinstance(rows, slice) else rows
        return type(self)(*[each[places] for each in self.arrays])

    def joined(self, *others: Self) -> Self:
        """Return these rows and then others."""
        every = zip(*(one.arrays for one in (self, *others)), strict=True)
        return type(self)(*[np.concatenate(each) for each in every])
