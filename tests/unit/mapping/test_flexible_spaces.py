"""The feasible space of a flexible machine: the union of its members is what the machine can run, no more, no less."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.hardware import (
    Accelerator,
    AccessEnergy,
    Fanout,
    Flexibility,
    Memory,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    TileFlexibility,
    preset,
)
from tilewright.mapping import Bounds, Constraints, MapSpace
from tilewright.mapping.flexible import (
    effective_pairs,
    flexible_machine,
    flexible_spaces,
    flexible_within,
    stand_ins,
)
from tilewright.workload import convolution, depthwise, einsum, matmul

ENERGY = AccessEnergy(1, 1, 1, 1)
ALL = ("inputs", "weights", "outputs")
FREE = Flexibility("GLB", "PEs", dimensions=("M", "N", "K"))
FIXED_TILE = TileFlexibility(fixed=(("GLB", (("M", 2), ("N", 2), ("K", 1))),))
THIRDS = TileFlexibility(partitions=(("GLB", (("inputs", 1.0), ("weights", 1.0), ("outputs", 2.0))),))


def small(flexibility):
    """Return a machine of a 20-byte buffer and four elements with a word of each tensor."""
    return Accelerator("small", (
        Memory("DRAM", ALL, ENERGY), Memory("GLB", ALL, ENERGY, capacity_bytes=20, buffering="buffet"),
        Fanout("PEs", (2, 2)),
        Memory("RF", ALL, ENERGY, partitions_bytes=tuple((name, 1.0) for name in ALL), buffering="buffet"),
    ), flexibility=flexibility)


def legal(space):
    """Return all mappings of a space that fit."""
    return {batch.mapping(b, space.operator.sizes) for batch in space.enumerate()
            for b, fits in enumerate(space.fits(batch)) if fits}


def described(mapping, sizes):
    """Return the tile at the buffer, the orders at DRAM and buffer, and the lanes by side."""
    extents = dict(sizes)
    orders, lanes = [], {"X": [], "Y": []}
    tile = None
    for entry in mapping.levels:
        if entry.level == "GLB":
            tile = dict(extents)
        ordered = []
        for loop in entry.loops:
            count = -(-extents[loop.dimension] // loop.step)
            extents[loop.dimension] = min(loop.step, extents[loop.dimension])
            if count > 1 and loop.axis:
                lanes[loop.axis].append((loop.dimension, count))
            elif count > 1:
                ordered.append(loop.dimension)
        if entry.level in ("DRAM", "GLB", "RF"):
            orders.append(ordered)
    return tile, orders, lanes


def follows(order, choices):
    return not choices or any([d for d in choice if d in order] == order for choice in choices)


def admitted(mapping, operator, flexibility):
    """Say whether a machine may run a mapping, from the statement alone."""
    tile, orders, lanes = described(mapping, operator.sizes)
    wrong = [tile[d] != min(extent, operator.sizes[d]) for _, fixed in flexibility.tile.fixed for d, extent in fixed]
    for name, share in dict(flexibility.tile.partitions).get("GLB", ()):
        tensor = next(t for t in operator.tensors if t.role == name)
        wrong.append(tensor.words(tile) > 20 * share // 4)
    wrong += [not follows(order, flexibility.order.choices) for order in orders]
    pairs = flexibility.parallelism.choices or [(x, y) for x in "MNK" for y in "MNK" if x != y]
    wrong.append(not any({d for d, _ in lanes["X"]} <= {x} and {d for d, _ in lanes["Y"]} <= {y} for x, y in pairs))
    width, height = (max([count for _, count in lanes[side]], default=1) for side in "XY")
    if flexibility.shape.fixed:
        wrong.append(width > flexibility.shape.fixed[0] or height > flexibility.shape.fixed[1])
    if flexibility.shape.blocks:
        side, other = flexibility.shape.blocks
        wrong.append(-(-width // side) * -(-height // other) > 4 // (side * other))
    return not any(wrong)


def key(mapping, turn=False):
    """Return the loops of a mapping; those in space in no order, with X and Y exchanged where ``turn``."""
    other = {"X": "Y", "Y": "X", None: None}
    return tuple(frozenset((x.dimension, x.step, other[x.axis] if turn else x.axis) for x in entry.loops)
                 if entry.level == "PEs" else entry.loops for entry in mapping.levels)


@pytest.mark.parametrize(("axes", "least"), [
    ({}, 500),
    ({"order": OrderFlexibility((("K", "M", "N"),))}, 100),
    ({"order": OrderFlexibility((("K", "M", "N"), ("M", "N", "K")))}, 200),
    ({"parallelism": ParallelismFlexibility((("M", "N"),))}, 200),
    ({"parallelism": ParallelismFlexibility((("M", "N"), ("K", "N")))}, 200),
    ({"shape": ShapeFlexibility(fixed=(1, 4))}, 200),
    ({"shape": ShapeFlexibility(fixed=(2, 2)), "parallelism": ParallelismFlexibility((("N", "K"),))}, 200),
    ({"shape": ShapeFlexibility(blocks=(2, 1)), "parallelism": ParallelismFlexibility((("N", "K"), ("M", "N")))}, 200),
    ({"tile": FIXED_TILE}, 20),
    ({"tile": THIRDS}, 200),
    ({"tile": FIXED_TILE, "order": OrderFlexibility((("K", "M", "N"),)), "shape": ShapeFlexibility(blocks=(1, 2))}, 6),
    ({"tile": THIRDS, "order": OrderFlexibility((("K", "M", "N"), ("M", "N", "K"))),
      "parallelism": ParallelismFlexibility((("M", "K"),))}, 50),
])
def test_members_together_are_what_the_machine_can_run(axes, least):
    operator = matmul("gemm", m=4, n=3, k=2)
    flexibility = replace(FREE, **axes)
    machine = small(flexibility)
    loose = flexible_machine(replace(machine, flexibility=FREE))
    every = legal(MapSpace(operator, loose))
    expected = {key(m) for m in every if admitted(m, operator, flexibility)}
    members = [m for space in flexible_spaces(operator, machine) for m in legal(space)]
    found = {key(m) for m in members}
    assert found <= expected
    assert len(expected) > least
    # Where the sides are alike, one of a pair and its mirror stands for both.
    assert found | ({key(m, turn=True) for m in members} & expected) == expected
    if flexibility.shape.degree != "full" and flexibility.shape.blocks is None:
        assert found == expected or flexibility.shape.fixed[0] == flexibility.shape.fixed[1]


def test_an_inflexible_machine_has_one_mapping_up_to_the_order_of_single_loops():
    operator = matmul("gemm", m=3, n=4, k=2)
    rigid = replace(FREE, tile=TileFlexibility(fixed=(("GLB", (("M", 2), ("N", 4), ("K", 1))),)),
                    order=OrderFlexibility((("K", "M", "N"),)), parallelism=ParallelismFlexibility((("M", "N"),)),
                    shape=ShapeFlexibility(fixed=(2, 2)))
    (space,) = flexible_spaces(operator, small(rigid))
    (mapping,) = legal(space)
    tile, orders, lanes = described(mapping, operator.sizes)
    assert tile == {"B": 1, "M": 2, "N": 4, "K": 1}
    assert orders == [["K", "M"], ["N"], []]
    assert lanes == {"X": [("M", 2)], "Y": [("N", 2)]}


def test_tiles_per_element_follow_the_array():
    operator = matmul("gemm", m=5, n=4, k=2)
    each = TileFlexibility(per_element=(("GLB", (("M", 2), ("N", 1), ("K", 1))),))
    rigid = replace(FREE, tile=each, order=OrderFlexibility((("K", "M", "N"),)), shape=ShapeFlexibility(fixed=(2, 2)),
                    parallelism=ParallelismFlexibility((("M", "N"),)))
    (space,) = flexible_spaces(operator, small(rigid))
    (mapping,) = legal(space)
    tile, orders, lanes = described(mapping, operator.sizes)
    assert tile == {"B": 1, "M": 4, "N": 2, "K": 1}
    assert orders == [["K", "M", "N"], ["M"], []]
    assert lanes == {"X": [("M", 2)], "Y": [("N", 2)]}
    # On an array of any shape: up to two for each lane along M, one for each along N.
    (space,) = flexible_spaces(operator, small(replace(rigid, shape=ShapeFlexibility())))
    found = [described(mapping, operator.sizes) for mapping in legal(space)]
    wide = {(dict(lanes["X"]).get("M", 1), dict(lanes["Y"]).get("N", 1)) for _, _, lanes in found}
    assert {(1, 4), (4, 1), (2, 2), (1, 1)} <= wide
    assert all(x * y <= 4 for x, y in wide)
    for tile, _, lanes in found:
        assert tile["N"] == dict(lanes["Y"]).get("N", 1)
        assert tile["M"] <= 2 * dict(lanes["X"]).get("M", 1)
    # A dimension along no side has the extent of one element.
    (space,) = flexible_spaces(operator, small(replace(rigid, parallelism=ParallelismFlexibility((("K", "N"),)))))
    (mapping,) = legal(space)
    assert described(mapping, operator.sizes)[0] == {"B": 1, "M": 2, "N": 2, "K": 2}


def test_the_base_machine_runs_any_layer_in_one_way():
    layers = [convolution("c", in_channels=40, out_channels=120, in_size=28, kernel=1),
              convolution("g", in_channels=48, out_channels=32, in_size=9, kernel=3, groups=2),
              depthwise("d", channels=24, in_size=16, kernel=3), matmul("m", m=7, n=100, k=30),
              matmul("b", m=7, n=100, k=30, batch=4),
              convolution("n", in_channels=4, out_channels=8, in_size=8, kernel=3, batch=3)]
    for layer in layers:
        (space,) = flexible_spaces(layer, preset("flexion"))
        batch = next(space.enumerate())
        assert len(batch) == 1, layer.name
        assert space.fits(batch).all()


def test_pairs_differ_only_where_they_spread_something_else():
    layer = convolution("c", in_channels=8, out_channels=8, in_size=4, kernel=1)  # K, C, P, Q
    flexible = Flexibility("GLB", "PEs")
    assert len(effective_pairs(layer, flexible)) == 12
    assert len(effective_pairs(layer, flexible, mirrored=True)) == 6
    one = replace(flexible, parallelism=ParallelismFlexibility((("R", "K"), ("S", "K"), ("C", "K"))))
    assert effective_pairs(layer, one) == (("C", "K"),)
    alone = replace(flexible, parallelism=ParallelismFlexibility((("R", "K"), ("S", "P"))))
    assert effective_pairs(layer, alone) == ((None, "K"), (None, "P"))
    assert effective_pairs(matmul("v", m=1, n=1, k=1), flexible) == ((None, None),)
    # With fixed lanes, a pair that spreads less may fit where one that spreads more does not.
    rigid = replace(preset("flexion").flexibility, parallelism=one.parallelism)
    assert effective_pairs(layer, rigid) == ((None, "K"), ("C", "K"))


def test_who_stands_in_for_whom():
    conv = Flexibility("GLB", "PEs")
    assert stand_ins(matmul("m", m=4, n=5, k=6), conv) == {
        "K": "N", "C": "K", "P": "M", "Q": None, "R": None, "S": None}
    assert stand_ins(depthwise("d", channels=8, in_size=8, kernel=3), conv)["C"] == "G"
    grouped = convolution("g", in_channels=8, out_channels=8, in_size=8, kernel=3, groups=2)
    assert stand_ins(grouped, conv)["C"] == "C"
    one = convolution("c", in_channels=8, out_channels=4, in_size=(8,), kernel=(3,))
    assert stand_ins(one, conv) == {"K": "K", "C": "C", "P": "P", "Q": None, "R": "R", "S": None}
    assert stand_ins(einsum("ab,bc->ac", {"a": 2, "b": 3, "c": 4}), conv)["K"] == "c"
    with pytest.raises(InputError, match="must be dimensions of c"):
        stand_ins(one, FREE)


def test_a_machine_without_a_statement_has_all_mappings():
    operator = matmul("gemm", m=3, n=2, k=2)
    machine = small(None)
    assert flexible_spaces(operator, machine, "perfect") == (MapSpace(operator, machine, "perfect"),)


def test_the_machine_takes_the_shape_and_partitions_that_are_stated():
    machine = flexible_machine(small(replace(FREE, tile=THIRDS, shape=ShapeFlexibility(blocks=(2, 1)))))
    assert machine.memories[1].partitions_bytes == (("inputs", 5.0), ("weights", 5.0), ("outputs", 10.0))
    assert machine.fanouts[0].blocks == (2, 1)
    assert flexible_machine(small(replace(FREE, shape=ShapeFlexibility(fixed=(1, 3))))).fanouts[0].shape == (1, 3)
    assert flexible_machine(small(FREE)).fanouts[0].flexible


def test_restrictions_of_ones_own_stay_within_what_the_machine_can_run():
    operator = matmul("gemm", m=4, n=3, k=2)
    machine = flexible_machine(small(replace(FREE, parallelism=ParallelismFlexibility((("M", "N"), ("K", "N"))),
                                             shape=ShapeFlexibility(fixed=(2, 2)))))
    free = flexible_spaces(operator, machine)
    mine = MapSpace(operator, machine, constraints=Constraints(orders={"DRAM": (("B", "K", "M", "N"),)}))
    found = flexible_within(mine)
    assert len(found) == len(free) == 2
    allowed = legal(mine)
    for whole, part in zip(free, found, strict=True):
        assert legal(part) == {mapping for mapping in legal(whole) if mapping in allowed}
    spread = MapSpace(operator, machine, constraints=Constraints(factors={"PEs.X": {"K": Bounds(2, 2)}}))
    assert {described(mapping, operator.sizes)[2]["X"][0] for space in flexible_within(spread)
            for mapping in legal(space)} == {("K", 2)}
    assert flexible_within(MapSpace(operator, small(None))) == (MapSpace(operator, small(None)),)
