"""The numbers of a machine apart from its structure: what follows from which, for one machine or many candidates.

Numbers are named by (level, what) as in `Accelerator.numbers`. Each is one figure, or an array with one of each
candidate; what is computed here is the same for both, to the last digit.

People type them as ``GLB.capacity=256KB``, ``PEs.shape=16x16``, ``DRAM.bandwidth=16GB/s``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from itertools import takewhile
from math import sqrt
from typing import Any, TypeAlias

from pydantic_core import PydanticCustomError

from tilewright.base import InputError, late_module, whole_of
from tilewright.hardware.accelerator import Accelerator, flexibility_overhead
from tilewright.hardware.levels import (
    ACCESSES,
    LEAST_RATE,
    MOST,
    MOST_INSTANCES,
    NETWORK,
    PORTS,
    RATE,
    ROOM,
    Memory,
    Number,
    room_name,
)
from tilewright.hardware.schema import parse_bytes

np = late_module("numpy")
Following: TypeAlias = tuple[tuple[Number, ...], Callable[[], Any]]
"""Numbers that are all one figure, and how that is worked out."""
AREA, LEAKAGE = ("area", "um2"), ("leakage", "pj_per_cycle")
"""Totals of a machine, which follow from the numbers of its levels."""
CLOCK = "clock"
RATES = {"B/s": 1.0, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12, "KiB/s": 2.0**10, "MiB/s": 2.0**20,
         "GiB/s": 2.0**30}
"""Bytes a second of each unit of bandwidth."""
CYCLE = "B/cycle"
FREQUENCIES = {"kHz": 1e-3, "MHz": 1.0, "GHz": 1e3}
_FIGURE = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]+(?:/[a-z]+)?)?\s*", re.ASCII)
_SIDES = re.compile(r"\s*([0-9]+)\s*x\s*([0-9]+)\s*", re.ASCII)
_STEPS = re.compile(r"(.+?)\.\.(.+?)([*+])(.+)")
_STEPS_MEND = "For example 64KB..1MB*2, or 4..16+4"
MOST_VALUES = 10_000
"""Values that a number may take in one sweep."""


def completed(machine: Accelerator, given: Mapping[Number, Any], *, areas_alone: bool = False) -> dict[Number, Any]:
    """Return all numbers of ``machine``, and its totals, where some are ``given`` and the others stay or follow.

    From sides follow instances; from capacities, by the technology's curves, energies, areas and leakage; from the
    area inside an array the energy of its network; from all of these the totals. A figure follows only if the
    machine's own lies on its curve: those that its file states stay. With ``areas_alone`` energies and leakage that
    would follow are left out: a search over machines asks for areas far more often.

    Raises an `InputError` if the machine has no such number, or the technology does not know a capacity.
    """
    found: dict[Number, Any] = dict(machine.numbers)
    known = [*found, AREA, LEAKAGE]
    for key in given:
        if key not in known:
            raise InputError(f"hardware.{'.'.join(key)}", "must be a number that the accelerator limits", str(key),
                             f"Known: {', '.join('.'.join(other) for other in known)}")
    found |= given
    for array in machine.fanouts:
        sides = (array.name, "x"), (array.name, "y")
        if (array.name, "instances") not in given and any(side in given for side in sides):
            found[array.name, "instances"] = found[sides[0]] * found[sides[1]]
    followers = _followers(machine).difference(given)
    for keys, figure in _following(machine, found):
        wanted = [key for key in keys if key in followers]
        if wanted and (not areas_alone or keys[0][1] == "area_um2"):
            found |= dict.fromkeys(wanted, figure())
    added = flexibility_overhead(machine, found)
    found.setdefault(AREA, added.base_area_um2 + added.total_um2)
    if areas_alone:
        return {key: value for key, value in found.items() if key not in followers or key[1] == "area_um2"}
    found.setdefault(LEAKAGE, (added.base_leakage_mw + added.leakage_mw) / machine.frequency_mhz * 1000)
    return found


def capacities_of(memory: Memory, numbers: Mapping[Number, Any]) -> dict[str, Any]:
    """Return the capacities of a memory by what they are called, from all numbers of its machine."""
    names = [room_name(owner) for owner, size in memory.rooms.items() if size is not None]
    return {what: numbers[memory.name, what] for what in names}


def _followers(machine: Accelerator) -> frozenset[Number]:
    """Return the numbers of a machine that lie on the curves by which they would follow from others."""
    if "followers" in vars(machine):  # kept with the machine, as its other properties are
        known: frozenset[Number] = vars(machine)["followers"]
        return known
    found: set[Number] = set()
    for keys, figure in _following(machine, machine.numbers):
        with suppress(InputError):  # of a capacity that the technology does not know
            value = figure()
            found |= {key for key in keys if machine.numbers[key] == value}
    vars(machine)["followers"] = frozenset(found)
    return frozenset(found)


def with_numbers(machine: Accelerator, given: Mapping[Number, float], name: str | None = None) -> Accelerator:
    """Return the machine with these numbers, and what follows from them; raises as `completed` does."""
    numbers = completed(machine, {key: float(value) for key, value in given.items()})
    own = {level: {what: value for (at, what), value in numbers.items() if at == level} for level, _ in numbers}
    compute = machine.compute
    return replace(
        machine, name=name or machine.name,
        levels=tuple(level.with_numbers(own[level.name]) for level in machine.levels),
        compute=replace(compute, **own[compute.name]))


def _following(machine: Accelerator, numbers: Mapping[Number, Any]) -> Iterator[Following]:
    """Yield what may follow and how, inside out: each figure may be put into ``numbers`` before the next is asked."""
    memories = {memory.name: memory for memory in machine.memories}
    inner_um2 = numbers[machine.compute.name, "area_um2"]
    for level in reversed(machine.levels):
        if level.name in memories:
            yield from _of_capacity(memories[level.name], numbers)
            inner_um2 = inner_um2 + numbers[level.name, "area_um2"]
        else:
            wire = getattr(level, "wire_pj_per_mm", None)
            if wire is not None:
                yield ((level.name, NETWORK),), partial(_pitch_energy, wire, inner_um2)
            inner_um2 = inner_um2 * numbers[level.name, "instances"]


def _of_capacity(memory: Memory, numbers: Mapping[Number, Any]) -> Iterator[Following]:
    """Yield what may follow from the capacity of a memory."""
    storage, name = memory.storage, memory.name
    if storage is None:
        return
    own = capacities_of(memory, numbers)
    arrays, capacities = memory.arrays_of(own), list(own.values())
    for port, energy in (("read", storage.read_pj), ("write", storage.write_pj)):
        keys = tuple((name, f"{kind}_energy_pj_per_word") for kind in ACCESSES[port])
        yield keys, partial(_of_largest, energy, capacities, memory.word_bits)
    yield ((name, "area_um2"),), partial(storage.area, arrays)
    yield ((name, "leakage_mw"),), partial(storage.leakage, arrays)


def _pitch_energy(wire_pj_per_mm: float, area_um2: Any) -> Any:
    """Return picojoules to cross the pitch of an array with so much area in each instance."""
    root = sqrt(area_um2) if isinstance(area_um2, float | int) else np.sqrt(area_um2)
    return wire_pj_per_mm * (root / 1000)


def _of_largest(energy: Callable[[Any, int], Any], capacities: list[Any], bits: int) -> Any:
    """Return picojoules to read or write so many bits of the largest part of a memory."""
    if all(isinstance(each, float | int) for each in capacities):
        return energy(max([0.0, *capacities]), bits)
    return energy(reduce(np.maximum, capacities, 0.0), bits)


def read_bandwidth(text: str | float, clock_mhz: float, where: str = "bandwidth") -> float:
    """Return the bytes a cycle of ``16GB/s`` or, by name, ``16B/cycle``.

    Raises an `InputError` if it has no unit or an unknown one, or is not positive and finite.
    """
    match = _FIGURE.fullmatch(str(text))
    mend = "For example 16GB/s; 16B/cycle where bytes a cycle are meant"
    if match is None or "/" not in (match[2] or ""):
        raise InputError(where, "must be a number with a unit", text, mend)
    known = {unit: scale / (clock_mhz * 1e6) for unit, scale in RATES.items()} | {CYCLE: 1.0}
    if match[2] not in known:
        raise InputError(where, f"must have one of the units {', '.join(known)}", text, mend)
    found = float(match[1]) * known[match[2]]
    if not 0 < found < float("inf"):
        raise InputError(where, "must be positive and finite", text, mend)
    return found


def changed(machine: Accelerator, changes: Iterable[str]) -> Accelerator:
    """Return the machine with other numbers, each ``LEVEL.number=VALUE`` or ``clock=1GHz``; it is named after them.

    Energy, area and leakage follow as `with_numbers` says.

    Raises an `InputError` if a change names no number of the machine or one twice, or a value is none of its kind.
    """
    texts = [str(one).strip() for one in changes]
    if not texts:
        return machine
    clocks = [text.partition("=")[2] for text in texts if _is_clock(text)]
    if len(clocks) > 1:
        raise InputError(CLOCK, "must be set once", ", ".join(clocks))
    if clocks:  # first, as bandwidths in GB/s depend on it
        machine = replace(machine, frequency_mhz=_frequency(clocks[0]))
    name = f"{machine.name}:{','.join(text.replace(' ', '') for text in texts)}"
    return with_numbers(machine, read_changes(machine, texts), name)


def read_changes(machine: Accelerator, changes: Iterable[str]) -> dict[Number, float]:
    """Return the numbers that changes name, with their values; raises as `changed` does."""
    found: dict[Number, float] = {}
    for text in changes:
        numbers = {} if _is_clock(text) else read_change(machine, text)
        twice = next((key for key in numbers if key in found), None)
        if twice is not None:
            raise InputError(".".join(twice), "must be set once", text)
        found |= numbers
    return found


def read_change(machine: Accelerator, text: str) -> dict[Number, float]:
    """Return the numbers that ``LEVEL.number=VALUE`` names, with their values; raises as `changed` does."""
    name, sign, value = (part.strip() for part in text.partition("="))
    if not sign or not value:
        raise InputError("set", "must be LEVEL.NUMBER=VALUE", text, f"For example {_example(machine)}")
    level, what = _split(machine, name)
    where = f"{level}.{what}"
    if what == "shape":
        return dict(zip(_named(machine, level, what), _sides(value, where), strict=True))
    return {key: _value(machine, key, value, where) for key in _named(machine, level, what)}


def _is_clock(text: str) -> bool:
    return text.partition("=")[0].strip() == CLOCK


def read_values(machine: Accelerator, text: str) -> tuple[str, tuple[str, ...], list[dict[Number, float]]]:
    """Return what ``LEVEL.number=VALUES`` varies: its name, its values as texts, and the numbers of each.

    Values are listed, ``8x8,16x16``, or told as first and last one and a factor or a step: ``64KB..1MB*2``,
    ``4..16+4``. Where one has KB, which are 1024 bytes, MB and GB are powers of 1024, too, and returned as MiB and GiB:
    each text says the same by itself.

    Raises an `InputError`, as `changed` does, or if a value comes twice, or there are too many.
    """
    name, sign, values = (part.strip() for part in text.partition("="))
    if not sign or not values:
        raise InputError("vary", "must be LEVEL.NUMBER=VALUES", text, f"For example {_example(machine)},...")
    if name == CLOCK:
        raise InputError(name, "must be set, not varied", None, "Give --set clock=1GHz, and sweep each by itself")
    listed, binary = list[str](), "KB" in values
    for part in values.split(","):
        steps = _STEPS.fullmatch(part.strip())
        if steps is None and ".." in part:
            raise InputError(name, "must be FIRST..LAST*FACTOR or FIRST..LAST+STEP", part, _STEPS_MEND)
        listed += [part.strip()] if steps is None else _between(machine, name, steps, binary)
    if binary:
        listed = [re.sub(r"([MG])B\b", r"\1iB", value) for value in listed]
    found = [read_change(machine, f"{name}={_binary(value) if binary else value}") for value in listed]
    if any(one in found[:at] for at, one in enumerate(found)):
        raise InputError(name, "must list each value once", values)
    return name, tuple(listed), found


def _between(machine: Accelerator, name: str, steps: re.Match[str], binary: bool) -> list[str]:
    """Return the values from one to another in steps, in the unit of the first; MB may be ``binary``."""
    first, last, sign, by = steps.groups()
    match = _FIGURE.fullmatch(first)
    if match is None:
        raise InputError(name, "must list its values", f"{first}..{last}", "For example 8x8,16x16")
    low, high = (_figure(machine, name, _binary(end) if binary else end) for end in (first, last))
    scale = low / float(match[1])
    if sign == "*":
        step = _plain(by, name, 1.0)
    else:
        step = _plain(by, name, 0.0) * scale if by.strip()[-1].isdigit() else _figure(
            machine, name, _binary(by) if binary else by)
    if step <= (sign == "*"):
        raise InputError(name, "must grow from value to value", f"{sign}{by}", _STEPS_MEND)
    values = (low * step**n if sign == "*" else low + step * n for n in range(MOST_VALUES + 1))
    found = list(takewhile(lambda value: value <= high * (1 + 1e-9), values))
    if not found or len(found) > MOST_VALUES:
        raise InputError(name, f"must have from 1 to {MOST_VALUES:,} values", f"{first}..{last}{sign}{by}")
    return [f"{value / scale:.12g}{match[2] or ''}" for value in found]


def _figure(machine: Accelerator, name: str, value: str) -> float:
    """Return the figure that a value of one number says."""
    return next(iter(read_change(machine, f"{name}={value}").values()))


def _split(machine: Accelerator, name: str) -> tuple[str, str]:
    """Return (level, what) of ``LEVEL.what``; levels may have dots in their names."""
    names = [*(level.name for level in machine.levels), machine.compute.name]
    for level in names:
        if name.startswith(f"{level}."):
            return level, name.removeprefix(f"{level}.")
    raise InputError(name, f"must be a number of one of {', '.join(names)}, or {CLOCK}", name,
                     f"For example {_example(machine)}")


def _named(machine: Accelerator, level: str, what: str) -> list[Number]:
    """Return the numbers that a name stands for: in full, or as people say in short."""
    own = {key[1]: figure for key, figure in machine.numbers.items() if key[0] == level}
    several = {"shape": ["x", "y"], "bandwidth": [RATE.format(port) for port in PORTS],
               "energy": [f"{kind}_energy_pj_per_word" for kind in ACCESSES["shared"]]}
    short = {what, what.replace("capacity", ROOM), f"{what}_um2", f"{what}_mw", f"{what}_pj_per_word",
             f"{what}_pj_per_mac", what.replace("bandwidth.", RATE.format(""))}
    found = [key for key in several.get(what, ()) if key in own] or [key for key in own if key in short]
    if not found:
        raise InputError(f"{level}.{what}", "must be a number of the machine", what,
                         f"Of {level}: {', '.join(_shorts(own))}" if own else f"{level} has none that is limited")
    return [(level, key) for key in found]


def _value(machine: Accelerator, key: Number, value: str, where: str) -> float:
    level, what = key
    if what.startswith(ROOM):
        return read_bytes(value, where)
    if what.startswith(RATE.format("")):
        return _rate(machine, level, value, where)
    return _count(value, where) if what in ("x", "y", "instances") else _plain(value, where, 0.0)


def _sides(value: str, where: str) -> tuple[float, float]:
    match = _SIDES.fullmatch(value)
    if match is None and not value.isdecimal():
        raise InputError(where, "must be sides as 16x16", value)
    x, y = match.groups() if match else (value, "1")
    return _count(x, where), _count(y, where)


def _shorts(own: Mapping[str, float]) -> list[str]:
    """Return what the numbers of a level are called in short."""
    first = ["shape"] if "x" in own else []
    rates = ["bandwidth"] if any(key.startswith(RATE.format("")) for key in own) else []
    return [*first, *(key.replace(ROOM, "capacity") for key in own if key.startswith(ROOM)), *rates,
            *(key for key in own if not key.startswith((ROOM, RATE.format(""))))]


def _example(machine: Accelerator) -> str:
    memory = next((one for one in machine.memories if one.capacity_bytes is not None), None)
    array = next(iter(machine.fanouts), None)
    return (f"{memory.name}.capacity=64KiB" if memory is not None else f"{array.name}.shape=16x16" if array is not None
            else f"{CLOCK}=1GHz")


def _binary(text: str) -> str:
    """Return a text that says KB, MB or GB with powers of 1024."""
    return re.sub(r"([KMG])B\b", r"\1iB", text)


def read_bytes(value: str, where: str) -> float:
    """Return bytes; ``KB`` is 1024 of them, as memories are sold."""
    match = _FIGURE.fullmatch(value)
    try:
        found = float(match[1]) if match and match[2] is None else float(parse_bytes(_binary(value) if "KB" in value
                                                                                  else value))
    except PydanticCustomError as error:
        raise InputError(where, (error.context or {})["rule"], value, "For example 64KiB") from None
    if not 0 < found <= MOST:
        raise InputError(where, f"must be positive, and at most {MOST:g}", value)
    return found


def _rate(machine: Accelerator, level: str, value: str, where: str) -> float:
    """Return words a cycle, of ``4``, ``16GB/s`` or ``16B/cycle``."""
    match = _FIGURE.fullmatch(value)
    found = (float(match[1]) if match and match[2] is None else
             read_bandwidth(value, machine.frequency_mhz, where) * 8 / machine.memory(level).word_bits)
    if not LEAST_RATE <= found <= MOST:
        raise InputError(where, f"must be from {LEAST_RATE:g} to {MOST:g} words a cycle", value)
    return found


def _frequency(value: str) -> float:
    match = _FIGURE.fullmatch(value)
    if match is None or match[2] not in FREQUENCIES:
        raise InputError(CLOCK, f"must have one of the units {', '.join(FREQUENCIES)}", value, "For example clock=1GHz")
    found = float(match[1]) * FREQUENCIES[match[2]]
    if not LEAST_RATE <= found <= MOST:
        raise InputError(CLOCK, "must be positive, and no frequency out of this world", value)
    return found


def _count(text: str, where: str) -> float:
    count = whole_of(text, most=MOST_INSTANCES)
    if count is None:
        raise InputError(where, f"must be a whole number from 1 to {MOST_INSTANCES:,}", text)
    return float(count)


def _plain(value: str, where: str, least: float) -> float:
    match = _FIGURE.fullmatch(value)
    if match is None or match[2] is not None or not least <= float(match[1]) <= MOST:
        raise InputError(where, f"must be a number from {least:g} on, without a unit", value)
    return float(match[1])
