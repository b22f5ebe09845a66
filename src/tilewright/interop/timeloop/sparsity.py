"""Timeloop's sparse optimizations (of Sparseloop, Wu et al., MICRO 2022), both ways.

A tensor's ranks make one of our formats: what counts is the innermost rank, which says how words are kept, and whether
offsets (UOP) stand above it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.hardware import Accelerator, Compression, Elision, SparseAction, SparseFormat, Sparsity
from tilewright.interop.notes import Note
from tilewright.interop.timeloop.architecture import Design
from tilewright.interop.timeloop.machine import role_of
from tilewright.interop.timeloop.source import Files, Section
from tilewright.workload import Operator

Path = tuple[str | int, ...]
Keeps = Mapping[str, Sequence[str]]
_RANK: dict[str, SparseFormat] = {"B": "bitmask", "RLE": "run-length", "CP": "coordinates", "UOP": "uncompressed",
                            "UB": "uncompressed", "U": "uncompressed"}
_ACTIONS: dict[str, SparseAction] = {"gating": "gate", "skipping": "skip", "spatial_skipping": "skip",
                               "skipping_spatial": "skip"}
_COMPUTE = {"gating": "gate", "gate_on_zero_operand": "gate", "skipping": "skip",
            "skip_on_not_aligned_operands": "skip"}
_GROUP = {"name", "target", "action_optimization", "representation_format", "compute_optimization"}


@dataclass
class _Found:
    """What was read so far."""

    formats: list[Compression] = field(default_factory=list)
    elisions: dict[tuple[str, SparseAction, str], list[str]] = field(default_factory=dict)
    compute: dict[str, list[str]] = field(default_factory=dict)


def read_sparsity(files: Files, design: Design, operator: Operator | None, keeps: Keeps) -> Sparsity | None:
    """Return what the files say of zeros, at the architecture's nodes or in a section of its own; None if nothing.

    Parameters
    ----------
    keeps
        By memory: the tensors it can keep, where that is less than everything.

    Raises
    ------
    InputError
        If a component, tensor, format or kind of saving is unknown.
    """
    found = _Found()
    for place in design.places:
        at: Path = (*place.path, "sparse_optimizations")
        if design.section.at(at) and not place.spreads:
            reader = _Reader(design.section, design, operator, keeps, found)
            reader.group(at, design.section.at(at), place.name)
    for section in files.named("sparse_optimizations"):
        tree = section.mapping(section.tree or {}, ())
        section.note_unknown((), {"version", "targets"})
        for index, entry in enumerate(section.list(tree.get("targets") or [], ("targets",))):
            path: Path = ("targets", index)
            name = section.mapping(entry, path).get("name", entry.get("target"))
            if name is None:
                raise section.fail(path, "must have a name, that of a component")
            _Reader(section, design, operator, keeps, found).group(path, entry, str(name))
    if not (found.formats or found.elisions or found.compute):
        return None
    elisions = tuple(Elision(memory, action, tensor, tuple(on))
                     for (memory, action, tensor), on in found.elisions.items())
    skipped = tuple(found.compute.get("skip", ()))
    gated = tuple(name for name in found.compute.get("gate", ()) if name not in skipped)
    return Sparsity(tuple(found.formats), elisions, gated, skipped)


class _Reader:
    """Reads the groups of one section."""

    def __init__(self, section: Section, design: Design, operator: Operator | None, keeps: Keeps,
                 found: _Found) -> None:
        self.section, self.design, self.operator, self.found = section, design, operator, found
        self.kept = {memory: {role_of(name, operator) for name in names} for memory, names in keeps.items()}

    def group(self, path: Path, fields: Any, name: str) -> None:
        """Read what is said of one component."""
        section, design = self.section, self.design
        given = _spelt(section.mapping(fields, path))
        for key, spelt in given.items():
            if key not in _GROUP:
                section.note((*path, spelt[0]), "dropped", "not known here")
        if name == design.compute.name:
            for key in ("action_optimization", "representation_format"):
                if key in given and given[key][1]:
                    section.note((*path, given[key][0]), "dropped", f"{name} is no memory")
        elif name not in {place.name for place in design.memories}:
            if any(given[key][1] for key in _GROUP & set(given) - {"name", "target"}):
                known = ", ".join(place.name for place in design.places if not place.spreads)
                raise section.fail(path, f"must be of one of {known}", name)
            return
        else:
            self._formats((*path, given.get("representation_format", ("", None))[0]),
                          given.get("representation_format", ("", None))[1], name)
            self._actions((*path, given.get("action_optimization", ("", None))[0]),
                          given.get("action_optimization", ("", None))[1], name)
        self._compute((*path, given.get("compute_optimization", ("", None))[0]),
                      given.get("compute_optimization", ("", None))[1], name)

    def _tensor(self, given: Any, path: Path) -> str:
        """Return a tensor's role, or its name where several have that role."""
        if self.operator is not None and str(given) not in {tensor.name for tensor in self.operator.tensors}:
            names = ", ".join(tensor.name for tensor in self.operator.tensors)
            raise self.section.fail(path, f"must be one of the tensors {names}", str(given))
        return role_of(str(given), self.operator)

    def _is_kept(self, tensor: str, memory: str, path: Path) -> bool:
        """Whether a memory keeps a tensor; what is said of it elsewhere is noted."""
        kept = tensor in self.kept.get(memory, {tensor}) or memory == self.design.memories[0].name
        if not kept:
            self.section.note(path, "dropped", f"{memory} keeps no {tensor}")
        return kept

    def _formats(self, path: Path, fields: Any, memory: str) -> None:
        if not fields:
            return
        given = _spelt(self.section.mapping(fields, path))
        key, listed = given.get("data_spaces", ("data_spaces", []))
        self.section.note_unknown(path, {key})
        for index, entry in enumerate(self.section.list(listed, (*path, key))):
            at = (*path, key, index)
            said = self.section.mapping(entry, at)
            if "name" not in said:
                raise self.section.fail(at, "must have a name, that of a tensor")
            tensor = self._tensor(said["name"], (*at, "name"))
            for extra in said:
                if extra not in ("name", "ranks", "rank-application-order", "rank_application_order"):
                    self.section.note((*at, extra), "dropped", "not known here")
            if not self._is_kept(tensor, memory, at):
                continue
            made, bits = self._ranks(self.section.list(said.get("ranks"), (*at, "ranks")), (*at, "ranks"))
            if any(one.memory == memory and one.tensor == tensor for one in self.found.formats):
                raise self.section.fail(at, f"must give {said['name']} in {memory} one format")
            self.found.formats.append(Compression(memory, tensor, made, bits))

    def _ranks(self, ranks: Sequence[Any], path: Path) -> tuple[SparseFormat, int | None]:
        """Return the format that ranks make, outermost first, and the bits of its runs or coordinates."""
        section = self.section
        kinds, free = [], True
        last = None if not ranks else _spelt(section.mapping(ranks[-1], path)).get("metadata_word_bits", ("", None))[1]
        alike = {None if "payload_word_bits" not in (said := _spelt(section.mapping(rank, path)))
                 else str(said["payload_word_bits"][1]) for rank in ranks[:-1]} == {str(last)}
        for index, rank in enumerate(ranks):
            at = (*path, index)
            said = _spelt(section.mapping(rank, at))
            kind = str(said.get("format", ("", None))[1]).upper()
            if kind not in _RANK:
                raise section.fail((*at, "format"), f"must be one of {', '.join(_RANK)}", kind)
            kinds.append(kind)
            free = free and (kind != "UOP" or _is_zero(said.get("payload_word_bits", ("", None))[1]))
            known = {"format", "metadata_word_bits", "payload_word_bits", "flattened_rankIDs"}
            for key, (spelt, value) in said.items():
                if key not in known:
                    section.note((*at, spelt), "dropped", "not known here")
                elif key == "payload_word_bits" and not _is_zero(value) and not alike:
                    section.note((*at, spelt), "approximated", "offsets have as many bits as the tile asks for")
        if not kinds:
            raise section.fail(path, "must list at least one rank")
        bits = None if last is None or _is_zero(last) else section.whole(last, (*path, len(ranks) - 1))
        if alike and bits is not None and kinds == ["UOP"] * (len(kinds) - 1) + ["CP"]:
            return "uop-cp", bits
        return self._format(kinds, free, bits, path)

    def _format(self, kinds: list[str], free: bool, bits: int | None, path: Path) -> tuple[SparseFormat, int | None]:
        """Return our format of ranks, with a note of what it leaves out; ``free``: their offsets take no bits."""
        inner, above = kinds[-1], kinds[:-1]
        made = _RANK[inner]
        if inner == "CP" and above == ["UOP"] and not free:
            return "csr", bits
        if inner == "CP" and set(above) == {"UOP"} and not free:
            self.section.note(path, "approximated", f"{len(kinds)} ranks, one for each loop, as one for each axis")
            return "uop-cp", bits
        costly = [kind for kind in above if kind not in ("U", "UOP") or (kind == "UOP" and not free)]
        if costly:
            self.section.note(path, "approximated", f"ranks {', '.join(kinds)} as {made} of the whole tile: "
                              f"metadata of {', '.join(costly)} above are not counted")
        if inner in ("UB", "UOP") and not (inner == "UOP" and free):
            self.section.note(path, "approximated", f"metadata of {inner}, which compress nothing, are not counted")
        return made, bits if made in ("run-length", "coordinates") else None

    def _actions(self, path: Path, listed: Any, memory: str) -> None:
        if not listed:
            return
        for index, entry in enumerate(self.section.list(listed, path)):
            at = (*path, index)
            fields = self.section.mapping(entry, at)
            kind = str(fields.get("type", "")).replace("-", "_")
            if kind not in _ACTIONS:
                raise self.section.fail((*at, "type"), f"must be one of {', '.join(_ACTIONS)}", fields.get("type"))
            if "spatial" in kind:
                self.section.note((*at, "type"), "approximated", "lanes are skipped in the mean, not packed in space")
            options = fields.get("options")
            if options is None:
                self._option(fields, at, memory, _ACTIONS[kind])
                continue
            given = self.section.list(options, (*at, "options"))
            if len(given) > 1:
                self.section.note((*at, "options"), "approximated", f"all {len(given)} options hold, where Timeloop "
                                  "takes one of them")
            self.section.note_unknown(at, {"type", "options"})
            for number, option in enumerate(given):
                spot = (*at, "options", number)
                self._option(self.section.mapping(option, spot), spot, memory, _ACTIONS[kind])

    def _option(self, fields: Mapping[str, Any], path: Path, memory: str, action: SparseAction) -> None:
        given = _spelt(fields)
        for key, (spelt, _) in given.items():
            if key not in ("type", "target", "condition_on"):
                self.section.note((*path, spelt), "dropped", "not known here")
        if "target" not in given or "condition_on" not in given:
            raise self.section.fail(path, "must have a target and condition-on", ", ".join(fields))
        tensor = self._tensor(given["target"][1], (*path, "target"))
        at = (*path, given["condition_on"][0])
        if not self._is_kept(tensor, memory, path):
            return
        for name in self.section.list(given["condition_on"][1], at):
            leader = self._tensor(name, at)
            if leader in ("outputs", tensor):
                self.section.note(at, "dropped", f"{given['target'][1]} left out where {name} is zero: "
                                  "what leads must be another operand")
                continue
            on = self.found.elisions.setdefault((memory, action, tensor), [])
            if leader not in on:
                on.append(leader)

    def _compute(self, path: Path, listed: Any, name: str) -> None:
        entries = [listed] if isinstance(listed, Mapping) and listed else listed or []
        for index, entry in enumerate(self.section.list(entries, path)):
            at = path if isinstance(listed, Mapping) else (*path, index)
            fields = self.section.mapping(entry, at)
            kind = str(fields.get("type", "")).replace("-", "_")
            if not kind and not any(fields.values()):
                continue
            if name != self.design.compute.name:
                raise self.section.fail(at, f"must stand at the compute unit, {self.design.compute.name}", name)
            if kind not in _COMPUTE:
                raise self.section.fail((*at, "type"), "must be gating or skipping", fields.get("type"))
            self.section.note_unknown(at, {"type"})
            tensors = self.operator.tensors if self.operator else ()
            operands = [role_of(tensor.name, self.operator) for tensor in tensors if not tensor.is_output]
            self.found.compute[_COMPUTE[kind]] = operands or ["inputs", "weights"]


