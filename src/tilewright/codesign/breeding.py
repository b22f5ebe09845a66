"""Jobs of a design: children of all layers on one machine, bred and scored in one go."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.pools import MappingPool, Pooling, Worth
from tilewright.codesign.problem import DesignProblem, Nests
from tilewright.cost import HardwareBatch
from tilewright.hardware import Accelerator, Number
from tilewright.jobs import Job
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search import Offspring

PARENTS, CUT = 48, 8
"""Mappings that children are bred from, at most, and as which of them the worst child is to be."""
OWN, LENT, MOST_LENT = 24, 2, 12
"""Among them of the same kept set, of each other layer, and of all other layers, at most."""
NEAR = 2.0
"""Machines whose numbers lie within this factor have bounds in common that only choose children."""


@dataclass(frozen=True)
class WantedChildren:
    """Children of a layer that are wanted: of which mappings, better than what, and with what memories keep."""

    layer: int
    parents: Nests | None
    cut: float
    count: int
    kept: int = 0


@dataclass(frozen=True)
class Breeder:
    """Breeds mappings of all layers of a problem; what serves all machines is made once."""

    problem: DesignProblem
    anew: bool = True
    """Whether kept sets are drawn that are neither known nor leading: each costs a program."""

    @cached_property
    def pooling(self) -> Pooling:
        """How children are pooled."""
        return Pooling(self.problem)

    def offspring(self, layer: int, kept: int) -> Offspring:
        """Return what breeds the mappings of a layer and kept set."""
        return self.problem.once(("offspring", layer, kept), lambda: Offspring(
            self.problem.map_space(layer, self.problem.widest, kept)))

    def wanted(self, pools: Sequence[MappingPool], counts: Sequence[int],  # noqa: PLR0913, PLR0917
               chosen: Mapping[Number, float], worth: Worth, rng: np.random.Generator,
               leading: Sequence[Sequence[int]] = ()) -> list[WantedChildren]:
        """Return so many children of each layer: of the best mappings known, first of those that fit a machine.

        Where energy counts, first come those by which memories keep the same, though others be better: a kept set is
        judged by what has grown in it. ``leading`` are kept sets of each layer that promise much.
        """
        prices = self.pooling.prices(chosen)
        values = [worth[0] * pool.latency + (worth[1] * pool.energy(prices)[:, 0] if worth[1] else 0.0)
                  for pool in pools]
        orders = [np.argsort(value, kind="stable") for value in values]
        fits = [self.pooling.fits(pool, chosen)[:, 0][order] for pool, order in zip(pools, orders, strict=True)]
        ranked = [(order[own], order[~own]) for order, own in zip(orders, fits, strict=True)]
        apart = self.problem.priced
        sets = [[*dict.fromkeys(pool.kept[best if apart else best[:PARENTS]].tolist())]
                for pool, (best, _) in zip(pools, ranked, strict=True)] or [[] for _ in counts]
        found = []
        for layer, count in enumerate(counts):
            if not count:
                continue
            kept = self.problem.drawn_set(layer, sets, rng, leading[layer] if leading else (), anew=self.anew)
            if not pools or not len(pools[layer]):
                found.append(WantedChildren(layer, None, np.inf, count, kept))
                continue
            best, others = ranked[layer]
            own = best[pools[layer].kept[best] == kept] if apart else best[:0]
            cut = max((float(values[layer][rows[:CUT][-1]]) for rows in (best, own) if len(rows)), default=np.inf)
            rows, nests = np.concatenate([best[:CUT], others[:PARENTS // 3], best[CUT:PARENTS]]), pools[layer].nests
            if apart:
                every = np.array([*dict.fromkeys([*own[:OWN].tolist(), *rows.tolist()])], dtype=np.intp)
                first, rest = np.split(every, [min(len(own), CUT)])
                parents = nests.take(first).joined(*self._lent(layer, kept, pools, ranked, rng), nests.take(rest))
            else:
                parents = nests.take(rows)
            found.append(WantedChildren(layer, parents, cut, count, kept))
        return found

    def _lent(self, layer: int, kept: int, pools: Sequence[MappingPool],
              ranked: Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]], rng: np.random.Generator) -> list[Nests]:
        """Return the best mappings of layers alike by which memories keep the same, their tiles cut to the layer.

        Layers are alike that have the same dimensions, of size 1 where the other's are: only so can ranks be mixed.
        """
        sizes = self.problem.layers[layer].sizes
        found = [pool.nests.take(best[pool.kept[best] == kept][:LENT])
                 for other, (pool, (best, _)) in enumerate(zip(pools, ranked, strict=True))
                 if other != layer and len(pool) and _alike(self.problem.layers[other].sizes, sizes)]
        if not found:
            return []
        every = Nests.joined(*found)
        every = every.take(rng.permutation(len(every))[:MOST_LENT])
        return [replace(every, steps=np.minimum(every.steps, np.array([*sizes.values()], dtype=np.int32)))]

    def job(self, wanted: Sequence[WantedChildren], chosen: Mapping[Number, float], worth: Worth,
            seed: tuple[int, ...], kept: bool = True) -> Job[Any]:
        """Return the job that breeds what is wanted of all layers on a machine; ``kept``, its value is plain data."""
        key = self._key(wanted, chosen, worth, seed) if kept else None
        return Job(key, bred, samples=lambda value: int(value["samples"]), received=_told if kept else None,
                   inputs=(self, tuple(wanted), dict(chosen), worth, seed))

    def _key(self, wanted: Sequence[WantedChildren], chosen: Mapping[Number, float], worth: Worth,
             seed: tuple[int, ...]) -> dict[str, object]:
        told = hashlib.sha256()
        for each in wanted:
            told.update(repr((each.layer, each.cut, each.count, each.kept)).encode())
            for part in vars(each.parents).values() if each.parents is not None else ():
                told.update(np.ascontiguousarray(part).tobytes())
        return {"problem": self.problem.identity, "machine": {".".join(of): value for of, value in chosen.items()},
                "worth": list(worth), "seed": list(seed), "wanted": told.hexdigest()[:24]}

    def children(self, wanted: WantedChildren, machine: Accelerator, near: Accelerator, worth: Worth,
                 rng: np.random.Generator) -> tuple[int, MappingBatch]:
        """Return the children wanted of a layer and their kept set; ``near`` as of `Offspring.children`.

        Memories without room for a word let it pass.
        """
        problem, kept = self.problem, self.problem.holding(wanted.layer, machine, wanted.kept)
        layout, offspring = problem.layout(wanted.layer, kept), self.offspring(wanted.layer, kept)
        ruled = offspring.space.arrays.ruled
        if ruled:  # what rules leave is another thing on each machine
            offspring, near = Offspring(problem.map_space(wanted.layer, machine, kept)), machine
        space: MapSpace = offspring.space
        parents = None if wanted.parents is None else wanted.parents.batch(layout)
        if ruled and parents is not None:
            parents = space.repair(parents.relaid(space.layout))
        found = offspring.children(machine, near, worth, parents, wanted.cut, wanted.count, rng)
        return kept, found.relaid(layout) if ruled else MappingBatch(layout, found.steps, found.ranks)

    def near(self, chosen: Mapping[Number, float], priced: bool) -> Accelerator:
        """Return a machine near one, of few. Capacities matter only where energy counts."""
        problem, widest, rounded = self.problem, self.problem.widest.numbers, {}
        for key, value in chosen.items():
            if not priced and key[1].startswith("capacity"):
                continue
            whole = NEAR ** round(np.log(value) / np.log(NEAR))
            one = problem.space.ranges[key]
            least = widest[key] if key[1] in ("x", "y") else problem.smallest[key]
            rounded[key] = float(one.value(one.place(min(max(whole, least), one.high))))
        return problem.once(("near", *rounded.items()), lambda: problem.machine(rounded))


def _alike(sizes: Mapping[str, int], others: Mapping[str, int]) -> bool:
    return [(name, size > 1) for name, size in sizes.items()] == [(name, size > 1) for name, size in others.items()]


def bred(breeder: Breeder, wanted: Sequence[WantedChildren], chosen: Mapping[Number, float], worth: Worth,
         seed: tuple[int, ...]) -> dict[str, Any]:
    """Return the children that are legal, by layer, and how many were wanted: each is a sample.

    Those that bounds rule out count as well, though they need no scoring.
    """
    pooling, machine, near = breeder.pooling, breeder.problem.machine(chosen), breeder.near(chosen, worth[1] > 0)
    prices, hardware = pooling.prices(chosen), HardwareBatch(base=machine)
    found: dict[int, MappingPool] = {}
    for each in wanted:
        kept, batch = breeder.children(each, machine, near, worth, np.random.default_rng((
            *seed, each.layer, *filter(None, [each.kept]))))
        if len(batch):
            pool = pooling.scored(each.layer, kept, batch, hardware, prices)
            found[each.layer] = found[each.layer].joined(pool) if each.layer in found else pool
    return {"layers": found, "samples": sum(each.count for each in wanted)}


def _told(value: dict[str, Any]) -> dict[str, Any]:
    """Return what was `bred` as plain data."""
    def text(part: NDArray[Any]) -> list[Any]:
        return [part.dtype.str, list(part.shape), base64.b64encode(np.ascontiguousarray(part).tobytes()).decode()]

    return value | {"layers": {str(layer): list(map(text, pool.arrays)) for layer, pool in value["layers"].items()}}


def children_of(value: Mapping[str, Any]) -> dict[int, MappingPool]:
    """Return the children that a job has bred, by layer."""
    if all(isinstance(pool, MappingPool) for pool in value["layers"].values()):
        return dict(value["layers"])  # which no keeper has seen

    def read(part: Sequence[Any]) -> NDArray[Any]:
        kind, shape, text = part
        return np.frombuffer(base64.b64decode(text), dtype=kind).reshape(shape).copy()

    return {int(layer): MappingPool(*(read(part) for part in parts)) for layer, parts in value["layers"].items()}
