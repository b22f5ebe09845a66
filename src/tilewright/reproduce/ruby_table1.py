"""Ruby, table I: how many ways there are to map one dimension over two memories with nine lanes between."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import eq
from typing import Any

import numpy as np

from tilewright.jobs import Runner
from tilewright.mapping import MapSpace, Tiling
from tilewright.reproduce.claims import Judgement, judge
from tilewright.reproduce.ruby_contest import toy, vector
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, claims, reproduction

SIZES = (3, 64, 100, 1000, 4096)
LANES = 9
SCRATCHPAD_WORDS = 1024
"""Each lane's scratchpad, 1 KiB (section III-A), in words of a byte."""


@dataclass(frozen=True)
class Kind:
    """A space of the table: where it has remainders, and the numbers printed for it."""

    name: str
    tiling: Tiling
    temporal: bool
    spatial: bool
    published: tuple[int, ...]


KINDS = (
    Kind("PFM", "perfect", False, False, (3, 22, 24, 52, 43)),
    Kind("Ruby-S", "ruby-s", False, True, (7, 50, 61, 117, 83)),
    Kind("Ruby-T", "ruby-t", True, False, (7, 157, 247, 2392, 10040)),
    Kind("Ruby", "ruby", True, True, (11, 414, 690, 5713, 30612)),
)


def chains(size: int, kind: Kind, lanes: int) -> Iterator[tuple[int, int, int]]:
    """Yield the counts (inner loop, lanes, outer loop) of every different mapping that equation 5 describes.

    Equation 5, L_n = L_(n+1) P_n + R_n - 1, is solved from the inside, where L_0 = size - 1: a count P leaves one
    remainder, R = 1 + L mod P, and must leave R = P where there may be none. What is left over is the outer loop's.
    A count beyond what is left is another way to write the same mapping, so P stays at most L + 1.
    """
    for inner in range(1, size + 1):
        last = size - 1
        if not kind.temporal and last % inner != inner - 1:
            continue
        left = last // inner
        for spread in range(1, min(lanes, left + 1) + 1):
            if kind.spatial or left % spread == spread - 1:
                yield inner, spread, left // spread + 1


def tuples(size: int, kind: Kind, lanes: int) -> int:
    """Count the different solutions (P, R) of equation 5 with counts up to the size and up to the lanes.

    Unlike in `chains`, lanes or loops that are longer than what is left count as solutions of their own.
    """
    found = 0
    for inner in range(1, size + 1):
        if not kind.temporal and (size - 1) % inner != inner - 1:
            continue
        left = (size - 1) // inner
        found += sum(kind.spatial or left % spread == spread - 1 for spread in range(1, lanes + 1))
    return found


