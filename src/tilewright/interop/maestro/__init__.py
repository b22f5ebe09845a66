"""MAESTRO's networks, dataflows and hardware files, and GAMMA's layer tables and genomes, both ways."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.base import InputError, free_name, read_text
from tilewright.interop.formats import Foreign, refuse_sizes
from tilewright.interop.maestro.gamma import is_table, parse_table, with_genomes
from tilewright.interop.maestro.hardware import Hardware, build_machine, parse_hardware
from tilewright.interop.maestro.layers import MaestroView, read_layer
from tilewright.interop.maestro.mapping import MOST_SIDES, Translation, checked_lanes, used_arrays
from tilewright.interop.maestro.network import LayerText, NetworkText, parse_network
from tilewright.interop.maestro.writing import dump_gamma, dump_maestro
from tilewright.interop.notes import Note, Notes
from tilewright.interop.signs import is_genomes, is_hardware
from tilewright.workload import Graph, MacNode

LAYER = "layer"
"""What is bound to the number of the one layer that is to be read."""
__all__ = ["dump_gamma", "dump_maestro", "load_maestro", "read"]


@dataclass(frozen=True)
class _Mapped:
    """A layer that has a dataflow, and the clusters of every level of it on so many processing elements."""

    layer: LayerText
    view: MaestroView
    lanes: tuple[int, ...]
    elements: int

    @property
    def arrays(self) -> tuple[int, ...]:
        """Lengths of the arrays that the layer needs; where one will do it has all elements, used or not."""
        found = used_arrays(self.lanes)
        return (self.elements,) if len(found) == 1 else found


def load_maestro(paths: Sequence[str | Path], layer: int | None = None) -> Foreign:
    """Read MAESTRO's and GAMMA's files that belong together.

    A network with its dataflows (``Network { ... }``), or one of GAMMA's layer tables with the genomes of its result,
    or its logs of layers; and a hardware file. Without one the machine has as many elements as the dataflows can use.

    Parameters
    ----------
    layer
        Read this layer alone, counted from 1; all where None. One machine serves all layers that are read.

    Raises
    ------
    InputError
        With file and line, if something is missing or wrong, or there is more than one network or hardware file.
    """
    notes = Notes()
    networks: list[NetworkText] = []
    hardware: Hardware | None = None
    genomes: list[tuple[str, str]] = []
    for path in map(Path, paths):
        text = read_text(path)
        if is_genomes(text):
            genomes.append((path.name, text))
        elif is_hardware(text):
            if hardware is not None:
                raise InputError(f"{path.name}:1", "must be the only hardware file")
            hardware = parse_hardware(path.name, text, notes)
        else:
            table = is_table(path.name, text)
            networks.append(parse_table(path.name, text) if table else parse_network(path.name, text))
    if len(networks) > 1:
        raise InputError(f"{networks[1].layers[0].label}:1", "must be the only file that holds a network",
                         networks[0].layers[0].label, "Convert them one by one")
    network = networks[0] if networks else None
    if genomes:
        network, elements = with_genomes(network, genomes, notes)
        hardware = hardware or (Hardware(elements) if elements else None)
    if network is not None:
        network = _only(network, layer)
        notes += [Note(f"{network.layers[0].label}:{line} Accelerator", "dropped",
                       "give a hardware file for the machine") for line in network.accelerator_lines]
    return assemble(network, hardware, notes)


def _only(network: NetworkText, layer: int | None) -> NetworkText:
    if layer is None:
        return network
    if not 1 <= layer <= len(network.layers):
        raise InputError("layer", f"must be from 1 to {len(network.layers)}, the layers of {network.name}", layer)
    return replace(network, layers=(network.layers[layer - 1],))


def assemble(network: NetworkText | None, hardware: Hardware | None, notes: Notes) -> Foreign:
    """Return the nouns of a network and a hardware file, either of which may be None."""
    if network is None:
        machine = build_machine(hardware, (hardware.elements,)) if hardware is not None else None
        return Foreign(None, machine, {}, notes=tuple(notes))
    layers = [(layer, read_layer(layer, name, notes)) for layer, name in _named(network.layers, notes)]
    graph = Graph(network.name, tuple(MacNode(view.operator) for _, view in layers), network.layers[0].label)
    mapped = [(layer, view) for layer, view in layers if layer.dataflow is not None]
    for layer, _ in layers:
        if layer.dataflow is None and layer.stated:
            notes.approximated(layer.where("Dataflow"),
                               "no mapping, as it is empty (MAESTRO takes that of the layer before)")
    if hardware is None and mapped:
        hardware = _inferred(mapped, notes)
    if hardware is None:
        return Foreign(graph, None, {}, notes=tuple(notes))
    elements = hardware.elements
    placed = [_Mapped(layer, view, checked_lanes(layer, elements), elements) for layer, view in mapped]
    return _placed(graph, placed, hardware, notes)


def _placed(graph: Graph, placed: Sequence[_Mapped], hardware: Hardware, notes: Notes) -> Foreign:
    """Return the mappings of layers on the arrays for which most of the work is mapped.

    Where layers whose clusters have two sides at most ask for different arrays, it is one array of any shape.
    """
    reshape = len({one.arrays for one in placed if len(one.arrays) <= MOST_SIDES}) > 1
    arrays = None if reshape else _prevailing(placed, hardware)
    machine = build_machine(hardware, arrays)
    mappings = {}
    for one in placed:
        translation, name = Translation(one.layer, one.view, notes), one.view.operator.name
        if reshape and len(one.arrays) <= MOST_SIDES:
            mappings[name] = translation.reshaped(one.lanes)
        elif one.arrays == arrays:
            mappings[name] = translation.mapping(one.lanes)
        else:
            others = ("more than one array of any shape has sides" if arrays is None else
                      f"those of most of the work {_sizes(arrays)}")
            notes.dropped(one.layer.where("Dataflow"), f"its clusters make arrays of {_sizes(one.arrays)}, {others}: "
                          "read this layer alone, with --bind layer=NUMBER")
    if placed and not reshape and machine.compute_instances != hardware.elements:
        first = next(one for one in placed if one.arrays == arrays)
        notes.approximated(first.layer.where("Dataflow"), f"{hardware.elements} processing elements as "
                           f"{machine.compute_instances}: the others are in no whole cluster")
    return Foreign(graph, machine, mappings, notes=tuple(notes))


def _named(layers: Sequence[LayerText], notes: Notes) -> list[tuple[LayerText, str]]:
    """Return the layers with names of their own."""
    used: set[str] = set()
    found = []
    for layer in layers:
        name = free_name(layer.name, used, ".")
        if name != layer.name:
            notes.approximated(layer.where(), f"the name, as {name}: another layer has it")
        used.add(name)
        found.append((layer, name))
    return found


def _inferred(mapped: Sequence[tuple[LayerText, MaestroView]], notes: Notes) -> Hardware:
    """Return hardware with as many elements as the dataflows can use."""
    most = 1
    for layer, view in mapped:
        assert layer.dataflow is not None
        cluster = 1
        for stage in layer.dataflow[1:]:
            cluster *= stage.cluster or 1
        most = max(most, cluster * Translation(layer, view, Notes()).needed())
    notes.approximated(mapped[0][0].where("Dataflow"), f"a machine of {most} processing elements, as many as the "
                       "dataflows can use, with memories and bandwidths without limit: no hardware file is given")
    return Hardware(most)


def _prevailing(placed: Sequence[_Mapped], hardware: Hardware) -> tuple[int, ...]:
    """Return the arrays for which most multiply-accumulates are mapped."""
    work: dict[tuple[int, ...], int] = {}
    for one in placed:
        work[one.arrays] = work.get(one.arrays, 0) + one.view.operator.macs
    return max(work, key=lambda arrays: work[arrays]) if work else used_arrays((hardware.elements,))


def _sizes(arrays: Sequence[int]) -> str:
    return " x ".join(map(str, arrays)) or "one element"


def read(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read files that belong together, as a format does."""
    number = bind.get(LAYER)
    refuse_sizes({name: value for name, value in bind.items() if name != LAYER}, "MAESTRO's and GAMMA's files")
    return load_maestro(paths, number if isinstance(number, int) else None)
