"""Accelergy's energy and area reference tables (ERT, ART), and machines that take their figures from them."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory
from tilewright.interop.sections import Files, Node

_RANGE = re.compile(r"[\[<][^\[\]<>]*\.\.[^\[\]<>]*[\]>]")
_READ = {"read", "write", "update", "leak", "compute", "mac", "mac_random"}
"""Actions that are counted."""
_COMPUTE = ("compute", "mac_random", "mac")


@dataclass(frozen=True)
class Energies:
    """Picojoules per action by component, and area, from reference tables; empty where none were given."""

    actions: Mapping[str, Mapping[str, float]]
    areas: Mapping[str, float]
    places: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)
    """Where a component stands, for each table that names it."""

    def access(self, name: str, words: float) -> AccessEnergy | None:
        """Return the energies per word of a memory whose accesses move ``words``; None if no table names it.

        Raises an `InputError` if the table lacks its reads or writes.
        """
        table = self.actions.get(name)
        if table is None:
            return None
        missing = [action for action in ("read", "write") if action not in table]
        if missing:
            raise InputError(f"ERT.{name}", f"must have the action {missing[0]}", ", ".join(table))
        read, write, update = (float(f"{table.get(action, table['write']) / words:.12g}")
                               for action in ("read", "write", "update"))
        return AccessEnergy(read, write, update, read)

    def leakage_mw(self, name: str, cycle_seconds: float) -> float:
        """Return milliwatts of an instance; the table has picojoules per cycle."""
        leak = self.actions.get(name, {}).get("leak", 0.0)
        return float(f"{leak * 1e-9 / cycle_seconds:.12g}")

    def note_unmatched(self, names: Collection[str]) -> None:
        """Note the figures of components that are none of ``names``, and what is not counted of the others."""
        for name, stated in self.places.items():
            figures = self.actions.get(name, {})
            if name not in names:
                if any(figures.values()) or self.areas.get(name):
                    for entry in stated:
                        entry.dropped(f"figures of {name}: the machine has no component of that name")
                continue
            rest = [action for action, energy in figures.items() if action not in _READ and energy]
            if rest:
                stated[0].dropped(f"energies of {name} for {', '.join(rest)}: such actions are not counted")


def read_energies(files: Files) -> Energies:
    """Return the energy and area reference tables (ERT, ART) of the files."""
    actions: dict[str, dict[str, float]] = {}
    areas: dict[str, float] = {}
    places: dict[str, list[Node]] = {}
    for name, entry in _entries(files, "ERT"):
        places.setdefault(name, []).append(entry)
        found = actions.setdefault(name, {})
        for action in entry.get("actions", []).items():
            action.fields()
            action.note_unknown({"name", "energy", "arguments"})
            energy = action["energy"].not_negative()
            kind = str(action["name"].value)
            if kind in found and found[kind] != energy:
                action.approximated(f"{kind} of {name} for several arguments: the largest is taken")
            found[kind] = max(energy, found.get(kind, 0.0))
    for name, entry in _entries(files, "ART"):
        places.setdefault(name, []).append(entry)
        areas[name] = entry["area"].not_negative()
    return Energies(actions, areas, {name: tuple(found) for name, found in places.items()})


def _entries(files: Files, kind: str) -> Iterator[tuple[str, Node]]:
    """Yield the entries of the tables of a kind with the names of their components: ``GLB`` of ``chip.GLB[1..4]``."""
    for section in files.named(kind):
        section.root.fields()
        section.root.note_unknown({"version", "tables"})
        for entry in section.root["tables"].items():
            entry.note_unknown({"name", "actions", "area"})
            if "name" not in entry.fields():
                raise entry.fail("must have a name")
            yield _RANGE.sub("", str(entry["name"].value)).split(".")[-1], entry


def compute_action(energies: Energies, name: str) -> float | None:
    """Return the energy of one multiply-accumulate, which the unit's table must have; None if no table names it."""
    table = energies.actions.get(name)
    if not table:
        return None
    action = next((action for action in _COMPUTE if action in table), None)
    if action is None:
        raise InputError(f"ERT.{name}", "must have the action compute", ", ".join(table))
    return table[action]


def with_energies(accelerator: Accelerator, energies: Energies) -> Accelerator:
    """Return a machine of any origin with the tables' figures for the components that they name.

    An access moves a memory's ``block_words``, or its ``access_grain``. A memory with partitions may be one component,
    or one for each (``GLB_weights``, as it is exported); then energies must agree, and areas and leakage add up.

    Raises an `InputError` if no table names any of its components, or lacks an action, or the energies of a memory's
    partitions differ.
    """
    seconds = 1e-6 / accelerator.frequency_mhz
    levels: list[Memory | Fanout] = []
    matched: set[str] = set()
    for level in accelerator.levels:
        if isinstance(level, Fanout):
            levels.append(level)
            continue
        parts = [level.name, *(f"{level.name}_{owner}" for owner, _ in level.partitions_bytes), f"{level.name}_shared"]
        named = [part for part in parts if part in energies.places]
        matched.update(named)
        levels.append(_memory_with(level, named, energies, seconds))
    compute = accelerator.compute
    energy = compute_action(energies, compute.name)
    if energy is not None:
        compute = replace(compute, energy_pj_per_mac=energy, leakage_mw=energies.leakage_mw(compute.name, seconds))
    if compute.name in energies.places:
        matched.add(compute.name)
        compute = replace(compute, area_um2=energies.areas.get(compute.name, compute.area_um2))
    if not matched:
        known = [level.name for level in accelerator.memories] + [accelerator.compute.name]
        first = next(iter(energies.places.values()))[0]
        raise first.fail(f"must name components of {accelerator.name}: {', '.join(known)}",
                         ", ".join(energies.places))
    energies.note_unmatched(matched)
    labels = dict.fromkeys(entry.section.label for stated in energies.places.values() for entry in stated)
    return replace(accelerator, levels=tuple(levels), compute=compute,
                   sources=(*accelerator.sources, f"{', '.join(sorted(matched))}: {', '.join(labels)}"))


def _memory_with(memory: Memory, parts: list[str], energies: Energies, seconds: float) -> Memory:
    """Return a memory with the figures of its components."""
    words = memory.block_words * prod(memory.access_grain)
    stated = {part: found for part in parts if (found := energies.access(part, words)) is not None}
    if len(set(stated.values())) > 1:
        raise InputError(f"ERT.{memory.name}", "must have the same energies for all partitions, as here they are of "
                         "one memory", ", ".join(stated))
    if stated:
        leakage = sum(energies.leakage_mw(part, seconds) for part in stated)
        memory = replace(memory, energy=next(iter(stated.values())), leakage_mw=leakage)
    areas = [energies.areas[part] for part in parts if part in energies.areas]
    return replace(memory, area_um2=sum(areas)) if areas else memory