def _spelt(fields: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return fields by their names with underscores: how the file spells each, and its value."""
    return {name.replace("-", "_"): (name, value) for name, value in fields.items() if name != "!"}


def _is_zero(value: Any) -> bool:
    return str(value).strip() in ("0", "0.0")


Components = Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]


def sparse_groups(accelerator: Accelerator, operator: Operator, names: Components,
                  notes: list[Note]) -> dict[str, dict[str, Any]]:
    """Return ``sparse_optimizations`` by component.

    Parameters
    ----------
    names
        By memory: its components, and the tensors that each keeps.
    notes
        Where what cannot be said is added.
    """
    sparsity = accelerator.sparsity
    if sparsity is None:
        return {}
    writer = _Writer(operator, sparsity, notes, accelerator.name)
    found: dict[str, dict[str, Any]] = {}
    for memory, parts in names.items():
        for name, tensors in parts:
            spaces = [space for tensor in tensors if (space := writer.space(memory, tensor))]
            actions = list(writer.actions(memory, tensors))
            group: dict[str, Any] = {}
            if spaces:
                group["representation_format"] = {"data_spaces": spaces}
            if actions:
                group["action_optimization"] = actions
            if group:
                found[name] = group
    compute = writer.compute()
    if compute:
        found[accelerator.compute.name] = {"compute_optimization": compute}
    if sparsity.capacity != "expected":
        notes.append(Note(accelerator.name, "dropped", "that tiles must fit even where every word is kept"))
    return found


@dataclass
class _Writer:
    """Writes what a machine makes of zeros."""

    operator: Operator
    sparsity: Sparsity
    notes: list[Note]
    machine: str

    def space(self, memory: str, tensor: str) -> dict[str, Any] | None:
        """Return the ranks of a tensor in a memory; None where it is not compressed."""
        found = self.sparsity.compression(memory, tensor, self.operator.tensor(tensor).role)
        if found is None:
            return None
        bits = {} if found.bits is None else {"metadata_word_bits": found.bits}
        offset = {} if found.bits is None else {"payload_word_bits": found.bits}
        above = [{"format": "UOP", **offset} for _ in self.operator.tensor(tensor).axes[1:]]
        ranks: dict[SparseFormat, list[dict[str, Any]]] = {
            "bitmask": [{"format": "B"}], "run-length": [{"format": "RLE", **bits}],
            "coordinates": [{"format": "CP", **bits}], "csr": [{"format": "UOP"}, {"format": "CP", **bits}],
            "uop-cp": [*above, {"format": "CP", **bits}]}
        return {"name": tensor, "ranks": ranks[found.format]}

    def _named(self, key: str) -> list[str]:
        """Return the tensors that a role or name means."""
        by_name = [tensor.name for tensor in self.operator.tensors if tensor.name == key]
        return by_name or [tensor.name for tensor in self.operator.tensors if tensor.role == key]

    def actions(self, memory: str, tensors: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield what is left out of the accesses to a memory, one option each."""
        kinds = {"gate": "gating", "skip": "skipping"}
        for elision in self.sparsity.elisions:
            if elision.memory != memory:
                continue
            for target in (name for name in self._named(elision.tensor) if name in tensors):
                leaders = [name for key in elision.on for name in self._named(key) if name != target]
                if leaders:
                    yield {"type": kinds[elision.action],
                           "options": [{"target": target, "condition_on": leaders}]}

    def compute(self) -> dict[str, Any] | None:
        """Return what the compute unit does where an operand is zero."""
        operands = {tensor.name for tensor in self.operator.tensors if not tensor.is_output}
        for names, kind in ((self.sparsity.skipped, "skipping"), (self.sparsity.gated, "gating")):
            named = {name for key in names for name in self._named(key)} & operands
            if not named:
                continue
            if named != operands:
                self.notes.append(Note(f"{self.machine}.sparsity.compute", "approximated",
                                       f"{kind} on {', '.join(sorted(named))} alone: Timeloop's is on all operands"))
            if kind == "skipping" and self.sparsity.gated:
                self.notes.append(Note(f"{self.machine}.sparsity.compute", "dropped", "gating beside skipping"))
            return {"type": kind}
        return None
