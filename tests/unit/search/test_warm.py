"""Layers of a network that begin from one another: which, in what order, and always with the same result."""

import threading

import pytest

from tilewright.base import InputError
from tilewright.hardware import preset
from tilewright.search import Origin, Source, beginnings, largest_first, rounds, search_network
from tilewright.workload import convolution, edit_distance, form, matmul

MACHINE = preset("eyeriss")


def conv(name, c, k, p, **more):
    return convolution(name, in_channels=c, out_channels=k, kernel=(3, 3), out_size=(p, p), **more)


LAYERS = [conv("a", 8, 16, 28), conv("b", 16, 32, 14), matmul("m", m=16, n=16, k=16), conv("c", 8, 32, 28),
          conv("d", 16, 32, 28), matmul("n", m=16, n=64, k=16)]


def lent(kind, known=None):
    return [[LAYERS[lender.place].name for lender in one.lenders] for one in beginnings(LAYERS, kind, known)]


def scores(result):
    return [(layer.result.score, str(layer.result.mapping), layer.result.start) for layer in result.layers]


def test_distance_counts_the_sizes_that_differ():
    assert edit_distance(LAYERS[0].sizes, LAYERS[3].sizes) == (1, pytest.approx(0.6931, abs=1e-3))
    assert edit_distance(LAYERS[0].sizes, LAYERS[1].sizes)[0] == 4
    assert edit_distance(LAYERS[0].sizes, conv("again", 8, 16, 28, stride=2).sizes) == (0, 0)


def test_forms_tell_apart_what_cannot_lend():
    assert form(LAYERS[0]) == form(LAYERS[1]) == form(conv("s", 8, 16, 28, stride=2))
    assert form(LAYERS[0]) != form(LAYERS[2])
    assert form(matmul("l", m=4, n=8, k=2)) == form(LAYERS[2])


def test_layers_begin_from_the_most_similar_ones_before_them_or_from_the_last():
    assert lent("off") == [[]] * 6
    assert lent("previous") == [[], ["a"], [], ["b"], ["c"], ["m"]]
    assert lent("similar") == [[], ["a"], [], ["a", "b"], ["c", "b", "a"], ["m"]]


def test_searches_wait_for_those_they_begin_from():
    assert rounds(beginnings(LAYERS, "off"), largest_first(LAYERS), 2) == 3
    assert rounds(beginnings(LAYERS, "previous"), largest_first(LAYERS), 2) == 4
    assert rounds(beginnings(LAYERS, "previous"), largest_first(LAYERS), 1) == 6


@pytest.mark.parametrize("kind", ["previous", "similar"])
def test_results_do_not_depend_on_how_many_are_searched_side_by_side(kind):
    one, many = (search_network(LAYERS, MACHINE, budget=400, seed=3, warm_start=kind, workers=n) for n in (1, 4))
    assert scores(one) == scores(many)
    assert one.complete
    assert [tuple(origin.layer for origin in layer.result.start) for layer in one.layers] == [
        tuple(names) for names in lent(kind)]
    assert {origin.kind for layer in one.layers for origin in layer.result.start} == {kind}


def test_off_is_as_if_there_were_no_warm_start():
    plain = search_network(LAYERS, MACHINE, budget=300, seed=3)
    assert scores(plain) == scores(search_network(LAYERS, MACHINE, budget=300, seed=3, warm_start="off"))
    assert all(layer.result.start == () for layer in plain.layers)


def test_known_mappings_are_used_where_they_are_nearer():
    first = search_network(LAYERS, MACHINE, budget=300, seed=3).layers
    origin = Origin("library", "old", 0, "run-7")
    known = {"d": (Source(first[4].result.mapping, LAYERS[4].sizes, origin),)}
    warm = search_network(LAYERS, MACHINE, budget=300, seed=5, warm_start="library", known=known)
    assert [begun.layer for begun in warm.layers[4].result.start] == ["old", "c", "b", "a"]
    assert warm.layers[4].result.start[0] == origin
    assert warm.layers[4].result.score <= first[4].result.score
    assert [begun.kind for begun in warm.layers[1].result.start] == ["similar"]


def test_an_interrupted_network_resumes_to_the_same_end(tmp_path):
    whole = search_network(LAYERS, MACHINE, budget=800, seed=1, warm_start="similar")
    stop = threading.Event()

    class Stop:
        left = 3

        def update(self, progress):
            self.left -= 1
            if self.left == 0:
                stop.set()

    part = search_network(LAYERS, MACHINE, budget=800, seed=1, warm_start="similar", workers=1, stop=stop,
                          progress=Stop(), checkpoint=tmp_path)
    assert part.unfinished
    again = search_network(LAYERS, MACHINE, budget=800, seed=1, warm_start="similar", checkpoint=tmp_path)
    assert scores(again) == scores(whole)


def test_an_unknown_kind_is_named():
    with pytest.raises(InputError, match=r"warm_start: must be one of off, previous, similar, library"):
        search_network(LAYERS, MACHINE, budget=10, warm_start="yes")
