"""Networks as lists of operators written out, the form in which a network that we did not draw is kept.

.. code-block:: yaml

    name: tiny
    operators:
    - name: conv1
      kind: conv
      dimensions: {K: 16, C: 3, P: 32, Q: 32, R: 3, S: 3}
      tensors:
        inputs: {role: inputs, axes: [C, P + R, Q + S]}
        weights: {role: weights, axes: [K, C, R, S], density: 0.5}
        outputs: {role: outputs, axes: [K, P, Q]}

An axis is a dimension or the sum of two, each with a factor where it is not one: ``2*P + 3*R``. Of an operator may
besides be told ``after`` (the operators that it reads), ``count`` and ``approximated_as``, and of a tensor
``type`` (``int8``, ``fp16``, ``int4+16/32``: what lanes make of it, and its width), ``word_bits`` (another width, or
that alone), ``partial_bits`` (of outputs: of sums that are not final) and ``density`` (a number, ``even:0.5`` or
``2:4``).
"""

import re
from collections.abc import Mapping
from io import StringIO
from typing import TYPE_CHECKING, Any, cast

from tilewright.base import InputError
from tilewright.workload.density import EVEN, read_density
from tilewright.workload.graph import Graph, MacNode
from tilewright.workload.operator import ROLES, Axis, Operator, Role, Tensor

if TYPE_CHECKING:
    pass

_TERM = re.compile(r"\s*(?:([0-9]+)\s*\*\s*)?([A-Za-z_]\w*)\s*")
_FILE = {"name": str, "source": str, "notes": list, "operators": list}
_OPERATOR = {"name": str, "kind": str, "dimensions": dict, "tensors": dict, "after": list, "count": int,
             "approximated_as": str, "attributes": dict}
_TENSOR = {"role": str, "axes": list, "type": str, "word_bits": object, "partial_bits": object, "density": object}


def operators_graph(document: Mapping[str, Any], source: str = "") -> Graph:
    """Return the network of a document with ``operators``; ``source`` stands in for its source.

    Raises an `InputError` if a field is missing, unknown or wrong.
    """
    name = str(document.get("name", "network"))
    fields = _checked(name, document, _FILE, ("operators",))
    nodes = [_node(f"{name}.operators[{index}]", entry) for index, entry in enumerate(fields["operators"])]
    if not nodes:
        raise InputError(f"{name}.operators", "must hold at least one operator")
    notes = tuple(str(note) for note in fields.get("notes") or ())
    return Graph(name, tuple(nodes), str(fields.get("source", source)), notes)


def dump_operators(graph: Graph) -> str:
    """Return the multiply-accumulate operators of a network as YAML, which `read_table` reads back.

    Nodes of other kinds are left out, and no longer named by those that read them.
    """
    from ruamel.yaml import YAML  # noqa: PLC0415  (late: it is slow to load)

    kept = {node.name for node in graph.mac_nodes}
    document = {"name": graph.name, **({"source": graph.source} if graph.source else {}),
                **({"notes": list(graph.notes)} if graph.notes else {}),
                "operators": [_entry(node, kept) for node in graph.mac_nodes]}
    yaml, out = YAML(typ="safe", pure=True), StringIO()
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 120
    yaml.dump(document, out)
    return out.getvalue()


def _node(path: str, entry: object) -> MacNode:
    fields = _checked(path, entry, _OPERATOR, ("name", "dimensions", "tensors"))
    sizes = []
    for dimension, size in fields["dimensions"].items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"{path}.dimensions.{dimension}", "must be a positive integer", size)
        sizes.append((str(dimension), size))
    tensors = [_tensor(f"{path}.tensors.{name}", str(name), tensor, dict(sizes))
               for name, tensor in fields["tensors"].items()]
    attributes = tuple((str(key), value) for key, value in fields.get("attributes", {}).items())
    try:
        operator = Operator(fields["name"], fields.get("kind", "given"), tuple(sizes), tuple(tensors), attributes)
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.rule, error.given, error.mend) from None
    count = fields.get("count", 1)
    if count < 1:
        raise InputError(f"{path}.count", "must be a positive integer", count)
    return MacNode(operator, tuple(map(str, fields.get("after", ()))), count, fields.get("approximated_as", ""))


