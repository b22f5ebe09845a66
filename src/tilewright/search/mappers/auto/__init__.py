"""Auto: the mapper for every purpose. It breeds as Gamma does, and bounds every child before it is scored.

The bound of a child is what no order of its loops can beat (`auto_bounds`): a sum over boundaries between memories,
exact but for what sliding windows save. Mappings that are drawn descend by their bounds before they are scored. A child
that could not be among the survivors by its bound is not scored, but another bred in its place; after a few in vain the
one of the least bound is scored all the same. The bound also tells which tensors should rest at which memory, so that
orders of loops need little search: children whose steps were looked at before are mostly passed over, and no two that
survive score the same.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping import MappingBatch
from tilewright.search.checkpoint import Resumable, State, part
from tilewright.search.dual import DualBound, Unbound, compile_once
from tilewright.search.mapper import LARGEST_OPTION, MAPPERS, Count, Natural, Share, Task, read_options
from tilewright.search.mappers.auto.tables import BoundArrays, bound_arrays
from tilewright.search.mappers.exact import ExactMapper, compile_descent
from tilewright.search.mappers.exhaustive import ExhaustiveMapper
from tilewright.search.mappers.gamma import HALVES, BreedingOptions, GammaMapper, Span
from tilewright.search.objective import ILLEGAL

FEW = 100_000
"""Largest space that is enumerated where time alone is limited."""
LARGEST, SMALLEST, GENERATIONS, BORN_A_SECOND = 100, 10, 10, 1000
"""Mappings of a generation where no option says how many, and the fewest of a small budget: for so many generations at
least, and at most so many a second, so that breeding begins soon."""
DRAWN_A_SECOND, FEWEST_DRAWN = 200, 4
"""Mappings of a first generation by the seconds of the budget, and at least: as each descends for some millisecond,
they leave most of the time to breeding."""
LONGER = 4
"""How many times as long each of them descends, at most: in all no longer than a whole generation would, and hardly
longer where the budget is a few milliseconds. So few had better be good: searches of 0.05 s end twice as near to the
best known as where each descends as long as in large generations."""
NODES_PER_SAMPLE = 120
"""Partial mappings that the proof looks at for every mapping bred meanwhile: most of the time."""
TURNS, TURNS_PER_SAMPLE, FREE_TURNS, LARGEST_DUAL = 250, 0.5, 1000, 1 << 26
"""Turns at a time of raising the bound; for every mapping bred, about half of the time; before anything is bred where
another space has done better (then one mapping for each), as most such are closed by then; and the bytes of its parts
at which it rests."""
NODES_PER_TURN = 150
"""Partial mappings that branch and bound looks at for each turn of raising the bound beside it, which takes a third as
long; there is a turn for each mapping that it proposes, too."""
SOONER, BRED_A_SECOND = 4, 50_000
"""Where time alone is limited, a dual bound is raised after a part of the mappings that `AutoOptions.prove` tells; and
how many mappings are bred a second at most."""


@dataclass(frozen=True)
class AutoOptions(BreedingOptions):
    """Options of ``auto``."""

    population: Annotated[Natural, "Children per generation and island, and how many survive; 0 takes 100, with small "
                                   "budgets fewer: a tenth of the samples, or one for a millisecond, ten at least."] = 0
    parents: Share = 1.0
    candidates: Annotated[Count, "Children bred, at most, for one that is scored: the first whose bound lets it "
                                 "survive. In proportion more where `population` is 0 and takes fewer than 100."] = 6
    climb: Annotated[Count, "Mappings looked at for each that is drawn, at most half as many as samples: it is changed "
                            "where that does not raise its bound. Up to four times as many where time is short, as few "
                            "are drawn then."] = 200
    enumerate: Annotated[bool, "Whether spaces that the budget covers are enumerated."] = True
    prove: Annotated[Natural, "Mappings bred before something is proved beside the breeding: where tiling is perfect "
                              "by branch and bound beside a dual bound, else by a dual bound (after a quarter as many "
                              "where time alone is limited); 0 for never."] = 20_000


@MAPPERS.register("auto", AutoOptions)
class AutoMapper(Resumable):
    """Breeds as gamma does, but looks at the bounds of children before it scores one; enumerates and proves if it can.

    Of a few children the first is scored whose bound lets it survive. Where bounds rule all of them out, that of the
    least bound is scored all the same: a third to six tenths of those scored, on layers tried. Spaces that the budget
    covers are enumerated. With perfect tiling, where the budget lasts, branch and bound goes on beside the breeding
    until the best is proved to be the optimum; a dual bound is raised beside both (`search.dual`), and what it leaves
    of the space is scored, unless that is too much. The same seed gives the same result on any number of threads.
    """

    takes_start = True
    changing = "gamma", "walk", "proof", "dual", "bred", "best", "best_mapping", "covers_space"

    def __init__(self, task: Task) -> None:
        self.task = task
        self.options = read_options(AutoOptions, task.options, "auto")
        breeding = {entry.name: getattr(self.options, entry.name) for entry in fields(BreedingOptions)}
        own = self.options.population or self._affordable()
        self.candidates = int(self.options.candidates * (1 if self.options.population else LARGEST / own))
        self.climb = min(int(self.options.climb * self._longer), max(1, (task.samples or LARGEST_OPTION) // 2))
        self.gamma = GammaMapper(replace(task, options=breeding | {"population": own}))
        self.gamma.bear = self._bear
        slots = task.space.scratch().shape[1:]
        self.kept = np.zeros((HALVES, 2, *slots), dtype=np.int64)
        self.walk = self._enumeration()
        self.covers_space = self.walk is not None
        if self.walk is None:
            _ = self._tables  # before time counts
            if self.options.prove and self._may_prove:
                compile_once()
                if task.space.tiling == "perfect":
                    compile_descent()
        self.bred, self.best = 0, np.inf
        self.best_mapping = task.space.empty(0)
        self.proof: ExactMapper | None = None
        """The branch and bound, once it goes on beside the breeding."""
        self.dual: DualBound | None = None
        """The dual bound, once it is raised beside the breeding."""
        self.turn: GammaMapper | ExactMapper = self.gamma
        self.looks = False
        """Whether what was proposed last is no generation: one mapping beside work on a bound, or what that leaves."""

    @property
    def _proves_after(self) -> int:
        """How many mappings are bred before the dual bound is raised."""
        return self.options.prove // (1 if self.task.samples or self.task.space.tiling == "perfect" else SOONER)

    @property
    def _may_prove(self) -> bool:
        """Whether the budget may last until something is proved; what is not compiled before time counts is then."""
        return min(self.task.samples or np.inf, (self.task.seconds or np.inf) * BRED_A_SECOND) > self._proves_after

    def _affordable(self) -> int:
        """Return how many mappings a generation has, as small budgets pay for few whose bounds descend first."""
        most = min((self.task.samples or np.inf) / GENERATIONS, (self.task.seconds or np.inf) * BORN_A_SECOND)
        return max(SMALLEST, int(min(LARGEST, most)), min(LARGEST, len(self.task.start or ())))

    @property
    def _longer(self) -> float:
        """How many times as long those descend that are drawn."""
        drawn = DRAWN_A_SECOND * (self.task.seconds or np.inf)
        return max(1.0, LONGER * min(1.0, LARGEST / LONGER / drawn, drawn / FEWEST_DRAWN))

    def _enumeration(self) -> ExhaustiveMapper | None:
        if not self.options.enumerate or self.task.start is not None:
            return None
        space = self.task.space
        covered = space.within(FEW if self.task.samples is None else self.task.samples) and space.size().mappings
        return ExhaustiveMapper(replace(self.task, options={})) if covered else None

    @property
    def bound(self) -> float | None:
        """What no mapping of the space scores below; None while nothing is proved."""
        known = [proof.bound for proof in (self.proof, self.dual) if proof is not None and proof.bound is not None]
        return max(known, default=None)

    @property
    def between(self) -> int:
        """Mappings proposed between turns of proofs of other spaces, which take as long."""
        return 2500 if self.task.space.tiling == "perfect" else 800

    @property
    def stuck(self) -> bool:
        """Whether nothing raises `bound` any more."""
        return self.proof is None and self._rests

    @property
    def _rests(self) -> bool:
        """Whether nothing raises the dual bound any more."""
        return self.dual is not None and (self.dual.size >= LARGEST_DUAL or self.dual.ended(np.inf))

    @cached_property
    def _tables(self) -> tuple[BoundArrays, NDArray[np.float64]]:
        tables, shape = bound_arrays(self.task.space, self.task.objective if self.task.bounded else None)
        return tables, np.zeros((HALVES, *shape))

    @cached_property
    def _proof(self) -> ExactMapper | None:
        """The branch and bound, as it stands after its own breeding; None where it would prove nothing."""
        if self.task.space.tiling != "perfect" or not self.options.prove or self.task.objective is None:
            return None
        made = ExactMapper(replace(self.task, options={}, start=None))
        made.given = made.options.start
        return made if made.provable else None

    @cached_property
    def _dual(self) -> DualBound | None:
        """The dual bound before any work; None where it bounds nothing."""
        task = self.task
        if not (self.options.prove and task.bounded and task.objective):
            return None
        try:
            return DualBound(task.space, task.objective)
        except Unbound:
            return None

    def _due(self, rival: float) -> int:
        """Return how many turns of the dual bound are due in all: it goes on beside branch and bound, or breeding."""
        perfect, beaten, turns = self.task.space.tiling == "perfect", rival < self.best, self._turns
        if not beaten and self.bred < self._proves_after:
            return 0
        if perfect and beaten and turns < FREE_TURNS:
            return FREE_TURNS
        if perfect and self._proof is not None:
            due, proof = FREE_TURNS if beaten else 0, self.proof
            return 0 if proof is None else due + proof.looked // NODES_PER_TURN + proof.given - proof.options.start
        return turns + TURNS if beaten else int(TURNS_PER_SAMPLE * self.bred)

    @property
    def _turns(self) -> int:
        return 0 if self.dual is None else self.dual.turns

    def _raise_bound(self) -> None:
        """Raise the dual bound where that is behind, or another space has done better."""
        rival = self.task.rival()
        due, score = self._due(rival), min(self.best, rival)
        if not due or self._dual is None:
            return
        self.dual = self._dual
        due = min(TURNS, due - self.dual.turns)
        if due > 0 and score < ILLEGAL and self.dual.size < LARGEST_DUAL:
            self.dual.work(due, score)

    def ask(self, most: int) -> MappingBatch:
        """Propose the next children, or what is next in the enumeration or the proof."""
        if self.walk is not None:
            return self.walk.ask(most)
        self._raise_bound()
        if self.dual is not None and len(batch := self.dual.take(most)):
            self.looks, self.covers_space = True, False
            return batch
        if self.dual is not None and self.dual.bound >= min(self.best, self.task.rival()):
            self.covers_space = self.best <= self.task.rival()
            return self.task.space.empty(0)
        self.looks = self._looks
        self.turn = self.gamma if self.looks else self._next()
        batch = self.turn.ask(1 if self.looks else min(most, self._most_drawn()))
        self.covers_space = self.turn.covers_space
        return batch

    @property
    def _looks(self) -> bool:
        """Whether nothing is bred or proved here yet, as another space is better and the dual bound may close this."""
        if self.dual is None or self.task.rival() >= self.best:
            return False
        most = FREE_TURNS if self.task.space.tiling == "perfect" else FREE_TURNS + self.bred
        return self._turns < most and not self._rests

    def _most_drawn(self) -> int:
        """Return how many mappings may be proposed now: few of a first generation where time is short."""
        seconds = self.task.seconds
        if seconds is None or self.turn is not self.gamma or self.gamma.counts[:, 0].any():
            return LARGEST_OPTION
        return max(FEWEST_DRAWN, int(DRAWN_A_SECOND * seconds), len(self.task.start or ()))

    def _next(self) -> GammaMapper | ExactMapper:
        """Return who proposes next: the breeding, or the proof where it is behind, or another space has done better."""
        beaten = self.task.rival() < self.best
        if not (beaten or self.bred >= self.options.prove) or self._proof is None:
            return self.gamma
        proof = self._proof
        self.proof = proof
        if self.best < proof.best:
            proof.best, proof.best_mapping = self.best, self.best_mapping
        waits = beaten or len(proof.kept) or proof.ended
        return proof if waits or proof.looked < NODES_PER_SAMPLE * self.bred else self.gamma

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Learn the scores; the lowest is what a proof has to beat."""
        if self.walk is not None:
            return
        if self.looks:
            pass
        elif self.turn is self.gamma:
            self.gamma.tell(batch, self._distinct(scores))
            self.bred += len(batch)
        else:
            self.turn.tell(batch, scores)
        index = int(scores.argmin())
        if scores[index] < min(self.best, ILLEGAL):
            self.best = float(scores[index])
            self.best_mapping = batch.take(slice(index, index + 1))

    def _distinct(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores, infinite but for the first of those that are equal, and where a survivor has the same.

        Most that score the same differ in what costs nothing, such as the order of loops that move no tensor: a few of
        the best would soon fill a population with their likes.
        """
        found, size = np.full(len(scores), np.inf), self.gamma.options.population
        for island, survivors in enumerate(self.gamma.scores):
            first, known = island * size, set(survivors.tolist())
            for place, score in enumerate(scores[first:first + size].tolist(), first):
                if score not in known:
                    known.add(score)
                    found[place] = score
        return found

    def _bear(self, batch: MappingBatch, island: int, half: int, span: Span, parents: int) -> None:
        """Breed children as `GammaMapper` does, but hold candidates against their bounds."""
        from tilewright.search.mappers.auto import kernels as auto_kernels  # noqa: PLC0415  (Numba loads late)

        gamma, (tables, room) = self.gamma, self._tables
        auto_kernels.propose(
            gamma.table(half), gamma.rng[half, island], gamma.rates, gamma.work[half], self.kept[half],
            gamma.seen[island, half], gamma.steps[island], gamma.ranks[island], gamma.places[island], parents,
            batch.steps, batch.ranks, span, float(gamma.scores[island, -1]),
            (self.candidates, self.climb, 0), tables, room[half],
        )

    def restore(self, state: State) -> None:
        """Set all that changes, and go on with what is proved where that had begun."""
        self.proof = self._proof if part(state, "proof") else None
        self.dual = self._dual if part(state, "dual") else None
        super().restore(state)
