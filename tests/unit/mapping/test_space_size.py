"""How many mappings a space holds: against enumeration by the definitions, on small spaces of every kind."""

from functools import cache
from itertools import pairwise, permutations
from math import ceil, prod

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory, preset
from tilewright.mapping import Bounds, Constraints, MapSpace, SpaceSize
from tilewright.mapping.spaces.counting.orders import ROOTS, modular_nodes, order_count, order_terms, real_nodes
from tilewright.workload import Axis, Operator, Tensor, matmul, zoo

ALL = ("inputs", "weights", "outputs")
UNIT = AccessEnergy(1.0, 1.0, 1.0, 1.0)
TILINGS = ("perfect", "imperfect", "ruby", "ruby-s", "ruby-t")


def machine(*inner):
    return Accelerator("machine", (Memory("DRAM", ALL, UNIT), *inner))


GLB, REGS = Memory("GLB", ALL, UNIT, capacity_bytes=8192), Memory("REG", ALL, UNIT, capacity_bytes=64)
MACHINES = {
    "fixed": machine(GLB, Fanout("PE", (4, 3)), REGS),
    "flexible": machine(GLB, Fanout("PE", (4, 3), flexible=True), REGS),
    "blocks": machine(GLB, Fanout("PE", (4, 2), blocks=(2, 1)), REGS),
    "line": machine(GLB, Fanout("PE", (5, 1)), REGS),
    "two": machine(Fanout("CL", (3, 1)), GLB, Fanout("PE", (2, 2))),
    "mixed": machine(Fanout("CL", (3, 2), flexible=True), Fanout("PE", (2, 2), blocks=(1, 2)), GLB),
}


def restrictions(kind, name, m):
    inner = "REG" if name in ("fixed", "flexible", "blocks", "line") else "GLB"
    side = "PE.X" if name == "line" else "PE.Y"
    return {
        "none": Constraints(),
        "loops": Constraints(loops={"PE.X": ("M", "K"), inner: ("N", "K")}),
        "order": Constraints(orders={"DRAM": (("K", "B", "M", "N"),), inner: (("M", "*"), ("*", "M"))}),
        "orders": Constraints(orders={"DRAM": (("B", "M", "K", "N"), ("N", "M", "K", "B"), ("K", "*")),
                                      inner: (("N", "*", "M"),)}),
        "factors": Constraints(factors={"DRAM": {"M": Bounds(min(m, 2), 3)},
                                        side: {"N": Bounds(1, 2), "K": Bounds(1, 1)}}),
        "tiles": Constraints(tiles={inner: {"M": Bounds(2, 4), "N": Bounds(1, 2)}}),
        "utilization": Constraints(utilization={"PE": 0.5}),
        "all": Constraints(loops={side: ("M", "N", "K")}, orders={"DRAM": (("N", "*"), ("M", "N", "K", "B"))},
                           factors={inner: {"K": Bounds(1, 2)}}, tiles={inner: {"M": Bounds(1, 3)}},
                           utilization={"PE": 0.3}),
    }[kind]


SIZES = ((2, 3, 4), (7, 4, 1), (5, 2, 3), (4, 6, 2), (9, 3, 1))
KINDS = ("none", "loops", "order", "orders", "factors", "tiles", "utilization", "all")


def place_of(space, s):
    slot = space.layout.slots[s]
    name = space.layout.levels[slot.level]
    return name if slot.axis == "T" else f"{name}.{slot.axis}"


@cache
def loose_counts(size, slots):
    """All chains of steps, as counts and extents outside, outermost slot first."""
    found = []
    for steps in np.ndindex(*(size,) * (slots - 1)):
        chain = (size, *(step + 1 for step in steps), 1)
        if all(a >= b for a, b in pairwise(chain)):
            found.append((tuple(ceil(a / b) for a, b in pairwise(chain)), chain[:-1]))
    return found


@cache
def ruby_counts(size, ragged):
    """Chains of equation 5, slot by slot from inside; ``ragged`` says of each slot whether it may have a remainder."""
    found = []

    def grow(s, step, left, counts, outsides):
        if s < 0:
            if left == 1:
                found.append((counts, outsides))
            return
        for count in range(1, left + 1):
            if ragged[s] or left % count == 0:
                outside = size if count == left else step * count
                grow(s - 1, outside, ceil(left / count), (count, *counts), (outside, *outsides))

    grow(len(ragged) - 1, 1, size, (), ())
    return found


