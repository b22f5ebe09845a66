"""Pools of mappings: what is looked up of a machine is what the model says of it, and nothing better is thrown away."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codesign import DesignProblem, Nests, Session, design, read_limits
from tilewright.codesign.auto import Auto
from tilewright.codesign.pools import MappingPool, Pooling
from tilewright.codesign.screening import grown, taken, values_at
from tilewright.cost import HardwareBatch
from tilewright.hardware import DesignSpace, find_design_space
from tilewright.jobs import Runner
from tilewright.workload import UniqueOperator, convolution, matmul

LAYERS = [UniqueOperator(matmul("product", 12, 8, 10), 2, ("product",)),
          UniqueOperator(convolution("window", in_channels=4, out_channels=6, kernel=3, out_size=5), 1, ("window",))]


def problem(objective: str, name: str = "edge-s2") -> DesignProblem:
    space = find_design_space(name.removesuffix(", wide outputs"))
    if name.endswith(", wide outputs"):  # in memories of 8-bit words
        space = replace(space, accelerator=replace(space.accelerator, word_bits=(
            ("inputs", 8), ("weights", 8), ("outputs", 32))))
    return DesignProblem.of([(LAYERS, 1.0)], space, read_limits("area=0.03mm2"), objective=objective)


@pytest.mark.parametrize(("name", "objective"), [
    *((name, objective) for name in ("edge-s1", "edge-s2") for objective in ("latency", "edp")),
    ("edge-s2, wide outputs", "edp")])
def test_what_is_looked_up_is_what_the_model_says_on_other_machines(objective: str, name: str) -> None:
    asked, rng = problem(objective, name), np.random.default_rng(1)
    pooling = Pooling(asked)
    most = np.array([{"SG": 4096.0, "SL": 256.0, "PEs": 24.0}[name] for name, _ in asked.space.ranges])
    places = np.floor(most ** rng.random((40, len(most)))).astype(np.int64)
    chosen = values_at(asked, places)
    first = {key: float(column[0]) for key, column in chosen.items()} | {
        key: max(column.max(), 2.0) for key, column in chosen.items()}
    machine, prices = asked.machine(first), pooling.prices({key: np.array([value]) for key, value in first.items()})
    hardware = HardwareBatch(base=machine)
    pools = [pooling.pool(layer, Nests.joined(*[Nests.of(asked.map_space(layer, machine, kept).fitting(rng, 30).relaid(
        asked.layout(layer, kept)), kept) for kept in (0, 21)]), hardware, prices) for layer in range(len(LAYERS))]
    rows, merits = pooling.look_up(pools, chosen, [(1.0, 0.0)])
    mapped = np.flatnonzero(np.isfinite(merits))
    assert 3 < len(mapped) < 40
    for at in mapped.tolist():
        own = asked.machine({key: float(column[at]) for key, column in chosen.items()})
        one = HardwareBatch(base=own)
        fronts = [pooling.front(layer, pool, one, rows[layer, [at]]) for layer, pool in enumerate(pools)]
        told = asked.total(np.array([front.latency[0] for front in fronts]),
                           np.array([front.energy[0] for front in fronts]), own.area_um2, one)
        slack = 0.005 if objective == "edp" else 0.0  # of energies of networks
        assert merits[at] == pytest.approx(asked.value(told), rel=slack)
    none = np.setdiff1d(np.arange(40), mapped)[0]
    small = HardwareBatch(base=asked.machine({key: float(column[none]) for key, column in chosen.items()}))
    assert None in [pooling.front(layer, pool, small, np.arange(len(pool))) for layer, pool in enumerate(pools)]


def test_pools_keep_what_nothing_beats_and_only_that() -> None:
    rng = np.random.default_rng(2)

    def some(count: int) -> MappingPool:
        figures = rng.integers(0, 6, (count, 4)).astype(np.float64)
        nests = np.zeros((count, 1, 1), np.int32), np.zeros((count, 1, 1), np.int8), np.zeros(count, np.int64)
        return MappingPool(*nests, figures[:, :2], figures[:, 2], figures[:, 3], np.zeros((count, 0)))

    prices, pool, every = np.zeros((1, 1)), some(0), []
    for _ in range(5):
        more = some(30)
        every.append(np.column_stack([more.needs, more.latency, more.rest]))
        pool = pool.joined(more).unbeaten(prices, len(pool))
    kept = np.column_stack([pool.needs, pool.latency, pool.rest])
    rows = np.unique(np.concatenate(every), axis=0)
    beaten = [(((rows <= row).all(axis=1)) & (rows < row).any(axis=1)).any() for row in rows]
    assert sorted(kept.tolist()) == sorted(rows[~np.array(beaten)].tolist())


def test_a_number_grows_to_the_last_value_within_the_limits() -> None:
    asked, rng = problem("latency"), np.random.default_rng(3)
    low = np.floor(np.array([3000.0, 40.0, 60.0]) * rng.random((50, 3))).astype(np.int64)
    low = low[taken(asked, low) <= 1]
    assert len(low) > 20
    for at, one in enumerate(asked.space.ranges.values()):
        made = grown(asked, low, np.full(len(low), len(one) - 1), np.full(len(low), at))
        more = made.copy()
        more[:, at] += 1
        assert (taken(asked, made) <= 1).all()
        assert (taken(asked, more) > 1).all()
        assert (np.delete(made, at, axis=1) == np.delete(low, at, axis=1)).all()


def test_machines_within_reach_that_are_kept_are_those_found_anew() -> None:
    asked, rng = problem("latency"), np.random.default_rng(4)

    def auto() -> Auto:
        return Auto(Session(asked, 100, None, 0, Runner()), {})

    kept = auto()
    places = kept.low + np.floor(np.array([3000.0, 40.0, 60.0]) * rng.random((40, 3))).astype(np.int64)
    assert 5 < (taken(asked, places) <= 1).sum() < 38
    kept.within_reach(places[:30], places[10:20])
    again, anew = (one.within_reach(places[:20], places) for one in (kept, auto()))
    assert np.array_equal(again, anew)
    assert (taken(asked, anew) <= 1).all() and len(anew) > 40


def test_mappings_of_one_machine_serve_another_of_fewer_lanes_and_smaller_memories() -> None:
    asked = DesignProblem.of([(LAYERS, 1.0)], DesignSpace.of(find_design_space("edge-s1").accelerator),
                             read_limits("elements=9,bytes=2KiB"))
    found = design(asked, samples=200, runner=Runner(workers=1))
    assert found.machine.compute_instances <= 9
    assert found.score < np.inf


def test_problems_of_the_same_layers_and_space_share_what_is_made_of_them() -> None:
    one, other = problem("latency"), problem("edp")
    assert one.model(0, one.layout(0, 0)) is other.model(0, other.layout(0, 0))
    fewer = replace(one, layers=one.layers[1:], weights=one.weights[1:])
    assert fewer.model(0, fewer.layout(0, 0)).operator == one.layers[1]
