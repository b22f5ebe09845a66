"""What a foreign file says, or we do, and that could not be honoured in full: a note for each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Memory
from tilewright.mapping import held_bits, lane_use, tensor_bits
from tilewright.workload import Graph, MacNode, Operator

Kind = Literal["dropped", "approximated", "refused"]
"""``refused``: it is written, but the program that it is for will not take it."""


@dataclass(frozen=True)
class Note:
    """Something that could not be honoured in full, and what became of it."""

    where: str
    """``file:line`` and the place in the file, or the field of ours that was written."""
    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}: {self.text}"


class Notes(list[Note]):
    """Notes in the making."""

    def dropped(self, where: str, text: str) -> None:
        """Note what is not honoured."""
        self.append(Note(where, "dropped", text))

    def approximated(self, where: str, text: str) -> None:
        """Note what is honoured by what is like it."""
        self.append(Note(where, "approximated", text))

    def others(self, graph: Graph) -> None:
        """Note in one line what of a network is not multiply-accumulates, by kind, where that is not honoured."""
        kinds = Counter(node.kind for node in graph.nodes if not isinstance(node, MacNode))
        if kinds:
            told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
            self.dropped(graph.name, f"{kinds.total()} nodes that are not multiply-accumulates ({told})")

    def widths(self, operator: Operator, accelerator: Accelerator, memory: Memory) -> None:
        """Note the widths of what a memory can keep where they are not its own, for a tool that counts words alone."""
        kept = [tensor for tensor in operator.tensors if memory.can_keep(tensor.name, tensor.role)]
        found = {float(bits(tensor, accelerator)) for tensor in kept for bits in (held_bits, tensor_bits)}
        if found - {memory.word_bits}:
            told = ", ".join(f"{bits:g}" for bits in sorted(found))
            self.approximated(memory.name, f"words of {told} bits count as words of {memory.word_bits} bits, as "
                                           "Timeloop counts words and not bits")

    def lanes(self, operator: Operator, accelerator: Accelerator) -> None:
        """Note where lanes take operands otherwise than the machine's own words."""
        told = lane_use(operator, accelerator).told
        if told:
            self.approximated(accelerator.compute.name, f"lanes that take {told} count as one product a cycle")

    def refused(self, where: str, text: str) -> None:
        """Note what is written, but will not be taken."""
        self.append(Note(where, "refused", text))


def refuse_notes(notes: Sequence[Note]) -> None:
    """Raise an `InputError` if anything could not be honoured in full: what strict readers and writers ask for."""
    if notes:
        first = next((note for note in notes if note.kind == "refused"), notes[0])
        raise InputError(first.where, f"must be honoured in full, but would be {first.kind}: {first.text}", None,
                         f"{len(notes)} such notes in all; leave strict out to go on without")
