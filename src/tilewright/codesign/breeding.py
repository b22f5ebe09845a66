"""Jobs of a design: children of all layers on one machine, bred and scored in one go."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.pools import MappingPool, Pooling, Worth
from tilewright.codesign.problem import DesignProblem, Nests
from tilewright.hardware import Accelerator, Number
from tilewright.jobs import Job
from tilewright.mapping import MapSpace
from tilewright.search import Offspring

PARENTS, CUT = 48, 8
"""Mappings that children are bred from, at most, and as which of them the worst child is to be."""
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
        if (layer, kept) not in self._bred:
            self._bred[layer, kept] = Offspring(self.problem.map_space(layer, self.problem.widest, kept))
        return self._bred[layer, kept]

    @cached_property
    def _bred(self) -> dict[tuple[int, int], Offspring]:
        return {}

    @cached_property
    def _known(self) -> dict[object, Accelerator]:
        return {}

    def wanted(self, pools: Sequence[MappingPool], counts: Sequence[int],  # noqa: PLR0913, PLR0917
               chosen: Mapping[Number, float], worth: Worth, rng: np.random.Generator,
               leading: Sequence[Sequence[int]] = ()) -> list[WantedChildren]:
        """Return so many children of each layer: of the best mappings known, first of those that fit a machine.

        ``leading`` are kept sets of each layer that promise much.
        """
        numbers = {key: np.array([value]) for key, value in chosen.items()}
        prices = self.pooling.prices(numbers)
        values = [worth[0] * pool.latency + (worth[1] * pool.energy(prices)[:, 0] if worth[1] else 0.0)
                  for pool in pools]
        orders = [np.argsort(value, kind="stable") for value in values]
        fits = [self.pooling.fits(pool, numbers)[:, 0][order] for pool, order in zip(pools, orders, strict=True)]
        sets = [[*dict.fromkeys(pool.kept[order[own][:PARENTS]].tolist())]
                for pool, order, own in zip(pools, orders, fits, strict=True)] or [[] for _ in counts]
        found = []
        for layer, count in enumerate(counts):
            if not count:
                continue
            kept = self.problem.drawn_set(layer, sets, rng, leading[layer] if leading else (), anew=self.anew)
            if not pools or not len(pools[layer]):
                found.append(WantedChildren(layer, None, np.inf, count, kept))
                continue
            best, others = (orders[layer][own][:most] for own, most in (
                (fits[layer], PARENTS), (~fits[layer], PARENTS // 3)))
            cut = float(values[layer][best[min(len(best), CUT) - 1]]) if len(best) else np.inf
            mixed = np.concatenate([best[:CUT], others, best[CUT:]])
            found.append(WantedChildren(layer, pools[layer].nests.take(mixed), cut, count, kept))
        return found

    def job(self, wanted: Sequence[WantedChildren], chosen: Mapping[Number, float], worth: Worth,
            seed: tuple[int, ...]) -> Job[Any]:
        """Return the job that breeds what is wanted of all layers on a machine."""
        told = hashlib.sha256()
        for each in wanted:
            told.update(repr((each.layer, each.cut, each.count, each.kept)).encode())
            for part in vars(each.parents).values() if each.parents is not None else ():
                told.update(np.ascontiguousarray(part).tobytes())
        key = {"problem": self.problem.identity, "machine": {".".join(of): value for of, value in chosen.items()},
               "worth": list(worth), "seed": list(seed), "wanted": told.hexdigest()[:24]}
        return Job(key, bred, samples=lambda value: int(value["samples"]),
                   inputs=(self, tuple(wanted), dict(chosen), worth, seed))

    def children(self, wanted: WantedChildren, machine: Accelerator, near: Accelerator, worth: Worth,
                 rng: np.random.Generator) -> Nests:
        """Return the children wanted of a layer; ``near`` as of `Offspring.children`.

        Memories without room for a word let it pass.
        """
        problem, kept = self.problem, self.problem.holding(wanted.layer, machine, wanted.kept)
        layout, offspring = problem.layout(wanted.layer, kept), self.offspring(wanted.layer, kept)
        ruled = offspring.space.arrays.ruled
        if ruled:  # what rules leave is another thing on each machine
            offspring, near = Offspring(problem.map_space(wanted.layer, machine, kept)), machine
        space: MapSpace = offspring.space
        parents = space.empty(0)
        if wanted.parents is not None:
            parents = wanted.parents.batch(layout).relaid(space.layout)
            parents = space.repair(parents) if ruled else parents
        return Nests.of(offspring.children(machine, near, worth, parents, wanted.cut, wanted.count, rng).relaid(
            layout), kept)

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
        of = tuple(rounded.items())
        if of not in self._known:
            self._known[of] = problem.machine(rounded)
        return self._known[of]


def bred(breeder: Breeder, wanted: Sequence[WantedChildren], chosen: Mapping[Number, float], worth: Worth,
         seed: tuple[int, ...]) -> dict[str, Any]:
    """Return the children that are legal, as `taken` reads them, and how many were scored."""
    pooling, machine, near = breeder.pooling, breeder.problem.machine(chosen), breeder.near(chosen, worth[1] > 0)
    prices = pooling.prices({key: np.array([one]) for key, one in chosen.items()})
    found: dict[int, MappingPool] = {}
    for each in wanted:
        nests = breeder.children(each, machine, near, worth, np.random.default_rng((
            *seed, each.layer, *filter(None, [each.kept]))))
        pool = pooling.pool(each.layer, nests, machine, prices)
        found[each.layer] = found.get(each.layer, pool.take(pool.latency < 0)).joined(pool, prices)
    return {"layers": {str(layer): [_told(part) for part in pool.parts] for layer, pool in found.items()},
            "samples": sum(each.count for each in wanted)}


def _told(part: NDArray[Any]) -> list[Any]:
    """Return an array as plain data."""
    return [part.dtype.str, list(part.shape), base64.b64encode(np.ascontiguousarray(part).tobytes()).decode()]


def taken(value: Mapping[str, Any]) -> dict[int, MappingPool]:
    """Return the children that a job has bred, by layer."""
    def read(part: Sequence[Any]) -> NDArray[Any]:
        kind, shape, text = part
        return np.frombuffer(base64.b64decode(text), dtype=kind).reshape(shape).copy()

    return {int(layer): MappingPool(*(read(part) for part in parts)) for layer, parts in value["layers"].items()}
