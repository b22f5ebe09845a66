"""Random fused groups: two to five operators, convolutions, products and vector work, in random trees."""

from dataclasses import replace
from math import prod

import numpy as np

from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, VectorUnit
from tilewright.mapping import (
    FusedGroup,
    FusedLeaf,
    FusedLink,
    FusedMapping,
    FusedNode,
    HeldTensor,
    LevelLoops,
    Loop,
    Mapping,
    SharedLoop,
    operations_of,
)
from tilewright.workload import Axis, AxisLink, Digit, Operator, Tensor

Random = np.random.Generator
MOST_MACS = 1500


def seen(dimension, *terms, padding=0):
    """A dimension of a result as a sum of others; extents are beyond any size."""
    return dimension, AxisLink(tuple(Digit(name, times, extent=10**6) for name, times in terms), -padding)


def plain(*names):
    return tuple(Axis(((name, 1),)) for name in names)


def random_group(rng: Random, most: int = 5) -> FusedGroup:
    """Feature maps of channels and rows: every result has the dimensions K, P; residual sums where shapes agree."""
    operators, links = [first(rng)], []
    for at in range(1, int(rng.integers(2, most + 1))):
        source = operators[-1] if rng.random() < 0.8 else operators[rng.integers(len(operators))]
        kinds = [convolution, convolution, depthwise, product, flattened, turned, add, add, softmax, pool]
        operator, found = kinds[rng.integers(len(kinds))](rng, f"op{at}", source, operators)
        if operator.macs <= MOST_MACS:
            operators.append(operator)
            links += found
    if len(operators) == 1:
        return random_group(rng, most)
    leaving = tuple(operator.name for operator in operators if rng.random() < 0.2)
    return FusedGroup(tuple(operators), tuple(links), leaving)


def size(operator, name):
    return operator.sizes[name]


def first(rng):
    k, c, p, r = (int(rng.integers(1, top + 1)) for top in (4, 4, 14, 3))
    return conv("op0", {"K": k, "C": c, "P": p, "R": r}, int(rng.integers(1, 3)), int(rng.integers(1, 3)))


def conv(name, sizes, stride, dilation):
    return Operator(name, "conv", tuple(sizes.items()), (
        Tensor("I", "inputs", (*plain("C"), Axis((("P", stride), ("R", dilation))))),
        Tensor("W", "weights", plain("K", "C", "R")), Tensor("O", "outputs", plain("K", "P"))))


