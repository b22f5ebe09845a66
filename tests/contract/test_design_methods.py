"""What every registered design method must do, whatever it does inside."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError, has_extra
from tilewright.codesign import DESIGNERS, DesignProblem, designs, read_limits
from tilewright.codesign.screening import HardwareBoxes
from tilewright.codesign.session import Session
from tilewright.hardware import DesignSpace, NumberRange, find_design_space, preset
from tilewright.jobs import Runner
from tilewright.workload import UniqueOperator, convolution, matmul

LAYERS = [UniqueOperator(matmul("product", 12, 8, 10), 2, ("product",)),
          UniqueOperator(convolution("window", in_channels=4, out_channels=6, kernel=3, out_size=5), 1, ("window",))]
SAMPLES = 101
SHORTER = {"gradient": {"steps": 8, "every": 4}}
"""Options with which a method takes less time, and does the same."""


def extra_of(method):
    """Return the extra that a method says it needs; empty for none."""
    return getattr(DESIGNERS.get(method), "extra", "")


def stands_by(method):
    """Whether others stand for it by default: optimisers of numbers, each of which is held to all this as a mapper."""
    return hasattr(DESIGNERS.get(method), "box") and method not in ("random", "ga", "one-plus-one", "nsga2")


EVERY = pytest.mark.parametrize("method", [
    pytest.param(method, marks=[
        pytest.mark.skipif(not has_extra(extra_of(method)), reason=f"needs {extra_of(method)}"),
        *([pytest.mark.slow] if stands_by(method) else [])]) for method in DESIGNERS])


def problem(within="area=0.02mm2", objective="latency"):
    whole = find_design_space("edge-s2")
    ranges = {("SG", "capacity_bytes"): NumberRange(64.0, 4096.0, 448.0),
              ("PEs", "instances"): NumberRange.listed((1, 3, 9, 20, 64)),
              ("SL", "capacity_bytes"): NumberRange.listed((64.0, 96.0, 200.0, 512.0))}
    return DesignProblem.of([(LAYERS, 1.0)], DesignSpace(whole.accelerator, ranges), read_limits(within),
                            objective=objective)


def run(method, asked=None, samples=SAMPLES, seed=0, runner=None, options=None):
    """Run a method without the bound of the whole budget, which takes the same time for each."""
    session = Session(asked or problem(), samples, None, seed, runner or Runner(workers=1))
    for _ in DESIGNERS.get(method)(session, options or SHORTER.get(method, {})).steps():
        if session.over:
            break
    return session


def told(session):
    """Return what a run found, and on which way."""
    return ([(step.samples, step.score) for step in session.history], session.spent, dict(session.best.chosen),
            [front.nests.steps.tolist() for front in session.best.fronts])


@pytest.fixture(scope="module")
def runs():
    kept = {}

    def made(method):
        if method not in kept:
            kept[method] = run(method)
        return kept[method]

    return made


@EVERY
def test_what_is_found_is_within_the_budget_and_costs_what_was_scored(method, runs):
    found, asked = runs(method), problem()
    assert found.best is not None
    machine = asked.machine(found.best.chosen)
    assert machine.area_um2 <= 0.02e6
    assert all(value in [values.value(place) for place in range(len(values))]
               for value, values in zip(found.best.chosen.values(), asked.space.ranges.values(), strict=True))
    batches = [found.best.nests(layer) for layer in range(len(asked.layers))]
    again = Session(asked, None, None, 0, Runner(workers=1)).score(
        {key: np.array([value]) for key, value in found.best.chosen.items()}, batches)
    assert again.score[0] == pytest.approx(found.best.score, rel=1e-12)


@EVERY
def test_the_nearest_to_the_limits_is_told_where_nothing_is_within_them(method):
    found = designs.design(problem("power=1uW"), method, samples=SAMPLES, proof=0, runner=Runner(workers=1),
                           options=SHORTER.get(method))
    assert found.best is None
    assert len(found.machines) >= len({tuple(one.chosen.values()) for one in found.tried}) >= 1
    over = [one.excess for one in found.rejected]
    assert over == sorted(over)
    (why,) = found.violations(found.rejected[0])
    assert why.startswith("power: ") and "where 0.001mW is allowed; " in why


@pytest.mark.parametrize("method", ["random", "digamma"])
def test_of_designs_over_the_limits_those_nearer_than_all_before_are_noted(method, monkeypatch):
    score, excesses = Session.score, list[np.ndarray]()

    def noted(session, chosen, batches):
        found = score(session, chosen, batches)
        excesses.append(np.where(np.isfinite(found.score), np.inf, found.excess))
        return found

    monkeypatch.setattr(Session, "score", noted)
    session = run(method, problem("area=0.003mm2"), samples=1000)
    over = [one.excess for one in session.tried if one.score == np.inf]
    assert over[-1] == pytest.approx(np.concatenate(excesses).min())
    assert over == sorted(over, reverse=True)


@EVERY
def test_samples_are_counted_and_not_exceeded(method, runs, monkeypatch):
    assert len(LAYERS) <= runs(method).spent <= SAMPLES
    assert run(method, samples=2).spent <= 2
    scored, score = [0], Session.score

    def counted(session, chosen, batches):
        scored[0] += sum(map(len, batches))
        return score(session, chosen, batches)

    monkeypatch.setattr(Session, "score", counted)
    spent = run(method, samples=37).spent
    assert scored[0] <= spent <= 37


@EVERY
def test_the_same_seed_gives_the_same_design_on_any_number_of_workers_and_what_is_kept_is_not_searched_again(
        method, runs, tmp_path):
    from tilewright.store import Results

    for workers in (2, 1):
        with Results(tmp_path / "kept.sqlite", "design") as kept:
            runner = Runner(keeper=kept, workers=workers)
            assert told(run(method, runner=runner)) == told(runs(method))
    assert runner.computed == 0


HASHED = """
from tilewright.codesign import DesignProblem, design, read_limits
from tilewright.hardware import find_design_space
from tilewright.jobs import Runner
from tilewright.workload import UniqueOperator, matmul
layers = [UniqueOperator(matmul("product", 64, 64, 64), 1, ("product",))]
asked = DesignProblem.of([(layers, 1.0)], find_design_space("edge-s1"), read_limits("area=0.02mm2"))
for method in ("digamma", "grid"):
    found = design(asked, method, samples=300, proof=0, runner=Runner(workers=1))
    print(found.score, *found.chosen.values(), [step.samples for step in found.history])
