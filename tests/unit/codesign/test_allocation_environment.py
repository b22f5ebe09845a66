"""The environment of allocation: Gymnasium's own checks, the rewards of the agent, and agents of others on it."""

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import gymnasium
from gymnasium.utils.env_checker import check_env

import tilewright as tw
from tilewright.codesign.allocation import AllocationProblem, allocate
from tilewright.codesign.allocation.agents import rewards
from tilewright.codesign.allocation.environment import NAME, AllocationEnv
from tilewright.codesign.allocation.methods import Trial
from tilewright.hardware import preset


@pytest.fixture(scope="module")
def made():
    return gymnasium.make(NAME)


def test_gymnasium_makes_and_accepts_it(made):
    check_env(made.unwrapped, skip_render_check=True)
    check_env(AllocationEnv(made.unwrapped.problem, continuous=True), skip_render_check=True)


@pytest.mark.parametrize("high", [2, 12])
def test_rewards_are_those_that_the_agent_learns_from(made, high):
    problem = made.unwrapped.problem
    actions = np.random.default_rng(high).integers([1, high, high], size=(52, 3))
    environment, seen, found = AllocationEnv(problem), [], []
    environment.reset()
    for action in actions:
        observation, reward, ended, _, _ = environment.step(action)
        seen.append(observation)
        found.append(reward)
        if ended:
            break
    cells = problem.cells(actions[None])
    lowest = -np.maximum.accumulate(problem.of_layers(cells)[0][0, 0])  # as seen by then
    for step, reward in enumerate(found[:-1] if high == 12 else found):
        assert reward * environment.worst == pytest.approx(-problem.of_layers(cells)[0][0, 0, step] - lowest[step])
    _, made_steps, _ = rewards(problem, cells, np.inf)
    assert len(found) == made_steps.sum() == (52 if high == 2 else len(found))
    assert (len(found) < 52) == (high == 12)
    if high == 12:
        assert found[-1] == pytest.approx(-sum(found[:-1]))
    assert seen[0][7:9] == pytest.approx(2 * actions[0, 1:] / 11 - 1)


@pytest.mark.parametrize("high", [4, 12])
def test_layers_in_turn_have_the_pair_of_the_first_and_each_all_of_the_budget(high):
    problem = AllocationProblem.of(tw.load_network("ncf"), preset("confuciux"), "area=iot", deployment="sequential")
    actions = np.random.default_rng(1).integers([1, high, high], size=(4, 3))
    actions[0, 1:] = high - 1
    cells = problem.cells(actions[None])
    assert (cells == cells[0, 0]).all()
    reward, made, lowest = rewards(problem, cells, np.inf)
    environment, found = AllocationEnv(problem), []
    environment.reset()
    environment.lowest = lowest / environment.worst
    for action in actions:
        found.append(environment.step(action)[1])
        if len(found) == made.sum():
            break
    assert len(found) == (4 if high == 4 else 1) == len(environment.actions)
    assert np.array(found) * environment.worst == pytest.approx(reward[0, :len(found)])


def test_an_episode_is_an_epoch_whether_it_ends_early_or_not(made):
    problem = made.unwrapped.problem
    trial = Trial(problem, 10)
    environment = AllocationEnv(problem, trial)
    for level, steps in ((0, 52), (11, None)):
        environment.reset()
        count = 1
        while not environment.step(np.array([0, level, level]))[2]:
            count += 1
        assert count == (steps or count) <= 52
    assert trial.spent == 2
    assert trial.value == problem.score(np.zeros((1, 52), dtype=np.int64))[0][0]


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["a2c", "sac", "ppo", "trpo", "ddpg", "td3"])
def test_agents_of_others_run_for_their_epochs(made, method):
    one, other = (allocate(made.unwrapped.problem, method, epochs=4, seed=1) for _ in range(2))
    assert len(one.curve) == 4
    assert (one.curve == other.curve).all()


def test_actions_beyond_their_range_are_those_at_its_ends(made):
    environment = AllocationEnv(made.unwrapped.problem, continuous=True)
    for beyond, within in ((-1.5, -1.0), (1.5, 1.0)):
        told = []
        for action in (beyond, within):
            environment.reset()
            environment.lowest = -1.0
            told.append((environment.step(np.full(3, action))[1:], environment.actions.tolist()))
        assert told[0] == told[1]
        assert told[0][1] == [(environment.axes - 1 if within > 0 else 0 * environment.axes).tolist()]
