"""The places of a Timeloop architecture, made an accelerator.

Timeloop counts words, whatever their width: where the memories' word widths differ, the machine is made of words of 8
bits, so that one word of a tensor is one word of every memory, as there.

Its figures may come from Accelergy's energy and area reference tables (ERT, ART).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tilewright.base import InputError
from tilewright.hardware import (
    Accelerator,
    AccessEnergy,
    Bandwidth,
    Buffering,
    Compute,
    Fanout,
    Memory,
    Sparsity,
)
from tilewright.interop.figures import Estimated
from tilewright.interop.sections import WEIGHTS_NAME, Files, Node
from tilewright.interop.timeloop.architecture import SPELLINGS, Design, Place
from tilewright.workload import Operator

COUNTED_WORD_BITS = 8
DEFAULT_WORD_BITS = 16
"""Of a Timeloop buffer that says none (``BufferLevel::Specs``)."""
_ROLE_HINTS = (("weights", WEIGHTS_NAME),
               ("outputs", re.compile(r"(?i)o|z|.*(output|psum|ofmap).*")),
               ("inputs", re.compile(r"(?i)i|.*(input|ifmap|activation).*")))
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


@dataclass(frozen=True)
class Said:
    """What files say of a machine beside its components."""

    keeps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """By memory: the tensors it can keep, where that is less than everything."""
    apart: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By array: the tensors that are neither multicast nor added up in it."""


def build_accelerator(design: Design, energies: Energies, operator: Operator | None, said: Said,
                      sparsity: Sparsity | None = None) -> Accelerator:
    """Return the machine of a design.

    Energies that no reference table gives come from our own technology tables, with a note for each.

    Raises an `InputError` if an attribute is wrong, or an energy is neither given nor known.
    """
    builder = _Builder(design, energies, operator, said)
    levels: list[Memory | Fanout] = []
    for place in design.places[:-1]:
        if place.spreads:
            levels.append(builder.fanout(place))
        else:
            behind = any(isinstance(level, Fanout) and level.instances > 1 for level in levels)
            levels.append(builder.memory(place, outermost=not levels, behind_array=behind))
    bits = builder.word_bits
    compute = builder.compute()
    dummies = {alias for place in design.places for alias in place.aliases} | design.dummies
    energies.note_unmatched({place.name for place in design.places} | dummies)
    return Accelerator(
        design.name, tuple(levels), compute, frequency_mhz=round(1e-6 / design.cycle_seconds, 6),
        word_bits=tuple((role, bits) for role in ("inputs", "weights", "outputs")),
        sources=(f"read from {design.section.label}",), sparsity=sparsity, footprint="box")


def role_of(name: str, operator: Operator | None) -> str:
    """Return a tensor's role where the problem or its name tells it and no other tensor has it, else its name."""
    if operator is not None:
        roles = {tensor.name: tensor.role for tensor in operator.tensors}
        role = roles.get(name, name)
        return role if list(roles.values()).count(role) == 1 else name  # type: ignore[arg-type]
    return next((role for role, hint in _ROLE_HINTS if hint.fullmatch(name)), name)


