"""From nouns to records: each function takes what other rooms hand out and returns its lasting form."""

import hashlib
import json
import platform
import secrets
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING

from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.store.nest import nest_rows, word_bits
from tilewright.store.record import (
    AcceleratorRecord,
    CostRecord,
    CountRecord,
    LayerRecord,
    LevelRecord,
    MappingRecord,
    OperatorRecord,
    RooflineRecord,
    SoftwareRecord,
    TensorRecord,
    TotalsRecord,
    TrafficRecord,
)
from tilewright.workload import Axis, Operator, Tensor

if TYPE_CHECKING:
    from tilewright.cost.records import Cost


def fingerprint(*things: object) -> str:
    """Return the SHA-256 (hex) of the canonical JSON of dataclasses or plain data; equal content, equal hash."""
    plain = [asdict(thing) if is_dataclass(thing) and not isinstance(thing, type) else thing for thing in things]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain_number)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain_number(value: object) -> object:
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"{type(value).__name__} has no JSON form")
    return item()


def new_run_id(created: datetime | None = None) -> str:
    """Return a fresh identity that sorts by time, for example ``20260314-101530-9f2c41``."""
    moment = created or datetime.now(UTC)
    return f"{moment.astimezone(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def timestamp(moment: datetime | None = None) -> str:
    """Return ``moment`` (now where None) as ISO 8601 in UTC, to the second."""
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")


def software_record() -> SoftwareRecord:
    """Return the versions at work here, without importing the libraries."""

    def version(name: str) -> str:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return "not installed"

    return SoftwareRecord(version("tilewright"), platform.python_version(), version("numpy"), version("numba"),
                          f"{platform.system()} {platform.machine()}")


def accelerator_record(accelerator: Accelerator, definition: str, description: str = "") -> AcceleratorRecord:
    """Return the record of a machine; ``definition`` is its YAML, ``description`` a text for people."""
    return AcceleratorRecord(
        accelerator.name, definition, description, fingerprint(accelerator), float(accelerator.frequency_mhz),
        accelerator.compute_instances, float(accelerator.area_um2), accelerator.technology, accelerator.sources)


def operator_record(operator: Operator, accelerator: Accelerator) -> OperatorRecord:
    """Return the record of an operator, with the word widths that the machine gives its tensors."""
    tensors = tuple(
        TensorRecord(tensor.name, tensor.role, tuple(axis.terms for axis in tensor.axes),
                     tensor.words(operator.sizes), word_bits(tensor, accelerator), tensor.density, tensor.word_bits)
        for tensor in operator.tensors)
    digest = fingerprint(operator.dimensions, [asdict(tensor) for tensor in operator.tensors])
    return OperatorRecord(operator.kind, operator.dimensions, tensors, operator.macs, digest, operator.attributes)


def operator_of(layer: LayerRecord) -> Operator:
    """Return the operator that a layer's record describes."""
    record = layer.operator
    tensors = tuple(
        Tensor(tensor.name, tensor.role, tuple(Axis(terms) for terms in tensor.axes),
               tensor.own_word_bits, tensor.density)
        for tensor in record.tensors)
    return Operator(layer.name, record.kind, record.dimensions, tensors, record.attributes)


def mapping_record(operator: Operator, accelerator: Accelerator, mapping: Mapping, yaml: str) -> MappingRecord:
    """Return the record of a mapping; ``yaml`` is its text form."""
    levels = tuple(
        LevelRecord(level.level, tuple((loop.dimension, int(loop.step), loop.axis) for loop in level.loops),
                    level.keeps)
        for level in mapping.levels)
    return MappingRecord(levels, yaml, nest_rows(operator, accelerator, mapping))


def mapping_of(layer: LayerRecord) -> Mapping:
    """Return the mapping that a layer's record describes.

    Raises
    ------
    InputError
        If the layer has none.
    """
    if layer.mapping is None:
        raise InputError(f"{layer.name}.mapping", "must be there to be used again", None,
                         layer.reason or "This layer has no legal mapping")
    return Mapping(tuple(
        LevelLoops(level.level, tuple(Loop(name, step, axis) for name, step, axis in level.loops),
                   level.keeps)
        for level in layer.mapping.levels))


