"""AlexNet on Eyeriss: the chip's time for each layer, and the energies of the paper that introduced its dataflow.

``data/eyeriss/alexnet.json``: parameters of the mappings and what they take of the global buffer (JSSC 2017, table
III; KiB), processing time in ms, active elements, share of zeros in input feature maps, accesses to the global buffer
and to DRAM in MiB for a batch of 4 (the same, table V; text of both tables in github.com/cucapra/fodlam), energy at
DRAM and in the register files for a batch of 16 in units of 10^9 multiply-accumulates (ISCA 2016, figure 10, as
carried by the tests of github.com/stanford-mast/nn_dataflow).

Row-stationary mappings are made from the parameters by which the papers describe them. A *pass* takes ``n`` images,
``p`` filters and ``q`` channels in every set of processing elements; a set has a row for each row of the filter and a
column for each of ``e`` output rows. ``t`` sets take different filters, ``r`` sets different channels. The global
buffer holds the partial sums of ``m`` output channels until all channels are through.
(Chen et al., JSSC 52(1), 2017, section IV; table III has the parameters for AlexNet.)
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

from tilewright.cost import Cost, DenseModel
from tilewright.hardware import Accelerator, Fanout, load_accelerator, preset
from tilewright.mapping import LevelLoops, Loop, Mapping, is_legal
from tilewright.validation.records import DATA, Figure, Quantity, SetFigures, ValidationWatch, add_own
from tilewright.workload import Operator, zoo


@dataclass(frozen=True)
class Passes:
    """Parameters of a row-stationary mapping, by the letters of the paper."""

    m: int
    n: int
    e: int
    p: int
    q: int
    r: int
    t: int


def row_stationary(passes: Passes, operator: Operator, accelerator: Accelerator) -> Mapping:
    """Return the mapping: passes from DRAM, sums in ``GLB``, rows in ``PEs`` and ``Spads``.

    A memory ``Filters``, where there is one, holds the filters of one pass. More output rows than the array has columns
    are folded over its rows.
    """
    at = {level.name: level for level in accelerator.levels}
    array = at["PEs"]
    assert isinstance(array, Fanout)
    images = (("N", 1), ("Q", 1))
    steps: dict[str, tuple[tuple[str, int], ...]] = {
        "DRAM": (("G", 1), ("N", passes.n), ("P", passes.e), ("K", passes.m), ("C", passes.q * passes.r)),
        "GLB": (("K", passes.p * passes.t), *(() if "Filters" in at else images)),
        "Filters": images,
        "Spads": (("K", 1), ("C", 1), ("S", 1)),
    }
    left = dict(operator.sizes)
    levels = [LevelLoops(name, tuple(_spread(passes, array, left) if name == "PEs" else _in_time(steps[name], left)))
              for name in at]
    return Mapping(tuple(levels))


def active_elements(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> int:
    """Return how many processing elements work in a full pass."""
    outside, inside = dict(operator.sizes), {}
    for level, entry in zip(accelerator.levels, mapping.levels, strict=True):
        steps = {loop.dimension: loop.step for loop in entry.loops}
        if isinstance(level, Fanout):
            inside = outside | steps
            break
        outside |= steps
    return prod(-(-outside[name] // step) for name, step in inside.items())


def _in_time(steps: Iterable[tuple[str, int]], left: dict[str, int]) -> Iterable[Loop]:
    """Yield the loops that run more than once, and keep in ``left`` what their tiles leave."""
    for name, step in steps:
        if step < left.get(name, 1):
            left[name] = step
            yield Loop(name, step)


def _spread(passes: Passes, array: Fanout, left: dict[str, int]) -> Iterable[Loop]:
    """Yield the loops in space: output rows by filter rows, sets of filters beside one another where there is room."""
    columns, _ = array.shape
    beside = "X" if passes.e * passes.t <= columns else "Y"
    for name, step, side in (("P", columns, "Y"), ("K", passes.p, beside), ("C", passes.q, "Y"), ("R", 1, "Y"),
                             ("P", 1, "X")):
        if step < left[name]:
            left[name] = step
            yield Loop(name, step, "X" if side == "X" else "Y")


FOLDER = DATA / "eyeriss"
CHIP_BATCH, PAPER_BATCH = 4, 16
TIME, PLAIN_TIME, ACTIVE = "processing time", "processing time, preset", "active elements"
FRAMES, BUFFER = "frames per second", "global buffer accesses"
COMPRESSED, UNCOMPRESSED = "DRAM accesses, compressed", "DRAM accesses, all words"
DRAM, REGISTERS = "DRAM energy", "register-file energy"
PUBLISHED_FRAMES = 35
WORD_BYTES, MIB = 2, 2**20
RUN_LENGTH_WORDS = 64 / 3 / 16
"""Words that a word takes which is not zero: 64 bits hold three, with their runs of zeros (JSSC 2017)."""


class _PublishedLayer(NamedTuple):
    """A layer as it runs on a machine, and what the papers say of it."""

    name: str
    operator: Operator
    mapping: Mapping
    cost: Cost
    published: dict[str, Any]


def layers(accelerator: Accelerator, batch: int) -> Iterator[_PublishedLayer]:
    """Yield AlexNet's convolutions on a machine, mapped as published."""
    published = json.loads((FOLDER / "alexnet.json").read_text(encoding="utf-8"))
    operators = {node.name: node.operator for node in zoo.load("alexnet", batch=batch).mac_nodes}
    for name, figures in published.items():
        mapping = row_stationary(Passes(**figures["mapping"]), operators[name], accelerator)
        assert is_legal(mapping, operators[name], accelerator), name
        cost = DenseModel(operators[name], accelerator).cost(mapping)
        yield _PublishedLayer(name, operators[name], mapping, cost, figures)


