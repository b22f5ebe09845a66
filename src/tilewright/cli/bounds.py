"""``tilewright bounds``: what no mapping can beat."""

from dataclasses import asdict

from tilewright.cli.options import Arch, Bind, Density, Json, Network, console, shares, sizes, tell_lost, write_json


def bounds(network: Network, arch: Arch, bind: Bind = None, density: Density = None, json_file: Json = None) -> None:
    """Show what no mapping of each layer can beat: cycles of compute and of data movement, energy, EDP.

    The last columns place the layer under the roofline if every word moved only once. Equal layers share a row. Bounds
    hold whatever memories keep of the tensors that they can.
    """
    from tilewright.api import bounds as layer_bounds
    from tilewright.api import load_network, load_target, refuse_density
    from tilewright.cost import Totals
    from tilewright.report import engineering, print_listing, significant
    from tilewright.workload import coverage, graph_with_densities, unique_operators

    graph, (accelerator, _) = load_network(network, sizes(bind, "--bind")), load_target(arch, network)
    if density:
        refuse_density(accelerator, "--density")
    graph = graph_with_densities(graph, shares(density))
    found = layer_bounds(graph, accelerator)
    unique = unique_operators(graph)
    screen = console(json_file)
    if json_file is not None:
        layers = [{"names": layer.names, "count": layer.count, **asdict(found[layer.names[0]])} for layer in unique]
        data = {"network": graph.name, "accelerator": accelerator.name, "layers": layers}
        write_json(json_file, data)
    rows: list[tuple[str, ...]] = []
    for layer in unique:
        bound = found[layer.names[0]]
        roof = bound.roofline
        rows.append((
            layer.names[0], str(layer.count), engineering(bound.macs), engineering(bound.compute_cycles),
            engineering(bound.data_movement_cycles), bound.latency_binding, engineering(bound.energy_pj * 1e-12),
            bound.energy_binding, engineering(bound.edp * 1e-12), significant(roof.intensity_macs_per_byte),
            f"{roof.attainable_macs_per_cycle:.4g}"))
    total = Totals.of((layer.count, found[layer.names[0]]) for layer in unique)
    cycles, energy = total.latency_cycles, total.energy_pj * 1e-12
    rows.append(("Total", str(sum(layer.count for layer in unique)), engineering(graph.macs), "", "", "",
                 engineering(energy), "", engineering(energy * cycles), "", ""))
    print_listing(
        ("Layer", "Times", "MACs", "Compute\n(cycles)", "Data\n(cycles)", "Latency\nset by", "Energy\n(J)",
         "Energy\nmost in", "EDP\n(J·cycles)", "Intensity\n(MACs/B)", "Roof\n(MACs/cycle)"),
        rows, (1, 2, 3, 4, 6, 8, 9, 10), screen)
    known = coverage(graph)
    if known.unmodelled:
        screen.print(f"\n{known.sentence}.", markup=False, soft_wrap=True)
    whole = "What is modelled of the network" if known.unmodelled else "The whole network"
    screen.print(f"\n{whole}: at least {cycles:,} cycles = "
                 f"{engineering(cycles / (accelerator.frequency_mhz * 1e6), 's')} at "
                 f"{accelerator.frequency_mhz:g} MHz, and {engineering(energy, 'J')}.", markup=False, soft_wrap=True)
    tell_lost(accelerator, screen)
