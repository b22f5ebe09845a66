"""What a map space leaves out: which loops may run where, how often, in which order, and what stays in which memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

ANY = "*"
"""In a loop order: all dimensions that it does not name, in any order."""


@dataclass(frozen=True)
class Bounds:
    """Least and most that a number may be; ``most`` None leaves it open."""

    least: int = 1
    most: int | None = None


Choices = Mapping[str, tuple[str, ...]]
Orders = Mapping[str, tuple[tuple[str, ...], ...]]
Limits = Mapping[str, Mapping[str, Bounds]]


@dataclass(frozen=True)
class Constraints:
    """Restrictions of a map space, in the spirit of Timeloop's mapspace constraints.

    A place is a memory (``GLB``) or one side of an array (``PE.X``). What is not named is free.

    Parameters
    ----------
    keeps
        By memory: the tensors it keeps, where that is less than it can (the others bypass it).
    loops
        By place: the dimensions that may loop there.
    orders
        By memory: the loop orders to choose from, outermost first. An order names every dimension, or has one `ANY` in
        the place of those that it leaves free.
    factors
        By place and dimension: bounds on how often the loop runs (its nominal count; 1 is no loop).
    tiles
        By memory and dimension: bounds on the extent of the tile that the memory holds. A bound above the dimension's
        size stands for the size.
    utilization
        By fan-out: the least share of its instances that a mapping must use (nominally).
    """

    keeps: Choices = field(default_factory=dict)
    loops: Choices = field(default_factory=dict)
    orders: Orders = field(default_factory=dict)
    factors: Limits = field(default_factory=dict)
    tiles: Limits = field(default_factory=dict)
    utilization: Mapping[str, float] = field(default_factory=dict)
