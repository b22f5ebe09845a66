"""``tilewright list``: what there is to choose from."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

import tilewright.api
import tilewright.report
import tilewright.store
from tilewright.base import InputError, Registry, sizes_text
from tilewright.cli.options import StorePlace, console, say

if TYPE_CHECKING:
    from tilewright.store import Entry

Kind = Literal["networks", "accelerators", "mappers", "methods", "schedulers", "fusers", "allocators", "packers",
               "recommenders", "systems", "dataflows", "styles", "objectives", "technologies", "formats", "runs",
               "library"]


class Listing(NamedTuple):
    """A table of what there is: its heads, its rows, which columns stand on the right, and what is said below."""

    heads: tuple[str, ...]
    rows: Sequence[tuple[object, ...]]
    right: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def list_things(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    name: Annotated[str | None, typer.Argument(
        show_default=False,
        help="Show this one more closely: a network's layers, an accelerator's levels, the cores of a system, the "
             "options of a mapper or a method, an entry of the library.")] = None,
    yaml: Annotated[bool, typer.Option(
        "--yaml", help="With the name of an accelerator or a system: its whole definition, to begin a file of one's "
                       "own.")] = False,
    tensors: Annotated[bool, typer.Option(
        "--tensors", help="With a network's name: its tensors, who makes and reads them, and whose bytes they share.",
        )] = False,
    store: StorePlace = None,
) -> None:
    """List networks, accelerators, mappers, dataflows, formats and so on, or show one."""
    if yaml and (kind not in _DESCRIBED or name is None):
        raise InputError("--yaml", "must come with the name of an accelerator or a system", None,
                         "For example tilewright list accelerators eyeriss --yaml")
    if tensors and (kind != "networks" or name is None):
        raise InputError("--tensors", "must come with the name of a network", None,
                         "For example tilewright list networks resnet18 --tensors")
    if name is not None and kind in _DESCRIBED:
        print(_DESCRIBED[kind](name, yaml))
    elif name is not None and kind == "library":
        _entry(name, store)
    elif name is not None and kind not in _ONE:
        raise InputError("NAME", f"must be left out for {kind}", name)
    else:
        if name is not None:
            found = _tensors(name) if tensors else _ONE[kind](name)
        else:
            found = _STORED[kind](store) if kind in _STORED else _ALL[kind]()
        screen = console()
        if found.rows or name is None:
            tilewright.report.print_listing(found.heads, found.rows, found.right, screen)
        for note in found.notes:
            say(screen, note)


def _formats() -> Listing:
    from tilewright.interop import FORMATS

    forms = [FORMATS.get(name) for name in FORMATS]
    return Listing(("Format", "Ways", "What it is"), [
        (form.name, "both ways" if form.write else "read", form.summary) for form in forms])


def _networks() -> Listing:
    from tilewright.report import engineering
    from tilewright.workload import unique_operators, zoo

    rows = []
    for name in zoo.names():
        entry, graph = zoo.describe(name), zoo.load(name)
        phases = (" ".join(f"{key}={value}" for key, value in one) for one in (entry.options, *entry.phases))
        options = " or ".join(phases)
        rows.append((name, engineering(graph.macs), len(graph.mac_nodes), len(unique_operators(graph)), options,
                     entry.title))
    return Listing(("Network", "MACs", "Layers", "Distinct", "Options", "What it is"), rows, (1, 2, 3))


def _network(name: str) -> Listing:
    from tilewright.report import engineering
    from tilewright.workload import coverage, unique_operators

    graph = tilewright.api.load_network(name)
    rows = [(layer.names[0], layer.count, layer.operator.kind,
             " ".join(f"{dimension}{size}" for dimension, size in layer.operator.dimensions),
             engineering(layer.operator.macs), " ".join(layer.names[1:])) for layer in unique_operators(graph)]
    return Listing(("Layer", "Times", "Kind", "Shape", "MACs", "The same shape"), rows, (1, 4),
                   (f"\n{graph.name}: {graph.source}", coverage(graph).sentence, *graph.notes))


def _tensors(name: str) -> Listing:
    from tilewright.workload import tensor_graph

    found = tensor_graph(tilewright.api.load_network(name))
    rows = [(tensor.name, "x".join(map(str, tensor.shape)) if tensor.shape is not None else "unknown",
             f"{tensor.words:,}" if tensor.shape is not None else "",
             tensor.kind + (", leaves" if tensor.is_output else ""),
             "" if tensor.storage == tensor.name else tensor.storage,
             " ".join(f"{read.node}:{read.operand}" for read in tensor.reads)) for tensor in found.tensors.values()]
    return Listing(("Tensor", "Shape", "Words", "Kind", "In the bytes of", "Read by"), rows, (2,))


def _accelerators() -> Listing:
    from tilewright.hardware import Memory, format_bytes, preset, preset_names

    rows = []
    for name in preset_names():
        machine = preset(name)
        levels = [
            f"{level.name}{f' {format_bytes(level.capacity_bytes)}' if level.capacity_bytes is not None else ''}"
            if isinstance(level, Memory) else f"[{level.shape[0]}x{level.shape[1]}]" for level in machine.levels]
        rows.append((name, f"{machine.compute_instances:,}", f"{machine.frequency_mhz:g}", machine.technology,
                     " ".join(levels)))
    return Listing(("Accelerator", "MAC units", "MHz", "Technology", "Levels"), rows, (1, 2))


def _accelerator(name: str, yaml: bool) -> str:
    from tilewright.hardware import describe, dump_accelerator

    machine = tilewright.api.load_accelerator(name)
    return dump_accelerator(machine) if yaml else describe(machine)


def _mappers() -> Listing:
    from tilewright.api import DEFAULT_MAPPER, mapper_extra, mapper_names, mapper_summary

    return Listing(("Mapper", "How it searches", "Needs"), [
        (f"{name} (default)" if name == DEFAULT_MAPPER else name, mapper_summary(name), mapper_extra(name))
        for name in mapper_names()])


_REGISTRIES = {"mappers": ("search.MAPPERS",), "schedulers": ("scheduling.SCHEDULERS",),
               "fusers": ("fusion.microbatch.FUSION_MAPPERS",), "allocators": ("allocation.SOLVERS",),
               "packers": ("packing.PACKERS",), "methods": ("codesign.DESIGNERS", "codesign.allocation.METHODS")}
"""Where the members of a kind are registered: of methods those of designs, and then of deployments."""


def _registries(kind: str) -> list[Registry[Any]]:
    places = [name.rpartition(".") for name in _REGISTRIES[kind]]
    return [getattr(import_module(f"tilewright.{room}"), name) for room, _, name in places]


def _member(kind: str, name: str) -> Listing:
    """Return the options of one; say what it does, and what it needs."""
    from tilewright.base import EXTRAS

    registries = _registries(kind)
    registry = next((one for one in registries if name in one), registries[0])
    screen, options = console(), tilewright.api.member_options(registry, name)
    say(screen, f"{name}: {tilewright.api.member_summary(registry.get(name))}\n")
    if extra := getattr(registry.get(name), "extra", ""):
        say(screen, f"Needs: {EXTRAS[extra][1]}\n")
    return Listing(("Option", "Default", "What it does"), [
        (option.name, option.default, option.about) for option in options], (1,),
        () if options else ("It has no options.",))


def _methods() -> Listing:
    return Listing(("Method", "With", "How it designs", "Needs"), [
        (name, where, about, extra)
        for registry, where in zip(_registries("methods"), ("", "--deployment"), strict=True)
        for name, about, extra in _members(registry)])


def _family(kind: str) -> Listing:
    """Return the members of a kind under its heads in `_HEADS`."""
    heads = _HEADS[kind]
    return Listing(heads, [row[:len(heads)] for one in _registries(kind) for row in _members(one)])


def _recommenders() -> Listing:
    from tilewright.recommendation import BASELINES, NETWORKS

    rows = [("exact", "Look at every configuration.", "")]
    for name in NETWORKS:
        kind = NETWORKS.get(name)
        rows.append((name, f"{kind.about}, then hidden layers of {', '.join(map(str, kind.hidden))}.", "learn"))
    return Listing(("Recommender", "How it tells", "Needs"), rows + _members(BASELINES), (), (
        "\nexact answers without --model, networks are trained by train-recommender --network; the others stand beside "
        "them in tilewright reproduce sagar-fig7e.",))


def _members(registry: Registry[Any]) -> list[tuple[str, str, str]]:
    """Return name, a sentence, and the extra that it needs of each."""
    members = {name: registry.get(name) for name in registry}
    return [(name, tilewright.api.member_summary(one), getattr(one, "extra", "")) for name, one in members.items()]


def _systems() -> Listing:
    from tilewright.report import significant
    from tilewright.scheduling import load_system, system_names

    rows = []
    for name in system_names():
        system = load_system(name)
        cores = [f"{system.kind_of.tolist().count(kind)} x {core.name.partition('.')[0]} ({core.style})"
                 for kind, core in enumerate(system.kinds)]
        rows.append((name, ", ".join(cores), f"{system.peak_gflops:,.0f}", significant(system.gigabytes_per_second)))
    return Listing(("System", "Cores", "Peak (GFLOP/s)", "GB/s"), rows, (2, 3))


def _system(name: str, yaml: bool) -> str:
    from tilewright.hardware import describe
    from tilewright.report import significant
    from tilewright.scheduling import load_system, system_text

    if yaml:
        return system_text(name)
    system = load_system(name)
    told = [f"{system.name}: {len(system.cores)} cores at {system.clock_mhz:g} MHz share "
            f"{significant(system.gigabytes_per_second)} GB/s; peak {system.peak_gflops:,.0f} GFLOP/s"]
    told += [f"source: {line}" for line in system.sources]
    of_cores = {line for core in system.cores for line in core.accelerator.assumptions}
    told += [f"assumed: {line}" for line in system.assumptions if line not in of_cores]
    for kind, core in enumerate(system.kinds):
        told.append(f"\n{system.kind_of.tolist().count(kind)} x {core.style}\n{describe(core.accelerator)}")
    return "\n".join(told)


def _dataflows() -> Listing:
    from tilewright.mapping import DATAFLOWS

    return Listing(("Dataflow", "What it fixes"), [(name, DATAFLOWS.get(name).about) for name in DATAFLOWS])


def _styles() -> Listing:
    from tilewright.codesign.allocation import STYLES

    return Listing(("Style", "What it fixes"), [(name, STYLES.get(name).about) for name in STYLES])


def _objectives() -> Listing:
    from tilewright.search import METRICS

    return Listing(("Objective", "Unit"), [(name, metric.unit) for name, metric in METRICS.items()], (), (
        "\nSums such as '0.7*latency + 0.3*energy' add multiples of each part's floor: the cycles of a full "
        "array, the energy of each MAC and of each word moved once.\nEach is also a limit: "
        "--constraint 'latency<=1e6'.",))


def _technologies() -> Listing:
    from tilewright.hardware import technology, technology_names

    tables = [(name, technology(name)) for name in technology_names()]
    return Listing(("Technology", "Node (nm)", "Voltage (V)"), [
        (name, f"{table.node_nm:g}", f"{table.voltage_v:g}") for name, table in tables], (1, 2))


def _runs(store: str | None) -> Listing:
    from tilewright.report import engineering

    with tilewright.store.Store(store).there() as found:
        runs = found.runs()
    return Listing(
        ("Run", "Network", "Accelerator", "Objective", "Mapper", "Samples", "Latency\n(cycles)", "Energy\n(J)"),
        [(run.id, run.network, run.accelerator, run.objective, run.mapper, f"{run.samples:,}",
          engineering(run.latency_cycles), engineering(run.energy_pj * 1e-12)) for run in runs],
        (5, 6, 7), () if runs else (f"No runs in {found.url} yet.",))


def _library(store: str | None) -> Listing:
    from tilewright.report import engineering

    with tilewright.store.Library(store).there() as found:
        entries = found.entries()
    return Listing(
        ("Entry", "Shape", "Accelerator", "Objective", "Score", "Latency\n(cycles)", "Energy\n(J)", "Found for", "On"),
        [(one.id, _shape(one), one.accelerator, one.objective, engineering(one.score), engineering(one.latency_cycles),
          engineering(one.energy_pj * 1e-12), f"{one.network}/{one.layer}", one.found[:10]) for one in entries],
        (4, 5, 6), () if entries else (f"No mappings in {found.shown} yet.",))


def _shape(one: "Entry") -> str:
    try:
        return sizes_text(one.sizes.items())
    except (ValueError, TypeError):
        return "(damaged)"


def _entry(name: str, store: str | None) -> None:
    from tilewright.report import significant

    with tilewright.store.Library(store).there() as found:
        one = found.get(name)
    for head, value in (
            ("Entry", one.id), ("Best for", " ".join(f"{key}{size}" for key, size in one.sizes.items())),
            ("Form", one.form), ("Machine", one.accelerator), ("Objective", one.objective),
            ("Score", significant(one.score)), ("Latency", f"{one.latency_cycles:,} cycles"),
            ("Energy", f"{significant(one.energy_pj)} pJ"), ("Found for", f"{one.network}/{one.layer}"),
            ("Found by", f"{one.mapper}, seed {one.seed}, {one.samples:,} samples, run {one.run_id}, {one.found}")):
        print(f"{head:<9}  {value}")
    print(f"\n{one.loops()}")


_HEADS = {"schedulers": ("Method", "How it schedules", "Needs"), "fusers": ("Mapper", "How it fuses", "Needs"),
          "allocators": ("Solver", "How it allocates", "Needs"), "packers": ("Method", "How it places")}
_ALL: dict[str, Callable[[], Listing]] = {
    "networks": _networks, "accelerators": _accelerators, "mappers": _mappers, "methods": _methods,
    **{kind: partial(_family, kind) for kind in _HEADS}, "recommenders": _recommenders, "systems": _systems,
    "dataflows": _dataflows, "styles": _styles, "objectives": _objectives, "technologies": _technologies,
    "formats": _formats}
_STORED: dict[str, Callable[[str | None], Listing]] = {"runs": _runs, "library": _library}
_DESCRIBED: dict[str, Callable[[str, bool], str]] = {"accelerators": _accelerator, "systems": _system}
_ONE: dict[str, Callable[[str], Listing]] = {
    "networks": _network, **{kind: partial(_member, kind) for kind in ("mappers", "methods", "schedulers", "fusers")}}
