"""Why a map space is empty: the smallest set of constraints, array sides and capacities that cannot be had together.

The parts that a space is put together from (*atoms*) are left out one by one, as long as what remains is still empty;
then all smaller sets are tried while that is cheap. A set is empty if something that every mapping needs is missing:

* each dimension has a chain of steps within its bounds (exact, by itself);
* the least tile of each memory fits it (every dimension at the least extent that some chain has there);
* lanes of all dimensions together fit each array and fill its floor (exact up to `MOST_INSTANCES`).

So a set that is called empty is. With several arrays, which the lanes of one dimension couple, the exact count decides
besides. What lanes and capacities exclude together is not found here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import comb
from typing import Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping.batch import Layout, slot_axes
from tilewright.mapping.fit import array_fits, rooms
from tilewright.mapping.spaces.rules.constraints import Bounds, Constraints
from tilewright.mapping.spaces.rules.tilings import Bands, Chains, Marks, bands, exact_slots
from tilewright.mapping.spaces.space import MapSpace, Tiling
from tilewright.workload import Operator

Kind = Literal["side", "capacity", "tiling", "loops", "factors", "tiles", "utilization"]
Pairs: TypeAlias = set[tuple[int, int]]
Key: TypeAlias = tuple[object, ...]
Row: TypeAlias = NDArray[np.int64]

ENDLESS = 2**31
"""The side of an array that nothing limits."""

MOST_INSTANCES, MOST_EXTENT = 1024, 2**16
"""Largest array whose lanes are combined exactly, and largest dimension; beyond, they are bounded."""

MOST_SIZE = 2**22
"""Largest dimension whose chains are looked at; spaces with larger ones are not known to be empty."""

MOST_TRIALS = 2000
"""Sets of one size that are tried, at most."""


@dataclass(frozen=True)
class Atom:
    """One part of what a map space is put together from.

    Parameters
    ----------
    kind
        The field of `Constraints` that it stands in, or ``tiling``; ``side`` and ``capacity`` are the machine's.
    place
        The memory, the side of an array, the fan-out, or the partition (``Spads.inputs``).
    dimension
        For factors and tiles.
    says
        What it asks for.
    """

    kind: Kind
    place: str = ""
    dimension: str = ""
    says: str = ""

    @property
    def path(self) -> str:
        """Where it stands: ``factors.PEs.X.K``, ``tiling``; of the machine's, the place."""
        own = "" if self.kind in ("side", "capacity") else self.kind
        return ".".join(filter(None, (own, self.place, self.dimension)))

    @property
    def given(self) -> bool:
        """Whether it is a constraint; else it is the machine's."""
        return self.kind not in ("side", "capacity")

    def __str__(self) -> str:
        return f"{self.path} = {self.says}" if self.given else f"{self.says} of {self.path}"


def conflicts(operator: Operator, accelerator: Accelerator, tiling: Tiling,
              constraints: Constraints) -> tuple[Atom, ...]:
    """Return the smallest set of atoms found that leaves no mapping; none where the space is not known to be empty.

    What memories keep, and the operator's sizes, are taken as they are.
    """
    if max(operator.sizes.values()) > MOST_SIZE:
        return ()
    oracle = _Oracle(operator, accelerator, constraints)
    atoms = [*_machine_atoms(operator, accelerator, constraints), *_given_atoms(tiling, constraints)]
    if not oracle.empty(atoms):
        return ()
    core = list(atoms)
    for atom in atoms:
        rest = [other for other in core if other != atom]
        if oracle.empty(rest):
            core = rest
    return next((found for found in _smaller(atoms, len(core)) if oracle.empty(found)), tuple(core))


def _smaller(atoms: list[Atom], size: int) -> Iterable[tuple[Atom, ...]]:
    """Yield all sets of fewer than ``size`` atoms, the smallest first, while there are not too many."""
    for count in range(1, size):
        if comb(len(atoms), count) > MOST_TRIALS:
            return
        yield from combinations(reversed(atoms), count)


