"""Allocation: what plans for scratchpads come to, held against proofs, each other, and the verifier.

Usage: python benchmarks/allocation.py PART [NUMBER [SEED]]

``networks``  SMAUG's eight networks and three larger ones, cut to three scratchpads of seven sizes: proofs, CPU seconds
``chains``    so many drawn graphs of at most 12 tensors: ``exact`` against trying everything
``drawn``     so many drawn graphs: plans of every solver carried out by the verifier, against bounds and ``exact``
``quick``     milliseconds of heuristics for 200 operations, the least of seven times
``heights``   heuristics' best placement over the live peak, for the zoo
``orders``    the order that is sought against the given one
``room``      networks on scratchpads that grow, tensors as they are: bytes never rise

Seconds are CPU seconds of this process, compiled code being loaded before.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.allocation import (
    SOLVERS,
    Bus,
    OperationStep,
    PlanSearch,
    Prices,
    ResidencyProblem,
    ResidentTensor,
    network_problem,
    plan_record,
    read_pads,
    standing_bounds,
    verify,
)
from tilewright.allocation.search import RULES
from tilewright.packing import Buffers, pack
from tilewright.reproduce.spm_savings import NETWORKS, SIZES, problem_of
from tilewright.workload import tensor_graph, zoo

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "unit" / "allocation"))
TOLD = {"command": "", "machine": "", "assumptions": (), "solver": "", "objective": ("bytes",)}
WAY = Bus(8.0, 1.0)
KINDS: dict[str, dict[str, Any]] = {"one way": {}, "moves": {"across": WAY}, "roles": {"roles": True}, "roles, moves": {
    "roles": True, "across": WAY}}
ORDERS = {"squeezenet": "3x64KB", "googlenet": "3x256KB", "gnmt": "3x8KB", "mnasnet": "3x64KB",
          "densenet121": "3x256KB", "yolov8n": "5x128KB", "whisper-tiny": "4x128KB", "t5-small": "4x128KB",
          "shufflenet-v2": "3x32KB"}
"""Networks of which the order is sought: like Inception, an LSTM, one found by search, and others that branch."""

LARGER = "resnet50", "bert-base", "mobilenet-v2"


def solved(problem: ResidencyProblem, solver: str = "exact", seconds: float = 60.0) -> PlanSearch:
    search = PlanSearch(problem, Prices(problem, ("bytes",)), seconds)
    standing_bounds(search)
    SOLVERS.get(solver)(search)
    return search


def holds(search: PlanSearch) -> bool:
    """Whether the verifier takes a plan, and its own bound does."""
    return not verify(plan_record(search, TOLD, (), 1)) and search.bound <= scored(search)


def scored(search: PlanSearch) -> int:
    """Return the score of a plan that was found."""
    assert search.score is not None
    return search.score


def compared(problem: ResidencyProblem, names: list[str]) -> tuple[PlanSearch, Counter[str]]:
    """Return what ``exact`` finds, and what was counted of all solvers beside it."""
    found, best = Counter[str](), solved(problem)
    named = best.prices.named
    told = {name: solved(problem, name, 10.0) for name in names if name != "exact"}
    for search in (best, *told.values()):
        found["plans"] += 1
        found["refused by the verifier"] += not holds(search)
        found["below a bound"] += scored(search) < best.bound
        found["better than exact"] += named(scored(search)) < named(scored(best))
    rules = min(named(scored(told[name])) for name in told if name in RULES)
    found["proven"] += best.closed
    found["a heuristic is the best"] += rules == named(scored(best))
    found["and is certified"] += rules == named(scored(best)) and best.closed
    return best, found


def told(found: Counter[str]) -> None:
    print(", ".join(f"{name} {count:,}" for name, count in sorted(found.items())), flush=True)


def networks(*_: int) -> None:
    total, slowest = Counter[str](), 0.0
    for network in (*NETWORKS, *LARGER):
        for size in SIZES:
            problem = problem_of(network, size)
            start = time.process_time()
            solved(problem)
            took = time.process_time() - start
            best, found = compared(problem, list(SOLVERS if network in NETWORKS else RULES))
            total.update(found)
            slowest = max(slowest, took)
            print(f"{network:<12} {size:>5} KB  {best.prices.first(scored(best)):>12,.0f} bytes  bound "
                  f"{best.prices.first(best.bound):>12,.0f}  {took:6.2f} s  {best.trace[-1][2]}", flush=True)
    told(total)
    print(f"slowest {slowest:.2f} CPU s")


def drawn(count: int = 2_500, seed: int = 11) -> None:
    from random_residency import drawn as draw

    total, start = Counter[str](), time.process_time()
    for name, kind in KINDS.items():
        for at in range(0, count, 10):
            for problem in draw(seed + at, min(10, count - at), most_steps=10, **kind):
                total["graphs"] += 1
                total.update(compared(problem, list(SOLVERS))[1])
            if at % 500 == 0:
                print(f"{name}, {at}: {time.process_time() - start:.0f} CPU s: ", end="")
                told(total)
    told(total)


def chains(count: int = 500, seed: int = 17) -> None:
    from random_residency import drawn as draw
    from random_residency import least_bytes

    total = Counter[str]()
    for place in range(10 * count):
        problem = draw(seed + place, 1, most_steps=7, **list(KINDS.values())[place % len(KINDS)])[0]
        if len(problem.tensors) <= 12 and total["graphs"] < count:
            best = solved(problem)
            total["graphs"] += 1
            total["equal"] += best.prices.first(scored(best)) == least_bytes(problem)
            total["proven"] += best.closed
    told(total)


def zoo_problems(pads: Callable[[str], str], names: list[str]) -> Iterator[tuple[str, ResidencyProblem]]:
    for name in names:
        yield name, network_problem(tensor_graph(zoo.load(name)), read_pads(pads(name)), oversize="cut")


def wide(steps: int, seed: int) -> ResidencyProblem:
    """Return one of many operations, drawn: one after the other from problems of the tests."""
    from random_residency import drawn as draw

    tensors: list[ResidentTensor] = []
    made: list[OperationStep] = []
    for place, part in enumerate(draw(seed, steps, most_steps=6)):
        first = len(tensors)
        tensors += [replace(one, name=f"{one.name}.{place}") for one in part.tensors]
        made += [OperationStep(f"{one.name}.{place}", tuple(first + at for at in one.reads),
                               tuple(first + at for at in one.writes)) for one in part.steps]
        if len(made) >= steps:
            break
    return ResidencyProblem("wide", tuple(made[:steps]), tuple(tensors), read_pads("3x64B"))


def quick(*_: int) -> None:
    cases = [("drawn", wide(200, 5)), *zoo_problems(lambda _: "4x256KB", ["resnet50", "bert-base", "densenet121"])]
    for name, problem in cases:
        prices = Prices(problem, ("bytes",))
        rows = []
        for rule, make in RULES.items():
            make(problem, prices)
            least = float("inf")
            for _turn in range(7):
                start = time.process_time()
                make(problem, prices)
                least = min(least, time.process_time() - start)
            rows.append(f"{rule} {least * 200 / len(problem.steps) * 1000:.1f}")
        print(f"{name} ({len(problem.steps)} operations): ms for 200: {', '.join(rows)}", flush=True)


def heights(*_: int) -> None:
    worst = 0.0
    for name in zoo.names():
        problem = next(zoo_problems(lambda _: "16x4096MB", [name]))[1]
        lives = [(one.name, at[0], at[-1] + 1, one.size_bytes) for one, at in zip(
            problem.tensors, problem.touches, strict=True) if at and not one.weights]
        ids, lower, upper, size = zip(*lives, strict=True)
        buffers = Buffers(ids, np.array(lower), np.array(upper), np.array(size))
        best = {method: pack(buffers, method=method).height / buffers.live_peak for method in (
            "greedy-by-size", "best-fit", "hill-climb")}
        worst = max(worst, min(best.values()))
        print(f"{name:<24} {len(ids):>5} tensors  " + "  ".join(f"{one} {at:.4f}" for one, at in best.items()),
              flush=True)
    print(f"worst best {worst:.4f}")


def orders(*_: int) -> None:
    for name, pads in ORDERS.items():
        start = time.process_time()
        given, sought = (tw.allocate(name, pads=pads, oversize="cut", order=order) for order in (False, True))
        print(f"{name:<14} {pads:<9} given {given.cost.dram_bytes:>13,}  sought {sought.cost.dram_bytes:>13,}  "
              f"{time.process_time() - start:.1f} s", flush=True)


def room(*_: int) -> None:
    for name in ("resnet50", "mobilenet-v2", "googlenet", *filter(None, NETWORKS.values())):
        problem = next(zoo_problems(lambda name: "6x32KB" if name == "googlenet" else "3x32KB", [name]))[1]
        found = []
        for size in SIZES:
            pads = tuple(replace(pad, capacity_bytes=size * 1024) for pad in problem.pads)
            best = solved(replace(problem, pads=pads))
            found.append(int(best.prices.first(scored(best))))
        print(f"{name:<14} {'never more' if found == sorted(found, reverse=True) else 'MORE'}: {found}", flush=True)


if __name__ == "__main__":
    parts = {one.__name__: one for one in (networks, chains, drawn, quick, heights, orders, room)}
    parts[sys.argv[1]](*map(int, sys.argv[2:]))
