"""What nodes of vector work and data movement do, by their kinds in each format (``data/vector_kinds.toml``)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from math import prod

from tilewright.interop.scene import NodeView
from tilewright.workload import OPERATIONS_PER_ELEMENT


@dataclass(frozen=True)
class VectorKinds:
    """The kinds of a format."""

    per_output: Mapping[str, int]
    """Operations for each word of the output."""
    per_input: Mapping[str, int]
    """Operations for each word of the first input."""
    moves: Mapping[str, str]
    """Which words are read: as many as are written (``out``), the whole first input (``in``), every input (``all``)."""
    views: frozenset[str]
    """What moves nothing."""
    each_word: frozenset[str]
    """What is done to each word (of operands that are broadcast) by itself."""

    @classmethod
    def of(cls, name: str) -> "VectorKinds":
        """Return the kinds of a format."""
        told = tomllib.loads((files(__package__) / "data" / "vector_kinds.toml").read_text(encoding="utf-8"))[name]
        outputs, inputs, moves = ({kind: key for key, kinds in told[table].items() for kind in kinds.split()}
                                  for table in ("per_output", "per_input", "moves"))
        return cls(_counted(outputs), _counted(inputs), moves, frozenset(told["views"].split()),
                   frozenset(outputs) - set(told["not_each_word"].split()))

    def operations(self, node: NodeView) -> int | None:
        """Return the operations of a node that takes as many for each word; None if its kind is in neither table."""
        if node.kind in self.per_output:
            return self.per_output[node.kind] * prod(node.out())
        return self.per_input[node.kind] * node.words(0) if node.kind in self.per_input else None

    def read_words(self, node: NodeView, written: int) -> int:
        """Return the words that data movement reads which writes so many."""
        moved = self.moves[node.kind]
        return written if moved == "out" else node.words(0) if moved == "in" else node.read_words


def _counted(keys: Mapping[str, str]) -> dict[str, int]:
    """Return operations that are written as sums of numbers and of `OPERATIONS_PER_ELEMENT`: ``gelu+1``."""
    return {kind: sum(int(part) if part.isdecimal() else OPERATIONS_PER_ELEMENT[part] for part in key.split("+"))
            for kind, key in keys.items()}
