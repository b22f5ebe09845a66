"""Fixed dataflows as generators: which dimensions an array spreads, which tensor stays put; they fit any layer.

Dimensions are told apart by the tensors that use them, so that matrix products and einsums have the same dataflows as
convolutions:

======== =================== ============================ ================
class    used by             convolution                  matrix product
======== =================== ============================ ================
filters  weights, outputs    K                            N
channels inputs, weights     C                            K
window   as channels, but    R, S
         on a sliding axis
rows     inputs, outputs     the first that slides: P     M
columns  inputs, outputs     the second that slides: Q
batch    inputs, outputs     N                            others
groups   all                 G                            B
======== =================== ============================ ================

The chips are those of the papers named at each dataflow; what each spreads over its array is as classified by Gamma
(Kao 2022, chapter 4) and MAESTRO. How large tiles are is not part of a dataflow: they grow, inside out, while they fit.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from tilewright.base import InputError, Registry
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.fit import Extents, rooms, tile_fits
from tilewright.mapping.mapping import LevelLoops, Loop, Mapping, SpatialAxis
from tilewright.workload import Operator, Role, Tensor

Classes = tuple[str, ...]


@dataclass(frozen=True)
class Dataflow:
    """What a dataflow fixes."""

    about: str
    """What it is, in one line, with its source."""
    sides: tuple[Classes, Classes]
    """Classes of dimensions spread along the first side of the arrays and along the second (sides are counted through
    all arrays that have more than one place, outermost first), each taking what lanes the one before leaves."""
    stationary: Role
    """The tensor that stays put: loops that it does not use run innermost at every memory, except that reductions do
    where a memory inside the outermost would else send partial sums out to it."""
    growth: Classes
    """Classes in the order in which tiles grow."""
    reductions_first: bool = False
    """Loops that the output does not use run outermost at every memory instead, whatever is stationary."""


DATAFLOWS: Registry[Dataflow] = Registry("dataflow")

_WEIGHTS_GROW = ("window", "channels", "filters", "groups", "columns", "rows", "batch", "other")
_OUTPUTS_GROW = ("window", "columns", "rows", "filters", "channels", "batch", "groups", "other")
_INPUTS_GROW = ("window", "columns", "rows", "channels", "batch", "groups", "filters", "other")

DATAFLOWS.register("nvdla")(Dataflow(
    "NVDLA-like: output and input channels in parallel, weights stay (nvdla.org, hardware architecture)",
    (("filters", "groups"), ("channels",)), "weights", _WEIGHTS_GROW))
DATAFLOWS.register("eyeriss")(Dataflow(
    "Eyeriss-like: output rows by filter rows, replicated over channels and filters (Chen et al., ISCA 2016)",
    (("rows", "batch", "filters"), ("window rows", "channels", "filters", "groups")), "weights",
    ("window", "channels", "filters", "columns", "rows", "batch", "groups", "other")))
DATAFLOWS.register("eyeriss-rows")(Dataflow(
    "Eyeriss-like without replication: output rows and batch by filter rows alone (Kao 2022, figure 7.6)",
    (("rows", "batch"), ("window rows",)), "weights",
    ("window", "channels", "filters", "columns", "rows", "batch", "groups", "other")))
DATAFLOWS.register("shidiannao")(Dataflow(
    "ShiDianNao-like: a patch of output pixels in parallel, outputs stay (Du et al., ISCA 2015)",
    (("columns", "batch"), ("rows",)), "outputs", _OUTPUTS_GROW))
DATAFLOWS.register("weight-stationary")(Dataflow(
    "filters by channels and window, as in systolic arrays that hold weights; weights stay",
    (("filters", "groups", "channels"), ("channels", "window", "filters", "groups")), "weights", _WEIGHTS_GROW))
DATAFLOWS.register("output-stationary")(Dataflow(
    "output pixels, then batch and filters where lanes are left; outputs stay",
    (("columns", "batch", "filters", "groups"), ("rows", "filters", "batch", "groups")), "outputs", _OUTPUTS_GROW))
DATAFLOWS.register("input-stationary")(Dataflow(
    "input channels by input pixels; inputs stay",
    (("channels", "groups", "batch"), ("columns", "rows", "batch", "groups")), "inputs", _INPUTS_GROW))
DATAFLOWS.register("row-stationary")(DATAFLOWS.get("eyeriss"))
_ALL = ("filters", "rows", "columns", "channels", "window", "batch", "groups", "other")
DATAFLOWS.register("inner-product")(Dataflow(
    "sums innermost at every memory, each output finished at once; anything in parallel (Kao 2022, section 5.2.5)",
    (_ALL, ("rows", "columns", *_ALL)), "outputs", _OUTPUTS_GROW))
DATAFLOWS.register("outer-product")(Dataflow(
    "sums outermost at every memory, each operand used up at once; anything in parallel (Kao 2022, section 5.2.5)",
    (_ALL, ("rows", "columns", *_ALL)), "inputs", _OUTPUTS_GROW, reductions_first=True))


def dataflow(name: str | Dataflow, operator: Operator, accelerator: Accelerator) -> Mapping:
    """Return the mapping of ``operator`` on ``accelerator`` that follows a dataflow, or the one called ``name``.

    It is legal wherever a mapping can be: arrays are filled with imperfect steps where sizes do not divide; where tiles
    as wide as the arrays do not fit, fewer lanes are used; a memory too small for one word of a tensor lets it pass.

    Raises an `InputError` if the name is unknown, or the outermost memory cannot hold the tensors.
    """
    flow = name if isinstance(name, Dataflow) else DATAFLOWS.get(name)
    return _Generator(flow, operator, accelerator).mapping()


def classes_of(operator: Operator) -> dict[str, tuple[str, ...]]:
    """Return the dimensions of each class (see the table above); every dimension is in one, window rows in two."""
    inputs, weights = _operands(operator)
    sliding = [axis for tensor in operator.tensors for axis in tensor.axes if len(axis.terms) == 2]
    slides = {d for axis in sliding for d in axis.dimensions}
    found: dict[str, list[str]] = {name: [] for name in (
        "filters", "channels", "window", "rows", "columns", "batch", "groups", "other")}
    names = {(False, True, True): "filters", (True, True, False): "channels", (True, True, True): "groups",
             (True, False, True): "batch"}
    for d in operator.sizes:
        by_weights = weights is not None and d in weights.dimensions
        name = names.get((d in inputs.dimensions, by_weights, d in operator.output.dimensions), "other")
        if d in slides and name in ("channels", "filters"):
            name = "window"
        found[name].append(d)
    positions = sorted(found["batch"], key=lambda d: (d not in slides, -operator.sizes[d] if d not in slides else 0))
    found["rows"], found["columns"], found["batch"] = _positions(positions, slides)
    first = found["rows"][:1]
    partners = [d for axis in sliding for d in axis.dimensions if first and first[0] in axis.dimensions]
    found["window rows"] = [d for d in found["window"] if d in partners]
    return {name: tuple(members) for name, members in found.items()}


def _positions(ordered: list[str], slides: set[str]) -> tuple[list[str], list[str], list[str]]:
    """Split positions into rows, columns and batch; a product without sliding axes has its largest as rows."""
    sliding = [d for d in ordered if d in slides]
    rows = sliding[:1] or ordered[:1]
    columns = sliding[1:]
    return rows, columns, [d for d in ordered if d not in rows and d not in columns]


def holdable(operator: Operator, accelerator: Accelerator) -> dict[str, tuple[Tensor, ...]]:
    """Return, by memory, the tensors that it can keep and has room for: all at the outermost, else a word of each.

    Raises an `InputError` if the outermost memory cannot hold the tensors whole.
    """
    found: dict[str, tuple[Tensor, ...]] = {}
    for index, memory in enumerate(accelerator.memories):
        able = tuple(t for t in operator.tensors if memory.can_keep(t.name, t.role))
        if index == 0:
            if able != operator.tensors or not tile_fits(memory, able, operator.sizes, accelerator):
                raise InputError(f"{accelerator.name}.{memory.name}", "must be able to keep all tensors whole",
                                 f"{operator.name}: {', '.join(t.name for t in operator.tensors)}",
                                 "Enlarge it, or let it keep all roles")
            found[memory.name] = able
            continue
        kept: tuple[Tensor, ...] = ()
        for tensor in able:
            if tile_fits(memory, (*kept, tensor), dict.fromkeys(operator.sizes, 1), accelerator):
                kept = (*kept, tensor)
        found[memory.name] = kept
    return found


def stationary(flow: Dataflow, operator: Operator) -> Tensor:
    """Return the tensor that stays put: the one that plays the dataflow's stationary role, or else the output."""
    inputs, weights = _operands(operator)
    return {"inputs": inputs, "weights": weights}.get(flow.stationary) or operator.output


