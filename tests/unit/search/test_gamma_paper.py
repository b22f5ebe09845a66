"""Gamma as published: each operator changes what chapter 4 says and nothing else, and genomes mean what they say."""

import numpy as np
import pytest

from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.search import MAPPERS, Objective, Start, Task, Watch, search
from tilewright.search.mappers.gamma import levels_in_use
from tilewright.search.mappers.gamma import paper as gamma_paper
from tilewright.search.mappers.gamma.paper import Decoding, GammaBreeding, Genomes
from tilewright.search.objective import ILLEGAL
from tilewright.workload import convolution, matmul

LAYER = convolution("layer", in_channels=64, out_channels=32, out_size=(12, 10), kernel=3)
SYSTEMS = ("edge-s1", "edge-s2", "edge-s3")
SPACES = {name: MapSpace(LAYER, preset(name)) for name in SYSTEMS}
EVERY = pytest.mark.parametrize("name", SYSTEMS)
PARTS = ("depth", "parallel", "units", "tiles", "ranks")


def bred(name, seed=0, count=400):
    """Return what breeds on a system, and random genomes of every depth that it allows."""
    space = SPACES[name]
    rng = np.random.default_rng(seed)
    breeding = GammaBreeding(space, levels_in_use(Task(space, rng)), rng)
    genomes = breeding.random(count)
    for _ in range(3):
        breeding.grow(genomes, breeding.chosen(len(genomes)))
        breeding.age(genomes, breeding.chosen(len(genomes)))
    return breeding, genomes


def copied(genomes):
    return genomes.take(np.arange(len(genomes)))


def changed(before, after):
    """Return by part of the genomes ``(p)``: how many genes of the mappers that count are others now."""
    within = np.arange(before.parallel.shape[1]) < np.minimum(before.depth, after.depth)[:, None]
    found = {"depth": (before.depth != after.depth).astype(int)}
    for part in PARTS[1:]:
        apart = getattr(before, part) != getattr(after, part)
        found[part] = (apart & (within if apart.ndim == 2 else within[:, :, None])).reshape(len(before), -1).sum(axis=1)
    return found


@EVERY
def test_the_first_generation_is_random_within_the_layer_and_has_the_fewest_mappers(name):
    breeding, _ = bred(name)
    made = breeding.random(2_000)
    assert (made.depth == breeding.least).all()
    assert (made.tiles >= 1).all()
    assert (made.tiles <= breeding.sizes[0]).all()
    assert (made.tiles[:2] == 1).all()
    assert made.tiles[:, 0].max(axis=0).tolist() == breeding.sizes[0].tolist()
    assert (np.sort(made.ranks[:, 0], axis=1) == np.arange(len(breeding.sizes[0]))).all()


@EVERY
@pytest.mark.parametrize(("operator", "parts", "most"), [
    ("mutate_parallel", {"parallel"}, 1), ("mutate_tile", {"tiles", "units"}, 1), ("reorder", {"ranks"}, 2),
    ("grow", {"depth"}, 1), ("age", {"depth"}, 1)])
def test_an_operator_changes_its_own_genes_only_in_half_of_all_genomes(name, operator, parts, most):
    breeding, genomes = bred(name)
    before = copied(genomes)
    getattr(breeding, operator)(genomes, breeding.chosen(len(genomes)))
    found = changed(before, genomes)
    for part, counts in found.items():
        assert counts.max() <= (most if part in parts else 0), part
    touched = sum(found[part] for part in parts) > 0
    able = {"grow": before.depth < breeding.most, "age": before.depth > breeding.least}.get(operator)
    share = touched.mean() if able is None else touched[able].mean() if able.any() else 0.5
    assert share <= 0.6
    assert share >= (0.4 if operator in ("grow", "age") else 0.2)
    if able is not None:
        assert not touched[~able].any()
    assert (np.sort(genomes.ranks[:, 0], axis=1) == np.arange(len(breeding.sizes[0]))).all()


@EVERY
def test_growth_appends_a_random_mapper_inside_and_aging_cuts_the_innermost(name):
    breeding, genomes = bred(name)
    before = copied(genomes)
    breeding.grow(genomes, breeding.chosen(len(genomes)))
    grown = np.flatnonzero(genomes.depth > before.depth)
    if breeding.most > breeding.least:
        assert len(grown)
        inner, outer = genomes.tiles[grown, before.depth[grown]], genomes.tiles[grown, before.depth[grown] - 1]
        assert (inner <= outer).all()
        assert (inner < outer).any()
    assert genomes.depth.max() <= breeding.most
    for _ in range(12):
        breeding.age(genomes, breeding.chosen(len(genomes)))
    assert (genomes.depth == breeding.least).all()
    assert np.array_equal(genomes.tiles[:, 0], before.tiles[:, 0])