def generated(size: int, kind: Kind) -> int:
    """Count what the generator published with the paper lists (NVlabs/timeloop, numeric.cpp, its residual factors).

    It draws the three counts from candidates (divisors, and divisors of m D ceil(D / m) for remainders m up to the
    bound: 9 for lanes with remainders alone, else D), all but one of them at most sqrt(D) + 1.5, the product of all
    P - 1 (ones left out) at most D; once for each place that the large one may have, so that some come twice. Lanes
    beyond what is left count too. Lanes are not limited to nine where temporal loops have remainders.
    """
    bound = LANES if kind.spatial and not kind.temporal else size
    candidate = _candidates(size, bound)
    small = int(size ** 0.5 + 1.5)
    total = 0
    for inner in np.flatnonzero(candidate).tolist():
        if not kind.temporal and size % inner:
            continue
        left = -(-size // inner)
        spread = np.flatnonzero(candidate[:bound + 1])
        if not kind.spatial:
            spread = spread[left % spread == 0]
        outer = -(-left // spread)
        fits = candidate[outer] & (max(inner - 1, 1) * np.maximum(spread - 1, 1) * np.maximum(outer - 1, 1) <= size)
        times = (((spread <= small) & (outer <= small)).astype(np.int64)
                 + ((inner <= small) & (spread >= small) & (outer <= small))
                 + ((inner <= small) & (spread <= small) & (outer >= small)))
        total += int((times * fits).sum())
    return total


def _candidates(size: int, bound: int) -> Any:
    """Return ``(size + 1)`` flags: the counts that the generator considers."""
    numbers = np.arange(1, size + 1)
    flags = np.zeros(size + 1, dtype=np.bool_)
    flags[numbers[size % numbers == 0]] = True
    for m in range(1, bound + 1):
        product = m * size * -(-size // m)
        divisors = numbers[product % numbers == 0]
        partners = product // divisors
        flags[divisors[divisors < size]] = True
        flags[partners[(partners < size) & (divisors != partners)]] = True
    return flags


def _count(size: int, kind: Kind) -> dict[str, Any]:
    on_lanes = list(chains(size, kind, LANES))
    space = MapSpace(vector(size), toy(LANES), kind.tiling)
    counted = space.size()
    return {
        "mappings": len(on_lanes),
        "sized": counted.mappings if counted.exact else None,
        "enumerated": sum(len(batch) for batch in space.enumerate()),
        "fitting": sum(min(inner, size) <= SCRATCHPAD_WORDS for inner, _, _ in on_lanes),
        "unlimited": sum(1 for _ in chains(size, kind, size)),
        "tuples": tuples(size, kind, LANES),
        "generated": generated(size, kind) if kind.temporal or kind.spatial else None,
    }


PERFECT, REMAINDERS, GROWTH = claims("ruby-table1", GROWTH=(712 * 233) ** 0.5 / 1.9)

_ROWS = (
    ("published", "published"),
    ("mappings", "different mappings, equation 5 on 9 lanes"),
    ("sized", "the same, counted by MapSpace.size"),
    ("enumerated", "the same, one by one, MapSpace.enumerate"),
    ("fitting", "those whose tile fits 1 KiB"),
    ("unlimited", "different mappings, any lanes"),
    ("tuples", "tuples (P, R) of equation 5, on 9 lanes"),
    ("generated", "listed by the published generator"),
)


@reproduction("ruby-table1", Setting("quick", 1, {"sizes": SIZES}), Setting("full", 1, {"sizes": SIZES}),
              version=2)
def run(setting: Setting, runner: Runner) -> Findings:
    """Count every space at every size, in every convention."""
    sizes = tuple(setting["sizes"])
    values = iter(runner.run([Cell({"space": kind.name, "size": size}, partial(_count, size, kind))
                              for kind in KINDS for size in sizes]))
    counts = [(kind, {**next(values), "published": kind.published[SIZES.index(size)]}) for kind in KINDS
              for size in sizes]
    series = {(kind.name, name): tuple(each[name] for of, each in counts if of is kind)
              for kind in KINDS for name, _ in _ROWS}
    rows = tuple((kind.name, text, *series[kind.name, name]) for kind in KINDS for name, text in _ROWS
                 if any(count is not None for count in series[kind.name, name]))
    apart = [f"{kind.name} {size}" for (kind, each), size in zip(counts, sizes * len(KINDS), strict=True)
             if not each["mappings"] == each["sized"] == each["enumerated"]]
    alike = f"differ at {', '.join(apart)}" if apart else "agree everywhere"
    table = Table("sizes", "Ways to map one dimension (table I)", ("Space", "Counted", *map(str, sizes)), rows, (
        "Spaces are chains of an inner loop, lanes and an outer loop; where there may be no remainder, R = P. "
        f"Equation 5 solved here, the space's own count and its enumeration {alike}.",))
    return Findings((table,), _judge(series, sizes), (_plot(series, sizes),))


Series = Mapping[tuple[str, str], tuple[Any, ...]]
"""Counts by size, for each space and way of counting."""


def _judge(series: Series, sizes: tuple[int, ...]) -> tuple[Judgement, ...]:
    def shown(kind: str, name: str) -> str:
        return " ".join(map(str, series[kind, name]))

    def right(kind: str, *names: str) -> int:
        """Return how many counts are as printed, of the way of counting that has most."""
        return max(int(sum(map(eq, series[kind, name], series[kind, "published"]))) for name in names)

    every = f"without the scratchpad's limit it is {shown('PFM', 'mappings')}"
    with_rest = [kind.name for kind in KINDS[1:]]
    found = sum(right(kind, "mappings", "fitting", "unlimited", "tuples") for kind in with_rest)
    listed, of = sum(right(kind, "generated") for kind in with_rest), len(sizes) * len(with_rest)
    ends = [series[kind.name, name][-1] for kind, name in
            zip(KINDS, ("fitting", "mappings", "unlimited", "unlimited"), strict=True)]
    times = [end / ends[0] for end in ends]
    return (
        judge(PERFECT, right("PFM", "fitting") / len(sizes), shown("PFM", "fitting"),
              every if series["PFM", "mappings"] != series["PFM", "fitting"] else ""),
        judge(REMAINDERS, found / of, "; ".join(shown(kind, "mappings") for kind in with_rest),
              f"{found} of {of} come out; the published generator lists just as many in {listed}, some twice, "
              "some with idle lanes, and leaves out most with two large counts"),
        judge(GROWTH, (times[2] * times[3]) ** 0.5 / times[1],
              f"at {sizes[-1]}: {times[1]:.1f} times PFM, against {times[3]:.0f} and {times[2]:.0f} times"))


def _plot(series: Series, sizes: tuple[int, ...]) -> Plot:
    data: list[dict[str, Any]] = []
    for index, kind in enumerate(KINDS):
        colour = ("@strong", "@curve-0", "@curve-1", "@curve-2")[index]
        name = "mappings" if index < 2 else "unlimited"
        for text, dash, values in (("published", "dot", series[kind.name, "published"]),
                                   ("equation 5", "solid", series[kind.name, name])):
            data.append({"type": "scatter", "mode": "lines+markers", "name": f"{kind.name}, {text}", "x": list(sizes),
                         "y": list(values), "line": {"color": colour, "dash": dash}})
    return Plot("sizes", "Sizes of the spaces", data, {
        "xaxis": {"type": "log", "title": {"text": "Size of the dimension"}, "tickvals": list(sizes),
                  "ticktext": [str(size) for size in sizes]},
        "yaxis": {"type": "log", "title": {"text": "Mappings"}}},
        "Different mappings by equation 5: PFM and Ruby-S on nine lanes, the others on any, as in the paper.")