def chains_of(space, name):
    slots, size = space.layout.slots, space.operator.sizes[name]
    ragged = tuple({"perfect": False, "ruby": True, "ruby-s": slot.axis != "T", "ruby-t": slot.axis == "T"}.get(
        space.tiling) for slot in slots)
    chains = loose_counts(size, len(slots)) if space.tiling == "imperfect" else ruby_counts(size, ragged)
    limits = space.constraints
    kept = []
    for counts, outsides in chains:
        good = True
        for s, (count, outside) in enumerate(zip(counts, outsides, strict=True)):
            place = place_of(space, s)
            bounds = limits.factors.get(place, {}).get(name, Bounds())
            tile = limits.tiles.get(place, {}).get(name, Bounds())
            good &= count == 1 or name in limits.loops.get(place, space.layout.dimensions)
            good &= bounds.least <= count <= (bounds.most or count)
            good &= min(tile.least, size) <= outside <= min(tile.most or size, size)
        if good:
            kept.append(counts)
    return np.array(kept, dtype=np.int64).reshape(-1, len(slots))


def arrays_allow(space, lanes):
    """Whether lanes ``(..., s)`` fit the arrays and use what they must."""
    good = np.ones(lanes.shape[:-1], dtype=bool)
    for index, level in enumerate(space.accelerator.levels):
        if not isinstance(level, Fanout):
            continue
        sides = {slot.axis: lanes[..., s] for s, slot in enumerate(space.layout.slots) if slot.level == index}
        across, down = sides["X"], sides.get("Y", np.ones_like(sides["X"]))
        if level.flexible:
            good &= across * down <= level.instances
        elif level.blocks:
            wide, high = level.blocks
            good &= -(-across // wide) * -(-down // high) <= level.instances // (wide * high)
        else:
            good &= (across <= level.shape[0]) & (down <= level.shape[1])
        good &= across * down >= space.constraints.utilization.get(level.name, 0) * level.instances - 1e-9
    return good


def induced_orders(space, place, loops):
    """How many orders of ``loops`` some allowed order of all dimensions leaves."""
    def follows(order, choice):
        at = choice.index("*") if "*" in choice else len(choice)
        first, last = choice[:at], choice[at + 1:]
        return order[:len(first)] == first and order[len(order) - len(last):] == last

    choices = space.constraints.orders.get(place, (("*",),))
    whole = [order for order in permutations(space.layout.dimensions) if any(follows(order, c) for c in choices)]
    return len({tuple(d for d in order if d in loops) for order in whole})


def brute_force(space):
    names = space.layout.dimensions
    chains = [chains_of(space, name) for name in names]
    shape = tuple(map(len, chains))
    lanes, loops = 1, 0
    for d, chain in enumerate(chains):
        spread = chain.reshape(*(len(chain) if i == d else 1 for i in range(len(names))), chain.shape[1])
        lanes, loops = lanes * spread, loops + ((spread > 1).astype(int) << d)
    good = arrays_allow(space, lanes)
    total = good.astype(object)
    for s, slot in enumerate(space.layout.slots):
        if slot.axis == "T":
            counts = [induced_orders(space, place_of(space, s), [n for d, n in enumerate(names) if mask >> d & 1])
                      for mask in range(1 << len(names))]
            total = total * np.array(counts)[loops[..., s]]
    assert good.shape == shape
    return int(total.sum())


@pytest.mark.sample(5)
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("name", list(MACHINES))
def test_the_count_is_that_of_brute_force(name, tiling):
    rng = np.random.default_rng([TILINGS.index(tiling), *name.encode()])
    for kind in (*KINDS, *KINDS):
        m, n, k = (int(size) for size in rng.permutation(SIZES[rng.integers(len(SIZES))]))
        operator = matmul("small", m=m, n=n, k=k)
        space = MapSpace(operator, MACHINES[name], tiling, restrictions(kind, name, m))
        expected = brute_force(space)
        try:
            size = space.size()
        except InputError:  # what leaves no mapping is refused
            assert expected == 0, (kind, m, n, k)
            continue
        assert (size.mappings, size.exact, size.error) == (expected, True, 0.0), (kind, m, n, k)
        assert [space.within(most) for most in (expected - 1, expected, expected + 1)] == [False, True, True]


@pytest.mark.parametrize("name", ["eyeriss", "tpu-like", "simba-like"])
def test_that_a_space_is_large_is_told_without_counting_it(name, monkeypatch):
    layer = next(node.operator for node in zoo.load("resnet50").mac_nodes if node.name == "layer1.0.conv2")
    monkeypatch.setattr(MapSpace, "size", None)
    assert not MapSpace(layer, preset(name)).within(1_000_000)


@pytest.mark.parametrize("tiling", TILINGS)
def test_one_dimension_alone_is_counted_as_brute_force_does(tiling):
    for size in (1, 2, 7, 12):
        space = MapSpace(matmul("vector", m=size, n=1, k=1), MACHINES["fixed"], tiling)
        assert space.size().mappings == brute_force(space)


PATTERNS = [
    frozenset({((), ())}),
    frozenset({((2, 0, 1, 3), ())}),
    frozenset({((0,), ()), ((), (0,))}),
    frozenset({((0, 1, 2, 3), ()), ((3, 2, 1, 0), ()), ((1, 0), (3,))}),
    frozenset({((0,), (1,)), ((), (2, 3))}),
]


@pytest.mark.parametrize("patterns", PATTERNS)
def test_orders_are_counted_and_summed_by_terms_alike(patterns):
    terms = order_terms((0, 1, 2, 3), patterns)
    for loops in range(16):
        dims = [d for d in range(4) if loops >> d & 1]
        whole = [order for order in permutations(range(4))
                 if any(order[:len(a)] == a and order[4 - len(b):] == b for a, b in patterns)]
        expected = {tuple(d for d in order if d in dims) for order in whole}
        assert order_count(loops, patterns) == len(expected)
        points, weights = real_nodes(3)
        total = 0.0
        for term in terms:
            scale = prod(term.on[d] if d in dims else term.off[d] for d in range(4))
            k = len(term.free & set(dims))
            total += scale * sum(w * x**(k + term.shift) for x, w in zip(points, weights, strict=True))
        assert total == pytest.approx(len(expected))


def test_quadratures_give_factorials_modulo_every_prime():
    for degree, rows in ROOTS.items():
        for prime, _ in rows:
            points, weights = modular_nodes(degree, prime)
            factorial = 1
            for k in range(2 * degree):
                factorial = factorial * max(k, 1) % prime
                assert sum(w * pow(x, k, prime) for x, w in zip(points, weights, strict=True)) % prime == factorial


def conv(**sizes):
    dims = {name: sizes.get(name, 1) for name in "NKCPQRS"}
    axes = {name: Axis(((name, 1),)) for name in dims}
    window = (Axis((("P", 1), ("R", 1))), Axis((("Q", 1), ("S", 1))))
    return Operator("conv", "conv", tuple(dims.items()), (
        Tensor("I", "inputs", (axes["N"], axes["C"], *window)),
        Tensor("W", "weights", tuple(axes[name] for name in "KCRS")),
        Tensor("O", "outputs", tuple(axes[name] for name in "NKPQ")),
    ))


def test_seven_dimensions_over_any_orders_are_counted_as_factorials_say():
    space = MapSpace(conv(N=2, K=2, C=2, P=2, Q=2, R=2, S=2), machine(REGS), "perfect")
    # Every dimension loops at one of two memories: sum over k of (7 choose k) k! (7 - k)! = 8 * 7!.
    assert space.size().mappings == 8 * 5040


def test_large_counts_are_exact():
    # Chains of 2048 over five slots, one side of an array wide enough for all: nothing but orders couples dimensions.
    space = MapSpace(matmul("large", m=2048, n=2048, k=2048), machine(GLB), "imperfect")
    ways = {1: 1, 2: 2046}  # The step below DRAM is 2048 (DRAM does not loop), 1 (GLB does not) or between.
    both, one = ways[2], ways[1]
    expected = 0
    for outer in range(4):
        for twice in range(4 - outer):
            inner = 3 - outer - twice
            choose = prod(range(1, 4)) // (prod(range(1, outer + 1)) * prod(range(1, twice + 1))
                                           * prod(range(1, inner + 1)))
            orders = prod(range(1, outer + twice + 1)) * prod(range(1, inner + twice + 1))
            expected += choose * one**(outer + inner) * both**twice * orders
    size = space.size()
    assert (size.mappings, size.exact) == (expected, True)


