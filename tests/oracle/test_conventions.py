"""Other tools' figures, replayed: Timeloop's of random mapped nests, and ours once more by the same walk.

The nests are those of `tilewright.validation.timeloop_random`.
"""

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.cost.reference import ASSUMPTIONS, KINDS, TILEWRIGHT, TIMELOOP, partings, replay, walk
from tilewright.validation import random_case, timeloop_cases
from tilewright.validation.timeloop_random import FURTHER
from tilewright.workload import matmul

CASES = {case.id: (case, theirs) for case, theirs in timeloop_cases()}
FURTHER_CASES = {case.id: (case, theirs) for case, theirs in timeloop_cases(FURTHER)}
DIRECTED = 5
"""The last of them, made for what no drawn one reaches: three or four ragged loops over a dimension, links twice."""
WALKED = TIMELOOP.having("extrapolation", False).having("neighbour_links", False).having("copied_lanes", False)
"""Timeloop with neighbour links and extrapolation, in time and space, off."""


def small_first(names, most_macs):
    """Return the names as parameters; nests of more products, which take longer and reach nothing else, are slow."""
    return [pytest.param(name, marks=[pytest.mark.slow] if CASES[name][0].operator.macs > most_macs else [])
            for name in names]


def counted(case, conventions):
    found = replay(case.operator, case.accelerator, case.mapping, conventions)
    return found, {f"{memory}.{tensor}": [c.reads, c.fills, c.updates, c.instances, c.capacity_words]
                   for (memory, tensor), c in found.counts.items()}


# `tests/contract/test_accuracy.py` compares the same figures of all of them, and of all further ones.
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if at % 15 else [])
                                  for at, name in enumerate(CASES)])
def test_timeloops_counts_cycles_and_energy(name):
    case, theirs = CASES[name]
    found, counts = counted(case, TIMELOOP)
    assert counts == theirs["counts"]
    assert found.compute_cycles == theirs["compute_cycles"]
    assert found.cycles == theirs["cycles"]
    assert found.macs == theirs.get("macs", case.operator.macs)
    assert found.energy_pj == pytest.approx(theirs["energy_pj"], rel=1e-9)


def check_further(name):
    case, theirs = FURTHER_CASES[name]
    found, counts = counted(case, TIMELOOP)
    assert {place: counts[place] for place in theirs["counts"]} == theirs["counts"]
    assert not any(sum(words[:3]) for place, words in counts.items() if place not in theirs["counts"])
    assert (found.compute_cycles, found.cycles, found.macs) == (
        theirs["compute_cycles"], theirs["cycles"], theirs["macs"])
    assert found.energy_pj == pytest.approx(theirs["energy_pj"], rel=0, abs=0.005 * (4 * len(counts) + 1))


@pytest.mark.parametrize("name", [*list(FURTHER_CASES)[:-DIRECTED:60], *list(FURTHER_CASES)[-DIRECTED:]])
def test_timeloops_figures_of_further_nests(name):
    check_further(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FURTHER_CASES)
def test_timeloops_figures_of_all_further_nests(name):
    check_further(name)


RAGGED = [name for name, (_, theirs) in CASES.items() if "walked" in theirs]


@pytest.mark.parametrize("name", small_first(RAGGED, 1_400))
def test_timeloops_counts_of_ragged_nests_walked_in_full(name):
    case, theirs = CASES[name]
    found, counts = counted(case, WALKED)
    assert counts == theirs["walked"]["counts"]
    assert found.compute_cycles == theirs["walked"]["compute_cycles"]
    assert found.cycles == theirs["walked"]["cycles"]


@pytest.mark.parametrize("name", small_first(CASES, 600))
def test_the_same_walk_without_assumptions_is_the_oracle(name):
    case, _ = CASES[name]
    agrees(case.operator, case.accelerator, case.mapping)


@pytest.mark.sample(15)
@pytest.mark.parametrize("seed", range(40))
def test_the_same_walk_without_assumptions_is_the_oracle_on_random_cases(seed):
    agrees(*random_case(np.random.default_rng([2026, seed]), most_macs=1000))


def agrees(operator, accelerator, mapping):
    ours, exact = replay(operator, accelerator, mapping, TILEWRIGHT), walk(operator, accelerator, mapping)
    assert ours.compute_cycles == exact.steps
    for place, count in exact.counts.items():
        assert [ours.counts[place].total(kind) for kind in KINDS] == [getattr(count, kind) for kind in KINDS], place


SOME = [name for name, (case, theirs) in CASES.items() if theirs["tags"] and case.operator.macs < 400]


@pytest.mark.parametrize("name", small_first(SOME, 100))
def test_every_assumption_found_by_hand_is_named(name):
    case, theirs = CASES[name]
    found = partings(case.operator, case.accelerator, case.mapping, TIMELOOP)
    named = {assumption for parting in found for assumption in parting.assumptions}
    if "copied_lanes" in named:  # the tags do not tell extrapolation in space from that in time
        named |= {"extrapolation"}
    if not named.issuperset(theirs["tags"]):  # nor do they know what extrapolation hides
        walked = partings(case.operator, case.accelerator, case.mapping, WALKED)
        named |= {assumption for parting in walked for assumption in parting.assumptions}
    assert set(theirs["tags"]) <= named <= set(ASSUMPTIONS)
    assert all(parting.assumptions for parting in found if parting.differs)


def test_a_nest_that_is_too_large_is_refused():
    case, _ = CASES["perfect-2"]
    large = matmul("large", m=4096, n=4096, k=4096)
    from tilewright.api import load_accelerator
    from tilewright.mapping import dataflow

    machine = load_accelerator("tpu-like")
    with pytest.raises(InputError, match="to be replayed"):
        replay(large, machine, dataflow("weight-stationary", large, machine), TILEWRIGHT)
    assert replay(case.operator, case.accelerator, case.mapping).conventions == TILEWRIGHT
