"""Random mappers: any mapping, or only those that fit and differ in cost (as Timeloop's pruned random search)."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping import Enumeration, MappingBatch
from tilewright.search.checkpoint import Resumable, State, part
from tilewright.search.mapper import MAPPERS, Count, MapperOptions, Natural, Share, Task, read_options

WALKED = 1 << 20
"""Mappings of a space that is walked through once draws bring hardly anything new."""
VAIN = 1 / 64
"""Share of a draw that is new, up to which the draw was in vain."""


@dataclass(frozen=True)
class RandomOptions(MapperOptions):
    """Options of the random mappers."""

    batch: Annotated[Count, "Mappings proposed at a time."] = 2048
    filling: Annotated[Share, "Share of the mappings that first spread as many lanes as fit the arrays."] = 0.0
    dividing: Annotated[Share, "Chance of each dimension of a mapping to be split as with perfect tiling, where the "
                               "tiling is one of Ruby's: hardly a mapping has few remainders otherwise, as good ones "
                               "mostly do."] = 0.0


@MAPPERS.register("random", RandomOptions)
class RandomMapper(Resumable):
    """Proposes random mappings, fit or not.

    Nothing is preferred unless options say so: what `MapSpace.sample` draws is proposed as it comes.
    """

    covers_space = False
    changing = ("rng",)

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


@dataclass(frozen=True)
class PrunedOptions(RandomOptions):
    """Options of ``random-pruned``."""

    dividing: Share = 0.7
    remembered: Annotated[Count, "Places in the table of mappings already proposed; a newer one takes the place of an "
                                 "older one."] = 1 << 18
    draws: Annotated[Count, "Times that a batch is drawn at most before what was found is proposed."] = 200
    dry: Annotated[Count, "Times in a row that a batch is drawn nearly in vain before what was found is proposed, and "
                          "the mappings of the space then one by one, unless these are too many."] = 20
    stall: Annotated[Natural, "Mappings in a row that do not improve on a walker's best after which the walker ends, "
                              "and with the last one the search; 0 for never. Looked at once a batch. Timeloop's "
                              "`victory_condition`."] = 0
    walkers: Annotated[Count, "Searches that go on side by side, taking turns, each with a best of its own. Timeloop's "
                              "`num_threads`."] = 1


@MAPPERS.register("random-pruned", PrunedOptions)
class PrunedRandomMapper(Resumable):
    """Proposes random mappings whose tiles fit, and of those that cannot differ in cost only one.

    After the pruned random search of Timeloop (Parashar et al., ISPASS 2019): mappings that need more capacity than
    there is are dropped before they are scored, as are other permutations of loops that run once or move no tile.
    Timeloop's has no leaning to whole factors: that is ``dividing=0``. Once draws bring hardly anything new, a small
    space is walked through to its end; where they bring nothing, the search ends.
    """

    covers_space = False
    changing = "rng", "seen", "best", "since", "proposed", "spare", "walk"

    def __init__(self, task: Task) -> None:
        self.space = task.space
        self.rng = task.rng
        self.options = read_options(PrunedOptions, task.options, "random-pruned")
        self.seen = np.zeros(self.options.remembered, dtype=np.uint64)
        self.proposed = 0
        self.spare = task.space.empty(0)
        """Drawn and found fresh, but more than was wanted."""
        self.walk: Enumeration | None = None
        self.best = np.full(self.options.walkers, np.inf)
        """The best score of every walker, and how many mappings in a row have not improved on it."""
        self.since = np.zeros(self.options.walkers, dtype=np.int64)

    def _going(self) -> NDArray[np.intp]:
        """Return the walkers that go on."""
        return np.flatnonzero((self.since < self.options.stall) | (self.options.stall == 0))

    def ask(self, most: int) -> MappingBatch:
        """Propose ``batch`` mappings, or ``most`` if that is less; what is left of a small space; or none."""
        if not len(self._going()):
            return self.space.empty(0)
        wanted = min(most, self.options.batch)
        found = self._take_spare(wanted)
        if self.walk is None:
            found += self._drawn(wanted - sum(map(len, found)))
        while not found and self.walk is not None:
            following = self.walk.take(self.options.batch)
            if not len(following):
                break
            found = self._fresh(following, wanted)
        if not found and not self.proposed:  # nothing fits: let that be seen
            found = [self.space.sample(self.rng, wanted, self.options.filling, self.options.dividing)]
        batch = MappingBatch.joined(found) if found else self.space.empty(0)
        self.proposed += len(batch)
        return batch

    def _drawn(self, wanted: int) -> list[MappingBatch]:
        """Return parts of fresh random mappings, ``wanted`` in all unless draws are in vain.

        If they are, and the space is small, it is walked through from now on.
        """
        parts: list[MappingBatch] = []
        left, vain = wanted, 0
        for _ in range(self.options.draws if wanted else 0):
            drawn = self.space.sample(self.rng, self.options.batch, self.options.filling, self.options.dividing)
            fresh = self._fresh(drawn, left)
            found = sum(map(len, fresh)) + len(self.spare)
            vain = 0 if found > VAIN * len(drawn) else vain + 1
            parts += fresh
            left -= sum(map(len, fresh))
            if not left or vain == self.options.dry:
                break
        if vain == self.options.dry and left and self.space.within(WALKED):
            self._walk()
        return parts

    def _walk(self) -> None:
        self.walk, self.covers_space = Enumeration(self.space, distinct=True), True

    def _fresh(self, batch: MappingBatch, most: int) -> list[MappingBatch]:
        """Return those that fit and that nothing proposed before is equal to, as a list of one batch or none."""
        self.spare = self.space.fresh(batch, self.seen)
        return self._take_spare(most)

    def _take_spare(self, most: int) -> list[MappingBatch]:
        found, self.spare = self.spare.take(slice(0, most)), self.spare.take(slice(most, None))
        return [found] if len(found) else []

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Count for every walker how long its best has not improved."""
        going = self._going()
        for turn, walker in enumerate(going if self.options.stall else ()):
            own = scores[turn::len(going)]
            lower = np.minimum.accumulate(np.concatenate([self.best[walker:walker + 1], own]))
            better = np.flatnonzero(own < lower[:-1])
            self.since[walker] = len(own) - 1 - better[-1] if len(better) else self.since[walker] + len(own)
            self.best[walker] = lower[-1]

    def restore(self, state: State) -> None:
        """Set all that changes, and walk on where the space was walked through."""
        if part(state, "walk"):
            self._walk()
        super().restore(state)
