"""The closed forms on nests that can be counted by hand, in the comment beside each."""

from itertools import product

import numpy as np
import pytest

from tilewright.cost.dense import closed_form as cf
from tilewright.cost.dense.nest import Nest, NestLoop
from tilewright.cost.dense.single import last_tile, single_cost, sums_of, tallies_of
from tilewright.cost.records import Count
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import ROLES, Axis, Operator, Tensor, matmul

ENERGY = AccessEnergy(1.0, 1.0, 1.0, 1.0)


def conv(p, r, stride=1, dilation=1, k=1):
    return Operator("conv", "conv", (("K", k), ("P", p), ("R", r)), (
        Tensor("W", "weights", (Axis((("K", 1),)), Axis((("R", 1),)))),
        Tensor("I", "inputs", (Axis((("P", stride), ("R", dilation))),)),
        Tensor("O", "outputs", (Axis((("K", 1),)), Axis((("P", 1),))))))


def nest(operator, main, lanes, pads, rates=None, **network):
    """Main memory, a row of lanes, pads; each level's loops as ``P4 R1``."""
    bandwidth = rates or Bandwidth()
    levels = (Memory("Main", ROLES, ENERGY, bandwidth=bandwidth), Fanout("Lanes", (64, 1), **network),
              Memory("Pads", ROLES, ENERGY, bandwidth=bandwidth, buffering="buffet"))
    entries = [LevelLoops(name, tuple(Loop(part[0], int(part[1:]), "X" if name == "Lanes" else None)
                                      for part in text.split()))
               for name, text in (("Main", main), ("Lanes", lanes), ("Pads", pads))]
    return Nest(operator, Accelerator("machine", levels, Compute("MAC", 1.0)), Mapping(tuple(entries)))


def boundary(found, tensor, index=0):
    return found.boundaries(found.operator.tensor(tensor))[index]


def time(step, name="P", **more):
    return cf.RoledLoop(NestLoop(0, name, 0, step, None), cf.Role.TIME, **more)


def lane(step, name="P"):
    return cf.RoledLoop(NestLoop(1, name, 0, step, "X"), cf.Role.LANE)


def first(step, name="P"):
    return cf.RoledLoop(NestLoop(1, name, 0, step, "X"), cf.Role.FIRST)


class TestPieces:
    def test_splitting_leaves_rests(self):
        # 28 in tiles of 9: three of 9, one of 1; the nines in fours: two and a rest of 1 each.
        assert cf.split({28: 1}, 9) == {9: 3, 1: 1}
        assert cf.split({9: 3, 1: 1}, 4) == {4: 6, 1: 4}

    def test_a_step_beyond_the_extent_leaves_it_whole(self):
        assert cf.split({3: 2}, 5) == {3: 2}

    def test_picking_looks_at_the_first_iteration(self):
        assert cf.pick({9: 3, 1: 1}, first(4)) == {4: 3, 1: 1}
        # Pieces that become alike are counted together.
        assert cf.pick({9: 3, 5: 1}, first(4)) == {4: 4}

    def test_loops_in_order(self):
        assert cf.pieces(28, [time(9), first(4), time(1)]) == {1: 3 * 4 + 1}
        assert cf.pieces(28, [time(9), lane(4), time(1)]) == {1: 28}

    def test_sums(self):
        assert cf.count_pieces({9: 3, 1: 1}) == 4
        assert cf.total_extent({9: 3, 1: 1}) == 28

    def test_the_last_iteration_of_the_first_lane(self):
        # 28 in tiles of 9: the last holds 1, at 27; of that, the tile of 4 is 1 again.
        loops = [cf.RoledLoop(NestLoop(0, "P", 28, 9, None), cf.Role.TIME),
                 cf.RoledLoop(NestLoop(1, "P", 9, 4, "X"), cf.Role.LANE)]
        picked = cf.last_visit(loops)
        assert [(roled.role, roled.skip) for roled in picked] == [(cf.Role.LAST, 27), (cf.Role.LANE, 0)]
        assert cf.pieces(28, picked) == {1: 1}

    def test_pieces_that_do_not_reach_the_last_iteration_vanish(self):
        # Lanes of 5 of 8: the first goes on to 5 in steps of 2: last at 4; the second has 3 and does not get there.
        loops = [cf.RoledLoop(NestLoop(0, "P", 8, 5, "X"), cf.Role.LANE),
                 cf.RoledLoop(NestLoop(1, "P", 5, 2, None), cf.Role.TIME)]
        assert cf.pieces(8, cf.last_visit(loops)) == {1: 1}


