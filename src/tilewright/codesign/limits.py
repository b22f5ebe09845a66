"""What a design may take: area, power, elements, bytes on chip; and what would cure one that takes more."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, unknown_name
from tilewright.hardware import AREA, LEAKAGE, Accelerator, DesignSpace, Memory, Number, capacities_of, completed

Floats = NDArray[np.float64]
UNITS: Mapping[str, Mapping[str, float]] = {
    "area": {"um2": 1.0, "mm2": 1e6},
    "power": {"uW": 1e-3, "mW": 1.0, "W": 1e3},
    "elements": {"": 1.0},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "KiB": 1024.0, "MiB": 1024.0**2},
}
"""Units of each figure that may be limited, in um2, mW, elements, and bytes."""
SHOWN = {"area": ("um2", "um2"), "power": ("mW", "mW"), "elements": ("", "elements"), "bytes": ("B", "bytes on chip")}

LARGE = {"area": (1e4, "mm2", 1e6), "power": (1e3, "W", 1e3)}
"""From where on which limits are told in what larger unit."""


@dataclass(frozen=True)
class Limit:
    """The most of a figure: ``area`` (um2), ``power`` (mW), ``elements`` or ``bytes``."""

    what: str
    most: float

    def shown(self, digits: int = 6) -> str:
        """Return the figure with its unit, as it is read."""
        large, unit, scale = LARGE.get(self.what, (np.inf, "", 1.0))
        if self.most < large:
            unit, scale = SHOWN[self.what][0], 1.0
        return f"{self.most / scale:.{digits}g}{unit}"

    @property
    def rounded(self) -> "Limit":
        """The same, rounded up at the fourth digit."""
        scale = 10.0 ** (np.floor(np.log10(self.most)) - 3)
        return Limit(self.what, float(np.ceil(self.most / scale) * scale))

    def __str__(self) -> str:
        return f"{self.what}={self.shown(12)}"


def read_limits(within: "str | Iterable[str | Limit]", named: Callable[[str, str], float | None] | None = None,
                names: Iterable[str] = ()) -> tuple[Limit, ...]:
    """Read ``area=0.2mm2,power=2W``.

    Parameters
    ----------
    named
        Returns the limit of a figure that a text such as ``iot`` stands for, None if it stands for none; ``names`` are
        all that there are.

    Raises
    ------
    InputError
        If a figure is unknown, stands twice, has no unit or another, or is no positive number.
    """
    parts = within.split(",") if isinstance(within, str) else list(within)
    found = tuple(part if isinstance(part, Limit) else _read(part, named, tuple(names)) for part in parts)
    given = [limit.what for limit in found]
    if not found or len(set(given)) < len(given):
        raise InputError("within", "must limit one figure or several, each once", ", ".join(given) or "nothing",
                         "For example area=0.2mm2,power=2W")
    return found


def _read(text: str, named: Callable[[str, str], float | None] | None, names: tuple[str, ...]) -> Limit:
    name, sign, given = (part.strip() for part in text.partition("="))
    if name not in UNITS:
        raise unknown_name("limit", name, list(UNITS), "within")
    most = named(name, given) if named is not None else None
    if most is not None:
        return Limit(name, most)
    units = UNITS[name]
    match = re.fullmatch(r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]\w*)?", given, re.ASCII)
    if not sign or match is None:
        raise InputError(f"within.{name}", "must be a positive number and its unit" + "".join(
            f", or {one}" for one in names), given or text, f"For example {name}=2{next(iter(units))}")
    number, unit = float(match.group(1)), match.group(2) or ""
    if unit not in units:
        raise InputError(f"within.{name}", f"must have one of the units {', '.join(units)}" if "" not in units
                         else "must have no unit", given, f"For example {name}={match.group(1)}{[*units][-1]}")
    if not 0 < number * units[unit] < np.inf:
        raise InputError(f"within.{name}", "must be positive", given)
    return Limit(name, number * units[unit])


def figures_of(machine: Accelerator, numbers: Mapping[Number, Any]) -> dict[str, Any]:
    """Return area, elements and bytes on chip of machines whose `completed` numbers these are: one each, or ``(b)``."""
    instances: Any = 1
    held: Any = 0.0
    for level in machine.levels:
        if isinstance(level, Memory):
            held = held + instances * sum(level.arrays_of(capacities_of(level, numbers)), start=0.0)
        else:
            instances = instances * numbers[level.name, "instances"]
    return {"area": numbers[AREA], "elements": instances, "bytes": held}


def power_mw(machine: Accelerator, latency_cycles: Any, energy_pj: Any) -> Any:
    """Return average power: energy over the time that it takes."""
    return energy_pj / latency_cycles * machine.frequency_mhz * 1e-3


@dataclass(frozen=True)
class DesignBudget:
    """What machines of a design space may take; the power of a machine is told by what it runs.

    ``smallest`` are the least numbers that any of them can do with.
    """

    space: DesignSpace
    limits: tuple[Limit, ...]
    smallest: Mapping[Number, float]

    def most(self, what: str) -> float:
        """Return the limit of a figure, infinite where it has none."""
        return next((limit.most for limit in self.limits if limit.what == what), np.inf)

    def completed(self, chosen: Mapping[Number, Any]) -> dict[Number, Any]:
        """Return all numbers of machines of the space where these are chosen."""
        return completed(self.space.accelerator, self.space.numbers(chosen))

    def figures(self, chosen: Mapping[Number, Any]) -> dict[str, Any]:
        """Return area, elements and bytes on chip of machines of the space where these are chosen."""
        machine = self.space.accelerator
        return figures_of(machine, completed(machine, self.space.numbers(chosen), areas_alone=True))

    def excess(self, chosen: Mapping[Number, Any]) -> Any:
        """Return by which shares machines take more area, elements and bytes than they may, summed; 0 within."""
        over: Any = 0.0
        for what, figure in self.figures(chosen).items():
            over = over + np.maximum(figure / self.most(what) - 1.0, 0.0)
        return over

    def check(self, areas: bool = False) -> None:
        """Raise an `InputError` where not even the smallest machine of the space is within the limits.

        So it is where areas count, in a limit or else, and are not known of all machines of the space.
        """
        if areas or self.most("area") < np.inf:
            self._check_areas()
        taken = self.figures(self.smallest)
        for limit in self.limits:
            if limit.what in taken and taken[limit.what] > limit.most:
                least, unit = float(taken[limit.what]), SHOWN[limit.what][0]
                machine = f"smallest machine that runs all layers takes ({self.told(self.smallest)})"
                raise InputError(f"within.{limit.what}", f"must be at least {least:.6g}{unit}, which the "
                                 f"{'machine takes' if self.space.alone else machine}", f"{limit.most:g}{unit}")

    def _check_areas(self) -> None:
        machine = self.space.accelerator
        if machine.area_um2 <= 0:
            raise InputError(f"{machine.name}.area_um2", "must be known where area counts", machine.area_um2,
                             "Give area_um2 or a technology with areas")
        for (name, what), values in self.space.ranges.items():
            first = self.smallest
            grown = self.completed({**first, (name, what): values.high})
            if what.startswith("capacity_bytes") and values.high > values.low and (
                    grown[name, "area_um2"] == self.completed(first)[name, "area_um2"]):
                raise InputError(f"{machine.name}.{name}.area_um2", "must follow from the capacity, which varies, where"
                                 " area counts", machine.level(name).numbers["area_um2"],
                                 "Leave it out of the file, so that its technology tells it, or leave the capacity "
                                 "as it is")

    def told(self, chosen: Mapping[Number, float]) -> str:
        """Return a machine in words."""
        return ", ".join(f"{level}.{what} {value:g}" for (level, what), value in chosen.items())

    def violations(self, chosen: Mapping[Number, float], figures: "tuple[float, float] | None" = None) -> list[str]:
        """Return what a machine takes too much of, each with the smallest change of one number that cures it.

        ``figures`` are cycles and picojoules of what it runs, where power is to be told; that is cured by a slower
        clock.
        """
        machine, numbers = self.space.accelerator, self.completed(chosen)
        taken = {name: float(value) for name, value in figures_of(machine, numbers).items()}
        if figures is not None:
            taken["power"] = float(power_mw(machine, *figures))
        found = []
        for limit in self.limits:
            if taken.get(limit.what, 0.0) > limit.most:
                cure = (_slower(machine, taken["power"], limit.most, float(numbers[LEAKAGE]))
                        if limit.what == "power" else self._cure(chosen, limit))
                needed = Limit(limit.what, taken[limit.what]).rounded.shown()
                found.append(f"{limit.what}: {needed} where {limit.shown()} is allowed; "
                             + (f"within it with {cure}" if cure else f"allow {needed}"))
        return found

    def _cure(self, chosen: Mapping[Number, float], limit: Limit) -> str:
        """Return the change of one number, the smallest by its share, that brings a figure within its limit."""
        found = []
        for key in self.space.ranges:
            held = self.largest(chosen, key, limit)
            if held is not None and held < chosen[key]:
                found.append((1 - held / chosen[key], f"{'.'.join(key)} {held:g} in place of {chosen[key]:g}"))
        return min(found)[1] if found else ""

    def largest(self, chosen: Mapping[Number, float], key: Number, limit: Limit | None = None) -> float | None:
        """Return the most that a number may be, the others as chosen, within all limits or one; None if nothing is."""
        values = self.space.ranges[key]

        def holds(place: int) -> bool:
            with_it = {**chosen, key: values.value(place)}
            if limit is None:
                return bool(self.excess(with_it) <= 0)
            return bool(self.figures(with_it)[limit.what] <= limit.most)

        over = bisect_left(range(len(values)), True, key=lambda place: not holds(place))
        most: float | None = values.value(over - 1) if over else None
        return most


def _slower(machine: Accelerator, power: float, most: float, leakage_pj_per_cycle: float) -> str:
    """Return the clock that brings power (mW) to the most it may be; nothing where leakage alone takes more."""
    leakage = leakage_pj_per_cycle * machine.frequency_mhz * 1e-3
    clock = machine.frequency_mhz * (most - leakage) / (power - leakage)
    return f"a clock of {clock:.4g} MHz in place of {machine.frequency_mhz:g}" if clock > 0 else ""
