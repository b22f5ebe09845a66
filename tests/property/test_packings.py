"""Placements of random buffers: every method's hold, and the exact ones are the least there are."""

import threading
from itertools import permutations

import numpy as np
import pytest

from tilewright.packing import PACKERS, Buffers, PackingSession, pack, verify_packing
from tilewright.packing.methods import _Search


def drawn(rng, most):
    """Return random buffers, some aligned, some with gaps."""
    n = int(rng.integers(1, most + 1))
    lower = rng.integers(0, 8, n)
    upper = lower + rng.integers(1, 6, n)
    alignment = rng.choice([1, 1, 1, 2, 3, 4], n) if rng.random() < 0.4 else np.ones(n)
    gaps = tuple(((int(first) + 1, int(last) - 1),) if last - first > 3 and rng.random() < 0.3 else ()
                 for first, last in zip(lower, upper, strict=True))
    return Buffers(tuple(map(str, range(n))), lower, upper, rng.integers(1, rng.choice([3, 10]), n), alignment, gaps)


def least_height(buffers):
    """Return the least height over all orders, each buffer lying on those before it that live beside it."""
    n = len(buffers)
    times = [{t for first, last in buffers.spans(i) for t in range(first, last)} for i in range(n)]
    beside = [[bool(times[i] & times[k]) for k in range(n)] for i in range(n)]
    size, alignment = buffers.size.tolist(), buffers.alignment.tolist()
    best = sum(size) + sum(alignment)
    for order in permutations(range(n)):
        end = [0] * n
        for place, i in enumerate(order):
            below = max((end[k] for k in order[:place] if beside[i][k]), default=0)
            end[i] = -(-below // alignment[i]) * alignment[i] + size[i]
            if end[i] >= best:
                break
        best = min(best, max(end))
    return best


def check(seed, most, methods):
    rng = np.random.default_rng(seed)
    buffers = drawn(rng, most)
    least = least_height(buffers)
    for method in methods:
        found = pack(buffers, method=method)
        assert verify_packing(buffers, found.offsets, found.height) == [], (seed, method)
        assert buffers.live_peak <= found.bound <= least <= found.height, (seed, method)
        if method in ("exact", "cp-sat"):
            assert found.proven and found.height == least, (seed, method)
    session = PackingSession(buffers, None, None, threading.Event())
    _Search(session).run()  # without what heuristics find
    assert session.height == session.bound and session.height * session.unit == least, seed
    tight = pack(buffers, least)
    assert verify_packing(buffers, tight.offsets, least) == [], seed
    if least > buffers.size.max():
        none = pack(buffers, least - 1)
        assert none.offsets is None and none.proven, seed
    return least > buffers.live_peak


def test_an_alignment_that_divides_all_sizes_holds_beside_one_that_does_not():
    buffers = Buffers(tuple("01234"), np.array([3, 2, 3, 3, 6]), np.array([4, 4, 7, 8, 9]), np.array([4, 4, 6, 8, 4]),
                      np.array([1, 2, 3, 3, 2]), gaps=((), (), ((4, 6),), ((4, 7),), ()))
    for method in (*QUICK, "hill-climb"):
        found = pack(buffers, method=method)
        assert verify_packing(buffers, found.offsets, found.height) == [], method


def with_pairs(rng, equal):
    """Return random buffers of which some may take the place of one or two that live until they are made."""
    n, width = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    lower = np.sort(rng.integers(0, 5, n))
    upper = lower + rng.integers(1, 4, n)
    size = np.full(n, width) if equal else rng.integers(1, 4, n)
    inplace = [tuple(str(k) for k in range(i) if lower[k] < lower[i] < upper[k] <= upper[i] and rng.random() < 0.7)
               for i in range(n)]
    return Buffers(tuple(map(str, range(n))), lower, upper, size, rng.choice([1, 1, 2, 3], n), inplace=inplace)


def least_in_place(buffers):
    """Return the least height by trying all addresses: pairs that may share one begin at the same."""
    n, times = len(buffers), [set(range(lo, up)) for lo, up in zip(buffers.lower, buffers.upper, strict=True)]

    def clash(at, i, k):
        pair = buffers.ids[i] in buffers.inplace[k] or buffers.ids[k] in buffers.inplace[i]
        apart = at[i] >= at[k] + buffers.size[k] or at[k] >= at[i] + buffers.size[i]
        return times[i] & times[k] and not apart and not (pair and at[i] == at[k])

    def fits(at, height):
        i = len(at)
        return i == n or any(not any(clash((*at, low), i, k) for k in range(i)) and fits((*at, low), height) for low in
                             range(0, height - int(buffers.size[i]) + 1, int(buffers.alignment[i])))

    return next(height for height in range(1, 99) if fits((), height))


@pytest.mark.parametrize("count", [16, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("equal", [True, False])
def test_buffers_in_the_place_of_others_are_placed_as_low_as_can_be(equal, count, monkeypatch):
    rng, better, above = np.random.default_rng(3), 0, 0
    for _ in range(count):
        buffers = with_pairs(rng, equal)
        least = least_in_place(buffers)
        monkeypatch.setattr("tilewright.packing.session.MOST_CHOICES", 720)
        found = pack(buffers, seconds=None)  # the first also waits for what is compiled
        assert verify_packing(buffers, found.offsets, found.height) == []
        assert found.bound <= least <= found.height and (not found.proven or found.height == least)
        if equal:
            assert found.proven
            tight = pack(buffers, least - 1) if least > buffers.size.max() else found
            assert tight is found or (tight.offsets is None and tight.proven and tight.bound == least)
        monkeypatch.setattr("tilewright.packing.session.MOST_CHOICES", 2)
        some = pack(buffers)
        assert verify_packing(buffers, some.offsets, some.height) == [] and some.bound <= least
        better += least < least_height(buffers)
        above += found.height > least
    assert better > count / 8
    assert above == 0 if equal else 0 < above < count / 8  # the larger of two is kept free for both lives


QUICK = [name for name in PACKERS if name != "cp-sat"]


def test_exact_placements_of_few_buffers_are_the_least():
    above = sum(check(seed, 6, QUICK) for seed in range(80))
    assert above > 1  # the live peak alone would not do


def test_constraint_programming_agrees():
    pytest.importorskip("ortools")
    for seed in range(1_000, 1_010):
        check(seed, 5, ["cp-sat"])


def test_larger_placements_hold():
    rng = np.random.default_rng(0)
    for _ in range(10):
        buffers = drawn(rng, 60)
        heights = {}
        for method in QUICK:
            found = pack(buffers, method=method, seconds=0.2)
            assert verify_packing(buffers, found.offsets, found.height) == []
            heights[method] = found.height
        assert heights["exact"] == min(heights.values()) and heights["hill-climb"] <= heights["greedy-by-size"]


@pytest.mark.slow
def test_exact_placements_of_ten_thousand_are_the_least():
    methods = ["cp-sat", *QUICK]
    pytest.importorskip("ortools")
    for seed in range(2_000, 12_000):
        check(seed, 6, methods if seed % 10 == 0 else QUICK)