def test_a_space_with_a_large_flexible_array_is_counted():
    accelerator = machine(GLB, Fanout("PE", (256, 256), flexible=True), REGS)
    size = MapSpace(conv(K=512, C=512, P=56, Q=56, R=3, S=3), accelerator, "imperfect").size()
    assert size.exact
    assert size.mappings > 10**20
    fewer = MapSpace(conv(K=512, C=512, P=56, Q=56, R=3, S=3), accelerator, "imperfect",
                     Constraints(utilization={"PE": 0.5})).size()
    assert fewer.exact
    assert 0 < fewer.mappings < size.mappings


def test_sizes_read_well():
    assert str(SpaceSize(1234, exact=True)) == "1,234"
    assert str(SpaceSize(1_270_000_000_000_000, exact=True)) == "1.27e+15"
    assert str(SpaceSize(32 * 10**19, exact=False, error=0.004)) == "about 3.2e+20 +- 0.4 %"
    assert str(SpaceSize(32 * 10**19, exact=False, error=1e-12)) == "about 3.2e+20"
    assert str(SpaceSize(0, exact=False, error=float("inf"))) == "none found"
    assert str(SpaceSize(10**400, exact=True)) == "10^400"


@pytest.mark.slow
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("name", ["eyeriss", "simba-like", "edge-s1", "edge-s2", "edge-s3", "cloud-s1", "cloud-s2",
                                  "cloud-s3"])
def test_every_layer_of_resnet_is_counted_exactly(name, tiling):
    operators = {tuple(node.operator.sizes.items()): node.operator
                 for node in zoo.load("resnet50").nodes if hasattr(node, "operator")}
    assert len(operators) > 20
    for operator in operators.values():
        assert MapSpace(operator, preset(name), tiling).size().exact