@EVERY
def test_crossover_interchanges_the_tiles_of_one_dimension_at_the_mappers_that_both_have(name):
    breeding, genomes = bred(name)
    before = copied(genomes)
    breeding.cross(genomes)
    found = changed(before, genomes)
    assert all(not found[part].any() for part in PARTS if part != "tiles")
    crossed = 0
    for dad in range(0, len(genomes), 2):
        both = min(before.depth[dad:dad + 2])
        apart = np.flatnonzero((before.tiles[dad:dad + 2, :both] != genomes.tiles[dad:dad + 2, :both]).any(axis=(0, 1)))
        assert len(apart) <= 1
        for d in apart:
            assert np.array_equal(genomes.tiles[dad, :both, d], before.tiles[dad + 1, :both, d])
            assert np.array_equal(genomes.tiles[dad + 1, :both, d], before.tiles[dad, :both, d])
        crossed += len(apart)
    assert 0.3 * len(genomes) / 2 < crossed < 0.6 * len(genomes) / 2


@EVERY
def test_children_have_tiles_within_those_outside_and_the_mappers_that_the_system_allows(name):
    breeding, genomes = bred(name)
    made = breeding.children(genomes, 301)
    assert len(made) == 301
    assert (np.diff(np.concatenate([np.broadcast_to(breeding.sizes[0], (301, 1, 6)), made.tiles], axis=1), axis=1) <= 0
            ).all()
    assert set(made.depth.tolist()) == set(range(breeding.least, breeding.most + 1))


def genome(*mappers):
    """Return one genome of (dimension, units, tiles, order) on dimensions M, N, K."""
    names = "MNK"
    parts = [np.array([[names.index(p) for p, *_ in mappers]]), np.array([[units for _, units, *_ in mappers]]),
             np.array([[tiles for *_, tiles, _ in mappers]]),
             np.array([[[order.index(d) for d in names] for *_, order in mappers]])]
    pad = [np.concatenate([part, np.ones_like(np.repeat(part[:, :1], 3 - len(mappers), axis=1))], axis=1)
           for part in parts]
    return Genomes(np.array([len(mappers)]), *pad)


def decoded(machine, genes):
    operator = matmul("product", m=96, n=80, k=64)
    space = MapSpace(operator, preset(machine), "imperfect")
    rng = np.random.default_rng(0)
    task = Task(space, rng)
    breeding = GammaBreeding(space, levels_in_use(task), rng)
    batch = Decoding(space, breeding.active, breeding.sizes[0], breeding.limits).batch(genes)
    assert space.contains(batch).all()
    return {entry.level: [(loop.dimension, loop.step, loop.axis) for loop in entry.loops]
            for entry in batch.mapping(0, operator.sizes).levels}


def test_one_mapper_on_an_array_of_free_shape_spreads_over_all_its_elements():
    loops = decoded("edge-s2", genome(("M", 5, (1, 16, 8), "KNM")))
    assert loops["DRAM"] == [("K", 8, None), ("N", 16, None)]
    assert loops["PEs"] == [("M", 1, "X")]
    assert loops["SL"] == [("K", 1, None), ("N", 1, None)]
    assert not loops.get("SG")


def test_the_inner_of_two_mappers_says_how_many_elements_it_takes():
    loops = decoded("edge-s2", genome(("N", 7, (24, 4, 32), "NMK"), ("K", 8, (12, 4, 2), "MNK")))
    assert loops["PEs"] == [("N", 4, "X"), ("K", 2, "Y")]
    assert loops["DRAM"] == [("M", 24, None), ("K", 32, None)]  # 168 // 8 = 21 columns of 4 cover N
    assert loops["SG"] == [("M", 12, None), ("K", 16, None)]


