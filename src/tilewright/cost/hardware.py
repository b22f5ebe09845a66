"""Many machines of one structure: a column of each number, one row a candidate."""

from collections.abc import Mapping as Dict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import AREA, LEAKAGE, PORTS, RATE, Accelerator, Number, completed, exact_rate, with_numbers

Floats = NDArray[np.float64]
RATES = {RATE.format(port): port for port in PORTS}
PERIOD = "/cycles"
"""Where rates are no whole numbers, a port moves so many words in so many of these."""

FINEST = 1024
"""Bandwidths that are whole numbers over this need no search for the fraction that is meant."""


@dataclass(frozen=True)
class HardwareBatch:
    """Hardware that differs from mapping to mapping."""

    values: Dict[Number, Floats] = field(default_factory=dict)
    """Arrays (b,) by (level, what), with the names of `Accelerator.numbers`: ``("PEs", "x")``,
    ``("GLB", "capacity_bytes")``, ``("DRAM", "bandwidth_words_per_cycle.read")`` ... What is not named follows by
    the technology's curves (energies, areas and leakage from capacities), or stays."""
    base: Accelerator | None = None
    """The machine that has all other numbers; by default that of the model."""

    @classmethod
    def of(cls, machines: Sequence[Accelerator]) -> "HardwareBatch":
        """Return one row for each of some machines of one structure.

        Raises an `InputError` if there is none, or they differ in more than numbers (or in their clock).
        """
        for index, machine in enumerate(machines):
            if machine.structure != machines[0].structure or machine.frequency_mhz != machines[0].frequency_mhz:
                raise InputError(f"machines[{index}]", "must differ from the first one in its numbers only",
                                 machine.name, "Give machines of another structure, or clock, a batch of their own")
        if not machines:
            raise InputError("machines", "must be at least one", 0)
        rows = [[*machine.numbers.values(), *_totals(machine).values()] for machine in machines]
        keys = [*machines[0].numbers, AREA, LEAKAGE]
        return cls(dict(zip(keys, np.array(rows, dtype=np.float64).T.copy(), strict=True)), machines[0])

    def __len__(self) -> int:
        return max((len(column) for column in self.values.values()), default=0)

    def take(self, index: "NDArray[np.intp] | slice") -> "HardwareBatch":
        """Return some of the rows, with what `on` has made of them."""
        found = replace(self, values={key: column[index] for key, column in self.values.items()})
        vars(found)["_on"] = {which: (columns.take(index), machine)
                              for which, (columns, machine) in vars(self).get("_on", {}).items()}
        return found

    def on(self, machine: Accelerator) -> "Columns":
        """Return all numbers of the rows; ``machine`` has those that neither they nor a base name.

        Kept, as the layers of a network ask for the same.

        Raises an `InputError` if the machine has no such number, columns are of different lengths, or the base is of
        another structure.
        """
        base = self.base or machine
        kept: dict[tuple[int, int], tuple[Columns, Accelerator]] = vars(self).setdefault("_on", {})
        which = id(base), id(machine)
        if which in kept:
            return kept[which][0]
        if base.structure != machine.structure:
            raise InputError("hardware.base", "must have the structure of the model's machine", base.name)
        for key, column in self.values.items():
            if np.shape(column) != (len(self),):
                raise InputError(f"hardware.{'.'.join(key)}", "must have one figure for each mapping",
                                 f"shape {np.shape(column)}", f"Give an array of shape ({len(self)},)")
        given = {key: np.asarray(column, dtype=np.float64) for key, column in self.values.items()}
        columns = Columns(base, completed(base, given)) if given else own_columns(base)
        kept[which] = columns, machine  # held, so that no other has its identity
        return columns

    def machine(self, index: int, base: Accelerator | None = None) -> Accelerator:
        """Return one row as a machine; ``base`` is needed where the batch names none."""
        own = self.base or base
        assert own is not None
        return with_numbers(own, {key: float(column[index]) for key, column in self.values.items()})


def _totals(machine: Accelerator) -> dict[Number, float]:
    return {AREA: machine.area_um2, LEAKAGE: machine.leakage_mw / machine.frequency_mhz * 1000}