class TestRoles:
    def test_a_loop_inside_the_innermost_that_moves_the_tile_stands_still(self):
        found = nest(conv(8, 3, k=4), "P4 K2", "", "K1 P1 R1")
        told = cf.roles(found, boundary(found, "I"), cf.View(merged=True))
        assert [(r.loop.dimension, r.role, r.halo) for r in told] == [
            ("P", cf.Role.TIME, True), ("K", cf.Role.STILL, False)]
        told = cf.roles(found, boundary(found, "W"), cf.View(merged=True))
        assert [(r.loop.dimension, r.role) for r in told] == [("P", cf.Role.TIME), ("K", cf.Role.TIME)]
        # At the compute unit, which keeps nothing, every loop in time advances.
        told = cf.roles(found, boundary(found, "W", 1), cf.View(merged=True))
        assert {r.role for r in told} == {cf.Role.TIME}

    def test_loops_that_run_once_are_no_loops(self):
        found = nest(conv(8, 3), "P8 P4", "P4", "P1 R1")
        assert [(loop.dimension, loop.step, loop.count) for loop in found.loops] == [("P", 4, 2), ("P", 1, 4),
                                                                                     ("R", 1, 3)]

    def test_lanes_merge_where_the_network_shares_words(self):
        def lane_role(tensor, merged, **network):
            found = nest(conv(8, 3, k=4), "", "K1", "P1 R1", **network)
            return cf.roles(found, boundary(found, tensor), cf.View(merged=merged))[0].role

        assert lane_role("I", True) is cf.Role.MERGED
        assert lane_role("I", False) is cf.Role.LANE
        assert lane_role("I", True, multicast=False) is cf.Role.LANE
        assert lane_role("O", True) is cf.Role.MERGED
        assert lane_role("O", True, reduce=False) is cf.Role.LANE

    def test_tiles_of_sliding_lanes_must_abut(self):
        found = nest(conv(8, 3), "", "P4 P2", "P1 R1")
        at_pads = cf.roles(found, boundary(found, "I"), cf.View(merged=True))
        assert [r.role for r in at_pads] == [cf.Role.MERGED, cf.Role.MERGED]
        # Where the pads do not keep I, their loop over P runs between the lanes and the compute unit.
        levels = *found.accelerator.levels[:2], Memory("Pads", ("weights",), ENERGY)
        inside = Nest(found.operator, Accelerator("m", levels), found.mapping)
        at_compute = cf.roles(inside, inside.boundaries(inside.operator.tensor("I"))[0], cf.View(merged=True))
        assert [r.role for r in at_compute if r.loop.spatial] == [cf.Role.LANE, cf.Role.LANE]


