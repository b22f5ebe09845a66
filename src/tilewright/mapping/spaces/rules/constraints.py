"""What a map space leaves out: which loops may run where, how often, in which order, and what stays in which memory."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from math import ceil, isfinite
from typing import Any, TypeVar

from tilewright.base import InputError
from tilewright.hardware import Accelerator, Memory
from tilewright.mapping.batch import loop_places
from tilewright.mapping.fit import check_homes
from tilewright.workload import Operator

ANY = "*"
"""In a loop order: all dimensions that it does not name, in any order."""

SLACK = 1e-9
"""Rounding that a share times a number of instances may carry."""


@dataclass(frozen=True)
class Bounds:
    """Least and most that a number may be; ``most`` None leaves it open."""

    least: int = 1
    most: int | None = None

    def __str__(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"

    def clamped(self, size: int) -> tuple[int, int]:
        """Return least and most, ``size`` in the place of all that is above it or open."""
        return min(self.least, size), size if self.most is None else min(self.most, size)


Choices = Mapping[str, tuple[str, ...]]
Orders = Mapping[str, tuple[tuple[str, ...], ...]]
Limits = Mapping[str, Mapping[str, Bounds]]
V = TypeVar("V")


@dataclass(frozen=True)
class Constraints:
    """Restrictions of a map space, in the spirit of Timeloop's mapspace constraints.

    A place is a memory (``GLB``) or one side of an array (``PE.X``). What is not named is free. Whatever the order that
    they were written in, equal restrictions are equal objects and have equal text.

    Raises an `InputError` if a name stands where a list of names must, or anything but `Bounds` where they must.
    """

    keeps: Choices = field(default_factory=dict)
    """By memory: the tensors it keeps, where that is less than it can (the others bypass it)."""
    loops: Choices = field(default_factory=dict)
    """By place: the dimensions that may loop there."""
    orders: Orders = field(default_factory=dict)
    """By memory: the loop orders to choose from, outermost first. An order names every dimension, or has one `ANY` in
    the place of those that it leaves free. Only the loops that run more than once need to stand in such an order."""
    factors: Limits = field(default_factory=dict)
    """By place and dimension: bounds on how often the loop runs (its nominal count; 1 is no loop)."""
    tiles: Limits = field(default_factory=dict)
    """By memory and dimension: bounds on the extent of the tile that the memory holds. A bound above the dimension's
    size stands for the size."""
    utilization: Mapping[str, float] = field(default_factory=dict)
    """By fan-out: the least share of its instances that a mapping must use (nominally)."""

    def __post_init__(self) -> None:
        canonical: dict[str, Mapping[str, Any]] = {
            "keeps": {place: _names("keeps", place, names) for place, names in self.keeps.items()},
            "loops": {place: _names("loops", place, names) for place, names in self.loops.items()},
            "orders": {place: listed for place, orders in self.orders.items()
                       if (ANY,) not in (listed := _listed_orders(place, orders))},
            "factors": {place: found for place, limits in self.factors.items()
                        if (found := _telling(f"space.factors.{place}", limits))},
            "tiles": {place: found for place, limits in self.tiles.items()
                      if (found := _telling(f"space.tiles.{place}", limits))},
            "utilization": self.utilization,
        }
        for name, entries in canonical.items():
            object.__setattr__(self, name, dict(sorted(entries.items())))

    def check(self, operator: Operator, accelerator: Accelerator) -> None:
        """Check every name and number against an operator and an accelerator.

        Raises an `InputError` if a name is unknown, a number out of range, or one entry contradicts itself or the
        machine.
        """
        memories = [level.name for level in accelerator.memories]
        fanouts = [level.name for level in accelerator.fanouts]
        places = loop_places(accelerator)
        for name, known in (("keeps", memories), ("loops", places), ("orders", memories), ("factors", places),
                            ("tiles", memories), ("utilization", fanouts)):
            unknown = sorted(set(getattr(self, name)) - set(known))
            if unknown:
                raise InputError(f"space.{name}", f"must name {_KINDS[name]} among {', '.join(known)}", unknown)
        for place, dims in self.loops.items():
            _check_dimensions(f"space.loops.{place}", dims, operator)
        self._check_keeps(operator, accelerator)
        self._check_orders(operator)
        self._check_limits(operator, accelerator)
        self._check_utilization()

    def _check_keeps(self, operator: Operator, accelerator: Accelerator) -> None:
        tensors = {tensor.name: tensor.role for tensor in operator.tensors}
        for place, names in self.keeps.items():
            memory = next(level for level in accelerator.memories if level.name == place)
            able = [name for name, role in tensors.items() if memory.can_keep(name, role)]
            unknown = sorted(set(names) - set(able))
            if unknown:
                raise InputError(f"space.keeps.{place}", f"must be among {', '.join(able) or 'nothing'}", unknown)
        outermost = accelerator.levels[0].name
        if accelerator.sparsity is not None and set(self.keeps.get(outermost, tensors)) != set(tensors):
            raise InputError(f"space.keeps.{outermost}", "must be all tensors where zeros are made use of",
                             list(self.keeps[outermost]))
        if self.keeps:
            check_homes(operator, accelerator, [
                [name for name, role in tensors.items() if isinstance(level, Memory) and level.can_keep(name, role)
                 and name in self.keeps.get(level.name, (name,))] for level in accelerator.levels])

    def _check_orders(self, operator: Operator) -> None:
        for place, orders in self.orders.items():
            mend = f"Give each of {', '.join(operator.sizes)} once, or {ANY} for the others"
            if not orders:
                raise InputError(f"space.orders.{place}", "must list at least one order", [], mend)
            for order in orders:
                named = [name for name in order if name != ANY]
                rest = set(operator.sizes) - set(named)
                if len(set(order)) < len(order) or set(named) - set(operator.sizes) or (rest and ANY not in order):
                    raise InputError(f"space.orders.{place}", "must list orders of every dimension", order, mend)

    def _check_limits(self, operator: Operator, accelerator: Accelerator) -> None:
        for name in ("factors", "tiles"):
            for place, limits in getattr(self, name).items():
                _check_dimensions(f"space.{name}.{place}", limits, operator)
                for dim, bounds in limits.items():
                    _check_bounds(f"space.{name}.{place}.{dim}", bounds)
        for place, limits in self.factors.items():
            side = _longest_side(accelerator, place)
            for dim, bounds in limits.items():
                self._check_factor(place, dim, bounds, (operator.sizes[dim], side))
        outermost = accelerator.levels[0].name
        for dim, bounds in self.tiles.get(outermost, {}).items():
            size = operator.sizes[dim]
            if bounds.clamped(size)[1] < size:
                raise InputError(f"space.tiles.{outermost}.{dim}",
                                 f"must allow {size}: the outermost memory holds everything", str(bounds))

    def _check_factor(self, place: str, dim: str, bounds: Bounds, most: tuple[int, int | None]) -> None:
        path, (size, side) = f"space.factors.{place}.{dim}", most
        if bounds.least > size:
            raise InputError(path, f"must be at most {size}, the size of {dim}", str(bounds))
        if side is not None and bounds.least > side:
            raise InputError(path, f"must be at most {side}, what the array has there", str(bounds))
        if bounds.least > 1 and dim not in self.loops.get(place, (dim,)):
            raise InputError(path, "must allow 1 where the dimension may not loop", str(bounds),
                             f"Add {dim} to space.loops.{place}, or let the factor be 1")

    def _check_utilization(self) -> None:
        for place, share in self.utilization.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not isfinite(share) or (
                    not 0 < share <= 1):
                raise InputError(f"space.utilization.{place}", "must be a share above 0 and at most 1", share)

    def named(self) -> list[str]:
        """Return the parts that say anything, each with the places it speaks of."""
        return [f"{name} at {' and '.join(entries)}" for name in _KINDS if (entries := getattr(self, name))]

    def lanes_needed(self, fanout: str, instances: int) -> int:
        """Return how many instances of ``fanout`` a mapping must use; 0 where that is left open."""
        return ceil(self.utilization.get(fanout, 0) * instances - SLACK)

    def further_in(self, place: str, name: str, names: Collection[str]) -> set[str]:
        """Return which of the dimensions ``names`` lie further in than ``name`` in all orders of a memory.

        Where that runs innermost, these do not loop there.
        """
        found = set(names) - {name} if self.orders.get(place) else set[str]()
        for order in self.orders.get(place, ()):
            inside = set(order[order.index(name if name in order else ANY) + 1:])
            found &= inside | set(names) - set(order) if ANY in inside else inside
        return found

    def intersect(self, other: "Constraints", operator: Operator) -> "Constraints":
        """Return what both allow.

        What only one of them names holds as it is; of two lists of orders those that both allow are left.

        Raises an `InputError` if both say what a memory keeps and differ, or nothing is left of orders or of bounds.
        """
        for place in set(self.keeps) & set(other.keeps):
            if self.keeps[place] != other.keeps[place]:
                raise InputError(f"space.keeps.{place}", "must be the same in spaces that are intersected",
                                 f"{', '.join(self.keeps[place])} and {', '.join(other.keeps[place])}")
        loops = {place: tuple(set(self.loops[place]) & set(other.loops[place]))
                 for place in set(self.loops) & set(other.loops)}
        orders = {place: self._common_orders(other, place, operator) for place in set(self.orders) & set(other.orders)}
        shares = {place: max(self.utilization.get(place, 0.0), other.utilization.get(place, 0.0))
                  for place in {*self.utilization, *other.utilization}}
        return Constraints(
            {**self.keeps, **other.keeps}, {**self.loops, **other.loops, **loops},
            {**self.orders, **other.orders, **orders},
            _common_limits("factors", self.factors, other.factors, operator),
            _common_limits("tiles", self.tiles, other.tiles, operator), shares,
        )

    def _common_orders(self, other: "Constraints", place: str, operator: Operator) -> tuple[tuple[str, ...], ...]:
        names = tuple(operator.sizes)
        if self.orders[place] == other.orders[place]:
            return self.orders[place]
        common = set(written_out(self.orders[place], names)) & set(written_out(other.orders[place], names))
        if not common:
            raise InputError(f"space.orders.{place}", "must share an order in spaces that are intersected",
                             f"{self.orders[place]} and {other.orders[place]}")
        return tuple(common)


_KINDS = {"keeps": "memories", "loops": "places", "orders": "memories", "factors": "places", "tiles": "memories",
          "utilization": "fan-outs"}


def written_out(orders: Iterable[tuple[str, ...]], dimensions: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the orders with `ANY` replaced by every order of the dimensions not named, each once."""
    found: dict[tuple[str, ...], None] = {}
    for order in orders:
        rest = [name for name in dimensions if name not in order]
        at = order.index(ANY) if ANY in order else 0
        for middle in permutations(rest):
            found[(*order[:at], *middle, *(name for name in order[at:] if name != ANY))] = None
    return list(found)


