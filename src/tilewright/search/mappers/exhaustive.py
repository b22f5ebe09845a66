"""The exhaustive mapper: every mapping of the space, in a fixed order."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.mapping import Enumeration, MappingBatch
from tilewright.search.mapper import MAPPERS, State, Task, read_options


@dataclass(frozen=True)
class ExhaustiveOptions:
    """Options of ``exhaustive``.

    Parameters
    ----------
    batch
        Mappings proposed at a time.
    distinct
        Give only one of the loop orders that cannot differ in cost.
    """

    batch: int = 16384
    distinct: bool = True

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise InputError("options.batch", "must be at least 1", self.batch)


@MAPPERS.register("exhaustive")
class ExhaustiveMapper:
    """Proposes every mapping whose loops fit the arrays; ends by itself once all have been proposed."""

    covers_space = True

    def __init__(self, task: Task) -> None:
        self.options = read_options(ExhaustiveOptions, task.options, "exhaustive")
        self.walk = Enumeration(task.space, self.options.distinct)

    def ask(self, most: int) -> MappingBatch:
        """Propose the next ``batch`` mappings, or ``most`` if that is less."""
        return self.walk.take(min(most, self.options.batch))

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Learn nothing."""

    def state(self) -> State:
        """Return where the enumeration stands."""
        return {name: array.copy() for name, array in self.walk.state.items()}

    def restore(self, state: State) -> None:
        """Take the enumeration up again."""
        self.walk.state = {name: array.copy() for name, array in state.items()}
