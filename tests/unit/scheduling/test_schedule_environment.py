"""The environment of schedules: what Gymnasium asks of one, what agents see, and what they are rewarded for."""

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env
from random_schedules import random_table

from tilewright.scheduling import ScheduleBound, ScheduleProblem, ScheduleSession, simulate
from tilewright.scheduling.methods.environment import ScheduleEnv, ScheduleEpisodes, small_problem


def test_it_is_what_gymnasium_asks_for():
    check_env(ScheduleEnv(), skip_render_check=True)


def play(environment, actions):
    seen, rewards = [environment.reset(seed=0)[0]], []
    for action in actions:
        observation, reward, ended, _, _ = environment.step(np.array(action))
        seen.append(observation)
        rewards.append(reward)
    return seen, rewards, ended


def test_an_episode_is_one_sample_and_its_reward_the_makespan():
    asked = small_problem()
    session = ScheduleSession(asked, 10, None, bound=ScheduleBound(0.0))
    environment = ScheduleEnv(asked, session)
    seen, rewards, ended = play(environment, [(4, 0)] * 10 + [(0, 1)] * 10)
    assert ended and session.spent == 1
    assert session.best.core[0].tolist().count(0) == 10
    order = np.argsort(session.best.priority[0]).tolist()
    assert order[:4] == [4, 5, 6, 7] and order[10:14] == [0, 1, 2, 3]
    busy = [asked.table.cycles[session.best.core[0] == core, core, 0].sum() for core in (0, 1)]
    total = -max(busy) / environment.episodes.even - session.value / environment.episodes.worth
    assert sum(rewards) == pytest.approx(total) and max(rewards) <= 0
    assert session.value == simulate(asked, session.best).score[0]
    first = asked.table.cycles[:5, :, 0].ravel() / environment.episodes.even
    assert seen[0] == pytest.approx(np.concatenate([np.zeros(3), first / (1 + first)]), rel=1e-6)
    assert seen[1][0] == pytest.approx(seen[0][15], rel=1e-6) and seen[1][1:3].tolist() == [0, 0]
    assert seen[-1][3:].tolist() == [0] * 15


def test_jobs_go_to_cores_that_they_fit():
    rng = np.random.default_rng(1)
    asked = ScheduleProblem(random_table(rng), rng.integers(6, size=12), 3.0)
    session = ScheduleSession(asked, 10, None, bound=ScheduleBound(0.0))
    play(ScheduleEnv(asked, session), [(0, 2)] * 12)
    assert np.isfinite(session.value) and len(set(session.best.core[0].tolist())) > 1


def test_episodes_side_by_side_are_those_that_each_would_be_alone():
    rng = np.random.default_rng(2)
    asked = ScheduleProblem(random_table(rng), rng.integers(6, size=12), 3.0)
    session = ScheduleSession(asked, 7, None, bound=ScheduleBound(0.0))
    together, alone = ScheduleEpisodes(asked, session, 7), ScheduleEnv(asked)
    actions = rng.integers([5, asked.cores], size=(asked.jobs, 7, 2))
    seen = [(together.reset(), np.zeros(7), False), *(together.step(each) for each in actions)]
    for row in range(7):
        one, rewards, ended = play(alone, actions[:, row])
        assert ended and seen[-1][2] and not seen[-2][2]
        assert np.array_equal(one, [each[0][row] for each in seen])
        assert rewards == pytest.approx([each[1][row] for each in seen[1:]], abs=1e-12)
    assert session.spent == 7
