"""From nouns to records: each function takes what other rooms hand out and returns its lasting form."""

import pickle
import platform
import secrets
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache, lru_cache
from importlib import metadata
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

from tilewright.base import InputError
from tilewright.cost import (
    Cost,
    LowerBounds,
    Totals,
    VectorWork,
    limits_of,
    network_sum,
    outermost_bytes,
    roofline,
    vector_work,
)
from tilewright.hardware import Accelerator, describe, dump_accelerator, load_accelerator
from tilewright.mapping import Mapping, lane_use, tensor_bits
from tilewright.store.codec import fingerprint, told
from tilewright.store.layer_records import (
    BoundsRecord,
    CostRecord,
    CountRecord,
    RooflineRecord,
    TrafficRecord,
    mapping_from,
    mapping_record,
)
from tilewright.store.record import (
    AcceleratorRecord,
    CoverageRecord,
    LayerRecord,
    NetworkRecord,
    OperatorRecord,
    PaddingRecord,
    RequestRecord,
    RunRecord,
    SoftwareRecord,
    TensorRecord,
    TokensRecord,
    TotalsRecord,
    VectorRecord,
)
from tilewright.workload import (
    Axis,
    Coverage,
    DataMovement,
    Graph,
    MacNode,
    Operator,
    Tensor,
    Unmodelled,
    coverage,
    unique_operators,
)

if TYPE_CHECKING:
    from tilewright.mapping import Padding

BOUNDED = {"latency": "latency_cycles", "energy": "energy_pj", "edp": "edp"}
"""Of a layer's bounds, the one on an objective."""

ROUNDING = 1e-12
"""What sums of rounded figures may be off by."""


