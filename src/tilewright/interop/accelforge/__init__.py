"""AccelForge's architectures, workloads and mappings (YAML); AccelForge itself is not needed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.base import InputError
from tilewright.interop.accelforge.machine import read_machine
from tilewright.interop.accelforge.mapping import read_mappings
from tilewright.interop.accelforge.workload import Einsums
from tilewright.interop.formats import Foreign, refuse_sizes
from tilewright.interop.sections import Files

__all__ = ["read"]

_SECTIONS = ("arch", "workload", "mapping", "renames", "variables")
_UNUSED = {"mapper": "how AccelForge searches", "config": "what AccelForge is run with",
           "model": "what AccelForge reports"}


def read(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read files that belong together; variables of templates stand behind a file's name, ``arch.yaml:SIZE=1024``.

    Raises an `InputError` with file and line, if something is missing, wrong, or fuses einsums.
    """
    refuse_sizes(bind, "files of AccelForge")
    files = Files.read(paths, _SECTIONS, _UNUSED, "AccelForge", lambda text: int(text) if text.isdecimal() else text)
    notes, (architecture, workload, mapping, renames, given) = files.notes, map(files.one, _SECTIONS)
    variables = given.root.fields(empty=True) if given else {}
    einsums = Einsums.read(workload, renames) if workload else None
    graph = einsums.graph if einsums else None
    if architecture is None:
        if mapping is not None and mapping.tree:
            raise mapping.root.fail("must come with the architecture whose components it names")
        if graph is None:
            raise InputError(paths[0].name, "must hold an arch or a workload",
                             ", ".join(section.name for section in files.sections) or "nothing of them")
        return Foreign(graph, notes=tuple(notes))
    machine = read_machine(architecture, variables, einsums)
    mappings = {}
    if mapping is not None and mapping.tree:
        if einsums is None:
            raise mapping.root.fail("must come with the workload whose tensors it names")
        mappings = read_mappings(mapping, einsums, machine)
    machine = replace(machine, assumptions=tuple(map(str, notes)))
    return Foreign(graph, machine, mappings, notes=tuple(notes))
