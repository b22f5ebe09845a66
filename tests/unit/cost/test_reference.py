"""Nests small enough to be counted by hand, in the comment beside each."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.cost.records import Count
from tilewright.cost.reference import walk
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Axis, Operator, Tensor

MAIN = Memory("Main", ("W", "I", "O"), AccessEnergy(200, 210, 220, 230), buffering="buffet")
BUFFER = Memory("Buf", ("W", "I", "O"), AccessEnergy(1, 2, 3, 4), buffering="buffet")
RATES = {"main": {"bandwidth": Bandwidth(1, 1)}, "buffer": {"bandwidth": Bandwidth(3, 2)}}


def axis(*terms):
    return Axis(tuple(terms))


def conv(p, r, stride=1, dilation=1, k=1):
    """One input channel, K output channels."""
    return Operator("conv", "conv", (("K", k), ("P", p), ("R", r)), (
        Tensor("W", "weights", (axis(("K", 1)), axis(("R", 1)))),
        Tensor("I", "inputs", (axis(("P", stride), ("R", dilation)),)),
        Tensor("O", "outputs", (axis(("K", 1)), axis(("P", 1))))))


def transposed(p, r, stride):
    return Operator("transposed", "conv", (("P", p), ("R", r)), (
        Tensor("W", "weights", (axis(("R", 1)),)), Tensor("I", "inputs", (axis(("P", 1)),)),
        Tensor("O", "outputs", (axis(("P", stride), ("R", 1)),))))


def matmul(m, n, k):
    return Operator("matmul", "matmul", (("M", m), ("N", n), ("K", k)), (
        Tensor("W", "weights", (axis(("K", 1)), axis(("N", 1)))),
        Tensor("I", "inputs", (axis(("M", 1)), axis(("K", 1)))),
        Tensor("O", "outputs", (axis(("M", 1)), axis(("N", 1))))))


def cost_of(operator, *levels, compute=None, **machine):
    """Each level is ``(memory or fan-out, loops such as "P2 R1", along Y "P1y" [, kept tensors])``."""
    entries = []
    for level, loops, *keeps in levels:
        array = isinstance(level, Fanout)
        found = tuple(Loop(text[0], int(text[1:].strip("y")), ("Y" if "y" in text else "X") if array else None)
                      for text in loops.split())
        entries.append(LevelLoops(level.name, found, tuple(keeps[0]) if keeps else None))
    accelerator = Accelerator("machine", tuple(level for level, *_ in levels), compute or Compute(), **machine)
    return walk(operator, accelerator, Mapping(tuple(entries)))


def counts(cost, memory, tensor):
    return cost.counts[memory, tensor]


class TestOperands:
    def test_halo_brings_in_only_new_words(self):
        # Input tiles of P = 2, R = 3 are words 0-3, 2-5, 4-7: 4 + 2 + 2 come in. W stays: P does not concern it.
        cost = cost_of(conv(6, 3), (MAIN, "P2"), (BUFFER, "P1 R1"))
        assert counts(cost, "Buf", "I") == Count(reads=18, fills=8, updates=0, drains=0)
        assert counts(cost, "Main", "I") == Count(reads=8, fills=0, updates=0, drains=0)
        assert counts(cost, "Buf", "W") == Count(reads=18, fills=3, updates=0, drains=0)
        # Outputs: 2 words leave after each of 3 visits. Of 18 accumulations 6 start from zero.
        assert counts(cost, "Buf", "O") == Count(reads=12, fills=0, updates=18, drains=6)
        assert counts(cost, "Main", "O") == Count(reads=0, fills=0, updates=6, drains=0)
        assert (cost.macs, cost.steps) == (18, 18)

    def test_ragged_halo_and_wrap(self):
        # P = 7 in tiles of 3, 3, 1 with R = 3: 5 + 3 + 1 words; K outside wraps, so the whole window comes twice.
        # An outer K loop inside the P loop would be skipped instead: K does not concern I.
        cost = cost_of(conv(7, 3, k=2), (MAIN, "K1 P3"), (BUFFER, "P1 R1"))
        assert counts(cost, "Main", "I").reads == 18
        cost = cost_of(conv(7, 3, k=2), (MAIN, "P3 K1"), (BUFFER, "P1 R1"))
        assert counts(cost, "Main", "I").reads == 9

    def test_halo_of_the_other_dimension(self):
        # R in the outer loop: tiles are words r .. r+3, each one step on: 4 + 1 + 1.
        cost = cost_of(conv(4, 3), (MAIN, "R1"), (BUFFER, "P1"))
        assert counts(cost, "Buf", "I").fills == 6

    def test_ragged_steps_that_do_not_divide(self):
        # P = 7 in tiles of 5 and 2, these in steps of 2: 2, 2, 1 and 2. Words: (4+2+1) and 4 anew, as the outer loop
        # stepped (the inner one wrapped).
        cost = cost_of(conv(7, 3), (MAIN, "P5 P2"), (BUFFER, "P1 R1"))
        assert counts(cost, "Buf", "I").fills == 11
        assert cost.steps == 21

    def test_holes_of_a_strided_pointwise_convolution_are_not_words(self):
        cost = cost_of(conv(4, 1, stride=2), (MAIN, ""), (BUFFER, "P1"))
        assert counts(cost, "Main", "I").reads == 4

    def test_holes_of_dilation(self):
        # P = 2, R = 3, dilation 3: words 0 1 3 4 6 7; stepping P by 2 brings 2 3 5 6 8 9, of which 3 and 6 were held.
        cost = cost_of(conv(4, 3, dilation=3), (MAIN, "P2"), (BUFFER, "P1 R1"))
        assert counts(cost, "Buf", "I").fills == 6 + 4

    def test_bypass_reads_the_memory_beyond(self):
        cost = cost_of(conv(6, 3), (MAIN, "P2"), (BUFFER, "P1 R1", ("I", "O")))
        assert counts(cost, "Main", "W").reads == 18
        assert ("Buf", "W") not in cost.counts
        assert counts(cost, "Main", "I").reads == 8


class TestLanes:
    @pytest.mark.parametrize(("multicast", "reads"), [(True, 6), (False, 24)])
    def test_multicast_reads_once(self, multicast, reads):
        # I is 2 x 3 and wanted by all 4 lanes of N; W has 12 words, each wanted for both M.
        cost = cost_of(matmul(2, 4, 3), (MAIN, "M1 K1"), (Fanout("Fan", (4, 1), multicast=multicast), "N1"))
        assert counts(cost, "Main", "I").reads == reads
        assert counts(cost, "Main", "W").reads == 24
        assert cost.steps == 6
        # Outputs of lanes are different words: 24 updates, the first of each of 8 words from zero.
        assert counts(cost, "Main", "O") == Count(reads=16, fills=0, updates=24, drains=0)

    @pytest.mark.parametrize(("multicast", "reads"), [
        (True, (6, 12)), ("x", (24, 12)), ("y", (6, 24)), (False, (24, 24)), ((("weights", False),), (6, 24)),
        ((("I", False), ("inputs", True)), (24, 12)), ((("inputs", "x"), ("weights", "y")), (24, 24))])
    def test_multicast_by_tensor_and_side(self, multicast, reads):
        # Two lanes of M along X, four of N along Y, three steps. I (2 x 3) is wanted by all lanes along Y, W (4 x 3) by
        # those along X: 6 and 12 words where these share a read, 24 each where every lane reads for itself.
        cost = cost_of(matmul(2, 4, 3), (MAIN, "K1"), (Fanout("Fan", (2, 4), multicast=multicast), "M1 N1y"))
        assert (counts(cost, "Main", "I").reads, counts(cost, "Main", "W").reads) == reads

    @pytest.mark.parametrize(("reduce", "arrives"), [(True, (4, 0)), ("x", (8, 4)), ("y", (12, 8)), (False, (24, 20))])
    def test_sums_that_merge_along_one_side(self, reduce, arrives):
        # Six lanes of K for each of 4 outputs, three along X, two along Y: 24 partial sums arrive as 4, 8, 12 or 24
        # words, and the parent adds all but the first of each output.
        cost = cost_of(matmul(4, 1, 6), (MAIN, "M1"), (Fanout("Fan", (3, 2), reduce=reduce), "K2 K1y"))
        updates, reads = arrives
        assert counts(cost, "Main", "O") == Count(reads=reads, fills=0, updates=updates, drains=0)

    @pytest.mark.parametrize(("multicast", "reads"), [(True, 12), (False, 24)])
    def test_one_memory_for_all_lanes(self, multicast, reads):
        # Two lanes of M want the same 12 weights, from one register of 1 word: 12 fills, all read at Main, and 12 reads
        # where the array multicasts, else 24. Registers of their own would be filled with 24, 12 each.
        register = Memory("Reg", ("W",), AccessEnergy(1, 1, 1, 1), shared=("Fan.x",))
        levels = (MAIN, "K1 N1"), (Fanout("Fan", (2, 1), multicast=multicast), "M1"), (register, "")
        cost = cost_of(matmul(2, 4, 3), *levels)
        assert counts(cost, "Reg", "W") == Count(reads=reads, fills=12, updates=0, drains=0)
        assert counts(cost, "Main", "W").reads == 12
        own = cost_of(matmul(2, 4, 3), *levels[:2], (replace(register, shared=()), ""))
        assert counts(own, "Reg", "W") == Count(reads=24, fills=24, updates=0, drains=0)

    def test_lanes_that_abut_share_their_halo(self):
        # 4 lanes hold 3 words each, of 6 in all.
        cost = cost_of(conv(4, 3), (MAIN, ""), (Fanout("Fan", (4, 1)), "P1"), (BUFFER, "R1"))
        assert counts(cost, "Buf", "I").fills == 12
        assert counts(cost, "Main", "I").reads == 6

    def test_lanes_with_a_loop_between_are_counted_separately(self):
        # Lanes start at words 0, 2, 4, 6 and move on by one: 3 + 1 words each, none shared though some are the same.
        middle = Memory("Mid", ("W",), AccessEnergy(1, 1, 1, 1))
        cost = cost_of(conv(8, 3), (MAIN, ""), (Fanout("Fan", (4, 1)), "P2"), (middle, "P1"), (BUFFER, "R1"))
        assert counts(cost, "Buf", "I").fills == 16
        assert counts(cost, "Main", "I").reads == 16

    def test_ragged_lanes_count_what_they_hold(self):
        # P = 7 over lanes of 3, 3, 1: 5 + 5 + 3 words filled, 9 different ones read.
        cost = cost_of(conv(7, 3), (MAIN, ""), (Fanout("Fan", (3, 1)), "P3"), (BUFFER, "P1 R1"))
        assert counts(cost, "Buf", "I").fills == 13
        assert counts(cost, "Main", "I").reads == 9
        assert cost.steps == 9


class TestOutputs:
    def test_reduction_in_the_network(self):
        cost = cost_of(matmul(3, 1, 4), (MAIN, "M1"), (Fanout("Fan", (4, 1)), "K1"))
        assert counts(cost, "Main", "O") == Count(reads=0, fills=0, updates=3, drains=0)

    def test_combining_at_the_memory(self):
        # 4 lanes update each of 3 words; the first finds nothing there.
        cost = cost_of(matmul(3, 1, 4), (MAIN, "M1"), (Fanout("Fan", (4, 1), reduce=False), "K1"))
        assert counts(cost, "Main", "O") == Count(reads=9, fills=0, updates=12, drains=0)

    def test_partial_sums_go_to_one_of_the_reducing_lanes(self):
        # K = 4 as two rounds of two lanes, all M between: each of 6 visits evicts a word from both lanes, merged. The
        # second round reads 3 words back, for the first lane; its 3 accumulations there are the ones not from zero.
        levels = (MAIN, "K2 M1"), (Fanout("Fan", (2, 1)), "K1"), (BUFFER, "")
        cost = cost_of(matmul(3, 1, 4), *levels)
        assert counts(cost, "Main", "O") == Count(reads=3, fills=0, updates=6, drains=0)
        assert counts(cost, "Buf", "O") == Count(reads=3, fills=3, updates=12, drains=12)

    def test_nothing_is_delivered_where_the_parent_combines(self):
        levels = (MAIN, "K2 M1"), (Fanout("Fan", (2, 1), reduce=False), "K1"), (BUFFER, "")
        cost = cost_of(matmul(3, 1, 4), *levels)
        assert counts(cost, "Main", "O") == Count(reads=9, fills=0, updates=12, drains=0)
        assert counts(cost, "Buf", "O") == Count(reads=0, fills=0, updates=12, drains=12)

    def test_a_loop_that_does_not_concern_outputs_keeps_them_in_place(self):
        cost = cost_of(matmul(3, 1, 4), (MAIN, "M1 K2"), (BUFFER, "K1"))
        assert counts(cost, "Main", "O") == Count(reads=0, fills=0, updates=3, drains=0)
        assert counts(cost, "Buf", "O") == Count(reads=9, fills=0, updates=12, drains=3)

    def test_transposed_convolution(self):
        # Output words 2p + r, r < 3: 4 tiles of 3 words, 9 different ones; the 3 that overlap are read back.
        cost = cost_of(transposed(4, 3, 2), (MAIN, "P1"), (BUFFER, "R1"))
        assert counts(cost, "Main", "O") == Count(reads=3, fills=0, updates=12, drains=0)
        assert counts(cost, "Buf", "O") == Count(reads=3, fills=3, updates=12, drains=12)

    def test_transposed_convolution_merges_over_lanes_that_abut(self):
        cost = cost_of(transposed(4, 3, 2), (MAIN, ""), (Fanout("Fan", (4, 1)), "P1"), (BUFFER, "R1"))
        assert counts(cost, "Main", "O").updates == 9
        assert counts(cost, "Main", "O").reads == 0
        cost = cost_of(transposed(4, 3, 2), (MAIN, ""), (Fanout("Fan", (4, 1), reduce=False), "P1"), (BUFFER, "R1"))
        assert counts(cost, "Main", "O") == Count(reads=3, fills=0, updates=12, drains=0)


class TestCyclesAndEnergy:
    """All on the nest of `test_halo_brings_in_only_new_words`.

    Main reads 11 words and is updated with 6; Buf reads 48 and drains 6, takes in 11 and is updated with 18.
    """

    def cost(self, buffering="buffet", main=None, buffer=None, **machine):
        return cost_of(conv(6, 3), (replace(MAIN, **main or {}), "P2"),
                       (replace(BUFFER, buffering=buffering, **buffer or {}), "P1 R1"), **machine)

    def test_overlapped(self):
        # Ports: Main 11 and 6 cycles, Buf 54 / 3 and 29 / 2. Cold start: 3 + 4 words, 7 at Main, 4 at Buf.
        # Tail: 2 words, 1 cycle at Buf, 2 at Main.
        cost = self.cost(**RATES)
        assert (cost.steady_cycles, cost.ramp_cycles, cost.bottleneck) == (18, 7 + 2, "compute")
        assert (cost.traffic["Buf"].read_words, cost.traffic["Buf"].write_words) == (54, 29)
        assert (cost.traffic["Main"].cycles, cost.traffic["Buf"].cycles) == (11, 18)
        assert cost.utilisation == pytest.approx(18 / 27)

    def test_words_handed_on_are_waited_for_by_the_first_step_alone(self):
        # One word of each operand, 2 cycles at Main; the tail is as it was.
        cost = self.cost(main=RATES["main"], buffer=RATES["buffer"] | {"forwards": "words"})
        assert (cost.steady_cycles, cost.ramp_cycles) == (18, 2 + 2)

    def test_single_buffer_blocks(self):
        # Drains 6 / 3, fills 11 / 2 rounded up, added to 18 steps; nothing is left to ramp.
        cost = self.cost("single", **RATES)
        assert (cost.steady_cycles, cost.ramp_cycles) == (18 + 2 + 6, 0)

    def test_shared_port(self):
        cost = self.cost(buffer={"bandwidth": Bandwidth(shared=2)})
        assert (cost.steady_cycles, cost.bottleneck) == (42, "Buf")  # (54 + 29) / 2
        assert cost.ramp_cycles == 4 + 1

    def test_decimal_bandwidth_is_taken_as_written(self):
        assert self.cost(main={"bandwidth": Bandwidth(read=0.1)}).steady_cycles == 110

    def test_wide_words_count_by_their_bits(self):
        # I has 16 bits: Main reads 3 + 2 * 8 words of 8 bits; of 32 bits, a quarter.
        bits = (("inputs", 16), ("weights", 8), ("outputs", 8))
        assert self.cost(word_bits=bits).traffic["Main"].read_words == 19
        assert self.cost(main={"word_bits": 32}, word_bits=bits).traffic["Main"].read_words == 4.75

    def test_energy(self):
        cost = self.cost(compute=Compute(energy_pj_per_mac=0.5))
        assert cost.energy_by_component_pj == {
            "Main": 11 * 200 + 6 * 220, "Buf": 48 * 1 + 11 * 2 + 18 * 3 + 6 * 4, "MAC": 9.0}
        assert cost.energy_pj == 3520 + 148 + 9

    def test_blocks_round_up_for_each_tensor(self):
        # W 3 -> 4 and I 8 -> 8 read, O 6 -> 8 updated.
        assert self.cost(main={"block_words": 4}).energy_by_component_pj["Main"] == 12 * 200 + 8 * 220

    def test_leakage(self):
        cost = self.cost(main={"leakage_mw": 2.0}, compute=Compute(leakage_mw=1.0), frequency_mhz=500.0)
        assert cost.energy_by_component_pj["leakage"] == pytest.approx(3.0 * 18 / 500 * 1000)

    def test_network_energy_counts_what_each_instance_receives_or_sends(self):
        # The nest of TestOutputs: 2 lanes by 6 visits. Into Buf: W (one word per K) 4, I 12, O 3; out: O 12.
        fan = Fanout("Fan", (2, 1), network_energy_pj_per_word=0.5)
        cost = cost_of(matmul(3, 1, 4), (MAIN, "K2 M1"), (fan, "K1"), (BUFFER, ""))
        assert cost.energy_by_component_pj["Fan"] == 0.5 * (4 + 12 + 3 + 12)
        # Straight into compute: both operands and the eviction for each of 12; 3 partial sums delivered.
        cost = cost_of(matmul(3, 1, 4), (MAIN, "K2 M1"), (fan, "K1"))
        assert cost.energy_by_component_pj["Fan"] == 0.5 * (12 * 3 + 3)

    def test_busiest_instance(self):
        # Lanes of 3, 3, 1 outputs: the first holds 5 inputs, 3 weights; it reads 9 of each.
        buffer = replace(BUFFER, bandwidth=Bandwidth(write=1))
        cost = cost_of(conv(7, 3), (MAIN, ""), (Fanout("Fan", (3, 1)), "P3"), (buffer, "P1 R1"))
        assert cost.traffic["Buf"].write_words == 5 + 3 + 9
        assert cost.steady_cycles == 17


class TestErrors:
    def test_uncovered_dimension(self):
        with pytest.raises(InputError, match=r"must cover every dimension.*Got 'P: 2 left, R: 3 left'"):
            cost_of(conv(4, 3), (MAIN, "P2"))

    def test_unknown_dimension(self):
        with pytest.raises(InputError, match=r"mapping\.Main\.loops\[0\]: must loop over one of K, P, R; Got 'Q'"):
            cost_of(conv(4, 3), (MAIN, "Q1"))

    def test_step_below_one(self):
        with pytest.raises(InputError, match=r"mapping\.Main\.loops\[0\]: must have a positive step; Got 0"):
            cost_of(conv(4, 3), (MAIN, "P0"))

    def test_levels_of_another_machine(self):
        accelerator = Accelerator("machine", (MAIN,))
        with pytest.raises(InputError, match=r"must be the accelerator's levels Main; Got 'Other'"):
            walk(conv(1, 1), accelerator, Mapping((LevelLoops("Other"),)))

    def test_no_memory_keeps_a_tensor(self):
        with pytest.raises(InputError, match=r"mapping\.levels: must keep every tensor .* Got 'none keeps O'"):
            cost_of(conv(1, 1), (MAIN, "", ("W", "I")))

    def test_unknown_tensor_kept(self):
        with pytest.raises(InputError, match=r"mapping\.Main\.keeps: must be among W, I, O; Got 'Z'"):
            cost_of(conv(1, 1), (MAIN, "", ("W", "I", "O", "Z")))

    def test_too_large_to_walk(self):
        with pytest.raises(InputError, match="to be walked literally"):
            cost_of(matmul(1000, 1000, 1000), (MAIN, "M1 N1 K1"))

    def test_bandwidth_of_nothing(self):
        with pytest.raises(InputError, match=r"bandwidth_words_per_cycle\.read: must be from 1e-06.*Got 0"):
            cost_of(conv(1, 1), (replace(MAIN, bandwidth=Bandwidth(read=0)), ""))

    def test_role_without_a_width(self):
        with pytest.raises(InputError, match=r"machine\.word_bits.*Add outputs, the role of O"):
            cost_of(conv(1, 1), (MAIN, ""), word_bits=(("inputs", 8), ("weights", 8)))
