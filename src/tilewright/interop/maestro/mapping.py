"""MAESTRO's dataflows as mappings.

Directives of a cluster level, outermost first, are loops in time; the spatial map is the loop in space over the
clusters (or elements) of the level, and what they cannot cover at once they take in turns, at the place of the map.
Loops of the outermost level run while L2 holds a tile each step, those of an inner level between two arrays, where
nothing is kept; a level of one cluster is no array: its loops belong to L2, or to L1 behind the last array. Layers
whose clusters differ share an array that takes any shape, clusters along X and their elements along Y; loops between
the two then run outside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilewright.base import InputError
from tilewright.interop.maestro.layers import MaestroView, WindowDimension
from tilewright.interop.maestro.network import OUTPUT_OF, LayerText, MappingDirective, Stage
from tilewright.interop.notes import Kind, Note, Notes
from tilewright.mapping import LevelLoops, Loop
from tilewright.mapping import Mapping as Nest

DRAM, L2, L1 = "DRAM", "L2", "L1"
RESHAPED = "PEs"
"""The array that takes another shape for every layer."""
MOST_SIDES = 2


def array_name(index: int) -> str:
    """Return the name of an array, counted from 0 outside."""
    return f"Array{index + 1}"


def between_name(index: int) -> str:
    """Return the name of the place inside an array where loops run and nothing is kept."""
    return f"Cluster{index + 1}"


def level_names(arrays: int) -> list[str]:
    """Return the names of a machine's levels that has so many arrays, outermost first."""
    names = [DRAM, L2]
    for index in range(arrays):
        names += [array_name(index), between_name(index) if index < arrays - 1 else L1]
    return names if arrays else [*names, L1]


