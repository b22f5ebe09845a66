"""Buffers that may take the place of others: results written over what they are made of.

Which do is chosen first. Those of one place are then placed as one buffer, of the size of the largest, for all lives.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from math import inf, lcm, prod

import numpy as np

from tilewright.jobs import Stop
from tilewright.packing.buffers import Buffers, Packing, Span

Choice = tuple[int, ...]
"""For each buffer the one whose place it takes; its own for none."""
MOST_CHOICES = 64
"""Choices up to which all are tried: where sizes of pairs are equal, what none of them comes below is proven."""


def pack_in_place(buffers: Buffers, capacity: int | None, seconds: float | None, stop: Stop,
                  place: Callable[[Buffers, float | None], Packing]) -> Packing:
    """Place buffers, some in the place of others where that helps; ``place`` places those that are left to place."""
    began, bound, least, nodes, method = time.perf_counter(), _shared_peak(buffers), inf, 0, ""
    offsets, height = None, 0
    others = _others(buffers)
    choices = list(dict.fromkeys(_choices(others, buffers)))
    for number, choice in enumerate(choices):
        left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - began))
        done = offsets is not None and (capacity is not None or height <= bound)
        if number and (done or stop.is_set() or left == 0):
            break
        joined = _joined(buffers, others, choice)
        if joined is not None:
            whole, groups = joined
            found = place(whole, None if left is None else left / min(2, len(choices) - number))
            nodes, method = nodes + found.nodes, found.method
            least = min(least, found.bound)
            if found.offsets is not None and (offsets is None or found.height < height):
                offsets = found.offsets[groups]
                height = int((offsets + buffers.size).max())
    else:
        if len(choices) == prod(map(len, others)) and all(
                buffers.size[one] == buffers.size[at] for at, each in enumerate(others) for one in each):
            bound = max(bound, int(min(least, (capacity or 0) + 1 if offsets is None else height)))
    proven = height <= bound if offsets is not None else capacity is not None and bound > capacity
    return Packing(offsets, height, bound, proven, method, nodes, time.perf_counter() - began)


def _others(buffers: Buffers) -> list[tuple[int, ...]]:
    """Return for each buffer those whose place it may take, itself first."""
    at = {name: place for place, name in enumerate(buffers.ids)}
    return [(place, *(at[name] for name in names)) for place, names in enumerate(buffers.inplace)]


def _choices(others: list[tuple[int, ...]], buffers: Buffers) -> Iterator[Choice]:
    """Give choices: first that each takes the place that is nearest to it in size and still free, and none last.

    Between them all there are or, of many, those in which one more has a place of its own.
    """
    first = list(range(len(others)))
    for at in sorted(first, key=lambda at: int(buffers.lower[at])):
        for one in sorted(others[at][1:], key=lambda one: abs(int(buffers.size[one] - buffers.size[at]))):
            if _joined(buffers, others, (*first[:at], one, *first[at + 1:])) is not None:
                first[at] = one
                break
    yield tuple(first)
    if prod(map(len, others)) <= MOST_CHOICES:
        yield from product(*others)
    else:
        yield from ((*first[:at], at, *first[at + 1:]) for at in range(len(first)))
    yield tuple(range(len(others)))


def _joined(buffers: Buffers, others: list[tuple[int, ...]], choice: Choice) -> tuple[Buffers, list[int]] | None:
    """Return buffers in which those of one place are one, and which one each is in; None where two would clash.

    Of those of one place only what may take the place of another lives beside that.
    """
    of, groups, alive = dict[int, int](), list[list[int]](), buffers.alive
    for at in sorted(range(len(choice)), key=lambda at: int(buffers.lower[at])):
        if choice[at] == at:
            of[at] = len(groups)
            groups.append([at])
            continue
        of[at] = of[choice[at]]
        if any(one not in others[at] and (alive[at] & alive[one]).any() for one in groups[of[at]]):
            return None
        groups[of[at]].append(at)
    spans = [_united(span for at in group for span in buffers.spans(at)) for group in groups]
    whole = Buffers(
        tuple(buffers.ids[group[0]] for group in groups), np.array([span[0][0] for span in spans]),
        np.array([span[-1][1] for span in spans]), np.array([max(buffers.size[group]) for group in groups]),
        np.array([lcm(*buffers.alignment[group].tolist()) for group in groups]),
        tuple(tuple((one[1], other[0]) for one, other in pairwise(span)) for span in spans))
    return whole, [of[at] for at in range(len(choice))]


def _united(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def _shared_peak(buffers: Buffers) -> int:
    """Return what no placement is below: the most that lives at one time, less what each may share with another."""
    live, alive = buffers.live[1], buffers.alive
    spared = np.zeros(len(live), np.int64)
    for at, others in enumerate(_others(buffers)):
        if len(others) > 1:
            spared += np.max([(alive[at] & alive[one]) * min(buffers.size[at], buffers.size[one])
                              for one in others[1:]], axis=0)
    return int(max((live - spared).max(initial=0), buffers.size.max(initial=0)))