"""


def test_the_same_seed_gives_the_same_design_however_strings_are_hashed():
    found = {subprocess.run([sys.executable, "-c", HASHED], env=os.environ | {"PYTHONHASHSEED": str(seed)}, check=True,
                            capture_output=True, text=True).stdout for seed in range(3)}
    assert len(found) == 1


@EVERY
def test_unknown_options_are_refused_by_name(method):
    with pytest.raises(InputError, match="colour"):
        run(method, options={"colour": 3})


@pytest.mark.sample(4)
@EVERY
@pytest.mark.parametrize("objective", ["energy", "edp-area"])
def test_other_objectives_limits_and_arrays_of_fixed_shape_are_searched(method, objective):
    fixed = DesignSpace(preset("eyeriss"), {("GLB", "capacity_bytes"): NumberRange(1024.0, 8192.0, 3584.0),
                                            ("PEs", "x"): NumberRange(2, 14, 4), ("PEs", "y"): NumberRange(2, 12, 5)})
    asked = DesignProblem.of([(LAYERS, 1.0)], fixed, read_limits("elements=60,power=900mW"), objective=objective)
    found = run(method, asked, samples=101)
    assert found.spent <= 101
    if found.best is not None:
        assert found.best.chosen["PEs", "x"] * found.best.chosen["PEs", "y"] <= 60


@pytest.mark.parametrize("name", ["edge-s2", "eyeriss", "simba-like", "accel-a"])
def test_points_read_as_genes_are_mappings_that_spread_one_dimension_by_each_side(name):
    from tilewright.codesign.methods.boxes import DesignGenes
    from tilewright.codesign.methods.decoding import NeededDesigns

    asked = DesignProblem.of([(LAYERS, 1.0)], find_design_space(name), read_limits("elements=400"))
    genes = DesignGenes(designs := NeededDesigns(asked))
    points = np.random.default_rng(2).random((300, genes.dimension))
    chosen, nests = genes.decode(points)
    assert all(space.contains(one.batch(space.layout)).all() for one, space in zip(nests, designs.spaces, strict=True))
    steps = nests[1].steps
    runs = np.concatenate([np.broadcast_to([*asked.layers[1].sizes.values()], steps[:, :1].shape), steps[:, :-1]], 1)
    sides = [at for at, *_ in designs.sides]
    spread = (runs > steps)[:, sides].sum(axis=2)
    assert spread.max() == (1 if sides else 0)
    assert all(((one >= asked.space.ranges[key].low) & (one <= designs.highest[key])).all()
               for key, one in chosen.items() if key in designs.genes)


def test_points_read_as_genes_say_what_is_spread_how_far_which_tiles_and_in_which_order():
    from tilewright.codesign.methods.boxes import DesignGenes
    from tilewright.codesign.methods.decoding import NeededDesigns

    layer = UniqueOperator(matmul("product", 12, 8, 10), 1, ("product",))
    genes = DesignGenes(NeededDesigns(DesignProblem.of([([layer], 1.0)], find_design_space("edge-s2"),
                                                       read_limits("elements=100"))))

    def steps_and_ranks(along, units, inner, order):
        tiles = [np.log(value + 0.5) / np.log(most + 1) for value, most in zip((units, 4, 8, 5, *inner),
                                                                               (5, 12, 8, 10, 12, 8, 10), strict=True)]
        chosen, (nests,) = genes.decode(np.array([[1.0, *along, *tiles, 0.9, 0.5, 0.1, *order]]))
        assert chosen["PEs", "instances"] == 100
        return nests.steps[0, :, 1:].tolist(), nests.ranks[0, 1, 1:]  # of M, N, K

    steps, ranks = steps_and_ranks((0.1, 0.9), 3, (2, 4, 1), (0.1, 0.2, 0.3))
    assert steps == [[12, 8, 5], [12, 4, 3], [2, 4, 3], [2, 4, 1], [1, 1, 1]]
    assert ranks[1] < ranks[2]
    again, ranks = steps_and_ranks((0.1, 0.9), 3, (2, 4, 1), (0.3, 0.2, 0.1))
    assert again == steps
    assert ranks[1] > ranks[2]
    wider = [[12, 8, 5], [12, 4, 5], [2, 4, 5], [2, 4, 1], [1, 1, 1]]
    assert steps_and_ranks((0.1, 0.9), 5, (2, 4, 1), (0.1, 0.2, 0.3))[0] == wider
    assert steps_and_ranks((0.9, 0.5), 5, (9, 4, 1), (0.1, 0.2, 0.3))[0][3] == [4, 4, 1]  # no larger than outside


@pytest.mark.skipif(not has_extra("optimizers"), reason="needs optimizers")
@pytest.mark.parametrize("method", ["nsga2", "digamma"])
def test_where_a_front_is_asked_for_designs_between_the_ends_are_noted(method):
    asked = replace(problem(objective="edp"), spread=True)
    found = run(method, asked, samples=1000)
    figures = {(one.figures.latency_cycles, one.figures.energy_pj) for one in found.tried if one.score < np.inf}
    assert len(figures) > len(found.history)


@pytest.mark.parametrize("objective", ["latency", "edp", "edp-area"])
def test_a_grid_has_the_largest_arrays_that_fit_unless_area_counts(objective):
    asked = DesignProblem.of([(LAYERS, 1.0)], find_design_space("edge-s2"), read_limits("area=0.02mm2"),
                             objective=objective)
    array, designer = ("PEs", "instances"), DESIGNERS.get("grid")(Session(asked, 1000, None, 0, Runner(1)), {})
    machines = designer.grid(30)
    assert 8 <= len(machines) <= 30
    assert all(asked.budget.excess(chosen) <= 0 for chosen in machines)
    filled = [chosen[array] == asked.budget.largest(chosen, array) for chosen in machines]
    assert all(filled) if objective != "edp-area" else sum(filled) < len(machines) / 2
    for key in asked.space.ranges:
        assert len({chosen[key] for chosen in machines}) > 2


@pytest.mark.parametrize("samples", [2 * 4 * 8, 2 * 16 * 8, 2 * 40 * 64])
def test_a_grid_tries_some_machines_with_few_samples_too(samples):
    asked = DesignProblem.of([(LAYERS, 1.0)], find_design_space("edge-s2"), read_limits("area=0.02mm2"))
    found = run("grid", asked, samples=samples)
    assert len(found.machines) >= min(4, samples // 16)


def test_presets_of_digamma_are_by_name_and_what_is_given_counts_before_them():
    from tilewright.codesign.methods.digamma import digamma_options

    release = digamma_options({"preset": "release"})
    assert (release.elite, release.parents, release.crossover, release.reorder, release.tiles, release.genes,
            release.reach, release.hardware, release.parallel, release.grow, release.age) == (
        0.05, 0.4, 0.57, 0.47, 0.53, 3, 0.53, 0.5, 0.1, 0.57, 0.27)
    assert digamma_options({"population": 7}).population == 7
    assert digamma_options({}).trims > 0
    with pytest.raises(InputError, match="release"):
        digamma_options({"preset": "releas"})


def test_trimmed_designs_are_within_the_budget_more_often():
    from tilewright.codesign.methods.decoding import NeededDesigns
    from tilewright.codesign.methods.digamma import DigammaBreeding, DigammaOptions

    asked = problem("area=0.008mm2")

    def within(trims):
        breeding = DigammaBreeding(NeededDesigns(asked), DigammaOptions(trims=trims), np.random.default_rng(3))
        made = breeding.first(200)
        breeding.trim(made)
        return (asked.budget.excess(breeding.decoded(made)[0]) <= 0).mean()

    assert within(0) + 0.2 < within(6)


def test_mappings_are_cut_to_the_lanes_of_their_design():
    from tilewright.codesign.methods.decoding import NeededDesigns

    designs = NeededDesigns(problem())
    space = designs.spaces[1]
    batch = space.sample(np.random.default_rng(0), 500)
    lanes = np.repeat(np.random.default_rng(1).integers(1, 20, (500, 1)), 2, axis=1)
    found = designs.cut(1, batch, lanes)
    used = designs.problem.model(1, found.layout).needs(found).numbers(space.accelerator)["PEs", "instances"]
    assert (used <= lanes[:, 0]).all()
    assert (used == 1).mean() < 0.5
    assert space.contains(found).all()


@EVERY
def test_a_run_may_be_limited_by_time_alone(method):
    session = Session(problem(), None, 0.2, 0, Runner(workers=1))
    steps = 0
    for _ in DESIGNERS.get(method)(session, {}).steps():
        steps += 1
        if session.over:
            break
    assert session.spent > 0 or method == "auto"
    assert steps < 500


def test_a_bound_above_a_score_is_told_not_lowered(monkeypatch):
    monkeypatch.setattr(designs, "budget_bound", lambda *_, below, **__: below * 1.01)
    with pytest.raises(AssertionError, match="bound of this budget is wrong"):
        designs.design(problem(), "random", samples=20)


def test_a_bound_of_boxes_above_a_score_is_told_not_lowered(monkeypatch):
    monkeypatch.setattr(HardwareBoxes, "least", property(lambda _: 1e300))
    with pytest.raises(AssertionError, match="bound of this budget is wrong"):
        designs.design(problem(), "auto", samples=SAMPLES)