@dataclass(frozen=True)
class Columns:
    """Every number of some machines of one structure, by (level, what): one figure, or an array (b,)."""

    machine: Accelerator
    numbers: Dict[Number, Any]

    @property
    def area_um2(self) -> float | Floats:
        """Area of each."""
        found: float | Floats = self.numbers[AREA]
        return found

    @cached_property
    def rates(self) -> list[float]:
        """The different bandwidths; of those that are halves, quarters and so on only the finest part."""
        found: set[float] = set()
        for key in self.numbers:
            if key[1] in RATES:
                parts = _parts(np.atleast_1d(self.numbers[key]))
                if parts is None:
                    found.update(np.unique(self.numbers[key]).tolist())
                else:
                    all_bits = int(np.bitwise_or.reduce(parts))
                    found.add((all_bits & -all_bits) / FINEST)
        return sorted(found)

    def take(self, index: "NDArray[np.intp] | slice") -> "Columns":
        """Return some of the rows."""
        return Columns(self.machine, {key: value[index] if isinstance(value, np.ndarray) else value
                                      for key, value in self.numbers.items()})

    def exact(self, key: Number) -> tuple[Any, Any]:
        """Return words in so many cycles for a bandwidth, whole numbers both."""
        kept: dict[Number, tuple[Any, Any]] = vars(self).setdefault("_exact", {})
        if key not in kept:
            rates = self.numbers[key]
            found = _exact(np.atleast_1d(np.asarray(rates, dtype=np.float64)))
            kept[key] = found if isinstance(rates, np.ndarray) else (float(found[0][0]), float(found[1][0]))
        return kept[key]

    def rows(self, keys: tuple[Number, ...]) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Return what the engine takes of parameters ``keys``: figures (p), which of them differ (k), and those (k, b).

        Bandwidths are one number each, or words beside a `PERIOD`.
        """
        kept: dict[object, Any] = vars(self).setdefault("_rows", {})
        if keys not in kept:
            found = [self._row(key, (key[0], key[1] + PERIOD) in keys) for key in keys]
            differ = [place for place, value in enumerate(found) if isinstance(value, np.ndarray)]
            figures = np.array([0.0 if isinstance(value, np.ndarray) else value for value in found], dtype=np.float64)
            table = np.stack([found[place] for place in differ]) if differ else np.empty((0, 1))
            kept[keys] = figures, np.array(differ, dtype=np.int64), np.ascontiguousarray(table)
        rows: tuple[Floats, NDArray[np.int64], Floats] = kept[keys]
        return rows

    def _row(self, key: Number, apart: bool) -> Any:
        """Return a parameter: of a bandwidth the words and the cycles ``apart``, or one over the other."""
        name, what = key
        if what.endswith(PERIOD):
            return self.exact((name, what.removesuffix(PERIOD)))[1]
        if what not in RATES:
            return self.numbers[key]
        rates = self.numbers[key]
        if not apart and _parts(np.atleast_1d(rates)) is not None:
            return rates
        words, cycles = self.exact(key)
        return words if apart else words / cycles


def _parts(rates: Floats) -> NDArray[np.int64] | None:
    """Return bandwidths in parts of `FINEST`, None where some are no whole number of them."""
    if not (rates < 2.0**20).all():
        return None
    parts = (rates * FINEST).astype(np.int64)
    return parts if (parts == rates * FINEST).all() and parts.all() else None


def _exact(rates: Floats) -> tuple[Floats, Floats]:
    """Return bandwidths as words in so many cycles, as `exact_rate` does: whole numbers without a common divisor."""
    parts = _parts(rates)
    if parts is not None:
        common = np.minimum(parts & -parts, FINEST)
        return (parts // common).astype(np.float64), (FINEST // common).astype(np.float64)
    different, where = np.unique(rates, return_inverse=True)
    found = [exact_rate(rate) for rate in different.tolist()]
    terms = np.array([(float(rate.numerator), float(rate.denominator)) for rate in found])[where.reshape(-1)]
    return terms[:, 0].copy(), terms[:, 1].copy()


def own_columns(machine: Accelerator) -> Columns:
    """Return the numbers of one machine, which keeps them: every layer's model asks."""
    found: Columns = vars(machine).setdefault("_columns", None) or Columns(machine, machine.numbers | _totals(machine))
    vars(machine)["_columns"] = found
    return found
