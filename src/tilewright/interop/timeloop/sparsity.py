"""Timeloop's sparse optimizations (of Sparseloop, Wu et al., MICRO 2022), both ways.

A tensor's ranks make one of our formats: what counts is the innermost rank, which says how words are kept, and whether
offsets (UOP) stand above it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilewright.hardware import Accelerator, Compression, Elision, SparseAction, SparseFormat, Sparsity
from tilewright.interop.notes import Notes
from tilewright.interop.sections import Files, Node
from tilewright.interop.timeloop.architecture import Design
from tilewright.interop.timeloop.machine import role_of
from tilewright.workload import Operator

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
    reader = _Reader(design, operator, keeps, found)
    for place in design.places:
        node = place.node["sparse_optimizations"]
        if node.value and not place.spreads:
            reader.group(node, place.name)
    for section in files.named("sparse_optimizations"):
        section.root.fields(empty=True)
        section.root.note_unknown({"version", "targets"})
        for entry in section.root["targets"].items(empty=True):
            name = entry.fields().get("name", entry["target"].value)
            if name is None:
                raise entry.fail("must have a name, that of a component")
            reader.group(entry, str(name))
    if not (found.formats or found.elisions or found.compute):
        return None
    elisions = tuple(Elision(memory, action, tensor, tuple(on))
                     for (memory, action, tensor), on in found.elisions.items())
    skipped = tuple(found.compute.get("skip", ()))
    gated = tuple(name for name in found.compute.get("gate", ()) if name not in skipped)
    return Sparsity(tuple(found.formats), elisions, gated, skipped)


class _Reader:
    """Reads groups of what components make of zeros."""

    def __init__(self, design: Design, operator: Operator | None, keeps: Keeps, found: _Found) -> None:
        self.design, self.operator, self.found = design, operator, found
        self.kept = {memory: {role_of(name, operator) for name in names} for memory, names in keeps.items()}

    def group(self, node: Node, name: str) -> None:
        """Read what is said of one component."""
        design = self.design
        _note_others(node, _GROUP)
        formats, actions, compute = (node.spelt(f"{what}_{kind}") for what, kind in (
            ("representation", "format"), ("action", "optimization"), ("compute", "optimization")))
        if name == design.compute.name:
            for said in (actions, formats):
                if said.value:
                    said.dropped(f"{name} is no memory")
        elif name in {place.name for place in design.memories}:
            self._formats(formats, name)
            self._actions(actions, name)
        elif formats.value or actions.value or compute.value:
            known = ", ".join(place.name for place in design.places if not place.spreads)
            raise node.fail(f"must be of one of {known}", name)
        else:
            return
        self._compute(compute, name)

    def _tensor(self, node: Node) -> str:
        """Return a tensor's role, or its name where several have that role."""
        given = str(node.value)
        if self.operator is not None and given not in {tensor.name for tensor in self.operator.tensors}:
            names = ", ".join(tensor.name for tensor in self.operator.tensors)
            raise node.fail(f"must be one of the tensors {names}", given)
        return role_of(given, self.operator)

    def _is_kept(self, tensor: str, memory: str, node: Node) -> bool:
        """Whether a memory keeps a tensor; what is said of it elsewhere is noted."""
        kept = tensor in self.kept.get(memory, {tensor}) or memory == self.design.memories[0].name
        if not kept:
            node.dropped(f"{memory} keeps no {tensor}")
        return kept

    def _formats(self, node: Node, memory: str) -> None:
        if not node.value:
            return
        node.fields()
        spaces = node.spelt("data_spaces")
        node.note_unknown({str(spaces.path[-1])})
        for entry in spaces.items(empty=spaces.missing):
            if "name" not in entry.fields():
                raise entry.fail("must have a name, that of a tensor")
            tensor = self._tensor(entry["name"])
            entry.note_unknown({"name", "ranks", "rank-application-order", "rank_application_order"})
            if not self._is_kept(tensor, memory, entry):
                continue
            made, bits = self._ranks(entry["ranks"])
            if any(one.memory == memory and one.tensor == tensor for one in self.found.formats):
                raise entry.fail(f"must give {entry['name'].value} in {memory} one format")
            self.found.formats.append(Compression(memory, tensor, made, bits))

    def _ranks(self, listed: Node) -> tuple[SparseFormat, int | None]:
        """Return the format that ranks make, outermost first, and the bits of its runs or coordinates."""
        ranks = listed.items()
        for rank in ranks:
            rank.fields()
        kinds, free = [], True
        last = ranks[-1].spelt("metadata_word_bits").value if ranks else None
        offsets = [rank.spelt("payload_word_bits") for rank in ranks]
        alike = {None if offset.missing else str(offset.value) for offset in offsets[:-1]} == {str(last)}
        for rank, offset in zip(ranks, offsets, strict=True):
            kind = str(rank["format"].value).upper()
            if kind not in _RANK:
                raise rank["format"].fail(f"must be one of {', '.join(_RANK)}", kind)
            kinds.append(kind)
            free = free and (kind != "UOP" or _is_zero(offset.value))
            _note_others(rank, {"format", "metadata_word_bits", "payload_word_bits", "flattened_rankIDs"})
            if not (offset.missing or _is_zero(offset.value) or alike):
                offset.approximated("offsets have as many bits as the tile asks for")
        if not kinds:
            raise listed.fail("must list at least one rank")
        bits = None if last is None or _is_zero(last) else listed.at(len(ranks) - 1, last).whole()
        if alike and bits is not None and kinds == ["UOP"] * (len(kinds) - 1) + ["CP"]:
            return "uop-cp", bits
        return self._format(kinds, free, bits, listed)

    def _format(self, kinds: list[str], free: bool, bits: int | None, ranks: Node) -> tuple[SparseFormat, int | None]:
        """Return our format of ranks, with a note of what it leaves out; ``free``: their offsets take no bits."""
        inner, above = kinds[-1], kinds[:-1]
        made = _RANK[inner]
        if inner == "CP" and above == ["UOP"] and not free:
            return "csr", bits
        if inner == "CP" and set(above) == {"UOP"} and not free:
            ranks.approximated(f"{len(kinds)} ranks, one for each loop, as one for each axis")
            return "uop-cp", bits
        costly = [kind for kind in above if kind not in ("U", "UOP") or (kind == "UOP" and not free)]
        if costly:
            ranks.approximated(f"ranks {', '.join(kinds)} as {made} of the whole tile: metadata of {', '.join(costly)} "
                               "above are not counted")
        if inner in ("UB", "UOP") and not (inner == "UOP" and free):
            ranks.approximated(f"metadata of {inner}, which compress nothing, are not counted")
        return made, bits if made in ("run-length", "coordinates") else None

    def _actions(self, listed: Node, memory: str) -> None:
        for entry in listed.items(empty=True):
            kind = str(entry.fields().get("type", "")).replace("-", "_")
            if kind not in _ACTIONS:
                raise entry["type"].fail(f"must be one of {', '.join(_ACTIONS)}", entry["type"].value)
            if "spatial" in kind:
                entry["type"].approximated("lanes are skipped in the mean, not packed in space")
            if entry["options"].value is None:
                self._option(entry, memory, _ACTIONS[kind])
                continue
            options = entry["options"].items()
            if len(options) > 1:
                entry["options"].approximated(f"all {len(options)} options hold, where Timeloop takes one of them")
            entry.note_unknown({"type", "options"})
            for option in options:
                self._option(option, memory, _ACTIONS[kind])

    def _option(self, node: Node, memory: str, action: SparseAction) -> None:
        fields = node.fields()
        _note_others(node, {"type", "target", "condition_on"})
        target, leaders = node["target"], node.spelt("condition_on")
        if target.missing or leaders.missing:
            raise node.fail("must have a target and condition-on", ", ".join(fields))
        tensor = self._tensor(target)
        if not self._is_kept(tensor, memory, node):
            return
        for name in leaders.items():
            leader = self._tensor(replace(name, path=leaders.path))
            if leader in ("outputs", tensor):
                leaders.dropped(f"{target.value} left out where {name.value} is zero: what leads must be another "
                                "operand")
                continue
            on = self.found.elisions.setdefault((memory, action, tensor), [])
            if leader not in on:
                on.append(leader)

    def _compute(self, node: Node, name: str) -> None:
        one = isinstance(node.value, Mapping) and node.value
        for entry in [node] if one else node.items(empty=True):
            fields = entry.fields()
            kind = str(fields.get("type", "")).replace("-", "_")
            if not kind and not any(fields.values()):
                continue
            if name != self.design.compute.name:
                raise entry.fail(f"must stand at the compute unit, {self.design.compute.name}", name)
            if kind not in _COMPUTE:
                raise entry["type"].fail("must be gating or skipping", fields.get("type"))
            entry.note_unknown({"type"})
            tensors = self.operator.tensors if self.operator else ()
            operands = [role_of(tensor.name, self.operator) for tensor in tensors if not tensor.is_output]
            self.found.compute[_COMPUTE[kind]] = operands or ["inputs", "weights"]


def _note_others(node: Node, known: Collection[str]) -> None:
    """Note what a node says beside what is known of it, with hyphens or underscores between words."""
    node.note_unknown({key for key in node.fields() if key == "!" or key.replace("-", "_") in known})


def _is_zero(value: Any) -> bool:
    return str(value).strip() in ("0", "0.0")


Components = Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]


def sparse_groups(accelerator: Accelerator, operator: Operator, names: Components,
                  notes: Notes) -> dict[str, dict[str, Any]]:
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
        notes.dropped(accelerator.name, "that tiles must fit even where every word is kept")
    return found


@dataclass
class _Writer:
    """Writes what a machine makes of zeros."""

    operator: Operator
    sparsity: Sparsity
    notes: Notes
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
                self.notes.approximated(f"{self.machine}.sparsity.compute",
                                        f"{kind} on {', '.join(sorted(named))} alone: Timeloop's is on all operands")
            if kind == "skipping" and self.sparsity.gated:
                self.notes.dropped(f"{self.machine}.sparsity.compute", "gating beside skipping")
            return {"type": kind}
        return None
