"""What may still be chosen of a machine: which of its numbers vary, in which ranges, and what follows from what."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isqrt
from typing import Any

from tilewright.base import InputError, late_module
from tilewright.hardware.accelerator import Accelerator, refuse_shared
from tilewright.hardware.levels import MOST_INSTANCES, RATE, Fanout, Memory, Number
from tilewright.hardware.numbers import changed, read_changes

np = late_module("numpy")
MOST_BYTES = float(1 << 30)
"""Largest capacity of a memory that no range is given for."""


@dataclass(frozen=True)
class NumberRange:
    """Values that a number may have: ``low``, ``low + step`` ... up to ``high``, or the listed ones; told by place."""

    low: float
    high: float
    step: float = 1.0
    values: tuple[float, ...] = ()
    """The only ones, ascending; ``low`` and ``high`` are the first and the last."""

    @classmethod
    def listed(cls, values: tuple[float, ...]) -> "NumberRange":
        """Return the range of some values, ascending."""
        return cls(values[0], values[-1], values=values)

    def __len__(self) -> int:
        return len(self.values) or int((self.high - self.low) / self.step + 1e-9) + 1

    def value(self, place: Any) -> Any:
        """Return the value at a place, or those at an array of places."""
        if not self.values:
            return self.low + self.step * place
        if isinstance(place, int):
            return self.values[place]
        return np.array(self.values)[place]

    def place(self, value: float) -> int:
        """Return the place of the largest value up to ``value``, or of the lowest of all."""
        if self.values:
            return max(0, bisect_right(self.values, value) - 1)
        return min(len(self) - 1, max(0, int((value - self.low) / self.step + 1e-9)))

    def places(self, values: Any) -> Any:
        """Return `place` of each of an array of values."""
        if self.values:
            return np.maximum(np.searchsorted(np.array(self.values), values, side="right") - 1, 0)
        return np.clip(((values - self.low) / self.step + 1e-9).astype(np.int64), 0, len(self) - 1)

    def first_places(self, values: Any) -> Any:
        """Return ``(b)``: the place of the smallest value from each of ``values`` on, or of the highest of all."""
        last = len(self) - 1
        if self.values:
            return np.minimum(np.searchsorted(np.array(self.values), values), last)
        found = np.clip(np.ceil((values - self.low) / self.step), 0, last).astype(np.int64)
        # By rounding it is one off, at most.
        found -= (found > 0) & (self.value(found - 1) >= values)
        found += (found < last) & (self.value(found) < values)
        return found

    def up_to(self, enough: float) -> "NumberRange":
        """Return the range without what is above the smallest value from ``enough`` on."""
        last = int(self.first_places(enough))
        return self.listed(self.values[:last + 1]) if self.values else replace(self, high=self.value(last))


@dataclass(frozen=True)
class DesignSpace:
    """Machines of one structure, or of few: which numbers vary.

    Raises an `InputError` if the machine has no such number, or one is said twice.
    """

    accelerator: Accelerator
    """The machine that has all other numbers."""
    ranges: Mapping[Number, NumberRange]
    """Of the numbers that vary, by (level, what): sides of arrays, ``instances`` where the shape is free, capacities,
    bandwidths."""
    follow: Mapping[Number, tuple[Number, float]] = field(default_factory=dict)
    """Numbers that are a multiple of another: ``{number: (other, times)}``."""
    optional: tuple[str, ...] = ()
    """Levels that a machine may do without."""

    def __post_init__(self) -> None:
        refuse_shared(self.accelerator, "a design")
        for key in (*self.ranges, *self.follow):
            check_number(self.accelerator, key)
        for key, (other, _) in self.follow.items():
            if key in self.ranges:
                raise InputError(f"design.follow.{'.'.join(key)}", "must not be among the numbers that vary", key[1])
            if other not in self.ranges:
                raise InputError(f"design.follow.{'.'.join(key)}", "must follow a number that varies",
                                 ".".join(other), f"Varying: {', '.join('.'.join(one) for one in self.ranges)}")
        for name in self.optional:
            if self.accelerator.level(name) is self.accelerator.levels[0]:
                raise InputError("design.optional", "must not name the outermost memory", name)

    @classmethod
    def of(cls, accelerator: Accelerator) -> "DesignSpace":
        """Return what varies where nothing is said: sides of all arrays, capacities of all limited memories on chip.

        From one instance and one byte on, as far as the technology knows memories and an array can be, whatever its
        other side.
        """
        ranges: dict[Number, NumberRange] = {}
        for level in accelerator.levels:
            if isinstance(level, Fanout):
                unit = level.blocks or (1, 1)
                most, sides = (MOST_INSTANCES, (("instances", unit[0] * unit[1]),)) if level.one_piece else (
                    isqrt(MOST_INSTANCES), (("x", 1), ("y", 1)))
                for what, step in sides:
                    ranges[level.name, what] = NumberRange(step, most // step * step, step)
                continue
            curve = None if level.storage is None else level.storage.area_um2
            for what in level.numbers:
                if what.startswith("capacity_bytes"):
                    ranges[level.name, what] = NumberRange(
                        1.0 if curve is None else max(1.0, curve.low),
                        MOST_BYTES if curve is None else min(MOST_BYTES, curve.high))
        return cls(accelerator, ranges)

    @classmethod
    def as_it_is(cls, accelerator: Accelerator) -> "DesignSpace":
        """Return the space that holds this machine alone."""
        return cls(accelerator, {key: NumberRange.listed((float(accelerator.numbers[key]),))
                                 for key in cls.of(accelerator).ranges})

    def changed(self, changes: Iterable[str]) -> "DesignSpace":
        """Return the space with other numbers, as `tilewright.hardware.changed` reads them: these do not vary."""
        given = list(changes)
        fixed = {key: NumberRange.listed((value,)) for key, value in read_changes(self.accelerator, given).items()
                 if key in self.ranges}
        return replace(self, accelerator=changed(self.accelerator, given), ranges={**self.ranges, **fixed})

    @property
    def alone(self) -> bool:
        """Whether it holds one machine."""
        return all(len(values) == 1 for values in self.ranges.values()) and not self.optional

    def numbers(self, chosen: Mapping[Number, Any]) -> dict[Number, Any]:
        """Return the numbers of machines, one figure or an array each, where these are ``chosen``.

        What follows from them is among them; where an array's shape is free, its sides are those of one row.
        """
        found = dict(chosen)
        found |= {key: chosen[other] * times for key, (other, times) in self.follow.items() if other in chosen}
        for level, what in list(found):
            if what == "instances":
                found |= {(level, "x"): found[level, what], (level, "y"): found[level, what] * 0 + 1}
        return found

    def structures(self) -> Iterator["DesignSpace"]:
        """Yield the spaces of one structure each: with all levels, and without some of the optional ones."""
        for count in range(len(self.optional) + 1):
            for without in combinations(self.optional, count):
                yield self._without(set(without))

    def _without(self, names: set[str]) -> "DesignSpace":
        machine = self.accelerator
        vector = machine.vector
        if vector is not None and vector.memory in names:  # then where it stands on a machine that says nothing of that
            vector = replace(vector, memory=None)
        if names:
            machine = replace(machine, name=f"{machine.name} without {', '.join(sorted(names))}", levels=tuple(
                level for level in machine.levels if level.name not in names), vector=vector)
        follow = {key: of for key, of in self.follow.items() if not {key[0], of[0][0]} & names}
        return DesignSpace(machine, {key: value for key, value in self.ranges.items() if key[0] not in names}, follow)


def check_number(accelerator: Accelerator, key: Number) -> None:
    """Raise an `InputError` unless a design may choose this number of the machine."""
    name, what = key
    path = f"design.{name}.{what}"
    if name not in [level.name for level in accelerator.levels]:
        raise InputError(path, f"must name one of the levels {', '.join(one.name for one in accelerator.levels)}", name)
    level = accelerator.level(name)
    if isinstance(level, Memory):
        known = [one for one in level.numbers if one.startswith(("capacity_bytes", RATE.format("")))]
    else:
        known = ["instances"] if level.one_piece else ["x", "y"]
    if what not in known:
        raise InputError(path, "must be a number that a design may choose", what,
                         f"Of {name}: {', '.join(known) or 'none, as it is not limited'}")
