"""What FLAT's studies share: its machines, what cells of plans measure, and what its models can gain at most."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from tilewright.fusion.flat import (
    Attention,
    AttentionBlock,
    FlatMachine,
    attention_bound,
    best_plan,
    block_cost,
    dataflow_cost,
    flat_block,
    flat_machine,
    product_cost,
)
from tilewright.hardware import preset
from tilewright.jobs import Runner
from tilewright.reproduce.study import Cell

EDGE, CLOUD = "flat-edge", "flat-cloud"
NEAR = 0.95
"""The utilisation that counts as nearly that of the compute bound (figure A.15)."""
READING = ("Clock and word width are not printed: 940 MHz, 2-byte words and GiB/s fit a run of the authors' model "
           "(`tilewright validate flat`, all 48 rows within 0.6 %).")
AGREES = "The words and footprints of our plans agree with a literal walk of their loops (tests/oracle)."
Cells = dict[tuple[Any, ...], dict[str, Any]]


@cache
def machine_of(name: str, capacity_bytes: float = 0, dram_gib: float = 0) -> FlatMachine:
    """Return a machine of FLAT, with another buffer or another bandwidth where one is given."""
    found = flat_machine(preset(name), capacity_bytes=capacity_bytes or None)
    rate = dram_gib * 2**30 / (found.clock_mhz * 1e6 * found.word_bytes)
    return replace(found, dram_rate=rate) if dram_gib else found


def measured(runner: Runner, asked: Iterable[tuple[Any, ...]], block: bool = False) -> Cells:
    """Return what plans take, by (machine, model, sequence, dataflow) and, where one is given, bytes of buffer."""
    every = list(dict.fromkeys(asked))
    keys = [dict(zip(("machine", "model", "sequence", "dataflow", "capacity"), each, strict=False)) for each in every]
    cells = [Cell({**key, "block": block}, partial(_take, each, block=block))
             for key, each in zip(keys, every, strict=True)]
    return dict(zip(every, runner.run(cells), strict=True))


def _take(asked: Sequence[Any], *, block: bool) -> dict[str, Any]:
    name, model, sequence, dataflow, *capacity = asked
    machine, whole = machine_of(name, *capacity), flat_block(model, sequence)
    bound = attention_bound(whole.attention, machine)
    cost = block_cost(whole, machine, dataflow) if block else dataflow_cost(whole.attention, machine, dataflow)
    rest = sum(product.macs * product.count for product in whole.products) if block else 0
    energy = cost.energy_pj
    if dataflow.endswith("opt"):  # of equal latencies, the plan of the least energy counts
        alone = dataflow_cost(whole.attention, machine, dataflow)
        energy += dataflow_cost(whole.attention, machine, dataflow, "energy").energy_pj - alone.energy_pj
    ideal = (whole.attention.macs + rest) / machine.elements
    return {"utilisation": ideal / cost.latency_cycles, "latency_cycles": cost.latency_cycles, "energy_pj": energy,
            "dram_words": cost.dram_words, "footprint_words": cost.footprint_words,
            "bound_cycles": bound.latency_cycles + rest / machine.elements}


def least_room(name: str, attention: Attention, dataflow: str, utilisation: float) -> float:
    """Return the bytes of buffer with which a dataflow reaches a utilisation, from 4 KiB to 4 GiB; infinite if none."""
    return _least([2 ** (power / 2) for power in range(24, 65)], utilisation,
                  lambda room: _utilisation(attention, machine_of(name, room), dataflow))


def least_bandwidth(name: str, attention: Attention, dataflow: str, utilisation: float) -> float:
    """Return the GiB/s with which a dataflow reaches a utilisation, in steps of 5 %; infinite if none does."""
    return _least([1.05**power for power in range(-60, 240)], utilisation,
                  lambda rate: _utilisation(attention, machine_of(name, 0, rate), dataflow))


def _least(values: Sequence[float], reached: float, of: Callable[[float], float]) -> float:
    """Return the least of rising values at which what never falls reaches a figure; infinite where none does."""
    place = bisect_left(values, reached, key=of)
    return values[place] if place < len(values) else float("inf")


def _utilisation(attention: Attention, machine: FlatMachine, dataflow: str) -> float:
    try:
        return attention.macs / machine.elements / dataflow_cost(attention, machine, dataflow).latency_cycles
    except ValueError:  # nothing fits
        return 0.0


def most_gain(name: str, block: AttentionBlock) -> dict[str, float]:
    """Return what fusion can gain at most of a block, by the reading that favours it most.

    Words of 4 bytes, 1 GHz, 10^9 bytes a GB; a Flex plan that is legal, and whose softmax passes over the logits in
    DRAM once more each way. No plan that fuses is below the compute bound, and Flex-opt is no worse than that plan.
    """
    slow = flat_machine(preset(name), clock_mhz=1000, word_bits=32)
    slow = replace(slow, dram_rate=slow.dram_rate * 1e9 / 2**30)
    flex = best_plan(block.attention, slow, "flex").cost.latency_cycles
    flex += 2 * block.attention.instances * block.attention.pairs / slow.dram_rate
    rest = sum(product_cost(product, slow).latency_cycles * product.count for product in block.products)
    return {"gain": (flex + rest) / (block.attention.macs / slow.elements + rest)}