def new_run_id() -> str:
    """Return a fresh identity that sorts by time, for example ``20260314-101530-9f2c41``."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def timestamp(moment: datetime | None = None) -> str:
    """Return ``moment`` (now where None) as ISO 8601 in UTC, to the millisecond, so that runs sort by it."""
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="milliseconds")


@cache
def software_record() -> SoftwareRecord:
    """Return the versions at work here, without importing the libraries; looked up once, as every best mapping asks."""

    def version(name: str) -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return "not installed"

    return SoftwareRecord(version("tilewright"), platform.python_version(), version("numpy"), version("numba"),
                          f"{platform.system()} {platform.machine()}")


def accelerator_record(accelerator: Accelerator) -> AcceleratorRecord:
    """Return the record of a machine with its whole definition."""
    return _accelerator_record(pickle.dumps(accelerator))


@lru_cache(maxsize=64)
def _accelerator_record(pickled: bytes) -> AcceleratorRecord:
    """Write a machine, which takes longer than to search a small layer; equal ones may differ in their sources."""
    accelerator: Accelerator = pickle.loads(pickled)
    return AcceleratorRecord(
        accelerator.name, dump_accelerator(accelerator), describe(accelerator), fingerprint(accelerator),
        float(accelerator.frequency_mhz), accelerator.compute_instances, float(accelerator.area_um2),
        accelerator.technology, accelerator.sources)


def accelerator_of(record: AcceleratorRecord) -> Accelerator:
    """Return the machine that a record describes."""
    return load_accelerator(f"{record.definition}\n")


def network_record(graph: Graph, default_bits: int = 8) -> NetworkRecord:
    """Return the record of a network; words of tensors without a width count ``default_bits``."""
    layers = [[_content(unique.operator), unique.count] for unique in unique_operators(graph)]
    known = coverage(graph, default_bits)
    return NetworkRecord(graph.name, graph.source, fingerprint(layers), known.sentence, graph.notes,
                         coverage_record(known), graph.precision)


def coverage_record(known: Coverage) -> CoverageRecord:
    """Return the numbers of a coverage."""
    return CoverageRecord(known.macs_modelled, known.macs_unmodelled, float(known.bytes_modelled),
                          float(known.bytes_unmodelled), known.lost - len(known.unknown), len(known.unknown),
                          known.figures)


def vector_records(work: Sequence[VectorWork], default_bits: int = 8, *, free: bool = False,
                   ) -> tuple[VectorRecord, ...]:
    """Return vector work by kind, what is folded and what was approximated apart; without cycles where it is free."""
    groups: dict[tuple[str, bool, str], list[VectorWork]] = {}
    for one in work:
        groups.setdefault((one.kind, bool(one.folded) and not free, one.node.approximated_as), []).append(one)
    return tuple(_vector_record(group, default_bits, free) for group in groups.values())


def _vector_record(group: Sequence[VectorWork], default_bits: int, free: bool) -> VectorRecord:
    """Return the record of vector work of one kind."""
    nodes = [one.node for one in group]
    record = VectorRecord(
        group[0].kind, tuple(node.name for node in nodes), sum(node.count for node in nodes),
        sum(node.count * getattr(node, "operations", 0) for node in nodes),
        sum(node.bytes_moved(default_bits) for node in nodes), nodes[0].approximated_as)
    if free:
        return record
    total, limits = Totals.of((one.node.count, one) for one in group), Counter[str]()
    for one in group:
        limits[one.bottleneck] += one.node.count * one.latency_cycles
    return replace(record, latency_cycles=total.latency_cycles, energy_pj=total.energy_pj,
                   folded=bool(group[0].folded), bottleneck=max(limits, key=limits.__getitem__))


def not_modelled(graph: Graph) -> tuple[str, ...]:
    """Return a line for each node that nothing models."""
    return tuple(f"{node.kind} {node.name}: {node.reason}" for node in graph.nodes if isinstance(node, Unmodelled))


def operator_record(operator: Operator, accelerator: Accelerator) -> OperatorRecord:
    """Return the record of an operator, with the word widths that the machine gives its tensors."""
    tensors = tuple(
        TensorRecord(tensor.name, tensor.role, tuple(axis.terms for axis in tensor.axes),
                     tensor.words(operator.sizes), _plain_bits(tensor_bits(tensor, accelerator)), tensor.density,
                     tensor.word_bits, tensor.structure, tensor.even, tensor.type, tensor.partial_bits)
        for tensor in operator.tensors)
    return OperatorRecord(operator.kind, operator.dimensions, tensors, operator.macs, operator_fingerprint(operator),
                          operator.attributes)


def _plain_bits(bits: int | Fraction) -> int | float:
    return bits if isinstance(bits, int) else float(bits)


def operator_fingerprint(operator: Operator) -> str:
    """Return the fingerprint of all that decides an operator's cost, whatever it is called."""
    return fingerprint(_content(operator))


def _content(operator: Operator) -> list[object]:
    """Return all that decides an operator's cost, without its name."""
    return [operator.dimensions, [_plain(tensor) for tensor in operator.tensors]]


@lru_cache(maxsize=256)
def _plain(tensor: Tensor) -> dict[str, object]:
    """Return what there is to say about a tensor, for reading alone; layers of a network share theirs."""
    return told(asdict(tensor))


def operator_of(layer: LayerRecord) -> Operator:
    """Return the operator that a layer's record describes."""
    record = layer.operator
    tensors = tuple(
        Tensor(tensor.name, tensor.role, tuple(Axis(terms) for terms in tensor.axes),
               tensor.own_word_bits, tensor.density, tensor.structure, tensor.even, tensor.type, tensor.partial_bits)
        for tensor in record.tensors)
    return Operator(layer.name, record.kind, record.dimensions, tensors, record.attributes)


def mapping_of(layer: LayerRecord) -> Mapping:
    """Return the mapping that a layer's record describes; that there is none is an `InputError`."""
    if layer.mapping is None:
        raise InputError(f"{layer.name}.mapping", "must be there to be used again", None,
                         layer.reason or "This layer has no legal mapping")
    return mapping_from(layer.mapping.levels)


