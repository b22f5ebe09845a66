"""Densities: read, given to operators and networks, and the chance that words are all zero."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.mapping import Zeros
from tilewright.workload import Graph, MacNode, graph_with_densities, matmul, with_densities


def test_words_are_all_zero_with_the_hypergeometric_chance():
    zeros = Zeros(20, 0.25)
    for count in range(21):
        wanted = comb(20 - count, 5) / comb(20, 5)
        assert zeros.empty(np.array([float(count)]))[0] == pytest.approx(wanted, rel=1e-9, abs=1e-18)


def test_a_density_between_whole_numbers_of_words_is_met_in_the_mean():
    between = Zeros(10, 0.25)
    assert 1 - between.empty(np.array([1.0]))[0] == pytest.approx(0.25)
    assert between.empty(np.array([3.0]))[0] == pytest.approx((comb(7, 2) / comb(10, 2) + comb(7, 3) / comb(10, 3)) / 2)


def test_structured_words_lie_in_different_blocks():
    assert Zeros(64, 0.5, (2, 4)).empty(np.array([3.0]))[0] == pytest.approx(0.125)
    assert Zeros(64, 1.0).empty(np.array([0.0, 1.0, 5.0])).tolist() == [1.0, 0.0, 0.0]


def test_even_words_hold_their_share_rounded_up_or_down():
    even = Zeros(64, 0.4, even=True)
    assert even.empty(np.arange(5.0)).tolist() == pytest.approx([1.0, 0.6, 0.2, 0.0, 0.0], abs=1e-12)
    assert Zeros(64, 0.1, even=True).empty(np.array([9.0, 10.0, 1e9])).tolist() == pytest.approx([0.1, 0, 0], abs=1e-9)
    assert Zeros(64, 1.0, even=True).empty(np.array([0.0, 1.0])).tolist() == [1.0, 0.0]


def test_densities_are_given_by_name_or_role():
    operator = with_densities(matmul("m", m=4, n=4, k=4), {"weights": "2:4", "i": 0.3})
    assert [(t.density, t.structure) for t in operator.tensors] == [(0.3, None), (0.5, (2, 4)), (1.0, None)]
    even = with_densities(operator, {"weights": "even:0.25"}).tensor("W")
    assert (even.density, even.structure, even.even) == (0.25, None, True)
    with pytest.raises(InputError, match=r"m\.W\.even: must not be given with a structure"):
        replace(operator, tensors=tuple(replace(t, even=t.name == "W") for t in operator.tensors))


@pytest.mark.parametrize("given", [0, -0.5, 1.5, "3:2", "0:4", "2:0", "half", "1:2:3", float("nan"), "even:", "even:2",
                                   "even:2:4"])
def test_densities_out_of_range_are_refused(given):
    with pytest.raises(InputError, match="above 0 and at most 1"):
        with_densities(matmul("m", m=4, n=4, k=4), {"W": given})


def test_a_network_has_densities_and_says_so():
    graph = Graph("g", (MacNode(matmul("m", m=4, n=4, k=4)),), "given")
    found = graph_with_densities(graph, {"Weights": 0.5})
    assert found.mac_nodes[0].operator.tensor("W").density == 0.5
    assert found.notes == ("densities: Weights 0.5",)
    assert graph_with_densities(graph, {}) is graph
    with pytest.raises(InputError, match="must name a role or a tensor: inputs, weights, outputs, I, O, W"):
        graph_with_densities(graph, {"filters": 0.5})
    with pytest.raises(InputError, match="must give densities by role or tensor"):
        graph_with_densities(graph, "I=0.5")
