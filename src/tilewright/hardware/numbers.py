"""The numbers of a machine apart from its structure: what follows from which, for one machine or many candidates.

Numbers are named by (level, what) as in `Accelerator.numbers`. Each is one figure, or an array with one of each
candidate; what is computed here is the same for both, to the last digit.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import sqrt
from typing import Any, TypeAlias

from tilewright.base import InputError
from tilewright.hardware.accelerator import Accelerator, flexibility_overhead
from tilewright.hardware.levels import NETWORK, Memory, Number, room_name

Following: TypeAlias = tuple[tuple[Number, ...], Callable[[], Any]]
"""Numbers that are all one figure, and how that is worked out."""
AREA, LEAKAGE = ("area", "um2"), ("leakage", "pj_per_cycle")
"""Totals of a machine, which follow from the numbers of its levels."""


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
    for kinds, energy in ((("read", "drain"), storage.read_pj), (("fill", "update"), storage.write_pj)):
        keys = tuple((name, f"{kind}_energy_pj_per_word") for kind in kinds)
        yield keys, partial(_of_largest, energy, capacities, memory.word_bits)
    yield ((name, "area_um2"),), partial(storage.area, arrays)
    yield ((name, "leakage_mw"),), partial(storage.leakage, arrays)


def _pitch_energy(wire_pj_per_mm: float, area_um2: Any) -> Any:
    """Return picojoules to cross the pitch of an array with so much area in each instance."""
    if isinstance(area_um2, float | int):
        return wire_pj_per_mm * (sqrt(area_um2) / 1000)
    from tilewright.hardware.columns import roots  # noqa: PLC0415  (NumPy loads late)

    return wire_pj_per_mm * (roots(area_um2) / 1000)


def _of_largest(energy: Callable[[Any, int], Any], capacities: list[Any], bits: int) -> Any:
    """Return picojoules to read or write so many bits of the largest part of a memory."""
    if all(isinstance(each, float | int) for each in capacities):
        return energy(max([0.0, *capacities]), bits)
    from tilewright.hardware.columns import largest  # noqa: PLC0415  (NumPy loads late)

    return energy(largest(capacities), bits)
