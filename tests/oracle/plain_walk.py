"""The counting rules once more, in plain Python sets and dictionaries: no numbers packed, no arrays, no shortcuts.

It checks the oracle itself, on nests of a few hundred multiply-accumulates.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from tilewright.cost.records import Count
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping import Mapping
from tilewright.workload import Operator, Tensor

PlainLoop = tuple[int, str, int, str]  # level, dimension, step, side ("x", "y"; "" in time)
Counts = dict[tuple[str, str], Count]


def plain_walk(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> tuple[int, Counts]:
    """Return the steps and the counts."""
    loops, extents = [], dict(operator.sizes)
    for at, entry in enumerate(mapping.levels):
        for loop in entry.loops:
            if loop.step < extents[loop.dimension]:
                side = (loop.axis or "X").lower() if isinstance(accelerator.levels[at], Fanout) else ""
                loops.append((at, loop.dimension, loop.step, side))
                extents[loop.dimension] = loop.step
    times = defaultdict(set)
    for _, indices in executions(operator, loops):
        lane = tuple(i for i, loop in zip(indices, loops, strict=True) if loop[3])
        times[lane].add(tuple(i for i, loop in zip(indices, loops, strict=True) if not loop[3]))
    counts = {}
    for tensor in operator.tensors:
        counts |= walk_tensor(operator, accelerator, mapping, tensor, loops)
    return max(map(len, times.values())), counts


def executions(operator: Operator, loops: list[PlainLoop]) -> Iterator[tuple[dict[str, int], tuple[int, ...]]]:
    """Yield every multiply-accumulate: its place in the operator and the index of every loop at it."""
    names = list(operator.sizes)
    for values in product(*(range(operator.sizes[name]) for name in names)):
        rest, indices = dict(zip(names, values, strict=True)), []
        for _, name, step, _ in loops:
            indices.append(rest[name] // step)
            rest[name] %= step
        yield dict(zip(names, values, strict=True)), tuple(indices)


def walk_tensor(operator: Operator, accelerator: Accelerator, mapping: Mapping, tensor: Tensor,
                loops: list[PlainLoop]) -> Counts:
    """Return the tensor's counts at all memories that keep it."""
    keepers = []
    for at, level in enumerate(accelerator.levels):
        if not isinstance(level, Fanout):
            kept = mapping.levels[at].keeps
            if level.can_keep(tensor.name, tensor.role) if kept is None else tensor.name in kept:
                keepers.append(at)
    counts, fills, drains = {}, 0, 0
    given: dict[tuple, set] = {}
    outer_visits: list[int] = []
    for parent, child in zip(keepers, [*keepers[1:], len(accelerator.levels)], strict=True):
        at_compute = child == len(accelerator.levels)
        advancing = [i for i, loop in enumerate(loops) if loop[0] < child and not loop[3]]
        while not at_compute and advancing and loops[advancing[-1]][1] not in tensor.dimensions:
            advancing.pop()
        tiles = find_tiles(operator, tensor, loops, advancing, child)
        apart = find_apart(accelerator, tensor, loops, parent, child)
        if tensor.is_output:
            plain = [axis.dimensions[0] for axis in tensor.axes if len(axis.terms) == 1]
            combines = any(loops[i][1] not in plain for i in apart)
            reads, updates, fills_in, given = exchange(tiles, loops, parent, apart, given, len(outer_visits), combines)
            drains_out = sum(map(len, tiles.values()))
        else:
            reads, fills_in = bring_in(tiles, loops, parent, apart, halo=bool(advancing) and not at_compute)
            updates = drains_out = 0
        counts[accelerator.levels[parent].name, tensor.name] = Count(reads, fills, updates, drains)
        fills, drains, outer_visits = fills_in, drains_out, advancing
    return counts


def find_tiles(operator: Operator, tensor: Tensor, loops: list[PlainLoop], advancing: list[int], child: int) -> dict:
    """(visit, lane) -> words; a lane is ((loop, index), ...) over the spatial loops outside the child."""
    tiles = defaultdict(set)
    for place, indices in executions(operator, loops):
        visit = tuple(indices[i] for i in advancing)
        lane = tuple((i, indices[i]) for i, loop in enumerate(loops) if loop[3] and loop[0] < child)
        tiles[visit, lane].add(tuple(sum(c * place[d] for d, c in axis.terms) for axis in tensor.axes))
    return tiles


def find_apart(accelerator: Accelerator, tensor: Tensor, loops: list[PlainLoop], parent: int, child: int) -> set[int]:
    """Spatial loops between parent and child whose lanes are counted separately."""
    apart: set[int] = set()
    for i in reversed(range(len(loops))):
        level, name, _, side = loops[i]
        if not side or not parent < level < child:
            continue
        fanout = accelerator.levels[level]
        given = fanout.reduce if tensor.is_output else fanout.multicast
        if isinstance(given, tuple):
            given = {"all": True, **{role: along for role, along in given if role == tensor.role},
                     **{name: along for name, along in given if name == tensor.name}}
            given = list(given.values())[-1]
        merging = given is True or given == side
        slides = any(len(axis.terms) == 2 and name in axis.dimensions for axis in tensor.axes)
        broken = any(loops[j][1] == name and loops[j][0] < child and (not loops[j][3] or j in apart)
                     for j in range(i + 1, len(loops)))
        if not merging or (slides and broken):
            apart.add(i)
    return apart


def split_lane(lane: tuple, loops: list[PlainLoop], parent: int, apart: set[int]) -> tuple[tuple, tuple]:
    """The parent's own lane, and the indices that keep instances from merging."""
    return (tuple(x for x in lane if loops[x[0]][0] < parent), tuple(x for x in lane if x[0] in apart))


def bring_in(tiles: dict, loops: list[PlainLoop], parent: int, apart: set[int], halo: bool) -> tuple[int, int]:
    """Reads of the parent and fills of the child."""
    fills, shared = 0, defaultdict(set)
    for (visit, lane), words in tiles.items():
        new = words
        if halo and visit[-1] > 0:
            new = words - tiles[(*visit[:-1], visit[-1] - 1), lane]
        fills += len(new)
        shared[visit, *split_lane(lane, loops, parent, apart)] |= new
    return sum(map(len, shared.values())), fills


def exchange(tiles: dict, loops: list[PlainLoop], parent: int, apart: set[int], given: dict, outer: int,
             combines: bool) -> tuple[int, int, int, dict]:
    """Reads and updates of the parent, fills of the child, and what each (visit, lane) of the child was given."""
    reads = updates = fills = 0
    given_in: dict[tuple, set] = defaultdict(set)
    by_visit = defaultdict(list)
    for visit, lane in tiles:
        by_visit[visit].append(lane)
    holds: dict[tuple, set] = {}
    for visit in sorted(by_visit):
        groups = defaultdict(list)
        for lane in sorted(by_visit[visit]):
            groups[split_lane(lane, loops, parent, apart)].append(lane)
        for (parent_lane, _), lanes in groups.items():
            held = holds.setdefault((visit[:outer], parent_lane), set(given.get((visit[:outer], parent_lane), ())))
            merged = set().union(*(tiles[visit, lane] for lane in lanes))
            reads += len(merged & held)
            updates += len(merged)
            for word in () if combines else merged & held:
                taker = next(lane for lane in lanes if word in tiles[visit, lane])
                given_in[visit, taker].add(word)
                fills += 1
            held |= merged
    return reads, updates, fills, given_in
