"""The oracle agrees with the rules written out in plain sets."""

import numpy as np
import pytest
from plain_walk import plain_walk

from tilewright.cost.reference import walk
from tilewright.validation import random_case


@pytest.mark.parametrize("seed", range(5))
def test_oracle_equals_plain_sets(seed):
    check(seed, 12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_oracle_equals_plain_sets_on_many(seed):
    check(seed, 100)


def check(seed, cases):
    rng = np.random.default_rng(seed)
    for number in range(cases):
        operator, accelerator, mapping = random_case(rng, most_macs=500)
        steps, counts = plain_walk(operator, accelerator, mapping)
        cost = walk(operator, accelerator, mapping)
        assert cost.counts == counts, (seed, number, operator, mapping)
        assert cost.steps == steps
