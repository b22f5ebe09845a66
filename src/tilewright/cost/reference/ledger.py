"""Words of one tensor at the instances of one memory."""

from dataclasses import dataclass

from tilewright.cost.reference.nest import Indices


@dataclass(frozen=True, eq=False)
class Tally:
    """Words by kind, each ``(i,)`` over the nominal instances of the memory."""

    reads: Indices
    fills: Indices
    updates: Indices
    drains: Indices
