"""AccelForge's workloads: einsums over rank variables, made a graph of operators; and set expressions of its tensors.

These are of names, ``All``, ``Nothing``, and ``|``, ``&``, ``-``, ``~`` of them.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from tilewright.base import InputError
from tilewright.interop.sections import WEIGHTS_NAME, Node, Section
from tilewright.workload import Axis, Graph, MacNode, Operator, Role, Tensor, VectorOperator
from tilewright.workload import Node as GraphNode

Sets = Mapping[str, frozenset[str]]
"""Tensors by the names that expressions have for them; ``All`` is among them."""
_TENSOR = re.compile(r"([A-Za-z_]\w*)\[([^\]]*)\]")
_RANGE = re.compile(r"\s*0\s*<=\s*(\w+)\s*(<=?)\s*(\d+)\s*")
_TERM = re.compile(r"(?:(\d+)\s*\*\s*)?([A-Za-z_]\w*)(?:\s*\*\s*(\d+))?")
_WORKLOAD = {"version", "einsums", "shape", "iteration_space_shape", "rank_sizes", "bits_per_value", "n_instances",
             "persistent_tensors"}
_EINSUM = {"name", "einsum", "tensor_accesses", "iteration_space_shape", "rank_sizes", "is_copy_operation", "renames",
           "n_instances"}
_ACCESS = {"name", "projection", "output", "bits_per_value", "persistent", "backing_storage_size_scale"}


def chosen(node: Node, sets: Sets, text: str | None = None) -> frozenset[str]:
    """Return the tensors that an expression means: that of a node, or ``text`` in its place.

    Raises an `InputError` if it is none, or names what is not there.
    """
    given = str(node.value) if text is None else text
    try:
        return _set(ast.parse(given.strip(), mode="eval").body, sets)
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError) as error:
        raise node.fail("must be a set of tensors, such as ~Intermediates or input | output", given,
                        f"Known: {', '.join(sets)}" if isinstance(error, KeyError) else "") from None


def _set(node: ast.expr, sets: Sets) -> frozenset[str]:
    if isinstance(node, ast.Name):
        return sets[node.id]
    if isinstance(node, ast.Attribute) and node.attr == "tensors":
        return _set(node.value, sets)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return sets["All"] - _set(node.operand, sets)
    if isinstance(node, ast.BinOp):
        left, right = _set(node.left, sets), _set(node.right, sets)
        if isinstance(node.op, ast.BitOr):
            return left | right
        if isinstance(node.op, ast.BitAnd):
            return left & right
        if isinstance(node.op, ast.Sub):
            return left - right
    raise ValueError("no set")


@dataclass(frozen=True)
class _Access:
    node: Node
    name: str
    ranks: Mapping[str, str]
    output: bool


@dataclass(frozen=True)
class Einsums:
    """A workload: the network, and for each einsum what set expressions may name."""

    graph: Graph
    sets: Mapping[str, Sets]

    @classmethod
    def read(cls, section: Section, renames: Section | None) -> "Einsums":
        """Read a ``workload`` section, with the ``renames`` of tensors beside it.

        Raises an `InputError` if something is missing or wrong, or a tensor's index is no sum of one or two rank
        variables.
        """
        root = section.root
        root.fields()
        root.note_unknown(_WORKLOAD)
        entries = [_Einsum.read(entry) for entry in root["einsums"].items()]
        made = {one.output: one for one in entries}
        nowhere = {access.name: frozenset[str]() for one in entries for access in one.accesses}
        named = _renamed(renames)
        nodes, sets = [], {}
        for one in entries:
            if one.name in sets:
                raise one.node.fail("must have a name that no other einsum has", one.name)
            sets[one.name] = {**nowhere, **one.sets(frozenset(made), named)}
            nodes.append(one.built(root, sets[one.name], {name: producer.name for name, producer in made.items()}))
        try:
            return cls(Graph(section.label.rsplit(".", 1)[0], tuple(nodes), section.label), sets)
        except InputError as error:
            raise root.passed_on(error) from None


def _renamed(section: Section | None) -> dict[str, Node]:
    """Return the names that the renames of every einsum give to sets of tensors."""
    found: dict[str, Node] = {}
    for entry in section.root.get("einsums", []).items() if section else ():
        if entry["name"].value == "default":
            found |= _names(entry.get("tensor_accesses", {}))
        else:
            entry.dropped("renames of one einsum apart from it; those inside of it, and of default, are read")
    return found


def _names(node: Node) -> dict[str, Node]:
    """Return sources of names, given as ``{name: source}`` or as a list of both."""
    if isinstance(node.value, Mapping):
        return {name: node[name] for name in node.value}
    return {str(entry["name"].value): entry["source"] for entry in node.items(empty=True)}


@dataclass(frozen=True)
class _Einsum:
    node: Node
    name: str
    accesses: tuple[_Access, ...]

    @classmethod
    def read(cls, entry: Node) -> "_Einsum":
        text = entry.value if isinstance(entry.value, str) else entry["einsum"].value if "einsum" in entry else None
        if not isinstance(entry.value, str):
            entry.fields()
            entry.note_unknown(_EINSUM)
        listed = [_access(one) for one in entry.get("tensor_accesses", []).items(empty=True)] if text is None else (
            _spelt(entry, str(text)))
        outputs = [one.name for one in listed if one.output]
        if len(outputs) != 1 or len(listed) < 2 or len({one.name for one in listed}) < len(listed):
            raise entry.fail("must have one output, and operands, each with a name of its own",
                             ", ".join(one.name for one in listed) or "no tensor_accesses")
        return cls(entry, str(entry.get("name", outputs[0]).value), tuple(listed))

    @property
    def output(self) -> str:
        """Name of the tensor that it makes."""
        return next(one.name for one in self.accesses if one.output)

    def sets(self, made: frozenset[str], named: Mapping[str, Node]) -> Sets:
        """Return what set expressions may name; ``made`` are tensors that some einsum makes."""
        every = frozenset(one.name for one in self.accesses)
        found = {"All": every, "Tensors": every, "Nothing": frozenset[str](), "Outputs": frozenset({self.output}),
                 "Inputs": every - {self.output}, "Intermediates": (every & made) - {self.output},
                 "Persistent": frozenset[str](), **{name: frozenset({name}) for name in every}}
        for name, source in {**named, **_names(self.node.get("renames", {}))}.items():
            found[name] = chosen(source, found, _condition(str(source.value), len(every)))
        return found

    def built(self, root: Node, sets: Sets, makers: Mapping[str, str]) -> GraphNode:
        """Return the node; ``makers`` name the einsums by the tensor that they make."""
        sizes, operands = self._sizes(root), [one for one in self.accesses if not one.output]
        widths = _widths(root, sets)
        weights = next((name for name in sets.get("weight", ()) if name != self.output), None) or next(
            (one.name for one in operands if WEIGHTS_NAME.fullmatch(one.name)), operands[-1].name)
        tensors = []
        for one in (*operands, *(one for one in self.accesses if one.output)):
            role: Role = "outputs" if one.output else "weights" if one.name == weights else "inputs"
            axes = tuple(_axis(one.node, text, sizes) for text in one.ranks.values())
            bits = one.node["bits_per_value"].whole() if one.node["bits_per_value"].value else widths.get(one.name)
            tensors.append(Tensor(one.name, role, axes, bits))
        inputs = tuple(dict.fromkeys(makers[one.name] for one in operands if one.name in makers))
        given = (("weights", "activations"),) if weights in makers else ()
        try:
            operator = Operator(self.name, "einsum", tuple(sizes.items()), tuple(tensors), given)
        except InputError as error:
            raise self.node.passed_on(error) from None
        count = prod(node["n_instances"].whole() for node in (root, self.node) if "n_instances" in node)
        if len(operands) > 1:
            return MacNode(operator, inputs, count)
        words = [tensor.words(operator.sizes) for tensor in operator.tensors]
        copied = bool(self.node["is_copy_operation"].value)
        return VectorOperator(self.name, "copy" if copied else "elementwise", 0 if copied else operator.macs, words[0],
                              words[1], inputs, count, word_bits=widths.get(self.output))

    def _sizes(self, root: Node) -> dict[str, int]:
        variables = dict.fromkeys(name for one in self.accesses for text in one.ranks.values()
                                  for name in re.findall(r"[A-Za-z_]\w*", text))
        bounded: dict[str, int] = {}
        own = self.node.get("iteration_space_shape", [])
        shared = root["shape"] if "shape" in root else root.get("iteration_space_shape", {})
        for given in (*own.items(empty=True), *(shared[name] for name in shared.fields(empty=True))):
            match = _RANGE.fullmatch(str(given.value))
            if match is None:
                raise given.fail("must be like 0 <= m < 128", given.value)
            bounded[match[1]] = int(match[3]) + (match[2] == "<=")
        ranks = {**root.get("rank_sizes", {}).fields(empty=True), **self.node.get("rank_sizes", {}).fields(empty=True)}
        for one in self.accesses:
            for rank, text in one.ranks.items():
                if rank in ranks and text in variables:
                    bounded.setdefault(text, root["rank_sizes"].at(rank, ranks[rank]).whole())
        missing = [name for name in variables if name not in bounded]
        if missing:
            raise self.node.fail("must have the size of every rank variable, in rank_sizes or iteration_space_shape",
                                 f"none of {', '.join(missing)}")
        return {name: bounded[name] for name in variables}


def _condition(text: str, tensors: int) -> str:
    """Return the side of ``A if len(All) == 3 else B`` that holds."""
    match = re.fullmatch(r"(.+?)\s+if\s+len\(All\)\s*==\s*(\d+)\s+else\s+(.+)", text.strip())
    return text if match is None else match[1] if int(match[2]) == tensors else match[3]


def _widths(root: Node, sets: Sets) -> dict[str, int]:
    found = {}
    given = root.get("bits_per_value", {})
    for text in given.fields(empty=True):
        for name in chosen(given[text], sets, text):
            found[name] = given[text].whole()
    return found


def _access(entry: Node) -> _Access:
    entry.fields()
    entry.note_unknown(_ACCESS)
    projection = entry["projection"]
    ranks = {str(rank): str(text) for rank, text in projection.value.items()} if isinstance(
        projection.value, Mapping) else {text.upper(): text for text in projection.texts()}
    if not entry["name"].value:
        raise entry.fail("must have a name")
    return _Access(entry, str(entry["name"].value), ranks, bool(entry["output"].value))


def _spelt(entry: Node, text: str) -> list[_Access]:
    """Return the tensors of ``Z[m, n] = A[m, k] * W[k, n]``."""
    left, sign, right = text.partition("=")
    written, read = _TENSOR.findall(left), _TENSOR.findall(right)
    if not sign or len(written) != 1 or not read:
        raise entry.fail("must be like Z[m, n] = A[m, k] * W[k, n]", text)
    further = {str(one["name"].value): one for one in entry.get("tensor_accesses", []).items(empty=True)}
    found = []
    for name, indices in (*read, *written):
        ranks = {}
        for index in filter(None, (part.strip() for part in indices.split(","))):
            rank, colon, expression = index.partition(":")
            ranks[rank.strip() if colon else rank.strip().upper()] = (expression if colon else rank).strip()
        found.append(_Access(further.get(name, replace(entry, value={})), name, ranks, (name, indices) in written))
    return found


def _axis(node: Node, text: str, sizes: Mapping[str, int]) -> Axis:
    terms = []
    for part in text.split("+"):
        match = _TERM.fullmatch(part.strip())
        if match is None or match[2] not in sizes:
            raise node.fail("must be indexed by rank variables or sums of two, such as 2 * p + r", text)
        terms.append((match[2], int(match[1] or 1) * int(match[3] or 1)))
    return Axis(tuple(terms))
