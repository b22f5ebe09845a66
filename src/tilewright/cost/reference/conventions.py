"""What other tools count differently: named assumptions, none of them made by our rules, and a preset for each tool."""

from dataclasses import dataclass, fields, replace

ASSUMPTIONS = {
    "hull_footprint": "tiles are bounding boxes: holes left by stride or dilation count as words (rule 1: they do not)",
    "identical_tile_multicast": "lanes share a read only where they are sent the same set of words; sets that overlap "
                                "are read in full each (rule 4: the union is read once where tiles abut)",
    "carried_window": "a tile is brought in only where it is new if it moved as at its last move, did not move, or "
                      "moves for the first time since it came in whole; any other move brings it in whole (rule 3: "
                      "only where the innermost advancing loop alone stepped forward)",
    "extrapolation": "of each temporal loop two iterations are walked, the second stands for all later ones, also as "
                     "the previous tile where the loop wraps (ours: every iteration)",
    "neighbour_links": "in a fully used array, words that a neighbour was sent at the visit before come from it and "
                       "not from the parent, where that spares the parent the read; the sender's memory reads them "
                       "once more (ours: all come from the parent)",
    "psum_fill_every_lane": "partial sums read back fill every lane that adds to them (rule 5: one lane takes them, "
                            "the others start from zero)",
    "nominal_cycles": "compute takes the product of all nominal iteration counts (rule 7: the real steps of the "
                      "busiest lane)",
    "averaged_lanes": "counts are averages over lanes, rounded, and totals are these times the mean number of busy "
                      "lanes, cut to a whole number (rule 7: the sum of what each lane really moves)",
    "bypass_scaling": "past a bypassed memory the parent's reads are what that memory would be asked for, over the "
                      "mean degree of multicast of its tiles (ours: lanes share at the memory that keeps the tensor)",
    "ragged_lane_renumbering": "in the last, smaller round of ragged loops lanes are numbered afresh without gaps, so "
                               "that one is compared with what another one held (ours: with its own last tile)",
    "ragged_first_touch_rounding": "the words that a lane ever holds are handed inward as a share of the parent's, cut "
                                   "to whole numbers (ours: what it really starts from zero)",
    "no_drain_reads": "a tile sent back to its parent costs the memory that held it no read (rule 8: a drain)",
}
"""What each assumption says, and what our rules say instead."""


@dataclass(frozen=True)
class Conventions:
    """Assumptions that part a tool's figures from our counting rules; see `ASSUMPTIONS`. None made: our rules.

    Those of Timeloop were found by replaying random mapped nests beside `timeloop-model` (input format 0.4).
    """

    hull_footprint: bool = False
    identical_tile_multicast: bool = False
    carried_window: bool = False
    extrapolation: bool = False
    neighbour_links: bool = False
    psum_fill_every_lane: bool = False
    nominal_cycles: bool = False
    averaged_lanes: bool = False
    bypass_scaling: bool = False
    ragged_lane_renumbering: bool = False
    ragged_first_touch_rounding: bool = False
    no_drain_reads: bool = False

    @property
    def made(self) -> tuple[str, ...]:
        """Names of the assumptions that are made."""
        return tuple(entry.name for entry in fields(self) if getattr(self, entry.name))

    def having(self, name: str, made: bool) -> "Conventions":
        """Return these conventions with one assumption made or dropped."""
        return replace(self, **{name: made})


TILEWRIGHT = Conventions()
TIMELOOP = Conventions(**dict.fromkeys(ASSUMPTIONS, True))

CONVENTIONS = {"tilewright": TILEWRIGHT, "timeloop": TIMELOOP}
"""Presets by the name of the tool."""
