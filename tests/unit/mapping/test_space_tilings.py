"""Spaces of every tiling and constraint against brute force by the definitions, and what mappers propose in them."""

from itertools import compress, pairwise, permutations, product

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory
from tilewright.mapping import ANY, TILINGS, Bounds, Constraints, MappingBatch, MapSpace
from tilewright.search import search
from tilewright.search.mapper import MAPPERS, Task
from tilewright.workload import Axis, Operator, Tensor

ALL = ("inputs", "weights", "outputs")
UNIT = AccessEnergy(1.0, 1.0, 1.0, 1.0)


def matmul(m, n, k):
    def axes(*names):
        return tuple(Axis(((name, 1),)) for name in names)

    return Operator("matmul", "matmul", (("M", m), ("N", n), ("K", k)), (
        Tensor("A", "inputs", axes("M", "K")), Tensor("B", "weights", axes("K", "N")),
        Tensor("C", "outputs", axes("M", "N")),
    ))


def machine(*inner):
    return Accelerator("machine", (Memory("DRAM", ALL, UNIT), Memory("GLB", ALL, UNIT, capacity_bytes=64), *inner))


REGS = Memory("REG", ALL, UNIT, capacity_bytes=12)
MACHINES = {
    "fixed": machine(Fanout("PE", (3, 2)), REGS),
    "flexible": machine(Fanout("PE", (3, 2), flexible=True), REGS),
    "blocks": machine(Fanout("PE", (4, 2), blocks=(2, 1)), REGS),
    "array last": machine(Fanout("PE", (3, 3))),
    "two": machine(Fanout("PE", (3, 1)), Memory("L2", ALL, UNIT, capacity_bytes=24), Fanout("CL", (2, 1)), REGS),
}
CONSTRAINTS = {
    "none": Constraints(),
    "factors": Constraints(factors={"PE.X": {"M": Bounds(2, 3)}, "GLB": {"N": Bounds(1, 2)}, "DRAM": {"M": Bounds(2)}}),
    "tiles": Constraints(tiles={"GLB": {"M": Bounds(2, 4), "N": Bounds(3)}}),
    "loops": Constraints(loops={"PE.X": ("N",), "GLB": ("M", "N"), "DRAM": ("M",)}),
    "orders": Constraints(orders={"GLB": (("N", ANY), (ANY, "K", "M")), "DRAM": (("K", "M", "N"),)}),
    "utilization": Constraints(utilization={"PE": 0.6}, factors={"GLB": {"M": Bounds(1, 3)}}),
}
CASES = list(product(MACHINES, TILINGS, CONSTRAINTS))
SIZES = (6, 4, 1)