class TestSlidingAxis:
    def test_a_window_carries_over_what_it_still_holds(self):
        # P of 7 in tiles of 3 with R = 3: 5 words, then 3 new of 5, then 1 new of 3.
        found = nest(conv(7, 3), "P3", "", "P1 R1")
        moving, still = cf.sides(found.operator.tensor("I").axes[0], found.operator.sizes, {
            "P": [r for r in cf.roles(found, boundary(found, "I"), cf.View(merged=True))], "R": []})
        assert (moving.name, still.name) == ("P", "R")
        assert set(cf.windows(moving, still)) == {
            cf.TileGroup(None, 3, 3, 1, 5, 0), cf.TileGroup(3, 3, 3, 1, 5, 2), cf.TileGroup(3, 1, 3, 1, 3, 2)}
        assert cf.factors(found, boundary(found, "I"), cf.View(merged=True)) == {"P+R": 9, "K": 1}

    def test_holes_are_no_words(self):
        # Stride 3, window 2: tiles of two outputs hold words 0 1 3 4, 6 7 9 10, ...; nothing is carried over.
        found = nest(conv(6, 2, stride=3), "P2", "", "P1 R1")
        assert cf.words(found, boundary(found, "I"), cf.View(merged=True)) == 12

    def test_coefficients_are_reduced(self):
        # 2 P + 4 R visits even words only: as P + 2 R. P = 4, R = 2: {0..3} and {2..5}, six words.
        found = nest(conv(4, 2, stride=2, dilation=4), "", "", "P1 R1")
        assert cf.words(found, boundary(found, "I"), cf.View(merged=True)) == 6

    def test_merged_lanes_read_their_union_once(self):
        # 8 outputs on 4 lanes of 2: 4 words each, 10 in all.
        found = nest(conv(8, 3), "", "P2", "P1 R1")
        assert cf.words(found, boundary(found, "I"), cf.View(merged=True)) == 10
        assert cf.words(found, boundary(found, "I"), cf.View(merged=False)) == 16
        apart = nest(conv(8, 3), "", "P2", "P1 R1", multicast=False)
        assert cf.words(apart, boundary(apart, "I"), cf.View(merged=True)) == 16

    @pytest.mark.parametrize("seed", range(6))
    def test_against_sets(self, seed):
        """Words of one axis under loops in time and lanes, by listing who holds what when."""
        rng = np.random.default_rng(seed)
        for _ in range(40):
            stride, dilation = int(rng.integers(1, 4)), int(rng.integers(1, 4))
            p, r = int(rng.integers(1, 14)), int(rng.integers(1, 6))
            p_time, r_time = int(rng.integers(1, p + 1)), int(rng.integers(1, r + 1))
            p_lane, r_lane = int(rng.integers(1, p_time + 1)), int(rng.integers(1, r_time + 1))
            order = " ".join((f"P{p_time}", f"R{r_time}")[::rng.choice([1, -1])])
            found = nest(conv(p, r, stride, dilation), order, f"P{p_lane} R{r_lane}", "P1 R1")
            at = boundary(found, "I")
            expected = listed(found, stride, dilation)
            assert cf.words(found, at, cf.View(merged=True)) == expected[0], found.mapping
            assert cf.words(found, at, cf.View(merged=False)) == expected[1], found.mapping
            assert cf.words(found, at, cf.View(merged=False, first_outside=2)) == expected[2], found.mapping


