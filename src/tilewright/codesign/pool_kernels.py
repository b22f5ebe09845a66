"""Which mappings of a pool no other beats, compiled."""

from tilewright.mapping.spaces.kernels import Compiled, compiled, entry


@compiled
def _beats(figures: Compiled, one: Compiled, other: Compiled) -> Compiled:
    """Whether one row is no worse in anything than another and, where they are equal, comes first."""
    equal = True
    for at in range(figures.shape[1]):
        if figures[one, at] > figures[other, at]:
            return False
        equal = equal and figures[one, at] == figures[other, at]
    return not equal or one < other


@entry
def drop_beaten(figures: Compiled, old: Compiled, kept: Compiled) -> Compiled:
    """Leave in ``kept`` ``(n)``, all true, the rows ``(n, k)`` that no other beats; none of the first ``old`` does."""
    for step in range(len(figures)):
        row = (old + step) % len(figures)
        for other in range(old if row < old else 0, len(figures)):
            if kept[other] and other != row and _beats(figures, other, row):
                kept[row] = False
                break
