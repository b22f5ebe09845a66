"""AdaptNetX (section IV-A): how long a recommender's dense layers take in hardware of their own, and on the array."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tilewright.base import InputError
from tilewright.cost import ReconfigurableArray
from tilewright.recommendation.choices import Choices


@dataclass(frozen=True)
class AdviserCore:
    """Units of multipliers side by side, each with a tree of adders below; inputs rest, weights stream."""

    multipliers: int
    """Of all ``units`` together."""
    units: int = 2

    def __post_init__(self) -> None:
        if self.units < 1 or self.multipliers < self.units or self.multipliers % self.units:
            raise InputError("multipliers", f"must be a positive multiple of {self.units} units", self.multipliers)

    def cycles(self, widths: Sequence[int]) -> int:
        """Return the cycles of dense layers of ``widths``, from the inputs (entries of tables) to the classes.

        A unit holds as many inputs as it has multipliers and gives a sum for an output each cycle; more inputs take
        several passes, whose sums are added. A layer begins when the one before is done: its tree (and the register
        before it) fills anew. One more cycle picks the largest output.
        """
        if len(widths) < 2 or min(widths) < 1:
            raise InputError("widths", "must be two or more positive numbers", list(widths))
        each = self.multipliers // self.units
        fill = (each - 1).bit_length() + 1
        return 1 + sum(-(-into // each) * -(-out // self.units) + fill for into, out in pairwise(widths))


def cycles_on_cells(widths: Sequence[int], multipliers: int) -> int:
    """Return the cycles of the same layers on systolic cells of 4 x 4, each on its best configuration, stall-free."""
    choices = Choices(ReconfigurableArray(multipliers, 4), "published")
    layers = np.array([(1, out, into) for into, out in pairwise(widths)], dtype=np.int64)
    return int(choices.best(layers).cycles.sum())
