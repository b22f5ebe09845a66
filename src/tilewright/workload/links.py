"""What nodes read and make: tensors with names of their own, and how their axes stand to one another."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind = Literal["input", "weights", "state", "activation"]
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Operand:
    """A tensor that a node reads.

    Parameters
    ----------
    tensor
        Name of a `Result`; of the weights, the state or the input of the network where no node makes it.
    name
        Of a multiply-accumulate node the name of the operator's tensor that it is; otherwise its place among the
        operands, ``0``, ``1`` and so on.
    shape
        Of what no node makes; None where it is not known, or a node makes it.
    kind
        What it is where no node makes it.
    """

    tensor: str
    name: str
    shape: Shape | None = None
    kind: Kind = "input"


@dataclass(frozen=True)
class Result:
    """A tensor that a node makes.

    Parameters
    ----------
    shape
        None where it is not known.
    of
        The tensor whose bytes it shares (it is a view of it, or written over it); empty where it has its own.
    leaves
        Whether the network hands it out; None: if no node reads it.
    """

    name: str
    shape: Shape | None
    of: str = ""
    leaves: bool | None = None


@dataclass(frozen=True)
class Edges:
    """What a node reads and makes, where that is known better than by the names of the nodes before it."""

    reads: tuple[Operand, ...]
    makes: tuple[Result, ...]
