"""Plans found by rules of thumb: those of the literature, and what proofs begin from."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from tilewright.allocation.problem import ResidencyProblem, packed
from tilewright.allocation.stays import AWAY, Held, Prices, Stay, empty, stays_of

LARGE, MOST_TRIES = 500, 20_000
"""Steps beyond which rules may take minutes; and places that a search for one scratchpad for each stretch tries."""


def naive(problem: ResidencyProblem, prices: Prices) -> tuple[Stay, ...]:
    """Bring in what each operation reads, and store what it makes (thesis, 5.1.3).

    Inputs are on the first scratchpad, weights on the next, results on the last one, as far as they fit there.
    """
    del prices
    held, last = empty(problem), len(problem.pads) - 1
    places = {"inputs": 0, "weights": min(1, last), "outputs": last}
    for at, step in enumerate(problem.steps):
        for tensor, pad in (packed(problem, at, step.touches, {
                one: places[problem.role(one, at)] for one in step.touches}, sure=True) or {}).items():
            held[tensor, at] = pad
    return stays_of(problem, held, np.ones(held.shape, dtype=np.bool_))


def greedy(problem: ResidencyProblem, prices: Prices) -> tuple[Stay, ...]:
    """Keep tensors between two uses, first where most is saved for each byte and step that it takes."""
    def worth(gap: tuple[int, int, int]) -> float:
        tensor, first, last = gap
        saved = prices.again(tensor, last) + prices.saving(tensor, first)
        return -saved / (problem.tensors[tensor].size_bytes * (last - first))

    return stays_of(problem, placed(problem, kept_sets(problem, sorted(problem.gaps, key=worth))))


def kept_sets(problem: ResidencyProblem, gaps: Iterable[tuple[int, int, int]]) -> list[set[int]]:
    """Return what is on scratchpads in each step where gaps are kept in this order, each where there is room."""
    sets = [set(step.touches) for step in problem.steps]
    for tensor, first, last in gaps:
        inner = range(first + 1, last)
        if all(packed(problem, at, sets[at] | {tensor}) is not None for at in inner):
            for at in inner:
                sets[at].add(tensor)
    return sets


def placed(problem: ResidencyProblem, sets: Sequence[AbstractSet[int]]) -> Held:
    """Return scratchpads for what is to be held in each step, with as few changes as a short search finds."""
    found = _unmoved(problem, sets)
    if found is not None:
        return found
    held = empty(problem)
    for at, tensors in enumerate(sets):
        before = {one: int(held[one, at - 1]) for one in tensors if at and held[one, at - 1] != AWAY}
        chosen = (packed(problem, at, tensors, before, before) or packed(problem, at, tensors, before)
                  or packed(problem, at, tensors, sure=True))
        assert chosen is not None
        for tensor, pad in chosen.items():
            held[tensor, at] = pad
    return held


def _unmoved(problem: ResidencyProblem, sets: Sequence[AbstractSet[int]]) -> Held | None:
    """Return one scratchpad for each stretch of steps in which a tensor is held; None where the search ends without."""
    runs = sorted(stretches(sets), key=lambda run: (run[0], -problem.tensors[run[2]].size_bytes, run[2]))
    left = np.array([[pad.capacity_bytes] * len(problem.steps) for pad in problem.pads], dtype=np.int64)
    options = [tuple(pad for pad in range(len(problem.pads))
                     if all(pad in problem.pads_of(tensor, at) for at in range(first, last + 1)))
               for first, last, tensor in runs]
    chosen: list[int] = []
    tries, begin = 0, 0
    while len(chosen) < len(runs):
        first, last, tensor = runs[len(chosen)]
        pads = options[len(chosen)]
        for index in range(begin, len(pads)):
            pad = pads[index]
            room = problem.rooms[tensor][pad]
            same = any(problem.classes[other] == problem.classes[pad] and np.array_equal(
                left[other, first:], left[pad, first:]) for other in pads[:index])
            if not same and (left[pad, first:last + 1] >= room).all():
                left[pad, first:last + 1] -= room
                chosen.append(index)
                begin = 0
                break
        else:
            if not chosen:
                return None
            begin = chosen.pop() + 1
            first, last, tensor = runs[len(chosen)]
            pad = options[len(chosen)][begin - 1]
            left[pad, first:last + 1] += problem.rooms[tensor][pad]
        tries += 1
        if tries > MOST_TRIES:
            return None
    held = empty(problem)
    for (first, last, tensor), index, pads in zip(runs, chosen, options, strict=True):
        held[tensor, first:last + 1] = pads[index]
    return held


def stretches(sets: Sequence[AbstractSet[int]]) -> Iterator[tuple[int, int, int]]:
    """Give the first and last steps of the stretches in which tensors are held, and the tensor."""
    begun: dict[int, int] = {}
    for at, held in enumerate((*sets, frozenset[int]())):
        for tensor in [one for one in begun if one not in held]:
            yield begun.pop(tensor), at - 1, tensor
        begun.update((one, at) for one in held if one not in begun)


def _online(problem: ResidencyProblem, order: Callable[[int, int], tuple[float, ...]]) -> tuple[Stay, ...]:
    """Keep all that fits; where something must go, the tensor that ``order(tensor, step)`` puts last goes first."""
    held, now = empty(problem), dict[int, int]()
    for at, step in enumerate(problem.steps):
        idle = [one for one in now if one not in step.touches and problem.touches[one][-1] > at]
        idle.sort(key=lambda one: order(one, at))
        chosen = None
        while chosen is None:
            here = {one: now[one] for one in (*idle, *step.touches) if one in now}
            chosen = packed(problem, at, {*idle, *step.touches}, here, {} if problem.moving else here)
            if chosen is None and not idle:
                chosen = packed(problem, at, step.touches, here) or packed(problem, at, step.touches, sure=True)
                assert chosen is not None
            elif chosen is None:
                idle.pop()
        now = chosen
        for tensor, pad in now.items():
            held[tensor, at] = pad
    return stays_of(problem, held)


def belady(problem: ResidencyProblem, prices: Prices) -> tuple[Stay, ...]:
    """Let go first what is read again last."""
    del prices
    return _online(problem, lambda tensor, at: (next(one for one in problem.touches[tensor] if one > at),))


def eager(problem: ResidencyProblem, prices: Prices) -> tuple[Stay, ...]:
    """Keep what comes until room is needed, and let go first what was used longest ago: nothing is known ahead.

    OnSRAM's eager mode speculates from history (Pal 2022); the history here is that of the run itself.
    """
    del prices
    return _online(problem, lambda tensor, at: (-max(one for one in problem.touches[tensor] if one < at),))


class _Pinning:
    """Tensors that are kept for their whole life, and the room that they leave in each step."""

    def __init__(self, problem: ResidencyProblem) -> None:
        self.problem = problem
        self.bound: dict[int, int] = {}
        self.sets = [set(step.touches) for step in problem.steps]
        self.loose = [sorted(step.touches, key=lambda one: -problem.tensors[one].size_bytes) for step in problem.steps]
        """By step, what it touches that is not kept, the largest first."""
        self.left = [[pad.capacity_bytes for pad in problem.pads] for _ in problem.steps]

    def life(self, tensor: int) -> range:
        """Return the steps from the first use of a tensor to the last."""
        return range(self.problem.touches[tensor][0], self.problem.touches[tensor][-1] + 1)

    def loose_places(self, at: int, free: list[int], kept: int = AWAY) -> dict[int, int] | None:
        """Return places of what a step touches beside what is kept, the first that are free; None where they fail."""
        found = dict[int, int]()
        for one in self.loose[at]:
            if one != kept:
                rooms = self.problem.rooms[one]
                place = next((pad for pad in self.problem.pads_of(one, at) if free[pad] >= rooms[pad]), None)
                if place is None:
                    return None
                free[place] -= rooms[place]
                found[one] = place
        return found

    def fits(self, at: int, tensor: int, pad: int) -> bool:
        """Whether all that a step touches fits beside what is kept: mostly the first places that are free do."""
        problem, free = self.problem, [*self.left[at]]
        free[pad] -= problem.rooms[tensor][pad]
        if free[pad] < 0 or pad not in problem.pads_of(tensor, at):
            return False
        return self.loose_places(at, free, tensor) is not None or packed(
            problem, at, self.sets[at] | {tensor}, {}, {**self.bound, tensor: pad}) is not None

    def places(self, at: int) -> dict[int, int]:
        """Return where all is in a step."""
        found = self.loose_places(at, [*self.left[at]])
        if found is None:
            return packed(self.problem, at, self.sets[at], {}, self.bound) or {}
        return found | {one: self.bound[one] for one in self.sets[at] if one in self.bound}

    def keep(self, tensor: int, pad: int) -> None:
        """Keep a tensor."""
        self.bound[tensor] = pad
        for at in self.life(tensor):
            self.sets[at].add(tensor)
            self.left[at][pad] -= self.problem.rooms[tensor][pad]
        for at in self.problem.touches[tensor]:
            self.loose[at].remove(tensor)


def _pinned(problem: ResidencyProblem, order: Iterable[int], pads: Sequence[int]) -> tuple[Stay, ...]:
    """Keep tensors, in this order, for their whole life on one of some scratchpads, or not at all."""
    run = _Pinning(problem)
    for tensor in order:
        pad = next((pad for pad in pads if all(run.fits(at, tensor, pad) for at in run.life(tensor))), None)
        if pad is not None:
            run.keep(tensor, pad)
    held, anew = empty(problem), np.ones((len(problem.tensors), len(problem.steps)), dtype=np.bool_)
    for at in range(len(problem.steps)):
        for tensor, pad in run.places(at).items():
            held[tensor, at] = pad
    anew[list(run.bound)] = False
    return stays_of(problem, held, anew)


def _static_order(problem: ResidencyProblem) -> list[int]:
    """Return activations by the cost of not keeping them: size, reuses and (the less the better) distance of reuses.

    A weighted sum, each part of the largest one; the weights are not published, and equal here (Pal 2022).
    """
    many = [at for at, steps in enumerate(problem.touches) if len(steps) > 1 and not problem.tensors[at].weights]
    parts = np.array([[problem.tensors[at].size_bytes, len(problem.touches[at]) - 1,
                       -(problem.touches[at][-1] - problem.touches[at][0]) / (len(problem.touches[at]) - 1)]
                      for at in many], dtype=np.float64).reshape(-1, 3)
    cost = (parts / np.abs(parts).max(axis=0, initial=1)).sum(axis=1)
    return [many[at] for at in np.argsort(-cost, kind="stable")]


def onsram_static(problem: ResidencyProblem, prices: Prices) -> tuple[Stay, ...]:
    """Keep activations for their whole life on one scratchpad, the largest, as OnSRAM does (Pal 2022)."""
    del prices
    largest = max(range(len(problem.pads)), key=lambda pad: (problem.pads[pad].capacity_bytes, -pad))
    return _pinned(problem, _static_order(problem), [largest])


def onsram_multi(problem: ResidencyProblem, prices: Prices) -> tuple[Stay, ...]:
    """Keep activations for their whole life, as OnSRAM does, on any of the scratchpads."""
    del prices
    return _pinned(problem, _static_order(problem), range(len(problem.pads)))


def colouring(problem: ResidencyProblem, prices: Prices) -> tuple[Stay, ...]:
    """Colour the graph of lives that overlap; tensors of one colour share a pseudo-register (Li, PACT 2005).

    Lives are intervals: coloured by their beginnings they take as few colours as there can be.
    Registers are as large as their largest tensor; those that save most for each byte are kept, as long as all fit.
    """
    import networkx  # noqa: PLC0415  (slow to load)

    many = _static_order(problem)
    graph = networkx.Graph()
    graph.add_nodes_from(many)
    life = {one: (problem.touches[one][0], problem.touches[one][-1]) for one in many}
    graph.add_edges_from((one, other) for place, one in enumerate(many) for other in many[:place]
                         if life[one][0] <= life[other][1] and life[other][0] <= life[one][1])
    of = networkx.greedy_color(graph, strategy=lambda *_: sorted(many, key=life.__getitem__))
    registers: dict[int, list[int]] = {}
    for tensor in many:
        registers.setdefault(of[tensor], []).append(tensor)

    saved: dict[int, int] = {}
    for tensor, first, last in problem.gaps:
        saved[tensor] = saved.get(tensor, 0) + prices.again(tensor, last) + prices.saving(tensor, first)

    def worth(register: list[int]) -> float:
        return -sum(saved[one] for one in register) / max(problem.tensors[one].size_bytes for one in register)

    order = [tensor for register in sorted(registers.values(), key=worth) for tensor in register]
    return _pinned(problem, order, range(len(problem.pads)))
