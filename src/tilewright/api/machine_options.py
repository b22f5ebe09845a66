"""What the verbs about machines are asked for: exploring, designing, sweeping and measuring them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from tilewright.api.flags import Flag, again, flags, option
from tilewright.api.options import (
    MACHINE,
    KeptOptions,
    LookOptions,
    NetworkOptions,
    OnLayer,
    OnMachine,
    RunOptions,
    Scalar,
    SearchOptions,
    SpaceOptions,
    StudyOptions,
    VectorOptions,
)

if TYPE_CHECKING:
    import os

    from tilewright.api.inputs import Machine, Network
    from tilewright.codesign import Limit
    from tilewright.hardware import DesignSpace
    from tilewright.search import Budget

EPOCHS = 5_000
"""Allocations that are scored unless told, as in the tables of chapter 8 of Kao's dissertation."""


@dataclass(frozen=True)
class ExploreOptions(KeptOptions):
    """What `explore` is asked for.

    Parameters
    ----------
    networks
        One, or several (see `load_network`); each is searched layer by layer.
    arch
        The machine, whose file states what is fixed where an axis is not flexible.
    choices
        Classes such as ``0000,1010`` (or ``FullFlex-1010``), ``stated`` for what the machine's file says, or ``all`` 16
        classes. Others are compared with the first.
    tuned_for
        Fix axes not as the file says but as suits this network best: the best of 10,000 fixed designs.
    """

    networks: Network | Sequence[Network] = field(metadata={"flags": (Flag(
        ("networks",), "Networks, as for tilewright map.", "arguments", "NETWORK..."),)})
    arch: Machine = field(metadata=MACHINE)
    choices: str | Iterable[str] = option("all", "--choices", metavar="CLASS,...", says=(
        "Classes to compare with the first: digits for tile, order, parallelism, shape, 1 is fully flexible, as in "
        "0000,1010; stated is what the machine's file says; or all 16."))
    _: KW_ONLY
    tuned_for: Network | None = option(None, "--tune", metavar="NETWORK", says=(
        "Fix the axes that are not flexible as suits this network best, in place of what the machine's file says."))
    objective: str = again(LookOptions, "objective", "latency", "latency, energy or edp.")
    mapper: str = again(SearchOptions, "mapper", "auto")
    budget: int = option(10_000, "--budget", "-b", kind="whole", says="Samples of each layer on each choice.")
    seed: int = again(LookOptions, "seed", 0, "Same seed, same result.")
    seeds: int = again(StudyOptions, "seeds", 1, "Repetitions, of which the median counts.")
    vector: str = again(VectorOptions, "vector", "included")
    workers: int | None = again(NetworkOptions, "workers", None, "Searches side by side. Default: one a core.")
    on: str = again(NetworkOptions, "on", "auto")


@dataclass(frozen=True)
class DesignOptions(KeptOptions):
    """What `design` is asked for.

    Parameters
    ----------
    networks
        One, or several (see `load_network`), which all run on one machine; what counts is their sum, each times the
        weight that it names behind an asterisk (``bert-base*0.3``) or that a mapping gives it.
    arch
        What may vary: see `load_design_space`.
    objective
        One of ``latency``, ``energy``, ``edp``, ``latency-area``, ``energy-area``, ``edp-area``; with ``deployment``,
        of ``latency``, ``energy``, ``edp``, ``pace``.
    samples
        The same as ``budget``, as a number alone.
    warm_start
        ``library``: ``auto`` begins from the mappings that the store knows of the layers, and of layers like them.
    fix
        ``mapping=DATAFLOW``: only mappings that follow it. ``hardware``: the machine as its file has it.
    """

    networks: Network | Sequence[Network] | Mapping[Network, float] = field(metadata={"flags": (Flag(
        ("networks",), "Networks, as for tilewright map, that all run on one machine. Each counts as often as its "
        "weight says: resnet50, bert-base:sequence=128*0.3.", "arguments", "NETWORK[*WEIGHT]..."),)})
    arch: Machine | DesignSpace = field(metadata={"flags": (Flag(
        ("--arch", "-a"), "What may vary: the design section of this accelerator's file; without one, the sides of its "
        "arrays and the capacities of its memories. A preset or a YAML file.", metavar="ARCH"),)})
    within: str | Iterable[str | Limit] | None = option(None, "--within", "-w", metavar="FIGURE=MOST,...", says=(
        "What the machine may take: area=0.2mm2, power=200mW, elements=256, bytes=4kB, or several of these; with "
        "--deployment also shares such as area=iot, or fpga-edge."))
    _: KW_ONLY
    objective: str | None = option(None, "--objective", "-o", says=(
        "What to minimise: latency, energy, edp, or one of them times area (edp-area); with "
        "--deployment latency, energy, edp, pace. Default: latency; with --front, the product of its metrics."))
    method: str = option("auto", "--method", "-m", always=True,
                         says="How to search; see: tilewright list methods.")
    deployment: str | None = option(None, "--deployment", metavar="pipelined|sequential", says=(
        "Share the budget among the layers, each with its own elements and buffer (pipelined), or give all one pair "
        "in turn (sequential), mapped by --styles. Default: one machine, each layer with any mapping."))
    per_layer: bool = option(False, "--per-layer", kind="yes", says=(
        "A machine for every layer by itself, each within all of the budget, as DiGamma's release has it."))
    styles: str | Iterable[str] = option((), "--styles", metavar="STYLE,...", says=(
        "With --deployment: dataflow styles that a layer may have; see: tilewright list styles. Default: nvdla."))
    budget: str | int | Budget | None = again(SearchOptions, "budget", None, (
        "Mappings of a layer scored in all (40000, 40k), time (10s), or both (40k,10s). Only a number of mappings "
        "repeats exactly. Default: 40000; with --deployment 5000 allocations of all layers."))
    seed: int = again(SearchOptions, "seed", 0)
    warm_start: str = again(RunOptions, "warm_start", "off", (
        "What auto begins from: off; library, mappings that the store knows of the layers and of layers like them "
        "(then results depend on it)."), choices=("off", "library"))
    fix: str | Iterable[str] = option((), "--fix", kind="texts", metavar="mapping=DATAFLOW|hardware", says=(
        "Search only machines (mappings follow a dataflow; see: tilewright list dataflows), or only mappings (the "
        "machine is as its file has it). Repeatable."))
    front: str | Iterable[str] = option((), "--front", metavar="METRICS", says=(
        "Also show the Pareto front of these metrics, e.g. latency,energy,area, over all machines tried."))
    options: Mapping[str, Scalar] | None = again(NetworkOptions, "options", None, (
        "An option of the method. Repeatable."))
    tiling: str | None = again(SpaceOptions, "tiling", None)
    precision: str = again(SpaceOptions, "precision", "auto")
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)
    vector: str = again(VectorOptions, "vector", "included", (
        "Softmax, normalisation, pooling, additions, copies and the like: included in all totals and bounds; or free, "
        "as in papers that leave them out and always with --per-layer and --deployment."))
    samples: int | None = None
    workers: int | None = again(NetworkOptions, "workers", None, "Searches side by side. Default: one a core.")
    on: str = again(NetworkOptions, "on", "auto")
    store: str | os.PathLike[str] | bool = again(NetworkOptions, "store", True,
                                                 "Do not append the design's runs to the store.")


