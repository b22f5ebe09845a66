"""Why a space is empty: the conflicting parts, checked against enumeration of small spaces."""

import random
from itertools import combinations

import pytest

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Fanout, Memory, preset
from tilewright.mapping import Atom, Bounds, Constraints, MapSpace, conflicts, dataflow_constraints
from tilewright.mapping.spaces.conflicts import _given_atoms, _machine_atoms, _Oracle
from tilewright.workload import ROLES, convolution, matmul

ENERGY = AccessEnergy(1.0, 1.0, 1.0, 1.0)
CONV = convolution("conv", in_channels=64, out_channels=64, in_size=56, kernel=3, padding=1)
TILINGS = ("perfect", "imperfect", "ruby", "ruby-s", "ruby-t")


def machine(array: Fanout, capacity: float | None = None) -> Accelerator:
    return Accelerator("small", (Memory("DRAM", ROLES, ENERGY), array,
                                 Memory("L1", ROLES, ENERGY, capacity_bytes=capacity, buffering="buffet")))


ARRAYS = (Fanout("PEs", (3, 2)), Fanout("PEs", (4, 1)), Fanout("PEs", (6, 1), flexible=True),
          Fanout("PEs", (4, 2), blocks=(2, 1)))


def random_constraints(rng: random.Random, places: list[str], operator) -> Constraints:
    """Return constraints that are each possible by themselves."""
    def bounds(most: int) -> Bounds:
        least = rng.randint(1, most)
        return rng.choice([Bounds(least, least), Bounds(least), Bounds(most=least)])

    dims = list(operator.sizes)
    factors: dict[str, dict[str, Bounds]] = {}
    tiles: dict[str, dict[str, Bounds]] = {}
    for _ in range(rng.randint(0, 4)):
        dim = rng.choice(dims)
        factors.setdefault(rng.choice(places), {})[dim] = bounds(operator.sizes[dim])
    for _ in range(rng.randint(0, 2)):
        dim = rng.choice(dims)
        tiles.setdefault("L1", {})[dim] = bounds(operator.sizes[dim])
    loops = {rng.choice(places): tuple(rng.sample(dims, 2))} if rng.random() < 0.4 else {}
    share = {"PEs": rng.choice([0.5, 0.8, 1.0])} if rng.random() < 0.5 else {}
    return Constraints(loops=loops, factors=factors, tiles=tiles, utilization=share)


def holds_none(operator, accelerator, tiling, constraints) -> bool | None:
    """Whether enumeration yields nothing that fits; None where the constraints are refused one by one."""
    try:
        space = MapSpace(operator, accelerator, tiling, constraints)
    except InputError:
        return None
    try:
        return not any(space.fits(batch).any() for batch in space.enumerate())
    except InputError:
        return True


@pytest.mark.sample(3)
@pytest.mark.parametrize("array", ARRAYS, ids=["fixed", "line", "flexible", "blocks"])
@pytest.mark.parametrize("tiling", TILINGS)
def test_a_space_is_called_empty_exactly_where_enumeration_finds_nothing(array, tiling):
    rng = random.Random(f"{array} {tiling}")
    accelerator, empty, full = machine(array), 0, 0
    places = ["DRAM", "L1", "PEs.X"] + ["PEs.Y"] * (array.shape[1] > 1 or array.flexible)
    for _ in range(60):
        operator = matmul("m", m=rng.randint(1, 5), n=rng.randint(2, 4), k=rng.randint(1, 3))
        constraints = random_constraints(rng, places, operator)
        expected = holds_none(operator, accelerator, tiling, constraints)
        if expected is None:
            continue
        found = conflicts(operator, accelerator, tiling, constraints)
        assert bool(found) == expected, constraints
        empty, full = empty + expected, full + (not expected)
        assert not found or is_minimal(found, operator, accelerator, constraints)
    assert empty >= 3 and full >= 3


def is_minimal(found, operator, accelerator, constraints) -> bool:
    oracle = _Oracle(operator, accelerator, constraints)
    return oracle.empty(found) and not any(oracle.empty(part) for part in combinations(found, len(found) - 1))