def window(rng, rows):
    """Stride, dilation, kernel, padding and rows of a window over ``rows``."""
    while True:
        stride, dilation, kernel = (int(rng.integers(1, top)) for top in (4, 3, 4))
        padding = int(rng.integers(0, 3))
        out = (rows + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        if out >= 1 and rows + 2 * padding > dilation * (kernel - 1):
            return stride, dilation, kernel, padding, out


def convolution(rng, name, source, _):
    stride, dilation, kernel, padding, out = window(rng, size(source, "P"))
    sizes = {"K": int(rng.integers(1, 5)), "C": size(source, "K"), "P": out, "R": kernel}
    link = FusedLink(source.name, name, "I", (
        seen("K", ("C", 1)), seen("P", ("P", stride), ("R", dilation), padding=padding)))
    return conv(name, sizes, stride, dilation), [link]


def depthwise(rng, name, source, _):
    stride, dilation, kernel, padding, out = window(rng, size(source, "P"))
    axis = Axis((("P", stride), ("R", dilation)))
    operator = Operator(name, "conv", (("K", size(source, "K")), ("P", out), ("R", kernel)), (
        Tensor("I", "inputs", (*plain("K"), axis)), Tensor("W", "weights", plain("K", "R")),
        Tensor("O", "outputs", plain("K", "P"))))
    return operator, [FusedLink(source.name, name, "I", (
        seen("K", ("K", 1)), seen("P", ("P", stride), ("R", dilation), padding=padding)))]


def product(rng, name, source, operators):
    """Rows of the source times the channels of another result, or of weights; sometimes transposed."""
    rows, depth = ("P", "K") if rng.random() < 0.7 else ("K", "P")
    links = [FusedLink(source.name, name, "I", (seen(rows, ("P", 1)), seen(depth, ("C", 1))))]
    columns = int(rng.integers(1, 6))
    for other in operators:
        for a, b in (("K", "P"), ("P", "K")):
            if other is not source and size(other, b) == size(source, depth) and rng.random() < 0.5 and len(links) < 2:
                columns = size(other, a)
                links.append(FusedLink(other.name, name, "W", (seen(a, ("K", 1)), seen(b, ("C", 1)))))
    operator = Operator(name, "matmul", (("K", columns), ("C", size(source, depth)), ("P", size(source, rows))), (
        Tensor("I", "inputs", plain("P", "C")), Tensor("W", "weights", plain("K", "C")),
        Tensor("O", "outputs", plain("K", "P"))))
    return operator, links


def flattened(rng, name, source, _):
    """All words of the source in one row, as a classifier reads them: channel ``C // rows``, row ``C % rows``."""
    k, p = size(source, "K"), size(source, "P")
    axes = [("K", AxisLink((Digit("C", 1, p, k),))), ("P", AxisLink((Digit("C", 1, 1, p),)))]
    axes = tuple(axes[at] for at in rng.permutation(2))
    operator = Operator(name, "matmul", (("K", int(rng.integers(1, 5))), ("C", k * p), ("P", 1)), (
        Tensor("I", "inputs", plain("P", "C")), Tensor("W", "weights", plain("K", "C")),
        Tensor("O", "outputs", plain("K", "P"))))
    return operator, [FusedLink(source.name, name, "I", axes)]


def turned(rng, name, source, _):
    """Rows in the opposite order."""
    operator, (link,) = convolution(rng, name, source, _)
    _, rows = link.axes[1]
    upside = AxisLink(tuple(replace(one, stride=-one.stride) for one in rows.digits), size(source, "P") - 1)
    return operator, [replace(link, axes=(link.axes[0], ("P", upside)))]


def vector(name, kind, dimensions, operands, each):
    output = Tensor("O", "outputs", plain("K", "P"))
    work = each * prod(dict(dimensions)[d] for d in "KP")
    return Operator(name, kind, dimensions, (*operands, output), (("operations", work),))


def add(rng, name, source, operators):
    dimensions = (("K", size(source, "K")), ("P", size(source, "P")))
    others = [op for op in operators if op is not source and all(size(op, d) == n for d, n in dimensions)]
    whole = (seen("K", ("K", 1)), seen("P", ("P", 1)))
    links = [FusedLink(source.name, name, "A", whole)]
    links += [FusedLink(other.name, name, "B", whole) for other in others[:1]]
    operands = (Tensor("A", "inputs", plain("K", "P")), Tensor("B", "inputs", plain("K", "P")))
    return vector(name, "add", dimensions, operands, 1), links


def softmax(rng, name, source, _):
    dimensions = (("K", size(source, "K")), ("P", size(source, "P")), ("J", size(source, "K")))
    link = FusedLink(source.name, name, "A", (seen("K", ("J", 1)), seen("P", ("P", 1))))
    return vector(name, "softmax", dimensions, (Tensor("A", "inputs", plain("J", "P")),), 5), [link]


def pool(rng, name, source, _):
    stride, dilation, kernel, padding, out = window(rng, size(source, "P"))
    axis = Axis((("P", stride), ("R", dilation)))
    dimensions = (("K", size(source, "K")), ("P", out), ("R", kernel))
    link = FusedLink(source.name, name, "A", (
        seen("K", ("K", 1)), seen("P", ("P", stride), ("R", dilation), padding=padding)))
    return vector(name, "max_pool", dimensions, (Tensor("A", "inputs", (*plain("K"), axis)),), kernel), [link]


def random_machine(rng: Random) -> Accelerator:
    def memory(name, keeps=("inputs", "weights", "outputs")):
        rate = [None, *(float(value) for value in (0.3, 1, 2.5, 7))]
        shared = rng.random() < 0.3
        bandwidth = Bandwidth(shared=rate[rng.integers(1, 5)]) if shared else Bandwidth(
            rate[rng.integers(5)], rate[rng.integers(5)])
        return Memory(name, keeps, AccessEnergy(*rng.integers(1, 9, 4).astype(float).tolist()), bandwidth=bandwidth,
                      buffering=str(rng.choice(["double", "single", "buffet"])), word_bits=int(rng.choice([8, 16])),
                      leakage_mw=float(rng.choice([0, 0.01])))

    inner = tuple(role for role in ("inputs", "weights", "outputs") if rng.random() < 0.8)
    levels = [memory("DRAM"), memory("GLB")]
    if rng.random() < 0.7:
        levels.append(Fanout("PEs", (4, 4), bool(rng.random() < 0.7), bool(rng.random() < 0.7),
                             network_energy_pj_per_word=float(rng.integers(3))))
    levels.append(memory("Spad", inner))
    unit = None if rng.random() < 0.3 else VectorUnit(
        float(rng.choice([0.5, 1, 3])), str(rng.choice(["DRAM", "GLB", "Spad"])), float(rng.integers(3)),
        (("softmax", 0.7),))
    return Accelerator("random", tuple(levels), Compute("MAC", 1.0, leakage_mw=float(rng.choice([0, 0.001]))),
                       word_bits=(("inputs", 8), ("weights", int(rng.choice([4, 8]))), ("outputs", 16)), vector=unit)


def random_step(rng, extent):
    return int(rng.integers(1, extent + 1))


def random_tree(rng: Random, group: FusedGroup, machine: Accelerator) -> FusedMapping:
    names = [operator.name for operator in group.operators]
    held = tuple(HeldTensor(name, str(rng.choice(["DRAM", "GLB", "GLB"])), int(rng.integers(1, 3)))
                 for name in names if group.readers(name) and rng.random() < 0.9)
    return FusedMapping(random_node(rng, group, machine, names, "DRAM"), held)


def random_node(rng, group, machine, names, level, depth=0):
    last = group.operator(names[-1])
    final = last is group.operators[-1] and operations_of(last) is None
    able = list(last.sizes) if final else sorted(last.output.dimensions)
    loops = []
    for _ in range(int(rng.integers(0, 3))):
        if level == "DRAM" and rng.random() < 0.2:
            level = "GLB"
        name = str(rng.choice(able))
        loops.append(SharedLoop(level, name, random_step(rng, last.sizes[name])))
    parts, rest = [], list(names)
    while rest:
        count = int(rng.integers(2, len(rest) + 1)) if len(rest) > 1 and rng.random() < 0.25 and depth < 2 else 1
        if 1 < count < len(names):
            parts.append(random_node(rng, group, machine, rest[:count], level, depth + 1))
        else:
            count = 1
            parts.append(random_leaf(rng, group.operator(rest[0]), machine, level))
        rest = rest[count:]
    closed = all(link.reader in names for name in names[:-1] for link in group.readers(name))
    again = closed and all(isinstance(part, FusedLeaf) for part in parts) and rng.random() < 0.4
    return FusedNode(tuple(loops), tuple(parts), bool(again))


def random_leaf(rng, operator, machine, level):
    steps = tuple((name, random_step(rng, operator.sizes[name])) for name in operator.output.dimensions
                  if rng.random() < 0.2)
    if operations_of(operator) is not None:
        return FusedLeaf(operator.name, steps=steps)
    extents, levels = dict(operator.sizes), []
    names = [entry.name for entry in machine.levels]
    for at, entry in enumerate(machine.levels):
        loops, fanout = [], isinstance(entry, Fanout)
        last = at == len(machine.levels) - 1
        for name in rng.permutation(list(extents)).tolist():
            if names.index(level) <= at and (last or rng.random() < 0.5) and extents[name] > 1:
                extents[name] = 1 if last else random_step(rng, extents[name])
                loops.append(Loop(name, extents[name], "X" if fanout else None))
        keeps = None
        if isinstance(entry, Memory) and at and rng.random() < 0.3:
            keeps = tuple(t.name for t in operator.tensors if entry.can_keep(t.name, t.role) and rng.random() < 0.6)
        levels.append(LevelLoops(entry.name, tuple(loops), keeps))
    return FusedLeaf(operator.name, Mapping(tuple(levels)), steps)


def random_plan(seed: int, most: int = 5) -> tuple[FusedGroup, Accelerator, FusedMapping]:
    rng = np.random.default_rng(seed)
    group, machine = random_group(rng, most), random_machine(rng)
    return group, machine, random_tree(rng, group, machine)


def alone(group: FusedGroup, name: str) -> FusedGroup:
    """The group of one of its operators."""
    return replace(group, operators=(group.operator(name),), links=(), leaving=())
