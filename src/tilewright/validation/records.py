"""What a set of reference figures is, and what became of comparing ours with it."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import inf, isclose
from pathlib import Path
from statistics import median
from typing import Any, Literal

from tilewright.base import Registry

ROUNDING = 1e-14
"""By what share sums of the same numbers in another order differ at most; whole numbers to 10^14 do by more."""
DATA = Path(__file__).parent / "data"
"""Reference figures that travel with the package."""

Kind = Literal["oracle", "model", "RTL", "silicon"]
"""What a reference is: our own literal walk of the rules, another model, a simulation of hardware, a chip."""


@dataclass(frozen=True)
class Quantity:
    """What is compared."""

    name: str
    unit: str = ""
    """Empty where it is a plain number."""
    about: str = ""
    """How our figure comes about, where the name does not say it."""
    ordered: bool = False
    """Whether it makes sense to ask if the cases stand in the same order on both sides."""


@dataclass(frozen=True)
class Figure:
    """One figure on both sides, in the unit of its quantity."""

    case: str
    quantity: str
    ours: float
    reference: float

    @property
    def error(self) -> float:
        """By which share of the reference ours is above it (or below: negative); infinite where that is 0.

        It is 0 where they differ by no more than sums of the same numbers in another order do.
        """
        if isclose(self.ours, self.reference, rel_tol=ROUNDING):
            return 0.0
        return self.ours / self.reference - 1 if self.reference else inf


@dataclass(frozen=True)
class SetFigures:
    """The figures of a set that was run; ``notes`` say in sentences what else was counted."""

    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ValidationWatch:
    """How thoroughly a set is run, and who is told how far it is."""

    full: bool = False
    """Spend minutes where a quick run spends seconds (more random nests)."""
    tell: Callable[[int, int], None] = lambda done, total: None
    """Called with cases done and cases in all."""


@dataclass(frozen=True)
class ReferenceSet:
    """Figures of others, and the code that sets ours beside them.

    Parameters
    ----------
    title, about
        What is compared, in some words and in a paragraph: how our figures come about.
    source
        The citation.
    why
        Where we are off, and the reason: a paragraph of Markdown, empty where nothing is to be said.
    each_case
        Whether the page shows every case: for few ones.
    deeper
        Whether a full run compares more, with errors of its own to be accepted.
    """

    name: str
    title: str
    kind: Kind
    source: str
    quantities: tuple[Quantity, ...]
    run: Callable[[ValidationWatch], SetFigures]
    about: str
    why: str = ""
    each_case: bool = False
    deeper: bool = False


SETS: Registry[ReferenceSet] = Registry("reference set")


def register(found: ReferenceSet) -> ReferenceSet:
    """Add a set to those that `validate` runs."""
    return SETS.register(found.name)(found)


def add_own(name: str, quantities: tuple[Quantity, ...], run: Callable[[ValidationWatch], SetFigures],
            **more: Any) -> None:
    """Add one of our own sets, which ``data/sets.toml`` describes in words."""
    told = tomllib.loads((DATA / "sets.toml").read_text(encoding="utf-8"))[name]
    register(ReferenceSet(name=name, quantities=quantities, run=run, **told | more))


@dataclass(frozen=True)
class Summary:
    """The errors of one quantity over all cases of a set."""

    cases: int
    """Figures compared."""
    median_error: float
    worst_error: float
    """``median_error`` and ``worst_error``: of the errors' absolute values, as shares of one."""
    order: float | None = None
    """Share of all pairs of cases that stand in the same order on both sides; None where that is not asked."""
    worst_case: str = ""
    """Where the worst error is; empty where there is none."""


def summary(quantity: Quantity, figures: tuple[Figure, ...]) -> Summary:
    """Return the errors of one quantity among the figures of a set."""
    own = [figure for figure in figures if figure.quantity == quantity.name]
    if not own:
        return Summary(0, inf, inf)
    worst = max(own, key=lambda figure: abs(figure.error))
    return Summary(len(own), median(abs(figure.error) for figure in own), abs(worst.error),
                   _order(own) if quantity.ordered else None, worst.case if worst.error else "")


def _order(figures: list[Figure]) -> float:
    """Return the share of pairs in the same order on both sides; two that are equal must be equal on both."""
    pairs = list(combinations(figures, 2))
    alike = sum(_sign(a.ours, b.ours) == _sign(a.reference, b.reference) for a, b in pairs)
    return alike / len(pairs) if pairs else 1.0


def _sign(one: float, other: float) -> int:
    return (one > other) - (one < other)
