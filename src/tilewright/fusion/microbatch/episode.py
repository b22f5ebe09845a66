"""A strategy as an episode: one micro-batch after the other, each with what was known before it (equation 2)."""

from dataclasses import dataclass, field

import numpy as np

from tilewright.fusion.microbatch.costs import LATENCY, figures
from tilewright.fusion.microbatch.problem import SYNC, Floats, Ints, MicroBatchProblem

STATE = 8
"""Numbers of a state: ``K, C, Y, X, R, S``, the memory over the batch, and the runtime so far."""


@dataclass
class FusionEpisode:
    """Chooses the micro-batches of the input and of each layer in turn (Kao et al. 2022, section 4.2)."""

    problem: MicroBatchProblem
    actions: list[int] = field(default_factory=list)
    """The micro-batches chosen so far; all entries after them run layer by layer."""

    @property
    def ended(self) -> bool:
        """Whether all ``N + 1`` micro-batches are chosen."""
        return len(self.actions) == self.problem.length

    @property
    def strategy(self) -> Ints:
        """``(N + 1)``: what is chosen, and -1 from there on."""
        found: Ints = self.problem.unfused[0]
        found[:len(self.actions)] = self.actions
        return found

    @property
    def latency_cycles(self) -> float:
        """``P``: what the network takes with what is chosen so far."""
        return float(figures(self.problem, self.strategy)[0, LATENCY])

    @property
    def used_bytes(self) -> float:
        """What micro-batches of the group that is open take so far."""
        sizes = self.strategy[:len(self.actions)]
        begin = int(np.flatnonzero(sizes == SYNC).max(initial=-1)) + 1
        return float((sizes[begin:] * self.problem.tiles[begin:len(sizes)]).sum())

    @property
    def most(self) -> int:
        """The largest micro-batch of the next entry that fits beside its group; 0 where only -1 does."""
        left = self.problem.memory_bytes - self.used_bytes
        return int(min(self.problem.batch, max(0.0, left // self.problem.tiles[len(self.actions)])))

    @property
    def state(self) -> Floats:
        """``(8)``: the shape of the entry to choose for, memory over batch in bytes, and cycles so far (equation 2)."""
        shape = self.problem.entries[len(self.actions)].shape
        return np.array([*shape, self.problem.memory_bytes / self.problem.batch, self.latency_cycles])

    def choose(self, size: int) -> None:
        """Choose the next micro-batch, -1 or from 1 to the batch."""
        self.actions.append(size)
