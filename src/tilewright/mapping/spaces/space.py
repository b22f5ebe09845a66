"""The mappings that a mapper may use, and how to draw, enumerate and repair them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, late_module
from tilewright.hardware import Accelerator
from tilewright.mapping.batch import MOST_STEP, Layout, MappingBatch
from tilewright.mapping.spaces.conflicts import conflict_error, conflicts
from tilewright.mapping.spaces.counting.orders import patterns_of
from tilewright.mapping.spaces.counting.size import SpaceSize, in_time_alone
from tilewright.mapping.spaces.drawing.uniform import UniformDraws
from tilewright.mapping.spaces.rules.arrays import (
    GROUPS,
    LIMIT,
    META,
    ORDER_COUNT,
    ORDER_START,
    PERFECT,
    SLOT,
    SpaceArrays,
    add_bounds,
    add_known,
    pack,
    pack_rules,
    space_arrays,
)
from tilewright.mapping.spaces.rules.constraints import Constraints
from tilewright.mapping.spaces.rules.tilings import TILINGS, Tiling, common_tiling
from tilewright.workload import Operator

kernels = late_module("tilewright.mapping.spaces.kernels")
enumeration = late_module("tilewright.mapping.spaces.counting.enumeration")
sampling = late_module("tilewright.mapping.spaces.drawing.sampling")
mappings = late_module("tilewright.mapping.spaces.repair.mappings")
projection = late_module("tilewright.mapping.spaces.repair.projection")
# Random mappings from which some of a space with rules are made, in draws of so many, and how many are enough.
DRAWS, DRAWN, MOST_KNOWN = 16, 256, 64


@dataclass(frozen=True)
class MapSpace:
    """The mappings of one operator on one accelerator that a mapper may use.

    Raises an `InputError` if a size is above 2^31 - 1, or a constraint names an unknown place or dimension or has a
    number out of range; on first use, if it leaves a dimension no memory to loop at; as soon as a mapping is wanted, if
    it holds none.
    """

    operator: Operator
    accelerator: Accelerator
    tiling: Tiling = "imperfect"
    """``perfect``: every step divides the extent outside it. ``imperfect``: any step at any slot. ``ruby``: full
    tiles divide, the last one of a loop may be smaller; ``ruby-s`` and ``ruby-t``: that of loops in space, in time
    alone (Horeni et al., ISPASS 2022, equation 5)."""
    constraints: Constraints = field(default_factory=Constraints)
    """What is left out beside that. Every dimension needs a memory where it may loop."""

    def __post_init__(self) -> None:
        if self.tiling not in TILINGS:
            raise InputError("space.tiling", f"must be one of {', '.join(TILINGS)}", self.tiling)
        for name, size in self.operator.sizes.items():
            if size > MOST_STEP:
                raise InputError(f"{self.operator.name}.{name}", f"must be at most {MOST_STEP}, to be mapped", size,
                                 "Split the operator")
        self.constraints.check(self.operator, self.accelerator)

    def refuse_empty(self, where: Callable[[str], str | None] | None = None, alone: bool = True) -> None:
        """Raise if the space has no mapping.

        ``where`` gives the file and line of an entry by its path, None where it stands in no file. With ``alone`` it is
        raised also where the machine alone leaves none.

        Raises an `InputError` naming the smallest set of entries, array sides and capacities that conflict.
        """
        found = conflicts(self.operator, self.accelerator, self.tiling, self.constraints)
        if found and (alone or any(atom.given for atom in found)):
            raise conflict_error(found, self.operator, self.accelerator.name, where)

    @cached_property
    def layout(self) -> Layout:
        """The layout of all batches of this space."""
        names = [tensor.name for tensor in self.operator.tensors]
        keeps = {place: tuple(name for name in names if name in kept) for place, kept in self.constraints.keeps.items()}
        return Layout.of(self.operator, self.accelerator, keeps=keeps)

    @cached_property
    def arrays(self) -> SpaceArrays:
        """The space as arrays."""
        return space_arrays(self.operator, self.accelerator, self.tiling, self.constraints, self.layout)

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """The space as the one table that compiled code reads; where there are rules, with a mapping that obeys them.

        Raises an `InputError` if no mapping that obeys the rules is found.
        """
        return self._with_known(self.rules) if self.arrays.ruled else pack(self.arrays)

    @cached_property
    def divisible(self) -> NDArray[np.int64]:
        """The table for operators that keep whole factors apart, where that is most of what the rules ask.

        In spaces of the tilings of Ruby it says that steps are perfect, which are among theirs; else it is `table`.
        """
        if not (self.arrays.ruled and self.arrays.whole):
            return self.table
        table = self.table.copy()
        table[META, PERFECT] = True
        return table

    @cached_property
    def rules(self) -> NDArray[np.int64]:
        """The table with all rules written out."""
        return pack_rules(self.arrays)

    @cached_property
    def bounds(self) -> NDArray[np.int64]:
        """A table with what of the rules a mapping is held against, also where steps are simply free or perfect."""
        return self.rules if self.arrays.ruled else add_bounds(self.table, self.arrays)

    def table_on(self, machine: Accelerator) -> NDArray[np.int64]:
        """Return `table` with the sides and capacities of another machine of this structure, which has its slots.

        Raises an `InputError` if the space has rules, as what these leave is another thing on each machine.
        """
        if self.arrays.ruled:
            raise InputError("space", "must have no rules to be taken to another machine", self.accelerator.name)
        table, (limits, rooms) = self.table.copy(), self.arrays.limits_on(self.layout, machine)
        table[SLOT:SLOT + len(limits), LIMIT], table[GROUPS:GROUPS + len(rooms), 1] = limits, rooms
        return table

    def on(self, machine: Accelerator) -> "MapSpace":
        """Return the space on another machine of this structure, which has its slots."""
        made = replace(self, accelerator=machine)
        if not self.arrays.ruled:
            vars(made)["layout"], vars(made)["arrays"] = self.layout, self.arrays.on(self.layout, machine)
        return made

    @property
    def unaided(self) -> NDArray[np.int64]:
        """The table without known mappings, which takes no looking for them."""
        return self.rules if self.arrays.ruled else self.table

    def size(self) -> SpaceSize:
        """Return how many mappings `enumerate` yields: counted, or estimated where that would take too long."""
        return self._uniform.size

    def within(self, most: int) -> bool:
        """Whether the space is known to hold at most ``most`` mappings; much sooner than `size` where it holds more."""
        more = not self.constraints.orders and in_time_alone(self.arrays) > most
        return not more and self.size().exact and self.size().mappings <= most

    def legal_size(self, rng: Generator, draws: int = 20_000) -> SpaceSize:
        """Return an unbiased estimate of how many of them fit the memories too, with its error (`UniformDraws`)."""
        return self._uniform.legal_size(rng, draws)

    def draw(self, rng: Generator, count: int, legal: bool = False) -> MappingBatch:
        """Draw ``count`` mappings, each of the space as likely as any other, independent of one another.

        With ``legal``, from those whose tiles fit the memories, by leaving out the others. The mappings are those that
        `enumerate` yields. Most of a large space is much alike; `sample` spreads its draws over all scales.

        Raises an `InputError` if there are none, or hardly any draw is legal.
        """
        batch = self.unwritten(count)
        self._uniform.draw(rng, batch.steps, batch.ranks, legal)
        return batch

    @cached_property
    def _uniform(self) -> UniformDraws:
        return UniformDraws(self.arrays, patterns_of(self.layout, self.constraints.orders),
                            lambda steps, ranks: self.fits(MappingBatch(self.layout, steps, ranks)))

    def empty(self, count: int) -> MappingBatch:
        """Return a batch of ``count`` mappings without loops."""
        shape = (*self.layout.shape, count)
        return MappingBatch(self.layout, np.ones(shape, dtype=np.int32), np.zeros(shape, dtype=np.int8))

    def unwritten(self, count: int) -> MappingBatch:
        """Return a batch whose arrays hold anything, all of which is to be written."""
        shape = (*self.layout.shape, count)
        return MappingBatch(self.layout, np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.int8))

    def scratch(self) -> NDArray[np.int64]:
        """Return room for compiled code to work in; one for each thread."""
        slots, dims = self.layout.shape
        return np.zeros((4, max(slots + 1, 3), max(slots, dims)), dtype=np.int64)

    def sample(self, rng: Generator, count: int, filling: float = 0.0, dividing: float = 0.0) -> MappingBatch:
        """Draw ``count`` random mappings of the space (their tiles may not fit the memories).

        Each dimension visits its slots in random order, and each slot takes a random part of what is left: with
        perfect tiling a divisor, all equally likely, otherwise a count, uniform in its logarithm. ``filling`` is the
        share of mappings that first spread as many lanes as fit; ``dividing`` the chance of each dimension to be split
        as with perfect tiling where the tiling is one of Ruby's. What then breaks a rule is repaired.
        """
        state, batch = random_state(rng), self.empty(count)
        sampling.sample(self.table, state, float(filling), self.scratch(), batch.steps, batch.ranks)
        if dividing and self.divisible is not self.table:
            perfect = self.empty(count)
            sampling.sample(self.divisible, state, float(filling), self.scratch(), perfect.steps, perfect.ranks)
            np.copyto(batch.steps, perfect.steps, where=rng.random(batch.steps.shape[1:]) < dividing)
        if self.arrays.ruled:
            self._legalise(self.table, state, batch, fitting=None)
        return batch

    def fitting(self, rng: Generator, count: int, filling: float = 0.0) -> MappingBatch:
        """Draw ``count`` random mappings as `sample` does, with tiles made smaller as `refit` makes them."""
        return self.refit(self.sample(rng, count, filling))

    def repair(self, batch: MappingBatch) -> MappingBatch:
        """Return the batch with every mapping that the space does not contain replaced by one near it.

        Extents are set from the innermost slot outward, dimension by dimension: each becomes the one nearest by ratio
        that those inside it and the space allow. Loops that are in no allowed order get that with the fewest pairs
        swapped. Without rules (see `SpaceArrays`) slots outside the outermost memory where a dimension may loop go
        from outside inward. A mapping that cannot be mended so is replaced by any of the space.
        """
        legal = self.contains(batch)
        if legal.all():
            return batch.take(slice(None))
        repaired = self._mended(batch, fitting=False)
        repaired.steps[:, :, legal], repaired.ranks[:, :, legal] = batch.steps[:, :, legal], batch.ranks[:, :, legal]
        return repaired

    def contains(self, batch: MappingBatch) -> NDArray[np.bool_]:
        """Return ``(b)``: whether each mapping is one of the space; its tiles may not fit the memories (see `fits`).

        So are all that `sample` draws, `repair` returns and `enumerate` yields. A batch of another layout, which keeps
        other tensors or has other slots, holds none.
        """
        out = np.zeros(len(batch), dtype=np.bool_)
        if batch.layout != self.layout:
            return out
        projection.inside_mask(self.bounds, self.scratch(), batch.steps, batch.ranks, out)
        places = np.arange(len(self.layout.dimensions))[None, :, None]
        resting = np.array(list(self.operator.sizes.values())) == 1
        return np.asarray(out & (np.sort(batch.ranks[self.layout.temporal], axis=1) == places).all(axis=(0, 1))
                          & (batch.steps[:, resting] == 1).all(axis=(0, 1)))

    def fits(self, batch: MappingBatch) -> NDArray[np.bool_]:
        """Return ``(b)``: whether loops fit the arrays and tiles the memories, whatever else the space asks."""
        out = np.empty(len(batch), dtype=np.bool_)
        mappings.fit_mask(self.unaided, self.scratch(), batch.steps, batch.ranks, out)
        return out

    def fresh(self, batch: MappingBatch, seen: NDArray[np.uint64]) -> MappingBatch:
        """Return the mappings whose tiles fit and that cost otherwise than those in ``seen`` ``(n)``; put them there.

        The first of equals stays. Of more than the table has room for, a newer one takes the place of an older one.
        """
        out = np.empty(len(batch), dtype=np.bool_)
        kernels.fresh_mask(self.table, seen, self.scratch(), batch.steps, batch.ranks, out)
        return batch.take(np.flatnonzero(out))

    def legalise(self, batch: MappingBatch, state: NDArray[np.uint64], span: tuple[int, int],
                 fitting: bool = True) -> None:
        """Make those mappings from ``span[0]`` to ``span[1]`` that break a rule legal, in place; loop orders stay.

        ``state`` is of `random_state`. With ``fitting`` tiles are also made to fit the memories where possible.
        Nothing is done where the space has no rules.
        """
        if self.arrays.ruled:
            self._legalise(self.table, state, batch, fitting or None, span)

    def refit(self, batch: MappingBatch) -> MappingBatch:
        """Return the batch with tiles that do not fit the memories made smaller where possible.

        What is moved outward is drawn at random from a fixed seed; the batch must be of the space (see `repair`).
        """
        return self._mended(self.settled(batch), fitting=True)

    def settled(self, batch: MappingBatch) -> MappingBatch:
        """Return the same mappings, of the space, with their orders as compiled code has them.

        Dimensions of size 1 stand innermost, and loops that run once where an allowed order of the memory has them:
        so they are in place if a change lets them run. All that `sample` and `enumerate` return is so already.
        """
        single = (self.arrays.sizes == 1)[None, :, None]
        keys = batch.ranks + single * np.int16(len(self.arrays.sizes))
        ranks = keys.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable").astype(batch.ranks.dtype)
        active = np.flatnonzero(self.arrays.sizes > 1)
        runs = (batch.outside(self.arrays.sizes) > batch.steps)[:, active]
        for s in range(len(ranks)):
            start, count = self.table[SLOT + s, ORDER_START], self.table[SLOT + s, ORDER_COUNT]
            rows = self.table[start:start + count, :len(active)]
            if not count or self.layout.slots[s].axis != "T":
                continue
            both, place = runs[s][:, None] & runs[s][None], ranks[s, active]
            swapped = (place[:, None] < place[None]) & both & (rows[:, :, None] > rows[:, None])[..., None]
            ranks[s, active] = rows[swapped.sum(axis=(1, 2)).argmin(axis=0)].T
        return MappingBatch(batch.layout, batch.steps, ranks)

    def intersect(self, other: "MapSpace") -> "MapSpace":
        """Return the space of what both contain, also written ``self & other``.

        What a memory keeps is part of every mapping: a memory that only one of the two names keeps what that one
        says. Of loop orders those that both list are left, though a mapping with few loops may obey two different ones.

        Raises an `InputError` if the operators or accelerators differ, or constraints contradict one another.
        """
        if (self.operator, self.accelerator) != (other.operator, other.accelerator):
            raise InputError("space", "must be of the same operator and accelerator to be intersected",
                             f"{self.operator.name} on {self.accelerator.name} and {other.operator.name} on "
                             f"{other.accelerator.name}")
        return MapSpace(self.operator, self.accelerator, common_tiling(self.tiling, other.tiling),
                        self.constraints.intersect(other.constraints, self.operator))

    __and__ = intersect

    def enumerate(self, batch: int = 4096, distinct: bool = False) -> Iterator[MappingBatch]:
        """Yield all mappings that the space contains, in batches, each encoding once.

        Loops that run once stand innermost, in the operator's order. With ``distinct``, of loop orders that cannot
        differ in cost (by rules 2 and 3 of the counting rules) only one is given.
        """
        walk = Enumeration(self, distinct)
        while len(found := walk.take(batch)):
            yield found

    def _mended(self, batch: MappingBatch, fitting: bool) -> MappingBatch:
        """Return a copy with legal steps and orders, or with ``fitting`` with tiles that fit where possible."""
        mended = MappingBatch(batch.layout, batch.steps.copy(), batch.ranks.copy())
        state = np.zeros(1, dtype=np.uint64)
        if self.arrays.ruled:
            self._legalise(self.table, state, mended, fitting)
        else:
            mappings.repair_batch(self.table, state, fitting, self.scratch(), mended.steps, mended.ranks)
        return mended

    def _legalise(self, table: NDArray[np.int64], state: NDArray[np.uint64], batch: MappingBatch,
                  fitting: bool | None, span: tuple[int, int] | None = None) -> NDArray[np.int8]:
        """Make mappings legal in place; their tiles too, or (False) their orders, or (None) neither.

        Returned is for each 0 where that failed, 1 where it is legal, 2 where its tiles were made to fit too.
        """
        mode = {None: projection.STEPS, False: projection.ORDERS, True: projection.FITTING}[fitting]
        span = span or (0, len(batch))
        found = np.zeros(span[1] - span[0], dtype=np.int8)
        projection.legalise_batch(table, state, self.scratch(), batch.steps, batch.ranks, span, mode, found)
        return found

    def _with_known(self, rules: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the table with some mappings of the space in it, to lend to those that cannot be mended.

        Where none is found by mending random ones, there are few: some are drawn by way of counting them all.
        """
        drawn, rng, state = self.empty(DRAWN), np.random.default_rng(0), np.zeros(1, dtype=np.uint64)
        known = drawn.steps[:, :, :0]
        for _ in range(DRAWS):
            drawn.steps[:] = self.arrays.sizes[None, :, None] ** np.sort(rng.random(drawn.steps.shape), axis=0)[::-1]
            found = self._legalise(rules, state, drawn, fitting=True)
            best = np.argsort(-found, kind="stable")[:min(np.count_nonzero(found), MOST_KNOWN)]
            known = np.concatenate([known, drawn.steps[:, :, best]], axis=2)
            if known.shape[2] >= MOST_KNOWN:
                break
        if not known.size:
            try:
                known = self.draw(rng, MOST_KNOWN).steps
            except InputError as error:
                self.refuse_empty()
                raise InputError("space.constraints", "must leave at least one mapping",
                                 f"{self.tiling} tiling with constraints on {', '.join(self.constraints.named())}",
                                 "Loosen factors, tiles, loops or utilization") from error
        return add_known(rules, known)


class Enumeration:
    """A walk through all mappings of a space that can be stopped, saved and taken up again.

    ``state`` holds the arrays that say where it stands.
    """

    def __init__(self, space: MapSpace, distinct: bool = False) -> None:
        self.space = space
        self.distinct = distinct
        slots, dims = space.layout.shape
        self.state = {
            "extents": np.ones((slots + 1, dims), dtype=np.int64),
            "ranks": np.zeros((slots, dims), dtype=np.int64),
            "orders": np.zeros(slots + 1, dtype=np.int64),
        }

    def take(self, count: int) -> MappingBatch:
        """Return the next ``count`` mappings; fewer at the end, then none."""
        batch, work = self.space.empty(count), self.space.scratch()
        work[kernels.ROWS, kernels.LEFT, 0] = self.distinct
        where = (self.state["extents"], self.state["ranks"], self.state["orders"])
        written = enumeration.enumerate_into(self.space.unaided, *where, work, batch.steps, batch.ranks)
        return batch if written == count else batch.take(slice(0, written))


def random_state(rng: Generator, count: int = 1) -> NDArray[np.uint64]:
    """Return ``(count)`` seeds of the compiled operators' generators, drawn from ``rng``."""
    return np.asarray(rng.bit_generator.random_raw(count))