class _Builder:
    """Turns places into levels."""

    def __init__(self, design: Design, energies: Energies, operator: Operator | None, said: Said) -> None:
        self.design, self.energies, self.operator, self.said = design, energies, operator, said
        widths = {self._word(place) for place in design.memories}
        self.word_bits = int(min(widths)) if len(widths) == 1 else COUNTED_WORD_BITS
        if len(widths) > 1:
            design.section.root.approximated("word widths differ from memory to memory; words are counted, as Timeloop "
                                             f"does, and shown as words of {COUNTED_WORD_BITS} bits")

    def _given(self, place: Place, kind: str) -> Node | None:
        """Return the first attribute of a kind that a place has."""
        return next((place.node["attributes"].at(name, place.attributes[name]) for name in SPELLINGS[kind]
                     if place.attributes.get(name) is not None), None)

    def _attribute(self, place: Place, kind: str, default: float | None = None) -> float | None:
        given = self._given(place, kind)
        if given is None:
            return default
        value = given.number(place.attributes)
        if value <= 0:
            raise given.fail("must be positive", value)
        return value

    def _word(self, place: Place) -> float:
        """Return the bits of a memory's words."""
        return self._attribute(place, "word") or DEFAULT_WORD_BITS

    def fanout(self, place: Place) -> Fanout:
        """Return an array, which neither multicasts nor adds up tensors that are kept apart in it."""
        apart = self.said.apart.get(place.name, frozenset())
        if not apart or self.operator is None:
            return Fanout(place.name, place.mesh)
        outputs = {tensor.name for tensor in self.operator.tensors if tensor.is_output}
        operands = {tensor.name for tensor in self.operator.tensors} - outputs
        some = apart & operands
        named = tuple((role_of(name, self.operator), False) for name in sorted(some))
        return Fanout(place.name, place.mesh, multicast=some != operands and (named or True),
                      reduce=not apart & outputs)

    def _words(self, place: Place) -> tuple[float, float]:
        """Return the words of a block, and how many blocks an access moves (the cluster)."""
        word = self._word(place)
        width, block = self._attribute(place, "width"), self._attribute(place, "block")
        cluster = self._attribute(place, "cluster", 1.0) or 1.0
        if block is None:
            block = max(1.0, (width or word) / word / cluster)
        elif width is not None and self._given(place, "cluster") is None:
            cluster = max(1.0, width / (word * block))
        return block, cluster

    def _capacity(self, place: Place, block: float) -> float | None:
        """Return words that an instance holds; None is unlimited."""
        depth, entries = self._attribute(place, "depth"), self._attribute(place, "entries")
        kilobytes, word = self._attribute(place, "kilobytes"), self._word(place)
        if entries is not None:
            return entries
        if depth is not None:
            return depth * block
        return None if kilobytes is None else float(int(kilobytes * 1024 * 8 / word))

    def memory(self, place: Place, outermost: bool, behind_array: bool) -> Memory:
        """Return a memory; behind an array its words count one by one, as the model rounds no blocks up there."""
        block, cluster = self._words(place)
        words = self._capacity(place, block)
        factor = self._attribute(place, "buffering", 1.0) or 1.0
        buffering: Buffering = "double" if factor == 2 else "buffet"
        capacity = None if words is None else words * self.word_bits / 8
        held = None if words is None else words if factor == 2 else float(int(words / factor))
        if cluster > 1:
            place.node.approximated(f"{place.name} moves clusters of {cluster:g} blocks: each is taken to be used "
                                    "whole (not by replays as Timeloop)")
        if behind_array and block > 1:
            place.node.approximated(f"blocks of {block:g} words behind an array: a word costs its share of an access, "
                                    "what is left of a block nothing (not in replays as Timeloop)")
        both = self._attribute(place, "both")
        half = None if both is None else both / 2
        bandwidth = Bandwidth(self._attribute(place, "read", half), self._attribute(place, "write", half),
                              self._attribute(place, "shared"))
        return Memory(
            place.name, self._kept(place, outermost), self._access(place, block * cluster, capacity),
            None if held is None else held * self.word_bits / 8,
            word_bits=self.word_bits, block_words=1 if behind_array else int(block),
            access_grain=(int(block), int(cluster)) if behind_array else (1, 1),
            bandwidth=bandwidth, buffering=buffering,
            area_um2=self.energies.areas.get(place.name, 0.0), leakage_mw=self._leakage(place))

    def _leakage(self, place: Place) -> float:
        return self.energies.leakage_mw(place.name, self.design.cycle_seconds)

    def _kept(self, place: Place, outermost: bool) -> tuple[str, ...]:
        given = self.said.keeps.get(place.name)
        if given is None or outermost:
            return ("inputs", "weights", "outputs")
        return tuple(dict.fromkeys(role_of(name, self.operator) for name in given))

    def _access(self, place: Place, words: float, capacity: float | None) -> AccessEnergy:
        """Return energies per word: those of a whole block's access over the words in it."""
        found = self.energies.access(place.name, words)
        if found is not None:
            return found
        own = self._attribute(place, "energy")
        return AccessEnergy(*[own / words] * 4) if own is not None else self._known_access(place, capacity)

    def _known_access(self, place: Place, capacity: float | None) -> AccessEnergy:
        word = self._word(place)
        size = None if capacity is None else capacity * word / self.word_bits
        return self._part(place).access(size, int(word), str(place.attributes.get("type", "LPDDR4")))

    def _part(self, place: Place) -> Estimated:
        return Estimated(place.node, place.name, str(place.attributes["class"]),
                    str(place.attributes.get("technology", self.design.technology)), 1e-6 / self.design.cycle_seconds,
                    "an ERT would give Accelergy's")

    def compute(self) -> Compute:
        """Return the compute unit."""
        place = self.design.compute
        energy = compute_action(self.energies, place.name)
        if energy is not None:
            return Compute(place.name, energy, self.energies.areas.get(place.name, 0.0), self._leakage(place))
        given = self._given(place, "bits")
        return self._part(place).compute(8 if given is None else given.whole(place.attributes))
