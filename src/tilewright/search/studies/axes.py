"""Which axis of a mapping matters: tile sizes, loop orders or parallelism, alone and together."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from tilewright.base import InputError
from tilewright.jobs import Runner
from tilewright.mapping import Bounds, Constraints, Mapping, MappingBatch, MapSpace, full_keeps, written_out
from tilewright.search.objective import BREAKS_CONSTRAINT, Scorer
from tilewright.search.run import generator
from tilewright.search.scoring import model_of
from tilewright.search.studies.contest import Contender, Contest
from tilewright.search.studies.holding import Terms, Turn, contest

AXES = ("tile", "order", "parallelism")
OWN = 1
"""Child of a seed for what a study draws itself, apart from what mappers draw."""

_DRAWS, _DRAWN = 200, 512


def axis_sets() -> list[tuple[str, ...]]:
    """Return all sets of axes but the empty one: each alone first, all together last."""
    return [chosen for count in range(1, len(AXES) + 1) for chosen in combinations(AXES, count)]


def label(axes: Iterable[str]) -> str:
    """Return the name of a set of axes, for example ``tile+order``."""
    return "+".join(axes)


def axis_space(space: MapSpace, base: MappingBatch, free: Iterable[str]) -> MapSpace:
    """Return the mappings of ``space`` that differ from one mapping in some axes only.

    *Tile*: what each memory holds of every dimension. *Order*: the loop order at every memory. *Parallelism*: which
    dimensions spread along each side of an array; with fixed tiles also by how many lanes, with free ones the lanes
    follow from the tiles. (In spaces of imperfect tiling the last lane of a fixed spread may still be less full.)

    Parameters
    ----------
    base
        One mapping, in the layout of ``space``.
    free
        Of `AXES`.

    Raises
    ------
    InputError
        If an axis is unknown, or the mapping is of another layout.
    """
    free = tuple(free)
    unknown = [axis for axis in free if axis not in AXES]
    if unknown:
        raise InputError("axes", f"must be among {', '.join(AXES)}", unknown)
    if base.layout != space.layout or len(base) != 1:
        raise InputError("mapping", "must be one of the space's layout, with one loop over a dimension at a level",
                         str(base.layout.shape))
    sizes = np.array(list(space.operator.sizes.values()))
    outside = np.vstack([sizes, base.steps[:-1, :, 0]])
    slots = list(zip(space.layout.places, space.layout.slots, strict=True))
    memories = [(s, place) for s, (place, slot) in enumerate(slots) if slot.axis == "T"]
    sides = [(s, place) for s, (place, slot) in enumerate(slots) if slot.axis != "T"]
    names = space.layout.dimensions
    fixed: dict[str, Any] = {}
    if "order" not in free:
        fixed["orders"] = {place: (_order_at(space, place, [names[d] for d in np.argsort(base.ranks[s, :, 0])],
                                             set(np.array(names)[outside[s] > base.steps[s, :, 0]])),)
                           for s, place in memories}
    if "tile" not in free:
        fixed["tiles"] = {place: _exactly(names, outside[s]) for s, place in memories[1:]}
    if "parallelism" not in free:
        counts = -(-outside // base.steps[:, :, 0])
        if "tile" in free:
            fixed["loops"] = {place: tuple(name for name, count in zip(names, counts[s], strict=True) if count > 1)
                              for s, place in sides}
        else:
            fixed["factors"] = {place: _exactly(names, counts[s]) for s, place in sides}
    return space & MapSpace(space.operator, space.accelerator, space.tiling, Constraints(**fixed))


def _order_at(space: MapSpace, place: str, order: Sequence[str], loops: set[str]) -> tuple[str, ...]:
    """Return the order of a memory's loops, where the space restricts orders the one allowed that it follows.

    That differs from it only where dimensions of size 1 stand, or others that do not loop there.
    """
    allowed = written_out(space.constraints.orders.get(place, ()), space.layout.dimensions)
    active = {name for name, size in space.operator.sizes.items() if size > 1}
    for kept in (active, loops):
        for each in allowed:
            if [name for name in each if name in kept] == [name for name in order if name in kept]:
                return each
    return tuple(order)


def _exactly(names: Sequence[str], values: Iterable[int]) -> dict[str, Bounds]:
    return {name: Bounds(int(value), int(value)) for name, value in zip(names, values, strict=True)}


def base_mapping(space: MapSpace, seed: int) -> MappingBatch:
    """Return a random mapping of the space that fits the memories, as a batch of one.

    Raises an `InputError` if hardly any draw fits.
    """
    rng = generator((seed, OWN))
    for _ in range(_DRAWS):
        drawn = space.sample(rng, _DRAWN)
        found = np.flatnonzero(space.fits(drawn))
        if len(found):
            return drawn.take(found[:1])
    raise InputError(f"{space.operator.name}.mapping", "must be found among random ones", f"none in {_DRAWS * _DRAWN}",
                     "Give a mapping to begin from")


def given_mapping(space: MapSpace, mapping: Mapping) -> tuple[MapSpace, MappingBatch]:
    """Return a mapping as a batch of one, and the space with what it keeps in each memory.

    Raises an `InputError` if it loops twice over a dimension at one level, or is not one of the space, or does not fit
    the memories.
    """
    kept = full_keeps(mapping, space.operator, space.accelerator)
    space = space & MapSpace(space.operator, space.accelerator, space.tiling, Constraints(keeps=kept))
    batch = MappingBatch.from_mappings([mapping], space.operator, space.accelerator)
    if batch.layout != space.layout:
        raise InputError("mapping", "must loop once at most over a dimension at a level, to be studied by axes",
                         str(mapping))
    if not (space.contains(batch)[0] and space.fits(batch)[0]):
        raise InputError("mapping", "must be one of the map space, and fit the memories", str(mapping),
                         "tilewright evaluate tells what is wrong with it")
    return space, batch


@dataclass(frozen=True)
class AxisStudy:
    """What exploring some axes alone gains over fixed mappings."""

    contest: Contest
    """One contender for each set of axes, named by `label`."""
    bases: tuple[float, ...]
    """Score of the mapping that each seed began from."""
    mapper: str
    """What searched, with its options."""

    def gains(self, axes: Iterable[str]) -> list[float]:
        """Return, for each seed, log10 of the score begun from over the best score; at least 0."""
        axes = tuple(axes)
        if not axes:
            return [0.0] * len(self.bases)
        return [math.log10(base / min(base, attempt.score))
                for base, attempt in zip(self.bases, self.contest.of(label(axes)), strict=True)]

    def alone(self, axis: str) -> list[float]:
        """Return, for each seed, the gain of one axis alone as a share of that of all."""
        return [_over(gain, whole) for gain, whole in zip(self.gains([axis]), self.gains(AXES), strict=True)]

    def fixed(self, axis: str) -> list[float]:
        """Return, for each seed, what of the gain of all axes is lost where this one alone is fixed."""
        others = self.gains([other for other in AXES if other != axis])
        return [_over(whole - rest, whole) for rest, whole in zip(others, self.gains(AXES), strict=True)]

    def shares(self, axis: str) -> list[float]:
        """Return, for each seed, the axis's share of the gain of all: its mean gain over all orders of freeing them.

        The shares of all axes add up to one (Shapley, A Value for n-Person Games, 1953).
        """
        gains = {frozenset(chosen): self.gains(chosen) for chosen in [(), *axis_sets()]}
        others = [other for other in AXES if other != axis]
        found = []
        for turn, whole in enumerate(gains[frozenset(AXES)]):
            value = 0.0
            for count in range(len(others) + 1):
                for chosen in combinations(others, count):
                    weight = 1 / (len(AXES) * comb(len(others), count))
                    value += weight * (gains[frozenset({*chosen, axis})][turn] - gains[frozenset(chosen)][turn])
            found.append(_over(value, whole))
        return found


def study_axes(space: MapSpace, mapper: str | Contender = "gamma", terms: Terms | None = None,
               mapping: Mapping | None = None, runner: Runner | None = None) -> AxisStudy:
    """Explore every set of axes with the others fixed, from a given mapping or from a random one for each seed.

    Any mapper will do: what is fixed is left out of its map space (`axis_space`). Every search begins from the fixed
    mapping.

    Raises an `InputError` if something that was given is wrong, or no mapping fits.
    """
    terms = terms or Terms()
    contender = mapper if isinstance(mapper, Contender) else Contender.parse(mapper)
    given = None
    if mapping is not None:
        space, given = given_mapping(space, mapping)
    bases = {seed: given if given is not None else base_mapping(space, seed) for seed in terms.turns}
    entrants = {axes: Contender(label(axes), contender.mapper, contender.options) for axes in axis_sets()}
    rounds = [[Turn(entrant, seed, axis_space(space, base, axes), base) for axes, entrant in entrants.items()]
              for seed, base in bases.items()]
    found = contest(space, rounds, terms, runner)
    scorer, model = Scorer(terms.goal, space.operator, space.accelerator), model_of(space, terms.goal)
    scores = {seed: float(scorer.scores(model.score(base))[0]) for seed, base in bases.items()}
    return AxisStudy(found, tuple(scores[seed] if scores[seed] < BREAKS_CONSTRAINT else math.inf
                                  for seed in found.seeds), contender.name)


def _over(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
