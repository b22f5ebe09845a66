"""Why a map space is empty: the smallest set of constraints, array sides and capacities that cannot be had together.

The parts that a space is put together from (*atoms*) are left out one by one, as long as what remains is still empty;
then all smaller sets are tried while that is cheap. A set is empty if something that every mapping needs is missing:

* each dimension has a chain of steps within its bounds (exact, by itself);
* the least tile of each memory fits it (every dimension at the least extent that some chain has there);
* lanes of all dimensions together fit the arrays and fill their floors (as they are counted, where tables can be).

So a set that is called empty is. What lanes and capacities exclude together is not found here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, together
from tilewright.hardware import Accelerator, Memory
from tilewright.mapping.batch import Layout, slot_axes
from tilewright.mapping.fit import Room, rooms
from tilewright.mapping.spaces.counting.chains import Splits, TooLarge
from tilewright.mapping.spaces.counting.size import SpaceTables
from tilewright.mapping.spaces.rules.arrays import (
    EXACT,
    FLOOR,
    KIND,
    LIMIT,
    SPATIAL,
    SpaceArrays,
    chains_of,
    side_limits,
    space_arrays,
)
from tilewright.mapping.spaces.rules.constraints import Constraints
from tilewright.mapping.spaces.rules.tilings import Tiling, bands
from tilewright.workload import Operator, Tensor

Kind = Literal["side", "capacity", "tiling", "loops", "factors", "tiles", "utilization"]
Key: TypeAlias = tuple[object, ...]

MOST_SIZE = 2**22
"""Largest dimension whose chains are looked at; spaces with larger ones are not known to be empty."""

MOST_TRIALS = 2000
"""Sets of one size that are tried, at most."""


@dataclass(frozen=True)
class Atom:
    """One part of what a map space is put together from."""

    kind: Kind
    """The field of `Constraints` that it stands in, or ``tiling``; ``side`` and ``capacity`` are the machine's."""
    place: str = ""
    """The memory, the side of an array, the fan-out, or the partition (``Spads.inputs``)."""
    dimension: str = ""
    """For factors and tiles."""
    says: str = ""
    """What it asks for."""

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


def conflict_error(found: tuple[Atom, ...], operator: Operator, machine: str,
                   where: Callable[[str], str | None] | None = None) -> InputError:
    """Return the error that names atoms which leave no mapping.

    ``where`` gives the file and line of an entry by its path, None where it stands in no file.
    """
    lines = {atom: (where(atom.path) if where and atom.given else None) or "" for atom in found}
    order = {atom: (not atom.given, not line, int(line.rpartition(":")[2] or 0)) for atom, line in lines.items()}
    first, *others = sorted(found, key=order.__getitem__)
    told = [f"{atom} ({lines[atom]})" if lines[atom] else str(atom) for atom in others]
    asked = first.says if first.given else str(first)
    clash = f"{asked} conflicts with {together(told)}" if told else f"{asked} cannot be had"
    named = dict.fromkeys(atom.dimension for atom in (first, *others) if atom.dimension)
    sizes = "".join(f", {name} is {operator.sizes[name]}" for name in named)
    field = f"space.{first.path}" if first.given else f"{machine}.{first.path}"
    if lines[first]:
        field = f"{lines[first]} {field}"
    mend = "Loosen one of them" if told else ""
    return InputError(field, f"must leave a mapping of {operator.name} on {machine}: {clash}{sizes}", mend=mend)


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
        if not fanout.one_piece:
            found += [Atom("side", f"{fanout.name}.{axis}",
                           says=f"the {places} places" if places > 1 else "the one place")
                      for axis, places in zip("XY", fanout.shape, strict=True) if axis in slot_axes(fanout)]
        else:
            found.append(Atom("side", fanout.name, says=f"the {fanout.instances} instances"))
    ones = dict.fromkeys(operator.sizes, 1)
    for memory in accelerator.memories:
        for room in rooms(memory, _kept(memory, operator, constraints), ones, accelerator):
            if room.capacity_bytes is not None:
                copies = " for two copies" if room.copies > 1 else ""
                found.append(Atom("capacity", _room_place(memory, room),
                                  says=f"the {room.capacity_bytes:g} bytes{copies}"))
    return found


def _kept(memory: Memory, operator: Operator, constraints: Constraints) -> tuple[Tensor, ...]:
    return tuple(t for t in operator.tensors if memory.can_keep(t.name, t.role)
                 and t.name in constraints.keeps.get(memory.name, (t.name,)))


def _room_place(memory: Memory, room: Room) -> str:
    return memory.name if room.partition is None else f"{memory.name}.{room.partition}"


