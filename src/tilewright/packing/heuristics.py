"""Placements in one go: quick, and often the best there is."""

import numpy as np

from tilewright.packing.buffers import Ints
from tilewright.packing.session import PACKERS, PackingSession

TRIES = 100
"""Orders that `hill-climb` tries."""


def _place(session: PackingSession, order: Ints, tightest: bool, tries: int = 0) -> None:
    from tilewright.packing.kernels import place_in_order  # noqa: PLC0415  (Numba loads late)

    own = np.arange(len(order))
    instance = session.instance(own)
    apart = np.ones((len(order), len(order)), np.bool_)
    apart[np.repeat(own, np.diff(instance.near_starts)), instance.near] = False
    offsets = np.empty(len(order), np.int64)
    draws = np.random.default_rng(0).random((tries, 2))
    place_in_order(instance, apart, order.astype(np.int64), tightest, draws, offsets)
    session.offer(offsets)


def _by_size(session: PackingSession) -> Ints:
    buffers = session.buffers
    return np.lexsort((buffers.lower, buffers.lower - buffers.upper, -buffers.size))


@PACKERS.register("greedy-by-size")
def greedy_by_size(session: PackingSession) -> None:
    """Place the largest first, each at the lowest address that is free for its life (TensorFlow Lite's planner)."""
    _place(session, _by_size(session), tightest=False)


@PACKERS.register("best-fit")
def best_fit(session: PackingSession) -> None:
    """Place buffers as they come, the largest of those that come together first, into the smallest gap."""
    _place(session, np.lexsort((-session.buffers.size, session.buffers.lower)), tightest=True)


@PACKERS.register("hill-climb")
def hill_climb(session: PackingSession) -> None:
    """Swap a buffer at the top with one beside it while that is no worse, from `greedy-by-size` on (TVM)."""
    _place(session, _by_size(session), tightest=False, tries=TRIES)
