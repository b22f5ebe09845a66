"""``tilewright list``: what there is to choose from."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.base import InputError
from tilewright.cli.options import StorePlace, console

if TYPE_CHECKING:
    from tilewright.store import Entry

Rows = list[tuple[object, ...]]


class Kind(StrEnum):
    """What can be listed."""

    networks = "networks"
    accelerators = "accelerators"
    mappers = "mappers"
    dataflows = "dataflows"
    objectives = "objectives"
    technologies = "technologies"
    formats = "formats"
    runs = "runs"
    library = "library"


def list_things(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    name: Annotated[str | None, typer.Argument(
        show_default=False,
        help="Show this one more closely: a network's layers, an accelerator's levels, a mapper's options, an entry of "
             "the library.")] = None,
    yaml: Annotated[bool, typer.Option(
        "--yaml", help="With an accelerator's name: its whole definition, to begin a file of one's own.")] = False,
    store: StorePlace = None,
) -> None:
    """List networks, accelerators, mappers, dataflows, formats and so on, or show one."""
    if yaml and (kind is not Kind.accelerators or name is None):
        raise InputError("--yaml", "must come with the name of an accelerator", None,
                         "For example tilewright list accelerators eyeriss --yaml")
    if name is None:
        _ALL[kind](store)
    elif kind is Kind.library:
        _entry(name, store)
    elif kind in _ONE:
        _ONE[kind](name, yaml)
    else:
        raise InputError("NAME", f"must be left out for {kind.value}", name)


def _formats(_: str | None) -> None:
    from tilewright.interop import FORMATS
    from tilewright.report import print_listing

    forms = [FORMATS.get(name) for name in FORMATS]
    rows: Rows = [(form.name, "both ways" if form.write else "read", form.summary) for form in forms]
    print_listing(("Format", "Ways", "What it is"), rows, (), console())


def _networks(_: str | None) -> None:
    from tilewright.report import engineering, print_listing
    from tilewright.workload import unique_operators, zoo

    rows: Rows = []
    for name in zoo.names():
        entry, graph = zoo.describe(name), zoo.load(name)
        options = " ".join(f"{key}={value}" for key, value in entry.options)
        rows.append((name, engineering(graph.macs), len(graph.mac_nodes), len(unique_operators(graph)), options,
                     entry.title))
    print_listing(("Network", "MACs", "Layers", "Distinct", "Options", "What it is"), rows, (1, 2, 3), console())


def _network(name: str, _: bool) -> None:
    from tilewright.api import load_network
    from tilewright.report import engineering, print_listing
    from tilewright.workload import coverage, unique_operators

    graph = load_network(name)
    rows: Rows = []
    for layer in unique_operators(graph):
        sizes = " ".join(f"{dimension}{size}" for dimension, size in layer.operator.dimensions)
        rows.append((layer.names[0], layer.count, layer.operator.kind, sizes, engineering(layer.operator.macs),
                     " ".join(layer.names[1:])))
    screen = console()
    print_listing(("Layer", "Times", "Kind", "Shape", "MACs", "The same shape"), rows, (1, 4), screen)
    for line in (f"\n{graph.name}: {graph.source}", coverage(graph).sentence, *graph.notes):
        screen.print(line, markup=False, soft_wrap=True)


def _accelerators(_: str | None) -> None:
    from tilewright.hardware import Memory, format_bytes, preset, preset_names
    from tilewright.report import print_listing

    rows: Rows = []
    for name in preset_names():
        machine = preset(name)
        levels = [
            f"{level.name}{f' {format_bytes(level.capacity_bytes)}' if level.capacity_bytes is not None else ''}"
            if isinstance(level, Memory) else f"[{level.shape[0]}x{level.shape[1]}]" for level in machine.levels]
        rows.append((name, f"{machine.compute_instances:,}", f"{machine.frequency_mhz:g}", machine.technology,
                     " ".join(levels)))
    print_listing(("Accelerator", "MAC units", "MHz", "Technology", "Levels"), rows, (1, 2), console())


def _accelerator(name: str, yaml: bool) -> None:
    from tilewright.api import load_accelerator
    from tilewright.hardware import describe, dump_accelerator

    machine = load_accelerator(name)
    print(dump_accelerator(machine) if yaml else describe(machine))


def _mappers(_: str | None) -> None:
    from tilewright.api import DEFAULT_MAPPER, mapper_extra, mapper_names, mapper_summary
    from tilewright.report import print_listing

    rows: Rows = [(f"{name} (default)" if name == DEFAULT_MAPPER else name, mapper_summary(name), mapper_extra(name))
                  for name in mapper_names()]
    print_listing(("Mapper", "How it searches", "Needs"), rows, (), console())


def _mapper(name: str, _: bool) -> None:
    from tilewright.api import mapper_extra, mapper_options, mapper_summary
    from tilewright.base import EXTRAS
    from tilewright.report import print_listing

    screen = console()
    screen.print(f"{name}: {mapper_summary(name)}\n", markup=False, soft_wrap=True)
    if extra := mapper_extra(name):
        screen.print(f"Needs: {EXTRAS[extra][1]}\n", markup=False, soft_wrap=True)
    rows: Rows = [(option.name, option.default, option.about) for option in mapper_options(name)]
    print_listing(("Option", "Default", "What it does"), rows, (1,), screen)


def _dataflows(_: str | None) -> None:
    from tilewright.mapping import DATAFLOWS
    from tilewright.report import print_listing

    print_listing(("Dataflow", "What it fixes"), [(name, DATAFLOWS.get(name).about) for name in DATAFLOWS], (),
                  console())


def _objectives(_: str | None) -> None:
    from tilewright.report import print_listing
    from tilewright.search import METRICS

    screen = console()
    print_listing(("Objective", "Unit"), [(name, metric.unit) for name, metric in METRICS.items()], (), screen)
    screen.print("\nSums such as '0.7*latency + 0.3*energy' add multiples of each part's floor: the cycles of a full "
                 "array, the energy of each MAC and of each word moved once.\nEach is also a limit: "
                 "--constraint 'latency<=1e6'.", markup=False, soft_wrap=True)


def _technologies(_: str | None) -> None:
    from tilewright.hardware import technology, technology_names
    from tilewright.report import print_listing

    tables = [(name, technology(name)) for name in technology_names()]
    print_listing(("Technology", "Node (nm)", "Voltage (V)"),
                  [(name, f"{table.node_nm:g}", f"{table.voltage_v:g}") for name, table in tables], (1, 2), console())


def _runs(store: str | None) -> None:
    from tilewright.report import engineering, print_listing
    from tilewright.store import Store

    with Store(store) as found:
        runs = found.runs()
    rows: Rows = [
        (run.id, run.network, run.accelerator, run.objective, run.mapper, f"{run.samples:,}",
         engineering(run.latency_cycles), engineering(run.energy_pj * 1e-12)) for run in runs]
    screen = console()
    print_listing(("Run", "Network", "Accelerator", "Objective", "Mapper", "Samples", "Latency\n(cycles)",
                   "Energy\n(J)"), rows, (5, 6, 7), screen)
    if not rows:
        screen.print(f"No runs in {found.url} yet.", markup=False, soft_wrap=True)


def _library(store: str | None) -> None:
    from tilewright.report import engineering, print_listing
    from tilewright.store import Library

    with Library(store) as found:
        entries = found.entries()
    rows: Rows = [
        (one.id, _shape(one), one.accelerator,
         one.objective, engineering(one.score), engineering(one.latency_cycles), engineering(one.energy_pj * 1e-12),
         f"{one.network}/{one.layer}", one.found[:10]) for one in entries]
    screen = console()
    print_listing(("Entry", "Shape", "Accelerator", "Objective", "Score", "Latency\n(cycles)", "Energy\n(J)",
                   "Found for", "On"), rows, (4, 5, 6), screen)
    if not rows:
        screen.print(f"No mappings in {found.shown} yet.", markup=False, soft_wrap=True)


def _shape(one: "Entry") -> str:
    try:
        return " ".join(f"{name}{size}" for name, size in one.sizes.items() if size > 1)
    except (ValueError, TypeError):
        return "(damaged)"


def _entry(name: str, store: str | None) -> None:
    from tilewright.report import significant
    from tilewright.store import Library

    with Library(store) as found:
        one = found.get(name)
    for head, value in (
            ("Entry", one.id), ("Best for", " ".join(f"{key}{size}" for key, size in one.sizes.items())),
            ("Form", one.form), ("Machine", one.accelerator), ("Objective", one.objective),
            ("Score", significant(one.score)), ("Latency", f"{one.latency_cycles:,} cycles"),
            ("Energy", f"{significant(one.energy_pj)} pJ"), ("Found for", f"{one.network}/{one.layer}"),
            ("Found by", f"{one.mapper}, seed {one.seed}, {one.samples:,} samples, run {one.run_id}, {one.found}")):
        print(f"{head:<9}  {value}")
    print(f"\n{one.loops()}")


_ALL = {
    Kind.networks: _networks, Kind.accelerators: _accelerators, Kind.mappers: _mappers, Kind.dataflows: _dataflows,
    Kind.objectives: _objectives, Kind.technologies: _technologies, Kind.formats: _formats, Kind.runs: _runs,
    Kind.library: _library,
}
_ONE = {Kind.networks: _network, Kind.accelerators: _accelerator, Kind.mappers: _mapper}
