"""DNNFuser: what is shown is learnt, at memory sizes between too; no strategy exceeds the memory; files, bad input."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tilewright as tw  # noqa: E402
from tilewright.base import InputError  # noqa: E402
from tilewright.fusion.microbatch import (  # noqa: E402
    Demonstration,
    FusionEpisode,
    MicroBatchProblem,
    demonstrations,
    figures,
    fuse,
    speedups,
    train_fuser,
    written,
)
from tilewright.fusion.microbatch.learned import episodes, relabelled  # noqa: E402
from tilewright.learn import SequenceOptions  # noqa: E402

SLOW = "dnnfuser:DRAM.bandwidth=900MB/s"
MACHINE = tw.load_accelerator(SLOW)
SMALL = SequenceOptions(blocks=1, width=32, steps=120, rate=5e-3)


def resnet(megabytes: float) -> MicroBatchProblem:
    return MicroBatchProblem.of(tw.load_network("resnet18"), MACHINE, 16, megabytes * 1e6)


@pytest.fixture(scope="module")
def shown() -> list[Demonstration]:
    return demonstrations([resnet(size) for size in (2, 8)], "exact", 1)


@pytest.fixture(scope="module")
def model(shown):
    return train_fuser(shown, SMALL)


def test_it_writes_what_it_was_shown_and_does_well_between(model, shown):
    for one in shown:
        own, best = speedups(model, one.problem)
        assert own >= 0.97 * best > 1.5
    smaller, _ = speedups(model, shown[0].problem)
    for size in (3.0, 4.0, 6.0):
        own, best = speedups(model, resnet(size))
        assert 0.95 * smaller <= own <= best * (1 + 1e-9)


def test_no_strategy_takes_more_than_there_is(shown):
    """What a model that knows nothing writes fits too, down to memories that hold next to nothing."""
    lost = train_fuser(shown, replace(SMALL, steps=1, seed=3))
    for size in (0.003, 0.1, 0.3, 1.0, 9.0):
        problem = resnet(size)
        strategy = written(lost, problem)
        assert figures(problem, strategy)[0, 2] <= problem.memory_bytes
        assert len(problem.check(strategy)[0]) == problem.length


def test_episodes_are_strategies_state_by_state(shown):
    one, found = shown[1], episodes(shown)
    episode, last = FusionEpisode(one.problem), np.log(FusionEpisode(one.problem).latency_cycles)
    for at, size in enumerate(one.strategy.tolist()):
        state = episode.state
        told = [*np.log1p(state[:6]), np.log(state[6]), np.log(state[7]) - last]
        assert found.states[1, at] == pytest.approx(told, abs=1e-4)
        assert found.actions[1, at] == (-1.0 if size == -1 else pytest.approx(np.log2(size) / 4))
        episode.choose(size)
    assert found.conditions.tolist() == pytest.approx(np.log([2e6, 8e6]).tolist())


def test_a_demonstration_is_shown_with_larger_memories_too_up_to_the_next(shown):
    sizes = [one.problem.memory_bytes for one in relabelled(shown, 2)]
    assert sizes == pytest.approx([2e6, 4e6, 8e6])
    assert all(figures(one.problem, one.strategy)[0, 2] <= one.problem.memory_bytes for one in relabelled(shown))


def test_the_mapper_takes_one_sample_and_a_file(model, tmp_path):
    model.save(tmp_path / "fuser.pt", {})
    problem = resnet(4)
    run = fuse(problem, "dnnfuser", options={"model": str(tmp_path / "fuser.pt")})
    assert run.samples == 1 and run.strategy.tolist() == written(model, problem).tolist()
    with pytest.raises(InputError, match="must hold a model of the kind lstm"):
        fuse(problem, "seq2seq", options={"model": str(tmp_path / "fuser.pt")})
    with pytest.raises(InputError, match="train-fuser"):
        fuse(problem, "dnnfuser")
    with pytest.raises(InputError, match="must be a file"):
        fuse(problem, "dnnfuser", options={"model": "nosuch.pt"})
