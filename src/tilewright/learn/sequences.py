"""Models that act step by step as demonstrations did under a like condition: a transformer, and a recurrent one.

An episode has a condition (what is asked for), a state at each step, and an action there. A model tells the action of a
step from the condition, the states so far and the actions before; it is trained on whole episodes at once, by squared
error. An action is a value from 0 to 1, or *none*, which is apart: whether it is none is told by an output of its own,
as the mean of a none and of a value would be a value that no demonstration had.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from tilewright.base import InputError
from tilewright.learn.epochs import HALVES, step
from tilewright.learn.files import read_arrays, write_arrays
from tilewright.learn.regressor import Scale
from tilewright.learn.threads import one_thread

Floats = NDArray[np.float32]
SequenceKind = Literal["transformer", "lstm"]
SEQUENCE_KINDS: tuple[SequenceKind, ...] = ("transformer", "lstm")


@dataclass(frozen=True)
class SequenceOptions:
    """How a model is made and trained."""

    kind: SequenceKind = "transformer"
    """A causal transformer over conditions, states and actions (Chen et al., *Decision Transformer*, NeurIPS 2021),
    or an LSTM that reads all that is fixed of an episode, and one that acts (Sutskever et al., NeurIPS 2014)."""
    blocks: int = 3
    heads: int = 2
    width: int = 128
    """``blocks``, ``heads`` and ``width``: of the transformer; the LSTMs have two layers of the width."""
    steps: int = 600
    """Of training, with ``batch`` episodes each."""
    batch: int = 32
    rate: float = 1e-3
    """Length of the first steps; it falls to a hundredth by half a cosine."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in SEQUENCE_KINDS:
            raise InputError("kind", f"must be one of {', '.join(SEQUENCE_KINDS)}", self.kind)
        for name in ("blocks", "heads", "width", "steps", "batch"):
            if getattr(self, name) < 1:
                raise InputError(name, "must be at least 1", getattr(self, name))
        if self.width % self.heads:
            raise InputError("width", "must be a multiple of the heads", self.width)
        if not self.rate > 0:
            raise InputError("rate", "must be positive", self.rate)


@dataclass(frozen=True)
class Episodes:
    """Demonstrations (n) of up to t steps."""

    conditions: Floats
    """``(n)``: what was asked for."""
    states: Floats
    """``(n, t, f)``; the first ``fixed`` figures of all steps are known before the first action."""
    actions: Floats
    """``(n, t)``: from 0 to 1, or below 0 for none."""
    lengths: NDArray[np.int64]
    """``(n)``: steps of each; what lies behind is not learnt."""
    fixed: int


