"""Which assumption makes a number of another tool differ from ours."""

from dataclasses import dataclass
from fractions import Fraction

from tilewright.cost.records import KINDS
from tilewright.cost.reference.conventions import TILEWRIGHT, Conventions
from tilewright.cost.reference.replay import Replay, replay
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping
from tilewright.workload import Operator

TOTALS = ("compute_cycles", "cycles", "energy_pj")
Place = tuple[str, str, str]


@dataclass(frozen=True)
class Parting:
    """One number under our rules and under a tool's, summed over instances, and what parts them."""

    place: Place
    """Memory, tensor and kind of access; ``("", "", name)`` for ``compute_cycles``, all ``cycles`` and
    ``energy_pj``."""
    ours: Fraction
    theirs: Fraction
    assumptions: tuple[str, ...]
    """Names of the tool's `Conventions` that the number hangs on; where both agree, assumptions that cancel out."""

    @property
    def differs(self) -> bool:
        """Whether the two numbers are not the same."""
        return self.ours != self.theirs


def partings(operator: Operator, accelerator: Accelerator, mapping: Mapping,
             conventions: Conventions) -> tuple[Parting, ...]:
    """Compare a mapping's counts under our rules and under ``conventions``, number by number.

    An assumption is named where dropping it from the tool's conventions, or from them without extrapolation (which
    hides how windows carry over), changes the number, or making it alone in ours does where nothing else explains it.

    Raises an `InputError` if the nest is too large to be walked in full, as our rules need.
    """
    def numbers(made: Conventions) -> dict[Place, Fraction]:
        return _numbers(replay(operator, accelerator, mapping, made))

    found_theirs = replay(operator, accelerator, mapping, conventions)
    conventions = found_theirs.conventions  # without what ragged nests are counted without
    ours, theirs = numbers(TILEWRIGHT), _numbers(found_theirs)
    named: dict[Place, list[str]] = {place: [] for place in ours}
    for base in dict.fromkeys((conventions, conventions.having("extrapolation", False))):
        figures = theirs if base == conventions else numbers(base)
        for name in base.made:
            dropped = numbers(base.having(name, False))
            for place, found in named.items():
                if dropped[place] != figures[place] and name not in found:
                    found.append(name)
    if any(not found and ours[place] != theirs[place] for place, found in named.items()):
        for name in conventions.made:
            alone = numbers(TILEWRIGHT.having(name, True))
            for place, found in named.items():
                if not found and ours[place] != theirs[place] and alone[place] != ours[place]:
                    found.append(name)
    return tuple(Parting(place, ours[place], theirs[place], tuple(found)) for place, found in named.items())


def _numbers(made: Replay) -> dict[Place, Fraction]:
    numbers = {(memory, tensor, kind): count.total(kind) for (memory, tensor), count in made.counts.items()
               for kind in KINDS}
    return numbers | {("", "", name): Fraction(getattr(made, name)) for name in TOTALS}