def spills(memory: str, operator: Operator, accelerator: Accelerator, keeps: dict[str, tuple[Tensor, ...]]) -> bool:
    """Whether a memory's loops, not the outermost's, move partial sums between the outermost and an inner memory."""
    names = [other.name for other in accelerator.memories]
    index = names.index(memory)
    keeping = [i for i, name in enumerate(names) if operator.output in keeps[name]]
    return index > 0 and max(i for i in keeping if i <= index) == 0 and keeping[-1] > index


def _operands(operator: Operator) -> tuple[Tensor, Tensor | None]:
    """Return the operands that play inputs and weights: by role, or else the first and the next."""
    operands = operator.operands
    inputs = next((t for t in operands if t.role == "inputs"), operands[0] if operands else operator.output)
    rest = [t for t in operands if t is not inputs]
    return inputs, next((t for t in rest if t.role == "weights"), rest[0] if rest else None)


@dataclass(frozen=True)
class _Side:
    """Lanes along one side of one array, by dimension."""

    level: int
    axis: SpatialAxis
    lanes: dict[str, int]


class _Generator:
    """Builds one mapping: lanes first, then tiles from the inside out, then loop orders."""

    def __init__(self, flow: Dataflow, operator: Operator, accelerator: Accelerator) -> None:
        self.flow, self.operator, self.accelerator = flow, operator, accelerator
        self.sizes = operator.sizes
        self.classes = classes_of(operator)
        self.growth = [d for name in flow.growth for d in self.classes[name]]
        self.keeps = holdable(operator, accelerator)

    def mapping(self) -> Mapping:
        sides = self._sides()
        while (crowded := self._crowded(sides)) is not None:
            side, dimension = crowded
            side.lanes[dimension] = -(-side.lanes[dimension] // 2)
        extents = self._tiles(sides)
        entries = []
        for index, level in enumerate(self.accelerator.levels):
            if isinstance(level, Memory):
                loops = tuple(self._temporal(index, extents[index], extents[index + 1]))
                able = tuple(t.name for t in self.operator.tensors if level.can_keep(t.name, t.role))
                kept = tuple(t.name for t in self.keeps[level.name])
                entries.append(LevelLoops(level.name, loops, None if kept == able else kept))
            else:
                entries.append(LevelLoops(level.name, tuple(self._spatial(index, sides, extents))))
        return Mapping(tuple(entries))

    def _sides(self) -> list[_Side]:
        """Spread the dataflow's dimensions over all arrays, outermost first."""
        left = dict(self.sizes)
        sides: list[_Side] = []
        turn = 0
        for index, level in enumerate(self.accelerator.levels):
            if isinstance(level, Fanout):
                spread = [(shape, self._spread(index, shape, turn, dict(left))) for shape in _shapes(level)]
                _, (own, left, turn) = min(spread, key=lambda one: (prod(one[1][1].values()), -min(one[0])))
                sides += own
        return sides

    def _spread(self, index: int, shape: tuple[int, int], turn: int,
                left: dict[str, int]) -> tuple[list[_Side], dict[str, int], int]:
        """Spread what is ``left`` of each dimension over one array of a given shape; return the sides and the rest."""
        axes: tuple[SpatialAxis, SpatialAxis] = ("X", "Y")
        sides = []
        for axis, places in zip(axes, shape, strict=True):
            lanes: dict[str, int] = {}
            if places > 1:
                free = places
                for d in (d for name in self.flow.sides[turn % 2] for d in self.classes[name]):
                    passes = -(-left[d] // min(left[d], free))
                    count = -(-left[d] // passes)
                    if count > 1 and d not in lanes:
                        lanes[d], left[d] = count, passes
                        free //= count
                turn += 1
            sides.append(_Side(index, axis, lanes))
        return sides, left, turn

    def _crowded(self, sides: list[_Side]) -> tuple[_Side, str] | None:
        """Return the widest lanes inside a memory that cannot hold a tile as wide as they are, None if all can."""
        extents = dict.fromkeys(self.sizes, 1)
        for index in reversed(range(1, len(self.accelerator.levels))):
            level = self.accelerator.levels[index]
            if isinstance(level, Fanout):
                extents = self._across(index, sides, extents)
                continue
            tight = [room for room in rooms(level, self.keeps[level.name], extents, self.accelerator) if not room.fits]
            if tight:
                used = {d for room in tight for name, _ in room.bytes_by_tensor
                        for d in self.operator.tensor(name).dimensions}
                inside = [(side, d) for side in sides if side.level > index for d in side.lanes
                          if d in used and side.lanes[d] > 1]
                return max(inside, key=lambda pair: pair[0].lanes[pair[1]])
        return None

    def _across(self, index: int, sides: list[_Side], inside: Extents, *axes: SpatialAxis) -> Extents:
        """Return the extents outside the loops of an array along ``axes`` (both if none are named)."""
        extents = dict(inside)
        for side in sides:
            if side.level == index and (not axes or side.axis in axes):
                for d, count in side.lanes.items():
                    extents[d] = min(self.sizes[d], extents[d] * count)
        return extents

    def _tiles(self, sides: list[_Side]) -> list[Extents]:
        """Return the extents outside every level, and last inside all: tiles grown from the inside out."""
        levels = self.accelerator.levels
        extents = [dict.fromkeys(self.sizes, 1)]
        for index in reversed(range(len(levels))):
            level = levels[index]
            if isinstance(level, Fanout):
                extents.append(self._across(index, sides, extents[-1]))
            elif index == 0:
                extents.append(dict(self.sizes))
            else:
                extents.append(self._grown(index, level, sides, extents[-1]))
        return extents[::-1]

    def _grown(self, index: int, memory: Memory, sides: list[_Side], inside: Extents) -> Extents:
        """Return the tile of a memory: as large as all memories up to it allow, outer lanes keeping their share."""
        outer = {d: prod(side.lanes.get(d, 1) for side in sides if side.level < index) for d in self.sizes}
        caps = {d: max(inside[d], -(-size // outer[d])) for d, size in self.sizes.items()}

        def fits(extents: Extents) -> bool:
            return (tile_fits(memory, self.keeps[memory.name], extents, self.accelerator)
                    and self._fits_outside(index, sides, extents))

        grown = _grow(inside, caps, self.growth, fits)
        return {d: max(inside[d], -(-size // -(-size // grown[d]))) for d, size in self.sizes.items()}

    def _fits_outside(self, index: int, sides: list[_Side], extents: Extents) -> bool:
        levels = self.accelerator.levels
        for outer in reversed(range(1, index)):
            level = levels[outer]
            if isinstance(level, Fanout):
                extents = self._across(outer, sides, extents)
            elif not tile_fits(level, self.keeps[level.name], extents, self.accelerator):
                return False
        return True

    def _temporal(self, index: int, outside: Extents, inside: Extents) -> Iterator[Loop]:
        """Yield the loops of a memory: those that the stationary tensor uses outermost, slow growers first."""
        output, stays = self.operator.output, stationary(self.flow, self.operator)
        spilling = spills(self.accelerator.levels[index].name, self.operator, self.accelerator, self.keeps)
        keys = {d: (spilling and d not in output.dimensions, d not in stays.dimensions) for d in self.sizes}
        if self.flow.reductions_first:
            keys = {d: (d in output.dimensions, False) for d in self.sizes}
        for d in sorted(reversed(self.growth), key=keys.__getitem__):
            if inside[d] < outside[d]:
                yield Loop(d, inside[d])

    def _spatial(self, index: int, sides: list[_Side], extents: list[Extents]) -> Iterator[Loop]:
        outside, inside = dict(extents[index]), extents[index + 1]
        steps = self._across(index, sides, inside, "Y")
        for side in (side for side in sides if side.level == index):
            for d in side.lanes:
                step = steps[d] if side.axis == "X" else inside[d]
                if step < outside[d]:
                    yield Loop(d, step, side.axis)
                    outside[d] = step


def _shapes(fanout: Fanout) -> Iterator[tuple[int, int]]:
    """Yield the arrangements of an array that are worth trying: the widest for every height."""
    if fanout.one_piece:
        width, height = fanout.blocks or (1, 1)
        total = fanout.instances // (width * height)
        across = 1
        while across <= total:
            down = total // across
            across = total // down
            yield across * width, down * height
            across += 1
    else:
        yield fanout.shape


def _grow(start: Extents, caps: Extents, order: list[str], fits: Callable[[Extents], bool]) -> Extents:
    """Double extents in turn while they fit (or treble, to be complete), then raise each to the largest that fits."""
    extents, live = dict(start), list(order)
    while live:
        for d in tuple(live):
            wanted = [caps[d]] if caps[d] <= 3 * extents[d] else []
            tried = ({**extents, d: n} for n in (*wanted, 2 * extents[d]) if extents[d] < n <= caps[d])
            larger = next((e for e in tried if fits(e)), None)
            if larger is None:
                live.remove(d)
            else:
                extents = larger
    for d in order:
        low, high = extents[d], caps[d]
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits({**extents, d: middle}) else (low, middle - 1)
        extents[d] = low
    return extents
