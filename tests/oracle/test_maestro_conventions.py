"""MAESTRO's conventions beside a restatement of its published case analysis, on random dataflows of one cluster level.

The restatement follows the formulas of MAESTRO's source (github.com/maestro-project/maestro, commit 3bee2df:
DFA_iteration-analysis.hpp, CA_reuse-analysis.hpp, CA_cost-analysis-engine.hpp): every dimension is at its first, a
middle or its last tile, and each combination of these counts as often as it occurs. MAESTRO itself is not run.
"""

from dataclasses import dataclass
from itertools import product
from math import ceil, prod

import numpy as np
import pytest

from tilewright.cost.reference import ASSUMPTIONS, MAESTRO, MAESTRO_SOURCES, TILEWRIGHT, partings, replay, walk
from tilewright.interop import load_maestro

COUPLED = {"I": ("C", "Y", "X"), "W": ("K", "C", "R", "S"), "O": ("K", "Y", "X")}
KERNEL = {"Y": "R", "X": "S"}


@dataclass
class Map:
    """A directive on the input's dimensions: tile, offset, size of the dimension, and the lanes it spreads over."""

    name: str
    tile: int
    offset: int
    size: int
    lanes: int = 0

    @property
    def cases(self):
        """Positions with how often they occur: ("init" | "steady" | "edge", times)."""
        step = self.offset * max(1, self.lanes)
        reach = self.tile + self.offset * (max(1, self.lanes) - 1)
        steady = max(0, (self.size - reach) // step) if self.size > reach else 0
        found = [("init", 1)] + [("steady", steady)] * (steady > 0)
        return found + [("edge", 1)] * (self.size > reach + steady * step)

    @property
    def unrolled(self):
        return len(self.cases) == 1

    def busy(self, position):
        """Tiles of the lanes in use at a position: whole ones, and the last that may be smaller."""
        step = self.offset * self.lanes
        done = {"init": 0, "steady": 0, "edge": step * (1 + dict(self.cases).get("steady", 0))}[position]
        left = [self.size - done - lane * self.offset for lane in range(self.lanes)]
        least = self.tile - self.offset
        return [min(self.tile, rest) for rest in left if rest > least]

    def last(self):
        """The tile at the edge."""
        return self.size - self.offset * (1 + dict(self.cases).get("steady", 0))


def sent(maps, positions, tensor):
    """Words of an operand that the memory outside sends at a combination of positions."""
    moved = max((at for at, position in enumerate(positions) if position != "init"), default=None)
    first = moved is None
    if not first and maps[moved].name not in COUPLED[tensor]:
        return 0
    begun = not first and any(one.name in COUPLED[tensor] and not one.unrolled for one in maps[moved + 1:])
    words, lanes = 1, [1]
    for at, (one, position) in enumerate(zip(maps, positions, strict=True)):
        if one.name not in COUPLED[tensor]:
            continue
        fresh = min(one.tile, one.offset)
        if one.lanes:
            shared = not first and ((position == "init" and at > moved) or (at == moved and not begun))
            tiles = one.busy(position)
            lanes = tiles if not shared else [tiles[0], *(tile - one.tile + fresh for tile in tiles[1:])]
        elif at == moved and not begun:
            words *= fresh
        else:
            words *= one.tile
    return words * sum(lanes)


def drained(maps, positions):
    """Words of the output that come back at a combination of positions, and the longest lane's multiply-accumulates."""
    words, longest = 1, 1
    for one, position in zip(maps, positions, strict=True):
        kernel = next((other.tile for other in maps if other.name == KERNEL.get(one.name)), 1)
        tiles = one.busy(position) if one.lanes else [one.last() if position == "edge" else one.tile]
        outputs = [tile - kernel + 1 for tile in tiles]
        longest *= max(outputs)
        if one.name in COUPLED["O"]:
            words *= sum(outputs)
    return words, longest


def published(maps, bandwidth):
    """L2 reads of both operands, its updates, cycles of compute, and all cycles by MAESTRO's formulas."""
    reads, updates, steps, cycles = {"I": 0, "W": 0}, 0, 0, 0
    for chosen in product(*(one.cases for one in maps)):
        positions, times = [position for position, _ in chosen], prod(times for _, times in chosen)
        words, longest = drained(maps, positions)
        coming = {tensor: sent(maps, positions, tensor) for tensor in reads}
        for tensor in reads:
            reads[tensor] += times * coming[tensor]
        updates += times * words
        steps += times * longest
        ingress, egress = ceil(sum(coming.values()) / bandwidth), ceil(words / bandwidth)
        first = all(position == "init" for position in positions)
        cycles += longest + ingress if first else times * max(longest, ingress, egress)
    return reads, updates, steps, cycles


def random_maps(rng):
    """Directives in random order, tiles that fit; the kernel is not tiled, as MAESTRO asks of output positions."""
    sizes = {"K": int(rng.integers(1, 8)), "C": int(rng.integers(1, 6)), "R": int(rng.integers(1, 4)),
             "S": int(rng.integers(1, 4))}
    sizes |= {name: sizes[kernel] + int(rng.integers(0, 7)) for name, kernel in KERNEL.items()}
    maps = []
    for name, size in sizes.items():
        if name in KERNEL:
            positions = int(rng.integers(1, size - sizes[KERNEL[name]] + 2))
            maps.append(Map(name, positions + sizes[KERNEL[name]] - 1, positions, size))
        else:
            tile = size if name in "RS" else int(rng.integers(1, size + 1))
            maps.append(Map(name, tile, tile, size))
    order = [maps[at] for at in rng.permutation(len(maps))]
    spread = next(one for one in order if one.name not in "RS")
    spread.lanes = int(rng.integers(2, 5))
    if spread.unrolled:  # where no turns are taken, our mapping does not say where the map in space stood: outermost
        order = [spread, *(one for one in order if one is not spread)]
    return order


def loaded(maps, folder, bandwidth=8):
    network, hardware = folder / "net.m", folder / "hw.m"
    lines = "\n".join(f"{'SpatialMap' if one.lanes else 'TemporalMap'}({one.tile},{one.offset}) {one.name};"
                      for one in maps)
    sizes = ", ".join(f"{one.name}: {one.size}" for one in maps)
    network.write_text(f"Network n {{ Layer l {{ Type: CONV Dimensions {{ {sizes} }} Dataflow {{\n{lines}\n}} }} }}")
    hardware.write_text(f"num_pes: {max(one.lanes for one in maps)}\nnoc_bw_cstr: {bandwidth}\n")
    return load_maestro([network, hardware])


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(60))
def test_the_conventions_are_those_formulas(seed, tmp_path):
    rng = np.random.default_rng([seed, 1803])
    maps, bandwidth = random_maps(rng), int(rng.integers(1, 40))
    found = loaded(maps, tmp_path, bandwidth)
    assert not found.notes
    made = replay(found.operator, found.accelerator, found.mapping, MAESTRO)
    reads, updates, steps, cycles = published(maps, bandwidth)
    macs = found.operator.macs
    counts = {key: count for key, count in made.counts.items() if key[0] != "DRAM"}
    assert {name: counts["L2", name].total("reads") for name in reads} == reads
    assert {name: counts["L1", name].total("fills") for name in reads} == reads
    assert counts["L2", "O"].total("updates") == updates
    assert counts["L2", "O"].total("reads") == 0
    assert made.compute_cycles == steps
    assert made.cycles == cycles
    for name in ("I", "W", "O"):
        assert counts["L1", name].total("reads") == macs
    assert counts["L1", "O"].total("updates") == macs


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(6))
def test_every_figure_that_differs_names_an_assumption(seed, tmp_path):
    found = loaded(random_maps(np.random.default_rng([seed, 1])), tmp_path)
    parted = partings(found.operator, found.accelerator, found.mapping, MAESTRO)
    assert all(set(parting.assumptions) <= set(MAESTRO_SOURCES) for parting in parted)
    assert all(parting.assumptions for parting in parted if parting.differs)
    exact = walk(found.operator, found.accelerator, found.mapping)
    assert next(parting.ours for parting in parted if parting.place == ("", "", "compute_cycles")) == exact.steps


def test_the_preset_makes_assumptions_that_have_a_source():
    assert set(MAESTRO.made) == set(MAESTRO_SOURCES) <= set(ASSUMPTIONS)
    assert TILEWRIGHT.made == ()
