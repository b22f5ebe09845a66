"""The form of Timeloop's YAML that the program itself reads: levels with counts, no front end, remainders too.

Arrays stand between levels: a dummy memory outside each, which holds nothing, is where its spatial loops are. So
Timeloop's front end hands architectures on to ``timeloop-model`` and ``timeloop-mapper``.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout
from tilewright.interop.formats import ForeignText
from tilewright.interop.timeloop.writing import Writer, flow, on_both_sides, problem_tree, yaml_text
from tilewright.mapping import Constraints
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator

VERSION = "0.3"


def dump_program(operator: Operator, accelerator: Accelerator, mapping: Nest | None = None,
                 constraints: Constraints | None = None) -> ForeignText:
    """Return files that ``timeloop-model`` (or, with constraints, ``timeloop-mapper``) reads without a front end.

    Raises
    ------
    InputError
        If a dimension's name has several letters, or steps of the mapping do not divide one another.
    """
    for name in operator.sizes:
        if len(name) > 1 or not name.isalpha():
            raise InputError(f"{operator.name}.{name}", "must be one letter, as timeloop-model reads permutations "
                             "letter by letter", name, "Rename the dimension")
    writer = Writer(operator, accelerator, on_both_sides(mapping), remainders=True)
    writer.about_operator()
    energies, areas = writer.tables()
    trees: dict[str, tuple[str, Any]] = {
        "arch.yaml": ("architecture", _architecture(writer)), "problem.yaml": ("problem", _problem(operator)),
        "ERT.yaml": ("ERT", energies), "ART.yaml": ("ART", areas)}
    zeros = _zeros(writer)
    if zeros:
        trees["sparse.yaml"] = ("sparse_optimizations", CommentedMap({"version": VERSION, "targets": zeros}))
    if mapping is not None:
        dummies = [entry for name in _dummies(writer) for entry in _idle(name, operator)]
        entries = [_entry(entry) for entry in writer.mapping(mapping)]
        trees["mapping.yaml"] = ("mapping", CommentedSeq([*entries, *dummies]))
    if constraints is not None:
        tree = writer.constraints(constraints)
        targets = CommentedSeq(_entry(entry) for entry in tree["targets"])
        trees["constraints.yaml"] = ("mapspace_constraints", CommentedMap({"version": VERSION, "targets": targets}))
    return ForeignText({name: yaml_text({section: tree}) for name, (section, tree) in trees.items()},
                       tuple(writer.notes))


def dummy_of(array: str) -> str:
    """Return the name of the memory that stands outside an array."""
    return f"inter_{array}_spatial"


def _dummies(writer: Writer) -> list[str]:
    return [dummy_of(name) for fanout in writer.accelerator.fanouts for name, _, _ in writer.arrays(fanout)]


def _idle(dummy: str, operator: Operator) -> Iterable[CommentedMap]:
    """Yield what a dummy memory does: no loop in time, nothing kept."""
    names = list(operator.sizes)
    yield CommentedMap({"target": dummy, "type": "temporal", "factors": " ".join(f"{name}=1" for name in names),
                        "permutation": "".join(names)})
    yield CommentedMap({"target": dummy, "type": "bypass", "keep": flow([]),
                        "bypass": flow([tensor.name for tensor in operator.tensors])})


def _architecture(writer: Writer) -> CommentedMap:
    """Return the levels in one list, each with how many there are of it and how they lie."""
    machine = writer.accelerator
    local = CommentedSeq()
    across, down = 1, 1

    def add(name: str, kind: str, attributes: Mapping[str, Any]) -> None:
        local.append(CommentedMap({"name": f"{name}[1..{across * down}]", "class": kind,
                                   "attributes": flow({
                                       **{key.replace("multiple_", "multiple-"): value
                                          for key, value in attributes.items()}, "meshX": across, "meshY": down})}))

    for level in machine.levels:
        if isinstance(level, Fanout):
            writer.about_fanout(level)
            for name, mesh, _ in writer.arrays(level):
                add(dummy_of(name), "dummy_storage", {"width": 1, "depth": 1, "datawidth": 1})
                across, down = across * mesh.get("meshX", 1), down * mesh.get("meshY", 1)
            continue
        writer.about_memory(level)
        for name, _, room in writer.components(level):
            add(name, "DRAM" if room is None else "storage", writer.attributes(level, room))
    add(machine.compute.name, "intmac", writer.compute_attributes())
    return CommentedMap({"version": VERSION, "subtree": [CommentedMap({
        "name": machine.name, "attributes": {"technology": "45nm", "global_cycle_seconds": writer.cycle_seconds},
        "local": local})]})


def _problem(operator: Operator) -> CommentedMap:
    """Return the problem with the spellings of all versions of Timeloop."""
    tree = problem_tree(operator)
    for said in tree["instance"].get("densities", {}).values():
        said["distribution"] = said["distribution"].replace("_", "-")
    shape = dict(tree["shape"])
    shape["data-spaces"] = [CommentedMap({name.replace("_", "-"): value for name, value in space.items()})
                            for space in shape.pop("data_spaces")]
    return CommentedMap({"version": VERSION, "shape": shape, "instance": tree["instance"]})


def _entry(entry: Mapping[str, Any]) -> CommentedMap:
    """Return a directive of the front end as the program reads it."""
    made = dict(entry)
    if made["type"] == "spatial":
        made["target"] = dummy_of(made["target"])
    if made["type"] == "dataspace":
        made["type"] = "bypass"
    for name, between in (("factors", " "), ("permutation", "")):
        if name in made:
            made[name] = between.join(made[name])
    return CommentedMap(made)


def _zeros(writer: Writer) -> list[CommentedMap]:
    """Return what components make of zeros, with the program's spellings."""
    return [CommentedMap({"name": name, **{key.replace("_", "-"): _hyphens(value) for key, value in group.items()}})
            for name, group in writer.zeros().items()]


def _hyphens(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {str(key).replace("_", "-"): _hyphens(value) for key, value in node.items()}
    return [_hyphens(value) for value in node] if isinstance(node, list) else node
