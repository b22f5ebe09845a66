"""Random mappers: any mapping, or only those that fit and differ in cost (as Timeloop's pruned random search)."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.mapping import MappingBatch
from tilewright.search.mapper import MAPPERS, State, Task, pack_generator, read_options, unpack_generator


@dataclass(frozen=True)
class RandomOptions:
    """Options of the random mappers.

    Parameters
    ----------
    batch
        Mappings proposed at a time.
    filling
        Share of the mappings that first spread as many lanes as fit the arrays.
    dividing
        Chance of each dimension of a mapping to be split as with perfect tiling, where the tiling is one of Ruby's:
        hardly a mapping has few remainders otherwise, as good ones mostly do.
    """

    batch: int = 2048
    filling: float = 0.0
    dividing: float = 0.0

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, float) and not 0 <= value <= 1:
                raise InputError(f"options.{entry.name}", "must be from 0 to 1", value)
            if not isinstance(value, float) and value < 1:
                raise InputError(f"options.{entry.name}", "must be at least 1", value)


@MAPPERS.register("random")
class RandomMapper:
    """Proposes random mappings, fit or not.

    Nothing is preferred unless options say so: what `MapSpace.sample` draws is proposed as it comes.
    """

    covers_space = False

    def __init__(self, task: Task) -> None:
        self.space = task.space
        self.rng = task.rng
        self.options = read_options(RandomOptions, task.options, "random")

    def ask(self, most: int) -> MappingBatch:
        """Propose ``batch`` random mappings, or ``most`` if that is less."""
        drawn = self.space.sample(self.rng, self.options.batch, self.options.filling, self.options.dividing)
        return drawn if most >= len(drawn) else drawn.take(slice(0, most))

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Learn nothing."""

    def state(self) -> State:
        """Return the generator's state."""
        return {"rng": pack_generator(self.rng)}

    def restore(self, state: State) -> None:
        """Set the generator's state."""
        unpack_generator(self.rng, state["rng"])


@dataclass(frozen=True)
class PrunedOptions(RandomOptions):
    """Options of ``random-pruned``.

    Parameters
    ----------
    remembered
        Places in the table of mappings already proposed; a newer one takes the place of an older one.
    draws
        Times that a batch is drawn at most before what was found is proposed (or, if nothing was, anything).
    """

    dividing: float = 0.7
    remembered: int = 1 << 18
    draws: int = 200


@MAPPERS.register("random-pruned")
class PrunedRandomMapper:
    """Proposes random mappings whose tiles fit, and of those that cannot differ in cost only one.

    After the pruned random search of Timeloop (Parashar et al., ISPASS 2019): mappings that need more capacity than
    there is are dropped before they are scored, as are other permutations of loops that run once or move no tile.
    Timeloop's has no leaning to whole factors: that is ``dividing=0``.
    """

    covers_space = False

    def __init__(self, task: Task) -> None:
        self.space = task.space
        self.rng = task.rng
        self.options = read_options(PrunedOptions, task.options, "random-pruned")
        self.seen = np.zeros(self.options.remembered, dtype=np.uint64)

    def ask(self, most: int) -> MappingBatch:
        """Propose ``batch`` mappings, or ``most`` if that is less."""
        from tilewright.mapping.spaces.signature import fresh_mask  # noqa: PLC0415  (Numba loads late)

        wanted = min(most, self.options.batch)
        steps, ranks, found = [], [], 0
        for _ in range(self.options.draws):
            drawn = self.space.sample(self.rng, self.options.batch, self.options.filling, self.options.dividing)
            fresh = np.empty(len(drawn), dtype=np.bool_)
            fresh_mask(self.space.table, self.seen, self.space.scratch(), drawn.steps,
                                       drawn.ranks, fresh)
            chosen = np.flatnonzero(fresh)[:wanted - found]
            steps.append(drawn.steps[:, :, chosen])
            ranks.append(drawn.ranks[:, :, chosen])
            found += len(chosen)
            if found == wanted:
                break
        if found == 0:
            return self.space.sample(self.rng, wanted, self.options.filling, self.options.dividing)
        return MappingBatch(self.space.layout, np.concatenate(steps, axis=2), np.concatenate(ranks, axis=2))

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Learn nothing."""

    def state(self) -> State:
        """Return the generator's state and what was proposed."""
        return {"rng": pack_generator(self.rng), "seen": self.seen.copy()}

    def restore(self, state: State) -> None:
        """Set the generator's state and what was proposed."""
        unpack_generator(self.rng, state["rng"])
        self.seen = state["seen"].copy()
