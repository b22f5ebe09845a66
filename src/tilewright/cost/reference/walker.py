"""The walk: counts of every memory and tensor by the counting rules (docs/concepts.md), then cycles and energy."""

from math import ceil

import numpy as np

from tilewright.base import InputError
from tilewright.cost.records import KINDS, Cost, Count
from tilewright.cost.reference.boundary import Moved, WalkedBoundary, cross_all
from tilewright.cost.reference.energy import energies
from tilewright.cost.reference.latency import Tally, Transfers, ramps, steady, traffic
from tilewright.cost.reference.nest import write_out
from tilewright.hardware import Accelerator
from tilewright.mapping import Mapping, lane_use
from tilewright.workload import Operator

TOUCH_BUDGET = 20_000_000
"""Largest nest that is walked: multiply-accumulates times boundaries of all tensors."""


def walk(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> Cost:
    """Return what ``mapping`` costs, by executing its loop nest literally (counting rules 1 to 9).

    Slow on purpose and for small nests only: it lists every word that every instance holds in every visit. It does not
    judge legality (rule 10).

    Raises an `InputError` if the nest has more touches than `TOUCH_BUDGET`, or the mapping does not describe a complete
    nest.
    """
    nest = write_out(operator, accelerator, mapping)
    touches = operator.macs * sum(len(nest.keepers(tensor.name)) for tensor in operator.tensors)
    if touches > TOUCH_BUDGET:
        raise InputError(operator.name, f"must touch at most {TOUCH_BUDGET} words to be walked literally", touches,
                         "Use the fast model, or a smaller operator")
    crossings = {tensor.name: cross_all(nest, tensor) for tensor in operator.tensors}
    transfers = Transfers(nest, crossings, tallies(crossings))
    steps = nest.steps()
    pace = lane_use(operator, accelerator).cycles
    paced = ceil(steps * pace)
    moved = traffic(accelerator.memories, transfers.port)
    steady_cycles, bottleneck = steady(moved, paced)
    ramp_cycles = sum(ramps(transfers))
    latency = steady_cycles + ramp_cycles
    components = energies(transfers, latency)
    return Cost(
        macs=operator.macs, steps=steps, steady_cycles=steady_cycles, ramp_cycles=ramp_cycles,
        energy_pj=sum(components.values()), energy_by_component_pj=components,
        counts={(accelerator.levels[level].name, tensor): Count(**{k: int(words.sum()) for k, words in tally.items()})
                for (level, tensor), tally in transfers.tallies.items()},
        traffic=moved, bottleneck=bottleneck,
        utilisation=float(operator.macs * pace) / (accelerator.compute_instances * latency),
        paced_cycles=None if pace == 1 else paced,
    )


def tallies(crossings: dict[str, list[tuple[WalkedBoundary, Moved]]]) -> dict[tuple[int, str], Tally]:
    """Gather both sides of every memory: what it exchanges with its parent, and with its child."""
    tallies: dict[tuple[int, str], Tally] = {}
    for tensor, crossed in crossings.items():
        fills = drains = np.zeros(1, dtype=np.int64)
        for boundary, moved in crossed:
            tallies[boundary.parent, tensor] = dict(zip(KINDS, (moved.read, fills, moved.written, drains), strict=True))
            fills, drains = moved.received, moved.evicted
    return tallies
