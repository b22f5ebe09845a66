"""From a machine's stated flexibility to the mappings that it can run: the feasible space, as members to search."""

from collections.abc import Mapping
from dataclasses import replace

from tilewright.base import InputError
from tilewright.hardware import CONVOLUTION, Accelerator, Fanout, Flexibility, Memory
from tilewright.mapping.batch import slot_axes
from tilewright.mapping.dataflows import classes_of
from tilewright.mapping.fit import kept_tensors, tile_fits
from tilewright.mapping.mapping import LevelLoops
from tilewright.mapping.spaces.rules.constraints import Bounds, Constraints
from tilewright.mapping.spaces.rules.tilings import Tiling
from tilewright.mapping.spaces.space import MapSpace
from tilewright.workload import Operator

Pair = tuple[str | None, str | None]
Limits = dict[str, dict[str, Bounds]]


def flexible_spaces(operator: Operator, accelerator: Accelerator, tiling: Tiling = "imperfect") -> tuple[MapSpace, ...]:
    """Return spaces whose union is all that ``accelerator`` can run of ``operator`` (section 3.2: A_X^w).

    Tiles, orders and array shapes are constraints of each; every pair of dimensions that may be spread is a member of
    its own, as far as pairs differ for this operator. A machine that states no flexibility has one member: everything.

    Where tiles and shape are both fixed, so are the lanes: as many as the tile gives and the side has. Tiles that are
    fixed per element and follow an array of any shape leave to the mapper how many lanes. Dimensions that
    the machine does not speak of (the batch) are tiled by 1 where its tiles are fixed, loop outside all others where
    its orders are listed, and are never spread unless any dimension may be.

    Raises an `InputError` if the machine speaks of dimensions that the operator has no counterpart of.

    Example
    -------
    >>> from tilewright.hardware import preset
    >>> from tilewright.workload import matmul
    >>> len(flexible_spaces(matmul("gemm", m=64, n=64, k=64), preset("flexion")))
    1
    """
    flexibility = accelerator.flexibility
    if flexibility is None:
        return (MapSpace(operator, accelerator, tiling),)
    machine = flexible_machine(accelerator)
    ours = stand_ins(operator, flexibility)
    shared = Constraints(
        loops=_idle_memories(operator, machine),
        orders=_orders(operator, machine, flexibility, ours),
        tiles=_tiles(operator, flexibility, ours),
    )
    if flexibility.parallelism.dimensions_per_side is None:
        tiles, _ = _element_tiles((None, None), operator, flexibility, ours)
        return (MapSpace(operator, machine, tiling, replace(shared, tiles={**shared.tiles, **tiles})),)
    members = []
    for pair in effective_pairs(operator, flexibility, mirrored=_mirrored(machine, flexibility)):
        loops, factors = _pair_limits(pair, operator, machine, flexibility, ours)
        tiles, counts = _element_tiles(pair, operator, flexibility, ours)
        members.append(MapSpace(operator, machine, tiling, replace(
            shared, loops={**shared.loops, **loops}, factors={**factors, **counts}, tiles={**shared.tiles, **tiles})))
    return tuple(members)


def flexible_within(space: MapSpace) -> tuple[MapSpace, ...]:
    """Return what of ``space`` its accelerator's stated flexibility allows; ``space`` alone where it states none.

    Raises an `InputError` if the two contradict each other in every member.
    """
    if space.accelerator.flexibility is None:
        return (space,)
    found, wrong = [], None
    for member in flexible_spaces(space.operator, space.accelerator, space.tiling):
        try:
            found.append(member & replace(space, accelerator=member.accelerator))
        except InputError as error:
            wrong = error
    if not found and wrong is not None:
        raise wrong
    return tuple(found)


def flexible_machine(accelerator: Accelerator) -> Accelerator:
    """Return the machine with the array and the buffers that its flexibility states."""
    flexibility = accelerator.flexibility
    if flexibility is None:
        return accelerator
    ratios = {name: dict(ratio) for name, ratio in flexibility.tile.partitions}
    levels: list[Memory | Fanout] = []
    for level in accelerator.levels:
        if isinstance(level, Fanout) and level.name == flexibility.array:
            levels.append(_shaped(level, flexibility))
        elif isinstance(level, Memory) and level.name in ratios:
            levels.append(_partitioned(level, ratios[level.name]))
        else:
            levels.append(level)
    return replace(accelerator, levels=tuple(levels))


