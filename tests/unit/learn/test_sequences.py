"""Models that act step by step: they learn what they are shown, see nothing that is still to come, and stay alike."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.base import InputError

torch = pytest.importorskip("torch")

from tilewright.learn import (  # noqa: E402
    SEQUENCE_KINDS,
    Episodes,
    SequenceModel,
    SequenceOptions,
    train_sequences,
)

SMALL = SequenceOptions(blocks=1, width=16, steps=150, batch=16, rate=5e-3)


def demonstrations(count: int = 16, steps: int = 6) -> Episodes:
    """None where the first figure is large; else the value follows from the condition, and from the action before."""
    drawn = np.random.default_rng(1)
    states = drawn.normal(size=(count, steps, 4)).astype(np.float32)
    asked = np.repeat([0.0, 1.0], count // 2).astype(np.float32)
    actions = np.empty((count, steps), dtype=np.float32)
    for at in range(steps):
        before = np.maximum(actions[:, at - 1], 0.0) if at else 0.0
        actions[:, at] = np.where(states[:, at, 0] > 0.5, -1.0, 0.2 + 0.4 * asked + 0.3 * before)
    return Episodes(asked, states, actions, np.full(count, steps), 3)


@pytest.mark.parametrize("kind", SEQUENCE_KINDS)
def test_it_learns_when_there_is_none_and_values_by_the_condition(kind: str) -> None:
    shown, losses = demonstrations(), list[float]()
    model = train_sequences(shown, replace(SMALL, kind=kind), told=lambda _, loss: losses.append(loss) or True)
    assert losses[-1] < 0.15 * losses[0] and len(losses) == SMALL.steps
    surest = []
    for row in range(16):
        for at in range(6):
            none, value = model.act(shown.conditions[row], shown.states[row], shown.actions[row, :at])
            surest.append((none > 0.5) == (shown.actions[row, at] < 0))
            if surest[-1] and none < 0.5:
                assert value == pytest.approx(shown.actions[row, at], abs=0.3)
    assert np.mean(surest) > 0.9


@pytest.mark.parametrize("kind", SEQUENCE_KINDS)
def test_what_is_to_come_is_not_looked_at(kind: str) -> None:
    shown = demonstrations()
    model = SequenceModel.fresh(replace(SMALL, kind=kind), shown)
    states, told = shown.states[0].copy(), model.act(1.0, shown.states[0], shown.actions[0, :3])
    states[4:, 3] += 9.0
    assert model.act(1.0, states, shown.actions[0, :3]) == told
    given = torch.rand(2, 6, 2)
    states, later = torch.from_numpy(shown.states[:2]), given.clone()
    later[:, 3:] += 1.0
    one, other = (model.network(torch.ones(2), states, each).detach().numpy() for each in (given, later))
    assert np.array_equal(one[:, :4], other[:, :4])
    assert not np.array_equal(one[:, 4:], other[:, 4:])


@pytest.mark.parametrize("kind", SEQUENCE_KINDS)
def test_same_seed_same_model_on_any_number_of_threads_and_from_a_file(kind: str, tmp_path) -> None:
    shown, options = demonstrations(), replace(SMALL, kind=kind, steps=5)
    one, two = (train_sequences(shown, options, threads=threads) for threads in (1, 2))
    one.save(tmp_path / "model.pt", {"networks": ["n"]})
    read, about = SequenceModel.load(tmp_path / "model.pt", "model", "train-fuser")
    told = one.act(1.0, shown.states[0], shown.actions[0, :2])
    assert told == two.act(1.0, shown.states[0], shown.actions[0, :2])
    assert told == read.act(1.0, shown.states[0], shown.actions[0, :2]) and about == {"networks": ["n"]}
    more = train_sequences(shown, options, begin=read)
    assert more.act(1.0, shown.states[0], shown.actions[0, :2]) != told
    other = train_sequences(shown, replace(options, seed=1))
    assert other.act(1.0, shown.states[0], shown.actions[0, :2]) != told


def test_wrong_input_is_told(tmp_path) -> None:
    shown = demonstrations()
    model = SequenceModel.fresh(SMALL, shown)
    with pytest.raises(InputError, match="figures"):
        model.act(1.0, np.zeros((3, 5), dtype=np.float32), np.zeros(0))
    with pytest.raises(InputError, match="steps"):
        model.act(1.0, np.zeros((999, 4), dtype=np.float32), np.zeros(0))
    with pytest.raises(InputError, match="at least 1"):
        train_sequences(replace(shown, actions=shown.actions[:0]), SMALL)
    with pytest.raises(InputError, match="finite"):
        train_sequences(replace(shown, states=shown.states * np.inf), SMALL)
    with pytest.raises(InputError, match="same figures"):
        train_sequences(replace(shown, states=shown.states[..., :3]), SMALL, begin=model)
    for name, value in (("kind", "rnn"), ("heads", 0), ("width", 17), ("rate", 0.0)):
        with pytest.raises(InputError, match=name):
            replace(SMALL, **{name: value})
    (tmp_path / "other.pt").write_bytes(b"x")
    with pytest.raises(InputError, match="train-fuser wrote"):
        SequenceModel.load(tmp_path / "other.pt", "model", "train-fuser")
