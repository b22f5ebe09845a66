"""What chains of extents add to the logarithms that a score is made of, where tiles need not divide (for `ragged`).

A dimension's chain says how far its values are cut at every *node*: as a tile reaches a memory, and behind the loops
there; the two are one node where no array lies between. How often words cross, words of tiles and steps of compute are
products over dimensions, so that their logarithms are sums over chains. *Numbers* are all such logarithms: terms that
are added up to cycles and energy, words in rooms, and lanes along the sides of arrays.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd, log, prod
from typing import Any, NamedTuple

import numpy as np

from tilewright.cost.reference.proof_space import (
    Edge,
    GivenUp,
    Indices,
    Kept,
    ProofSpace,
    Values,
    WordSums,
    words_along,
)
from tilewright.hardware import Fanout, Memory
from tilewright.mapping import by_room, held_bits

TINY = 1e-300
"""Stands for no energy at all, of which there is no logarithm."""


class Rest(NamedTuple):
    """What runs innermost at a memory: a class of dimensions by the tensors that do not use them (-1: no loop at all).

    Whether others loop there too, and along which of several windows loops there bring in only what is new (-1: all).
    """

    kind: int
    mixed: bool = False
    slide: int = -1


NO_LOOP = Rest(-1)
Case = tuple[Rest | None, ...]
"""That of each memory but the innermost; None where nothing is said."""
Name = tuple[str, int, int]
"""What a number is of: "always", "steps", words "out" of or "in" across an edge, what passes in a "ramp" of a tensor, a
tensor's words in a "room", or lanes inside a memory along a "side"."""


class Moment(NamedTuple):
    """The innermost memory where loops bring a tile in anew, and whether it stays along unused dimensions there."""

    memory: int
    stays: bool
    slide: int


class SlidingAxis(NamedTuple):
    """An axis of a tensor along which a window slides: two dimensions, stride and dilation without common divisors."""

    tensor: int
    first: int
    second: int
    stride: int
    dilation: int

    def words(self, p: Any, r: Any) -> Any:
        """Return the words of tiles of so many values (rule 1)."""
        return words_along(p, r, self.stride, self.dilation)


class Content(NamedTuple):
    """What a number is made of at a node."""

    number: int
    what: str
    """Whether "pieces" of dimensions that a tensor does not use, its "words", those of its "last" tile, or how often a
    "window" makes words cross again."""
    node: int
    of: int
    """The tensor, or the window."""


class Shared(NamedTuple):
    """What a number is made of at an array."""

    number: int
    what: str
    """Whether "copies" of a tensor that lanes fill, or compute's "reads" that they share."""
    memory: int
    """The memory that the array lies inside."""
    tensor: int
    whole: bool = False
    """Whether copies count only of dimensions that are not cut further out, or reads are shared in this array alone."""


class Ramp(NamedTuple):
    """Cycles of a word of a tensor, of tiles at a node, that pass while nothing else does."""

    memory: int
    tensor: int
    cycles: float
    node: int


