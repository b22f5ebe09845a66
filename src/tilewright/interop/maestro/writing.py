"""Networks, machines and mappings as MAESTRO's files."""

import re
from collections.abc import Mapping

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.interop.formats import Foreign, ForeignText
from tilewright.interop.maestro.hardware import hardware_of, hardware_text
from tilewright.interop.maestro.layers import MaestroView, layer_sizes, view_of
from tilewright.interop.maestro.stages import Level, levels_of, rows_of
from tilewright.interop.notes import Notes
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Graph

NETWORK_FILE, HARDWARE_FILE = "network.m", "hardware.m"
_NOT_IN_NAMES = re.compile(r"[{}();]|//")


def dump_maestro(what: Foreign) -> ForeignText:
    """Return MAESTRO's files of a network and, where given, of mappings of its layers and their machine.

    ``load_maestro`` reads them back. What they cannot say is in the notes.

    Raises an `InputError` if there is nothing to write, a layer or a mapping is none that MAESTRO has words for, or
    mappings come without their machine.
    """
    notes = Notes()
    files: dict[str, str] = {}
    check_writable(what)
    if what.graph is not None:
        files[NETWORK_FILE] = _network(what.graph, what.accelerator, what.mappings, notes)
    if what.accelerator is not None:
        files[HARDWARE_FILE] = hardware_text(hardware_of(what.accelerator, notes))
    return ForeignText(files, tuple(dict.fromkeys(notes)))


def check_writable(what: Foreign) -> None:
    """Refuse to write nothing, and mappings without their machine."""
    if what.graph is None and what.accelerator is None:
        raise InputError("--to", "must be given a network or an accelerator to write")
    if what.mappings and what.accelerator is None:
        raise InputError("accelerator", "must be given with mappings")


def _network(graph: Graph, accelerator: Accelerator | None, mappings: Mapping[str, Nest], notes: Notes) -> str:
    lines = [f"Network {plain_name(graph.name)} {{"]
    mapped = False
    operators = {node.name: node.operator for node in graph.mac_nodes}
    rows = rows_of(mappings, operators, accelerator) if accelerator is not None else {}
    notes.others(graph)
    for node in graph.mac_nodes:
        if node.count > 1:
            notes.dropped(f"{graph.name}.{node.name}", f"that it runs {node.count} times")
        view = view_of(node.operator)
        strides, sizes = layer_sizes(view, notes)
        name = plain_name(node.name)
        if name != node.name:
            notes.approximated(f"{graph.name}.{node.name}", f"called {name}")
        lines += [f"  Layer {name} {{", f"    Type: {view.type}"]
        if strides:
            lines.append(f"    Stride {{ {_pairs(strides)} }}")
        lines.append(f"    Dimensions {{ {_pairs(sizes)} }}")
        if node.name in mappings and accelerator is not None:
            lines += _dataflow(levels_of(mappings[node.name], accelerator, view, notes, rows.get(node.name)),
                               view)
            mapped = True
        elif mapped:
            lines.append("    Dataflow { }")
            notes.approximated(f"{graph.name}.{node.name}", "it has no mapping; MAESTRO takes that of the layer before")
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _dataflow(levels: tuple[Level, ...], view: MaestroView) -> list[str]:
    lines = ["    Dataflow {"]
    for index, level in enumerate(levels):
        if index:
            lines.append(f"      Cluster({level.lanes}, P);")
        for name, tile in level.tiles:
            kind = "SpatialMap" if name == level.spread else "TemporalMap"
            lines.append(f"      {kind}({tile},{tile}) {view.letter(name)};")
    return [*lines, "    }"]


def _pairs(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {size}" for name, size in sizes.items())


def plain_name(name: str) -> str:
    """Return a name as MAESTRO's files can have it."""
    return _NOT_IN_NAMES.sub("_", " ".join(name.split())) or "unnamed"
