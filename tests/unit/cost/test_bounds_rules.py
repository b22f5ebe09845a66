"""Bounds of small spaces, all of whose mappings are scored: where loops in time may be innermost, and power."""

import numpy as np

from tilewright.cost import least_power, space_bounds
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Fanout, Memory
from tilewright.mapping import Bounds, Constraints, MapSpace
from tilewright.search import Objective
from tilewright.search.scoring import model_of
from tilewright.workload import ROLES, matmul


def least(space, objective="energy"):
    """Return the least energy, latency and power of all legal mappings."""
    found = [model_of(space, Objective.parse(objective)).score(batch) for batch in space.enumerate(1 << 12)]
    energy, cycles = (np.concatenate([getattr(costs, name)[costs.legal] for costs in found])
                      for name in ("energy_pj", "latency_cycles"))
    return energy.min(), cycles.min(), (energy / cycles).min()


def memory(name, energy, capacity_bytes=None, keeps=ROLES, **others):
    """Return a memory by what it reads, fills, updates and drains for."""
    return Memory(name, keeps, AccessEnergy(*energy), capacity_bytes=capacity_bytes, **others)


def test_the_innermost_loop_may_be_at_any_memory_outside():
    """Where all loops must be at the outermost, a bound that takes the next for theirs is 39 % above the best."""
    machine = Accelerator("m", (
        memory("M0", (0.162, 0.576, 0.329, 0.109), bandwidth=Bandwidth(shared=0.496)),
        memory("M1", (0.5772, 0.13, 0.1516, 0.0296), 6, ("weights", "outputs")),
        memory("M2", (0.03728, 0.03156, 0.04192, 0.92544), 10, bandwidth=Bandwidth(shared=0.105), buffering="buffet")))
    space = MapSpace(matmul("m", m=2, n=3, k=3), machine, "imperfect", Constraints(
        loops={"M1": ("B", "M", "N"), "M2": ()},
        orders={"M1": (("*", "K", "N"), ("*", "M")), "M2": (("*", "M"), ("*", "N", "K", "M", "B"))},
        tiles={"M1": {"N": Bounds(least=1, most=1)}}))
    energy, cycles, _ = least(space)
    bounds = space_bounds(space)
    assert 0.9 * energy < bounds.energy_pj <= energy * (1 + 1e-9)
    assert bounds.latency_cycles <= cycles


def test_memories_outside_that_of_the_innermost_loop_may_loop():
    """A bound by which they do not is half a percent above the best."""
    machine = Accelerator("m", (
        memory("M0", (4.548, 0.958, 1.647, 1.973)),
        memory("M1", (3.106, 0.084, 0.1698, 2.0414), 7, buffering="single"),
        memory("M2", (1.0758, 0.09244, 0.76492, 0.02636), 6)))
    space = MapSpace(matmul("m", m=2, n=3, k=2), machine, "imperfect", Constraints(
        loops={"M1": ("K", "M")},
        orders={"M0": (("*", "B", "K", "M"), ("*", "M")), "M2": (("*", "K", "B", "N"), ("*", "M", "N"))},
        factors={"M0": {"N": Bounds(least=1, most=3)}, "M1": {"K": Bounds(least=2)}}))
    energy, _, _ = least(space)
    assert 0.999 * energy < space_bounds(space).energy_pj <= energy * (1 + 1e-9)


def summing(energy, inner, **layer):
    """Return the space of a product on a memory, four lanes whose sums are joined, and a memory inside them."""
    lanes = Fanout("F", (4, 1), multicast=True, reduce=True)
    return MapSpace(matmul("m", **layer), Accelerator("m", (memory("M0", energy), lanes, inner)), "imperfect")


def test_tiles_that_come_in_hold_up_compute_where_a_memory_holds_one():
    """A bound on power that leaves that out of compute's cycles is 4 % above the best."""
    space = summing((0.026, 12.112, 35.738, 7.037), memory(
        "M1", (2.397, 14.64, 0.046, 6.836), 22, bandwidth=Bandwidth(read=3.523), buffering="single"), m=4, n=3, k=2)
    power = least(space)[2]
    assert 0.9 * power < least_power(space) <= power


def test_sums_over_lanes_are_drained_by_each_of_them_instead_of_read_again():
    """A bound on power that takes them to be read is 59 % above the best."""
    space = summing((0.076, 0.055, 9.072, 0.118), memory(
        "M1", (35.932, 4.348, 0.765, 0.056), 16, ("outputs",), bandwidth=Bandwidth(read=2.298)), m=1, n=3, k=2)
    power = least(space)[2]
    assert 0.4 * power < least_power(space) <= power


def test_every_first_and_last_tile_takes_a_whole_cycle():
    """A bound on power that rounds up once a memory is 21 % above the best of one multiply-accumulate."""
    wide = {"capacity_bytes": 8, "bandwidth": Bandwidth(shared=100.0)}
    space = MapSpace(matmul("m", m=1, n=1, k=1), Accelerator("m", (
        memory("M0", (1.2, 3.0, 5.4, 1.2), bandwidth=Bandwidth(shared=100.0)),
        memory("M1", (0.3, 2.0, 14.1, 1.0), **wide), memory("M2", (7.1, 0.3, 0.8, 2.0), **wide))), "imperfect")
    power = least(space)[2]
    assert 0.8 * power < least_power(space) <= power