@dataclass(frozen=True, eq=False)
class RaggedSpace:
    """The mappings of an operator that keep the same in memories; `GivenUp` where they are not known here."""

    space: ProofSpace
    kept: Kept

    # The machine.

    @cached_property
    def memories(self) -> tuple[Memory, ...]:
        """The memories, outermost first."""
        return self.space.memories

    @cached_property
    def arrays(self) -> list[Fanout | None]:
        """The array inside each memory."""
        found: list[Fanout | None] = []
        for level in self.space.accelerator.levels:
            if isinstance(level, Memory):
                found.append(None)
            elif not found or found[-1] is not None or level.blocks:
                raise GivenUp("there are several arrays between memories, or one of blocks")
            else:
                found[-1] = level
        return found

    @cached_property
    def spread(self) -> list[int]:
        """The memories that arrays lie inside."""
        return [m for m, array in enumerate(self.arrays) if array is not None]

    def array(self, m: int) -> Fanout:
        """Return the array inside a memory."""
        found = self.arrays[m]
        assert found is not None
        return found

    @cached_property
    def instances(self) -> list[int]:
        """The instances of each memory."""
        return [prod(array.instances for array in self.arrays[:m] if array) for m in range(len(self.memories))]

    @cached_property
    def passages(self) -> list[tuple[bool, int]]:
        """What leads from each node to the next: whether an array, else loops; and of, or inside, which memory."""
        found = []
        for m, array in enumerate(self.arrays):
            found += [(False, m), *([(True, m)] if array else [])]
        return found

    def node(self, m: int, *, inside: bool = False) -> int:
        """Return the node of tiles that reach a memory, or are ``inside`` its loops; last that of compute."""
        if m == len(self.memories):
            return len(self.passages)
        return self.passages.index((False, m)) + inside

    def gathers(self, edge: Edge, m: int) -> bool:
        """Whether lanes of the array inside a memory share what crosses an edge, along a side at least."""
        tensor, array = self.space.operator.tensors[edge.tensor], self.arrays[m]
        return array is not None and edge.parent <= m < edge.child and any(array.merges(tensor.name, tensor.role))

    def even(self, t: int, m: int) -> bool:
        """Whether words of a tensor merge along both sides of the array inside a memory, or along none."""
        tensor = self.space.operator.tensors[t]
        return len(set(self.array(m).merges(tensor.name, tensor.role))) == 1

    # The operator.

    @cached_property
    def sizes(self) -> list[int]:
        """Those of the dimensions."""
        return [int(size) for size in self.space.sizes]

    @cached_property
    def tensors(self) -> range:
        """Numbers of the tensors."""
        return range(len(self.space.operator.tensors))

    @cached_property
    def output(self) -> int:
        """The tensor that is made."""
        return next(t for t in self.tensors if self.space.operator.tensors[t].is_output)

    @cached_property
    def words(self) -> list[float]:
        """Words of each tensor."""
        return [float(self.space.words(t, self.sizes)) for t in self.tensors]

    @cached_property
    def unused(self) -> Indices:
        """``(d, t)``: whether tensors do not use dimensions."""
        return np.array([[not used[d] for used in self.space.uses] for d in range(len(self.sizes))])

    @cached_property
    def classes(self) -> list[tuple[bool, ...]]:
        """Which tensors do not use dimensions of a class; none but where no dimension is unused is of one of none."""
        found = sorted({tuple(row) for row in self.unused.tolist() if any(row)})
        return found or [(False,) * len(self.tensors)]

    def kind(self, d: int) -> int:
        """Return by which class cases tell that a dimension runs innermost: the first if all tensors use it."""
        unused = tuple(self.unused[d].tolist())
        return self.classes.index(unused) if unused in self.classes else 0

    @cached_property
    def windows(self) -> list[SlidingAxis]:
        """Axes along which windows slide."""
        return [SlidingAxis(t, p, r, s // gcd(s, d), d // gcd(s, d))
                for t, axes in enumerate(self.space.sliding) for p, r, s, d in axes]

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The dimensions, those together along which windows slide."""
        pairs = sorted({(window.first, window.second) for window in self.windows})
        paired = [d for pair in pairs for d in pair]
        if len(set(paired)) < len(paired):
            raise GivenUp("a dimension is in several windows")
        return [*pairs, *((d,) for d in range(len(self.sizes)) if d not in paired)]

    # Numbers.

    @cached_property
    def names(self) -> list[Name]:
        """What each number is of: terms, words in rooms, and lanes along sides."""
        terms: list[Name] = [("always", 0, 0), ("steps", 0, 0)]
        for e, edge in enumerate(self.edges):
            terms += [("out", e, 0), *([("in", e, 0)] if edge.child < len(self.memories) else [])]
        terms += [("ramp", ramp.memory, ramp.tensor) for ramp in self.ramps]
        return [*terms, *(("room", q, t) for q, (_, shares) in enumerate(self.rooms) for t, _ in shares),
                *(("side", m, k) for m in self.spread for k in range(len(self.sides[m])))]

    @cached_property
    def number(self) -> dict[Name, int]:
        """The place of each among numbers."""
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def terms(self) -> int:
        """How many numbers are terms."""
        return 2 + sum(name[0] in {"out", "in", "ramp"} for name in self.names)

    @cached_property
    def sums(self) -> WordSums:
        """What is summed over words that cross."""
        return self.space.sums(self.kept)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The boundaries that tensors cross."""
        return self.sums.edges

    @cached_property
    def sides(self) -> dict[int, list[int]]:
        """How many lanes there may be along the sides of the array inside a memory: of one, where any may be any."""
        return {m: [array.instances] if array.flexible or 1 in array.shape else list(array.shape)
                for m in self.spread for array in [self.array(m)]}

    def folds(self, m: int) -> bool:
        """Whether a dimension may lie along both sides of the array inside a memory."""
        return self.array(m).flexible or len(self.sides[m]) > 1

    @cached_property
    def rooms(self) -> list[tuple[int, list[tuple[int, float]]]]:
        """Rooms of memories, and what share of it a word of each tensor takes there."""
        found, tensors = [], self.space.operator.tensors
        for m, memory in enumerate(self.memories):
            mine = [tensor for tensor in tensors if tensor.name in self.kept[memory.name]]
            for owner, some in by_room(memory, mine).items():
                most = memory.rooms[owner]
                if most is not None:
                    found.append((m, [(tensors.index(tensor), memory.copies * float(held_bits(
                        tensor, self.space.accelerator)) / 8 / most) for tensor in some]))
        return found

    def at_home(self, t: int, m: int) -> bool:
        """Whether a memory is the outermost that keeps a tensor."""
        return self.space.keepers(self.kept, self.space.operator.tensors[t])[0] == m

    @cached_property
    def ramps(self) -> list[Ramp]:
        """What comes in before compute begins and goes out after it (rule 8): of ports at once that are the slowest."""
        found, bits = [], [float(held_bits(tensor, self.space.accelerator)) for tensor in self.space.operator.tensors]
        for m, memory in enumerate(self.memories):
            for own, other, made in (("write", "read", False), ("read", "write", True)):
                parents = {t: chain[chain.index(m) - 1] for t in self.tensors for chain in [self.space.keepers(
                    self.kept, self.space.operator.tensors[t])] if (t == self.output) == made and m in chain[1:]}
                choices = []
                for at, port in ((m, own), *((parent, other) for parent in sorted(set(parents.values())))):
                    rates = self.space.rates(at, port)
                    node = self.node(m) - (at != m and not made and self.arrays[m - 1] is not None)
                    row = [Ramp(2 * m + made, t, bits[t] / self.memories[at].word_bits / min(rates), node)
                           for t, parent in parents.items() if rates and at in {m, parent}]
                    spread = self.instances[m] if node == self.node(m) else self.instances[m - 1]
                    choices.append((sum(one.cycles * self.words[one.tensor] for one in row) / spread, row))
                if memory.buffering != "single" and parents:
                    found += max(choices, key=lambda choice: choice[0])[1]
        return found

    @cached_property
    def always(self) -> Values:
        """What every mapping adds to numbers, before anything is cut."""
        found = np.zeros(len(self.names))
        for place, (what, at, of) in enumerate(self.names):
            if what in {"out", "in"}:
                edge = self.edges[at]
                found[place] = log(self.space.operator.macs if edge.child == len(self.memories) else
                                   self.words[edge.tensor])
            elif what == "room" and self.at_home(of, self.rooms[at][0]):
                found[place] = log(self.words[of])
        found[1] = log(self.space.operator.macs)
        return found

    # Weights of terms.

    def least(self, row: Values) -> Values:
        """Return weights (i) of terms, none negative, that come to no more than a row of `WordSums`.

        Words of a result that cross grow from home to compute. So what is negative is taken off the next of them
        further in, which is no less.
        """
        found, many, macs = np.zeros(self.terms), len(self.edges), float(self.space.operator.macs)
        left = 0.0
        for e, edge in enumerate(self.edges):
            inside = ("in", e, 0) if edge.child < len(self.memories) else None
            if edge.tensor != self.output:
                found[self.number["out", e, 0]] += row[1 + e]
                found[self.number[inside] if inside else 0] += row[1 + many + e] * (1.0 if inside else macs)
                continue
            if self.at_home(edge.tensor, edge.parent):
                left = min(0.0, row[0]) / self.words[edge.tensor]
            left += row[1 + e]
            found[self.number["out", e, 0]], left = max(0.0, left), min(0.0, left)
            left += row[1 + many + e]
            if inside:
                found[self.number[inside]], left = max(0.0, left), min(0.0, left)
            else:
                found[0] += left * macs
        found[0] += max(0.0, row[0])
        if (found < -1e-9 * np.abs(row).max()).any():
            raise GivenUp("accesses cost less than nothing")
        return np.maximum(found, 0.0)

    @cached_property
    def _alone(self) -> tuple[Values, Values]:
        """Weights of steps, and of ramps, in cycles."""
        steps, ramp = np.zeros(self.terms), np.zeros(self.terms)
        steps[1] = self.space.pace
        for one in self.ramps:
            ramp[self.number["ramp", one.memory, one.tensor]] = one.cycles
        return steps, ramp

    @cached_property
    def cycles(self) -> Values:
        """``(r, i)``: cycles of compute, and of each port, by term."""
        steps, ramp = self._alone
        waits = sum((self.least(row) / self.instances[m] for m, row in self.sums.waits), steps)
        return np.array([waits, *(self.least(row) / self.instances[m] for m, row in self.sums.ports)]) + ramp

    @cached_property
    def energy(self) -> Values:
        """``(i)``: picojoules by term."""
        found: Values = self.least(self.sums.energy) + self.space.leak * sum(self._alone)
        found[0] += TINY
        return found

    # What is brought in when.

    def _brings(self, t: int, rest: Rest) -> bool:
        """Whether loops at a memory bring in a tensor's tile anew."""
        # Where several classes leave the tensor in place, those beside the innermost may do so as well.
        return rest != NO_LOOP and not (self.classes[rest.kind][t] and (
            not rest.mixed or sum(kind[t] for kind in self.classes) > 1))

    def moment(self, t: int, child: int, case: Case) -> Moment | None:
        """Return where a tensor's tile in a child comes in anew at the latest; None if nowhere, or that is not said."""
        for m in range(child - 1, -1, -1):
            rest = case[m]
            if rest is None:
                return None
            if self._brings(t, rest):
                return Moment(m, self.classes[rest.kind][t], rest.slide)
        return None

    def _asked(self, case: Case) -> set[int]:
        """Return memories of which nothing is said, though it is there that some tensor's tiles come in."""
        found = set()
        for t, child in {(edge.tensor, edge.child) for edge in self.edges if edge.child < len(self.memories)}:
            for m in range(child - 1, -1, -1):
                rest = case[m]
                if rest is None:
                    found.add(m)
                if rest is None or self._brings(t, rest):
                    break
        return found

    def contents(self, case: Case) -> tuple[list[Content], list[Shared]]:
        """Return what numbers are made of at nodes and at arrays."""
        nodes, arrays = list(self._fixed), list[Shared]()
        for place, (what, at, _) in enumerate(self.names):
            if what not in {"out", "in"}:
                continue
            edge = self.edges[at]
            if edge.child == len(self.memories):
                sharing = [m for m in self.spread if self.gathers(edge, m)]
                arrays += [Shared(place, "reads", m, edge.tensor, len(sharing) == 1) for m in sharing]
                continue
            moment, around = self.moment(edge.tensor, edge.child, case), [m for m in self.spread if m < edge.child]
            if moment is None:
                arrays += [Shared(place, "copies", around[-1], edge.tensor) for _ in around[-1:] if what == "in"]
                continue
            node, slides = self._brought(edge, moment, out=what == "out")
            nodes.append(Content(place, "pieces", node, edge.tensor))
            nodes += [Content(place, "window", where, k) for k, where in slides]
            if what == "in" and around and node < self.node(around[-1] + 1):
                arrays.append(Shared(place, "copies", around[-1], edge.tensor, True))
        return nodes, arrays

    def _brought(self, edge: Edge, moment: Moment, *, out: bool) -> tuple[int, list[tuple[int, int]]]:
        """Return the node where pieces tell how often words cross, and that for each window.

        Where lanes share words these are no pieces: then the node outside them tells, whatever else is further in.
        """
        own, m = [k for k, window in enumerate(self.windows) if window.tensor == edge.tensor], moment.memory
        behind = self.node(m, inside=True) if out and self.gathers(edge, m) else (
            self.node(m + 1) if self.arrays[m] else self.node(m, inside=True))
        node = self.node(m) if moment.stays else behind
        again = behind if moment.slide >= 0 and not moment.stays else self.node(m)
        slides = [(k, self.node(m) if k == moment.slide else again) for k in own]
        for outer in range(m - 1, edge.parent - 1, -1):
            if out and self.gathers(edge, outer):
                node = self.node(outer, inside=True)
                slides = [(k, node) for k in own]
        return node, slides

    @cached_property
    def _fixed(self) -> list[Content]:
        """What ramps and rooms are made of."""
        found = [Content(self.number["ramp", one.memory, one.tensor], "last" if one.tensor == self.output else "words",
                         one.node, one.tensor) for one in self.ramps]
        return [*found, *(Content(self.number["room", q, t], "words", self.node(m), t)
                          for q, (m, shares) in enumerate(self.rooms) for t, _ in shares if not self.at_home(t, m))]

    def loops(self, d: int, m: int, case: Case) -> bool:
        """Whether a dimension may loop at a memory."""
        rest = case[m] if m < len(case) else None
        return rest is None or (rest != NO_LOOP and (rest.mixed or tuple(self.unused[d].tolist()) == self.classes[
            rest.kind]))

    def parted(self, case: Case, *, any_memory: bool = False) -> list[Case]:
        """Return what a case falls into: by what runs innermost at a memory where that tells what is brought in.

        That is the innermost of which nothing is said; or it falls into windows; or goes by ``any_memory``.
        """
        asked = self._asked(case)
        if asked:
            return self._said(case, max(asked))
        slid = {window.tensor for window in self.windows}
        for m, rest in enumerate(case):
            if rest is not None and rest.kind >= 0 > rest.slide and len(slid) == 1 < len(self.windows) and not (
                    self.classes[rest.kind][min(slid)]):
                return [(*case[:m], rest._replace(slide=k), *case[m + 1:]) for k in range(len(self.windows))]
        return self._said(case, case.index(None)) if any_memory and None in case else []

    def _said(self, case: Case, m: int) -> list[Case]:
        """Return cases that say what runs innermost at a memory."""
        kinds = [Rest(kind, mixed) for kind in range(len(self.classes)) for mixed in (False, True)]
        return [(*case[:m], rest, *case[m + 1:]) for rest in [NO_LOOP, *kinds]]

    def plain(self, t: int, group: Iterable[int]) -> Iterator[tuple[int, int]]:
        """Yield places in a group, and dimensions, that a tensor uses along axes that do not slide."""
        along = {d for window in self.windows if window.tensor == t for d in (window.first, window.second)}
        yield from ((k, d) for k, d in enumerate(group) if not self.unused[d, t] and d not in along)

    def slid(self, t: int, group: tuple[int, ...]) -> list[SlidingAxis]:
        """Return the windows of a tensor along a group."""
        return [window for window in self.windows if window.tensor == t and (window.first, window.second) == group]
