"""Agents of Stable-Baselines3 on environments of Gymnasium, or on many episodes side by side (extra ``rl``)."""

from collections.abc import Callable
from typing import Any, Protocol

from numpy.typing import NDArray

from tilewright.learn.threads import one_thread

STEPS = 10**9
"""Steps of an agent that ends by a budget of its own, at most."""


class EpisodeBatch(Protocol):
    """Episodes ``e`` side by side that all begin and end together."""

    count: int
    observation_space: Any
    action_space: Any

    def reset(self) -> NDArray[Any]:
        """Begin all; return what agents see ``(e, ...)``."""

    def step(self, actions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], bool]:
        """Act in each; return what agents see, the rewards ``(e)``, and whether all have ended."""


def train_agent(name: str, environment: Any, seed: int, going: Callable[[], bool], steps: int = STEPS,
                **settings: Any) -> None:
    """Let an agent act as long as ``going`` says, with its defaults but for ``settings``.

    ``name`` is that of a class of Stable-Baselines3, or of its contributions, in small letters; the environment is one
    of Gymnasium, or `EpisodeBatch`.
    """
    import gymnasium  # noqa: PLC0415
    import sb3_contrib  # noqa: PLC0415 - loads PyTorch
    import stable_baselines3  # noqa: PLC0415
    from stable_baselines3.common.callbacks import BaseCallback  # noqa: PLC0415

    class Until(BaseCallback):
        """Ends training."""

        def _on_step(self) -> bool:
            return going()

    library = sb3_contrib if name == "trpo" else stable_baselines3
    made = environment if isinstance(environment, gymnasium.Env) else _vectorised(environment)
    with one_thread():
        agent = getattr(library, name.upper())("MlpPolicy", made, seed=seed, device="cpu", **settings)
        agent.learn(steps, callback=Until())


def _vectorised(episodes: EpisodeBatch) -> Any:
    """Return episodes as a vectorised environment of Stable-Baselines3."""
    import numpy as np  # noqa: PLC0415
    from stable_baselines3.common.vec_env import VecEnv  # noqa: PLC0415

    class Vectorised(VecEnv):
        """Begins all episodes anew when they end, as agents ask for."""

        def reset(self) -> Any:
            return episodes.reset()

        def step_async(self, actions: Any) -> None:
            self.actions = actions

        def step_wait(self) -> Any:
            seen, rewards, ended = episodes.step(self.actions)
            told: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            if ended:
                told = [{"terminal_observation": last} for last in seen]
                seen = episodes.reset()
            return seen, rewards, np.full(self.num_envs, ended), told

        def close(self) -> None:
            """Nothing is open."""

        def get_attr(self, attr_name: str, indices: Any = None) -> Any:
            return [getattr(episodes, attr_name, None)] * self.num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
            raise NotImplementedError

        def env_method(self, method_name: str, *args: Any, indices: Any = None, **settings: Any) -> Any:
            raise NotImplementedError

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * self.num_envs

    return Vectorised(episodes.count, episodes.observation_space, episodes.action_space)
