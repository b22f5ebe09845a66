import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.mapping import Constraints, Mapping, MappingBatch, MapSpace, is_legal
from tilewright.search import Origin, Source, Start, search, search_spaces
from tilewright.search.start import _scalings, start_batch
from tilewright.workload import convolution, matmul

MACHINE = preset("eyeriss")
SMALL = convolution("small", in_channels=32, out_channels=64, kernel=(3, 3), out_size=(28, 28))
LARGE = convolution("large", in_channels=96, out_channels=128, kernel=(3, 3), out_size=(28, 28))


@pytest.fixture(scope="module")
def found():
    return search(SMALL, MACHINE, budget=4000, seed=1)


def start_of(found):
    return Start.of(found.mapping, SMALL)


@pytest.mark.parametrize("tiling", ["perfect", "imperfect", "ruby-s"])
@pytest.mark.parametrize("operator", [SMALL, LARGE, convolution(
    "prime", in_channels=7, out_channels=13, kernel=(5, 5), out_size=(17, 11))], ids=lambda op: op.name)
def test_scaled_mappings_are_legal_mappings_of_the_space(found, operator, tiling):
    space = MapSpace(operator, MACHINE, tiling)
    batch = start_of(found).batch(space)
    assert 1 <= len(batch) <= 64
    assert space.contains(batch).all()
    assert space.fits(batch).all()
    for b in range(len(batch)):
        assert is_legal(batch.mapping(b, operator.sizes), operator, MACHINE)


def test_no_mapping_is_given_twice(found):
    batch = start_of(found).batch(MapSpace(LARGE, MACHINE))
    columns = np.concatenate([batch.steps, batch.ranks]).reshape(-1, len(batch))
    assert np.unique(columns, axis=1).shape[1] == len(batch)


def test_for_the_same_sizes_the_mapping_itself_comes_first(found):
    batch = start_of(found).batch(MapSpace(SMALL, MACHINE))
    assert batch.mapping(0, SMALL.sizes) == found.mapping


def test_order_and_parallelism_are_inherited_and_the_outermost_loop_is_scaled(found):
    mapping = start_of(found).batch(MapSpace(LARGE, MACHINE)).mapping(0, LARGE.sizes)
    for before, after in zip(found.mapping.levels[1:], mapping.levels[1:], strict=True):
        assert [loop.dimension for loop in after.loops] == [loop.dimension for loop in before.loops]
        assert [loop.axis for loop in after.loops] == [loop.axis for loop in before.loops]
        assert [loop.step for loop in after.loops] == [loop.step for loop in before.loops]


def test_no_start_changes_nothing():
    assert search(SMALL, MACHINE, budget=900).start == ()


def test_a_checkpoint_of_another_start_is_refused(found, tmp_path):
    space = MapSpace(LARGE, MACHINE)
    file = tmp_path / "search.npz"
    search(LARGE, MACHINE, space=space, budget=50, start=start_of(found), checkpoint=file)
    with pytest.raises(InputError, match="start"):
        search(LARGE, MACHINE, space=space, budget=50, checkpoint=file)


def test_members_of_a_union_all_begin_from_the_start(found):
    spaces = [MapSpace(LARGE, MACHINE, "perfect"), MapSpace(LARGE, MACHINE, "ruby-s")]
    result = search_spaces(spaces, budget=400, start=start_of(found))
    assert result.start == (Origin("given"),)
    assert result.score <= search(LARGE, MACHINE, space=spaces[0], budget=1, start=start_of(found)).score


def test_gamma_begins_with_changed_copies():
    space, poor = MapSpace(LARGE, MACHINE), search(SMALL, MACHINE, mapper="random-pruned", budget=50)
    warm = search(LARGE, MACHINE, space=space, mapper="gamma", budget=200, start=start_of(poor))
    first = search(LARGE, MACHINE, space=space, mapper="gamma", budget=8, start=start_of(poor))
    assert warm.score < first.score


def test_what_is_no_start_is_refused(found):
    other = matmul("other", m=8, n=8, k=8)
    space = MapSpace(LARGE, MACHINE)
    with pytest.raises(InputError, match="must hold at least one"):
        search(LARGE, MACHINE, start=Start(()))
    with pytest.raises(InputError, match=r"Start\.of"):
        search(LARGE, MACHINE, start=found.mapping)
    with pytest.raises(InputError, match="layout"):
        search(other, MACHINE, start=space.empty(1))
    with pytest.raises(InputError, match="1 to 64"):
        search(LARGE, MACHINE, space=space, start=space.sample(np.random.default_rng(0), 65))
    with pytest.raises(InputError, match="levels"):
        search(LARGE, MACHINE, start=Start.of(Mapping(found.mapping.levels[1:]), SMALL))
    with pytest.raises(InputError, match="loop over"):
        search(LARGE, MACHINE, start=Start((Source(found.mapping, {"M": 3}),)))


@pytest.mark.parametrize("tiling", ["perfect", "imperfect", "ruby", "ruby-s"])
def test_loops_of_one_turn_stand_innermost_in_every_order_of_a_start(found, tiling):
    space = MapSpace(LARGE, MACHINE, tiling)
    single = np.array(list(LARGE.sizes.values())) == 1
    assert single.any()
    given = space.sample(np.random.default_rng(3), 8)
    turned = MappingBatch(given.layout, given.steps, (len(single) - 1 - given.ranks).astype(np.int8))
    for batch in (start_of(found).batch(space), start_batch(turned, space), space.refit(space.repair(turned))):
        assert space.contains(batch).all()
        assert batch.ranks[:, single].min() > batch.ranks[:, ~single].max()


def test_what_breeds_from_a_start_keeps_the_orders_that_the_space_allows():
    operator = matmul("m", m=4, n=3, k=6)
    for tiling in ("perfect", "imperfect"):
        space = MapSpace(operator, MACHINE, tiling, Constraints(orders={"Spads": (("*", "K", "M"),)}))
        given = MapSpace(operator, MACHINE, tiling).sample(np.random.default_rng(1), 40)
        for index in range(40):
            start = Start.of(given.mapping(index, operator.sizes), operator)
            best = search(operator, MACHINE, space=space, objective="power", budget=300, start=start).mapping
            loops = [loop.dimension for loop in best.levels[-1].loops]
            assert [name for name in loops if name in ("K", "M")] == [n for n in ("K", "M") if n in loops]
            assert loops[-1:] in ([], ["M"]) or "M" not in loops


def test_tiles_are_scaled_in_four_ways():
    """25 in loops of 3, 3 and 5 (ragged) become 40: by the outermost loop, held whole, by counts, in proportion."""
    found = _scalings(np.array([[25], [12], [5], [1]]), np.array([40]))
    assert [steps.ravel().tolist() for steps in found] == [[12, 5, 1], [12, 5, 1], [15, 5, 1], [19, 8, 1]]
    whole = _scalings(np.array([[25], [25], [5], [1]]), np.array([40]))
    assert whole[1].ravel().tolist() == [40, 5, 1]
