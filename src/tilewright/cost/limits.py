"""What sets the cycles of a mapping, what stands next, and what twice as much of it would give: by the model.

Latency is steps of compute, waits for single-buffered memories and the ramp, or what the slowest port needs where that
is more (counting rule 8). Several of these can be near one another; to cure one then gives little, so all are named.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tilewright.cost.dense import closed_form as cf
from tilewright.cost.dense.nest import Nest
from tilewright.cost.dense.scoring import DenseModel
from tilewright.cost.records import COMPUTE, Cost, CycleLimit
from tilewright.cost.sparse.model import cost_model
from tilewright.hardware import PORTS, Accelerator, Bandwidth, Fanout, Memory
from tilewright.mapping import MOST_STEP, LevelLoops, Loop, Mapping, MappingBatch, SpatialAxis, is_legal
from tilewright.workload import Operator

LANES = "lanes"
CLOSE = 0.9
"""Share of the steady cycles from which compute (with its waits) is named before the port that needs a little more."""
_TRIED = 3
ENGINE = "tilewright.cost.dense.kernel"
"""The module of the compiled engine."""


def limits_of(cost: Cost) -> tuple[CycleLimit, ...]:
    """Return what sets the cycles of a cost, then what is hidden behind it, each by falling cycles.

    What ``adds`` sums up to the latency. The first is what to cure: steps of compute, or waits, where these come near
    the steady cycles; else the slowest port.

    Examples
    --------
    >>> from tilewright.cost.records import MemoryTraffic
    >>> cost = Cost(0, 688_128, 704_854, 29_070, 0.0, {}, {}, {"GLB": MemoryTraffic(0, 0, 416_154),
    ...             "Spads": MemoryTraffic(0, 0, 704_854)}, "Spads", 0.5)
    >>> [(limit.name, limit.adds) for limit in limits_of(cost)]
    [('compute', 688128), ('Spads', 16726), ('ramp', 29070), ('GLB', 0)]
    """
    serial = [CycleLimit(COMPUTE, "compute", cost.compute_cycles, cost.compute_cycles)]
    serial += [CycleLimit(name, "waits", moved.blocking_cycles, moved.blocking_cycles)
               for name, moved in cost.traffic.items() if moved.blocking_cycles]
    ports = sorted((CycleLimit(name, "port", moved.cycles) for name, moved in cost.traffic.items() if moved.cycles),
                   key=lambda port: -port.cycles)
    serial.sort(key=lambda limit: -limit.cycles)
    blocked = sum(limit.adds for limit in serial)
    if blocked < CLOSE * cost.steady_cycles:
        told, hidden = [replace(ports[0], adds=cost.steady_cycles)], [*ports[1:], *(replace(s, adds=0) for s in serial)]
    elif blocked < cost.steady_cycles:
        told, hidden = [*serial, replace(ports[0], adds=cost.steady_cycles - blocked)], ports[1:]
    else:
        told, hidden = serial, ports
    if cost.ramp_cycles:
        told.append(CycleLimit("ramp", "ramp", cost.ramp_cycles, cost.ramp_cycles))
    return *told, *sorted(hidden, key=lambda limit: -limit.cycles)


@dataclass(frozen=True)
class Relief:
    """What a mapping takes with twice the bandwidth of the memory ``of``, or with twice the lanes, spread as said."""

    of: str
    latency_cycles: int
    spread: str = ""


def relief(operator: Operator, accelerator: Accelerator, mapping: Mapping, of: str) -> Relief | None:
    """Return what the mapping takes with twice the bandwidth of a memory, or twice the lanes where ``of`` is compute.

    Lanes are of no use to a mapping that stays as it is: one loop outside an array takes half the turns, and the array
    twice the lanes, along the dimension for which that is quickest. None where nothing can be doubled.
    """
    if of == COMPUTE:
        return _spread(operator, accelerator, mapping)
    if not any(memory.name == of and memory.bandwidth != Bandwidth() for memory in accelerator.memories):
        return None
    return Relief(of, _latency(operator, with_twice(accelerator, of), mapping))


def _latency(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> int:
    """Return the cycles of a mapping: by the engine where that is loaded and counts so far, as it tells them sooner."""
    if accelerator.sparsity is not None or ENGINE not in sys.modules or max(operator.sizes.values()) > MOST_STEP:
        return int(cost_model(operator, accelerator).cost(mapping).latency_cycles)
    batch = MappingBatch.from_mappings([mapping], operator, accelerator)
    return int(DenseModel(operator, accelerator, batch.layout).score(batch).latency_cycles[0])


@lru_cache(maxsize=64)
def with_twice(accelerator: Accelerator, memory: str) -> Accelerator:
    """Return the machine with twice the bandwidth of a memory; kept, as every layer of a network asks."""
    def doubled(level: Memory | Fanout) -> Memory | Fanout:
        if not isinstance(level, Memory) or level.name != memory:
            return level
        rates = {port: None if rate is None else 2 * rate for port in PORTS
                 for rate in [getattr(level.bandwidth, port)]}
        return replace(level, bandwidth=Bandwidth(**rates))

    return replace(accelerator, levels=tuple(doubled(level) for level in accelerator.levels))


def _spread(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> Relief | None:
    """Return the quickest of the mappings that use twice the lanes: the few with the fewest steps are costed."""
    tried = [(cf.steps(Nest(operator, machine, wider)), at, name, machine, wider)
             for at, (name, machine, wider) in enumerate(_wider(operator, accelerator, mapping))]
    found: list[Relief] = []
    for _, _, name, machine, wider in sorted(tried, key=lambda one: one[:2]):
        if len(found) < _TRIED and is_legal(wider, operator, machine):
            found.append(Relief(LANES, _latency(operator, machine, wider), name))
    return min(found, key=lambda one: one.latency_cycles, default=None)


def _wider(operator: Operator, accelerator: Accelerator, mapping: Mapping,
           ) -> Iterator[tuple[str, Accelerator, Mapping]]:
    """Yield dimension, machine and mapping for each way to use an array twice as wide or as high."""
    for index, axis, machine in _machines_with_twice(accelerator):
        for name, size in operator.sizes.items():
            wider = _moved_in(mapping.levels, index, Loop(name, size, axis))
            if wider is not None:
                yield name, machine, wider


@lru_cache(maxsize=64)
def _machines_with_twice(accelerator: Accelerator) -> tuple[tuple[int, SpatialAxis, Accelerator], ...]:
    """Return level, axis and machine for each way to make an array twice as wide or as high; kept."""
    found: list[tuple[int, SpatialAxis, Accelerator]] = []
    for index, fanout in enumerate(accelerator.levels):
        if isinstance(fanout, Fanout):
            x, y = fanout.shape
            shapes: tuple[tuple[SpatialAxis, tuple[int, int]], ...] = ("X", (2 * x, y)), ("Y", (x, 2 * y))
            for axis, shape in shapes:
                levels: list[Any] = list(accelerator.levels)
                levels[index] = replace(fanout, shape=shape)
                found.append((index, axis, replace(accelerator, levels=tuple(levels), flexibility=None)))
    return tuple(found)


def _moved_in(levels: Sequence[LevelLoops], index: int, wanted: Loop) -> Mapping | None:
    """Return the mapping with a factor of two from the loop next outside an array to its lanes; None where none is.

    ``wanted`` names dimension and axis; its step is the size of the dimension.
    """
    extent, before, place = wanted.step, wanted.step, None
    for at, entry in enumerate(levels[:index]):
        for position, loop in enumerate(entry.loops):
            if loop.dimension == wanted.dimension and loop.step < extent:
                before, extent, place = extent, loop.step, None if loop.axis else (at, position)
    inside = next((loop for loop in levels[index].loops if loop.dimension == wanted.dimension), None)
    if place is None or (inside is not None and inside.axis != wanted.axis):
        return None
    made = [replace(entry, loops=tuple(
        replace(loop, step=min(2 * extent, before))
        if loop.dimension == wanted.dimension and (at, position) >= place and at < index else loop
        for position, loop in enumerate(entry.loops))) for at, entry in enumerate(levels)]
    if inside is None:
        made[index] = replace(made[index], loops=(*made[index].loops, replace(wanted, step=extent)))
    return Mapping(tuple(made))