def _names(field_name: str, place: str, names: Iterable[str]) -> tuple[str, ...]:
    names = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"space.{field_name}.{place}", "must be a list of names", names)
    return tuple(sorted(set(names)))


def _listed_orders(place: str, orders: Iterable[Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    listed = list(orders) if isinstance(orders, Iterable) and not isinstance(orders, str) else [orders]
    if any(isinstance(order, str) or not isinstance(order, Iterable) for order in listed):
        raise InputError(f"space.orders.{place}", "must list orders, each a list of names", orders)
    return tuple(sorted({tuple(order) for order in listed}))


def _telling(path: str, limits: Mapping[str, Bounds]) -> dict[str, Bounds]:
    """Return the bounds that rule something out, by name."""
    for dim, bounds in limits.items():
        if not isinstance(bounds, Bounds):
            raise InputError(f"{path}.{dim}", "must be Bounds", bounds, "For example Bounds(4, 4), or Bounds(most=4)")
    return {dim: bounds for dim, bounds in sorted(limits.items()) if bounds != Bounds()}


def _longest_side(accelerator: Accelerator, place: str) -> int | None:
    """Return the most lanes that one side of a fan-out can have; None for a memory."""
    fanout = next((level for level in accelerator.fanouts if place in (f"{level.name}.X", f"{level.name}.Y")), None)
    if fanout is None:
        return None
    side = 0 if place.endswith("X") else 1
    if fanout.flexible:
        return fanout.instances
    if fanout.blocks:
        return fanout.instances // (fanout.blocks[0] * fanout.blocks[1]) * fanout.blocks[side]
    return fanout.shape[side]


def _check_dimensions(path: str, dims: Iterable[str], operator: Operator) -> None:
    unknown = sorted(set(dims) - set(operator.sizes))
    if unknown:
        raise InputError(path, f"must name dimensions of {operator.name} ({', '.join(operator.sizes)})", unknown)


def _check_bounds(path: str, bounds: Bounds) -> None:
    for number in (bounds.least, bounds.most):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise InputError(path, "must be whole numbers of at least 1", number)
    if bounds.most is not None and bounds.least > bounds.most:
        raise InputError(path, "must have a least that is not above its most", f"{bounds.least} to {bounds.most}")


def _common_limits(name: str, first: Limits, second: Limits, operator: Operator) -> Limits:
    """Return the bounds that hold under both; numbers above a dimension's size stand for it."""
    found: dict[str, dict[str, Bounds]] = {}
    for place in {*first, *second}:
        mine, others = first.get(place, {}), second.get(place, {})
        found[place] = {**mine, **others}
        for dim in set(mine) & set(others):
            tops = [bounds.most for bounds in (mine[dim], others[dim]) if bounds.most is not None]
            least, most = max(mine[dim].least, others[dim].least), min(tops, default=None)
            if name == "tiles" and most is not None:
                least, most = Bounds(least, most).clamped(operator.sizes[dim])
            if most is not None and least > most:
                raise InputError(f"space.{name}.{place}.{dim}", "must leave a number in spaces that are intersected",
                                 f"{mine[dim]} and {others[dim]}")
            found[place][dim] = Bounds(least, most)
    return found