def cost_record(cost: Cost) -> CostRecord:
    """Return the record of a cost, in plain Python numbers, its counts by memory from the outermost inward."""
    limits = limits_of(cost)
    place = {memory: index for index, memory in enumerate(cost.traffic)}
    return CostRecord(
        macs=int(cost.macs), steps=int(cost.steps), steady_cycles=int(cost.steady_cycles),
        ramp_cycles=int(cost.ramp_cycles), latency_cycles=int(cost.latency_cycles), energy_pj=float(cost.energy_pj),
        edp=float(cost.edp),
        energy_by_component_pj={name: float(energy) for name, energy in cost.energy_by_component_pj.items()},
        counts=tuple(
            CountRecord(memory, tensor, int(count.reads), int(count.fills), int(count.updates), int(count.drains),
                        None if cost.expected is None else cost.expected[memory, tensor],
                        cost.energy_by_tensor_pj.get((memory, tensor)))
            for (memory, tensor), count in sorted(cost.counts.items(), key=lambda item: place.get(item[0][0], 99))),
        traffic=tuple(
            TrafficRecord(memory, float(traffic.read_words), float(traffic.write_words), int(traffic.cycles))
            for memory, traffic in cost.traffic.items()),
        bottleneck=limits[0].name, utilisation=float(cost.utilisation), limits=limits)


def layer_record(  # noqa: PLR0913
    operator: Operator, accelerator: Accelerator, mapped: tuple[Mapping, Cost] | None, bounds: LowerBounds | None, *,
    score: float | None = None, padding: "Padding | None" = None, **more: Any,
) -> LayerRecord:
    """Return the record of a layer.

    Parameters
    ----------
    mapped
        Its mapping and what that costs, where it has one.
    score
        The bound on the objective where one is known.
    padding
        Of what the operator is the padded one.
    more
        Further fields; of a layer alone, its names are that of the operator.
    """
    found = LayerRecord(**{"names": (operator.name,), "count": 1, **more, "operator": operator_record(
        operator, accelerator), "bounds": None if bounds is None else bounds_record(bounds, score)})
    if mapped is not None:
        mapping, cost = mapped
        found = replace(found, mapping=mapping_record(operator, accelerator, mapping), cost=cost_record(cost),
                        roofline=roofline_record(operator, accelerator, cost))
    return found if padding is None else padded_record(found, padding)


def new_run(  # noqa: PLR0913
    graph: Graph, accelerator: Accelerator, request: RequestRecord, layers: Sequence[LayerRecord], *,
    unfinished: tuple[str, ...], seconds: tuple[float, float, float], cause: str,
) -> RunRecord:
    """Return the record of a run: ``seconds`` are those of search, set-up and loading, ``cause`` is what ended it."""
    machine, bits = accelerator_record(accelerator), dict(accelerator.word_bits)["inputs"]
    search, setup, loading = seconds
    nodes = vector_records(vector_work(graph, accelerator), bits, free=request.vector == "free")
    totals = replace(totals_of(layers, machine, search, nodes, objective=request.objective),
                     setup_seconds=setup, loading_seconds=loading)
    headline = headline_of(layers, unfinished, cause)
    tokens = None if headline or totals.unmapped_layers else tokens_record(
        graph, accelerator, totals.latency_cycles, totals.energy_pj)
    return RunRecord(
        new_run_id(), timestamp(), software_record(), network_record(graph, bits), machine, request, totals,
        tuple(layers), nodes, not_modelled(graph), unfinished, headline=headline, tokens=tokens)


