"""Jobs of a design: children of all layers on one machine, bred and scored in one go."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.limits import Floats
from tilewright.codesign.pools import MappingPool, Pooling, Worth, batch_of
from tilewright.codesign.problem import DesignProblem
from tilewright.hardware import Accelerator, Number
from tilewright.jobs import Job
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search import Offspring

PARENTS, CUT = 48, 8
"""Mappings that children are bred from, at most, and as which of them the worst child is to be."""
NEAR = 2.0
"""Machines whose numbers lie within this factor have bounds in common that only choose children."""


@dataclass(frozen=True)
class WantedChildren:
    """Children of a layer that are wanted: of which mappings ``(n, s, d)``, steps and ranks, and better than what."""

    layer: int
    parents: tuple[NDArray[np.int32], NDArray[np.int8]] | None
    cut: float
    count: int

    @classmethod
    def of(cls, layer: int, pool: MappingPool, value: Floats, fits: NDArray[np.bool_], count: int) -> "WantedChildren":
        """Return children of the best mappings of a pool: by ``value`` ``(n)``, first of those that fit a machine."""
        order = np.argsort(value, kind="stable")
        best, others = order[fits[order]][:PARENTS], order[~fits[order]][:PARENTS // 3]
        cut = float(value[best[min(len(best), CUT) - 1]]) if len(best) else np.inf
        mixed = np.concatenate([best[:CUT], others, best[CUT:]])
        return cls(layer, (pool.steps[mixed], pool.ranks[mixed]) if len(mixed) else None, cut, count)


@dataclass(frozen=True)
class Breeder:
    """Breeds mappings of all layers of a problem; what serves all machines is made once."""

    problem: DesignProblem

    @cached_property
    def pooling(self) -> Pooling:
        """How children are pooled."""
        return Pooling(self.problem)

    @cached_property
    def offspring(self) -> tuple[Offspring, ...]:
        """What breeds the mappings of each layer."""
        machine = self.problem.widest
        return tuple(Offspring(self.problem.map_space(layer, machine)) for layer in range(len(self.problem.layers)))

    @cached_property
    def _known(self) -> dict[object, Accelerator]:
        return {}

    def job(self, wanted: Sequence[WantedChildren], chosen: Mapping[Number, float], worth: Worth,
            seed: tuple[int, ...]) -> Job[Any]:
        """Return the job that breeds what is wanted of all layers on a machine."""
        told = hashlib.sha256()
        for each in wanted:
            told.update(repr((each.layer, each.cut, each.count)).encode())
            for part in each.parents or ():
                told.update(np.ascontiguousarray(part).tobytes())
        key = {"problem": self.problem.identity, "machine": {".".join(of): value for of, value in chosen.items()},
               "worth": list(worth), "seed": list(seed), "wanted": told.hexdigest()[:24]}
        return Job(key, bred, samples=lambda value: int(value["samples"]),
                   inputs=(self, tuple(wanted), dict(chosen), worth, seed))

    def children(self, wanted: WantedChildren, machine: Accelerator, near: Accelerator, worth: Worth,
                 rng: np.random.Generator) -> MappingBatch:
        """Return the children wanted of a layer, in the layout of the problem; ``near`` as of `Offspring.children`."""
        problem, offspring = self.problem, self.offspring[wanted.layer]
        layout, ruled = problem.layouts[wanted.layer], offspring.space.arrays.ruled
        if ruled:  # what rules leave is another thing on each machine
            offspring, near = Offspring(problem.map_space(wanted.layer, machine)), machine
        space: MapSpace = offspring.space
        parents = space.empty(0)
        if wanted.parents is not None:
            parents = batch_of(layout, *wanted.parents).relaid(space.layout)
            parents = space.repair(parents) if ruled else parents
        return offspring.children(machine, near, worth, parents, wanted.cut, wanted.count, rng).relaid(layout)

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
    found, prices = {}, pooling.prices({key: np.array([one]) for key, one in chosen.items()})
    for each in wanted:
        batch = breeder.children(each, machine, near, worth, np.random.default_rng((*seed, each.layer)))
        pool = pooling.pool(each.layer, batch, machine, prices)
        found[str(each.layer)] = [_told(part) for part in pool.take(pool.latency < 0).joined(pool, prices).parts]
    return {"layers": found, "samples": sum(each.count for each in wanted)}


def _told(part: NDArray[Any]) -> list[Any]:
    """Return an array as plain data."""
    return [part.dtype.str, list(part.shape), base64.b64encode(np.ascontiguousarray(part).tobytes()).decode()]


def taken(value: Mapping[str, Any]) -> dict[int, MappingPool]:
    """Return the children that a job has bred, by layer."""
    def read(part: Sequence[Any]) -> NDArray[Any]:
        kind, shape, text = part
        return np.frombuffer(base64.b64decode(text), dtype=kind).reshape(shape).copy()

    return {int(layer): MappingPool(*(read(part) for part in parts)) for layer, parts in value["layers"].items()}
