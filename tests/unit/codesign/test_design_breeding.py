"""What children of a design are bred from: mappings of their own kept set first, and those of layers alike."""

from dataclasses import replace

import numpy as np

from tilewright.codesign import DesignProblem, Nests, read_limits
from tilewright.codesign.breeding import Breeder
from tilewright.codesign.pools import MappingPool
from tilewright.cost import DenseModel, HardwareBatch
from tilewright.hardware import find_design_space
from tilewright.workload import UniqueOperator, convolution

LAYERS = [UniqueOperator(convolution(name, in_channels=channels, out_channels=filters, kernel=kernel, out_size=size),
                         1, (name,))
          for name, channels, filters, kernel, size in (
              ("wide", 4, 12, 3, 9), ("deep", 10, 6, 3, 5), ("point", 8, 6, 1, 7))]
KEPT = 0, 21


def test_children_are_bred_from_their_own_kept_set_and_from_layers_alike() -> None:
    asked = DesignProblem.of([(LAYERS, 1.0)], find_design_space("edge-s2"), read_limits("area=0.03mm2"),
                             objective="edp")
    breeder, rng = Breeder(asked), np.random.default_rng(1)
    chosen = {key: {"SG": 4096.0, "SL": 256.0, "PEs": 24.0}[key[0]] for key in asked.space.ranges}
    machine, prices = asked.machine(chosen), breeder.pooling.prices({k: np.array([v]) for k, v in chosen.items()})
    pools: list[MappingPool] = [
        breeder.pooling.pool(layer, Nests.joined(*[Nests.of(asked.map_space(layer, machine, kept).fitting(
            rng, 60).relaid(asked.layout(layer, kept)), kept) for kept in KEPT]), HardwareBatch(base=machine), prices)
        for layer in range(len(LAYERS))]
    lent, bred = {0: 0, 1: 0, 2: 0}, 0
    for _ in range(12):
        for each in breeder.wanted(pools, [5] * len(LAYERS), chosen, (1.0, 1.0), rng):
            pool, parents = pools[each.layer], each.parents
            assert parents is not None
            sizes = asked.layers[each.layer].sizes
            known = {(steps.tobytes(), ranks.tobytes(), kept) for steps, ranks, kept in zip(
                pool.steps, pool.ranks, pool.kept.tolist(), strict=True)}
            strange = [at for at in range(len(parents)) if (
                parents.steps[at].tobytes(), parents.ranks[at].tobytes(), int(parents.kept[at])) not in known]
            lent[each.layer] += len(strange)
            assert (parents.kept[strange] == each.kept).all()
            assert (parents.steps <= np.array([*sizes.values()])).all()
            own = int((pool.kept == each.kept).sum())
            assert (parents.kept[:min(own, 24)] == each.kept).all()
            assert not len(breeder.children(replace(each, cut=0.0), machine, machine, (1.0, 1.0), rng)[1])
            kept, batch = breeder.children(replace(each, cut=np.inf), machine, machine, (1.0, 1.0), rng)
            nests = Nests.of(batch, kept)
            assert len(nests) == each.count
            _, energy, excess = nests.costs(asked, each.layer, HardwareBatch(base=machine))
            for at in np.flatnonzero(excess == 0).tolist():
                [(_, batch)] = nests.take([at]).parts(asked, each.layer)
                told = DenseModel(asked.layers[each.layer], machine).cost(batch.mapping(0, sizes))
                np.testing.assert_allclose(energy[at], told.energy_pj, rtol=1e-9)
                bred += 1
    assert bred > 50
    assert lent[0] > 0 < lent[1]
    assert lent[2] == 0, "a layer of other dimensions lends nothing: ranks of both would not mix"
