"""What the search loop asks of a mapper, and where mappers are registered."""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, NamedTuple, Protocol, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, Registry, unknown_name
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search.checkpoint import State
from tilewright.search.mappers import MODULES
from tilewright.search.objective import Objective

Options = Mapping[str, object]


@dataclass(frozen=True)
class Task:
    """What a mapper is given."""

    space: MapSpace
    """The mappings it may propose."""
    rng: Generator
    """Its only source of randomness."""
    samples: int | None = None
    """How many mappings the budget allows in all; None where only time limits it."""
    options: Options = field(default_factory=dict)
    """Its own options by name."""
    threads: int = 1
    """Threads that it may use; what it proposes must not depend on them."""
    objective: Objective | None = None
    """What the scores are of, for mappers that bound them; without one nothing can be bound."""
    start: MappingBatch | None = None
    """Mappings of the space to begin from. Mappers with a true class attribute ``takes_start`` propose them first and
    learn their scores; for all others the loop scores them before it asks."""
    bounded: bool = True
    """Whether the dense model gives the scores, so that bounds from its counts hold."""
    front: tuple[str, ...] = ()
    """Metrics of which the front is asked for, if any."""
    seconds: float | None = None
    """Time that the budget allows, where it limits that: what is asked for is then bred and no more."""
    late: Callable[[], bool] = bool
    """Whether the time is over: what goes on for long before anything is proposed then comes to its end."""
    rival: Callable[[], float] = lambda: math.inf
    """The best score known of other spaces of the same union: proofs need not look for what does not beat it."""


class Mapper(Protocol):
    """Proposes mappings and learns their scores. The loop in `search.run` does all the rest.

    One that proposes machines too, others of the structure of its space's machine, has them in ``hardware``: a
    `HardwareBatch`, the machine of each mapping proposed last, or None where all are that of the space.
    """

    covers_space: bool
    """Whether the mapper, once it proposes nothing more, has proposed every mapping of the space (up to equal cost)."""

    def ask(self, most: int) -> MappingBatch:
        """Propose up to ``most`` mappings; none ends the search."""

    def tell(self, batch: MappingBatch, scores: NDArray[np.float64]) -> None:
        """Learn the scores ``(b)`` of the batch proposed last, the lower the better (see `objective.Scorer`)."""

    def state(self) -> State:
        """Return all that changes during a search, as arrays; taken between a tell and an ask."""

    def restore(self, state: State) -> None:
        """Take up a search where `state` was taken; what is proposed next is as if it had not been interrupted."""


class FrontMapper(Mapper, Protocol):
    """A mapper that searches the front of several metrics: the loop tells it these beside the scores."""

    metrics: tuple[str, ...]
    """The names of the metrics that it is to be told."""

    def tell_metrics(self, batch: MappingBatch, scores: NDArray[np.float64], values: NDArray[np.float64]) -> None:
        """Learn the scores ``(b)`` and the metrics ``(b, m)`` of the batch proposed last, instead of `tell`."""


MAPPERS: Registry[Callable[[Task], Mapper]] = Registry("mapper", *MODULES)
"""Every mapper by name. One module and one line ``@MAPPERS.register(name, options)`` add one."""

LARGEST_OPTION = 1 << 24
ENDS = {"ge": ("at least", operator.ge), "gt": ("above", operator.gt),
        "le": ("at most", operator.le), "lt": ("below", operator.lt)}


class Limits(NamedTuple):
    """What a number must be: at least ``ge``, above ``gt``, at most ``le``, below ``lt``."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None


Count = Annotated[int, Limits(ge=1)]
Natural = Annotated[int, Limits(ge=0)]
Share = Annotated[float, Limits(ge=0, le=1)]
Positive = Annotated[float, Limits(gt=0)]


@dataclass(frozen=True)
class MapperOptions:
    """Options of a mapper: fields with defaults; beside their types, limits and what is said of them. These are none.

    Raises an `InputError` if a value is not within its limits.
    """

    def __post_init__(self) -> None:
        kind: type = type(self)
        for name, ends in _ends(kind).items():
            value = getattr(self, name)
            if not all(holds(value, limit) for _, holds, limit in ends):
                raise InputError(f"options.{name}", "must be " + " and ".join(
                    f"{word} {limit}" for word, _, limit in ends), value)


@cache
def _ends(kind: type) -> dict[str, list[tuple[str, Callable[[float, float], bool], float]]]:
    """Return the limits of each option, as words, a test and a number."""
    marks = {name: [mark for mark in get_args(hint)[1:] if isinstance(mark, Limits)]
             for name, hint in get_type_hints(kind, include_extras=True).items()}
    return {name: [(*ENDS[end], limit) for mark in given for end, limit in mark._asdict().items() if limit is not None]
            for name, given in marks.items()}


O = TypeVar("O")  # noqa: E741


def read_options(kind: type[O], given: Options, mapper: str) -> O:
    """Build the options record ``kind`` of a mapper from names and values.

    Raises an `InputError` if a name is unknown, a value has another type than the default, a number is not finite, or a
    whole number needs room that no machine has.
    """
    known = {entry.name: entry.default for entry in fields(kind)}  # type: ignore[arg-type]
    chosen: dict[str, object] = {}
    for name, value in given.items():
        if name not in known:
            raise unknown_name(f"{mapper} option", name, list(known))
        default = known[name]
        fits = isinstance(value, (int, float)) if type(default) is float else type(value) is type(default)
        if not fits or (isinstance(value, bool) and not isinstance(default, bool)):
            raise InputError(f"options.{name}", f"must be of type {type(default).__name__}", value)
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"options.{name}", "must be a finite number", value)
        if isinstance(value, int) and value > LARGEST_OPTION:
            raise InputError(f"options.{name}", f"must be at most {LARGEST_OPTION}", value)
        chosen[name] = float(value) if type(default) is float and isinstance(value, (int, float)) else value
    return kind(**chosen)


def preset_options(kind: type[O], given: Options, mapper: str, presets: Mapping[str, Options]) -> O:
    """Build the options record ``kind`` of a mapper; what is not given has the value of the option ``preset``."""
    name = getattr(read_options(kind, given, mapper), "preset")  # noqa: B009 - of those kinds that have one
    if name not in presets:
        raise unknown_name("preset", name, list(presets), "options.preset")
    return read_options(kind, {**presets[name], **given}, mapper)
