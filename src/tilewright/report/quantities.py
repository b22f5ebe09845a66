"""Numbers as people read them: three digits and a prefix, percentages, multiples of a bound."""

import math
from collections.abc import Iterable

_PREFIXES = {-15: "f", -12: "p", -9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
MISSING = "-"
"""Shown where a record has no such number."""

TIMES = "\N{MULTIPLICATION SIGN}"
PICOJOULE = 1e-12
JOULES = {"pJ": "J", "pJ x cycles": "J·cycles"}
"""Units as they are shown, where energies are told in joules."""


def engineering(value: float | None, unit: str = "") -> str:
    """Return a number with three digits and an SI prefix, for example ``3.21 M``; integers below 1000 stay whole.

    >>> engineering(3_210_000), engineering(42), engineering(0.0125, "J")
    ('3.21 M', '42', '12.5 mJ')
    """
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1000:
        return f"{int(value)} {unit}".rstrip()
    exponent = int(f"{value:.2e}".split("e")[1])
    step = max(-15, min(18, 3 * (exponent // 3)))
    decimals = max(0, 2 - (exponent - step)) if exponent >= step else 2
    return f"{value / 10.0**step:.{decimals}f} {_PREFIXES[step]}{unit}".rstrip()


def significant(value: float | None) -> str:
    """Return a number with three digits and no prefix, for example ``0.0350`` or ``1,230``."""
    if value is None:
        return MISSING
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    exponent = int(f"{value:.2e}".split("e")[1])
    return f"{round(value, 2 - exponent):,.{max(0, 2 - exponent)}f}"


def percent(share: float | None) -> str:
    """Return a share of one as a percentage with one decimal."""
    return MISSING if share is None else f"{100 * share:.1f} %"


def multiple(value: float | None, bound: float | None) -> str:
    """Return how many times its bound a value is, for example ``1.29x``; a dash where there is none."""
    ratio = over(value, bound)
    return MISSING if ratio is None else f"{ratio:.2f}x" if ratio < 1000 else f"{engineering(ratio)}x"


def over(value: float | None, bound: float | None) -> float | None:
    """Return value / bound, None where either is missing or the bound is zero."""
    return None if value is None or not bound else value / bound


def titled(metric: str) -> str:
    """Return the name of a metric as it begins a heading.

    >>> titled("latency"), titled("edp-area")
    ('Latency', 'EDP-area')
    """
    return metric.capitalize().replace("Edp", "EDP")


def finite(value: float) -> float | None:
    """Return a number as files have it: None where it is infinite or there is none."""
    return value if math.isfinite(value) else None


def measured(value: float | None, unit: str) -> str:
    """Return a figure in its unit, what is in picojoules in joules.

    >>> measured(69_500_000_000, "pJ"), measured(60_700_000, "cycles")
    ('69.5 mJ', '60.7 M cycles')
    """
    if value is not None and unit in JOULES:
        value, unit = value * PICOJOULE, JOULES[unit]
    return engineering(value, unit) if unit.startswith("J") else f"{engineering(value)} {unit}"


def figure_of(value: float, objective: str) -> str:
    """Return what an objective of arrays makes of a run: cycles, picojoules, or picojoules times cycles.

    >>> figure_of(1234, "latency"), figure_of(2.5e6, "energy"), figure_of(2.5e9, "edp")
    ('1,234 cycles', '2.50 µJ', '2.50 mJ·cycles')
    """
    if objective == "latency":
        return f"{value:,.0f} cycles"
    return measured(value, "pJ" if objective == "energy" else "pJ x cycles")


def joules(energy_pj: float | None) -> float | None:
    """Return picojoules (or picojoule-cycles) as joules (or joule-cycles)."""
    return None if energy_pj is None else energy_pj * PICOJOULE


def seconds_of(cycles: float, frequency_mhz: float) -> float:
    """Return the time that ``cycles`` take."""
    return cycles / (frequency_mhz * 1e6)


def byte_size(count: float | None) -> str:
    """Return bytes with a binary prefix, for example ``108 KiB``."""
    if count is None:
        return "unlimited"
    step = 0
    while step < 4 and count >= 1024:
        count /= 1024
        step += 1
    number = f"{count:.0f}" if count == int(count) or count >= 100 else f"{count:.3g}"
    return f"{number} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[step]}"


def shortened(text: str, width: int) -> str:
    """Return ``text`` cut in the middle to ``width`` characters, since names often differ at their ends."""
    if len(text) <= width:
        return text
    if width < 3:
        return text[:width]
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head):]}"


def padding_words(before: Iterable[tuple[str, int]], after: Iterable[tuple[str, int]]) -> str:
    """Return which sizes grew, for example ``M 127 to 128``."""
    grown = [f"{name} {size} to {now}" for (name, size), (_, now) in zip(before, after, strict=True) if now > size]
    return ", ".join(grown) or "no size grew"
