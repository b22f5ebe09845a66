"""Random mappers: what they leave out, and how they come to an end."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.hardware import preset
from tilewright.mapping import MapSpace
from tilewright.search import MAPPERS, Task, search
from tilewright.workload import matmul

SMALL = MapSpace(matmul("small", m=2, n=3, k=2), preset("edge-s1"))
LARGE = MapSpace(matmul("large", m=96, n=64, k=80), preset("eyeriss"))


@pytest.mark.parametrize("batch", [7, 2048])
def test_a_space_of_few_mappings_is_gone_through_to_its_end(batch):
    every = search(SMALL.operator, SMALL.accelerator, mapper="exhaustive", space=SMALL, budget=10**7)
    found = search(SMALL.operator, SMALL.accelerator, mapper="random-pruned", space=SMALL, budget=10**7,
                   options={"batch": batch})
    assert found.score == every.score
    assert found.complete and found.stopped == "exhausted"
    assert found.samples == found.legal_samples >= every.legal_samples


def test_a_large_space_of_which_draws_bring_nothing_new_ends_without_a_claim(monkeypatch):
    mapper = MAPPERS.get("random-pruned")(Task(LARGE, np.random.default_rng(0)))
    assert len(mapper.ask(100)) == 100
    monkeypatch.setattr(mapper, "_fresh", lambda batch, most: [])
    mapper.spare = LARGE.empty(0)
    assert len(mapper.ask(100)) == 0
    assert not mapper.covers_space


def test_where_nothing_fits_something_is_shown_once():
    tiny = preset("accel-a")
    levels = tuple(replace(level, capacity_bytes=1.0) if level.name == "Private" else level for level in tiny.levels)
    space = MapSpace(matmul("m", m=30, n=20, k=10), replace(tiny, levels=levels))
    found = search(space.operator, space.accelerator, mapper="random-pruned", space=space, budget=10**6)
    assert found.mapping is None
    assert (found.stopped, found.legal_samples) == ("exhausted", 0)
    assert found.samples > 0


def test_a_walk_is_taken_up_where_it_stopped():
    def new():
        return MAPPERS.get("random-pruned")(Task(SMALL, np.random.default_rng(0), options={"batch": 50, "dry": 1}))

    first = new()
    while len(first.ask(37)):
        again = new()
        again.restore({name: np.array(part) for name, part in first.state().items()})
        one, other = first.state(), again.state()
        assert one.keys() == other.keys()
        assert all((one[name] == other[name]).all() for name in one)
        assert first.covers_space == again.covers_space
    assert first.walk is not None and first.covers_space
    assert again.walk is not None and len(again.ask(37)) == 0


def test_nothing_drawn_is_lost_between_batches():
    mapper = MAPPERS.get("random-pruned")(Task(LARGE, np.random.default_rng(0)))
    batches = [mapper.ask(most) for most in (100, 3, 2500, 64)]
    assert [len(batch) for batch in batches] == [100, 3, 2048, 64]
    columns = np.concatenate([np.concatenate([batch.steps, batch.ranks]).reshape(-1, len(batch)) for batch in batches],
                             axis=1)
    assert len(np.unique(columns, axis=1).T) == columns.shape[1]


def test_walkers_end_after_so_many_mappings_in_a_row_that_do_not_improve_on_their_own_best():
    space = MapSpace(matmul("product", m=96, n=80, k=64), preset("eyeriss"))
    options = {"stall": 40, "walkers": 3, "batch": 12}
    made = MAPPERS.get("random-pruned")(Task(space, np.random.default_rng(4), None, options))
    rng = np.random.default_rng(5)
    told = [[], [], []]
    while len(batch := made.ask(10**6)):
        going = [w for w in range(3) if not ended(told[w], 40)]
        scores = rng.random(len(batch)) / (1 + sum(map(len, told))) ** 0.3
        for turn, walker in enumerate(going):
            told[walker] += scores[turn::len(going)].tolist()
        made.tell(batch, scores)
    assert all(ended(scores, 40) for scores in told)
    assert all(not ended(scores[:-12], 40) for scores in told)
    assert len({len(scores) for scores in told}) > 1
    whole = search(space.operator, space.accelerator, mapper="random-pruned", budget=10**6, space=space,
                   options={"stall": 100, "walkers": 4})
    assert 400 <= whole.samples < 10**5


def ended(scores, stall):
    """Whether the last so many scores are no better than the best before them."""
    return len(scores) > stall and min(scores[-stall:]) >= min(scores[:-stall])
