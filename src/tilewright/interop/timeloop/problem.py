"""Timeloop's problems: shape, instance, coefficients and densities, to an operator."""

from collections.abc import Mapping
from typing import Any

from tilewright.base import InputError
from tilewright.interop.timeloop.source import WEIGHTS_NAME, Section
from tilewright.workload import Axis, Operator, Role, Tensor

_READ_WRITE = ("read_write", "read-write")
_TENSORS = ("data_spaces", "data-spaces")
_KNOWN = {"name", "dimensions", "coefficients", *_TENSORS}


def read_problem(section: Section) -> Operator:
    """Return the operator that a ``problem`` section describes.

    Raises
    ------
    InputError
        If something is missing or wrong, or an axis is more than the sum of two dimensions.
    """
    tree = section.mapping(section.tree, ())
    shape = tree.get("shape")
    if isinstance(shape, str):
        raise section.fail(("shape",), "must be written out, as Timeloop's shape files do", shape)
    shape = section.mapping(shape, ("shape",))
    instance = section.mapping(tree.get("instance", {}), ("instance",))
    for name in sorted(set(shape) - _KNOWN):
        section.note(("shape", name), "dropped", "not part of a shape that is known here")
    dimensions = _dimensions(section, shape)
    coefficients = _coefficients(section, shape, instance)
    sizes = []
    for name in dimensions:
        if name not in instance:
            raise section.fail(("instance",), f"must give the size of {name}", ", ".join(map(str, instance)))
        sizes.append((name, section.whole(instance[name], ("instance", name))))
    tensors = _tensors(section, shape, instance, dimensions, coefficients)
    unread = set(instance) - set(dimensions) - set(coefficients) - {"densities"}
    for name in sorted(unread):
        section.note(("instance", name), "dropped", "neither a dimension nor a coefficient of the shape")
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
    outputs = [bool(next((entry[flag] for flag in _READ_WRITE if flag in entry), False)) for entry in entries]
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
        density = _density(section, densities.get(name, 1.0), name)
        tensor = Tensor(name, role, axes, None, density)
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
        unknown = [factor for factor in others if factor not in coefficients and not factor.isdecimal()]
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


def _density(section: Section, given: Any, name: str) -> float:
    path = ("instance", "densities", name)
    if isinstance(given, Mapping):
        if given.get("distribution") not in (None, "fixed-structured", "hypergeometric", "uniform"):
            section.note(path, "approximated", f"a {given['distribution']} distribution as a uniform one")
        given = given.get("density", 1.0)
    density = section.number(given, path)
    if not 0 < density <= 1:
        raise section.fail(path, "must be above 0 and at most 1", density)
    return density