def test_what_is_called_empty_for_lack_of_room_is():
    rng = random.Random(7)
    accelerator = machine(ARRAYS[0], capacity=10.0)
    empty = 0
    for _ in range(80):
        operator = matmul("m", m=rng.randint(2, 6), n=rng.randint(2, 4), k=rng.randint(2, 4))
        constraints = random_constraints(rng, ["DRAM", "L1", "PEs.X", "PEs.Y"], operator)
        expected = holds_none(operator, accelerator, "imperfect", constraints)
        found = conflicts(operator, accelerator, "imperfect", constraints)
        assert expected is not False or not found
        empty += any(atom.kind == "capacity" for atom in found)
    assert empty >= 3


def test_no_smaller_set_is_left_out():
    """Three factors exceed the array together, two of them do already: the two are named."""
    constraints = Constraints(factors={"PEs.X": {"K": Bounds(2, 2), "P": Bounds(4, 4), "C": Bounds(4, 4)}})
    found = conflicts(CONV, preset("eyeriss"), "imperfect", constraints)
    assert {str(atom) for atom in found} == {"factors.PEs.X.P = 4", "factors.PEs.X.C = 4", "the 14 places of PEs.X"}


def test_the_smallest_of_several_conflicts_is_told():
    constraints = Constraints(
        factors={"PEs.X": {"K": Bounds(4, 4), "P": Bounds(4, 4)}, "GLB": {"Q": Bounds(5, 5)}},
        tiles={"GLB": {"C": Bounds(most=3)}, "Spads": {"C": Bounds(least=4)}})
    found = conflicts(CONV, preset("eyeriss"), "perfect", constraints)
    assert len(found) == 2


@pytest.mark.parametrize("tiling", TILINGS)
def test_spaces_that_hold_mappings_have_no_conflict(tiling):
    for name in ("eyeriss", "simba-like", "edge-s2", "tpu-like"):
        for flow in ("row-stationary", "nvdla", "output-stationary"):
            constraints = dataflow_constraints(flow, CONV, preset(name))
            assert conflicts(CONV, preset(name), tiling, constraints) == ()


def test_arrays_within_arrays_are_counted():
    """Sixteen filters cannot fill two arrays of 8 and of 3, though they fill each."""
    two = Accelerator("two", (Memory("DRAM", ROLES, ENERGY), Fanout("chips", (8, 1)), Fanout("lanes", (3, 1)),
                              Memory("L1", ROLES, ENERGY)))
    product = matmul("m", m=1, n=16, k=1)
    full = {"chips": 1.0, "lanes": 1.0}
    assert conflicts(product, two, "imperfect", Constraints(utilization={"chips": 1.0})) == ()
    assert conflicts(product, two, "imperfect", Constraints(utilization={"lanes": 1.0})) == ()
    found = conflicts(product, two, "imperfect", Constraints(utilization=full))
    assert {atom.path for atom in found} >= {"utilization.chips", "utilization.lanes"}
    assert conflicts(matmul("m", m=1, n=24, k=1), two, "imperfect", Constraints(utilization=full)) == ()


def test_a_machine_too_small_for_a_word_is_told_without_any_constraint():
    found = conflicts(CONV, machine(ARRAYS[0], capacity=2.0), "imperfect", Constraints())
    assert found == (Atom("capacity", "L1", says="the 2 bytes"),)
    with pytest.raises(InputError, match=r"small\.L1: must leave a mapping of conv on small: the 2 bytes of L1 cannot"):
        MapSpace(CONV, machine(ARRAYS[0], capacity=2.0)).refuse_empty()


def test_atoms_are_named_as_in_files():
    constraints = Constraints(loops={"L1": ("N",)}, factors={"PEs.X": {"K": Bounds(2, 4)}}, utilization={"PEs": 0.5})
    told = [str(atom) for atom in _given_atoms("ruby-s", constraints)]
    assert told == ["tiling = ruby-s", "utilization.PEs = 0.5", "loops.L1 = N", "factors.PEs.X.K = 2 to 4"]
    assert [str(atom) for atom in _machine_atoms(CONV, preset("eyeriss"), Constraints())] == [
        "the 14 places of PEs.X", "the 12 places of PEs.Y", "the 110592 bytes of GLB", "the 24 bytes of Spads.inputs",
        "the 448 bytes of Spads.weights", "the 48 bytes of Spads.outputs"]
