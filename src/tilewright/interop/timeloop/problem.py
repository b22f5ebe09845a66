"""Timeloop's problems: shape, instance, coefficients and densities, to an operator."""

from collections.abc import Mapping
from typing import Any

from tilewright.base import InputError, whole_of
from tilewright.interop.timeloop.source import WEIGHTS_NAME, Section
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

    Raises
    ------
    InputError
        If something is missing or wrong, or an axis is more than the sum of two dimensions.
    """
    tree = section.mapping(section.tree, ())
    shape = tree.get("shape", "cnn-layer" if {"R", "S", "P", "Q", "C", "K"} <= set(tree) else None)
    if isinstance(shape, str):
        if shape not in ("cnn-layer", "cnn_layer"):
            raise section.fail(("shape",), "must be written out, as Timeloop's shape files do", shape)
        shape = CNN_LAYER
    shape = section.mapping(shape, ("shape",))
    apart = "instance" in tree or not set(tree) - _FIELDS
    instance = section.mapping((tree.get("instance") or {}) if apart else tree, ("instance",) if apart else ())
    if apart:
        section.note_unknown((), _FIELDS)
    section.note_unknown(("shape",), _KNOWN)
    dimensions = _dimensions(section, shape)
    coefficients = _coefficients(section, shape, instance)
    sizes = []
    for name in dimensions:
        if name not in instance:
            raise section.fail(("instance",), f"must give the size of {name}", ", ".join(map(str, instance)))
        sizes.append((name, section.whole(instance[name], ("instance", name))))
    tensors = _tensors(section, shape, instance, dimensions, coefficients)
    read = {*dimensions, *coefficients, "densities", "commonDensity", "name", *UNUSED, *(() if apart else _FIELDS)}
    section.note_unknown(("instance",) if apart else (), read)
    try:
        return Operator(str(shape.get("name", "problem")), "timeloop", tuple(sizes), tensors)
    except InputError as error:
        raise section.fail(("shape",), f"{error.field} {error.rule}", error.given, error.mend) from None


def _dimensions(section: Section, shape: Mapping[str, Any]) -> list[str]:
    path = ("shape", "dimensions")
    names = shape.get("dimensions")
    if isinstance(names, str):
        names = names.replace(",", " ").split()
    names = [str(name) for name in section.list(names, path)]
    if not names or len(set(names)) < len(names):
        raise section.fail(path, "must be distinct names", ", ".join(names) or "none")
    return names


def _coefficients(section: Section, shape: Mapping[str, Any], instance: Mapping[str, Any]) -> dict[str, int]:
    found = {}
    for index, entry in enumerate(section.list(shape.get("coefficients", []), ("shape", "coefficients"))):
        path = ("shape", "coefficients", index)
        fields = section.mapping(entry, path)
        if "name" not in fields:
            raise section.fail(path, "must have a name")
        name = str(fields["name"])
        given = ("instance", name) if name in instance else (*path, "default")
        found[name] = section.whole(instance.get(name, fields.get("default", 1)), given)
    return found


def _tensors(section: Section, shape: Mapping[str, Any], instance: Mapping[str, Any], dimensions: list[str],
             coefficients: Mapping[str, int]) -> tuple[Tensor, ...]:
    key = next((name for name in _TENSORS if name in shape), _TENSORS[0])
    densities = section.mapping(instance.get("densities") or {}, ("instance", "densities"))
    entries = [section.mapping(entry, ("shape", key, index))
               for index, entry in enumerate(section.list(shape.get(key), ("shape", key)))]
    for index, entry in enumerate(entries):
        if "name" not in entry:
            raise section.fail(("shape", key, index), "must have a name")
        section.note_unknown(("shape", key, index), {"name", "projection", *_READ_WRITE})
    outputs = [next((entry[flag] for flag in _READ_WRITE if flag in entry), False) not in _NO for entry in entries]
    if sum(outputs) != 1:
        raise section.fail(("shape", key), "must have exactly one data space that is read_write", sum(outputs))
    weights = [index for index, entry in enumerate(entries)
               if not outputs[index] and WEIGHTS_NAME.fullmatch(str(entry["name"]))]
    first = weights[0] if weights else outputs.index(False) if False in outputs else -1
    operands, output = [], None
    for index, entry in enumerate(entries):
        path = ("shape", key, index, "projection")
        axes = tuple(_axis(section, axis, (*path, at), dimensions, coefficients)
                     for at, axis in enumerate(section.list(entry.get("projection"), path)))
        name = str(entry["name"])
        role: Role = "outputs" if outputs[index] else "weights" if index == first else "inputs"
        density, even = _density(section, densities.get(name, instance.get("commonDensity", 1.0)), name)
        tensor = Tensor(name, role, axes, None, density, even=even)
        if outputs[index]:
            output = tensor
        else:
            operands.append(tensor)
    assert output is not None
    return (*operands, output)


def _axis(section: Section, axis: Any, path: tuple[str | int, ...], dimensions: list[str],
          coefficients: Mapping[str, int]) -> Axis:
    """Read ``[[P, Wstride], [R]]``: a sum of products of a dimension and at most one coefficient."""
    terms = []
    for at, term in enumerate(section.list(axis, path)):
        factors = [str(factor) for factor in ([term] if isinstance(term, str) else section.list(term, (*path, at)))]
        used = [factor for factor in factors if factor in dimensions]
        others = [factor for factor in factors if factor not in dimensions]
        unknown = [factor for factor in others if factor not in coefficients and whole_of(factor, 0) is None]
        if len(used) != 1 or unknown:
            raise section.fail((*path, at), "must be a dimension, and coefficients of the shape where wanted",
                               ", ".join(factors), f"Dimensions: {', '.join(dimensions)}")
        scale = 1
        for factor in others:
            scale *= coefficients[factor] if factor in coefficients else int(factor)
        terms.append((used[0], scale))
    if not 1 <= len(terms) <= 2:
        raise section.fail(path, "must be the sum of one or two dimensions", len(terms))
    return Axis(tuple(terms))


def _density(section: Section, given: Any, name: str) -> tuple[float, bool]:
    """Return the share of words that are not zero, and whether they are spread evenly (fixed-structured)."""
    path = ("instance", "densities", name)
    kind = "hypergeometric"
    if isinstance(given, Mapping):
        section.note_unknown(path, _DENSITY)
        kind = str(given.get("distribution", kind)).replace("_", "-")
        given = given.get("density", 1.0)
    density = section.number(given, path)
    if not 0 < density <= 1:
        raise section.fail(path, "must be above 0 and at most 1", density)
    if kind not in ("hypergeometric", "uniform", "fixed-structured") and density < 1:
        section.note(path, "approximated", f"a {kind} distribution as a uniform one")
    return density, kind == "fixed-structured" and density < 1