def test_three_mappers_stand_for_arrays_columns_and_rows():
    loops = decoded("edge-s3", genome(("M", 1, (24, 40, 32), "NKM"), ("N", 1, (24, 10, 32), "KMN"),
                                      ("K", 6, (6, 10, 2), "MKN")))
    assert loops["Arrays"] == [("M", 6, "X")]
    assert loops["PEs"] == [("N", 10, "X"), ("K", 2, "Y")]
    assert loops["DRAM"] == [("N", 40, None), ("K", 32, None)]
    assert loops["SG"] == [("M", 24, None), ("K", 12, None)]


def test_parents_and_elite_are_the_best_that_fit_each_once():
    space = SPACES["edge-s2"]
    made = MAPPERS.get("gamma")(Task(space, np.random.default_rng(3), 1_000, {"paper": True, "population": 100}))
    batch = made.ask(10**6)
    scores = np.full(len(batch), ILLEGAL)
    scores[[3, 4]], scores[10:70] = 5.0, np.arange(20, 80)
    kept = made
    for part in kept.asked.arrays:
        part[4] = part[3]
    made.tell(batch, scores)
    assert kept.scores.tolist() == [5.0, 20.0, 21.0, 22.0, 23.0]
    assert len(kept.elite) == 5
    assert len(kept.parents) == 40
    made.ask(10**6)
    made.tell(batch, np.full(len(batch), ILLEGAL))
    assert kept.scores[0] == 5.0
    assert len(kept.parents) == len(kept.elite) == 5


def test_where_nothing_fits_a_new_first_generation_is_drawn():
    made = gamma_paper.PublishedGamma(Task(SPACES["edge-s2"], np.random.default_rng(3)), 50, 1)
    made.tell(made.ask(50), np.full(50, ILLEGAL))
    made.ask(50)
    assert (made.asked.depth == 1).all()
    assert (made.asked.tiles[:2] == 1).all()


def test_it_finds_mappings_of_one_dimension_along_a_side_and_goes_on_from_where_it_stood(tmp_path):
    space = SPACES["edge-s3"]
    whole = search(LAYER, space.accelerator, mapper="gamma", options={"paper": True}, budget=2_000, space=space)
    assert whole.mapping is not None
    for entry in whole.mapping.levels:
        axes = [loop.axis for loop in entry.loops if loop.axis]
        assert len(axes) == len(set(axes))
    first, second = (MAPPERS.get("gamma")(Task(space, np.random.default_rng(1), None, {"paper": True}))
                     for _ in range(2))
    rng = np.random.default_rng(2)
    for _ in range(3):
        first.tell(first.ask(200), rng.random(200))
    second.restore(first.state())
    assert np.array_equal(first.ask(200).steps, second.ask(200).steps)
    again = search(LAYER, space.accelerator, mapper="gamma", options={"paper": True}, budget=2_000, space=space,
                   watch=Watch(threads=2))
    assert again.score == whole.score


@EVERY
def test_mappings_are_read_as_the_genomes_that_they_came_from(name):
    breeding, genomes = bred(name)
    breeding.mend(genomes)
    decoding = Decoding(SPACES[name], breeding.active, breeding.sizes[0], breeding.limits)
    batch = decoding.batch(genomes)
    again = decoding.batch(decoding.genomes(batch))
    same = (batch.steps == again.steps).all(axis=(0, 1))
    assert same.mean() >= 0.8


def test_a_search_under_a_limit_goes_on_from_the_mapping_that_it_is_given():
    space = SPACES["edge-s3"]
    whole = search(LAYER, space.accelerator, objective="latency", mapper="gamma", options={"paper": True}, budget=4_000,
                   space=space)
    found = search(LAYER, space.accelerator, mapper="gamma", options={"paper": True}, budget=4_000,
                   objective=Objective.parse("energy", (f"latency<={whole.cost.latency_cycles}",)), space=space,
                   start=Start.of(whole.mapping, LAYER))
    assert found.cost.latency_cycles <= whole.cost.latency_cycles
    assert found.cost.energy_pj < 0.9 * whole.cost.energy_pj


@pytest.mark.parametrize("machine", ["eyeriss", "simba-like", "tpu-like", "nvdla-like", "accel-a", "shidiannao-like"])
def test_genomes_decode_to_mappings_of_the_space_on_machines_of_any_build(machine):
    space = MapSpace(matmul("small", m=24, n=18, k=20), preset(machine), "imperfect")
    result = search(space.operator, space.accelerator, mapper="gamma", options={"paper": True}, budget=1_000,
                    space=space)
    assert result.mapping is not None
