"""Optimisers that know numbers alone, as design methods: the baselines of figure 6.6, and others of `MAPPERS`."""

from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import require_extra
from tilewright.codesign.designs import DESIGNERS
from tilewright.codesign.limits import Floats
from tilewright.codesign.methods.decoding import NeededDesigns, evenly
from tilewright.codesign.problem import Nests
from tilewright.codesign.session import Scores, Session
from tilewright.search import MAPPERS, BlackBox, MapperOptions, Optimiser, Options, Problem, VectorSpace, read_options

REFUSED = 700.0
"""Loss of every design that breaks a limit, where these are not ranked: above all logarithms of scores."""
ABREAST = 256
"""Designs scored at once, at most."""
KEPT = 0.5
"""Numbers above this let a tensor pass a memory."""
FIGURES = 3
"""Losses of optimisers that search fronts: cycles, picojoules, area."""


class DesignVectors:
    """Designs as points of the unit cube: a number for each gene, then those of every layer's mapping and kept set.

    Of the latter there is one for each memory and tensor, which passes where it is above a half.
    """

    def __init__(self, designs: NeededDesigns) -> None:
        self.designs = designs
        self.spaces = [VectorSpace(space) for space in designs.spaces]
        self.pairs = [len(kept.open) for kept in designs.problem.kept]
        self.ends = len(designs.genes) + np.cumsum([0, *(space.dimension + pairs for space, pairs in zip(
            self.spaces, self.pairs, strict=True))])

    @property
    def dimension(self) -> int:
        """Numbers of a point."""
        return int(self.ends[-1])

    def decode(self, points: Floats) -> tuple[dict[Any, Floats], list[Nests]]:
        """Return the machines and mappings of ``(b, n)`` points; genes are even in their logarithm."""
        shares = np.clip(points[:, :len(self.designs.genes)], 0.0, 1.0)
        chosen = {key: self.designs.between(key, shares[:, at]) for at, key in enumerate(self.designs.genes)}
        lanes = self.designs.lanes(chosen, len(points))
        batches, kept = [], []
        for layer, space in enumerate(self.spaces):
            own = points[:, self.ends[layer]:self.ends[layer + 1]]
            batches.append(self.designs.cut(layer, space.decode(own[:, :space.dimension]), lanes))
            kept.append((own[:, space.dimension:] > KEPT) @ (1 << np.arange(self.pairs[layer])))
        return self.designs.complete(chosen, batches, kept=kept)


class DesignGenes:
    """Designs as points of the unit cube by DiGamma's encoding (figure 6.3), with all levels: a number for each gene.

    After those of the hardware, of each layer: the dimension that each level spreads, the units of all but the
    outermost, tiles, none larger than that of the level outside, and places in the order of loops.
    """

    def __init__(self, designs: NeededDesigns) -> None:
        self.designs = designs
        (layers, width), depth = designs.sizes.shape, designs.depth
        of_levels = np.ones((layers, 2 * depth - 1), dtype=np.bool_)
        self.live = np.concatenate([of_levels, np.tile(designs.sizes > 1, 2 * depth)], axis=1)
        """``(l, k)``: which numbers there are: none for dimensions of size 1."""
        self.ends = depth, 2 * depth - 1, 2 * depth - 1 + depth * width

    @property
    def dimension(self) -> int:
        """Numbers of a point."""
        return len(self.designs.genes) + int(self.live.sum())

    def decode(self, points: Floats) -> tuple[dict[Any, Floats], list[Nests]]:
        """Return the machines and mappings of ``(b, n)`` points; tiles and units are even in their logarithm."""
        designs, values, first = self.designs, np.clip(points, 0.0, 1.0), len(self.designs.genes)
        chosen = {key: designs.between(key, values[:, at]) for at, key in enumerate(designs.genes)}
        genes = np.full((len(points), *self.live.shape), 0.5)
        genes[:, self.live] = values[:, first:]
        along, units, tiles, keys = np.split(genes, self.ends, axis=2)
        tiles, keys = (part.reshape(*part.shape[:2], designs.depth, -1) for part in (tiles, keys))
        sizes, active = np.broadcast_to(designs.sizes[:, None], tiles.shape), designs.active[:, None]
        tiles = np.minimum.accumulate(evenly(tiles, sizes), axis=2)
        outside = np.concatenate([sizes[:, :, :1], tiles[:, :, :-1]], axis=2)
        parallel = np.minimum((along * active).astype(np.int64), active - 1)
        parallel = np.take_along_axis(designs.order[None], parallel, axis=2)
        spread = np.take_along_axis(outside, parallel[..., None], axis=3)[..., 0]
        units = np.concatenate([spread[:, :, :1], evenly(units, spread[:, :, 1:])], axis=2)
        parts = np.full(keys.shape[:2], designs.depth), parallel, units, tiles, keys.argsort(axis=3).argsort(axis=3)
        return designs.decoded(chosen, [part.reshape(-1, *part.shape[2:]) for part in parts])