@dataclass(frozen=True)
class SweepOptions(KeptOptions):
    """What `sweep` is asked for.

    Parameters
    ----------
    vary
        One or more texts such as ``PEs.shape=8x8,16x16`` or ``GLB.capacity=64KB..1MB*2``: capacities, bandwidths and
        sides of arrays.
    objective
        One of ``latency``, ``energy``, ``edp``, ``latency-area``, ``energy-area``, ``edp-area``.
    """

    network: Network = field(metadata={"flags": flags(OnMachine)["network"]})
    arch: Machine = field(metadata=MACHINE)
    vary: str | Iterable[str] = option((), "--vary", kind="texts", metavar="LEVEL.NUMBER=VALUES", says=(
        "What varies: values with commas (PEs.shape=8x8,16x16), or the first and the last with a factor or a step "
        "(GLB.capacity=64KB..1MB*2, PEs.x=4..16+4); all combinations are mapped. Repeatable."))
    _: KW_ONLY
    objective: str = option("edp", "--objective", "-o", always=True, says=(
        "What to minimise: latency, energy, edp, or one of them times area (edp-area), of the whole network."))
    budget: str | int | Budget = again(SearchOptions, "budget", 2_000, (
        "About how many mappings of every distinct layer each machine is offered, bred for it or for its neighbours."))
    seed: int = again(SearchOptions, "seed", 0)
    front: str | Iterable[str] = option(("latency", "energy", "area"), "--front", metavar="METRICS", says=(
        "Metrics of the Pareto front of machines. Default: latency,energy,area."))
    tiling: str | None = again(SpaceOptions, "tiling", None)
    dataflow: str | None = again(SpaceOptions, "dataflow", None)
    precision: str = again(SpaceOptions, "precision", "auto")
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)
    layers: str | None = again(NetworkOptions, "layers", None)
    vector: str = again(VectorOptions, "vector", "included")
    workers: int | None = again(NetworkOptions, "workers", None, (
        "Machines for which mappings are bred side by side. Default: one a core."))
    on: str = again(NetworkOptions, "on", "auto")


@dataclass(frozen=True)
class FlexibilityOptions(OnLayer):
    """What `flexibility` is asked for."""

    layer: str | None = again(OnLayer, "layer", None, "One of its layers. Default: all, and their average.")
    _: KW_ONLY
    axes: str = option("TOPS", "--axes", says="Letters of TOPS: tile, order, parallelism, shape.")
    klass: str | None = option(None, "--class", metavar="1010|FullFlex-1010", says=(
        "Take the machine as one of this class (digits of T, O, P, S): axes of 1 fully flexible, axes of 0 as its "
        "file fixes them."))
    bind: Mapping[str, int | str] | None = again(SpaceOptions, "bind", None)
    seed: int = again(LookOptions, "seed", 0, "Of the draws behind counts that are estimated.")