def listed(found, stride, dilation):
    """Words read by the parent, filled into all lanes, and into the first: by sets of words for each lane and visit."""
    steps = {(loop.level, loop.dimension): loop.step for loop in found.loops}
    order = [loop.dimension for loop in found.loops if loop.level == 0]
    sizes = found.operator.sizes
    held: dict[tuple[tuple[int, ...], tuple[int, ...]], set[int]] = {}
    for p, r in product(range(sizes["P"]), range(sizes["R"])):
        value, visit, instance = {"P": p, "R": r}, {}, []
        for name in "PR":
            step = steps.get((0, name), sizes[name])
            visit[name] = value[name] // step
            lane_step = steps.get((1, name), step)
            instance.append(value[name] % step // lane_step)
        key = tuple(visit[name] for name in order), tuple(instance)
        held.setdefault(key, set()).add(stride * p + dilation * r)
    read = filled = first_filled = 0
    for when in {when for when, _ in held}:
        wanted: set[int] = set()
        for lane_index in {who for at, who in held if at == when}:
            tile = held[when, lane_index]
            before = held.get(((*when[:-1], when[-1] - 1), lane_index), set()) if when and when[-1] else set()
            wanted |= tile - before
            filled += len(tile - before)
            first_filled += len(tile - before) * (lane_index == (0, 0))
        read += len(wanted)
    return read, filled, first_filled


class TestOutputs:
    def test_lanes_that_cannot_reduce_leave_it_to_the_parent(self):
        operator = conv(4, 3, k=2)
        assert not cf.combines(*spread(operator, "R1"))
        assert cf.combines(*spread(operator, "R1", reduce=False))
        # K is a plain axis of the output: lanes over it share no words.
        assert not cf.combines(*spread(operator, "K1", reduce=False))

    def test_partial_sums_by_hand(self):
        # C of 6 in time outside: two visits of each of 4 x 3 outputs, 3 accumulations of each in a visit.
        operator = matmul("g", m=4, n=3, k=6)
        found = nest(operator, "K3 M2", "", "M1 N1 K1")
        cost = single_cost(operator, found.accelerator, found.mapping)
        assert cost.counts["Main", "O"] == Count(reads=12, fills=0, updates=24, drains=0)
        assert cost.counts["Pads", "O"] == Count(reads=72 - 24 + 12, fills=12, updates=72, drains=24)


def spread(operator, lanes, **network):
    found = nest(operator, "", lanes, "K1 P1 R1", **network)
    return found, boundary(found, "O")


class TestCycles:
    def test_steps_are_those_of_the_longest_running_instance(self):
        # P = 7 on lanes of 3: 3, 3, 1; each runs R = 2 for each: 6 steps.
        assert cf.steps(nest(conv(7, 2), "", "P3", "P1 R1")) == 6
        # In time first: tiles of 5 and 2, on lanes of 3: 3 + 2 of the first lane, twice.
        assert cf.steps(nest(conv(7, 2), "P5", "P3", "P1 R1")) == 10

    def test_a_port_rounds_up(self):
        for rate, rounded in ((2.0, 5), (3.0, 4), (2.5, 4), (4.0, 3), (None, 0)):
            found = nest(conv(7, 2), "", "", "P1 R1", rates=Bandwidth(read=rate))
            # Main reads W 2 and I 8, each once.
            moved = single_cost(found.operator, found.accelerator, found.mapping).traffic["Main"]
            assert (moved.read_words, moved.cycles) == (10, rounded)

    def test_ramp_by_hand(self):
        # First tiles: W 3, I 5 at each of the pads; Main reads their union: P in pieces of 6, two lanes of 3.
        found = nest(conv(9, 3), "P6", "P3", "P1 R1", rates=Bandwidth(read=2.0, write=1.0))
        cold_start, tail = sums_of(found, tallies_of(found)).ramps
        assert cold_start == max(3 + 5, -(-(3 + 8) // 2))
        # Last outputs: 9 - 6 = 3 of the first lane, and as many in all.
        assert last_tile(found, boundary(found, "O")) == 3
        assert tail == max(-(-3 // 2), 3)
        cost = single_cost(found.operator, found.accelerator, found.mapping)
        assert cost.ramp_cycles == 8 + 3

    def test_energy_is_accesses_times_price(self):
        found = nest(conv(4, 2), "", "", "P1 R1")
        cost = single_cost(found.operator, found.accelerator, found.mapping)
        # Main reads 2 + 5 and is written 4; Pads: 7 filled, 16 + 4 read (8 accumulations, 4 from zero), 8 + 4 more.
        assert cost.energy_by_component_pj == {"Main": 11, "Lanes": 0, "Pads": 7 + 20 + 12, "MAC": 8}
        assert cost.energy_pj == 11 + 39 + 8
        assert cost.bottleneck == "compute"
        assert cost.utilisation == 8 / (64 * 8)