class _Oracle:
    """Decides for sets of atoms whether they leave a mapping; what it finds out of a dimension it keeps."""

    def __init__(self, operator: Operator, accelerator: Accelerator, constraints: Constraints) -> None:
        self.operator, self.accelerator, self.constraints = operator, accelerator, constraints
        self.layout = Layout.of(operator, accelerator)
        self.extents: dict[Key, tuple[int, ...] | None] = {}
        self.splits: dict[Key, Splits] = {}

    def empty(self, atoms: Iterable[Atom]) -> bool:
        """Whether the atoms leave no mapping; False where that is not known."""
        active = frozenset(atoms)
        tiling = next((atom.says for atom in active if atom.kind == "tiling"), "imperfect")
        part = self._part(active)
        try:
            space = space_arrays(self.operator, self.accelerator, tiling, part, self.layout)
        except InputError:
            return True
        slots = self._limited(space.slots, active)
        space = space._replace(slots=slots, bands=bands(
            part, self.layout.places, self.operator.sizes, space.free, side_limits(slots)))
        least = [self._least_extents(space, d) for d in range(len(space.sizes))]
        return None in least or not self._fits(active, least) or self._too_few_lanes(space)

    def _limited(self, slots: NDArray[np.int32], active: frozenset[Atom]) -> NDArray[np.int32]:
        """Return the table of slots with only those sides and arrays limited that are among the atoms."""
        named = {atom.place for atom in active if atom.kind == "side"}
        found = slots.copy()
        for s, (slot, place) in enumerate(zip(self.layout.slots, self.layout.places, strict=True)):
            if slot.axis != "T" and not named & {place, self.layout.levels[slot.level]}:
                found[s, LIMIT] = -1
        return found

    def _part(self, active: frozenset[Atom]) -> Constraints:
        """Return the constraints that are among the atoms."""
        found: dict[str, dict[str, Any]] = {"loops": {}, "factors": {}, "tiles": {}, "utilization": {}}
        for atom in active:
            if atom.kind in found:
                entry = getattr(self.constraints, atom.kind)[atom.place]
                if atom.dimension:
                    found[atom.kind].setdefault(atom.place, {})[atom.dimension] = entry[atom.dimension]
                else:
                    found[atom.kind][atom.place] = entry
        return Constraints(**found)

    def _least_extents(self, space: SpaceArrays, d: int) -> tuple[int, ...] | None:
        """Return the least extents of a dimension outside each slot; None where it has no chain."""
        key = self._key(space, d)
        if key not in self.extents:
            chains = chains_of(space, d)
            outward = chains.outward()
            common = outward & chains.inward()
            self.extents[key] = tuple(common.argmax(axis=1).tolist()) if outward[-1, 1] else None
        return self.extents[key]

    def _fits(self, active: frozenset[Atom], least: Sequence[tuple[int, ...] | None]) -> bool:
        """Whether the least tile of every memory fits the capacities that are among the atoms."""
        limited = {atom.place for atom in active if atom.kind == "capacity"}
        for memory in self.accelerator.memories:
            s = self.layout.places.index(memory.name)
            extents = {name: some[s] for name, some in zip(self.operator.sizes, least, strict=True) if some}
            for room in rooms(memory, _kept(memory, self.operator, self.constraints), extents, self.accelerator):
                if _room_place(memory, room) in limited and not room.fits:
                    return False
        return True

    def _too_few_lanes(self, space: SpaceArrays) -> bool:
        """Whether no choice of chains, one for each dimension, fits the arrays and uses the lanes that it must."""
        spatial = space.slots[:, KIND] == SPATIAL
        still = space.bands.most.copy()
        still[spatial] = 1
        in_time = space._replace(bands=space.bands._replace(most=still))
        if not (space.slots[:, FLOOR] > 1).any() and (space.bands.least[spatial] <= 1).all() and all(
                self._least_extents(in_time, d) for d in range(len(space.sizes))):
            return False
        keys = {d: (*self._key(space, d), space.slots.tobytes()) for d in np.flatnonzero(space.sizes > 1).tolist()}
        try:
            tables = SpaceTables(space, [], {d: self.splits[key] for d, key in keys.items() if key in self.splits})
        except TooLarge:
            return False
        self.splits |= {keys[d]: splits for d, splits in zip(tables.dims, tables.splits, strict=True)}
        return tables.empty

    @staticmethod
    def _key(space: SpaceArrays, d: int) -> Key:
        return d, space.whole, space.slots[:, EXACT].tobytes(), *(band[:, d].tobytes() for band in space.bands)
