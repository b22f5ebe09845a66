"""Matrix products on reconfigurable systolic arrays, and networks on those whose dataflow decides the mapping."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

import tilewright.report
from tilewright.api.array_options import ArrayOptions
from tilewright.api.flags import command_line, takes
from tilewright.api.inputs import Network, load_accelerator, load_layers
from tilewright.api.options import SystolicOptions
from tilewright.api.places import ready_cache
from tilewright.api.sheets import OnSheet
from tilewright.base import InputError, unknown_name
from tilewright.cost import (
    ARRAY_OBJECTIVES,
    FIXED_ARRAYS,
    SAGAR,
    SYSTOLIC_ASSUMPTIONS,
    SYSTOLIC_CONVENTIONS,
    SYSTOLIC_RESTING,
    ArrayConfiguration,
    PartitionedCounts,
    PartitionEffects,
    ReconfigurableArray,
    SystolicArray,
    SystolicLayer,
    SystolicMemories,
    Totals,
    array_energy,
    network_sum,
    partitioned_counts,
    partitioned_energy,
    reconfigurable_array,
    systolic_array,
    systolic_counts,
    systolic_energy,
    systolic_layer,
)
from tilewright.hardware import Accelerator
from tilewright.interop import Note, ScaleSimConfig, format_of, read_config


@dataclass(frozen=True)
class RankedConfiguration:
    """A configuration and what a product takes on it; energies are None where the array's power is not known."""

    configuration: ArrayConfiguration
    cycles: int
    utilization: float
    sram_reads: int
    dram_words: int
    active_partitions: int
    energy_pj: float | None
    energy_parts_pj: dict[str, float] | None

    def figure(self, objective: str) -> float:
        """Return cycles, picojoules, or their product; NaN where energy is not known."""
        spent = np.nan if self.energy_pj is None else self.energy_pj
        return {"latency": self.cycles, "energy": spent, "edp": spent * self.cycles}[objective]


@dataclass(frozen=True)
class ProductRanking:
    """The best configurations of a product."""

    sizes: tuple[int, int, int]
    bound_cycles: int
    """Multiply-accumulates over units, rounded up; no configuration takes less."""
    bound: float
    """What no configuration can do with less of, by the objective."""
    equals: int
    """How many configurations are as good as the best."""
    ranked: tuple[RankedConfiguration, ...]
    monolithic: RankedConfiguration | None
    """The best that is one sub-array alone; None where the space has none."""

    @property
    def best(self) -> RankedConfiguration:
        """The least by the objective; among equals fewest partitions, then os, ws, is, then fewest reads."""
        return self.ranked[0]


@dataclass(frozen=True, repr=False)
class ArrayRun(OnSheet):
    """Products on a reconfigurable array.

    Examples
    --------
    >>> import tilewright as tw
    >>> run = tw.array("sagar", ["784x256x1152"])
    >>> str(run.products[0].best.configuration), run.products[0].best.cycles >= run.products[0].bound_cycles
    ('32x32 of 4x4 ws', True)
    """

    array: ReconfigurableArray
    effects: PartitionEffects
    objective: str
    space: str
    classes: int
    products: tuple[ProductRanking, ...]
    command: str = ""

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.array_sheet(self.plain, self.command)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        def row(one: RankedConfiguration) -> dict[str, Any]:
            return {**asdict(one), "name": str(one.configuration)}

        return {"array": self.array.record(), "effects": asdict(self.effects), "objective": self.objective,
                "space": self.space, "configurations": self.classes, "products": [
                    {"m": found.sizes[0], "n": found.sizes[1], "k": found.sizes[2],
                     "bound_cycles": found.bound_cycles, "bound": found.bound, "equals": found.equals,
                     "ranked": [row(one) for one in found.ranked],
                     "monolithic": row(found.monolithic) if found.monolithic else None} for found in self.products]}


@takes(ArrayOptions)
def array(asked: ArrayOptions) -> ArrayRun:
    """Rank the configurations of a reconfigurable systolic array for matrix products, all counted exactly.

    Energy comes from counts and from the power of the whole array, by `tilewright.cost.array_energy`.

    Examples
    --------
    >>> import tilewright as tw
    >>> tw.array(256, [(16, 16, 64)], top=1).products[0].best.cycles
    70
    """
    machine = _machine(asked)
    effects = PartitionEffects(asked.bypass, asked.summation, asked.ports, asked.collate,  # type: ignore[arg-type]
                               asked.dram)  # type: ignore[arg-type]
    sizes = [_sizes(given) for given in asked.products]
    if not sizes:
        raise InputError("--product", "must be given", "none", "For example --product 784x256x1152")
    if asked.objective not in ARRAY_OBJECTIVES:
        raise unknown_name("objective of arrays", asked.objective, list(ARRAY_OBJECTIVES))
    space = asked.space or ("units" if asked.array in FIXED_ARRAYS else "realisable")
    configurations = machine.configurations(space)
    if machine.power_w is not None or asked.objective != "latency":
        array_energy(machine)
    ready_cache()
    counts = partitioned_counts(np.array(sizes, dtype=np.int64), configurations, machine, effects)
    products = tuple(_ranking(counts, place, configurations, machine, asked) for place in range(len(sizes)))
    command = command_line("array", asked, products=["x".join(map(str, one)) for one in sizes])
    return ArrayRun(machine, effects, asked.objective, space, len(configurations), products, command)