def cost_record(cost: "Cost") -> CostRecord:
    """Return the record of a cost, in plain Python numbers."""
    return CostRecord(
        macs=int(cost.macs), steps=int(cost.steps), steady_cycles=int(cost.steady_cycles),
        ramp_cycles=int(cost.ramp_cycles), latency_cycles=int(cost.latency_cycles), energy_pj=float(cost.energy_pj),
        edp=float(cost.edp),
        energy_by_component_pj={name: float(energy) for name, energy in cost.energy_by_component_pj.items()},
        counts=tuple(
            CountRecord(memory, tensor, int(count.reads), int(count.fills), int(count.updates), int(count.drains))
            for (memory, tensor), count in cost.counts.items()),
        traffic=tuple(
            TrafficRecord(memory, float(traffic.read_words), float(traffic.write_words), int(traffic.cycles))
            for memory, traffic in cost.traffic.items()),
        bottleneck=cost.bottleneck, utilisation=float(cost.utilisation))


def roofline_record(operator: Operator, accelerator: Accelerator, cost: "Cost") -> RooflineRecord:
    """Return a layer's place under the roof of the outermost memory (Williams et al., CACM 52(4), 2009).

    The intensity is multiply-accumulates per byte that this mapping moves through the outermost memory's ports; the
    slope of the roof is the bandwidth of both ports together.
    """
    memory = accelerator.memories[0]
    moved = 0.0
    for tensor in operator.tensors:
        count = cost.counts.get((memory.name, tensor.name))
        if count is not None:
            words = count.reads + count.fills + count.updates + count.drains
            moved += words * word_bits(tensor, accelerator) / 8
    bandwidth = memory.bandwidth
    words_per_cycle = bandwidth.shared
    if words_per_cycle is None and bandwidth.read is not None and bandwidth.write is not None:
        words_per_cycle = bandwidth.read + bandwidth.write
    return RooflineRecord(
        intensity_macs_per_byte=cost.macs / max(moved, 1.0),
        achieved_macs_per_cycle=cost.macs / max(cost.latency_cycles, 1),
        peak_macs_per_cycle=float(accelerator.compute_instances),
        bandwidth_bytes_per_cycle=None if words_per_cycle is None else float(words_per_cycle * memory.word_bits / 8),
        memory=memory.name)


def totals_of(layers: Sequence[LayerRecord], accelerator: AcceleratorRecord, seconds: float) -> TotalsRecord:
    """Return the sums over layers times counts; ``seconds`` is the wall time of the whole run."""
    mapped = [(layer.count, layer.cost) for layer in layers if layer.cost is not None]
    latency = sum(count * cost.latency_cycles for count, cost in mapped)
    energy = sum(count * cost.energy_pj for count, cost in mapped)
    macs = sum(count * cost.macs for count, cost in mapped)
    bounds = [(layer.count, layer.bounds) for layer in layers if layer.bounds is not None and layer.cost is not None]
    bounded = len(bounds) == len(mapped) and bool(mapped)
    bound_latency = sum(count * bound.latency_cycles for count, bound in bounds)
    bound_energy = sum(count * bound.energy_pj for count, bound in bounds)
    return TotalsRecord(
        latency_cycles=latency, energy_pj=energy, edp=energy * latency, macs=macs,
        utilisation=macs / (latency * accelerator.compute_instances) if latency else 0.0,
        area_um2=accelerator.area_um2, seconds=float(seconds),
        samples=sum(layer.search.samples for layer in layers if layer.search is not None),
        bound_latency_cycles=bound_latency if bounded else None,
        bound_energy_pj=bound_energy if bounded else None,
        bound_edp=bound_latency * bound_energy if bounded else None,
        unmapped_layers=sum(layer.count for layer in layers if layer.cost is None))