def lanes_of(dataflow: Sequence[Stage], elements: int) -> tuple[int, ...]:
    """Return how many clusters every level of a dataflow has on so many processing elements; 0 where too few."""
    inner = tuple(stage.cluster or 1 for stage in dataflow[1:])
    return (elements // prod(inner), *inner)


@dataclass(frozen=True)
class Step:
    """What a directive comes to: a dimension of the operator and its tile; ``line`` for notes."""

    directive: MappingDirective
    dimension: str
    tile: int


@dataclass
class Translation:
    """One layer's dataflow made a mapping; what cannot be honoured is added to ``notes``."""

    layer: LayerText
    view: MaestroView
    notes: Notes

    def __post_init__(self) -> None:
        self.extents = dict(self.view.operator.sizes)

    def needed(self) -> int:
        """Return how many clusters the outermost level can use at most."""
        assert self.layer.dataflow is not None
        quiet = Translation(self.layer, self.view, Notes())
        steps = quiet.steps(self.layer.dataflow[0])
        spread = quiet.spread(steps)
        return 1 if spread is None else -(-quiet.extents[spread.dimension] // spread.tile)

    def mapping(self, lanes: Sequence[int]) -> Nest:
        """Return the mapping for so many clusters at every level, outermost first."""
        assert self.layer.dataflow is not None
        arrays = sum(count > 1 for count in lanes)
        names = level_names(arrays)
        loops: dict[str, list[Loop]] = {name: [] for name in names}
        place, array = DRAM, 0
        for stage, count in zip(self.layer.dataflow, lanes, strict=True):
            steps = self.steps(stage)
            spread = self.spread(steps)
            for step in steps:
                loops[place] += self._in_time(step, count if step is spread else 1)
            if count > 1:
                if spread is not None and self.extents[spread.dimension] > spread.tile:
                    loops[array_name(array)].append(Loop(spread.dimension, spread.tile, "X"))
                    self.extents[spread.dimension] = spread.tile
                array += 1
                place = between_name(array - 1) if array < arrays else L1
            elif place == DRAM:
                place = L2
        loops[L1] += [Loop(name, 1) for name, extent in self.extents.items() if extent > 1]
        return Nest(tuple(LevelLoops(name, tuple(loops[name]), () if name.startswith("Cluster") else None)
                          for name in names))

    def reshaped(self, lanes: Sequence[int]) -> Nest:
        """Return the mapping on one array of any shape, for so many clusters at every level (two arrays at most).

        Loops between the arrays move outside both. Where they are over the dimension that spreads over the clusters,
        these take turns over it instead of each working through a block.
        """
        exact = {entry.level: entry.loops for entry in self.mapping(lanes).levels}
        outside, between = exact[DRAM] + exact[L2], exact.get(between_name(0), ())
        across, down = exact.get(array_name(0), ()), exact.get(array_name(1), ())
        if between:
            assert self.layer.dataflow is not None
            self.notes.approximated(self.layer.where("Dataflow"), "the loops inside its clusters outside the array, "
                                    "whose shape differs from layer to layer")
        moved = list(between)
        for loop in across:
            extent = min([self.view.operator.sizes[loop.dimension],
                          *(other.step for other in outside if other.dimension == loop.dimension)])
            clusters = -(-extent // loop.step)
            turns = [Loop(other.dimension, other.step * (clusters if other.dimension == loop.dimension else 1))
                     for other in moved]
            moved = [other for other in turns if other.dimension != loop.dimension or other.step < extent]
            inner = [other.step for other in between if other.dimension == loop.dimension]
            across = (Loop(loop.dimension, inner[-1] if inner else loop.step, "X"),)
        array = (*across, *(Loop(loop.dimension, loop.step, "Y") for loop in down))
        return Nest((LevelLoops(DRAM, exact[DRAM]), LevelLoops(L2, (*exact[L2], *moved)), LevelLoops(RESHAPED, array),
                     LevelLoops(L1, exact[L1])))

    def _in_time(self, step: Step, count: int) -> list[Loop]:
        """Return the loop in time of a step over ``count`` clusters at once, none where it runs once."""
        tile = step.tile * count
        if self.extents[step.dimension] <= tile:
            return []
        self.extents[step.dimension] = tile
        return [Loop(step.dimension, tile)]

    def spread(self, steps: Sequence[Step]) -> Step | None:
        """Return the step that spreads over the clusters of a level.

        Rows (or columns) of the input that spread together with those of the kernel stay at the same output: the kernel
        spreads.
        """
        spatial = [step for step in steps if step.directive.spatial and self.extents[step.dimension] > step.tile]
        kernels = {step.dimension for step in spatial}
        follow = {window.position for window in self.view.windows.values() if window.kernel in kernels}
        leading = [step for step in spatial if step.dimension not in follow]
        for step in spatial:
            if leading and step is not leading[0]:
                self.note(step.directive, f"{step.directive.dimension} in time, as {leading[0].directive.dimension} "
                          "spreads over the same clusters")
        return leading[0] if leading else None

    def steps(self, stage: Stage) -> list[Step]:
        """Return the tiles of a stage's directives in their order; those of dimensions of size 1 are left out."""
        tiles: dict[str, int] = {}
        directives = self._once(stage)
        for directive in directives:  # kernels first: the windows of rows and columns hang on them
            name = self.view.plain.get(directive.dimension)
            if name is not None:
                tiles[name] = self._tile(directive, directive.size, self.extents[name])
                if directive.offset != directive.size and tiles[name] < self.extents[name]:
                    self.note(directive, f"an offset of {directive.offset} as one of {directive.size}, the tile's size")
        found = []
        for directive in directives:
            name = self.view.plain.get(directive.dimension)
            window = self.view.windows.get(OUTPUT_OF.get(directive.dimension, directive.dimension))
            if window is not None:
                name = window.position
                tiles[name] = self._window(directive, window, tiles.get(window.kernel, self.extents[window.kernel]))
            elif name is None and directive.size > 1:
                self.note(directive, f"a tile of {directive.size} runs past {directive.dimension}, which is 1 here; "
                          "clamped to 1")
            if name is not None:
                found.append(Step(directive, name, tiles[name]))
        return found

    def _once(self, stage: Stage) -> list[MappingDirective]:
        """Return the directives of a stage, the first of each dimension only, as MAESTRO finds them."""
        found: dict[str, MappingDirective] = {}
        for directive in stage.directives:
            name = OUTPUT_OF.get(directive.dimension, directive.dimension)
            if name in found:
                self.note(directive, f"{name} is mapped already in line {found[name].line}", "dropped")
            found.setdefault(name, directive)
        return list(found.values())

    def _tile(self, directive: MappingDirective, size: int, extent: int) -> int:
        """Return a tile, cut to what there is to tile."""
        if size > extent:
            self.note(directive, f"a tile of {size} runs past the {extent} of {directive.dimension} that there are; "
                      f"clamped to {extent}")
        return min(size, extent)

    def _window(self, directive: MappingDirective, window: WindowDimension, kernel: int) -> int:
        """Return the output positions of a window on the input, or of a tile of the output."""
        extent = self.extents[window.position]
        if window.transposed:
            return self._stretched(directive, window, extent)
        if directive.dimension in OUTPUT_OF:
            tile, step = self._tile(directive, directive.size, extent), directive.size
        else:
            reach = (extent - 1) * window.stride + self.extents[window.kernel]
            size = self._tile(directive, directive.size, reach)
            if size < kernel:
                self.note(directive, f"a window of {size} is smaller than the {kernel} of {window.kernel}; taken as "
                          "one position of the output")
                return 1
            tile = step = min((size - kernel) // window.stride + 1, extent)
        if directive.offset != step and tile < extent and window.stride == 1:
            self.note(directive, f"an offset of {directive.offset} as one of {step}, so that every position of the "
                      "output is computed once")
        return tile

    def _stretched(self, directive: MappingDirective, window: WindowDimension, extent: int) -> int:
        """Return the input positions of a transposed convolution: the offset says how far the window moves."""
        offset = directive.offset
        if directive.dimension in OUTPUT_OF:
            offset = max(1, offset // window.stride)
            self.note(directive, f"{directive.offset} positions of the output as {offset} of the input")
        elif directive.size != offset:
            self.note(directive, f"a window of {directive.size} as the {offset} input positions that it moves by")
        return self._tile(directive, offset, extent)

    def note(self, directive: MappingDirective, text: str, what: Kind = "approximated") -> None:
        """Remember what became of a directive."""
        kind = "SpatialMap" if directive.spatial else "TemporalMap"
        where = f"{self.layer.flow_label}:{directive.line} {self.layer.name}.{kind} {directive.dimension}"
        note = Note(where, what, text)
        if note not in self.notes:
            self.notes.append(note)


def checked_lanes(layer: LayerText, elements: int) -> tuple[int, ...]:
    """Return the clusters of every level of a layer's dataflow.

    Raises an `InputError` if the machine has fewer processing elements than one cluster of the outermost level.
    """
    assert layer.dataflow is not None
    lanes = lanes_of(layer.dataflow, elements)
    if not lanes[0]:
        raise InputError(f"{layer.flow_label}:{layer.dataflow[1].line} {layer.name}.Cluster",
                         f"must have room in {elements} processing elements", prod(lanes[1:]),
                         "Make num_pes larger, or the Clusters smaller")
    return lanes


def used_arrays(lanes: Sequence[int]) -> tuple[int, ...]:
    """Return the lengths of the arrays that so many clusters at every level make; one cluster is no array."""
    return tuple(count for count in lanes if count > 1)
