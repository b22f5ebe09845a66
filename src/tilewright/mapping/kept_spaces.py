"""What memories keep is a mapping's choice: the kept sets that a space leaves open, a member each."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.mapping.mapping import Mapping
from tilewright.mapping.spaces.counting.size import SpaceSize
from tilewright.mapping.spaces.space import MapSpace

Pair = tuple[str, str]


@dataclass(frozen=True)
class KeptSets:
    """The sets of tensors that memories may keep in mappings of ``space``, beside all that they can.

    A machine fixes what a memory keeps (``always: true``), and so do constraints (``keeps``); one that states its
    flexibility names there all that may vary, and keeps what it can. The outermost memory that
    can keep a tensor is its home in every member: tensors live further in only where constraints say so.
    """

    space: MapSpace

    @cached_property
    def open(self) -> tuple[Pair, ...]:
        """Pairs of a memory and a tensor that it may keep or let pass, outermost memory first."""
        found, housed = [], set[str]()
        if self.space.accelerator.flexibility is not None:
            return ()
        for memory in self.space.accelerator.memories:
            stated = self.space.constraints.keeps.get(memory.name)
            for tensor in self.space.operator.tensors:
                if memory.can_keep(tensor.name, tensor.role):
                    if tensor.name in housed and not memory.always and stated is None:
                        found.append((memory.name, tensor.name))
                    if stated is None or tensor.name in stated:
                        housed.add(tensor.name)
        return tuple(found)

    def __len__(self) -> int:
        return 1 << len(self.open)

    def __iter__(self) -> Iterator[MapSpace]:
        """Yield all members, that in which memories keep what they can first."""
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> MapSpace:
        """Return the member in which the pairs of `open` pass whose bits are set in ``number``."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.passing(self.passed(number))

    def size(self) -> SpaceSize:
        """Return how many mappings all members have together."""
        one = self.space.size()
        return replace(one, mappings=one.mappings * len(self))

    def passed(self, number: int) -> tuple[Pair, ...]:
        """Return the pairs that pass in this member."""
        return tuple(pair for bit, pair in enumerate(self.open) if number >> bit & 1)

    def number_of(self, mapping: Mapping) -> int:
        """Return the number of the member that keeps what ``mapping`` does, as far as that is open."""
        kept = {entry.level: entry.keeps for entry in mapping.levels if entry.keeps is not None}
        return sum(1 << bit for bit, (memory, tensor) in enumerate(self.open) if tensor not in kept.get(
            memory, (tensor,)))

    def passing(self, pairs: Iterable[Pair]) -> MapSpace:
        """Return the member in which these pairs pass, and memories keep all else that they can."""
        passed = set(pairs)
        if not passed:
            return self.space
        return replace(self.space, constraints=replace(self.space.constraints, keeps=self.keeps(passed)))

    def keeps(self, passed: Collection[Pair]) -> dict[str, tuple[str, ...]]:
        """Return what memories keep that do not keep all that they can, where these pairs pass."""
        keeps = dict(self.space.constraints.keeps)
        for memory in self.space.accelerator.memories:
            able = [t.name for t in self.space.operator.tensors if memory.can_keep(t.name, t.role)]
            kept = tuple(name for name in able if (memory.name, name) not in passed)
            if len(kept) < len(able):
                keeps[memory.name] = kept
        return keeps
