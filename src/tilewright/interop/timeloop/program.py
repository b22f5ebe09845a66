"""The form of Timeloop's YAML that the program itself reads: levels with counts, no front end, remainders too.

Arrays stand between levels: a dummy memory outside each, which holds nothing, is where its spatial loops are. So
Timeloop's front end hands architectures on to ``timeloop-model`` and ``timeloop-mapper``.
"""

from collections.abc import Mapping
from typing import Any

from tilewright.base import InputError, yaml_flow
from tilewright.hardware import Accelerator, Fanout
from tilewright.interop.formats import ForeignText
from tilewright.interop.timeloop import writing
from tilewright.interop.timeloop.writing import Tree, Writer
from tilewright.mapping import Constraints
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator

VERSION = "0.3"


def dump_program(operator: Operator, accelerator: Accelerator, mapping: Nest | None = None,
                 constraints: Constraints | None = None) -> ForeignText:
    """Return files that ``timeloop-model`` (or, with constraints, ``timeloop-mapper``) reads without a front end.

    Raises an `InputError` if a dimension's name has several letters, or steps of the mapping do not divide one another.
    """
    for name in operator.sizes:
        if len(name) > 1 or not name.isalpha():
            raise InputError(f"{operator.name}.{name}", "must be one letter, as timeloop-model reads permutations "
                             "letter by letter", name, "Rename the dimension")
    accelerator = writing.shaped(operator, accelerator, mapping)
    writer = Writer(operator, accelerator, writing.on_both_sides(mapping), remainders=True)
    writer.about_operator()
    trees: writing.Trees = {"arch.yaml": ("architecture", _architecture(writer)),
                    "problem.yaml": ("problem", _problem(operator)), **writer.tables()}
    zeros = [_hyphens({"name": name, **group}) for name, group in writer.zeros().items()]
    if zeros:
        trees["sparse.yaml"] = ("sparse_optimizations", {"version": VERSION, "targets": zeros})
    if mapping is not None:
        dummies = [entry for fanout in accelerator.fanouts for name, _, _ in writer.arrays(fanout)
                   for entry in _idle(dummy_of(name), operator)]
        trees["mapping.yaml"] = ("mapping", [*map(_entry, writer.mapping(mapping)), *dummies])
    if constraints is not None:
        targets = [_entry(entry) for entry in writer.constraints(constraints)]
        trees["constraints.yaml"] = ("mapspace_constraints", {"version": VERSION, "targets": targets})
    return writing.files_of(trees, writer)


def dummy_of(array: str) -> str:
    """Return the name of the memory that stands outside an array."""
    return f"inter_{array}_spatial"


def _idle(dummy: str, operator: Operator) -> list[Tree]:
    """Return what a dummy memory does: no loop in time, nothing kept."""
    names = list(operator.sizes)
    return [{"target": dummy, "type": "temporal", "factors": " ".join(f"{name}=1" for name in names),
             "permutation": "".join(names)},
            {"target": dummy, "type": "bypass", "keep": yaml_flow([]),
             "bypass": yaml_flow([tensor.name for tensor in operator.tensors])}]


def _architecture(writer: Writer) -> Tree:
    """Return the levels in one list, each with how many there are of it and how they lie."""
    machine = writer.accelerator
    local: list[Tree] = []
    across, down = 1, 1

    def add(name: str, kind: str, attributes: Mapping[str, Any]) -> None:
        spelt = {key.replace("multiple_", "multiple-"): value for key, value in attributes.items()}
        local.append({"name": f"{name}[1..{across * down}]", "class": kind,
                      "attributes": yaml_flow({**spelt, "meshX": across, "meshY": down})})

    for level in machine.levels:
        if isinstance(level, Fanout):
            writer.about_fanout(level)
            for name, mesh, _ in writer.arrays(level):
                add(dummy_of(name), "dummy_storage", {"width": 1, "depth": 1, "datawidth": 1})
                across, down = across * mesh.get("meshX", 1), down * mesh.get("meshY", 1)
            continue
        writer.about_memory(level)
        for name, _, room in writer.components(level):
            add(name, writing.memory_class(room), writer.attributes(level, room))
    add(machine.compute.name, writing.COMPUTE_CLASS, writer.compute_attributes())
    return {"version": VERSION, "subtree": [{
        "name": machine.name, "attributes": {"technology": "45nm", "global_cycle_seconds": writer.cycle_seconds},
        "local": local}]}


def _problem(operator: Operator) -> Tree:
    """Return the problem with the spellings of all versions of Timeloop."""
    tree = writing.problem_tree(operator)
    for said in tree["instance"].get("densities", {}).values():
        said["distribution"] = said["distribution"].replace("_", "-")
    shape = dict(tree["shape"])
    shape["data-spaces"] = [{name.replace("_", "-"): value for name, value in space.items()}
                            for space in shape.pop("data_spaces")]
    return {"version": VERSION, "shape": shape, "instance": tree["instance"]}


def _entry(entry: Tree) -> Tree:
    """Return a directive of the front end as the program reads it."""
    made = dict(entry)
    if made["type"] == "spatial":
        made["target"] = dummy_of(made["target"])
    if made["type"] == "dataspace":
        made["type"] = "bypass"
    for name, between in (("factors", " "), ("permutation", "")):
        if name in made:
            made[name] = between.join(made[name])
    return made


def _hyphens(node: Any) -> Any:
    """Return a tree with the program's spellings of its fields."""
    if isinstance(node, Mapping):
        return {str(key).replace("_", "-"): _hyphens(value) for key, value in node.items()}
    return [_hyphens(value) for value in node] if isinstance(node, list) else node
