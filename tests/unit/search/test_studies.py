"""Studies of one layer: spaces of single axes, shares of the gain, all loop orders, the picture in two dimensions."""

import math
from itertools import permutations

import numpy as np
import pytest

import tilewright as tw
from tilewright.base import InputError
from tilewright.cost import DenseModel
from tilewright.mapping import Constraints, MappingBatch, MapSpace
from tilewright.search import Improvement, search
from tilewright.search.studies import (
    AXES,
    Attempt,
    AxisStudy,
    Contender,
    Contest,
    Terms,
    axis_space,
    base_mapping,
    crossover_contenders,
    encode,
    feature_names,
    given_mapping,
    label,
    run_contest,
    study_axes,
    study_landscape,
    study_orders,
)

LAYER = "conv:K=16,C=8,P=14,Q=14,R=3,S=3"
SETS = [(), ("tile",), ("order",), ("parallelism",), ("tile", "order"), ("tile", "parallelism"),
        ("order", "parallelism"), AXES]


@pytest.fixture(scope="module", params=["perfect", "imperfect"])
def space(request):
    return tw.map_space(LAYER, "accel-b", tiling=request.param)


@pytest.fixture(scope="module")
def small():
    return tw.map_space("matmul:M=6,N=4,K=4", "accel-b", tiling="perfect")


