"""The fast model of fused groups and the oracle agree on random trees; a group of one is the operator alone."""

from dataclasses import fields

import pytest
from random_groups import alone, random_plan

from tilewright.cost import fused_cost
from tilewright.cost.dense.single import single_cost
from tilewright.cost.reference import walk_fused
from tilewright.mapping import FusedMapping, FusedNode, FusedTree, operations_of

EXACT = ("macs", "steady_cycles", "ramp_cycles", "counts", "cycles", "bottleneck", "held")


def check(seed, most=5):
    group, machine, mapping = random_plan(seed, most)
    fast, literal = fused_cost(group, machine, mapping), walk_fused(group, machine, mapping)
    for entry in fields(fast):
        mine, theirs = getattr(fast, entry.name), getattr(literal, entry.name)
        if entry.name in ("counts", "cycles", "energy_by_component_pj", "made"):
            mine, theirs = ({key: value for key, value in found.items() if value} for found in (mine, theirs))
        where = f"seed {seed}, {entry.name}: fast {mine}\n oracle {theirs}\n{mapping}\n{group}\n{machine}"
        assert mine == (theirs if entry.name in EXACT else pytest.approx(theirs)), where


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_the_fast_model_is_exact_on_random_trees(seed):
    for each in range(seed, seed + 20):
        check(each)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 6000, 100))
def test_the_fast_model_is_exact_on_5000_random_trees(seed):
    for each in range(seed, seed + 100):
        check(each)


def test_a_group_of_one_costs_what_the_operator_costs():
    met = 0
    for seed in range(40):
        group, machine, mapping = random_plan(seed)
        last = mapping.root.leaves[-1]
        if operations_of(group.operator(last.operator)) is None:
            one = alone(group, last.operator)
            plan = FusedMapping(FusedNode(mapping.root.loops, (last,)))
            nest = FusedTree(one, plan).nest(last.operator, machine)
            found, expected = fused_cost(one, machine, plan), single_cost(one.operators[0], machine, nest)
            assert {(memory, name): count for (_, memory, name), count in found.counts.items()} == expected.counts
            for name in ("macs", "steady_cycles", "ramp_cycles", "bottleneck"):
                assert getattr(found, name) == getattr(expected, name)
            for name in ("energy_pj", "energy_by_component_pj", "utilisation"):
                assert getattr(found, name) == pytest.approx(getattr(expected, name))
            met += 1
    assert met >= 10