def tokens_record(graph: Graph, accelerator: Accelerator, latency_cycles: float, energy_pj: float,
                  ) -> TokensRecord | None:
    """Return what each token of a language model takes where a pass takes so much; None for other networks."""
    if not graph.tokens or not latency_cycles:
        return None
    each, bits = 1 / graph.tokens, dict(accelerator.word_bits)["inputs"]
    sides: dict[str, float] = defaultdict(float)
    written, held = 0, 0  # bits appended, and those of what is read otherwise than as the right side of a product
    for node in graph.nodes:
        if isinstance(node, MacNode):
            of = str(dict(node.operator.attributes).get("weights", ""))
            for tensor in node.operator.operands:
                words = tensor.words(node.operator.sizes) * (tensor.role == "weights")
                sides[of] += words * float(tensor_bits(tensor, accelerator))
                held -= words * bits * (of == "cache")
        elif isinstance(node, DataMovement) and node.kind == "append":
            written += node.written_words * (node.word_bits or bits)
            held += int(dict(node.attributes).get("cache", 0)) * bits
    roofs = [(node, roofline(node.operator, accelerator)) for node in graph.mac_nodes]
    rate = roofs[0][1].bandwidth_bytes_per_cycle
    moved = sum(node.count * roof.compulsory_bytes for node, roof in roofs)
    return TokensRecord(
        graph.tokens, graph.tokens * accelerator.frequency_mhz * 1e6 / latency_cycles, latency_cycles * each,
        energy_pj * each, graph.macs * each, (sides[""] + sides["tied"]) / 8, (sides["cache"] + max(0, held)) / 8,
        written / 8,
        accelerator.memories[0].name, None if rate is None else moved / rate,
        sum(node.macs * float(lane_use(node.operator, accelerator).cycles) for node in graph.mac_nodes)
        / accelerator.compute_instances)


def padded_record(layer: LayerRecord, padding: "Padding") -> LayerRecord:
    """Return the record of a padded operator as that of the layer that it stands for; itself where nothing grew.

    Utilisation and roofline then count the layer's own multiply-accumulates alone.
    """
    if not padding.grown:
        return layer
    original, lost = padding.original, padding.ineffectual_share
    found = replace(layer, padding=PaddingRecord(original.dimensions, original.macs, lost))
    if layer.cost is not None:
        found = replace(found, cost=replace(layer.cost, utilisation=layer.cost.utilisation * (1 - lost)))
    if layer.roofline is not None:
        roof = layer.roofline
        compulsory = roof.compulsory_macs_per_byte
        found = replace(found, roofline=replace(
            roof, intensity_macs_per_byte=roof.intensity_macs_per_byte * (1 - lost),
            achieved_macs_per_cycle=roof.achieved_macs_per_cycle * (1 - lost),
            compulsory_macs_per_byte=None if compulsory is None else compulsory * (1 - lost)))
    return found


def bounds_record(bounds: LowerBounds, score: float | None = None) -> BoundsRecord:
    """Return the record of a layer's bounds; ``score`` is the bound on the objective where one is known."""
    return BoundsRecord(
        compute_cycles=int(bounds.compute_cycles), data_movement_cycles=int(bounds.data_movement_cycles),
        latency_cycles=int(bounds.latency_cycles), energy_pj=float(bounds.energy_pj), edp=float(bounds.edp),
        blocked_cycles=int(bounds.blocked_cycles), latency_binding=bounds.latency_binding,
        energy_binding=bounds.energy_binding, score=None if score is None else float(score))


def roofline_record(operator: Operator, accelerator: Accelerator, cost: Cost) -> RooflineRecord:
    """Return a layer's place under the roof of the outermost memory (Williams et al., CACM 52(4), 2009).

    Multiply-accumulates that are skipped, and words that are not moved, count for nothing.
    """
    roof = roofline(operator, accelerator)
    done = timed_macs(cost, operator, accelerator)
    return RooflineRecord(
        intensity_macs_per_byte=done / max(outermost_bytes(cost, operator, accelerator), 1.0),
        achieved_macs_per_cycle=done / max(cost.latency_cycles, 1),
        peak_macs_per_cycle=float(roof.peak_macs_per_cycle),
        bandwidth_bytes_per_cycle=roof.bandwidth_bytes_per_cycle, memory=accelerator.memories[0].name,
        compulsory_macs_per_byte=float(roof.intensity_macs_per_byte) if cost.expected is None else None)


def timed_macs(cost: Cost, operator: Operator, accelerator: Accelerator) -> float:
    """Return the multiply-accumulates that take time: all, but for those that are skipped."""
    if cost.expected is None:
        return cost.macs
    pace = float(lane_use(operator, accelerator).cycles)
    return cost.utilisation * accelerator.compute_instances * cost.latency_cycles / pace


