"""DNNFuser (Kao, Huang and Krishna 2022, section 4): strategies that a model writes down without a search.

A model is trained on demonstrations: strategies that a mapper found at some memory sizes, each as an episode of states
(equation 2) and actions. Asked for a memory size, it chooses one micro-batch after the other. What the paper leaves
open is settled so:

- figures of states are logarithms, the runtime that of what is chosen so far in that of layer by layer;
- an action is the micro-batch's logarithm in that of the batch, from 0 to 1, as what counts is how often layers run;
  -1 (synchronise) is *none*, apart from all values, since a mean of "synchronise" and of a large micro-batch is a
  choice that nobody demonstrated;
- a micro-batch that does not fit beside those of its group becomes the largest that does, so that no strategy takes
  more memory than there is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.base import InputError, require_extra
from tilewright.fusion.microbatch.costs import figures
from tilewright.fusion.microbatch.problem import SYNC, Ints, MicroBatchProblem
from tilewright.fusion.microbatch.records import LATENCY
from tilewright.fusion.microbatch.session import FUSION_MAPPERS, STATE, FusionEpisode, FusionSession, fuse
from tilewright.search import MapperOptions, Options, Resumable, read_options

if TYPE_CHECKING:
    from tilewright.learn import Episodes, SequenceModel, SequenceOptions

FIXED = STATE - 1
"""Figures of a state that are known before the first action: all but the runtime so far."""
SEEDS = 8
"""Demonstrations at each memory size; the paper takes 4 to 10."""
BETWEEN = 4
"""Memory sizes that a demonstration is shown with, from its own to below the next."""
VERB = "train-fuser"


@dataclass(frozen=True)
class Demonstration:
    """A strategy ``(N + 1)`` that a mapper found for a problem."""

    problem: MicroBatchProblem
    strategy: Ints


def demonstrations(problems: Sequence[MicroBatchProblem], mapper: str = "g-sampler", count: int = SEEDS,
                   seed: int = 0, seconds: float | None = None) -> list[Demonstration]:
    """Return what a mapper finds for each problem with ``count`` seeds (in ``seconds`` each), every strategy once."""
    found: dict[tuple[int, bytes], Demonstration] = {}
    for at, problem in enumerate(problems):
        for turn in range(count):
            run = fuse(problem, mapper, seed=seed + turn, seconds=seconds)
            found.setdefault((at, run.strategy.tobytes()), Demonstration(problem, run.strategy))
    return list(found.values())


def relabelled(shown: Sequence[Demonstration], between: int = BETWEEN) -> list[Demonstration]:
    """Return demonstrations, and each for larger memories too, up to the next that its network was shown with.

    What fits a memory fits a larger one; so a model asked for a size that it was not shown does as for the next smaller
    one, at the least.
    """
    found = []
    for one in shown:
        more = [other.problem.memory_bytes for other in shown if other.problem.entries == one.problem.entries
                and other.problem.memory_bytes > one.problem.memory_bytes]
        ratio = min(more) / one.problem.memory_bytes if more else 1.0
        sizes = [one.problem.memory_bytes * ratio ** (at / between) for at in range(between if more else 1)]
        found += [replace(one, problem=replace(one.problem, memory_bytes=size)) for size in sizes]
    return found


def episodes(shown: Sequence[Demonstration]) -> "Episodes":
    """Return demonstrations as episodes to be learnt."""
    from tilewright.learn import Episodes  # noqa: PLC0415  (PyTorch loads late)

    longest = max((one.problem.length for one in shown), default=0)
    states = np.zeros((len(shown), longest, STATE), dtype=np.float32)
    actions = np.zeros((len(shown), longest), dtype=np.float32)
    for row, one in enumerate(shown):
        length = one.problem.length
        states[row, :length] = _states(one.problem, one.strategy)
        actions[row, :length] = _action(one.problem, one.strategy)
    asked = np.array([_asked(one.problem) for one in shown], dtype=np.float32)
    return Episodes(asked, states, actions, np.array([one.problem.length for one in shown], dtype=np.int64), FIXED)


def _asked(problem: MicroBatchProblem) -> float:
    """Return the condition: the logarithm of the memory that is asked for."""
    return log(problem.memory_bytes)


def _action(problem: MicroBatchProblem, sizes: Any) -> Any:
    """Return micro-batches as actions: from 0 (a sample) to 1 (the batch), and -1 as it is."""
    return np.where(sizes == SYNC, -1.0, np.log(np.maximum(sizes, 1)) / max(log(problem.batch), 1e-9))


def _states(problem: MicroBatchProblem, strategy: Ints) -> NDArray[np.float32]:
    """Return the states ``(N + 1, 8)`` of a strategy; see `FusionEpisode.state`."""
    found = np.empty((problem.length, STATE))
    found[:, :6] = np.log1p([entry.shape for entry in problem.entries])
    found[:, 6] = log(problem.memory_bytes / problem.batch)
    parts = np.repeat(problem.unfused, problem.length + 1, axis=0)
    for at in range(problem.length):
        parts[at + 1:, at] = strategy[at]
    cycles = figures(problem, parts[:-1])[:, LATENCY]
    found[:, 7] = np.log(cycles / cycles[0])
    return found.astype(np.float32)


def train_fuser(shown: Sequence[Demonstration], options: "SequenceOptions", begin: "SequenceModel | None" = None,
                threads: int = 1, told: Callable[[int, float], bool] | None = None) -> "SequenceModel":
    """Return a model that chooses micro-batches as demonstrations do; see `tilewright.learn.train_sequences`."""
    require_extra("learn", VERB, "PyTorch")
    from tilewright.learn import train_sequences  # noqa: PLC0415  (PyTorch loads late)

    return train_sequences(episodes(relabelled(shown)), options, begin=begin, threads=threads, told=told)


def written(model: "SequenceModel", problem: MicroBatchProblem) -> Ints:
    """Return the strategy ``(N + 1)`` that a model writes for a problem; it always fits."""
    episode, states = FusionEpisode(problem), _states(problem, problem.unfused[0])
    unfused, values = episode.latency_cycles, list[float]()
    while not episode.ended:
        at, most = len(episode.actions), episode.most
        if at:
            states[at, 7] = log(episode.latency_cycles / unfused)
        none, value = model.act(_asked(problem), states, np.array(values, dtype=np.float32))
        size = SYNC
        if none < 0.5 and most:
            choices = problem.choices[problem.choices <= most]
            size = int(choices[np.abs(_action(problem, choices) - value).argmin()])
        episode.choose(size)
        values.append(float(_action(problem, size)))
    return episode.strategy


def speedups(model: "SequenceModel", problem: MicroBatchProblem) -> tuple[float, float]:
    """Return the speedup over layer by layer of what a model writes, and the best proven one."""
    unfused, own = figures(problem, np.stack([problem.unfused[0], written(model, problem)]))[:, LATENCY].tolist()
    best = fuse(problem, "exact")
    return unfused / own, unfused / float(figures(problem, best.strategy)[0, LATENCY])


@dataclass(frozen=True)
class LearnedOptions(MapperOptions):
    """Options of ``dnnfuser`` and ``seq2seq``."""

    model: Annotated[str, "File that tilewright train-fuser wrote."] = ""


class LearnedMapper(Resumable):
    """Writes one strategy: a sample."""

    changing = ()

    def __init__(self, session: FusionSession, model: "SequenceModel") -> None:
        self.session, self.model = session, model

    def step(self) -> None:
        """Write it, and have it scored."""
        self.session.score(written(self.model, self.session.problem)[None])
        self.session.ended = True


@dataclass(frozen=True)
class Learned:
    """A mapper that reads a model of its kind from a file."""

    name: str
    kind: str
    extra: str = "learn"

    def __call__(self, session: FusionSession, options: Options) -> LearnedMapper:
        """Return a mapper; an `InputError` if there is no model, or one of another kind."""
        given = read_options(LearnedOptions, options, self.name)
        if not given.model:
            raise InputError("options.model", f"must be given to {self.name}", None,
                             f"Train one: tilewright {VERB}, then --option model=FILE")
        return LearnedMapper(session, load_fuser(Path(given.model), self.kind, self.name, "options.model")[0])


def load_fuser(path: Path, kind: str, user: str, field: str) -> "tuple[SequenceModel, dict[str, Any]]":
    """Return the model in a file and what is said about it; an `InputError` of a field if it is of another kind."""
    require_extra("learn", user, "PyTorch")
    from tilewright.learn import SequenceModel  # noqa: PLC0415  (PyTorch loads late)

    model, about = SequenceModel.load(path, field, VERB)
    if model.options.kind != kind:
        raise InputError(field, f"must hold a model of the kind {kind}", model.options.kind,
                         f"Train one: tilewright {VERB} --kind {kind}")
    return model, about


for _name, _kind in (("dnnfuser", "transformer"), ("seq2seq", "lstm")):
    FUSION_MAPPERS.register(_name, LearnedOptions)(Learned(_name, _kind))