def _shaped(fanout: Fanout, flexibility: Flexibility) -> Fanout:
    shape = flexibility.shape
    if shape.fixed:
        return replace(fanout, shape=shape.fixed, flexible=False, blocks=None)
    return replace(fanout, flexible=shape.blocks is None, blocks=shape.blocks)


def _partitioned(memory: Memory, ratio: Mapping[str, float]) -> Memory:
    capacity = memory.capacity_bytes or 0.0
    total = sum(ratio.values())
    return replace(memory, partitions_bytes=tuple((name, float(capacity * share / total // 1))
                                                  for name, share in ratio.items()))


def stand_ins(operator: Operator, flexibility: Flexibility) -> dict[str, str | None]:
    """Return, for each dimension that the machine speaks of, the operator's dimension that takes its place, or None.

    A machine for convolutions takes others by what their dimensions do, as `classes_of` tells: K is what only weights
    and outputs use (N of a matrix product), C what is summed with the weights (its K), P and Q positions (its M), R and
    S windows. Where nothing is summed over channels, groups take the place of C: a depthwise layer has K = 1, as in the
    paper's tables.

    Raises an `InputError` if the operator has no such dimensions, and the machine is not for convolutions.
    """
    dims, sizes = flexibility.dimensions, operator.sizes
    if set(dims) <= set(sizes):
        found: dict[str, str | None] = {d: d for d in dims}
    elif set(dims) <= set(CONVOLUTION):
        found = {d: taken for d, taken in _by_class(operator).items() if d in dims}
    else:
        raise InputError("flexibility.dimensions", f"must be dimensions of {operator.name}, or of a convolution",
                         ", ".join(dims), f"{operator.name} has {', '.join(sizes)}")
    channels = found.get("C")
    groups = classes_of(operator)["groups"]
    if set(dims) <= set(CONVOLUTION) and "C" in dims and groups and (channels is None or sizes[channels] == 1):
        found["C"] = groups[0]
    return found


def _by_class(operator: Operator) -> dict[str, str | None]:
    classes = classes_of(operator)
    window_rows = classes["window rows"]
    columns = [d for d in classes["window"] if d not in window_rows]
    chosen = (classes["filters"], classes["channels"], classes["rows"], classes["columns"], window_rows, columns)
    return {name: (members[0] if members else None) for name, members in zip(CONVOLUTION, chosen, strict=True)}


def effective_pairs(operator: Operator, flexibility: Flexibility, mirrored: bool = False) -> tuple[Pair, ...]:
    """Return the pairs of the operator's dimensions that may be spread along X and Y, each once.

    A side whose dimension has size 1 has none. Pairs that spread a part of what another spreads are left out, unless
    lanes are fixed (by tile and shape) so that the other would have to spread all; ``mirrored`` also leaves out the
    same two dimensions the other way round, where the sides are alike.
    """
    ours, sizes = stand_ins(operator, flexibility), operator.sizes
    active = {d: name if name is not None and sizes[name] > 1 else None for d, name in ours.items()}
    dims = flexibility.dimensions
    choices = flexibility.parallelism.choices or tuple((x, y) for x in dims for y in dims if x != y)
    pairs = list(dict.fromkeys((active[x], active[y]) for x, y in choices))
    if mirrored:
        seen: dict[frozenset[str | None], Pair] = {}
        for pair in pairs:
            seen.setdefault(frozenset(pair), pair)
        pairs = list(seen.values())
    if flexibility.tile.degree == "inflexible" and flexibility.shape.fixed:
        return tuple(pairs)
    return tuple(pair for pair in pairs
                 if not any(other != pair and _covers(other, pair, mirrored) for other in pairs))


def _covers(other: Pair, pair: Pair, mirrored: bool) -> bool:
    """Whether all that ``pair`` spreads, ``other`` can spread too."""
    ways = (other, other[::-1]) if mirrored else (other,)
    return any(all(mine is None or mine == theirs for mine, theirs in zip(pair, way, strict=True)) for way in ways)


def _mirrored(machine: Accelerator, flexibility: Flexibility) -> bool:
    """Whether the two sides of the array are alike: any shape, square blocks, or a square."""
    array = machine.level(flexibility.array)
    sides = flexibility.shape.blocks or (array.shape if isinstance(array, Fanout) and not array.flexible else (1, 1))
    return sides[0] == sides[1]


def _idle_memories(operator: Operator, machine: Accelerator) -> dict[str, tuple[str, ...]]:
    """Return the dimensions that may loop at memories too small for a tile of two along all others."""
    found = {}
    for memory in machine.memories[1:]:
        kept = kept_tensors(LevelLoops(memory.name), memory, operator)
        fitting = tuple(d for d in operator.sizes
                        if tile_fits(memory, kept, {**dict.fromkeys(operator.sizes, 1), d: 2}, machine))
        if len(fitting) < len(operator.sizes):
            found[memory.name] = fitting
    return found


def _orders(operator: Operator, machine: Accelerator, flexibility: Flexibility,
            ours: Mapping[str, str | None]) -> dict[str, tuple[tuple[str, ...], ...]]:
    if not flexibility.order.choices:
        return {}
    taken = {name for name in ours.values() if name is not None}
    outer = tuple(d for d in operator.sizes if d not in taken)
    orders = tuple(dict.fromkeys(outer + tuple(name for d in order if (name := ours[d]) is not None)
                                 for order in flexibility.order.choices))
    return {memory.name: orders for memory in machine.memories}


def _tiles(operator: Operator, flexibility: Flexibility, ours: Mapping[str, str | None]) -> Limits:
    found: Limits = {}
    for memory, extents in flexibility.tile.fixed:
        given = {name: extent for d, extent in extents if (name := ours[d]) is not None}
        found[memory] = {d: Bounds(given.get(d, 1), given.get(d, 1)) for d in operator.sizes}
    return found


def _element_tiles(pair: Pair, operator: Operator, flexibility: Flexibility,
                   ours: Mapping[str, str | None]) -> tuple[Limits, Limits]:
    """Return the tiles, and how often the memory's own loops may run, where extents are fixed per element."""
    tiles: Limits = {}
    counts: Limits = {}
    sides = flexibility.shape.fixed
    for memory, extents in flexibility.tile.per_element:
        given = {name: extent for d, extent in extents if (name := ours[d]) is not None}
        tiles[memory] = {}
        for d, size in operator.sizes.items():
            extent = given.get(d, 1)
            if d not in pair:
                tiles[memory][d] = Bounds(extent, extent)
            elif sides is not None:
                lanes = min(sides[pair.index(d)], size)
                tiles[memory][d] = Bounds(extent * lanes, extent * lanes)
            else:
                counts.setdefault(memory, {})[d] = Bounds(1, extent)
    return tiles, counts


def _pair_limits(pair: Pair, operator: Operator, machine: Accelerator, flexibility: Flexibility,
                 ours: Mapping[str, str | None]) -> tuple[dict[str, tuple[str, ...]], Limits]:
    """Return what may loop along the array's sides, and how often where that is fixed."""
    array = machine.level(flexibility.array)
    fixed = dict(flexibility.tile.fixed or flexibility.tile.per_element).get(flexibility.memory)
    loops: dict[str, tuple[str, ...]] = {}
    factors: Limits = {}
    for axis, dimension in zip("XY", pair, strict=True):
        if axis not in slot_axes(array):
            continue
        place = f"{array.name}.{axis}"
        loops[place] = () if dimension is None else (dimension,)
        if fixed and flexibility.shape.fixed and dimension is not None:
            lanes = min(flexibility.shape.fixed["XY".index(axis)], operator.sizes[dimension])
            if flexibility.tile.fixed:
                lanes = min(lanes, {ours[d]: extent for d, extent in fixed}.get(dimension, 1))
            factors[place] = {dimension: Bounds(lanes, lanes)}
    return loops, factors
