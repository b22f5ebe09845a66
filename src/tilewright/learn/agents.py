"""Agents of Stable-Baselines3 on environments of Gymnasium (extra ``rl``)."""

from collections.abc import Callable
from typing import Any

from tilewright.learn.threads import one_thread

STEPS = 10**9
"""Steps of an agent that ends by a budget of its own, at most."""


def train_agent(name: str, environment: Any, seed: int, going: Callable[[], bool], steps: int = STEPS,
                **settings: Any) -> None:
    """Let an agent act as long as ``going`` says, with its defaults but for ``settings``.

    ``name`` is that of a class of Stable-Baselines3, or of its contributions, in small letters.
    """
    import sb3_contrib  # noqa: PLC0415 - loads PyTorch
    import stable_baselines3  # noqa: PLC0415
    from stable_baselines3.common.callbacks import BaseCallback  # noqa: PLC0415

    class Until(BaseCallback):
        """Ends training."""

        def _on_step(self) -> bool:
            return going()

    library = sb3_contrib if name == "trpo" else stable_baselines3
    with one_thread():
        agent = getattr(library, name.upper())("MlpPolicy", environment, seed=seed, device="cpu", **settings)
        agent.learn(steps, callback=Until())