def totals_of(layers: Sequence[LayerRecord], accelerator: AcceleratorRecord, seconds: float,
              vector: Sequence[VectorRecord] = (), *, objective: str = "") -> TotalsRecord:
    """Return the sums over layers times counts and over vector work; ``seconds`` is the wall time of the whole run.

    Multiply-accumulates that are skipped use no compute unit. Vector work is its own bound. What searches prove of
    layers is of their ``objective``.
    """
    mapped = [(layer.count, layer.cost) for layer in layers if layer.cost is not None]
    beside = [(1, one) for one in vector]
    total, extra = Totals.of([*mapped, *beside]), Totals.of(beside)
    latency = total.latency_cycles
    done = sum(count * cost.macs for count, cost in mapped)
    lost = sum(layer.count * (layer.operator.macs - layer.macs) for layer in layers if layer.cost is not None)
    macs = done - lost
    busy = macs / (latency * accelerator.compute_instances) if latency else 0.0
    paced = any(tensor.type for layer in layers for tensor in layer.operator.tensors)
    if latency and (paced or any(count.mean is not None for _, cost in mapped for count in cost.counts)):
        busy = sum(count * cost.utilisation * cost.latency_cycles for count, cost in mapped) / latency
    bounds = [(layer.count, layer.bounds) for layer in layers if layer.bounds is not None and layer.cost is not None]
    bounded = len(bounds) == len(mapped) and bool(mapped)
    least_cycles, least_pj, least_edp = _least_totals(bounds, beside, objective)
    return TotalsRecord(
        latency_cycles=latency, energy_pj=total.energy_pj, edp=total.edp, macs=macs,
        utilisation=busy,
        area_um2=accelerator.area_um2, seconds=float(seconds),
        samples=sum(layer.search.samples for layer in layers if layer.search is not None and not layer.search.answer),
        bound_latency_cycles=least_cycles if bounded else None, bound_energy_pj=least_pj if bounded else None,
        bound_edp=least_edp if bounded else None,
        unmapped_layers=sum(layer.count for layer in layers if layer.cost is None),
        ineffectual_share=lost / done if done else 0.0, vector_cycles=int(extra.latency_cycles),
        vector_energy_pj=float(extra.energy_pj))


def _least_totals(bounds: Sequence[tuple[int, BoundsRecord]], beside: Sequence[tuple[int, VectorRecord]],
                  objective: str) -> tuple[int, float, float]:
    """Return what no mappings of all layers can beat: cycles, picojoules and their product.

    A layer's bound on the objective counts where it is above the static one. The product of two sums is at least the
    square of the sum of the roots of the products (Cauchy and Schwarz), so that layers' bounds on EDP bound it, too.
    """
    def proven(figure: str) -> list[tuple[int, float]]:
        known = BOUNDED.get(objective) == figure
        return [(count, max(getattr(each, figure), (each.score or 0.0) if known else 0.0)) for count, each in bounds]

    cycles = [(count, ceil(one * (1 - ROUNDING))) for count, one in proven("latency_cycles")]
    least = Totals(
        network_sum([*cycles, *((count, one.latency_cycles) for count, one in beside)]),
        network_sum([*proven("energy_pj"), *((count, one.energy_pj) for count, one in beside)]))
    products = [*proven("edp"), *((count, one.latency_cycles * one.energy_pj) for count, one in beside)]
    return least.latency_cycles, least.energy_pj, max(least.edp, network_sum(
        (count, sqrt(product)) for count, product in products) ** 2 * (1 - ROUNDING))


def headline_of(layers: Sequence[LayerRecord], unfinished: Sequence[str], cause: str = "Interrupted") -> str:
    """Return what there is of a run that ended early: empty where every layer's search ended."""
    if not unfinished:
        return ""
    begun = {layer.name for layer in layers}
    missing = sum(name not in begun for name in unfinished)
    partly = len(unfinished) - missing
    mapped = sum(layer.cost is not None for layer in layers)
    every = len(layers) + missing
    return (f"{cause}: of {every} distinct layers {len(layers) - partly} done, {partly} partial, {missing} not begun. "
            f"The totals are those of the {mapped} with a mapping, not the network's.")
