"""One mapping from the closed forms: what moves (counting rules 5 to 8), and what `Sums` make of it."""

from dataclasses import replace
from math import prod

import numpy as np

from tilewright.cost.dense import closed_form as cf
from tilewright.cost.dense.nest import Boundary, Nest
from tilewright.cost.dense.walk_records import VIEWS
from tilewright.cost.dense.walks import Walks
from tilewright.cost.hardware import own_columns
from tilewright.cost.records import KINDS, Cost, Count
from tilewright.cost.sums import Plan, Sums, Tallies
from tilewright.cost.tables import TallyKey
from tilewright.hardware import Accelerator
from tilewright.mapping import Layout, Mapping, Slot
from tilewright.workload import Operator

Counts = dict[tuple[int, str], Count]


def single_cost(operator: Operator, accelerator: Accelerator, mapping: Mapping) -> Cost:
    """Return the cost of ``mapping``, exact by the counting rules; legality is not looked at."""
    nest = Nest(operator, accelerator, mapping)
    return sums_of(nest, tallies_of(nest)).cost()


def sums_of(nest: Nest, tallies: Tallies) -> Sums:
    """Return what the words that a nest moves take."""
    return Sums(Plan(nest.operator, nest.accelerator, nest.keeps), tallies, own_columns(nest.accelerator))


def counts(nest: Nest, *, busiest: bool) -> Counts:
    """Count by (level, tensor); the compute unit stands at the level after the last.

    Summed over instances, or, for ``busiest``, of the first instance of each memory: no other is busier but where
    `busiest_tallies` says so.
    """
    found: Counts = {}
    for tensor in nest.operator.tensors:
        outermost = nest.keepers(tensor)[0]
        reads, updates, fills, evicted = {}, {}, {outermost: 0}, {outermost: tensor.words(nest.operator.sizes)}
        for boundary in nest.boundaries(tensor):
            parent, child = boundary.parent, boundary.child
            moved = cf.words(nest, boundary, cf.View(merged=True, first_outside=parent if busiest else 0))
            received = cf.words(nest, boundary, cf.View(merged=False, first_outside=child if busiest else 0))
            if not tensor.is_output:
                reads[parent], updates[parent], fills[child], evicted[child] = moved, 0, received, 0
                continue
            read_back = moved - (evicted[parent] - fills[parent])
            reads[parent], updates[parent], evicted[child] = read_back, moved, received
            if cf.combines(nest, boundary):
                fills[child] = 0
            else:
                fills[child] = delivered_to_first(nest, boundary) if busiest else read_back
        for level, filled in fills.items():
            drained = evicted[level] if level != outermost else 0
            found[level, tensor.name] = Count(reads.get(level, 0), filled, updates.get(level, 0), drained)
    return found


def busiest_tallies(nest: Nest, first: Tallies) -> dict[TallyKey, int]:
    """Return the words of the instances busiest in each view (`walks.VIEWS`) where those need not be the ``first``."""
    operator, loops = nest.operator, nest.loops
    layout = Layout(tuple(operator.sizes), tuple(level.name for level in nest.accelerator.levels),
                    tuple(Slot(loop.level, loop.side or "T") for loop in loops), nest.keeps)
    walks = Walks(operator, nest.accelerator, layout, unlimited=True)
    steps = np.repeat(walks.sizes[None, :, None], len(loops) + 1, axis=0).astype(np.int32)
    for at, loop in enumerate(loops):
        steps[at:, layout.dimensions.index(loop.dimension)] = loop.step
    told = {(view, at, name, kind): first["busiest", at, name, kind]
            for at in walks.levels for view in VIEWS for name in nest.keeps[at] for kind in KINDS}
    found = walks.busiest(steps, np.zeros(steps.shape, dtype=np.int8), told)
    return {key: int(words[0]) for key, words in found.items()}


def delivered_to_first(nest: Nest, boundary: Boundary) -> int:
    """Partial sums read back into the first instance of the child: of merging instances it takes them all (rule 5).

    Only the words of that instance are followed, from the outermost memory inward: what it evicts, less what starts
    from zero in its parent's own visit. Where lanes spread a sliding axis of the output (transposed convolution), a
    word may come from another lane's earlier visit: `busiest_tallies` follows it.
    """
    chain = [b for b in nest.boundaries(boundary.tensor) if b.child <= boundary.child]
    starts = _evicted_words_of_first(nest, chain[0].parent, boundary)
    for inner in chain[:-1]:
        if cf.combines(nest, inner):
            starts = _evicted_words_of_first(nest, inner.child, boundary)
    return _evicted_words_of_first(nest, boundary.child, boundary) - starts


def _evicted_words_of_first(nest: Nest, keeper: int, boundary: Boundary) -> int:
    """Words that the first instance of ``keeper`` evicts over all visits, of those that the child's first touches."""
    at_keeper = Boundary(boundary.tensor, boundary.parent, keeper)
    # The home of the tensor holds one tile from beginning to end.
    home = keeper == nest.keepers(boundary.tensor)[0]
    outside = [] if home else cf.roles(nest, at_keeper, cf.View(merged=False, first_outside=keeper))
    to_child = cf.first_lanes(loop for loop in nest.loops if loop.level < boundary.child)
    return prod(cf.factors_of(boundary.tensor, nest.operator.sizes, cf.by_dimension(nest, outside),
                              cf.by_dimension(nest, to_child)).values())


def first_moved(nest: Nest, boundary: Boundary) -> tuple[int, int]:
    """Words that an instance of the child waits for at the cold start, and that the parent's first one reads for that.

    They are the first tile, or what is first read of it where the child forwards words.
    """
    def read(edge: Boundary) -> int:
        return cf.words(nest, edge, cf.View(True, edge.parent, "first"))

    received, asked = boundary.tensor.words(nest.extents(boundary.child)), read(boundary)
    if nest.accelerator.memory(boundary.child).forwards == "words":
        inward = next(edge for edge in nest.boundaries(boundary.tensor) if edge.parent == boundary.child)
        received, asked = min(received, read(inward)), min(asked, read(replace(inward, parent=boundary.parent)))
    return received, asked


def last_tile(nest: Nest, boundary: Boundary) -> int:
    """Words of the last tile of the child's first instance."""
    extents = dict(nest.operator.sizes)
    for loop in nest.loops:
        if loop.level < boundary.child:
            extent = extents[loop.dimension]
            extents[loop.dimension] = min(extent, loop.step) if loop.spatial else (extent - 1) % loop.step + 1
    return boundary.tensor.words(extents)


def tallies_of(nest: Nest) -> dict[TallyKey, int]:
    """Return what `DenseModel.tallies` does of many, of one mapping; whether it fits is not looked at."""
    found: dict[TallyKey, int] = {("total", -1, "", "steps"): cf.steps(nest), ("total", -1, "", "arrays"): 0}
    for view in ("total", "busiest"):
        for (level, name), count in counts(nest, busiest=view == "busiest").items():
            found |= {(view, level, name, kind): getattr(count, kind) for kind in KINDS}
    found |= busiest_tallies(nest, found)
    for tensor in nest.operator.tensors:
        for edge in nest.boundaries(tensor):
            if edge.child < len(nest.mapping.levels):
                own, parent = first_moved(nest, edge) if not tensor.is_output else (
                    last_tile(nest, edge), cf.words(nest, edge, cf.View(True, edge.parent, "last")))
                found["edge", edge.child, tensor.name, "drains" if tensor.is_output else "fills"] = own
                found["edge", edge.child, tensor.name, "updates" if tensor.is_output else "reads"] = parent
    return found