def _machine(asked: ArrayOptions) -> ReconfigurableArray:
    given = str(asked.array)
    found = (ReconfigurableArray(int(given), asked.cell or SAGAR.cell, name=f"{int(given):,} units")
             if given.isdecimal() else reconfigurable_array(given, fixed=True))
    if asked.cell not in (None, found.cell) and given in FIXED_ARRAYS:
        raise InputError("--cell", f"must be left out: arrays of {given} are what they are", asked.cell)
    power = found.power_w if asked.power is None else asked.power
    return replace(found, cell=asked.cell or found.cell, power_w=power)


def _sizes(given: str | tuple[int, int, int]) -> tuple[int, int, int]:
    if not isinstance(given, str):
        given = "x".join(map(str, given))
    if not re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8}){2}", given):
        raise InputError("--product", "must be MxNxK, three positive integers below a billion", given,
                         "For example --product 784x256x1152")
    m, n, k = map(int, given.split("x"))
    return m, n, k


def _ranking(counts: PartitionedCounts, place: int, configurations: tuple[ArrayConfiguration, ...],
             machine: ReconfigurableArray, asked: ArrayOptions) -> ProductRanking:
    spent = None if machine.power_w is None else partitioned_energy(counts, machine)

    def row(one: int) -> RankedConfiguration:
        parts = None if spent is None else {
            "macs": float(spent.mac_pj[place, 0]), "sram": float((spent.read_pj + spent.write_pj)[place, one]),
            "dram": float(spent.dram_pj[place, one]), "standing": float(spent.standing_pj[place, one])}
        return RankedConfiguration(
            configurations[one], int(counts.cycles[place, one]), float(counts.utilization[place, one]),
            int(counts.sram_reads[place, one]), int((counts.dram_reads + counts.dram_writes)[place, one]),
            int(counts.active_partitions[place, one]), None if spent is None else float(spent.total_pj[place, one]),
            parts)

    rows = [row(one) for one in range(len(configurations))]
    rows.sort(key=lambda one: (one.figure(asked.objective), one.configuration.order[:2], one.sram_reads,
                               one.configuration.order))
    sizes = _sizes(asked.products[place])
    cycles = -(-math.prod(sizes) // machine.macs)
    bound = float(cycles)
    if spent is not None and asked.objective != "latency":
        bound = float(array_energy(machine).bound(np.array([sizes]), np.array([cycles]))[0])
        bound *= cycles if asked.objective == "edp" else 1
    best = rows[0].figure(asked.objective)
    alone = next((one for one in rows if one.configuration.partitions == 1), None)
    return ProductRanking(sizes, cycles, bound, sum(one.figure(asked.objective) == best for one in rows),
                          tuple(rows[:asked.top]), alone)


OURS, THEIRS = "tilewright", "scale-sim"
_PARTED = {"cycles": "cycles", "SRAM writes": "output_writes", "SRAM reads of partial sums": "output_reads"}
_OF_DRAM = ("partial_sums_leave", "hundredth_sets", "reach_beyond")


@dataclass(frozen=True)
class SystolicRow:
    """A layer of the network: ``times`` runs of it, its figures by the name of the conventions, its energy.

    Layers of one shape share their figures.

    ``energy_pj`` is of one run, by component, None where the machine has no energies.
    """

    name: str
    times: int
    figures: Mapping[str, SystolicLayer]
    energy_pj: Mapping[str, float] | None

    @property
    def layer(self) -> SystolicLayer:
        """By our rules, or the first conventions asked for."""
        return self.figures.get(OURS) or next(iter(self.figures.values()))

    @property
    def spent_pj(self) -> float | None:
        """Energy of one run over all components."""
        return None if self.energy_pj is None else sum(self.energy_pj.values())


@dataclass(frozen=True)
class AssumptionEffect:
    """An assumption of another tool, and by how much it alone changes the figures of a network.

    ``more`` is by figure. ``of_dram`` says that it is about words of DRAM, which are not among them.
    """

    text: str
    more: Mapping[str, int]
    of_dram: bool


@dataclass(frozen=True)
class SystolicRun:
    """A network on a systolic array."""

    network: str
    machine: str
    array: SystolicArray
    rows: tuple[SystolicRow, ...]
    skipped: tuple[tuple[str, str], ...]
    """Layers that are no matrix products or convolutions, with the reason."""
    notes: tuple[Note, ...]
    """What of a topology and a configuration could not be honoured in full."""
    conventions: tuple[str, ...]

    @property
    def layers(self) -> dict[str, SystolicRow]:
        """Rows by the names of their layers."""
        return {row.name: row for row in self.rows}

    def cycles(self, conventions: str = OURS) -> float:
        """Return the cycles of the whole network; by conventions of other tools without waiting for DRAM."""
        figure = "cycles" if conventions == OURS else "compute_cycles"
        found: float = network_sum((row.times, getattr(row.figures[conventions], figure)) for row in self.rows)
        return found

    @property
    def totals(self) -> Totals:
        """What the whole network takes by our rules, which were asked for; infinite energy where that is not known."""
        return Totals(self.cycles(), network_sum((row.times, row.spent_pj) for row in self.rows))

    def parted(self) -> dict[str, dict[str, AssumptionEffect]]:
        """Return, for each conventions but ours, what each assumption that they make does by itself to the figures."""
        return {name: {made: self._parting(name, made) for made in SYSTOLIC_CONVENTIONS[name].made}
                for name in self.conventions if name != OURS}

    def _parting(self, name: str, made: str) -> AssumptionEffect:
        theirs = SYSTOLIC_CONVENTIONS[name]
        without = theirs.having(made, False)
        found = dict.fromkeys(_PARTED, 0)
        for row in self.rows:
            layer, array = row.figures[name], self.array
            counts = systolic_counts(layer.m, layer.n, layer.k, array.rows, array.columns, array.dataflow, without)
            for field, figure in _PARTED.items():
                more = int(getattr(layer.counts, figure)) - int(getattr(counts, figure))
                found[field] += more * layer.count * row.times
        return AssumptionEffect(SYSTOLIC_ASSUMPTIONS[made], {field: more for field, more in found.items() if more},
                                made in _OF_DRAM)

    def tree(self) -> dict[str, Any]:
        """Return everything as plain data."""
        rows = [{"name": row.name, "times": row.times, "m": row.layer.m, "n": row.layer.n, "k": row.layer.k,
                 "products": row.layer.count,
                 **{name: layer_figures(layer, waits=name == OURS) for name, layer in row.figures.items()},
                 **({"energy_pj": dict(row.energy_pj)} if row.energy_pj is not None else {})} for row in self.rows]
        memories = {entry.name: getattr(self.array.memories, entry.name) for entry in fields(self.array.memories)}
        return {
            "network": self.network, "machine": self.machine,
            "array": {"rows": self.array.rows, "columns": self.array.columns, "dataflow": self.array.dataflow,
                      "memory_words": memories, "bandwidths_words_per_cycle": list(self.array.bandwidths),
                      "shared_bandwidth_words_per_cycle": self.array.shared_bandwidth},
            "layers": rows, "cycles": {name: self.cycles(name) for name in self.conventions},
            "assumptions": {name: {made: {"text": found.text, "more": dict(found.more)}
                                   for made, found in parted.items()} for name, parted in self.parted().items()},
            "skipped": [{"name": name, "why": why} for name, why in self.skipped],
            "notes": [str(note) for note in self.notes]}


def layer_figures(layer: SystolicLayer, waits: bool = True) -> dict[str, Any]:
    """Return a layer's figures (of all its products) as plain data; ``waits``: also what DRAM's pace makes of them."""
    counts, count, words = layer.counts, layer.count, layer.words
    found: dict[str, Any] = {
        "compute_cycles": layer.compute_cycles, "row_folds": int(counts.row_folds),
        "column_folds": int(counts.column_folds), "mapping_efficiency": float(counts.mapping_efficiency),
        "compute_utilization": float(counts.utilization), "sram_input_reads": int(counts.input_reads) * count,
        "sram_weight_reads": int(counts.weight_reads) * count, "sram_output_writes": int(counts.output_writes) * count,
        "sram_output_reads": int(counts.output_reads) * count, "dram_input_reads": words.input_reads,
        "dram_weight_reads": words.weight_reads, "dram_output_writes": words.output_writes,
        "dram_output_reads": words.output_reads}
    if waits:
        found |= {"cycles": layer.cycles, "stall_cycles": layer.stall_cycles, "bound": layer.bound,
                  "utilization": layer.utilization}
    return found


@takes(SystolicOptions, raises=", or no layer is a matrix product or convolution")
def systolic(asked: SystolicOptions) -> SystolicRun:
    """Return what every layer of a network takes on a systolic array.

    Examples
    --------
    >>> run = systolic("matmul:M=64,N=64,K=64", array="16x16", dataflow="os")
    >>> run.cycles(), run.cycles("scale-sim")
    (1504.0, 1503)
    """
    network, arch, array, bind, conventions = asked.network, asked.arch, asked.array, asked.bind, asked.conventions
    for name in conventions:
        if name not in SYSTOLIC_CONVENTIONS:
            raise unknown_name("convention of systolic arrays", name, list(SYSTOLIC_CONVENTIONS))
    graph = load_layers(network, bind, asked.layers)
    told = _told(network, bind)
    if (arch is None) == (array is None):
        raise InputError("array", "must be given, or a machine, and not both", array, "For example --array 32x32")
    machine, found, notes = (_given if array is not None else _named)(asked)
    rows, skipped = [], []
    known: dict[object, dict[str, SystolicLayer]] = {}
    for node in graph.mac_nodes:
        key = (node.operator.signature, node.operator.attributes)
        try:
            if key not in known:
                known[key] = {name: systolic_layer(node.operator, found, SYSTOLIC_CONVENTIONS[name])
                              for name in conventions}
        except InputError as error:
            skipped.append((node.name, error.rule))
            continue
        figures = known[key]
        ours = figures.get(OURS)
        energy = systolic_energy(ours, machine) if ours is not None and isinstance(machine, Accelerator) else None
        rows.append(SystolicRow(node.name, node.count, figures, energy))
    if not rows:
        why = "; ".join(f"{name} {rule}" for name, rule in skipped[:3])
        raise InputError(graph.name, "must have a layer that a systolic array can be counted for", None, why)
    name = machine if isinstance(machine, str) else machine.name
    return SystolicRun(graph.name, name, found, tuple(rows), tuple(skipped), (*told, *notes), tuple(conventions))


def _told(network: Network, bind: Mapping[str, int | str] | None) -> tuple[Note, ...]:
    """Return what of a topology could not be honoured in full."""
    if not isinstance(network, str | Path) or not Path(network).is_file():
        return ()
    form = format_of(network, "network")
    return form.read([Path(network)], bind or {}).notes if form is not None and form.name == THEIRS else ()


_Found = tuple[Accelerator | str, SystolicArray, tuple[Note, ...]]


def _given(asked: SystolicOptions) -> _Found:
    """Return the array of given sides; with memories it is also an accelerator, which has energies."""
    array, sram_kb, bandwidth = asked.array, asked.sram_kb, asked.bandwidth
    if isinstance(array, str):
        sides = re.fullmatch(r"([0-9]+)x([0-9]+)", array.strip().lower())
        if sides is None:
            raise InputError("--array", "must be ROWSxCOLUMNS", array, "For example --array 32x32")
        array = int(sides[1]), int(sides[2])
    rows, columns = array or (0, 0)
    flow = asked.dataflow or "os"
    rates = (bandwidth, bandwidth, bandwidth)
    if sram_kb is None:
        return f"{rows}x{columns}", SystolicArray(rows, columns, flow, SystolicMemories(), rates), ()
    if len(sram_kb) != len(SYSTOLIC_RESTING) or any(size < 1 for size in sram_kb):
        raise InputError("--sram", "must be three positive numbers of KiB: inputs, weights, outputs", list(sram_kb),
                         "For example --sram 64,64,64")
    config = ScaleSimConfig(f"{rows}x{columns}", rows, columns, (sram_kb[0], sram_kb[1], sram_kb[2]), flow, bandwidth)
    found = config.array()
    return config.accelerator("--sram"), found, ()


def _named(asked: SystolicOptions) -> _Found:
    """Return the array of a configuration or an accelerator."""
    for option, value in (("--sram", asked.sram_kb), ("--bandwidth", asked.bandwidth)):
        if value is not None:
            raise InputError(option, "must be left out where a machine is named, which has its own", None,
                             "Give --array instead of the machine")
    arch, dataflow = asked.arch, asked.dataflow
    assert arch is not None
    form = format_of(arch, "accelerator") if isinstance(arch, str | Path) and Path(arch).exists() else None
    if form is not None and form.name == THEIRS:
        config, notes = read_config(Path(str(arch)))
        if dataflow is not None:
            config = replace(config, dataflow=dataflow)
        found = config.array()
        return config.accelerator(str(arch)), found, notes
    machine = load_accelerator(arch)
    return machine, systolic_array(machine, dataflow or _resting(machine)), ()


def _resting(machine: Accelerator) -> str:
    """Return the dataflow of the one tensor that rests in the innermost memory."""
    inner = machine.memories[-1]
    kept = {role: flow for flow, role in SYSTOLIC_RESTING.items() if inner.can_keep(role[0].upper(), role)}
    if len(kept) != 1 or len(machine.memories) < 2:
        raise InputError("--dataflow", f"must be given, as {inner.name} of {machine.name} keeps {', '.join(kept)}",
                         None, "os, ws or is")
    return next(iter(kept.values()))
