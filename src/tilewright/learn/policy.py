"""A recurrent policy that makes some choices at each step of an episode, learnt by REINFORCE (Williams, 1992).

A state is what a step is known by (fixed features) and the choices of the step before. Episodes are drawn in batches,
step by step; then one pass over all steps gives the gradient.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.learn.threads import one_thread

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

WIDTH = 128
"""Of the LSTM, or of the plain layers."""
RATE = 1e-3
"""Of Adam."""
LARGEST_NORM = 10.0
"""Of a gradient; longer ones are cut."""
Open = Callable[[int, Ints | None], NDArray[np.bool_]]
"""Says which combinations of choices ``(b, ...)`` are open at a step, by the choices ``(b, a)`` of the one before.

At the first step there are none, and it may say so once for all."""


class RecurrentPolicy:
    """One LSTM (or plain layers), and a soft-max for each choice (Kao 2022, section 8.1.2).

    Parameters
    ----------
    features
        ``(t, f)``: what each step is known by.
    choices
        Values that each of the ``a`` choices may have.
    seed
        Of the weights and the draws.
    recurrent
        Whether a step knows of those before the last: an LSTM, or two plain layers of that width.
    rate
        Of Adam.
    """

    def __init__(self, features: Floats, choices: tuple[int, ...], seed: int, recurrent: bool = True,
                 rate: float = RATE) -> None:
        self.features, self.choices, self.recurrent = torch.from_numpy(features), choices, recurrent
        self.highest = torch.tensor([max(1, count - 1) for count in choices])
        self.draws = torch.Generator().manual_seed(seed)
        rows, inputs = WIDTH * (4 if recurrent else 1), features.shape[1] + len(choices)
        shapes = {"into": (rows, inputs), "within": (rows, WIDTH), "into_bias": (rows,), "within_bias": (rows,),
                  "out": (sum(choices), WIDTH), "out_bias": (sum(choices),)}
        scale = WIDTH**-0.5
        self.weights = {name: ((torch.rand(shape, generator=self.draws) * 2 - 1) * scale).requires_grad_()
                        for name, shape in shapes.items()}
        self.adam = torch.optim.Adam(list(self.weights.values()), lr=rate, foreach=False, fused=False)

    def draw(self, episodes: int, combinations: Open | None = None) -> tuple[Ints, NDArray[np.bool_] | None]:
        """Return the choices ``(b, t, a)`` of so many episodes, and which values of each were open ``(b, t, sum)``.

        Choices are drawn one after the other, each of the values with which some combination is open; of all, where
        ``combinations`` are not told.
        """
        weights = self.weights
        with one_thread(), torch.no_grad():
            hidden = cell = torch.zeros(episodes, WIDTH)
            last, found = torch.zeros(episodes, len(self.choices)), list[torch.Tensor]()
            every, rows = list[torch.Tensor](), torch.arange(episodes)
            for step, features in enumerate(self.features):
                state = torch.cat([features.expand(episodes, -1), last], dim=1)
                if self.recurrent:
                    hidden, cell = torch.lstm_cell(state, (hidden, cell), weights["into"], weights["within"],
                                                   weights["into_bias"], weights["within_bias"])
                else:
                    hidden = self._plain(state)
                logits = torch.nn.functional.linear(hidden, weights["out"], weights["out_bias"])
                drawn = []
                if combinations is not None:
                    left = torch.from_numpy(combinations(step, found[-1].numpy() if found else None))
                    left = left.expand(episodes, *left.shape[1:])
                for part in logits.split(self.choices, dim=1):
                    if combinations is None:
                        drawn.append(self._drawn(part))
                        continue
                    every.append(left.flatten(1).unflatten(1, (part.shape[1], -1)).any(dim=2))
                    drawn.append(self._drawn(part.masked_fill(~every[-1], -torch.inf)))
                    left = left[rows, drawn[-1]]
                found.append(torch.stack(drawn, dim=1))
                last = self._scaled(found[-1])
        values = torch.cat(every, dim=1).reshape(episodes, len(found), -1).numpy() if every else None
        return np.asarray(torch.stack(found, dim=1).numpy()), values

    def learn(self, chosen: Ints, returns: NDArray[np.floating], counts: NDArray[np.bool_],
              values: NDArray[np.bool_] | None = None, entropy: float = 0.0) -> None:
        """Make choices ``(b, t, a)`` likelier by their ``returns`` ``(b, t)``, where a step ``counts``.

        ``values`` are those that were open, ``entropy`` is worth so much a choice: it keeps choices from being settled
        on what few episodes said.
        """
        weights, actions = self.weights, torch.from_numpy(chosen)
        with one_thread():
            logits = torch.nn.functional.linear(self._hidden(actions), weights["out"], weights["out_bias"])
            if values is not None:  # finite, as nothing times minus infinity is no number
                logits = logits.masked_fill(~torch.from_numpy(values), -1e9)
            gained = torch.zeros(())
            weight = torch.from_numpy((returns * counts).astype(np.float32))
            made = torch.from_numpy(counts.astype(np.float32))
            for at, part in enumerate(logits.split(self.choices, dim=2)):
                likely = part.log_softmax(dim=2)
                gained = gained + (likely.gather(2, actions[:, :, at:at + 1])[..., 0] * weight).sum()
                if entropy:
                    gained = gained - entropy * ((likely.exp() * likely).sum(dim=2) * made).sum()
            loss = -gained / len(chosen)
            self.adam.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(list(weights.values()), LARGEST_NORM)
            self.adam.step()

    def hidden(self, chosen: Ints) -> Floats:
        """Return what the policy knows at each step ``(b, t, h)`` of episodes with these choices ``(b, t, a)``."""
        with one_thread(), torch.no_grad():
            return np.asarray(self._hidden(torch.from_numpy(chosen)).numpy())

    def _hidden(self, actions: torch.Tensor) -> torch.Tensor:
        last = torch.cat([torch.zeros(len(actions), 1, len(self.choices)), self._scaled(actions[:, :-1])], dim=1)
        states = torch.cat([self.features.expand(len(actions), -1, -1), last], dim=2)
        if not self.recurrent:
            return self._plain(states)
        start = torch.zeros(1, len(actions), WIDTH)
        hidden, _, _ = torch.lstm(states, (start, start), [self.weights[name] for name in (
            "into", "within", "into_bias", "within_bias")], True, 1, 0.0, True, False, True)
        return hidden

    def _plain(self, states: torch.Tensor) -> torch.Tensor:
        """Return what two plain layers make of states."""
        weights = self.weights
        first = torch.relu(torch.nn.functional.linear(states, weights["into"], weights["into_bias"]))
        return torch.relu(torch.nn.functional.linear(first, weights["within"], weights["within_bias"]))

    def _drawn(self, logits: torch.Tensor) -> torch.Tensor:
        """Return a choice for each row ``(b)``: the one `torch.multinomial` draws, in two thirds of its time."""
        return (logits.softmax(dim=1) / torch.empty_like(logits).exponential_(generator=self.draws)).argmax(dim=1)

    def _scaled(self, actions: torch.Tensor) -> torch.Tensor:
        """Return choices as numbers from -1 to 1."""
        return 2 * actions / self.highest - 1

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that changes as arrays."""
        found = {name: part.detach().numpy().copy() for name, part in self.weights.items()}
        for name, part in self.weights.items():
            found |= {f"adam.{what}.{name}": value.numpy().copy() for what, value in self.adam.state[part].items()}
        return found | {"draws": self.draws.get_state().numpy().copy()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Undo `state`."""
        for name, part in self.weights.items():
            part.data = torch.from_numpy(np.array(state[name]))
            own = {key.split(".")[1]: torch.from_numpy(np.array(value)) for key, value in state.items()
                   if key.startswith("adam.") and key.split(".")[2] == name}
            if own:
                self.adam.state[part] = own
        self.draws.set_state(torch.from_numpy(np.array(state["draws"])))
