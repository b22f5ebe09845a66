"""What other tools count differently: named assumptions, none of them made by our rules, and a preset for each tool."""

from dataclasses import dataclass

from tilewright.cost.records import Assumptions

ASSUMPTIONS = {
    "hull_footprint": "tiles are bounding boxes: holes left by stride or dilation count as words (rule 1: they do not)",
    "identical_tile_multicast": "lanes share a read only where they are sent the same set of words; sets that overlap "
                                "are read in full each (rule 4: the union is read once where tiles abut)",
    "carried_window": "a tile is brought in only where it is new if it moved as at its last move, did not move, or "
                      "moves for the first time since it came in whole; any other move brings it in whole (rule 3: "
                      "only where the innermost advancing loop alone stepped forward)",
    "extrapolation": "of each temporal loop two iterations are walked, the second stands for all later ones, also as "
                     "the previous tile where the loop wraps; the last one is walked too where loops inside it have a "
                     "remainder, but its tile is charged as the second's if no array lies between (ours: every "
                     "iteration)",
    "copied_lanes": "all lanes are copies of the first, full one, moved to their places (rule 7: partial tiles count "
                    "what they really hold)",
    "neighbour_links": "words that a neighbour was sent at the visit before come from it and not from the parent, "
                       "where that spares the parent the read; the sender's memory reads them once more; busy lanes "
                       "lie along the rows of the array without gaps (ours: all come from the parent)",
    "psum_fill_every_lane": "partial sums read back fill every lane that adds to them (rule 5: one lane takes them, "
                            "the others start from zero)",
    "nominal_cycles": "compute takes the product of all nominal iteration counts (rule 7: the real steps of the "
                      "busiest lane)",
    "averaged_lanes": "counts are averages over lanes, rounded, and totals are these times the mean number of busy "
                      "lanes, cut to a whole number; words from neighbours are averaged over that number "
                      "(rule 7: the sum of what each lane really moves)",
    "bypass_scaling": "past a bypassed memory the parent's reads are what that memory would be asked for, over the "
                      "mean degree of multicast of its tiles (ours: lanes share at the memory that keeps the tensor)",
    "ragged_lane_renumbering": "in the last, smaller round of ragged loops lanes are numbered afresh without gaps, so "
                               "that one is compared with what another one held (ours: with its own last tile)",
    "ragged_first_touch_rounding": "the words that a lane ever holds are handed inward as a share of the parent's, cut "
                                   "to whole numbers (ours: what it really starts from zero)",
    "rates_in_doubles": "a port slows the compute by the share of the words of a cycle that it cannot move, in double "
                        "precision, which can make it a cycle more; words of each tensor are rounded up (rule 8: all "
                        "words over the bandwidth, exactly)",
    "whole_blocks": "behind arrays too an access moves a whole block, of all instances of a cluster, however few of "
                    "them are used (ours: words count one by one there)",
    "leakage_in_use": "memories leak where they are used, compute units not at all (rule 9: all instances leak)",
    "no_drain_reads": "a tile sent back to its parent costs the memory that held it no read (rule 8: a drain)",
    "cluster_buffers": "clusters of the outermost level hold their tiles, so that words are sent to them once a step "
                       "of the loops outside (ours: places between arrays that keep nothing hold nothing)",
    "shared_at_restart": "lanes whose windows overlap share words only where their array moves on or begins again; "
                         "else each is sent its own (rule 4: they share wherever tiles abut)",
    "free_wrap": "where a loop that an operand does not use steps forward nothing is sent, though loops inside it "
                 "begin again (rule 2: they bring their first tile in anew)",
    "full_edge_tiles": "the last, smaller tile of a temporal loop is sent as if it were full (rule 7: what it holds)",
    "outputs_every_step": "outputs are sent to the parent at every step of the loops outside, also where the same tile "
                          "stays (rule 2: when it changes)",
    "no_psum_reads": "partial sums are never read back from the parent (rule 5: those that it holds are)",
    "psum_read_every_mac": "the innermost memory reads a partial sum for every multiply-accumulate (rule 6: not for "
                           "the first of a sum that starts from zero)",
    "one_fill_for_all_lanes": "operands are filled as often as the parent reads them, one write for all lanes that "
                              "share a word (rule 4: one in each lane)",
    "lockstep_steps": "at every step all lanes take as long as the busiest (rule 7: each lane works through its own)",
    "stepwise_transfers": "every step takes the longer of its compute and its transfers, and the first transfer comes "
                          "before all compute (rule 8: the larger of all compute and all transfers)",
}
"""What each assumption says, and what our rules say instead."""

