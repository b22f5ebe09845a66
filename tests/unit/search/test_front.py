"""Pareto fronts: exact whatever proposes, kept through interruptions, and found well by NSGA-II."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost import DenseModel
from tilewright.hardware import Accelerator, AccessEnergy, Memory, preset
from tilewright.mapping import MappingBatch, MapSpace
from tilewright.search import Watch, joined, read_front, search, search_spaces
from tilewright.search import front as fronts
from tilewright.search.front import Archive, first_of_front
from tilewright.workload import ROLES, convolution, matmul

ACCELERATOR = preset("eyeriss")
CUBE = matmul("cube", m=6, n=4, k=4)
SPACE = MapSpace(CUBE, ACCELERATOR, "perfect")
CONV = convolution("conv", in_channels=16, out_channels=16, in_size=(14, 14), kernel=3, padding=1)


def plainly(values):
    """Return the distinct points that no other dominates, by the definition."""
    points = {tuple(row) for row in values.tolist()}
    return sorted(p for p in points if not any(
        q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points))


def values_of(front):
    return [point.values for point in front.points]


def volume(front, reference):
    """Return the hypervolume of logarithms below those of ``reference``."""
    moocore = pytest.importorskip("moocore")
    points = np.log(np.array(values_of(front)))
    return moocore.hypervolume(points, ref=np.log(reference))


@pytest.mark.parametrize("metrics", [2, 3])
def test_the_front_of_points_is_that_of_the_definition(metrics):
    rng = np.random.default_rng(0)
    for top in (3, 8, 1000):
        for count in (0, 1, 60):
            values = rng.integers(top, size=(count, metrics)).astype(float)
            assert [tuple(row) for row in values[first_of_front(values)].tolist()] == plainly(values)


@pytest.mark.parametrize("metrics", [("latency", "energy"), ("energy", "latency", "power")])
def test_an_archive_keeps_the_front_of_all_batches(metrics):
    space, rng = MapSpace(CONV, ACCELERATOR), np.random.default_rng(1)
    model, archive, everything = DenseModel(CONV, ACCELERATOR, space.layout), Archive(metrics, space), []
    for _ in range(12):
        batch = space.sample(rng, 300)
        costs = model.score(batch)
        archive.add(batch, costs, costs.legal)
        everything.append(fronts.metric_values(metrics, costs, ACCELERATOR)[costs.legal])
    front = archive.front()
    assert values_of(front) == plainly(np.concatenate(everything))
    again = model.score(MappingBatch.from_mappings([point.mapping for point in front.points], CONV, ACCELERATOR))
    assert np.allclose(fronts.metric_values(metrics, again, ACCELERATOR), values_of(front), rtol=1e-12)


def test_the_front_of_a_small_space_is_exact_and_any_mapper_keeps_one():
    model = DenseModel(CUBE, ACCELERATOR, SPACE.layout)
    values = []
    for batch in SPACE.enumerate():
        costs = model.score(batch)
        values.append(np.stack([costs.latency_cycles, costs.energy_pj], axis=1)[costs.legal])
    whole = search(CUBE, ACCELERATOR, space=SPACE, mapper="exhaustive", budget=10**6, front="latency,energy")
    assert whole.complete
    assert values_of(whole.front) == plainly(np.concatenate(values))
    assert whole.front.units == ("cycles", "pJ")
    some = search(CUBE, ACCELERATOR, space=SPACE, mapper="gamma", budget=400, front=("latency", "energy"))
    assert 0 < len(some.front.points)
    assert values_of(joined([whole.front, some.front])) == values_of(whole.front)
    assert search(CUBE, ACCELERATOR, space=SPACE, mapper="gamma", budget=400).front is None


def test_limits_hold_for_the_front_too():
    free = search(CUBE, ACCELERATOR, space=SPACE, mapper="random", budget=3000, front="latency,energy")
    most = sorted(values_of(free.front))[len(free.front.points) // 2][0]
    tight = search(CUBE, ACCELERATOR, space=SPACE, mapper="random", budget=3000, front="latency,energy",
                   constraints=[f"latency<={most}"])
    assert values_of(tight.front) == [values for values in values_of(free.front) if values[0] <= most]
    none = search(CUBE, ACCELERATOR, space=SPACE, mapper="random", budget=300, front="latency,energy",
                  constraints=["latency<=1"])
    assert none.front.points == ()


def test_nsga2_finds_the_front_of_a_small_space_and_more_of_a_large_one_than_chance():
    pytest.importorskip("pymoo")
    whole = search(CUBE, ACCELERATOR, space=SPACE, mapper="exhaustive", budget=10**6, front="latency,energy").front
    reference = 1.5 * np.max(values_of(whole), axis=0)
    found = search(CUBE, ACCELERATOR, space=SPACE, mapper="nsga2", budget=2000, front="latency,energy").front
    assert volume(found, reference) > 0.97 * volume(whole, reference)
    large = {mapper: search(CONV, ACCELERATOR, mapper=mapper, budget=3000, front="latency,energy", seed=2).front
             for mapper in ("nsga2", "random", "ga")}
    reference = 1.1 * np.max([values for front in large.values() for values in values_of(front)], axis=0)
    volumes = {mapper: volume(front, reference) for mapper, front in large.items()}
    assert volumes["nsga2"] > 1.1 * volumes["random"]
    assert volumes["nsga2"] > volumes["ga"]
    assert len(large["nsga2"].points) > len(large["ga"].points)


def test_nsga2_takes_the_metrics_that_are_asked_for():
    pytest.importorskip("pymoo")
    pairs = {front: search(CONV, ACCELERATOR, mapper="nsga2", budget=1500, front=front, seed=1)
             for front in ("latency,energy", "latency,power")}
    assert values_of(pairs["latency,energy"].front) != values_of(pairs["latency,power"].front)
    lowest = {front: min(values[0] for values in values_of(result.front)) for front, result in pairs.items()}
    assert all(np.isfinite(value) for value in lowest.values())


@pytest.mark.parametrize("mapper", ["gamma", "nsga2"])
def test_a_front_survives_an_interruption(mapper, tmp_path, monkeypatch):
    if mapper == "nsga2":
        pytest.importorskip("pymoo")
    given = {"mapper": mapper, "budget": 800, "seed": 4, "front": "latency,energy"}
    whole = search(CONV, ACCELERATOR, **given)
    stop = threading.Event()

    class StopAt:
        def update(self, progress):
            if progress.samples >= 300:
                stop.set()

    watch = Watch(checkpoint=tmp_path / "search.npz", stop=stop, progress=StopAt())
    monkeypatch.setattr("tilewright.search.run.PROGRESS_SECONDS", 0.0)
    part = search(CONV, ACCELERATOR, watch=watch, **given)
    assert part.stopped == "interrupted" and part.samples < 800
    resumed = search(CONV, ACCELERATOR, checkpoint=tmp_path / "search.npz", **given)
    assert resumed.front == whole.front
    with pytest.raises(InputError, match="checkpoint"):
        search(CONV, ACCELERATOR, checkpoint=tmp_path / "search.npz", **{**given, "front": "latency,power"})


def test_the_front_of_a_union_is_that_of_its_members():
    halves = [MapSpace(CUBE, ACCELERATOR, tiling) for tiling in ("perfect", "ruby-s")]
    union = search_spaces(halves, mapper="random", budget=2000, front="latency,energy", seed=3)
    values = np.array(values_of(union.front))
    assert len(values) and values_of(union.front) == plainly(values)
    alone = search_spaces(halves[:1], mapper="random", budget=2000, front="latency,energy", seed=3)
    assert len(alone.front.points) > 0


def test_a_front_beyond_measure_is_thinned_and_says_so(monkeypatch):
    monkeypatch.setattr(fronts, "MOST_POINTS", 2)
    rng = np.random.default_rng(5)
    space = MapSpace(CONV, ACCELERATOR)
    model, archive = DenseModel(CONV, ACCELERATOR, space.layout), Archive(("latency", "energy"), space)
    for _ in range(10):
        batch = space.sample(rng, 500)
        costs = model.score(batch)
        archive.add(batch, costs, costs.legal)
    front = archive.front()
    assert len(front.points) == 2
    assert front.thinned
    whole = replace(front, thinned=False)
    assert joined([whole, None, front]).thinned and not joined([whole, whole]).thinned
    assert values_of(front) == plainly(np.array(values_of(front)))


@pytest.mark.parametrize("count", [3, 4, 5, 6, 9, 16])
def test_a_front_that_is_thinned_keeps_its_ends(count, monkeypatch):
    monkeypatch.setattr(fronts, "MOST_POINTS", 2)
    archive, rising = Archive(("latency", "energy"), SPACE), np.arange(1.0, count + 1)
    costs = SimpleNamespace(legal=rising > 0, latency_cycles=rising, energy_pj=rising[::-1], area_um2=1.0)
    archive.add(SPACE.sample(np.random.default_rng(0), count), costs, costs.legal)
    assert values_of(archive.front()) == [(1.0, count), (count, 1.0)]


@pytest.mark.parametrize(("given", "field"), [
    ("latency", "front"), ("latency,latency", "front"), ("latency,speed", "front"), (("edp",), "front"),
    (3, "front"), (("latency", 3), "front"),
])
def test_wrong_fronts_are_named(given, field):
    with pytest.raises(InputError) as error:
        search(CUBE, ACCELERATOR, budget=10, front=given)
    assert error.value.field == field
    assert read_front("") == ()


def test_a_front_of_areas_needs_an_area():
    with pytest.raises(InputError, match="area_um2"):
        search(CUBE, Accelerator("bare", (Memory("DRAM", ROLES, AccessEnergy(1, 1, 1, 1)),)), budget=10,
               front="area,energy")