def run_chip(watch: ValidationWatch) -> SetFigures:
    """Count the layers on the chip, and on the preset, where the array does not wait for filters."""
    chip, plain = load_accelerator(FOLDER / "chip.yaml"), preset("eyeriss")
    found = list(layers(chip, CHIP_BATCH))
    without = {layer.name: _milliseconds(layer.cost, plain) for layer in layers(plain, CHIP_BATCH)}
    figures: list[Figure] = []
    for layer in found:
        theirs = layer.published["processing_ms"]
        figures += (
            Figure(layer.name, TIME, _milliseconds(layer.cost, chip), theirs),
            Figure(layer.name, PLAIN_TIME, without[layer.name], theirs),
            Figure(layer.name, ACTIVE, active_elements(layer.operator, chip, layer.mapping), layer.published["active"]))
    figures += _accesses(found)
    watch.tell(len(found), len(found))
    seconds = sum(_milliseconds(layer.cost, chip) for layer in found) / 1000
    figures.append(Figure("all", FRAMES, CHIP_BATCH / seconds, PUBLISHED_FRAMES))
    processing = CHIP_BATCH / sum(layer.published["processing_ms"] / 1000 for layer in found)
    return SetFigures(tuple(figures), (
        f"The published processing times alone would make {processing:.1f} frames per second, "
        f"{100 * (processing / PUBLISHED_FRAMES - 1):.1f} % more than are published.",))


def _accesses(found: list[_PublishedLayer]) -> Iterator[Figure]:
    """Yield what moves at the global buffer and at DRAM, feature maps there as they compress, and as they are."""
    zeros = [layer.published["zeros"] for layer in found]
    for layer, before, after in zip(found, zeros, [*zeros[1:], zeros[-1]], strict=True):
        counts = layer.cost.counts
        words = sum(count.reads + count.fills + count.updates + count.drains
                    for (memory, _), count in counts.items() if memory == "GLB")
        weights, inputs, outputs = (counts["DRAM", tensor] for tensor in "WIO")
        packed = weights.reads + _packed(inputs.reads, before) + _packed(outputs.reads + outputs.updates, after)
        plain = weights.reads + inputs.reads + outputs.reads + outputs.updates
        for name, moved, key in ((BUFFER, words, "buffer_mb"), (COMPRESSED, packed, "dram_mb"),
                                 (UNCOMPRESSED, plain, "dram_mb")):
            yield Figure(layer.name, name, moved * WORD_BYTES / MIB, layer.published[key])


def _packed(words: float, zeros: float) -> float:
    """Return what words of a feature map take by run lengths; never more than they are."""
    return words * min(1.0, (1 - zeros) * RUN_LENGTH_WORDS)


def run_paper(watch: ValidationWatch) -> SetFigures:
    """Count the layers on the machine of the paper's analysis."""
    machine = load_accelerator(FOLDER / "isca2016.yaml")
    unit = machine.compute.energy_pj_per_mac * 1e9
    figures: list[Figure] = []
    for layer in layers(machine, PAPER_BATCH):
        energies = layer.cost.energy_by_component_pj
        figures += (Figure(layer.name, DRAM, energies["DRAM"] / unit, layer.published["dram_energy"]),
                    Figure(layer.name, REGISTERS, energies["Spads"] / unit, layer.published["rf_energy"]))
    watch.tell(1, 1)
    return SetFigures(tuple(figures))


def _milliseconds(cost: Cost, accelerator: Accelerator) -> float:
    return cost.latency_cycles / accelerator.frequency_mhz / 1000


add_own(
    "eyeriss",
    (Quantity(TIME, "ms", "the dense model on `data/eyeriss/chip.yaml`", ordered=True),
     Quantity(PLAIN_TIME, "ms", "the dense model on the preset `eyeriss`, whose filters arrive beside the work",
              ordered=True),
     Quantity(ACTIVE, "", "of the mapping"), Quantity(FRAMES, "1/s", "4 images in the sum of all times"),
     Quantity(BUFFER, "MiB", "all accesses of the dense model to `GLB`", ordered=True),
     Quantity(COMPRESSED, "MiB", "reads and updates of DRAM, feature maps by run lengths", ordered=True),
     Quantity(UNCOMPRESSED, "MiB", "the same, every word", ordered=True)), run_chip)

add_own(
    "eyeriss-energy",
    (Quantity(DRAM, "10⁹ MACs", "the dense model on `data/eyeriss/isca2016.yaml`", ordered=True),
     Quantity(REGISTERS, "10⁹ MACs", "the same", ordered=True)), run_paper)
