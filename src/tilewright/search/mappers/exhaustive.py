"""The exhaustive mapper: every mapping of the space, in a fixed order."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.mapping import Enumeration, MappingBatch
from tilewright.search.checkpoint import Resumable
from tilewright.search.mapper import MAPPERS, Count, MapperOptions, Task, read_options


@dataclass(frozen=True)
class ExhaustiveOptions(MapperOptions):
    """Options of ``exhaustive``."""

    batch: Annotated[Count, "Mappings proposed at a time."] = 16384
    distinct: Annotated[bool, "Give only one of the loop orders that cannot differ in cost."] = True


@MAPPERS.register("exhaustive", ExhaustiveOptions)
class ExhaustiveMapper(Resumable):
    """Proposes every mapping whose loops fit the arrays; ends by itself once all have been proposed."""

    covers_space = True
    changing = ("walk",)

    def __init__(self, task: Task) -> None:
        self.options = read_options(ExhaustiveOptions, task.options, "exhaustive")
        self.walk = Enumeration(task.space, self.options.distinct)

    def ask(self, most: int) -> MappingBatch:
        """Propose the next ``batch`` mappings, or ``most`` if that is less."""
        return self.walk.take(min(most, self.options.batch))

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Learn nothing."""