def refuse_empty(space: MapSpace, where: Callable[[str], str | None] | None = None, alone: bool = True) -> None:
    """Raise if a space has no mapping.

    ``where`` gives the file and line of an entry by its path, None where it stands in no file. With ``alone`` it is
    raised also where the machine alone leaves none.

    Raises
    ------
    InputError
        Naming the smallest set of entries, array sides and capacities that conflict.
    """
    found = conflicts(space.operator, space.accelerator, space.tiling, space.constraints)
    if not found or not (alone or any(atom.given for atom in found)):
        return
    operator, machine = space.operator, space.accelerator.name
    lines = {atom: (where(atom.path) if where and atom.given else None) or "" for atom in found}
    first, *others = sorted(found, key=lambda atom: (not atom.given, not lines[atom], _line_number(lines[atom])))
    told = [f"{atom} ({lines[atom]})" if lines[atom] else str(atom) for atom in others]
    asked = first.says if first.given else str(first)
    clash = f"{asked} conflicts with {_listed(told)}" if told else f"{asked} cannot be had"
    named = dict.fromkeys(atom.dimension for atom in (first, *others) if atom.dimension)
    sizes = "".join(f", {name} is {operator.sizes[name]}" for name in named)
    field = f"space.{first.path}" if first.given else f"{machine}.{first.path}"
    if lines[first]:
        field = f"{lines[first]}: {first.path}"
    mend = "Loosen one of them" if told else ""
    raise InputError(field, f"must leave a mapping of {operator.name} on {machine}: {clash}{sizes}", mend=mend)


def _line_number(line: str) -> int:
    return int(line.rpartition(":")[2]) if line else 0


