"""``tilewright bounds``: what no mapping can beat."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from tilewright.cli.options import (
    Arch,
    Bind,
    Density,
    Json,
    Network,
    Precision,
    Strict,
    Vector,
    console,
    shares,
    sizes,
    tell_lost,
    write_json,
)

if TYPE_CHECKING:
    from tilewright.cost import LowerBounds
    from tilewright.workload import UniqueOperator


def bounds(network: Network, arch: Arch, bind: Bind = None, density: Density = None,
           precision: Precision = "auto", vector: Vector = "included", json_file: Json = None,
           strict: Strict = False) -> None:
    """Show what no mapping of each layer can beat: cycles of compute and of data movement, energy, EDP.

    The last columns place the layer under the roofline if every word moved only once. Equal layers share a row. Bounds
    hold whatever memories keep of the tensors that they can. Vector work, which is its own bound, is told by kind.
    """
    from tilewright.api import bounds as layer_bounds
    from tilewright.api import load_network, load_target, refuse_density
    from tilewright.cost import Totals, vector_work
    from tilewright.mapping import precise_graph
    from tilewright.report import engineering, measured, print_listing, print_vectors, token_lines
    from tilewright.store import coverage_record, tokens_record, vector_records
    from tilewright.workload import coverage, graph_with_densities, unique_operators

    graph, (accelerator, _) = load_network(network, sizes(bind, "--bind")), load_target(arch, network)
    if density:
        refuse_density(accelerator, "--density")
    graph = graph_with_densities(precise_graph(graph, accelerator, precision), shares(density))
    found, free = layer_bounds(graph, accelerator), vector == "free"
    unique, bits = unique_operators(graph), dict(accelerator.word_bits)["inputs"]
    known, work = coverage(graph, bits), vector_records(vector_work(graph, accelerator), bits, free=free)
    beside = Totals.of((1, one) for one in work)
    total = Totals.of([*((layer.count, found[layer.names[0]]) for layer in unique), (1, beside)])
    tokens = tokens_record(graph, accelerator, total.latency_cycles, total.energy_pj)
    screen = console(json_file)
    for line in graph.precision:
        screen.print(line, markup=False, soft_wrap=True)
    if json_file is not None:
        layers = [{"names": layer.names, "count": layer.count, **asdict(found[layer.names[0]])} for layer in unique]
        totals = {"latency_cycles": total.latency_cycles, "energy_pj": total.energy_pj, "edp": total.edp}
        write_json(json_file, {
            "network": graph.name, "accelerator": accelerator.name, "layers": layers, "vector": vector,
            "vector_nodes": [asdict(one) for one in work], "coverage": asdict(coverage_record(known)),
            "precision": graph.precision, "totals": totals, **({} if tokens is None else {"tokens": asdict(tokens)})})
    rows = [_row(layer, found[layer.names[0]]) for layer in unique]
    cycles = total.latency_cycles
    if work and not free:
        rows.append(("Vector work", "", "", "", engineering(beside.latency_cycles), "",
                     measured(beside.energy_pj, "pJ"), "", "", "", ""))
    rows.append(("Total", str(sum(layer.count for layer in unique)), engineering(graph.macs), "", "", "",
                 measured(total.energy_pj, "pJ"), "", measured(total.energy_pj * cycles, "pJ"), "", ""))
    print_listing(_HEADS, rows, (1, 2, 3, 4, 6, 8, 9, 10), screen)
    print_vectors(work, cycles, total.energy_pj, free, screen)
    lines = [f"\nCoverage: {known.figures}.", *([f"{known.sentence}."] if known.unmodelled else [])]
    whole = "What is modelled of the network" if known.unmodelled else "The whole network"
    lines.append(f"\n{whole}: at least {cycles:,} cycles = "
                 f"{engineering(cycles / (accelerator.frequency_mhz * 1e6), 's')} at "
                 f"{accelerator.frequency_mhz:g} MHz, and {measured(total.energy_pj, 'pJ')}.")
    lines += [f"{head}: {text}." for head, text in token_lines(tokens, accelerator.frequency_mhz, bound=True)]
    if work and not free and accelerator.vector_assumption:
        lines.append(f"  assumed: {accelerator.vector_assumption}")
    for line in lines:
        screen.print(line, markup=False, soft_wrap=True)
    tell_lost(accelerator, screen)
    raise typer.Exit(int(strict and not known.complete))


_HEADS = ("Layer", "Times", "MACs", "Compute\n(cycles)", "Data\n(cycles)", "Latency\nset by", "Energy",
          "Energy\nmost in", "EDP\n(x cycles)", "Intensity\n(MACs/B)", "Roof\n(MACs/cycle)")


def _row(layer: "UniqueOperator", bound: "LowerBounds") -> tuple[str, ...]:
    from tilewright.report import engineering, measured, significant

    roof = bound.roofline
    return (layer.names[0], str(layer.count), engineering(bound.macs), engineering(bound.compute_cycles),
            engineering(bound.data_movement_cycles), bound.latency_binding, measured(bound.energy_pj, "pJ"),
            bound.energy_binding, measured(bound.edp, "pJ"), significant(roof.intensity_macs_per_byte),
            f"{roof.attainable_macs_per_cycle:.4g}")
