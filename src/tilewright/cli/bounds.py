"""``tilewright bounds``: what no mapping can beat."""

import json
from dataclasses import asdict

from tilewright.cli.options import Arch, Bind, Density, Json, Network, console, shares, sizes, tell_lost, write_text

PARTS = ("latency_cycles", "energy_pj", "edp")
"""Of the bounds that hold whatever memories keep, what JSON tells."""


def bounds(network: Network, arch: Arch, bind: Bind = None, density: Density = None, json_file: Json = None) -> None:
    """Show what no mapping of each layer can beat: cycles of compute and of data movement, energy, EDP.

    The last columns place the layer under the roofline if every word moved only once. Equal layers share a row. Bounds
    are of mappings in which memories keep every tensor that they can; what holds whatever they keep stands below them.
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
    found, free = layer_bounds(graph, accelerator), layer_bounds(graph, accelerator, bypass=True)
    unique = unique_operators(graph)
    screen = console(json_file)
    if json_file is not None:
        layers = [{"names": layer.names, "count": layer.count, **asdict(found[layer.names[0]]),
                   "bypass": {part: getattr(free[layer.names[0]], part) for part in PARTS}} for layer in unique]
        data = {"network": graph.name, "accelerator": accelerator.name, "layers": layers}
        write_text(json_file, json.dumps(data, indent=1) + "\n")
    rows: list[tuple[str, ...]] = []
    for layer in unique:
        bound = found[layer.names[0]]
        roof = bound.roofline
        rows.append((
            layer.names[0], str(layer.count), engineering(bound.macs), engineering(bound.compute_cycles),
            engineering(bound.data_movement_cycles), bound.latency_binding, engineering(bound.energy_pj * 1e-12),
            bound.energy_binding, engineering(bound.edp * 1e-12), significant(roof.intensity_macs_per_byte),
            f"{roof.attainable_macs_per_cycle:.4g}"))
    totals = [Totals.of((layer.count, each[layer.names[0]]) for layer in unique) for each in (found, free)]
    (cycles, energy), (fewest, least) = ((total.latency_cycles, total.energy_pj * 1e-12) for total in totals)
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
    if found != free:
        screen.print("All this while memories keep every tensor that they can, as in searches; whatever they keep, at "
                     f"least {fewest:,} cycles and {engineering(least, 'J')}.", markup=False, soft_wrap=True)
    tell_lost(accelerator, screen)