def _listed(parts: list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def _given_atoms(tiling: Tiling, constraints: Constraints) -> list[Atom]:
    found = [] if tiling == "imperfect" else [Atom("tiling", says=tiling)]
    found += [Atom("utilization", place, says=f"{share:g}") for place, share in constraints.utilization.items()]
    found += [Atom("loops", place, says=" ".join(dims) or "none") for place, dims in constraints.loops.items()]
    found += [Atom("tiles", place, dim, str(bounds)) for place, limits in constraints.tiles.items()
              for dim, bounds in limits.items()]
    found += [Atom("factors", place, dim, str(bounds)) for place, limits in constraints.factors.items()
              for dim, bounds in limits.items()]
    return found


def _machine_atoms(operator: Operator, accelerator: Accelerator, constraints: Constraints) -> list[Atom]:
    found = []
    for fanout in accelerator.fanouts:
        if _fixed(fanout):
            found += [Atom("side", f"{fanout.name}.{axis}",
                           says=f"the {places} places" if places > 1 else "the one place")
                      for axis, places in zip("XY", fanout.shape, strict=True) if axis in slot_axes(fanout)]
        else:
            found.append(Atom("side", fanout.name, says=f"the {fanout.instances} instances"))
    ones = dict.fromkeys(operator.sizes, 1)
    for memory in accelerator.memories:
        kept = tuple(t for t in operator.tensors if memory.can_keep(t.name, t.role)
                     and t.name in constraints.keeps.get(memory.name, (t.name,)))
        for room in rooms(memory, kept, ones, accelerator):
            if room.capacity_bytes is not None:
                place = memory.name if room.partition is None else f"{memory.name}.{room.partition}"
                copies = " for two copies" if room.copies > 1 else ""
                found.append(Atom("capacity", place, says=f"the {room.capacity_bytes:g} bytes{copies}"))
    return found


def _fixed(fanout: Fanout) -> bool:
    return not fanout.flexible and fanout.blocks is None


def _holds_none(space: MapSpace) -> bool:
    """Whether the exact count of a space is none; False where it is too large to be counted."""
    try:
        size = space.size()
    except InputError:
        return False
    return size.exact and size.mappings == 0


@dataclass(frozen=True)
class _Line:
    """What one dimension may do under some atoms.

    ``least`` are its least extents outside each slot, ``chains`` its chains, ``outward`` and ``inward`` their marks.
    """

    least: tuple[int, ...]
    chains: Chains
    outward: Marks
    inward: Marks

    def most_lanes(self, s: int) -> int:
        """Return a bound on the count at slot ``s``."""
        widest, narrowest = int(np.flatnonzero(self.outward[s])[-1]), int(self.inward[s + 1].argmax())
        return min(-(-widest // narrowest), int(self.chains.band.most[s]))


class _Oracle:
    """Decides for sets of atoms whether they leave a mapping; what it finds out of a dimension it keeps."""

    def __init__(self, operator: Operator, accelerator: Accelerator, constraints: Constraints) -> None:
        self.operator, self.accelerator, self.constraints = operator, accelerator, constraints
        self.layout = Layout.of(operator, accelerator)
        self.places = [name if slot.axis == "T" else f"{name}.{slot.axis}"
                       for slot in self.layout.slots for name in [self.layout.levels[slot.level]]]
        self.lines: dict[Key, _Line | None] = {}
        self.lanes: dict[Key, Pairs] = {}
        self.counted: dict[Key, bool] = {}
        self.sides = {atom.place for atom in _machine_atoms(operator, accelerator, constraints) if atom.kind == "side"}

    def empty(self, atoms: Iterable[Atom]) -> bool:
        """Whether the atoms leave no mapping; False where that is not known."""
        active = frozenset(atoms)
        tiling = next((atom.says for atom in active if atom.kind == "tiling"), "imperfect")
        part = self._part(active)
        sizes = self.operator.dimensions
        free = np.array([[name in part.loops.get(place, (name,)) and size > 1 for name, size in sizes]
                         for place in self.places], dtype=np.uint8)
        band = bands(part, self.places, self.operator.sizes, free, self._sides(active))
        temporal = np.array([slot.axis == "T" for slot in self.layout.slots])
        lines: dict[str, tuple[Key, _Line]] = {}
        for d, (name, size) in enumerate(self.operator.dimensions):
            if size > 1 and not free[temporal, d].any():
                return True
            key = (d, tiling, *(row[:, d].tobytes() for row in band))
            if key not in self.lines:
                self.lines[key] = self._line(size, Bands(*(row[:, d] for row in band)), tiling)
            line = self.lines[key]
            if line is None:
                return True
            lines[name] = key, line
        if not self._fits(active, {name: line for name, (_, line) in lines.items()}):
            return True
        if all(self._spreads(fanout, part, active, list(lines.values())) for fanout in self.accelerator.fanouts):
            return self._counts_none(active, cast(Tiling, tiling), part)
        return True

    def _counts_none(self, active: frozenset[Atom], tiling: Tiling, part: Constraints) -> bool:
        """Whether there are several arrays, on which the atoms bound lanes, and the exact count is none."""
        arrays = [fanout for fanout in self.accelerator.fanouts if fanout.instances > 1]
        bounded = part.utilization or any(place not in self.layout.levels for place in part.factors)
        sides = {atom.place for atom in active if atom.kind == "side"}
        if len(arrays) < 2 or not bounded or not sides >= self.sides:
            return False
        key = tiling, str(part)
        if key not in self.counted:
            whole = replace(part, keeps=self.constraints.keeps)
            self.counted[key] = _holds_none(MapSpace(self.operator, self.accelerator, tiling, whole))
        return self.counted[key]

    def _part(self, active: frozenset[Atom]) -> Constraints:
        """Return the constraints that are among the atoms."""
        kinds = {kind: {(atom.place, atom.dimension) for atom in active if atom.kind == kind}
                 for kind in ("loops", "factors", "tiles", "utilization")}

        def limits(kind: Literal["factors", "tiles"]) -> dict[str, dict[str, Bounds]]:
            entries = getattr(self.constraints, kind)
            return {place: {dim: bounds for dim, bounds in found.items() if (place, dim) in kinds[kind]}
                    for place, found in entries.items()}

        return Constraints(
            loops={place: dims for place, dims in self.constraints.loops.items() if (place, "") in kinds["loops"]},
            factors=limits("factors"), tiles=limits("tiles"),
            utilization={place: share for place, share in self.constraints.utilization.items()
                         if (place, "") in kinds["utilization"]})

    def _sides(self, active: frozenset[Atom]) -> Row:
        """Return ``(s)``: the most lanes of one side as far as the atoms say, 0 where nothing limits them."""
        limited = {atom.place for atom in active if atom.kind == "side"}
        found = np.zeros(len(self.places), dtype=np.int64)
        for s, slot in enumerate(self.layout.slots):
            level = self.accelerator.levels[slot.level]
            if isinstance(level, Fanout) and {level.name, self.places[s]} & limited:
                found[s] = level.shape["XY".index(slot.axis)] if _fixed(level) else level.instances
        return found

    def _line(self, size: int, band: Bands, tiling: str) -> _Line | None:
        """Return what a dimension may do within its bounds; None if nothing."""
        chains = Chains(size, band, tiling != "imperfect", exact_slots(tiling, self.layout))
        outward, inward = chains.outward(), chains.inward()
        if not outward[-1, 1]:
            return None
        common = outward & inward
        return _Line(tuple(int(row.argmax()) for row in common), chains, outward, inward)

    def _fits(self, active: frozenset[Atom], lines: dict[str, _Line]) -> bool:
        """Whether the least tile of every memory fits the capacities that are among the atoms."""
        limited = {atom.place for atom in active if atom.kind == "capacity"}
        for memory in self.accelerator.memories:
            kept = tuple(t for t in self.operator.tensors if memory.can_keep(t.name, t.role)
                         and t.name in self.constraints.keeps.get(memory.name, (t.name,)))
            s = self.places.index(memory.name)
            extents = {name: line.least[s] for name, line in lines.items()}
            for room in rooms(memory, kept, extents, self.accelerator):
                place = memory.name if room.partition is None else f"{memory.name}.{room.partition}"
                if place in limited and not room.fits:
                    return False
        return True

    def _spreads(self, fanout: Fanout, part: Constraints, active: frozenset[Atom],
                 lines: list[tuple[Key, _Line]]) -> bool:
        """Whether lanes of all dimensions fit an array, as far as the atoms limit it, and are as many as they must."""
        needed = part.lanes_needed(fanout.name, fanout.instances)
        array = self._array(fanout, active)
        slots = [s for s, slot in enumerate(self.layout.slots) if self.layout.levels[slot.level] == fanout.name]
        if array is not None:
            least: Pairs = {(1, 1)}
            for key, line in lines:
                lanes = self._kept((fanout.name, "least", *key), partial(_least_lanes, line, slots))
                least = _minimal((x * a, y * b) for x, y in least for a, b in lanes)
            if not any(array_fits(array, x, y) for x, y in least):
                return False
        if needed <= 1:
            return True
        largest = max(self.operator.sizes.values())
        if array != fanout or fanout.instances > MOST_INSTANCES or largest > MOST_EXTENT:
            bounds = (np.prod([line.most_lanes(s) for _, line in lines], dtype=float) for s in slots)
            whole = fanout.instances if array == fanout else np.inf
            return bool(min(np.prod(list(bounds)), whole) >= needed)
        lanes_of = [self._kept((fanout.name, "all", *key), partial(_all_lanes, line, slots, fanout))
                    for key, line in lines]
        return bool(_most_lanes(fanout, lanes_of) >= needed)

    def _kept(self, key: Key, found: Callable[[], Pairs]) -> Pairs:
        if key not in self.lanes:
            self.lanes[key] = found()
        return self.lanes[key]

    def _array(self, fanout: Fanout, active: frozenset[Atom]) -> Fanout | None:
        """Return the array with the sides that are among the atoms; None where nothing limits it."""
        limited = {atom.place for atom in active if atom.kind == "side"}
        if not _fixed(fanout):
            return fanout if fanout.name in limited else None
        sides = [places if f"{fanout.name}.{axis}" in limited or axis not in slot_axes(fanout) else ENDLESS
                 for axis, places in zip("XY", fanout.shape, strict=True)]
        return replace(fanout, shape=(sides[0], sides[1])) if min(sides) < ENDLESS else None


def _least_lanes(line: _Line, slots: list[int]) -> Pairs:
    """Return the lanes along both sides of an array of which no fewer will do."""
    outside, inside = line.outward[slots[0]], line.inward[slots[-1] + 1]
    if all(line.chains.band.least[s] <= 1 for s in slots) and (outside & inside)[1:].any():
        return {(1, 1)}
    return _minimal(_lanes(line, slots, first=True))


def _minimal(pairs: Iterable[tuple[int, int]]) -> Pairs:
    """Return the pairs than which no other is smaller in both."""
    found: Pairs = set()
    for x, y in sorted(pairs):
        if not any(b <= y for _, b in found):
            found.add((x, y))
    return found


def _all_lanes(line: _Line, slots: list[int], fanout: Fanout) -> Pairs:
    """Return all lanes that a dimension may take of an array; of a flexible one their product, along X."""
    found = {pair for pair in _lanes(line, slots) if array_fits(fanout, *pair)}
    return {(x * y, 1) for x, y in found} if fanout.flexible else found


def _lanes(line: _Line, slots: list[int], first: bool = False) -> Iterable[tuple[int, int]]:
    """Yield the lanes along both sides that some chain has; with ``first`` only the least along X for each along Y."""
    chains, across = line.chains, slots[0]
    most = 1 if first else None
    if len(slots) == 1:
        counts = chains.counts(across, line.outward[across], line.inward[across + 1])
        yield from ((x, 1) for x in counts[:most])
        return
    down = slots[1]
    for y in chains.counts(down, line.outward[down], line.inward[down + 1]):
        least, top = chains.band.least.copy(), chains.band.most.copy()
        least[down] = top[down] = y
        with_y = Chains(chains.size, chains.band._replace(least=least, most=top), chains.whole, chains.exact)
        between = with_y.outside_of(line.inward[down + 1], down)
        yield from ((x, y) for x in with_y.counts(across, line.outward[across], between)[:most])


def _most_lanes(fanout: Fanout, lanes_of: list[Pairs]) -> int:
    """Return the most lanes that one choice for each dimension uses together, within an array."""
    shape = tuple(1 + max(x for lanes in lanes_of for x in [*(pair[side] for pair in lanes), 1]) for side in (0, 1))
    width, height = (fanout.instances, 1) if fanout.flexible else fanout.shape
    if fanout.blocks:
        blocks = fanout.instances // (fanout.blocks[0] * fanout.blocks[1])
        width, height = blocks * fanout.blocks[0], blocks * fanout.blocks[1]
    grid = np.zeros((max(width + 1, shape[0]), max(height + 1, shape[1])), dtype=np.bool_)
    room = np.array([[array_fits(fanout, x, y) for y in range(grid.shape[1])] for x in range(grid.shape[0])])
    grid[1, 1] = True
    for lanes in lanes_of:
        after = np.zeros_like(grid)
        for x, y in lanes:
            across, down = (grid.shape[0] - 1) // x, (grid.shape[1] - 1) // y
            after[x:x * across + 1:x, y:y * down + 1:y] |= grid[1:across + 1, 1:down + 1]
        grid = after & room
    used = np.argwhere(grid)
    return int(used.prod(axis=1).max(initial=0))
