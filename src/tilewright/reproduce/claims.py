"""A paper's claims, and the one rule by which all studies judge them."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import geometric_mean
from typing import Literal

from tilewright.search.studies import median_interval

Verdict = Literal["holds", "holds in direction", "does not hold", "impossible as published", "not judged"]
"""``impossible as published``: a published figure is below what a computed bound allows.

``not judged``: this run did not measure enough to say (one seed alone, a sweep cut short, an extra not installed).
"""

Kind = Literal["gain", "share", "exact"]

HOLDS, IN_DIRECTION = 0.75, 0.25
"""What part of a published effect must be found for a claim to hold, and to hold in direction."""
_LARGEST = 1e300


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper that can be right or wrong, and the figure that says which."""

    text: str
    """What is claimed, in our words."""
    published: str
    """What the paper prints."""
    judged: str
    """What is measured."""
    figure: float = 1.0
    none: float = 0.0
    """``figure`` and ``none``: what that is by the paper, and what it is where there is nothing in the claim."""
    kind: Kind = "share"
    """How an effect is told from none: a ``gain`` is a ratio, in logarithms; a ``share`` is a number from 0 to 1; an
    ``exact`` one is the share of printed figures that ours, which are counted, round to."""


def gain(text: str, published: str, figure: float, judged: str = "that ratio", none: float = 1.0) -> Claim:
    """Return a claim of a ratio."""
    return Claim(text, published, judged, figure, none, "gain")


def same(text: str, published: str, figure: float, judged: str) -> Claim:
    """Return a claim that two figures are alike, measured by how many times one is the other (`apart`).

    There is nothing in it where they are as far apart as what the paper contrasts them with, ``figure``.
    """
    most = max(figure, 1 / figure)
    return Claim(text, published, f"{judged}; {most:.3g} times apart is nothing alike", 1.0, most, "gain")


def cases(text: str, published: str, judged: str, figure: float = 1.0, none: float = 0.5) -> Claim:
    """Return a claim of what is so in all cases: the share of them; by luck it is so in ``none`` of them."""
    return Claim(text, published, judged, figure, none)


def kept(text: str, published: str, judged: str, figure: float = 1.0) -> Claim:
    """Return a claim that a part gets most of the whole: the part of the gain that it has."""
    return Claim(text, published, judged, figure)


def exact(text: str, published: str, judged: str) -> Claim:
    """Return a claim of printed figures: the share of them that ours round to."""
    return Claim(text, published, judged, kind="exact")


KINDS: dict[str, Callable[..., Claim]] = {"gain": gain, "same": same, "cases": cases, "kept": kept, "exact": exact}
"""What makes a claim, by the names that ``data/claims.csv`` calls them by."""


def judge(claim: Claim, ours: Sequence[float] | float, told: str, because: str = "", *,
          impossible: bool = False) -> "Judgement":
    """Judge a claim: the one rule of all studies.

    What is found is put on the scale of what is published: 0 where there is nothing in the claim, 1 for all of it (by
    logarithms for ratios). A claim *holds* from three quarters on and *holds in direction* from one quarter on, both
    only where the interval over seeds (order statistics around the median, `median_interval`) lies above 0. Figures
    that are counted, not searched for, must all round to the printed ones, for three quarters of them it holds in
    direction.

    Parameters
    ----------
    ours
        What is measured, by seed; one number where it is counted and no seed plays a part.
    told
        The same for people.
    impossible
        Whether a published figure is below a bound that was computed.
    """
    if impossible:
        return Judgement(claim, told, "impossible as published", because)
    counted = isinstance(ours, (int, float))
    reached = [_reached(claim, value) for value in ([ours] if isinstance(ours, (int, float)) else ours)]
    if not reached or (len(reached) == 1 and not counted):
        return Judgement(claim, told, "not judged", "; ".join(filter(None, (because, "one seed has no interval"))))
    found = median_interval(reached)
    holds, direction = (1.0, HOLDS) if claim.kind == "exact" else (HOLDS, IN_DIRECTION)
    level: Verdict = "does not hold"
    if found.low > 0:
        level = "holds" if found.median >= holds else "holds in direction" if found.median >= direction else level
    return Judgement(claim, told, level, because, (found.low, found.median, found.high))


def listed(claim: Claim, ours: Iterable[float], form: str = "{:.2f}") -> "Judgement":
    """Judge a claim, and tell what is measured of each seed in a ``form``."""
    values = list(ours)
    return judge(claim, values, ", ".join(map(form.format, values)))