def parts(space, batch):
    """Return what each axis of every mapping is: tiles by memory, orders, dimensions along sides."""
    sizes = np.array(list(space.operator.sizes.values()))[None, :, None]
    outside = np.concatenate([np.broadcast_to(sizes, (1, *batch.steps.shape[1:])), batch.steps[:-1]])
    temporal = [s for s, slot in enumerate(space.layout.slots) if slot.axis == "T"]
    spatial = [s for s, slot in enumerate(space.layout.slots) if slot.axis != "T"]
    return {"tile": outside[temporal], "order": batch.ranks[temporal],
            "parallelism": (batch.steps < outside)[spatial], "lanes": -(-outside // batch.steps)[spatial]}


@pytest.mark.parametrize("free", SETS, ids=lambda free: label(free) or "none")
def test_an_axis_space_moves_along_its_axes_alone(space, free):
    base = base_mapping(space, 3)
    assert space.fits(base)[0]
    loose = axis_space(space, base, free)
    assert loose.contains(base)[0]
    drawn = loose.sample(np.random.default_rng(0), 300)
    assert loose.contains(drawn).all() and space.contains(drawn).all()
    was, now = parts(space, base), parts(space, drawn)
    for axis in AXES:
        same = now[axis] == was[axis]
        if axis in free:
            assert not same.all()
        elif axis == "order":  # loops that run once may stand anywhere
            sizes = np.array(list(space.operator.sizes.values()))[None, :, None]
            outside = np.concatenate([np.broadcast_to(sizes, (1, *drawn.steps.shape[1:])), drawn.steps[:-1]])
            temporal = [s for s, slot in enumerate(space.layout.slots) if slot.axis == "T"]
            runs = (drawn.steps < outside)[temporal]
            for first, second in permutations(range(len(sizes[0])), 2):
                both = runs[:, first] & runs[:, second]
                inside = now[axis][:, first] > now[axis][:, second]
                assert (inside == (was[axis][:, first] > was[axis][:, second]))[both].all()
        elif axis == "parallelism":
            assert not (now[axis] & ~was[axis]).any()  # no other dimension is spread
            if "tile" not in free:
                assert (now["lanes"] == was["lanes"]).all()
        else:
            assert same.all()


def test_axes_and_mappings_that_mean_nothing_are_refused(space):
    base = base_mapping(space, 0)
    with pytest.raises(InputError, match="axes: must be among tile, order, parallelism"):
        axis_space(space, base, ["tiles"])
    other = tw.map_space("matmul:M=6,N=4,K=4", "accel-b")
    with pytest.raises(InputError, match="mapping: must be one of the space's layout"):
        axis_space(other, base, ["tile"])


def test_all_axes_together_are_the_space_and_single_ones_are_searched_to_the_end(small):
    base = base_mapping(small, 1)
    whole = axis_space(small, base, AXES)
    assert whole.size().mappings == small.size().mappings
    found = study_axes(small, terms=Terms(budget=3000, seeds=2, seed=1))
    model = DenseModel(small.operator, small.accelerator)
    for turn, seed in enumerate((1, 2)):
        start = base_mapping(small, seed)
        assert found.bases[turn] == pytest.approx(model.cost(start.mapping(0, small.operator.sizes)).edp)
        order = axis_space(small, start, ["order"])
        optimum = search(small.operator, small.accelerator, mapper="exhaustive", budget=10**6, space=order)
        assert optimum.complete
        assert found.contest.of("order")[turn].score == pytest.approx(optimum.score)


def made(scores, base=1000.0):
    """Return a study with one seed of these best scores by set of axes."""
    names = [label(axes) for axes in SETS if axes]
    attempts = tuple(Attempt(name, 0, (Improvement(1, 0.1, score),), 1, 1, 0.1)
                     for name, score in zip(names, scores, strict=True))
    contest = Contest("layer", "machine", "edp", "", tuple(Contender(name, "gamma") for name in names), (0,), attempts,
                      None)
    return AxisStudy(contest, (base,), "gamma")


def test_shares_add_up_and_tell_who_gained():
    found = made([10.0, 1000.0, 1000.0, 10.0, 10.0, 1000.0, 10.0])  # tile alone matters
    assert [found.shares(axis) for axis in AXES] == [[pytest.approx(1.0)], [0.0], [0.0]]
    both = made([1000.0, 1000.0, 1000.0, 10.0, 1000.0, 1000.0, 10.0])  # only tile and order together
    assert [both.shares(axis)[0] for axis in AXES] == pytest.approx([0.5, 0.5, 0.0])
    assert both.alone("tile") == [0.0] and both.fixed("tile") == [1.0]
    some = made([20.0, 500.0, 40.0, 15.0, 9.0, 30.0, 7.0])
    assert sum(some.shares(axis)[0] for axis in AXES) == pytest.approx(1)
    assert made([1000.0] * 7).shares("tile") == [0.0]


def test_a_given_mapping_is_begun_from(small):
    nest = search(small.operator, small.accelerator, budget=50, space=small).mapping
    found = study_axes(small, "random", Terms(budget=64, seeds=2), nest)
    assert found.bases[0] == found.bases[1]
    assert found.bases[0] == pytest.approx(DenseModel(small.operator, small.accelerator).cost(nest).edp)
    assert all(attempt.score <= found.bases[0] for attempt in found.contest.attempts)


def test_what_a_given_mapping_keeps_is_kept():
    plain = tw.map_space(LAYER, "accel-b")
    kept = MapSpace(plain.operator, plain.accelerator, "imperfect", Constraints(keeps={"Shared": ("I", "O")}))
    nest = search(plain.operator, plain.accelerator, budget=300, space=kept).mapping
    space, base = given_mapping(plain, nest)
    assert space.layout == kept.layout != plain.layout
    assert base.mapping(0, plain.operator.sizes) == nest


def test_mappings_that_cannot_be_studied_by_axes_are_refused(small):
    text = """levels:
  - level: DRAM
    loops: [M: 3, N: 2, M: 1]
  - level: Shared
    loops: [N: 1, K: 1]
  - {level: PEs, loops: []}
  - {level: Private, loops: []}
  - {level: ALUs, loops: []}
"""
    nest = tw.load_mapping(text, small.operator, small.accelerator)
    with pytest.raises(InputError, match="must loop once at most over a dimension at a level"):
        given_mapping(small, nest)
    tiny = MapSpace(small.operator, small.accelerator, "perfect", Constraints(loops={"DRAM": ("M",)}))
    with pytest.raises(InputError, match="must be one of the map space, and fit the memories"):
        given_mapping(tiny, tw.load_mapping(text.replace("M: 3, N: 2, M: 1", "M: 1, N: 2"), small.operator,
                                            small.accelerator))


def test_every_order_costs_what_the_readable_model_says(small):
    operator, machine = small.operator, small.accelerator
    nest = search(operator, machine, budget=20, seed=5, space=small, mapper="random").mapping
    found = study_orders(operator, machine, nest)
    model, expected = DenseModel(operator, machine), {}
    batch = MappingBatch.from_mappings([nest], operator, machine)
    for order in permutations((1, 2, 3)):
        changed = MappingBatch(batch.layout, batch.steps, batch.ranks.copy())
        for s, slot in enumerate(batch.layout.slots):
            if slot.axis == "T":
                changed.ranks[s, [*order, 0], 0] = range(4)
        edp = model.cost(changed.mapping(0, operator.sizes)).edp
        expected.setdefault(float(f"{edp:.11e}"), []).append(order)
    assert found.orders == 6 and found.dimensions == ("M", "N", "K")
    assert [(group.score, group.count) for group in found.groups] == [
        (pytest.approx(edp), len(expected[edp])) for edp in sorted(expected)]
    assert found.ratio == pytest.approx(max(expected) / min(expected))
    assert model.cost(found.best_mapping).edp == pytest.approx(min(expected))
    assert found.own == pytest.approx(model.cost(nest).edp)
    for group in found.groups:
        indices = tuple(list(operator.sizes).index(name) for name in group.example)
        assert indices in expected[float(f"{group.score:.11e}")]


def test_innermost_loops_of_a_group_by_hand():
    operator, machine = tw.matmul("m", m=8, n=8, k=8), tw.load_accelerator("accel-b")
    nest = tw.load_mapping("""levels:
  - level: DRAM
    loops: [M: 4, N: 4, K: 4]
  - level: Shared
    loops: [M: 1, N: 1, K: 1]
  - {level: PEs, loops: []}
  - {level: Private, loops: []}
  - {level: ALUs, loops: []}
""", operator, machine)
    here = study_orders(operator, machine, nest, memories=["DRAM"], objective="energy")
    assert here.memories == ("DRAM",) and here.orders == 6
    assert sum(group.count for group in here.groups) == 6
    # At DRAM the innermost loop decides what stays in the shared buffer: of weights, inputs, outputs.
    assert [group.pattern for group in here.groups] == ["DRAM: K", "DRAM: M or N"] or len(here.groups) <= 3
    assert {loop for group in here.groups for _, loops in group.innermost for loop in loops} == {"M", "N", "K"}


def test_orders_that_cannot_be_tried_are_refused(small):
    operator, machine = small.operator, small.accelerator
    nest = search(operator, machine, budget=50, space=small).mapping
    with pytest.raises(InputError, match="memories: must be among DRAM, Shared, Private; Got 'L9'"):
        study_orders(operator, machine, nest, memories=["L9"])
    many = tw.einsum("abcdefghij,j->abcdefghi", dict.fromkeys("abcdefghij", 2))
    loops = ", ".join(f"{name}: 1" for name in many.sizes)
    rest = "".join(f"\n  - {{level: {name}, loops: []}}" for name in ("Shared", "PEs", "Private", "ALUs"))
    nest = tw.load_mapping(f"levels:\n  - {{level: DRAM, loops: [{loops}]}}{rest}\n", many, machine)
    with pytest.raises(InputError, match="must loop over 9 dimensions at most for all orders to be tried; Got 10"):
        study_orders(many, machine, nest)


def test_mappings_are_encoded_as_told(small):
    nest = tw.load_mapping("""levels:
  - level: DRAM
    loops: [N: 2, M: 3]
  - level: Shared
    loops: [K: 2]
  - level: PEs
    loops: [M@X: 1]
  - {level: Private, loops: [N: 1, K: 1]}
  - {level: ALUs, loops: []}
""", small.operator, small.accelerator)
    batch = MappingBatch.from_mappings([nest], small.operator, small.accelerator)
    found = dict(zip(feature_names(small), encode(small, batch)[0], strict=True))
    counts = {name: value for name, value in found.items() if name.endswith("count") and value}
    assert counts == {"DRAM M count": 1, "DRAM N count": 1, "Shared K count": 1, "PEs.X M count": math.log2(3),
                      "Private N count": 1, "Private K count": 1}
    places = {name: value for name, value in found.items() if name.endswith("place") and value != 0.5}
    assert places == {"DRAM N place": 0, "DRAM M place": 1, "Private N place": 0, "Private K place": 1}


def test_the_picture_is_that_of_principal_components(space):
    found = study_landscape(space, "gamma,random", points=600, budget=500, seed=4)
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(4, spawn_key=(1,))))
    features = []
    model = DenseModel(space.operator, space.accelerator)
    while sum(map(len, features)) < 600:
        batch = space.sample(rng, 4096)
        features.append(encode(space, batch.take(np.flatnonzero(model.score(batch).legal))))
    features = np.concatenate(features)[:600]
    values = np.sort(np.linalg.eigvalsh(np.cov(features.T)))[::-1]
    assert found.explained == pytest.approx((values[0] / values.sum(), values[1] / values.sum()))
    assert found.background.x.var(ddof=1) == pytest.approx(values[0])
    assert found.background.y.var(ddof=1) == pytest.approx(values[1])
    assert len(found.background) == 600
    alone = search(space.operator, space.accelerator, mapper="random", budget=500, seed=4, space=space)
    trail = found.trails["random"]
    assert (len(trail), trail.scores.min()) == (alone.legal_samples, pytest.approx(alone.score))
    assert trail.samples[trail.scores.argmin()] == alone.history[-1].samples
    assert found.best == min(found.background.scores.min(), found.trails["gamma"].scores.min(), trail.scores.min())
    assert found.best >= found.bound
    thin = trail.thinned(20)
    assert len(thin) <= 20 and thin.scores.min() == trail.scores.min()


def test_a_picture_needs_points_and_mappings_that_fit(space):
    with pytest.raises(InputError, match="points: must be at least 3"):
        study_landscape(space, points=2)
    with pytest.raises(InputError, match="mapper: must be a known mapper"):
        study_landscape(space, "nobody")


def test_the_ablation_of_crossover_runs(small):
    contenders = crossover_contenders()
    assert [one.name for one in contenders][:3] == ["gamma", "gamma without crossover", "crossover only"]
    found = run_contest(small, contenders, Terms(budget=300, seeds=2))
    assert all(math.isfinite(attempt.score) for attempt in found.attempts)
