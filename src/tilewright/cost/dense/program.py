"""Programs for the compiled engine: the model of one operator on one machine as instructions over rows of lanes.

A row holds one number for each mapping of a block. *Narrow* rows hold extents, numbers of pieces and words of one axis:
integers that single precision carries exactly. *Wide* rows hold words, cycles and energies in double precision.
`lowering` writes a program, `kernel` runs it on block after block.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce, wraps
from itertools import chain
from math import prod
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.dense import operations as op
from tilewright.cost.dense.operations import Operation, Sum
from tilewright.workload import Axis

P = ParamSpec("P")
T = TypeVar("T")

FIELDS = 13
"""Numbers per instruction: the operation and its operands."""


LANES = 256
"""Mappings per block: few enough that the rows of a block stay in the inner caches."""

FAR = 2.0**22
"""Stands for a step or an offset beyond every extent; differences from it are exact in single precision."""

WIDEST = 2**21
"""Dimensions from this size on need the double-precision narrow bank, and `FAR_WIDE`."""

FAR_WIDE = 2.0**40


def remembered(method: Callable[P, T]) -> Callable[P, T]:
    """Make a method compute its answer once for each set of arguments; the object itself keeps the answers."""

    @wraps(method)
    def ask(*args: P.args, **kwargs: P.kwargs) -> T:
        answers: dict[object, T] = vars(args[0]).setdefault("_remembered", {})
        key = (method.__name__, args[1:], tuple(sorted(kwargs.items())) if kwargs else ())
        if key not in answers:
            answers[key] = method(*args, **kwargs)
        return answers[key]

    return ask


@dataclass(frozen=True)
class Sizes:
    """A number that each layer has for itself: the product of some of its sizes, and of the words along some axes."""

    dimensions: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = ()

    def of(self, sizes: dict[str, int]) -> float:
        """Return the number of a layer of these sizes."""
        return float(prod(sizes[name] for name in self.dimensions) * prod(axis.words(sizes) for axis in self.axes))


class Machine(NamedTuple):
    """A finished program as the arrays that the kernel takes.

    ``code`` (i, 13) and ``lists`` are unsigned, so that indexing checks no signs; ``constants`` are f8 literals;
    ``fixed_narrow`` (k, 2): row and value of narrow constants; ``outputs``: wide rows in order. Wide rows 0 to
    ``parameters`` - 1 hold the parameters. What each layer has for itself stands in ``own_constants`` and
    ``own_narrow``, (place, what), and is NaN until `of` fills it in.
    """

    code: NDArray[np.uint16]
    lists: NDArray[np.uint16]
    constants: NDArray[np.float64]
    fixed_narrow: NDArray[np.float64]
    outputs: NDArray[np.uint16]
    narrow_rows: int
    wide_rows: int
    parameters: int
    own_constants: tuple[tuple[int, Sizes], ...] = ()
    own_narrow: tuple[tuple[int, Sizes], ...] = ()

    def of(self, sizes: dict[str, int]) -> "Machine":
        """Return the program of a layer of these sizes."""
        constants, narrow = self.constants.copy(), self.fixed_narrow.copy()
        for place, own in self.own_constants:
            constants[place] = own.of(sizes)
        for place, own in self.own_narrow:
            narrow[place, 1] = own.of(sizes)
        return self._replace(constants=constants, fixed_narrow=narrow)


@dataclass
class Program:
    """Instructions under construction, in single-assignment form; `finish` gives rows to values and freezes them."""

    parameters: int
    far: float = FAR
    code: list[tuple[Operation, tuple[int, ...]]] = field(default_factory=list)
    lists: list[int] = field(default_factory=list)
    constants: list[float | Sizes] = field(default_factory=list)
    known: dict[tuple[object, ...], tuple[int, ...]] = field(default_factory=dict)
    fixed: dict[float | Sizes, int] = field(default_factory=dict)
    narrow: int = 0
    wide: int = 0

    def __post_init__(self) -> None:
        self.wide = self.parameters
        self.constants = [0.0, 0.5, 1.0, self.far]

    def number(self, value: float | Sizes) -> int:
        """Narrow row that holds ``value`` in every lane."""
        if value not in self.fixed:
            self.fixed[value] = self.narrow
            self.narrow += 1
        return self.fixed[value]

    def literal(self, value: float | Sizes) -> int:
        """Index of a constant operand."""
        if value not in self.constants:
            self.constants.append(value)
        return self.constants.index(value)

    def rows(self, rows: list[int]) -> int:
        """Offset of a list of narrow rows."""
        self.lists += rows
        return len(self.lists) - len(rows)

    def emit(self, operation: Operation, *operands: int, fresh: bool = False) -> tuple[int, ...]:
        """Append an instruction; ``operands`` leave out the rows written, which are new and returned.

        An instruction that was already emitted is not repeated, unless its row is to be accumulated into (``fresh``).
        """
        key = (operation, operands)
        pure = not fresh and _places(operation).pure
        if pure and key in self.known:
            return self.known[key]
        given, full, new = iter(operands), [], []
        for kind in operation.signature:
            if kind == "N":
                new.append(self.narrow)
                self.narrow += 1
            elif kind == "W":
                new.append(self.wide)
                self.wide += 1
            full.append(new[-1] if kind in "NW" else next(given))
        written = tuple(new)
        self.code.append((operation, tuple(full)))
        if pure:
            self.known[key] = written
        return written

    def one(self, operation: Operation, *operands: int, fresh: bool = False) -> int:
        """Emit an instruction, and return the first row that it writes."""
        return self.emit(operation, *operands, fresh=fresh)[0]

    def fold(self, operation: Operation, rows: Iterable[int | None], empty: T) -> int | T:
        """Return what an operation of two rows makes of several; ``empty`` where there is none."""
        given = [row for row in rows if row is not None]
        return reduce(partial(self.one, operation), given) if given else empty

    def sum(self, what: Sum, ahead: tuple[int, ...], pairs: Sequence[tuple[int, int]]) -> tuple[int, list[int]]:
        """Emit a sum over pairs of rows, as many at once as can be; return its row, and what it leaves of them."""
        near, far = pairs[:what.most], pairs[what.most:]
        total, *left = self.emit(what.at_once[len(near)], *ahead, *chain(*near), fresh=bool(far))
        for pair in far:
            left += self.emit(what.further, total, *pair, *(ahead[place] for place in what.shared))
        return total, left

    def product(self, rows: list[int], constant: float | Sizes = 1.0) -> int:
        """Wide row: ``constant`` times the product of narrow rows."""
        one = self.number(1.0)
        rows = sorted(row for row in rows if row != one)
        threes = [[*rows[at : at + 3], one, one][:3] for at in range(0, max(1, len(rows)), 3)]
        found = self.one(op.product, self.literal(constant), *(threes[0] if rows else [one] * 3))
        for three in threes[1:]:
            found = self.one(op.times, found, *three)
        return found

    def finish(self, outputs: list[int]) -> Machine:
        """Assign rows, reusing those whose value is no longer needed, and freeze the program."""
        uses = self._drop_unused(outputs)
        narrow = _Rows({row: place for place, row in enumerate(self.fixed.values())})
        wide = _Rows({row: row for row in range(self.parameters)})
        for index, used in enumerate(uses):
            for bank, touched in zip((narrow, wide), used, strict=True):
                for row in touched:
                    bank.last[row] = index
        wide.last.update(dict.fromkeys(outputs, len(self.code)))
        lists, code = list(self.lists), []
        for index, (operation, operands) in enumerate(self.code):
            places, placed = _places(operation), list(operands)
            for bank, rows in ((narrow, places.narrow), (wide, places.wide)):
                for at in rows:
                    placed[at] = bank.place(operands[at])
            for at in places.listed(operands):
                lists[at] = narrow.place(self.lists[at])
            code.append([operation.number, *placed, *[0] * (FIELDS - 1 - len(placed))])
            narrow.free(uses[index][0], index)
            wide.free(uses[index][1], index)
        return Machine(
            code=np.array(code, dtype=np.uint16).reshape(-1, FIELDS),
            lists=np.array([*lists, 0], dtype=np.uint16),
            constants=np.array([*map(_known, self.constants), 0.0]),
            fixed_narrow=np.array([(place, _known(value)) for place, value in enumerate(self.fixed)]).reshape(-1, 2),
            outputs=np.array([wide.place(row) for row in outputs], dtype=np.uint16),
            narrow_rows=narrow.size + 1,
            wide_rows=wide.size + 1,
            parameters=self.parameters,
            own_constants=tuple((at, own) for at, own in enumerate(self.constants) if isinstance(own, Sizes)),
            own_narrow=tuple((at, own) for at, own in enumerate(self.fixed) if isinstance(own, Sizes)),
        )

    def _drop_unused(self, outputs: list[int]) -> list[tuple[list[int], list[int]]]:
        """Leave out instructions whose rows nothing reads; return the narrow and wide rows that each other touches."""
        live_narrow: set[int] = set()
        live_wide = set(outputs)
        kept, uses = [], []
        for operation, operands in reversed(self.code):
            places = _places(operation)
            if not any(operands[at] in live_narrow for at in places.made_narrow) and not any(
                    operands[at] in live_wide for at in places.made_wide):
                continue
            narrow = [operands[at] for at in places.narrow] + [self.lists[at] for at in places.listed(operands)]
            wide = [operands[at] for at in places.wide]
            live_narrow.update(narrow)
            live_wide.update(wide)
            kept.append((operation, operands))
            uses.append((narrow, wide))
        self.code = kept[::-1]
        return uses[::-1]


class _Places(NamedTuple):
    """Which operands of an operation are rows, by bank, and which of these it writes; where the offset of a list is.

    Without a list ``star`` is -1. An operation that writes into no row that is there is ``pure``.
    """

    narrow: tuple[int, ...]
    wide: tuple[int, ...]
    made_narrow: tuple[int, ...]
    made_wide: tuple[int, ...]
    star: int
    pure: bool

    def listed(self, operands: tuple[int, ...]) -> range:
        """Return the places of the list that the operands name."""
        return range(0) if self.star < 0 else range(operands[self.star], operands[self.star] + operands[self.star + 1])


@cache
def _places(operation: Operation) -> _Places:
    letters = operation.signature

    def of(kinds: str) -> tuple[int, ...]:
        return tuple(at for at, kind in enumerate(letters) if kind in kinds)

    return _Places(of("NnA"), of("WwV"), of("NA"), of("WV"), letters.find("*"), not of("AV"))


def _known(value: float | Sizes) -> float:
    return np.nan if isinstance(value, Sizes) else value


class _Rows:
    """Places for the values of one bank."""

    def __init__(self, pinned: dict[int, int]) -> None:
        self.pinned = pinned
        self.places = dict(pinned)
        self.unused: list[int] = []
        self.last: dict[int, int] = {}
        self.size = len(pinned)

    def place(self, value: int) -> int:
        if value not in self.places:
            if self.unused:
                self.places[value] = self.unused.pop()
            else:
                self.places[value] = self.size
                self.size += 1
        return self.places[value]

    def free(self, values: list[int], index: int) -> None:
        for value in set(values):
            if self.last[value] == index and value not in self.pinned:
                self.unused.append(self.places.pop(value))
