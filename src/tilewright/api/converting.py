"""Foreign files made ours, and ours made foreign."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.base import InputError, unknown_name
from tilewright.hardware import Accelerator, dump_accelerator, refuse_shared
from tilewright.interop import FORMATS, Foreign, ForeignText, Note, Notes, format_of, refuse_notes
from tilewright.mapping import Constraints, dump_constraints, dump_mapping
from tilewright.workload import dump_operators

OURS = "tilewright"
_LONGEST_NAME = 60
"""Letters of a layer that the name of its mapping's file has, at most: file systems have a limit."""


def read_foreign(paths: Sequence[str | Path], *, form: str | None = None, bind: Mapping[str, int | str] | None = None,
                 strict: bool = False) -> Foreign:
    """Return what foreign files that belong together hold.

    Parameters
    ----------
    form
        Name of their format; found by the files themselves where None.
    bind
        Sizes that a network leaves open, by name.

    Raises
    ------
    InputError
        If the files are of no known format, not of one, wrong or, with ``strict``, not honoured in full.
    """
    files = [Path(path) for path in paths]
    found = FORMATS.get(form or _form(files)).read(files, bind or {})
    if strict:
        refuse_notes(found.notes)
    return found


def convert(what: Foreign, to: str = OURS, *, strict: bool = False) -> ForeignText:
    """Return a network, an accelerator, mappings and constraints as files of a format.

    Ours are ``network.yaml``, ``accelerator.yaml``, ``mapping.yaml`` (``mapping-LAYER.yaml`` where there are several
    layers) and ``space.yaml``, whichever there is something for.

    Raises an `InputError` if the format is unknown or only read, cannot express what there is or, with ``strict``, not
    all of it.
    """
    if to == OURS:
        made = _ours(what)
    elif to not in FORMATS:
        raise unknown_name("format", to, [OURS, *FORMATS])
    else:
        write = FORMATS.get(to).write
        if write is None:
            able = [OURS, *(name for name in FORMATS if FORMATS.get(name).write)]
            raise InputError("--to", "must be a format that is written, not only read", to, f"Known: {', '.join(able)}")
        if what.accelerator is not None:
            _refuse_networks(what.accelerator, to)
        made = write(what)
    if strict:
        refuse_notes(made.notes)
    if to != OURS and what.accelerator is not None and what.accelerator.vector is not None:
        # told, not refused: nodes that would use the unit have notes of their own
        made = replace(made, notes=(*made.notes, Note(
            f"{what.accelerator.name}.vector", "dropped", f"the vector unit: {to} has none")))
    return made


def _refuse_networks(machine: Accelerator, to: str) -> None:
    """Refuse a machine whose arrays tell tensors or sides apart, which no foreign format that is written can say."""
    refuse_shared(machine, to)
    for array in machine.fanouts:
        if not (isinstance(array.multicast, bool) and isinstance(array.reduce, bool)):
            raise InputError(f"{machine.name}.{array.name}", f"must merge the words of all tensors alike, along both "
                             f"sides or none: {to} cannot say more", mend=f"Convert it to {OURS}")


def _form(paths: Sequence[Path]) -> str:
    """Return the name of the format that all files are of."""
    names: list[str] = []
    for path in paths:
        found = format_of(path)
        if found is None:
            known = "; ".join(FORMATS.get(name).summary for name in FORMATS)
            if path.exists():
                raise InputError(str(path), "must be a file of a foreign format", None, f"Known: {known}")
            raise InputError(str(path), "must be an existing file")
        names.append(found.name)
    if len(set(names)) > 1:
        raise InputError("FILE", "must all be of one format",
                         ", ".join(f"{path.name}: {name}" for path, name in zip(paths, names, strict=True)),
                         "Say which with --from")
    return names[0]


def _ours(what: Foreign) -> ForeignText:
    files: dict[str, str] = {}
    notes = Notes()
    if what.accelerator is not None:
        files["accelerator.yaml"] = dump_accelerator(what.accelerator)
    if what.graph is not None:
        files["network.yaml"] = dump_operators(what.graph)
        notes.others(what.graph)
        operators = {node.name: node.operator for node in what.graph.mac_nodes}
        for name, mapping in what.mappings.items():
            stem = "mapping" if len(operators) == 1 else "mapping-" + re.sub(r"[^\w.-]+", "_", name)[:_LONGEST_NAME]
            files[_free(stem, files)] = dump_mapping(mapping, operators[name], what.accelerator)
    if what.constraints is not None and what.constraints != Constraints():
        files["space.yaml"] = dump_constraints(what.constraints)
    return ForeignText(files, tuple(notes))


def _free(stem: str, taken: Collection[str]) -> str:
    """Return the name of a YAML file that no other has, whether or not capitals are told apart."""
    known = {name.lower() for name in taken}
    name, number = f"{stem}.yaml", 1
    while name.lower() in known:
        number += 1
        name = f"{stem}.{number}.yaml"
    return name