def counted(claim: Claim, told: Sequence[bool], because: str = "", of: str = "") -> "Judgement":
    """Judge a claim by the share of cases (``of`` what) in which it is so, and tell how many they are."""
    return judge(claim, sum(told) / len(told), f"{sum(told)} of {len(told)} {of}".rstrip(), because)


def effect(reached: Sequence[float] | None) -> str:
    """Return what part of an effect was found as people read it, for example ``85 % (79 to 90)``."""
    if reached is None:
        return ""
    low, middle, high = (f"{100 * max(-9.99, min(9.99, each)):.0f}" for each in reached)
    return f"{middle} %" + (f" ({low} to {high})" if low != high else "")


def _reached(claim: Claim, value: float) -> float:
    """Return what part of the published effect a figure shows."""
    if math.isnan(value):
        return 0.0
    if claim.kind != "gain":
        return (value - claim.none) / (claim.figure - claim.none)
    ours, none, theirs = (math.log(min(max(each, 1 / _LARGEST), _LARGEST))
                          for each in (value, claim.none, claim.figure))
    return (ours - none) / (theirs - none)


def apart(one: float, other: float) -> float:
    """Return how many times the larger of two figures is the smaller."""
    return max(one, other) / min(one, other) if min(one, other) > 0 and max(one, other) < math.inf else math.inf


def lower(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the share of pairs whose first is lower than the second; equal ones count half."""
    told = [1.0 if one < other else 0.5 if one == other else 0.0 for one, other in pairs]
    return sum(told) / len(told) if told else math.nan


def part_of(part: float, whole: float) -> float:
    """Return what part of the gain of one ratio another has, in logarithms; 0 where there is no gain."""
    if not (0 < part < math.inf and 0 < whole < math.inf) or abs(math.log(whole)) < 1e-9:
        return 0.0
    return math.log(part) / math.log(whole)


def printed(value: float, published: float) -> bool:
    """Whether a value rounds to a published figure, at the digits that are printed (or half a unit of the last)."""
    text = f"{published:.4f}".rstrip("0")
    digits = max(len(text.split(".")[1]), 2) if "." in text else 2
    return bool(abs(value - published) <= 0.5 * 10**-digits + 1e-9)


def right(pairs: Iterable[tuple[float, float]]) -> float:
    """Return the share of values that round to the published ones beside them."""
    told = [printed(value, published) for value, published in pairs]
    return sum(told) / len(told)


Range = tuple[float, float]


def between(values: Iterable[float], digits: int = 0) -> Range:
    """Return from where to where the geometric mean of printed figures can be, as their last digits are rounded.

    They are printed with so many significant ``digits`` or more, or with one decimal or more where that is 0.
    """
    lows, highs = [], []
    for value in values:
        number = Decimal(repr(value)).normalize()
        last = int(number.as_tuple().exponent)
        half = 0.5 * 10.0 ** min(last, number.adjusted() + 1 - digits if digits else -1)
        lows.append(value - half)
        highs.append(value + half)
    return geometric_mean(lows), geometric_mean(highs)


def ratio(one: Range, other: Range) -> Range:
    """Return from where to where the ratio of two figures can be."""
    return one[0] / other[1], one[1] / other[0]


def less(one: Range, other: Range) -> Range:
    """Return from where to where the percentage can be by which the second of two figures is lower."""
    low, high = ratio(other, one)
    return 100 * (1 - high), 100 * (1 - low)


def follows(claim: Claim, stated: Iterable[tuple[str, str, Range]]) -> "Judgement":
    """Judge what a text says of its own figures: what it is of, the figure as the text has it, where it can be.

    Figures may be rounded, or cut off, at the digits of the text.
    """
    wrong, right_ones, told = [], 0, []
    for name, text, (low, high) in stated:
        unit = 10.0 ** -len(text.partition(".")[2])
        told.append(f"{name} {low:.3g} to {high:.3g}")
        if low - unit < float(text) <= high + unit / 2:
            right_ones += 1
        else:
            wrong.append(f"{name}: the text has {text}, the table gives {low:.3g} to {high:.3g}")
    return judge(claim, right_ones / len(told), "; ".join(told), "; ".join(wrong))


@dataclass(frozen=True)
class Judgement:
    """What became of a claim: our figure, the verdict, and why where that is not plain."""

    claim: Claim
    ours: str
    verdict: Verdict
    because: str = ""
    reached: tuple[float, float, float] | None = None
    """What part of the published effect was found: low end of the interval over seeds, median, high end."""

    @property
    def effect(self) -> str:
        """The same for people."""
        return effect(self.reached)
