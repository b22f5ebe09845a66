"""ZigZag's workloads: layers as equations over dimensions, made a graph of operators."""

import re
from collections.abc import Mapping

from tilewright.base import InputError
from tilewright.interop.sections import WEIGHTS_NAME, Node, Section
from tilewright.workload import Axis, Graph, MacNode, Operator, Role, Tensor, VectorOperator
from tilewright.workload import Node as GraphNode

NAMES = {"B": "N", "OY": "P", "OX": "Q", "FY": "R", "FX": "S"}
"""Dimensions of convolutions that have another name here."""
VECTORS = {"Add": "add", "Pooling": "max_pool", "Pool": "max_pool", "MaxPool": "max_pool", "Max": "max_pool",
           "AveragePool": "average_pool", "GlobalAveragePool": "average_pool"}
"""Types of layers that are no multiply-accumulates."""
_INDICES = r"((?:\[\w*\])*)"
_EQUATION = re.compile(rf"\s*(\w+?){_INDICES}\s*\+?=\s*(\w+?){_INDICES}\s*[*+]+\s*(\w+?){_INDICES}\s*")
_RELATION = re.compile(r"\s*(\w+)\s*=\s*(?:(\d+)\s*\*\s*)?(\w+)\s*\+\s*(?:(\d+)\s*\*\s*)?(\w+)\s*")
_KNOWN = {"id", "name", "operator_type", "equation", "dimension_relations", "loop_dims", "loop_sizes",
          "operand_precision", "operand_source", "pr_loop_dims", "pr_loop_sizes", "padding"}


def ours(name: str) -> str:
    """Return what a dimension of ZigZag is called here."""
    return NAMES.get(name.upper(), name.upper())


def read_workload(section: Section) -> Graph:
    """Return the network of a workload; pooling and additions are vector work.

    Raises an `InputError` if a layer lacks something, or its equation is none that is known.
    """
    entries = section.root.items()
    names: dict[int, str] = {}
    for entry in entries:
        entry.fields()
        entry.note_unknown(_KNOWN)
        number = entry["id"].whole(least=0)
        name = str(entry["name"].value or f"Layer{number}")
        if number in names or name in names.values():
            raise entry["id"].fail("must be another id and name than those of the layers before", f"{number}: {name}")
        names[number] = name
    nodes = [_layer(entry, name, names) for entry, name in zip(entries, names.values(), strict=True)]
    if any(pair != [0, 0] for entry in entries for pair in entry["padding"].value or ()):
        section.root.approximated("padding of inputs counts as words of them")
    try:
        return Graph(section.label.rsplit(".", 1)[0], tuple(nodes), section.label)
    except InputError as error:
        raise section.root.passed_on(error) from None


def layer_type(entry: Node) -> str:
    """Return the type of a layer, by which mappings name it."""
    return str(entry["operator_type"].value)


def _precision(entry: Node) -> Mapping[str, int]:
    given = entry.get("operand_precision", {})
    return {name: given[name].whole(least=0) for name in given.fields(empty=True)}


def _layer(entry: Node, name: str, names: Mapping[int, str]) -> GraphNode:
    kind, sizes = layer_type(entry), _sizes(entry)
    made = _tensors(entry, sizes)
    sources = {operand: entry["operand_source"][operand].whole(least=0)
               for operand in entry.get("operand_source", {}).fields(empty=True)}
    own = entry["id"].whole(least=0)
    for operand, source in sources.items():
        if source not in names:
            raise entry["operand_source"][operand].fail("must be the id of a layer", source)
    inputs = tuple(dict.fromkeys(names[source] for operand, source in sources.items()
                                 if source != own and operand in {t.name for t in made}))
    try:
        operator = Operator(name, "zigzag", tuple(sizes.items()), made, (("layer_type", kind),))
    except InputError as error:
        raise entry["equation"].passed_on(error) from None
    if kind not in VECTORS:
        given = any(tensor.role == "weights" and sources.get(tensor.name, own) != own for tensor in made)
        operator = Operator(name, "zigzag", operator.dimensions, made,
                            (("layer_type", kind), *((("weights", "activations"),) if given else ())))
        return MacNode(operator, inputs)
    read = [tensor for tensor in operator.operands if tensor.word_bits or kind in ("Add", "Max")]
    return VectorOperator(name, VECTORS[kind], operator.macs, sum(tensor.words(operator.sizes) for tensor in read),
                          operator.output.words(operator.sizes), inputs,
                          word_bits=_precision(entry).get("O_final") or _precision(entry).get("O"))


def _sizes(entry: Node) -> dict[str, int]:
    names, sizes = entry["loop_dims"].texts(), [size.whole() for size in entry["loop_sizes"].items()]
    if len(names) != len(sizes) or len({ours(name) for name in names}) < len(names):
        raise entry["loop_sizes"].fail("must be one size for each of loop_dims, whose names are distinct",
                                       f"{len(sizes)} for {', '.join(names)}")
    return {ours(name): size for name, size in zip(names, sizes, strict=True)}


def _tensors(entry: Node, sizes: Mapping[str, int]) -> tuple[Tensor, ...]:
    """Return operands, inputs before weights, and the output."""
    text = str(entry["equation"].value)
    match = _EQUATION.fullmatch(text)
    if match is None:
        raise entry["equation"].fail("must be like O[b][k]+=I[b][c]*W[k][c]", text)
    slides = _slides(entry)
    widths = _precision(entry)
    spelt = [(match[at], re.findall(r"\[(\w+)\]", match[at + 1])) for at in (1, 3, 5)]
    weights = next((name for name, _ in spelt[1:] if WEIGHTS_NAME.fullmatch(name)), spelt[2][0])
    found = []
    for at, (name, indices) in enumerate(spelt):
        axes = tuple(slides.get(index.upper(), Axis(((ours(index), 1),))) for index in indices)
        unknown = sorted({used for axis in axes for used in axis.dimensions if used not in sizes})
        if unknown:
            raise entry["equation"].fail(f"must use the dimensions of loop_dims or of dimension_relations ("
                                         f"{', '.join(sizes)})", ", ".join(unknown))
        role: Role = "outputs" if at == 0 else "weights" if name == weights else "inputs"
        bits, sums = widths.get(name) or None, None
        if role == "outputs":
            sums = bits
            bits = widths.get("O_final") or bits
        found.append(Tensor(name, role, axes, bits, partial_bits=None if sums == bits else sums))
    return tuple(sorted(found, key=lambda tensor: ("inputs", "weights", "outputs").index(tensor.role)))


def _slides(entry: Node) -> dict[str, Axis]:
    found = {}
    for relation in entry.get("dimension_relations", []).items(empty=True):
        match = _RELATION.fullmatch(str(relation.value))
        if match is None:
            raise relation.fail("must be like ix=2*ox+1*fx", relation.value)
        name, stride, first, dilation, second = match.groups()
        found[name.upper()] = Axis(((ours(first), int(stride or 1)), (ours(second), int(dilation or 1))))
    return found
