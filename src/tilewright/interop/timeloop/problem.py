"""Timeloop's problems: shape, instance, coefficients and densities, to an operator."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

from tilewright.base import InputError, whole_of
from tilewright.interop.sections import WEIGHTS_NAME, Node, Section
from tilewright.workload import Axis, Operator, Role, Tensor

_READ_WRITE = ("read_write", "read-write")
_TENSORS = ("data_spaces", "data-spaces")
_KNOWN = {"name", "dimensions", "coefficients", *_TENSORS}
_FIELDS = {"version", "shape", "instance"}
UNUSED = ("H", "W", "Hpad", "Wpad")
"""Sizes and padding of the input that problems carry beside those of the output, and that no shape reads."""
_NO = (False, None, "false", "False", "no", "No", 0)
_DENSITY = {"density", "distribution", "band_width", "band-width", "workload_tensor_size", "workload-tensor-size"}
CNN_LAYER: dict[str, Any] = {
    "name": "cnn-layer", "dimensions": ["R", "S", "P", "Q", "C", "K", "N"],
    "coefficients": [{"name": name, "default": 1} for name in ("Wstride", "Hstride", "Wdilation", "Hdilation")],
    "data_spaces": [
        {"name": "Weights", "projection": [[["C"]], [["K"]], [["R"]], [["S"]]]},
        {"name": "Inputs", "projection": [[["N"]], [["C"]], [["R", "Wdilation"], ["P", "Wstride"]],
                                          [["S", "Hdilation"], ["Q", "Hstride"]]]},
        {"name": "Outputs", "projection": [[["N"]], [["K"]], [["Q"]], [["P"]]], "read_write": True}]}
"""The shape that Timeloop knows by the name of cnn-layer, and takes where a problem names none."""


def read_problem(section: Section) -> Operator:
    """Return the operator that a ``problem`` section describes.

    Raises an `InputError` if something is missing or wrong, or an axis is more than the sum of two dimensions.
    """
    root = section.root
    given = root.fields()
    shape = root.get("shape", "cnn-layer" if {"R", "S", "P", "Q", "C", "K"} <= set(given) else None)
    if isinstance(shape.value, str):
        if shape.value not in ("cnn-layer", "cnn_layer"):
            raise shape.fail("must be written out, as Timeloop's shape files do", shape.value)
        shape = root.at("shape", CNN_LAYER)
    shape.fields()
    apart = "instance" in given or not set(given) - _FIELDS
    instance = root.at("instance", given.get("instance") or {}) if apart else root
    instance.fields()
    if apart:
        root.note_unknown(_FIELDS)
    shape.note_unknown(_KNOWN)
    dimensions = _dimensions(shape)
    coefficients = _coefficients(shape, instance)
    sizes = []
    for name in dimensions:
        if name not in instance:
            raise root["instance"].fail(f"must give the size of {name}", ", ".join(map(str, instance.value)))
        sizes.append((name, root["instance"].at(name, instance.value[name]).whole()))
    tensors = _tensors(shape, instance, dimensions, coefficients)
    instance.note_unknown({*dimensions, *coefficients, "densities", "commonDensity", "name", *UNUSED,
                           *(() if apart else _FIELDS)})
    try:
        return Operator(str(shape.value.get("name", "problem")), "timeloop", tuple(sizes), tensors)
    except InputError as error:
        raise shape.passed_on(error) from None


def _dimensions(shape: Node) -> list[str]:
    listed = shape["dimensions"]
    text = listed.value
    names = text.replace(",", " ").split() if isinstance(text, str) else listed.texts()
    if not names or len(set(names)) < len(names):
        raise listed.fail("must be distinct names", ", ".join(names) or "none")
    return names


def _coefficients(shape: Node, instance: Node) -> dict[str, int]:
    found = {}
    for entry in shape.get("coefficients", []).items():
        if "name" not in entry.fields():
            raise entry.fail("must have a name")
        name = str(entry["name"].value)
        found[name] = (instance.section.root["instance"].at(name, instance.value[name]) if name in instance
                       else entry.get("default", 1)).whole()
    return found


def _tensors(shape: Node, instance: Node, dimensions: list[str], coefficients: Mapping[str, int]) -> tuple[Tensor, ...]:
    spaces = shape[next((name for name in _TENSORS if name in shape), _TENSORS[0])]
    densities = instance.section.root["instance"].at("densities", instance["densities"].value or {})
    densities.fields()
    entries = spaces.items()
    for entry in entries:
        if "name" not in entry.fields():
            raise entry.fail("must have a name")
        entry.note_unknown({"name", "projection", *_READ_WRITE})
    outputs = [next((entry[flag].value for flag in _READ_WRITE if flag in entry), False) not in _NO
               for entry in entries]
    if sum(outputs) != 1:
        raise spaces.fail("must have exactly one data space that is read_write", sum(outputs))
    weights = [index for index, entry in enumerate(entries)
               if not outputs[index] and WEIGHTS_NAME.fullmatch(str(entry["name"].value))]
    first = weights[0] if weights else outputs.index(False) if False in outputs else -1
    found = []
    for index, entry in enumerate(entries):
        axes = tuple(_axis(axis, dimensions, coefficients) for axis in entry["projection"].items())
        name = str(entry["name"].value)
        role: Role = "outputs" if outputs[index] else "weights" if index == first else "inputs"
        density, even = _density(densities.get(name, instance.value.get("commonDensity", 1.0)))
        found.append(Tensor(name, role, axes, None, density, even=even))
    return tuple(sorted(found, key=lambda tensor: tensor.is_output))


def _axis(axis: Node, dimensions: list[str], coefficients: Mapping[str, int]) -> Axis:
    """Read ``[[P, Wstride], [R]]``: a sum of products of a dimension and at most one coefficient."""
    terms = []
    for term in axis.items():
        factors = [term.value] if isinstance(term.value, str) else term.texts()
        used = [factor for factor in factors if factor in dimensions]
        others = [factor for factor in factors if factor not in dimensions]
        unknown = [factor for factor in others if factor not in coefficients and whole_of(factor, 0) is None]
        if len(used) != 1 or unknown:
            raise term.fail("must be a dimension, and coefficients of the shape where wanted", ", ".join(factors),
                            f"Dimensions: {', '.join(dimensions)}")
        scale = prod(coefficients[factor] if factor in coefficients else int(factor) for factor in others)
        terms.append((used[0], scale))
    if not 1 <= len(terms) <= 2:
        raise axis.fail("must be the sum of one or two dimensions", len(terms))
    return Axis(tuple(terms))


def _density(node: Node) -> tuple[float, bool]:
    """Return the share of words that are not zero, and whether they are spread evenly (fixed-structured)."""
    kind, given = "hypergeometric", node.value
    if isinstance(given, Mapping):
        node.note_unknown(_DENSITY)
        kind = str(given.get("distribution", kind)).replace("_", "-")
        given = given.get("density", 1.0)
    density = replace(node, value=given).number()
    if not 0 < density <= 1:
        raise node.fail("must be above 0 and at most 1", density)
    if kind not in ("hypergeometric", "uniform", "fixed-structured") and density < 1:
        node.approximated(f"a {kind} distribution as a uniform one")
    return density, kind == "fixed-structured" and density < 1