def _tensor(path: str, name: str, entry: object, sizes: Mapping[str, int]) -> Tensor:
    fields = _checked(path, entry, _TENSOR, ("role", "axes"))
    role = fields["role"]
    if role not in ROLES:
        raise InputError(f"{path}.role", f"must be one of {', '.join(ROLES)}", role)
    axes = tuple(_axis(f"{path}.axes[{index}]", axis, sizes) for index, axis in enumerate(fields["axes"]))
    named = None
    if "type" in fields:
        from tilewright.hardware import read_type  # noqa: PLC0415  (late: it loads what reads machines)

        named = read_type(f"{path}.type", fields["type"])
    for field in ("word_bits", "partial_bits"):
        width = fields.get(field)
        if width is not None and (isinstance(width, bool) or not isinstance(width, int | float) or width <= 0):
            raise InputError(f"{path}.{field}", "must be a positive number of bits", width)
    bits = fields.get("word_bits", None if named is None else named.word_bits)
    tensor = Tensor(name, cast(Role, role), axes, bits, type="" if named is None else named.name,
                    partial_bits=fields.get("partial_bits"))
    if "density" not in fields:
        return tensor
    try:
        return read_density(name, fields["density"]).of(tensor)
    except InputError as error:
        raise InputError(f"{path}.density", error.rule, error.given, error.mend) from None


def _axis(path: str, text: object, sizes: Mapping[str, int]) -> Axis:
    terms = []
    for part in str(text).split("+"):
        found = _TERM.fullmatch(part)
        if found is None or found[2] not in sizes:
            raise InputError(path, f"must be a sum of dimensions, each with a factor where wanted, of "
                                   f"{', '.join(sizes)}", text, "For example 2*P + R")
        terms.append((found[2], int(found[1] or 1)))
    if len(terms) > 2 or any(scale < 1 for _, scale in terms):
        raise InputError(path, "must be a dimension or the sum of two, with positive factors", text)
    return Axis(tuple(terms))


def _checked(path: str, entry: object, kinds: Mapping[str, type], required: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a part of the document, each known and of its kind."""
    if not isinstance(entry, dict):
        raise InputError(path, f"must hold the fields {', '.join(required)}", entry)
    for key, value in entry.items():
        if key not in kinds:
            raise InputError(f"{path}.{key}", f"must be one of the fields {', '.join(kinds)}", key)
        if not isinstance(value, kinds[key]) or isinstance(value, bool):
            words = {str: "a text", list: "a list", dict: "fields and values", int: "a whole number"}
            raise InputError(f"{path}.{key}", f"must be {words[kinds[key]]}", value)
    for key in required:
        if key not in entry:
            raise InputError(f"{path}.{key}", "must be given")
    return entry


def _entry(node: MacNode, kept: set[str]) -> dict[str, Any]:
    operator = node.operator
    after = [name for name in node.inputs if name in kept]
    entry: dict[str, Any] = {
        "name": operator.name, "kind": operator.kind, "dimensions": dict(operator.dimensions),
        "tensors": {tensor.name: _tensor_entry(tensor) for tensor in operator.tensors}}
    if operator.attributes:
        entry["attributes"] = dict(operator.attributes)
    if after:
        entry["after"] = after
    if node.count != 1:
        entry["count"] = node.count
    if node.approximated_as:
        entry["approximated_as"] = node.approximated_as
    return entry


def _tensor_entry(tensor: Tensor) -> dict[str, Any]:
    axes = [" + ".join(name if scale == 1 else f"{scale}*{name}" for name, scale in axis.terms) for axis in tensor.axes]
    entry: dict[str, Any] = {"role": tensor.role, "axes": axes}
    told = {"type": tensor.type or None, "word_bits": tensor.word_bits, "partial_bits": tensor.partial_bits}
    entry |= {field: value for field, value in told.items() if value is not None}
    if tensor.structure is not None:
        entry["density"] = "{}:{}".format(*tensor.structure)
    elif tensor.even:
        entry["density"] = f"{EVEN}{tensor.density!r}"
    elif tensor.density != 1:
        entry["density"] = tensor.density
    return entry