class VectorDesigner:
    """Lets an optimiser search designs as points."""

    def __init__(self, session: Session, box: BlackBox, given: Any) -> None:
        self.session, self.box, self.given = session, box, given

    def steps(self) -> Iterator[None]:
        """Score what it proposes, and tell it, until there are no samples left for one design more."""
        session, layers = self.session, len(self.session.problem.layers)
        vectors = (DesignGenes if self.given.genes else DesignVectors)(NeededDesigns(session.problem))
        samples = None if session.samples is None else session.samples // layers
        optimiser: Optimiser = self.box.build(self.given, Problem(
            vectors.dimension, session.seed % 2**32, samples, FIGURES if self.box.metrics else 1))
        while session.left >= layers:
            points = np.asarray(optimiser.ask(), dtype=np.float64)
            losses = []
            for first in range(0, len(points), ABREAST):
                part = points[first:first + int(min(ABREAST, session.left // layers))]
                if len(part):
                    losses.append(self.losses(session.score(*vectors.decode(part))))
                    yield
            if sum(map(len, losses)) < len(points):
                return
            optimiser.tell(np.concatenate(losses))

    def losses(self, scores: Scores) -> NDArray[np.float64]:
        """Return ``(b)``, or ``(b, m)`` for fronts: logarithms, and what limits refuse after all others."""
        values, figures = scores.score[:, None], scores.figures
        if self.box.metrics:
            values = np.stack([figures.latency_cycles, figures.energy_pj, figures.area_um2], axis=1)
        refused = REFUSED + (np.log1p(scores.excess)[:, None] if self.given.ranked else 0.0)
        with np.errstate(divide="ignore"):
            found = np.where(np.isfinite(scores.score)[:, None], np.log(np.maximum(values, 1e-300)), refused)
        return found if self.box.metrics else found[:, 0]


@dataclass(frozen=True)
class BoxDesigner:
    """A `BlackBox` as a member of `DESIGNERS`. Its options are those of the mapper, ``ranked`` and ``genes``.

    Designs that break a limit are all alike to the optimiser, as in DiGamma's comparison (6.1.2); with ``ranked`` they
    stand by how far they break it.
    """

    box: BlackBox

    @property
    def extra(self) -> str:
        """The extra of the package that it cannot do without, if any."""
        return self.box.extra

    @cached_property
    def options_type(self) -> type[Any]:
        """Those of the mapper, and of how designs are read and ranked."""
        return make_dataclass("PointOptions", [
            ("ranked", Annotated[bool, "Whether designs that break a limit are ranked by how far, or are all "
                                       "alike."], False),
            ("genes", Annotated[bool, "Whether points are read as DiGamma's genes (figure 6.3), by which each level "
                                      "spreads one dimension; or as any mappings, whatever memories keep."], False),
        ], bases=(self.box.options_type,), frozen=True)

    def __call__(self, session: Session, options: Options) -> VectorDesigner:
        """Return a designer; an `InputError` if an option is wrong or the extra is not installed."""
        given: Any = read_options(self.options_type, options, self.box.name)
        require_extra(self.extra, "design method", self.box.name)
        return VectorDesigner(session, self.box, given)


class Draws:
    """Points drawn evenly, which learns nothing."""

    def __init__(self, options: MapperOptions, problem: Problem) -> None:
        self.rng, self.dimension = np.random.default_rng(problem.seed), problem.dimension

    def ask(self) -> NDArray[np.float64]:
        """Draw points."""
        return self.rng.random((ABREAST, self.dimension))

    def tell(self, losses: NDArray[np.float64]) -> None:
        """Learn nothing."""


BOXES = [BlackBox("random", MapperOptions, Draws), *(
    member for member in (MAPPERS.get(name) for name in MAPPERS) if isinstance(member, BlackBox))]
for _designer in map(BoxDesigner, BOXES):
    DESIGNERS.register(_designer.box.name, _designer.options_type)(_designer)
