"""What limits a network, and what would cure it: by the model, for the mappings of a run."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tilewright.cost import COMPUTE, UNIT, Relief, Totals, relief, with_twice
from tilewright.hardware import Accelerator
from tilewright.store.build import mapping_of, operator_of
from tilewright.store.layer_records import DiagnosisRecord
from tilewright.store.record import LayerRecord, RunRecord
from tilewright.workload import Graph


def diagnosed(record: RunRecord, graph: Graph, accelerator: Accelerator) -> RunRecord:
    """Return a run with what limits its network, and for each layer what twice of its own limit would give."""
    layers = tuple(layer if layer.cost is None else replace(
        layer, relief=_relief(layer, accelerator, layer.cost.bottleneck)) for layer in record.layers)
    cycles: Counter[str] = Counter()
    for layer in layers:
        if layer.cost is not None:
            cycles[layer.cost.bottleneck] += layer.count * layer.cost.latency_cycles
    beside: Counter[str] = Counter()
    for one in record.vector_nodes:
        beside[one.bottleneck] += one.latency_cycles
    cycles += beside
    if not cycles:
        return replace(record, layers=layers)
    limit, most = cycles.most_common(1)[0]
    total = sum(cycles.values())
    twice = _cured(layers, graph if beside.total() else None, accelerator, limit)
    count = sum(layer.cost is not None and layer.cost.bottleneck == limit for layer in layers)
    places = [f"{count} of {len(layers)} layers"] * bool(count) + ["vector work"] * bool(beside[limit])
    where = f"{' and in '.join(places)} ({100 * most / total:.0f} % of the cycles)"
    sentence = f"{limit[0].upper()}{limit[1:].replace(' ', '-')}-bound in {where}"
    if twice is not None:
        what = {COMPUTE: "twice the lanes save", UNIT: "twice its lanes save"}.get(limit, "twice its bandwidth saves")
        sentence += f"; {what} {100 * (1 - twice / total):.0f} %"
        sentence += " where the mappings found are spread over them" * (limit == COMPUTE)
    return replace(record, layers=layers,
                   diagnosis=DiagnosisRecord(limit, count, most / total, twice, f"{sentence}."))


def _relief(layer: LayerRecord, accelerator: Accelerator, of: str) -> Relief | None:
    return relief(operator_of(layer), accelerator, mapping_of(layer), of)


def _cured(layers: Sequence[LayerRecord], graph: Graph | None, accelerator: Accelerator, limit: str) -> int | None:
    """Return the cycles of layers, and of the vector work of a graph, with twice of a limit; None: no such thing."""
    total, found, machine = 0, False, accelerator
    for layer in layers:
        if layer.cost is None:
            continue
        known = layer.relief if layer.cost.bottleneck == limit else (
            None if limit in (COMPUTE, UNIT) else _relief(layer, accelerator, limit))
        found = found or known is not None
        total += layer.count * min(
            one.latency_cycles for one in (layer.cost, known) if one is not None)
    if limit == UNIT:
        unit, found = accelerator.vector_unit, True
        rates = tuple((kind, 2 * rate) for kind, rate in unit.operations_per_cycle)
        machine = replace(accelerator, vector=replace(unit, lanes=2 * unit.lanes, operations_per_cycle=rates))
    elif limit != COMPUTE:
        machine, found = with_twice(accelerator, limit), True
    if graph is not None:
        total += Totals.beside(graph, machine).latency_cycles
    return int(total) if found else None
