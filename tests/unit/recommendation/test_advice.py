"""Advice without learning: exact, above the bound, labelled again the same, scored against brute force."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.api import array
from tilewright.base import InputError
from tilewright.cost import (
    PartitionEffects,
    ReconfigurableArray,
    SystolicProduct,
    partitioned_counts,
    partitioned_energy,
    systolic_runtime,
)
from tilewright.recommendation import (
    SAMPLERS,
    AdviserCore,
    Choices,
    LabelledProducts,
    ProductSample,
    advise,
    best_fixed,
    confusions,
    cycles_on_cells,
    label,
    regrets,
    score,
)
from tilewright.workload import unique_operators, zoo

SMALL = Choices(ReconfigurableArray(256), "published")


def brute(choices, product):
    """Return the least cycles of all configurations, from the runtime of a single array on the largest block."""
    found = []
    for one in choices.configurations:
        m, n, k = product
        sizes = {"m": m, "n": n, "k": k}
        down, across = {"os": "mn", "ws": "kn", "is": "km"}[one.dataflow]
        sizes[down], sizes[across] = -(-sizes[down] // one.down), -(-sizes[across] // one.across)
        found.append(int(systolic_runtime(*sizes.values(), one.rows, one.columns, one.dataflow)))
    return np.array(found)


@pytest.mark.parametrize("sampler", list(SAMPLERS)[:2])
def test_labels_are_the_least_of_all_configurations_each_counted_alone(sampler):
    known = label(SMALL, ProductSample(sampler, 40, 1))
    for product, each, cycles, equals in zip(known.products, known.classes, known.cycles, known.equals, strict=True):
        found = brute(SMALL, product.tolist())
        assert found.min() == cycles == found[each] and (found == cycles).sum() == equals
        fewest = min(SMALL.configurations[at].partitions for at in np.flatnonzero(found == cycles))
        assert SMALL.configurations[each].partitions == fewest


def test_advice_is_never_below_the_bound_nor_outside_of_its_space():
    choices = Choices(ReconfigurableArray(2**12), "realisable")
    rng = np.random.default_rng(2)
    products = np.exp(rng.random((60, 3)) * np.log(60_000)).astype(np.int64) + 1
    for one in advise(products, choices):
        assert one.cost == one.cycles == one.best_cost >= one.bound and one.regret == 0
        assert one.configuration.rows <= 64 and one.configuration.columns <= 64
        assert (one.source, one.confidence) == ("exact", 1.0)


@pytest.mark.parametrize("objective", ["energy", "edp"])
def test_advice_by_energy_is_the_least_of_all_configurations_and_what_array_tells(objective):
    """Every configuration is counted by itself, from counts of its own and the energy that they make."""
    machine = ReconfigurableArray(256, power_w=1.0)
    choices = Choices(machine, "published", objective=objective)
    products = np.exp(np.random.default_rng(11).random((20, 3)) * np.log(4_000)).astype(np.int64)
    told, faster = advise(products, choices), advise(products, Choices(machine, "published"))
    for product, one, soon in zip(products, told, faster, strict=True):
        found = []
        for each in choices.configurations:
            counts = partitioned_counts(product[None], (each,), machine)
            spent = partitioned_energy(counts, machine).total_pj[0, 0]
            found.append(spent if objective == "energy" else spent * counts.cycles[0, 0])
        assert one.cost == one.best_cost == pytest.approx(min(found), rel=1e-12)
        assert 0 < one.bound <= one.cost and one.regret == 0 and one.equals >= 1
        assert one.cycles >= soon.cycles and one.energy_pj <= soon.energy_pj * (1 + 1e-12)
        assert one.cost == pytest.approx(one.energy_pj * (1 if objective == "energy" else one.cycles))
    for product, one in list(zip(products.tolist(), told, strict=True))[:5]:
        ranked = array("256", [tuple(product)], power=1.0, space="published", objective=objective).products[0]
        best = ranked.best
        assert best.configuration == one.configuration and best.figure(objective) == pytest.approx(one.cost)


EFFECTS = [PartitionEffects(), PartitionEffects(bypass=True, summation="banks"),
           PartitionEffects(summation="tree", ports=True, collation=True, dram="replicated")]


@pytest.mark.parametrize("space", ["published", "realisable", "planar"])
@pytest.mark.parametrize("effects", EFFECTS)
def test_no_configuration_takes_less_than_the_smallest_of_its_family(space, effects):
    """The least of a space is that of all its configurations where runs are stall-free, and below it elsewhere."""
    choices = Choices(ReconfigurableArray(2**9), space, effects)
    products = np.exp(np.random.default_rng(7).random((200, 3)) * np.log(3_000)).astype(np.int64)
    best, least = choices.best(products).cycles, choices.least(products)
    assert (least >= choices.bound(products)).all()
    if effects == EFFECTS[0]:
        assert np.array_equal(least, best)
    else:
        assert (least <= best).all() and (least < best).any()


def test_equal_layers_of_a_network_are_advised_once_and_count_as_often_as_they_run():
    advice, graph = tw.recommend("resnet18", arch="256"), zoo.load("resnet18")
    assert list(advice.layers) == [each.names[0] for each in unique_operators(graph)]
    alone = [int(min(brute(SMALL, (one.m, one.n, one.k)))) * one.count * node.count for node in graph.mac_nodes
             for one in [SystolicProduct.of(node.operator)]]
    assert advice.cost == sum(alone) and set(advice.configuration) == {node.name for node in graph.mac_nodes}


def test_scores_of_an_adviser_are_those_of_brute_force():
    known = label(SMALL, ProductSample("log-uniform", 60, 3))
    fixed = best_fixed(SMALL, known)
    told = score("fixed", SMALL, known, np.full(60, fixed))
    shares = [known.cycles[at] / brute(SMALL, known.products[at].tolist())[fixed] for at in range(60)]
    assert told.same_cycles == pytest.approx(np.mean([share == 1 for share in shares]))
    assert told.mean_share == pytest.approx(np.exp(np.mean(np.log(shares))))
    assert told.worst_share == pytest.approx(min(shares)) and told.live == 1
    assert told.same_class == (known.classes == fixed).mean() <= told.same_cycles
    perfect = score("labels", SMALL, known, known.classes)
    assert (perfect.same_class, perfect.same_cycles, perfect.mean_share) == (1, 1, 1)
    others = [np.log(known.cycles / SMALL.all_cycles(known.products, [each])[:, 0]).mean() for each in known.live]
    assert np.log(told.mean_share) == pytest.approx(max(others))


def test_confusions_and_regrets_are_those_of_brute_force():
    known = label(SMALL, ProductSample("log-uniform", 60, 3))
    told = np.random.default_rng(0).choice(known.live[:3], 60)
    extra = np.array([brute(SMALL, product.tolist())[one] / cycles - 1 for product, one, cycles in zip(
        known.products, told, known.cycles, strict=True)])
    assert regrets(SMALL, known, told) == pytest.approx(extra)
    found = confusions(SMALL, known, told, regrets(SMALL, known, told))
    for one in found:
        these = [at for at in range(60) if extra[at] > 0 and (one.label, one.told) == tuple(
            str(SMALL.configurations[each[at]]) for each in (known.classes, told))]
        assert one.share == len(these) / 60 and one.extra == pytest.approx(extra[these].mean())
    assert sum(one.share * one.extra for one in found) == pytest.approx(extra.mean())
    assert [one.share * one.extra for one in found] == sorted((one.share * one.extra for one in found), reverse=True)
    assert confusions(SMALL, known, known.classes, regrets(SMALL, known, known.classes)) == ()


def test_marks_tell_arrays_spaces_and_rules_apart_but_not_names():
    marks = {choices.mark for choices in (
        SMALL, Choices(SMALL.array), Choices(ReconfigurableArray(512), "published"),
        Choices(SMALL.array, "published", PartitionEffects(bypass=True)),
        Choices(SMALL.array, "published", ties=("is", "partitions")))}
    assert len(marks) == 5
    assert Choices(ReconfigurableArray(256, name="other"), "published").mark == SMALL.mark


def test_labels_come_back_from_parquet_and_a_stopped_labelling_goes_on(tmp_path, monkeypatch):
    pytest.importorskip("polars")
    from tilewright.recommendation import labels

    monkeypatch.setattr(labels, "PIECE", 20)
    drawn = ProductSample("uniform", 50, 4)
    whole = label(SMALL, drawn)
    told = []

    def stop(ready):
        told.append(ready)
        if ready == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        label(SMALL, drawn, tmp_path / "pieces", stop)
    assert sorted(file.name for file in (tmp_path / "pieces").iterdir()) == ["00000.parquet", "00001.parquet"]
    drawn_later, real = [], SAMPLERS.get("uniform")
    monkeypatch.setitem(SAMPLERS._members, "uniform", lambda count, rng: drawn_later.append(count) or real(count, rng))
    later = label(SMALL, drawn, tmp_path / "pieces")
    assert drawn_later == [10]
    later.save(tmp_path / "all.parquet")
    read = LabelledProducts.load(tmp_path / "all.parquet")
    for name in ("products", "classes", "cycles", "equals"):
        assert np.array_equal(getattr(read, name), getattr(whole, name))
    assert read.about == whole.about == drawn.about(SMALL)
    with pytest.raises(InputError, match="same labels"):
        label(SMALL, ProductSample("uniform", 50, 5), tmp_path / "pieces")
    (tmp_path / "other.parquet").write_text("no labels")
    with pytest.raises(InputError, match=r"other\.parquet"):
        LabelledProducts.load(tmp_path / "other.parquet")


def test_dense_layers_on_units_of_multipliers():
    """Two units of 256 hold 300 inputs in two passes of 64 outputs each; by hand, as in the facts of figure 9."""
    assert AdviserCore(512).cycles([300, 128, 858]) == (2 * 64 + 9) + (429 + 9) + 1 == 576
    assert AdviserCore(512).cycles([256, 128, 858]) == 576 - 64
    assert AdviserCore(64, 1).cycles([65, 10]) == 2 * 10 + 7 + 1
    assert cycles_on_cells([16, 16], 256) == brute(SMALL, (1, 16, 16)).min()
    for wrong in (lambda: AdviserCore(7), lambda: AdviserCore(8).cycles([5]), lambda: AdviserCore(8).cycles([0, 5])):
        with pytest.raises(InputError):
            wrong()
