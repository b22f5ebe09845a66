"""How a fused group runs: a tree of shared loops over the nests of its operators (docs/concepts.md, "Fused groups")."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from tilewright.base import InputError, text_html, unknown_name
from tilewright.mapping.mapping import Mapping
from tilewright.workload import AxisLink, Operator


@dataclass(frozen=True)
class FusedLink:
    """An intermediate tensor on its way: ``reader`` reads the result of ``producer`` as its tensor ``operand``."""

    producer: str
    reader: str
    operand: str
    axes: tuple[tuple[str, AxisLink], ...]
    """For dimensions of the result their coordinate, from dimensions of the reader. Of those left out every turn of
    the reader needs all. Coordinates outside the result are padding, or of another link to the same operand."""


@dataclass(frozen=True)
class FusedGroup:
    """Operators that run interleaved, and the tensors that pass between them.

    A vector operator is an `Operator` too, of one of the kinds of vector work: its dimensions and tensors say which
    words it needs for which, its attribute ``operations`` how many scalar operations it has.

    Raises an `InputError` if names repeat, or a link names what there is not, or runs backwards (a cycle).
    """

    operators: tuple[Operator, ...]
    """In an order in which each comes after those whose results it reads."""
    links: tuple[FusedLink, ...] = ()
    leaving: tuple[str, ...] = ()
    """Names of operators whose results are read outside the group, too. Those that no link reads leave it anyhow."""

    def __post_init__(self) -> None:
        names = [operator.name for operator in self.operators]
        if not names or len(set(names)) != len(names):
            raise InputError("group.operators", "must be some operators with distinct names", names)
        for name in self.leaving:
            self.operator(name, "group.leaving")
        for at, link in enumerate(self.links):
            path = f"group.links[{at}]"
            producer, reader = self.operator(link.producer, path), self.operator(link.reader, path)
            if names.index(link.producer) >= names.index(link.reader):
                raise InputError(path, "must lead from an operator to a later one", f"{link.producer} to {link.reader}",
                                 "Put operators into the order in which they run; a cycle has none")
            if link.operand not in [tensor.name for tensor in reader.operands]:
                raise InputError(f"{path}.operand", f"must be an operand of {reader.name}", link.operand)
            made = producer.output.dimensions
            known = [dimension in made and all(digit.axis in reader.sizes for digit in axis.digits)
                     for dimension, axis in link.axes]
            if not all(known):
                raise InputError(f"{path}.axes", f"must give dimensions of the result of {producer.name} by those of "
                                 f"{reader.name}", link.axes[known.index(False)][0])

    def leaves(self, name: str) -> bool:
        """Whether the result of an operator is read in the group and outside it."""
        return name in self.leaving and bool(self.readers(name))

    def operator(self, name: str, path: str = "group.operators") -> Operator:
        """Return the operator called ``name``."""
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise unknown_name("operator", name, [operator.name for operator in self.operators], path)

    def readers(self, producer: str) -> tuple[FusedLink, ...]:
        """Return the links by which the result of ``producer`` is read."""
        return tuple(link for link in self.links if link.producer == producer)

    def sources(self, reader: str) -> tuple[FusedLink, ...]:
        """Return the links by which ``reader`` reads results of others."""
        return tuple(link for link in self.links if link.reader == reader)


def operations_of(operator: Operator) -> int | None:
    """Return the scalar operations of a vector operator, None of one that multiplies and accumulates."""
    found = dict(operator.attributes).get("operations")
    return None if found is None else int(found)


@dataclass(frozen=True)
class SharedLoop:
    """A loop in time at a memory, over a dimension of the last operator of its node; ``step`` as of `Loop`."""

    level: str
    dimension: str
    step: int


@dataclass(frozen=True)
class FusedLeaf:
    """An operator in the tree: its own loops, which run inside all shared ones; none of a vector operator.

    ``steps`` are pairs ``(dimension, step)`` in place of steps that the innermost shared loops would have in it.
    """

    operator: str
    mapping: Mapping = field(default_factory=lambda: Mapping(()))
    steps: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class FusedNode:
    """Shared loops, and what runs in each of their iterations, one part after the other.

    ``again``: in every iteration all operators but the last make anew what it needs; otherwise each word is made once
    and held until its last reader has passed.
    """

    loops: tuple[SharedLoop, ...]
    parts: "tuple[FusedLeaf | FusedNode, ...]"
    again: bool = False

    @cached_property
    def leaves(self) -> tuple[FusedLeaf, ...]:
        """All operators inside, in the order in which they run."""
        return tuple(leaf for part in self.parts for leaf in ([part] if isinstance(part, FusedLeaf) else part.leaves))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the operators inside."""
        return tuple(leaf.operator for leaf in self.leaves)

    @property
    def last(self) -> str:
        """Name of the operator whose loops the shared ones are."""
        return self.names[-1]


Part: TypeAlias = FusedLeaf | FusedNode


@dataclass(frozen=True)
class HeldTensor:
    """The memory that holds the result of ``producer`` while it is read, and how many times it has room for it.

    With two ``copies`` a vector operator works on one while the other is made.
    """

    producer: str
    memory: str
    copies: Literal[1, 2] = 1


@dataclass(frozen=True)
class FusedMapping:
    """How a group runs: the tree, and what holds each intermediate tensor.

    Those not named in ``held`` go through the outermost memory that can keep them.
    """

    root: FusedNode
    held: tuple[HeldTensor, ...] = ()

    def __str__(self) -> str:
        """Return the tree of loops, one line for each loop and operator."""
        return "\n".join(_lines(self.root, "", {held.producer: held for held in self.held}))

    def _repr_html_(self) -> str:
        return text_html(self)


def _lines(part: Part, indent: str, held: dict[str, HeldTensor]) -> Iterator[str]:
    if isinstance(part, FusedLeaf):
        tensor = held.get(part.operator)
        kept = "" if tensor is None else f" -> {tensor.memory}{' twice' if tensor.copies == 2 else ''}"
        steps = "".join(f", {dimension}: {step}" for dimension, step in part.steps)
        yield f"{indent}{part.operator}{steps}{kept}"
        yield from (f"{indent}  {line}" for line in str(part.mapping).splitlines() if not line.endswith("[]"))
        return
    for loop in part.loops:
        yield f"{indent}{loop.level} for {part.last}.{loop.dimension}: {loop.step}"
        indent += "  "
    if part.again:
        yield f"{indent}made again each time:"
    for inner in part.parts:
        yield from _lines(inner, indent, held)
