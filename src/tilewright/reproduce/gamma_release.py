"""The baselines as Gamma's release runs them on S1: its encoding, and one penalty for all mappings that do not fit.

Optimisers propose 16 numbers (github.com/maestro-project/gamma, src/Other_opts): for the array's columns and for the
elements of a column each, which of K, C, Y, X is spread, one of 720 loop orders, and six tile sizes, uniform from 1 to
the layer's own. What does not fit costs 2^63 (other_method_env.py), however little it is over.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cost import DenseModel
from tilewright.hardware import Accelerator
from tilewright.jobs import Runner, present_stop
from tilewright.mapping import MappingBatch, MapSpace, dump_mapping
from tilewright.reproduce.gamma_contest import ByMethod, Method, Tries, baselines, gather, key_of
from tilewright.reproduce.searching import Layer, SeededSearch, costs, mapping_counted
from tilewright.reproduce.study import Cell
from tilewright.search import MAPPERS, BlackBox, Problem

PENALTY = 2.0**63
SPREAD, LOOPS = ("K", "C", "P", "Q"), ("K", "C", "P", "Q", "R", "S")
NUMBERS = 2 * (2 + len(LOOPS))
RELEASED = ", as released"
DRAWN = 200
"""Points that random search proposes at a time."""

Points = NDArray[np.float64]


@dataclass(frozen=True)
class ReleaseEncoding:
    """Mappings of a convolution on an S1 machine as points of ``[0, 1]^16`` (``b`` points)."""

    space: MapSpace

    @cached_property
    def _places(self) -> list[int]:
        """Where the encoded dimensions stand among those of the operator."""
        return [self.space.layout.dimensions.index(name) for name in LOOPS]

    def decode(self, points: Points) -> MappingBatch:
        """Return the mappings of ``(b, 16)`` points.

        An element's tile is at most that of its column. The shared buffer holds the tiles of all columns, and its loops
        move what all elements hold at once.
        """
        values = np.clip(np.asarray(points, dtype=np.float64), 0.0, 1.0).T
        sizes = np.array([self.space.operator.sizes[name] for name in LOOPS])[:, None]
        half = NUMBERS // 2
        column, element = self._tiles(values[2:half], sizes), self._tiles(values[half + 2:], sizes)
        element = np.minimum(element, column)
        across, down = self.space.accelerator.fanouts[0].shape
        spread = [self._spread(values[place]) for place in (0, half)]
        shared = np.where(spread[0], np.minimum(column * across, sizes), column)
        one_column = np.where(spread[1], np.minimum(element * down, column), element)
        array = np.where(spread[0], np.minimum(one_column * across, shared), one_column)
        batch = self.space.empty(values.shape[1])
        steps, ranks = np.ones_like(batch.steps), np.zeros_like(batch.ranks)
        ranks += np.arange(ranks.shape[1], dtype=ranks.dtype)[None, :, None]
        for slot, extents in enumerate((shared, array, one_column, element)):
            steps[slot, self._places] = extents
        for slot, place in ((0, 1), (1, half + 1)):
            ranks[slot] = self._ranks(values[place])
        return MappingBatch(batch.layout, steps, ranks)

    @staticmethod
    def _tiles(values: Points, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.minimum(1 + np.floor(values * sizes).astype(np.int64), sizes)

    @staticmethod
    def _spread(values: Points) -> NDArray[np.bool_]:
        """Return ``(6, b)``: whether a dimension is spread."""
        chosen = np.minimum((values * len(SPREAD)).astype(np.int64), len(SPREAD) - 1)
        return np.equal(np.arange(len(LOOPS))[:, None], chosen[None, :], dtype=np.bool_)

    def _ranks(self, values: Points) -> NDArray[np.int8]:
        """Return ``(d, b)`` positions: those of the dimensions encoded, then of the others."""
        orders = np.array(list(permutations(range(len(LOOPS)))), dtype=np.int8)
        chosen = orders[np.minimum((values * len(orders)).astype(np.int64), len(orders) - 1)].T
        dims = len(self.space.layout.dimensions)
        ranks = np.empty((dims, len(values)), dtype=np.int8)
        ranks[self._places] = chosen
        rest = [place for place in range(dims) if place not in self._places]
        ranks[rest] = np.arange(len(LOOPS), dims, dtype=np.int8)[:, None]
        return ranks


def release_methods() -> tuple[Method, ...]:
    """Return the baselines that can be built, under the release's encoding."""
    return tuple(Method(f"{method.label}{RELEASED}", method.mapper) for method in baselines()[0]
                 if method.mapper == "random" or isinstance(MAPPERS.get(method.mapper), BlackBox))


def released(runner: Runner, layers: Sequence[Layer], machine: Accelerator, *, seeds: int, samples: int) -> Tries:
    """Let the baselines map layers for latency, as in `contest`."""
    def case(asked: ByMethod) -> SeededSearch:
        layer, method, key = asked.layer, asked.method, key_of(asked.layer, machine)
        return SeededSearch([Cell({**key, "released": method.mapper, "samples": samples, "seed": seed},
                                  partial(release_search, layer, machine, method, samples, seed), samples)
                     for seed in range(seeds)], mapping_counted(key, layer.operator, machine))

    return gather(runner, layers, release_methods(), case, "latency")


def release_search(layer: Layer, machine: Accelerator, method: Method, samples: int, seed: int) -> dict[str, Any]:
    """Search a layer by one baseline; what it proposes beyond the samples is neither scored nor told.

    The value is as that of `search_cell`.
    """
    encoding = ReleaseEncoding(MapSpace(layer.operator, machine))
    model = DenseModel(layer.operator, machine, encoding.space.layout)
    ask, tell = _optimiser(method, samples, seed)
    stop = present_stop()
    best, mapping, done, legal, history = np.inf, None, 0, 0, []
    while done < samples and not stop.is_set():
        points = ask()
        batch = encoding.decode(points[:samples - done])
        scored = model.score(batch, threads=1)
        losses = np.where(scored.legal, scored.latency_cycles, PENALTY)
        if len(batch) == len(points):
            with np.errstate(all="ignore"):  # there are libraries that divide by the spread of losses
                tell(losses)
        index = int(losses.argmin())
        if scored.legal[index] and losses[index] < best:
            best = float(losses[index])
            mapping = batch.mapping(index, layer.operator.sizes)
            history.append([done + index + 1, best])
        done, legal = done + len(batch), legal + int(np.count_nonzero(scored.legal))
    if mapping is None:
        return {"edp": None, "latency_cycles": None, "samples": done, "legal_samples": legal}
    return {**costs(model.cost(mapping)), "samples": done, "legal_samples": legal, "history": history,
            "mapping": dump_mapping(mapping, layer.operator, machine)}


def _optimiser(method: Method, samples: int, seed: int) -> tuple[Callable[[], Points], Callable[[Points], None]]:
    """Return what proposes points, and what takes their losses."""
    if method.mapper == "random":
        rng = np.random.Generator(np.random.PCG64(seed))
        return lambda: rng.random((DRAWN, NUMBERS)), lambda losses: None
    member = MAPPERS.get(method.mapper)
    assert isinstance(member, BlackBox)
    inner = member.build(member.options_type(), Problem(NUMBERS, seed, samples))
    return inner.ask, inner.tell