class _Transformer(nn.Module):  # type: ignore[misc]
    """Three tokens a step (condition, state, action), each seeing those before; the state's tells the action."""

    def __init__(self, options: SequenceOptions, features: int, fixed: int, longest: int) -> None:
        super().__init__()
        width = options.width
        self.condition, self.state, self.action = nn.Linear(1, width), nn.Linear(features, width), nn.Linear(2, width)
        self.place, self.first = nn.Embedding(longest, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(
            width, options.heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
            for _ in range(options.blocks))
        self.last, self.told = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, conditions: torch.Tensor, states: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        rows, steps = actions.shape[:2]
        place = self.place(torch.arange(steps))
        tokens = torch.stack([self.condition(conditions[:, None, None].expand(rows, steps, 1)) + place,
                              self.state(states[:, :steps]) + place, self.action(actions) + place], dim=2)
        found = self.first(tokens.reshape(rows, 3 * steps, -1))
        hidden = torch.ones(3 * steps, 3 * steps, dtype=torch.bool).triu(1)
        for block in self.blocks:
            found = block(found, src_mask=hidden)
        told: torch.Tensor = self.told(self.last(found[:, 1::3]))
        return told


class _Recurrent(nn.Module):  # type: ignore[misc]
    """An LSTM that reads what is fixed of all steps, and one that goes on from there and acts."""

    def __init__(self, options: SequenceOptions, features: int, fixed: int, longest: int) -> None:
        super().__init__()
        self.fixed = fixed
        self.reader = nn.LSTM(fixed + 1, options.width, num_layers=2, batch_first=True)
        self.actor = nn.LSTM(features + 3, options.width, num_layers=2, batch_first=True)
        self.told = nn.Linear(options.width, 2)

    def forward(self, conditions: torch.Tensor, states: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        rows, steps = actions.shape[:2]
        asked = conditions[:, None, None].expand(rows, states.shape[1], 1)
        _, known = self.reader(torch.cat([asked, states[..., :self.fixed]], dim=2))
        before = torch.cat([torch.zeros(rows, 1, 2), actions[:, :-1]], dim=1)
        found, _ = self.actor(torch.cat([asked[:, :steps], states[:, :steps], before], dim=2), known)
        told: torch.Tensor = self.told(found)
        return told


@dataclass(frozen=True, eq=False)
class SequenceModel:
    """A model with what makes conditions and states of mean 0 and deviation 1."""

    options: SequenceOptions
    network: nn.Module
    asked: Scale
    seen: Scale
    fixed: int
    longest: int

    @classmethod
    def fresh(cls, options: SequenceOptions, episodes: Episodes) -> "SequenceModel":
        """Return an untrained one, scaled to demonstrations."""
        steps = np.arange(episodes.states.shape[1]) < episodes.lengths[:, None]
        scales = Scale.of(episodes.conditions[:, None]), Scale.of(episodes.states[steps])
        return cls._made(options, scales, episodes.fixed, max(episodes.states.shape[1], LONGEST))

    @classmethod
    def _made(cls, options: SequenceOptions, scales: tuple[Scale, Scale], fixed: int, longest: int) -> "SequenceModel":
        kind = _Transformer if options.kind == "transformer" else _Recurrent
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed)
            network = kind(options, len(scales[1].mean), fixed, longest)
        return cls(options, network, *scales, fixed, longest)

    def act(self, condition: float, states: Floats, actions: Floats) -> tuple[float, float]:
        """Return how surely the next action is none, and its value otherwise.

        ``states`` ``(t, f)`` has the figures of all steps that are fixed, and all figures of those so far; ``actions``
        are those so far.

        Raises an `InputError` if there are more steps, or other figures, than the model knows.
        """
        if states.shape[0] > self.longest or states.shape[1] != len(self.seen.mean):
            raise InputError("model", f"must know episodes of {states.shape[0]} steps of {states.shape[1]} figures",
                             f"{self.longest} steps of {len(self.seen.mean)}", "Train one for them")
        with one_thread(), torch.no_grad():
            done = torch.from_numpy(np.append(actions, 0.0).astype(np.float32))[None]
            found = self.network(self.asked.to(torch.tensor([[condition]], dtype=torch.float32))[:, 0],
                                 self.seen.to(torch.from_numpy(states.astype(np.float32)))[None], _tokens(done))
        none, value = found[0, -1].tolist()
        return none, value

    def save(self, path: Path, about: Mapping[str, Any]) -> None:
        """Write it, and plain data about it."""
        arrays = {f"network.{name}": part.numpy() for name, part in self.network.state_dict().items()}
        arrays |= {f"{name}.{what}": getattr(getattr(self, name), what).numpy()
                   for name in ("asked", "seen") for what in ("mean", "deviation")}
        write_arrays(path, KIND, arrays, {"options": asdict(self.options), "fixed": self.fixed,
                                          "longest": self.longest, "about": dict(about)})

    @classmethod
    def load(cls, path: Path, field: str, verb: str) -> "tuple[SequenceModel, dict[str, Any]]":
        """Return the model in a file and what is said about it; see `tilewright.learn.files.read_arrays`."""
        arrays, told = read_arrays(path, KIND, field, verb)
        known = {one.name for one in fields(SequenceOptions)}
        options = SequenceOptions(**{name: value for name, value in told["options"].items() if name in known})
        scales = [Scale(*(torch.from_numpy(arrays[f"{name}.{what}"]) for what in ("mean", "deviation")))
                  for name in ("asked", "seen")]
        made = cls._made(options, (scales[0], scales[1]), told["fixed"], told["longest"])
        made.network.load_state_dict({name.removeprefix("network."): torch.from_numpy(part)
                                      for name, part in arrays.items() if name.startswith("network.")})
        return made, told["about"]


KIND = "tilewright-sequences-1"
LONGEST = 256
"""Steps that a transformer has places for."""


def train_sequences(episodes: Episodes, options: SequenceOptions, *, begin: SequenceModel | None = None,
                    threads: int = 1, told: Callable[[int, float], bool] | None = None) -> SequenceModel:
    """Return a model that acts as demonstrations did; ``begin`` is one to go on from, which keeps its scales.

    ``told`` is given each step's number and loss, and says whether to go on. Same seed, same model, on any number of
    threads.

    Raises an `InputError` if there are no demonstrations, figures are not finite, or ``begin`` knows others.
    """
    if not len(episodes.actions):
        raise InputError("demonstrations", "must be at least 1", 0)
    if not all(np.isfinite(part).all() for part in (episodes.conditions, episodes.states)):
        raise InputError("demonstrations", "must be of finite numbers")
    if begin is not None and (begin.seen.mean.shape[0] != episodes.states.shape[2]
                              or begin.longest < episodes.states.shape[1]):
        raise InputError("begin", "must be a model of the same figures, and of as many steps", begin.longest)
    model = SequenceModel.fresh(options, episodes)
    if begin is not None:
        model = SequenceModel._made(begin.options, (begin.asked, begin.seen), begin.fixed, begin.longest)
        model.network.load_state_dict(begin.network.state_dict())
    adam = torch.optim.Adam(model.network.parameters(), lr=options.rate, fused=False, foreach=False)
    drawn = np.random.default_rng(options.seed)
    with one_thread():
        known = torch.from_numpy(np.arange(episodes.actions.shape[1]) < episodes.lengths[:, None])
        given = (model.asked.to(torch.from_numpy(episodes.conditions[:, None]))[:, 0],
                 model.seen.to(torch.from_numpy(episodes.states)), torch.from_numpy(episodes.actions), known)
        for at in range(options.steps):
            cosine = 0.5 * (1 + np.cos(np.pi * at / options.steps))
            adam.param_groups[0]["lr"] = options.rate * (0.01 + 0.99 * cosine)
            rows = torch.from_numpy(drawn.permutation(len(episodes.actions))[:options.batch])
            count = float(known[rows].sum())
            loss = step(adam, [partial(_loss, model.network, [part[own] for part in given], count)
                               for own in rows.split(-(-len(rows) // HALVES))], min(threads, HALVES))
            if told is not None and not told(at + 1, loss):
                break
    return model


def _tokens(actions: torch.Tensor) -> torch.Tensor:
    """Return actions ``(b, t, 2)`` as models read them: whether each is none, and its value or 0."""
    none = (actions < 0).float()
    return torch.stack([none, torch.where(actions < 0, 0.0, actions)], dim=2)


def _loss(network: nn.Module, given: list[torch.Tensor], count: float) -> torch.Tensor:
    """Return the squared errors of steps: whether there is none, and of values where there are."""
    conditions, states, actions, known = given
    true = _tokens(actions)
    wrong = (network(conditions, states, true) - true) ** 2
    weighed = wrong[..., 0] + wrong[..., 1] * (1.0 - true[..., 0])
    return (weighed * known).sum() / count
