"""The front of a network against all combinations: exact where small, within its tolerance where not."""

from itertools import combinations_with_replacement, product
from math import prod

import numpy as np
import pytest

from tilewright.search import first_of_front, network_front


def layers_of(seed, layers, most, runs):
    """Fronts of layers; what is equal, on one line or dominated is among them."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(layers):
        count = int(rng.integers(1, most + 1))
        cycles, energy = rng.integers(1, 30, count), rng.integers(1, 30, count)
        values = np.stack([cycles, energy * rng.choice([1.0, 0.37, 2.5e6])], axis=1).astype(float)
        found.append((int(rng.integers(1, runs + 1)), values))
    return found


def every(layers, beside=(0.0, 0.0)):
    """All combinations, one by one: for each layer a multiset of as many of its points as it runs."""
    ways = [[values[list(chosen)].sum(axis=0) for chosen in combinations_with_replacement(range(len(values)), count)]
            for count, values in layers]
    assert prod(map(len, ways)) < 200_000
    return np.array([np.sum(one, axis=0) for one in product(*ways)]) + np.array(beside)


@pytest.mark.parametrize("seed", range(25))
def test_it_is_exact_where_it_is_small(seed):
    layers, beside = layers_of(seed, 3, 4, 4), (7.0, 11.0)
    found, sums = network_front(layers, beside), every(layers, beside)
    assert found.tolerance == 0
    assert found.values == pytest.approx(sums[first_of_front(np.round(sums, 6))])
    assert (np.diff(found.values[:, 0]) > 0).all() and (np.diff(found.values[:, 1]) < 0).all()


@pytest.mark.parametrize("seed", range(25))
def test_each_point_is_the_sum_of_what_it_chooses(seed):
    layers = layers_of(seed, 4, 6, 9)
    found = network_front(layers, (1.0, 2.0), tolerance=0.05, most=4)
    for (cycles, energy), chosen in zip(found.values, found.chosen, strict=True):
        assert [sum(times for _, times in some) for some in chosen] == [count for count, _ in layers]
        whole = sum(times * layers[place][1][row] for place, some in enumerate(chosen) for row, times in some)
        assert (cycles, energy) == pytest.approx((1.0 + whole[0], 2.0 + whole[1]))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize(("tolerance", "dense"), [(0.3, 0), (0.3, 1 << 18), (0.02, 0)])
def test_every_combination_is_matched_within_the_tolerance(seed, tolerance, dense, monkeypatch):
    monkeypatch.setattr("tilewright.search.merged_fronts.DENSE", dense)
    monkeypatch.setattr("tilewright.search.merged_fronts.BLOCK", 40)
    layers = layers_of(seed, 3, 4, 4)
    found, sums = network_front(layers, (3.0, 0.0), tolerance=tolerance, most=2), every(layers, (3.0, 0.0))
    assert found.tolerance <= tolerance * (1 + 1e-12)
    reach = found.values[None, :, 0] <= (1 + found.tolerance) * sums[:, None, 0] * (1 + 1e-12)
    frugal = found.values[None, :, 1] <= sums[:, None, 1] * (1 + 1e-12)
    assert (reach & frugal).any(axis=1).all()


def test_covers_make_fronts_small_and_say_what_they_cost():
    rng = np.random.default_rng(0)
    cycles = np.sort(rng.uniform(100, 200, (6, 40)), axis=1)
    layers = [(3, np.stack([row, 1e6 / row], axis=1)) for row in cycles]
    wide, narrow = network_front(layers, tolerance=0.01, most=50), network_front(layers, tolerance=0.001, most=50)
    assert 0 < narrow.tolerance <= 0.001 < wide.tolerance <= 0.01
    assert 50 < len(wide.values) < len(narrow.values) <= 4_000


def test_what_one_part_is_off_the_whole_is():
    """A cover of one layer's front, and another layer of one fast mapping, whose own front is exact."""
    layers = [(1, np.array([[100.0, 9.0], [104.0, 5.0], [109.0, 1.0], [200.0, 0.5]])), (1, np.array([[1.0, 1.0]]))]
    found = network_front(layers, tolerance=0.6, most=3)
    assert len(found.values) < 4 and found.values[0, 0] <= 101 * (1 + found.tolerance)
    assert found.tolerance >= 0.03


def test_layers_that_run_often_are_no_matter():
    (one, two), runs = (np.array([2.0, 9.0]), np.array([5.0, 1.0])), 2_000
    found = network_front([(runs, np.stack([one, two]))], tolerance=1e-3)
    assert found.tolerance <= 0.01 and found.values[0, 0] <= 2.0 * runs * (1 + found.tolerance)
    assert found.chosen[-1] == (((1, runs),),) and found.values[-1].tolist() == [5.0 * runs, 1.0 * runs]