def ruby_chains(size, slots, ragged):
    """Return the chains of equation 5, from the counts: all may be left over at slots that are ``ragged``."""
    found = set()

    def grow(chain, left):
        s = slots - len(chain)
        if s < 0:
            if left == 1:
                found.add(tuple(reversed(chain)))
            return
        for count in range(1, left + 1):
            if left % count and not ragged[s]:
                continue
            rest = -(-left // count)
            grow([*chain, size if rest == 1 and count > 1 else chain[-1] * count if count > 1 else chain[-1]], rest)

    grow([1], size)
    return found


def all_chains(size, slots):
    """Return every chain of extents from the size to 1, that need not divide."""
    return {(size, *steps, 1) for steps in product(range(1, size + 1), repeat=slots - 1)
            if list(steps) == sorted(steps, reverse=True)}


def slot_names(space):
    return [space.layout.levels[slot.level] + ("" if slot.axis == "T" else f".{slot.axis}")
            for slot in space.layout.slots]


def counts_of(chain):
    return [-(-a // b) for a, b in pairwise(chain)]


def legal_chains(space, d):
    """Return the chains of dimension number ``d`` by the definitions, the arrays and floors left aside."""
    name, size = list(space.operator.sizes.items())[d]
    slots, places, rules = len(space.layout.slots), slot_names(space), space.constraints
    if space.tiling == "imperfect":
        found = all_chains(size, slots)
    else:
        kinds = {"perfect": "", "ruby": "TXY", "ruby-s": "XY", "ruby-t": "T"}[space.tiling]
        found = ruby_chains(size, slots, [slot.axis in kinds for slot in space.layout.slots])

    def stays(chain):
        for s, (place, count) in enumerate(zip(places, counts_of(chain), strict=True)):
            factor = rules.factors.get(place, {}).get(name, Bounds())
            tile = rules.tiles.get(place, {}).get(name, Bounds())
            if (count > 1 and name not in rules.loops.get(place, (name,))) or not (
                    factor.least <= count <= (factor.most or count)) or not (
                    min(tile.least, size) <= chain[s] <= (tile.most or size)):
                return False
        return True

    return sorted(filter(stays, found))


def lanes_stand(space, counts):
    """Whether lanes fit the arrays and meet the floors, by the definitions."""
    for fanout in space.accelerator.fanouts:
        sides = [int(np.prod(counts[s])) for s, name in enumerate(slot_names(space)) if name.startswith(fanout.name)]
        x, y = (*sides, 1)[:2]
        if fanout.flexible:
            fit = x * y <= fanout.instances
        elif fanout.blocks:
            width, height = fanout.blocks
            fit = -(-x // width) * -(-y // height) <= fanout.instances // (width * height)
        else:
            fit = x <= fanout.shape[0] and y <= fanout.shape[1]
        if not fit or x * y < space.constraints.utilization.get(fanout.name, 0) * fanout.instances - 1e-9:
            return False
    return True


def tilings_of(space):
    """Return the step arrays ``(s, d)`` of a space, found by trying all chains together."""
    found = []
    for chains in product(*(legal_chains(space, d) for d in range(len(space.operator.sizes)))):
        counts = np.array([counts_of(chain) for chain in chains]).T
        if lanes_stand(space, counts):
            found.append(np.array(chains).T[1:])
    return found


def orders_of(space, name, loops):
    """Return the orders that the loops over the named dimensions may stand in at a memory."""
    rules = space.constraints.orders.get(name)
    if rules is None:
        return set(permutations(loops))
    found = set()
    for order in permutations(space.operator.sizes):
        for rule in rules:
            at = rule.index(ANY) if ANY in rule else len(rule)
            behind = len(rule) - at - 1
            if order[:at] == rule[:at] and (behind < 1 or order[-behind:] == rule[at + 1:]):
                found.add(tuple(name for name in order if name in loops))
    return found


def expected_keys(space, tilings):
    sizes = np.array(list(space.operator.sizes.values()))
    names = list(space.operator.sizes)
    found = set()
    for steps in tilings:
        loops = np.vstack([sizes[None], steps[:-1]]) > steps
        choices = [orders_of(space, space.layout.levels[slot.level], [n for d, n in enumerate(names) if loops[s, d]])
                   for s, slot in enumerate(space.layout.slots) if slot.axis == "T"]
        found |= {(steps.astype(int).tobytes(), orders) for orders in product(*choices)}
    return found


def keys(space, batch):
    """Return, of each mapping, its steps and, at every memory, the loops that run more than once, outermost first."""
    steps, names = np.moveaxis(batch.steps, 2, 0).astype(int), np.array([*space.operator.sizes])
    sizes = np.array(list(space.operator.sizes.values()))
    loops = np.concatenate([np.broadcast_to(sizes, (len(batch), 1, len(names))), steps[:, :-1]], axis=1) > steps
    temporal = [s for s, slot in enumerate(space.layout.slots) if slot.axis == "T"]
    turns = np.moveaxis(batch.ranks, 2, 0)[:, temporal].argsort(2)
    named, run = names[turns].tolist(), np.take_along_axis(loops[:, temporal], turns, 2).tolist()
    return [(own.tobytes(), tuple(tuple(compress(*memory)) for memory in zip(orders, runs, strict=True)))
            for own, orders, runs in zip(steps, named, run, strict=True)]


def make(name, tiling, constraints, sizes=SIZES):
    return MapSpace(matmul(*sizes), MACHINES[name], tiling, CONSTRAINTS[constraints])


def noise_in(space, count, seed):
    noise, rng = space.empty(count), np.random.default_rng(seed)
    noise.steps[:] = rng.integers(-2, 9, noise.steps.shape)
    noise.ranks[:] = rng.integers(-3, 4, noise.ranks.shape)
    return noise


@pytest.mark.sample(15)
@pytest.mark.parametrize(("name", "tiling", "constraints"), CASES)
def test_everything_agrees_with_brute_force(name, tiling, constraints):
    space = make(name, tiling, constraints)
    tilings = tilings_of(space)
    if not tilings:
        with pytest.raises(InputError):
            _ = space.table
        return
    expected = expected_keys(space, tilings)
    found = [k for batch in space.enumerate() for k in keys(space, batch)]
    assert len(found) == len(set(found))
    assert set(found) == expected

    slots = len(space.layout.slots)
    every = list(product(*(sorted(all_chains(size, slots)) for size in space.operator.sizes.values())))
    every = [every[i] for i in np.random.default_rng(0).permutation(len(every))[:1500]]
    batch = space.empty(len(every))
    batch.steps[:] = np.array(every).transpose(2, 1, 0)[1:]
    batch.ranks[:] = np.random.default_rng(1).permuted(np.tile(np.arange(3), (len(every), len(batch.ranks), 1)),
                                                       axis=2).transpose(1, 2, 0)
    assert space.contains(batch).tolist() == [k in expected for k in keys(space, batch)]

    drawn = space.sample(np.random.default_rng(2), 300, 0.4)
    assert set(keys(space, drawn)) <= expected
    assert space.contains(drawn).all()
    again = space.repair(drawn)
    assert np.array_equal(again.steps, drawn.steps)
    assert np.array_equal(again.ranks, drawn.ranks)
    assert set(keys(space, space.repair(batch))) <= expected
    mended = space.repair(noise_in(space, 200, 3))
    assert space.contains(mended).all()
    assert set(keys(space, mended)) <= expected


@pytest.mark.parametrize("constraints", ["none", "factors", "tiles", "orders"])
@pytest.mark.parametrize("tiling", TILINGS)
def test_every_legal_mapping_is_its_own_repair(tiling, constraints):
    space = make("fixed", tiling, constraints)
    seen = 0
    for batch in space.enumerate():
        repaired = space.repair(batch)
        assert np.array_equal(repaired.steps, batch.steps)
        assert np.array_equal(repaired.ranks, batch.ranks)
        seen += len(batch)
    assert seen == space.size().mappings > 0


@pytest.mark.parametrize(("size", "tiling", "constraints"), [
    (12, "ruby-t", "tiles"), (13, "ruby", "none"), (12, "imperfect", "factors"), (360, "perfect", "factors"),
    (126, "ruby-s", "none"), (254, "ruby-t", "factors"),
])
def test_repair_takes_the_nearest_extent_at_the_first_slot_that_differs(size, tiling, constraints):
    space = MapSpace(matmul(size, 1, 1), MACHINES["array last"], tiling, CONSTRAINTS[constraints])
    chains = np.array(legal_chains(space, 0))
    chains = chains[[lanes_stand(space, np.array([counts_of(chain)]).T) for chain in chains]]
    noise = noise_in(space, 200, 4)
    noise.steps[:] = np.exp(np.random.default_rng(5).random(noise.steps.shape) * np.log(size + 1))
    repaired = space.repair(noise)
    for b in range(len(noise)):
        legal = chains
        for s in range(legal.shape[1] - 2, 0, -1):
            within = legal[:, s + 1]
            distance = np.abs(np.log(legal[:, s] / np.maximum(np.maximum(noise.steps[s - 1, 0, b], 1), within)))
            legal = legal[np.isclose(distance, distance.min())]
        assert repaired.steps[:, 0, b].tolist() in legal[:, 1:].tolist()


@pytest.mark.parametrize("name", list(MACHINES))
def test_tilings_include_one_another(name):
    found = {tiling: {k for b in make(name, tiling, "none").enumerate() for k in keys(make(name, tiling, "none"), b)}
             for tiling in TILINGS}
    for inner, outer in (("perfect", "ruby-s"), ("perfect", "ruby-t"), ("ruby-s", "ruby"), ("ruby-t", "ruby"),
                         ("ruby", "imperfect")):
        assert found[inner] < found[outer], (inner, outer)
    assert found["ruby-s"] & found["ruby-t"] == found["perfect"]


@pytest.mark.parametrize(("first", "second", "both"), [
    ("perfect", "imperfect", "perfect"), ("ruby-s", "ruby", "ruby-s"), ("ruby-s", "ruby-t", "perfect"),
    ("imperfect", "ruby", "ruby"), ("ruby-t", "ruby-t", "ruby-t"),
])
def test_an_intersection_contains_what_both_contain(first, second, both):
    one, other = make("two", first, "factors"), make("two", second, "tiles")
    common = one & other
    assert common.tiling == both
    assert common == other & one
    found = next(make("two", "imperfect", "none").enumerate(batch=20_000))
    assert np.array_equal(common.contains(found), one.contains(found) & other.contains(found))
    assert common.contains(common.sample(np.random.default_rng(5), 50)).all()


def test_spaces_of_other_operators_or_contradictory_ones_do_not_intersect():
    one = make("fixed", "ruby", "none")
    with pytest.raises(InputError, match="same operator"):
        _ = one & make("fixed", "ruby", "none", (5, 5, 5))
    with pytest.raises(InputError, match="same operator"):
        _ = one & make("blocks", "ruby", "none")
    first, second = (MapSpace(one.operator, one.accelerator, constraints=Constraints(keeps={"GLB": kept}))
                     for kept in (("A",), ("A", "B")))
    with pytest.raises(InputError, match=r"space\.keeps\.GLB"):
        _ = first & second
    assert (one & first).constraints.keeps == {"GLB": ("A",)}


@pytest.mark.sample(15)
@pytest.mark.parametrize("constraints", ["none", "factors", "loops", "orders", "utilization"])
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("mapper", ["auto", "gamma", "random", "random-pruned", "exhaustive"])
def test_mappers_propose_nothing_else(mapper, tiling, constraints):
    space = make("fixed", tiling, constraints, (10, 7, 6))
    if constraints == "utilization" and tiling == "perfect":
        space = make("fixed", tiling, constraints, (12, 8, 6))
    options = {"population": 60} if mapper in ("auto", "gamma") else {"batch": 60}
    found = MAPPERS.get(mapper)(Task(space, np.random.default_rng(6), 600, options, 1))
    rng = np.random.default_rng(7)
    for _ in range(6):
        batch = found.ask(600)
        assert space.contains(batch).all()
        found.tell(batch, rng.random(len(batch)) + ~space.fits(batch))


def test_the_papers_gamma_stays_in_the_space_too():
    space = make("two", "ruby-s", "factors", (10, 7, 6))
    gamma = MAPPERS.get("gamma")(Task(space, np.random.default_rng(6), 600, {"population": 60, "paper": True}, 1))
    for _ in range(4):
        batch = gamma.ask(600)
        assert space.contains(batch).all()
        gamma.tell(batch, np.random.default_rng(7).random(len(batch)))


def test_a_search_in_a_space_with_rules_ends_inside_it_and_repeats():
    space = make("fixed", "ruby-s", "utilization", (14, 9, 6))
    first, second = (search(space.operator, space.accelerator, space=space, budget=600, seed=3) for _ in range(2))
    assert first.mapping == second.mapping
    assert first.legal_samples > 0
    batch = MappingBatch.from_mappings([first.mapping], space.operator, space.accelerator)
    assert space.contains(batch).all()


def test_mappings_of_another_layout_are_not_in_a_space():
    space = make("fixed", "ruby", "none")
    other = MapSpace(space.operator, space.accelerator, constraints=Constraints(keeps={"GLB": ("A",)}))
    assert not space.contains(other.sample(np.random.default_rng(8), 5)).any()


@pytest.mark.parametrize(("constraints", "path"), [
    (Constraints(factors={"GLB": {"M": Bounds(2)}, "REG": {"M": Bounds(4)}}), r"space.factors.* conflicts with "),
    (Constraints(tiles={"GLB": {"M": Bounds(1, 2)}, "REG": {"M": Bounds(3)}}), r"space.tiles.* conflicts with tiles"),
    (Constraints(factors={"DRAM": {"M": Bounds(1, 1)}}, tiles={"GLB": {"M": Bounds(1, 5)}}), "conflicts with "),
    (Constraints(loops={"PE.X": (), "PE.Y": ()}, utilization={"PE": 0.5}), r"space.utilization.PE"),
])
def test_what_leaves_no_mapping_is_named(constraints, path):
    with pytest.raises(InputError, match=path):
        _ = MapSpace(matmul(7, 4, 2), MACHINES["fixed"], "perfect", constraints).table


def test_primes_leave_a_perfect_space_too_few_lanes_where_ruby_s_has_enough():
    full = Constraints(utilization={"PE": 1.0})
    with pytest.raises(InputError, match=r"perfect conflicts with utilization\.PE = 1, the 3 places of PE\.X and"):
        _ = MapSpace(matmul(7, 11, 13), MACHINES["fixed"], "perfect", full).table
    space = MapSpace(matmul(7, 11, 13), MACHINES["fixed"], "ruby-s", full)
    drawn = space.sample(np.random.default_rng(9), 40)
    assert space.contains(drawn).all()
    assert len(set(keys(space, drawn))) > 10


def test_a_space_of_few_mappings_is_repaired_into_one_of_them():
    space = MapSpace(matmul(7, 2, 1), MACHINES["fixed"], "ruby-t", Constraints(utilization={"PE": 0.8}))
    assert len(tilings_of(space)) == 1
    assert space.contains(space.sample(np.random.default_rng(10), 20)).all()
    assert space.contains(space.repair(noise_in(space, 20, 11))).all()


def test_a_space_that_only_a_count_shows_to_be_empty_is_refused():
    space = MapSpace(matmul(3, 1, 1), MACHINES["fixed"], "ruby", Constraints(utilization={"PE": 1.0}))
    assert not tilings_of(space)
    assert not list(space.enumerate())
    with pytest.raises(InputError, match=r"space\.utilization\.PE: must leave a mapping"):
        space.sample(np.random.default_rng(12), 5)
    with pytest.raises(InputError, match="must leave a mapping"):
        search(space.operator, space.accelerator, space=space, budget=10)
