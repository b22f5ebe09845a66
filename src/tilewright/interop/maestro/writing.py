"""Networks, machines and mappings as MAESTRO's files, and as GAMMA's layer tables and genomes."""

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.interop.formats import Foreign, ForeignText
from tilewright.interop.maestro.gamma import AS_PRODUCT, ELEMENTS, GENES, TYPES
from tilewright.interop.maestro.hardware import hardware_of, hardware_text
from tilewright.interop.maestro.layers import MaestroView, layer_sizes, view_of
from tilewright.interop.maestro.stages import Level, levels_of, rows_of
from tilewright.interop.notes import Notes
from tilewright.interop.signs import COLUMNS, SOLUTION
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Graph, MacNode

NETWORK_FILE, HARDWARE_FILE = "network.m", "hardware.m"
_NOT_IN_NAMES = re.compile(r"[{}();]|//")
RESULT_FILE, GAMMA_HARDWARE_FILE = "result_c.csv", "hw_config.m"
_NAMES = {"elements": "NumPEs", "l1_bytes": "L1Size", "l2_bytes": "L2Size", "network_words": "NoC_BW",
          "offchip_words": "offchip_bw_cstr"}
_T = {kind: number for number, kind in TYPES.items() if number}


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


def dump_gamma(what: Foreign) -> ForeignText:
    """Return GAMMA's layer table of a network and, where given, the genomes of mappings and a hardware file.

    ``load_maestro`` reads them back. What they cannot say is in the notes: layers of other types are left out.

    Raises an `InputError` if there is nothing to write, mappings come without their machine, or no layer is of a type
    that GAMMA has.
    """
    notes = Notes()
    check_writable(what)
    files: dict[str, str] = {}
    if what.graph is not None:
        layers = _layers(what.graph, notes)
        rows = [_row(view, notes) for _, view in layers]
        if [node.name for node, _ in layers] != [f"Layer_{number}" for number in range(1, len(layers) + 1)]:
            notes.dropped(what.graph.name, "the names of its layers: GAMMA's tables have none")
        stem = plain_name(what.graph.name).replace("/", "_")
        files[f"{stem}_layers.csv" if f"{stem}.csv".lower() == RESULT_FILE else f"{stem}.csv"] = _table(COLUMNS, rows)
        if what.mappings and what.accelerator is not None:
            files[RESULT_FILE] = _result(layers, what.accelerator, what.mappings, notes)
    if what.accelerator is not None:
        files[GAMMA_HARDWARE_FILE] = hardware_text(hardware_of(what.accelerator, notes), _NAMES)
    return ForeignText(files, tuple(dict.fromkeys(notes)))


def _layers(graph: Graph, notes: Notes) -> list[tuple[MacNode, MaestroView]]:
    """Return the layers that GAMMA has words for."""
    found = []
    notes.others(graph)
    for node in graph.mac_nodes:
        where = f"{graph.name}.{node.name}"
        if node.count > 1:
            notes.dropped(where, f"that it runs {node.count} times")
        try:
            view = view_of(node.operator)
        except InputError:
            notes.dropped(where, "GAMMA has convolutions and matrix products only")
            continue
        batch = node.operator.sizes.get("B", 1) if not view.windows else node.operator.sizes["N"]
        if view.type not in _T or batch > 1:
            notes.dropped(where, "GAMMA has no batches, groups or transposed convolutions")
        else:
            found.append((node, view))
    if not found:
        raise InputError(graph.name, "must have a layer that GAMMA has a type for: CONV, DSCONV or GEMM")
    return found


def _row(view: MaestroView, notes: Notes) -> list[int]:
    """Return K, C, Y, X, R, S and T of a layer."""
    strides, sizes = layer_sizes(view, notes)
    if view.type == "GEMM":
        found = {letter: sizes[name] for letter, name in AS_PRODUCT.items()}
    else:
        found = dict(sizes)
        if max(strides.values()) > 1:
            notes.approximated(view.operator.name, f"a stride of {max(strides.values())} as 1, over an input with as "
                               "many output positions: GAMMA knows none")
            for letter, window in view.windows.items():
                found[letter] = view.operator.sizes[window.position] + view.operator.sizes[window.kernel] - 1
    return [*(found.get(letter, 1) for letter in GENES), _T[view.type]]


def _result(layers: list[tuple[MacNode, MaestroView]], accelerator: Accelerator, mappings: Mapping[str, Nest],
            notes: Notes) -> str:
    rows: list[list[object]] = []
    mapped = {node.name: mappings[node.name] for node, _ in layers if node.name in mappings}
    shapes = rows_of(mapped, {node.name: node.operator for node, _ in layers}, accelerator)
    for index, (node, view) in enumerate(layers):
        genome = ""
        if node.name in mappings:
            encoded = _encoded(view)
            levels = levels_of(mappings[node.name], accelerator, encoded, notes, shapes.get(node.name))
            genome = str(_genome(levels, encoded))
        else:
            notes.dropped(node.name, "it has no mapping, so that its row has no genome")
        rows.append([index, accelerator.compute_instances, genome])
    return _table(("", ELEMENTS, SOLUTION), rows)


def _encoded(view: MaestroView) -> MaestroView:
    """Return a view of the dimensions that genes have."""
    if view.type == "GEMM":
        return replace(view, plain={letter: view.plain[name] for letter, name in AS_PRODUCT.items()})
    return replace(view, plain={letter: name for letter, name in view.plain.items() if letter in GENES})


def _genome(levels: tuple[Level, ...], view: MaestroView) -> list[list[object]]:
    """Return the genes of all levels; dimensions that a layer does not have get tiles of 1."""
    genes: list[list[object]] = []
    for level in levels:
        tiles = [(view.letter(name).rstrip("'"), tile) for name, tile in level.tiles]
        absent = [(letter, 1) for letter in GENES if letter not in dict(tiles)]
        genes.append([view.letter(level.spread).rstrip("'"), level.lanes])
        genes += [[letter, tile] for letter, tile in (*absent, *tiles)]
    return genes


def _table(header: tuple[str, ...], rows: list[list[int]] | list[list[object]]) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