_ENGINE, _REUSE = "CA_cost-analysis-engine.hpp", "CA_reuse-analysis.hpp"
MAESTRO_SOURCES = {
    "no_drain_reads": f"{_ENGINE}: reads of the buffer below are those of its multiply-accumulates",
    "cluster_buffers": "API_user-interface-v2.hpp: accesses of L2 and L1 are those above and below the outermost level",
    "shared_at_restart": f"{_REUSE}, GetPEIngressVolume: unique words of the other lanes where the spatial map resets",
    "free_wrap": f"{_REUSE}, GetPEIngressVolume: nothing unless the innermost dimension that moved is the tensor's",
    "full_edge_tiles": f"{_REUSE}, GetPEIngressVolume: the position Edge of a temporal map brings the whole tile",
    "outputs_every_step": f"{_REUSE}, GetSpatialEgressTraffic: no test of whether the tile moved",
    "no_psum_reads": f"{_ENGINE}: reads of the buffer above are those of input tensors",
    "psum_read_every_mac": f"{_ENGINE}: one read and one write of the buffer below for each partial sum",
    "one_fill_for_all_lanes": f"{_ENGINE}: writes of the buffer below become the reads of the one above",
    "lockstep_steps": f"{_ENGINE}: the delay of a step is the longest of its clusters",
    "stepwise_transfers": f"{_ENGINE}: outstanding_delay, summed over steps",
}
"""Where MAESTRO (github.com/maestro-project/maestro, commit 3bee2df) makes each assumption of its preset."""


@dataclass(frozen=True)
class Conventions(Assumptions):
    """Assumptions that part a tool's figures from our counting rules; see `ASSUMPTIONS`. None made: our rules.

    Those of Timeloop were found by replaying random mapped nests beside `timeloop-model` (input format 0.4). Those of
    MAESTRO were read in its published source (`MAESTRO_SOURCES`) and not run beside it; they are about what the memory
    outside the arrays exchanges with what is inside them, all that MAESTRO counts.
    """

    hull_footprint: bool = False
    identical_tile_multicast: bool = False
    carried_window: bool = False
    extrapolation: bool = False
    copied_lanes: bool = False
    neighbour_links: bool = False
    psum_fill_every_lane: bool = False
    nominal_cycles: bool = False
    averaged_lanes: bool = False
    bypass_scaling: bool = False
    ragged_lane_renumbering: bool = False
    ragged_first_touch_rounding: bool = False
    rates_in_doubles: bool = False
    whole_blocks: bool = False
    leakage_in_use: bool = False
    no_drain_reads: bool = False
    cluster_buffers: bool = False
    shared_at_restart: bool = False
    free_wrap: bool = False
    full_edge_tiles: bool = False
    outputs_every_step: bool = False
    no_psum_reads: bool = False
    psum_read_every_mac: bool = False
    one_fill_for_all_lanes: bool = False
    lockstep_steps: bool = False
    stepwise_transfers: bool = False

TILEWRIGHT = Conventions()
TIMELOOP = Conventions(**dict.fromkeys(
    ("hull_footprint", "identical_tile_multicast", "carried_window", "extrapolation", "copied_lanes",
     "neighbour_links", "psum_fill_every_lane", "nominal_cycles", "averaged_lanes", "bypass_scaling",
     "ragged_lane_renumbering", "ragged_first_touch_rounding", "rates_in_doubles", "whole_blocks", "leakage_in_use",
     "no_drain_reads"), True))
MAESTRO = Conventions(**dict.fromkeys(MAESTRO_SOURCES, True))

CONVENTIONS = {"tilewright": TILEWRIGHT, "timeloop": TIMELOOP, "maestro": MAESTRO}
"""Presets by the name of the tool."""
