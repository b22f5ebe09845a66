"""Which tensor stays on which scratchpad: what is asked for, and what came of it."""

import json
import struct
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from math import ceil, inf
from pathlib import Path
from typing import Any

import tilewright.report
from tilewright.allocation import (
    METADATA,
    MOST_PARTS,
    SOLVERS,
    TILE,
    Bus,
    DmaTransfer,
    Pad,
    Parts,
    PlanFault,
    PlanRecord,
    PlanSearch,
    PlanTally,
    PlanTask,
    Prices,
    ResidencyProblem,
    SolverResult,
    Stay,
    best_order,
    in_order,
    network_problem,
    offline_plan,
    offline_words,
    peak_plan,
    predecessors,
    product_plan,
    read_pads,
    read_plan,
    reordered,
    role_bound,
    summed_plan,
    verify,
)
from tilewright.api.flags import command_line, takes
from tilewright.api.inputs import load_accelerator, load_layers, name_of
from tilewright.api.places import ready_place
from tilewright.api.plan_options import ResidencyOptions
from tilewright.api.runs import open_run
from tilewright.api.sheets import OnSheet
from tilewright.api.tasks import check_seed
from tilewright.base import InputError, read_text, whole_of, write_whole
from tilewright.cost import vector_work
from tilewright.hardware import Accelerator, Memory, read_bandwidth
from tilewright.jobs import RunnerProgress, interruptible, present_stop
from tilewright.store import mapping_of
from tilewright.workload import Graph, MacNode, tensor_graph

PLAN = "plan.json"
"""What the best plan so far is called in the folder of a run."""
LEAST_SECONDS = 0.001
"""What solvers have left where cutting an operation into tiles took all of the time: enough for a first plan."""
MOST_BYTES = 2**28
"""Of the file of a plan: one with tensors in many parts has a hundred thousand stays and more."""
MOST_NAMED = 8
"""Operations in tiles that a plan names."""


@dataclass(frozen=True, repr=False)
class ScratchpadPlan(OnSheet):
    """What came of allocating: where each tensor is and when, all of it in ``record``.

    Examples
    --------
    >>> import tilewright as tw
    >>> plan = tw.allocate("resnet18", pads="3x32KB", oversize="cut")
    >>> plan.cost.dram_bytes, plan.bound, plan.gap
    (1364136, 1364136.0, 0.0)
    """

    record: PlanRecord
    place: str = field(default="", compare=False)

    @property
    def residency(self) -> tuple[Stay, ...]:
        """The stays of tensors on scratchpads, with their addresses."""
        return self.record.residency

    @property
    def addresses(self) -> dict[str, tuple[int, ...]]:
        """Addresses of the stays of each tensor, in order."""
        found: dict[str, tuple[int, ...]] = {}
        for stay in self.record.residency:
            name = self.record.tensors[stay.tensor].name
            found[name] = (*found.get(name, ()), stay.address)
        return found

    @property
    def transfers(self) -> tuple[DmaTransfer, ...]:
        """What the DMA moves."""
        return self.record.transfers

    @property
    def cost(self) -> PlanTally:
        """Bytes, cycles and energy."""
        return self.record.tally

    @property
    def bound(self) -> float:
        """What no plan is below, in the first objective."""
        return self.record.bound

    @property
    def gap(self) -> float:
        """By which share the plan is at most above the best there is."""
        return self.record.gap

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped early."""
        return self.record.interrupted

    @property
    def sheet(self) -> "tilewright.report.Sheet":
        """What is to be shown of it."""
        return tilewright.report.residency_sheet(self.record)

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        return self.record.plain()

    def verify(self) -> tuple[PlanFault, ...]:
        """Carry the plan out word by word; return what is wrong with it, which is nothing where it holds."""
        return verify(self.record)

    def write(self, path: str | Path) -> Path:
        """Write all of it as JSON, which `open_plan` reads; folders are made."""
        return write_whole(ready_place(path), json.dumps(self.plain, ensure_ascii=False, allow_nan=False) + "\n")

    def write_tflite(self, path: str | Path) -> Path:
        """Write the addresses as TensorFlow Lite Micro's offline plan, and beside it (``.json``) what they are of.

        The file is the buffer of the metadata ``OfflineMemoryAllocation``: integers of 32 bits, an offset in the arena
        for each tensor, or -1 for those that the run places. Tensors are in the order of the JSON file.

        Raises an `InputError` if operations run in tiles, or the file cannot be written.
        """
        tensors, place = offline_plan(self.record), ready_place(path)
        write_whole(Path(f"{place}.json"), json.dumps({
            "metadata": METADATA, "network": self.record.network, "command": self.record.command,
            "arena_bytes": sum(pad.capacity_bytes for pad in self.record.pads),
            "tensors": [asdict(one) for one in tensors]}, ensure_ascii=False, indent=1) + "\n")
        words = offline_words(tensors)
        return write_whole(place, struct.pack(f"<{len(words)}i", *words))


def open_plan(path: str | Path) -> ScratchpadPlan:
    """Return the plan in a JSON file; an `InputError` where it holds none."""
    return ScratchpadPlan(_read(Path(path)), str(path))


def _read(place: Path) -> PlanRecord:
    return read_plan(read_text(place, MOST_BYTES), place.name)


@takes(ResidencyOptions, raises=", or an operation can never have all its tensors on scratchpads")
def allocate(asked: ResidencyOptions) -> ScratchpadPlan:
    """Find which tensors of a network stay on which scratchpad, when, and at which address; and a bound.

    Where ``out`` names a folder, the best plan is kept there, and the same call later goes on from it. Ctrl-C ends the
    search and returns the best plan with its gap.

    Examples
    --------
    >>> import tilewright as tw
    >>> plan = tw.allocate("alexnet", pads="3x256KB", oversize="cut", solver="belady")
    >>> plan.verify(), plan.residency[0].pad
    ((), 1)
    """
    names = [asked.solvers] if isinstance(asked.solvers, str) else list(asked.solvers)
    names = [name.strip() for one in names for name in one.split(",")] or [asked.solver]
    for name in names:
        SOLVERS.get(name)
    if not 0 < asked.seconds < inf:
        raise InputError("--seconds", "must be above 0 and finite", asked.seconds)
    check_seed(asked.seed)
    machine = load_accelerator(asked.arch)
    graph = load_layers(asked.network, asked.bind, arch=machine, precision=asked.precision)
    pads = _pads(asked, machine)
    tensors = tensor_graph(graph)
    if asked.tile and asked.oversize != "tile":
        raise InputError("--tile", "must be given without --oversize", asked.oversize)
    command = command_line(
        "allocate", asked, network=name_of(asked.network), arch=name_of(asked.arch),
        pads=asked.pads if isinstance(asked.pads, str) else "", solvers=tuple(names) if asked.solvers else ())
    stop, began = asked.stop or present_stop(), time.perf_counter()
    problem = network_problem(  # Ctrl-C raises here: there is no plan to return yet
        tensors, pads, _work(graph, machine), _bits(machine), asked.oversize, _parts(asked),  # type: ignore[arg-type]
        _given(asked, graph))
    asked = replace(asked, seconds=max(LEAST_SECONDS, asked.seconds - (time.perf_counter() - began)))
    told = {"command": command, "machine": machine.name, "assumptions": _assumptions(problem, machine)}
    with interruptible(stop):
        record = _solved(asked, problem, names, told, stop)
    found = ScratchpadPlan(replace(record, interrupted=stop.is_set()),
                           "" if asked.out is None else str(Path(asked.out) / PLAN))
    if found.place:
        found.write(found.place)
    if asked.export_tflite is not None:
        found.write_tflite(Path(asked.export_tflite))
    return found


def _given(asked: ResidencyOptions, graph: Graph) -> dict[str, list[list[tuple[str, int]]]]:
    """Return the loops over time of mappings of a run outside all fan-outs, by node of the network and by level."""
    if asked.tile_from is None:
        return {}
    if asked.oversize != "tile":
        raise InputError("--tile-from", "must be given without --oversize", asked.oversize)
    layers, found = open_run(asked.tile_from).layers, dict[str, list[list[tuple[str, int]]]]()
    for node in graph.nodes:
        layer = layers.get(node.name) if isinstance(node, MacNode) else None
        if layer is None or not isinstance(node, MacNode):
            continue
        if dict(layer.operator.dimensions) != dict(node.operator.sizes):
            raise InputError("--tile-from", f"must be a run whose {node.name} has the sizes that it has here",
                             layer.operator.short, "Map the same network, without --pad")
        levels = takewhile(lambda level: all(loop.axis is None for loop in level.loops), mapping_of(layer).levels)
        found[node.name] = [[(loop.dimension, loop.step) for loop in level.loops] for level in levels]
    if not found:
        raise InputError("--tile-from", f"must be a run with layers of {graph.name}", ", ".join(list(layers)[:3]))
    return found


class _Kept:
    """The best plan in the folder of a run, if there is one; what is kept there later is known without reading."""

    def __init__(self, asked: ResidencyOptions) -> None:
        self.place = None if asked.out is None else Path(asked.out) / PLAN
        self.told, found = asked.told, None
        if self.place is not None and self.place.is_file():
            found = _read(self.place)
        self.plan = None if found is None or verify(found) else found

    def keep(self, record: PlanRecord, search: PlanSearch) -> None:
        """Keep a plan unless the one that is there is no worse, and tell how far the search is."""
        if self.place is not None and not (self.plan is not None and _beats(self.plan, record)):
            self.plan = record
            ScratchpadPlan(replace(record, interrupted=True)).write(self.place)
        if self.told is not None:
            passed = time.perf_counter() - search.began
            self.told(RunnerProgress(f"best {record.score:.5g}, bound {record.bound:.5g}:", int(passed),
                                     int(search.seconds), int(passed), passed, max(0.0, search.seconds - passed)))


def _beats(known: PlanRecord, record: PlanRecord) -> bool:
    """Whether a plan of the same problem, perhaps in another order, is no worse than one that was found."""
    same = [(one.objective, () if one.objective == ("peak",) else one.pads, one.tensors, set(one.steps))
            for one in (known, record)]
    return same[0] == same[1] and known.score <= record.score


def _parts(asked: ResidencyOptions) -> Parts:
    """Return into how many parts a tensor may be split."""
    found: Parts | None = "auto" if asked.split == "auto" else whole_of(str(asked.split), 1, MOST_PARTS)
    if found is None:
        raise InputError("--split", f"must be from 1 to {MOST_PARTS}, or auto", asked.split)
    return found


def _solved(asked: ResidencyOptions, problem: ResidencyProblem, names: Sequence[str], told: dict[str, Any], stop: Any,
            ) -> PlanRecord:
    """Run the solvers, and return the best plan."""
    metrics = tuple(name.strip() for name in asked.objective.split(","))
    if asked.order and metrics in {("peak",), ("edp",)}:
        raise InputError("--order", "must be left out with --objective peak and edp", None, "Seek it by bytes")
    if len(metrics) > 1 and {"edp", "peak"} & set(metrics):
        raise InputError("--objective", "must have edp or peak by itself", asked.objective)
    kept = _Kept(asked)
    task = PlanTask(problem, names[0], asked.seconds, stop.is_set, {**told, "objective": metrics}, asked.channels,
                    kept.plan, kept.keep)
    if metrics == ("peak",):
        return peak_plan(replace(task, told={**task.told, "solver": "exact"}))
    best: PlanRecord | None = None
    results = []
    orders, least = [problem], None
    if asked.order and not stop.is_set():
        orders, least = _orders(asked, task)
    for name in names:
        if stop.is_set() and best is not None:
            break
        began = time.perf_counter()
        mine = replace(task, solver=name, told={**task.told, "solver": name})
        record = product_plan(mine) if metrics == ("edp",) else min(
            (summed_plan(replace(mine, problem=one)) for one in orders), key=lambda one: one.score)
        results.append(SolverResult(name, record.tally, record.score, record.bound, record.proven,
                                    time.perf_counter() - began, record.trace[-1][2] if record.trace else name))
        if best is None or record.score < best.score:
            best = record
    assert best is not None
    return _bounded(best, results, len(orders) if asked.order else 0, least)


def _bounded(best: PlanRecord, results: Sequence[SolverResult], orders: int, least: float | None) -> PlanRecord:
    """Return the best plan with the bound that holds for it: of all solvers, or of all orders (``least``) if it is met.

    Bounds of other orders say nothing of the one that is shown; ``orders`` is how many were tried where one was sought.
    """
    if orders == 1:
        best = replace(best, assumptions=(
            *best.assumptions, "No other order of operations is allowed: each waits for the one before it."))
    if orders > 1:
        met = least is not None and least >= best.score and len(best.objective) == 1
        bounds = {"all orders": best.score} if met else best.bounds
        return replace(best, solvers=tuple(results), bound=best.score if met else best.bound, bounds=bounds,
                       proven=met or best.proven, assumptions=(
                           *best.assumptions, "The order of operations was sought, too: bounds are those of "
                                              f"{'any order' if met else 'the order shown'}."))
    return replace(best, solvers=tuple(results), bound=max(one.bound for one in results), proven=best.proven or any(
        one.proven and one.score == best.score for one in results))


def _orders(asked: ResidencyOptions, task: PlanTask) -> tuple[list[ResidencyProblem], float | None]:
    """Return the problem in the given order and in others worth a plan, and what no order is below, if that is known.

    Where each operation waits for the one before it, there is no other.
    The order of the plan in the folder of the run is one of them, so that an interrupted search goes on from it.
    Of the thesis's objective it is not: what is constant there depends on the order.
    """
    problem, metrics = task.problem, task.told["objective"]
    end, before = time.perf_counter() + task.seconds, predecessors(problem)
    if all(at - 1 in steps for at, steps in enumerate(before) if at):
        return [problem], None
    orders = [problem, reordered(problem, metrics, task.seconds, asked.seed, task.stopped)]
    where = {step: at for at, step in enumerate(problem.steps)}
    order = [where[step] for step in (() if task.known is None else task.known.steps) if step in where]
    if sorted(order) == list(range(len(before))) and all(
            before[at] <= set(order[:rank]) for rank, at in enumerate(order)):
        orders.append(in_order(problem, order))
    prices = Prices(problem, metrics)
    best = None if "thesis" in metrics else best_order(
        problem, prices, before, lambda: task.stopped() or time.perf_counter() > end)
    if best is None:
        return orders, None
    least = max(best.score, role_bound(problem, prices))
    return [*orders, in_order(problem, best.order)], prices.first(least)


def _pads(asked: ResidencyOptions, machine: Accelerator) -> tuple[Pad, ...]:
    """Return the scratchpads with their ways: those of the accelerator's main memory, and of its largest other one."""
    if not asked.pads:
        raise InputError("pads", "must be one or more", asked.pads)
    if not isinstance(asked.pads, str):
        return tuple(asked.pads)
    outer = machine.memories[0]
    inner = next((one for one in machine.memories[1:] if one.capacity_bytes), outer)
    own = outer.bandwidth.shared or outer.bandwidth.read
    dram = (own * outer.word_bits / 8 if asked.bandwidth is None and own is not None else
            read_bandwidth(asked.bandwidth or "16B/cycle", machine.frequency_mhz, "--bandwidth"))
    filled = _per_byte(inner, "fill")
    across = None if asked.across is None else Bus(
        read_bandwidth(asked.across, machine.frequency_mhz, "--across"), _per_byte(inner, "read") + filled)
    return read_pads(asked.pads, asked.word, Bus(dram, _per_byte(outer, "read") + filled), across)


def _per_byte(memory: Memory, kind: str) -> float:
    return float(getattr(memory.energy, f"{kind}_pj")) * 8 / memory.word_bits


def _bits(machine: Accelerator) -> tuple[float, float]:
    """Return bits of a word of weights, and of what goes from operation to operation, which is read as inputs."""
    bits = dict(machine.word_bits)
    return bits["weights"], bits["inputs"]


def _work(graph: Graph, machine: Accelerator) -> dict[str, tuple[int, float]]:
    """Return cycles and picojoules of each node by itself: layers at the peak of the array, others as they take."""
    found = {one.node.name: (one.node.count * one.latency_cycles, one.node.count * one.energy_pj)
             for one in vector_work(graph, machine)}
    return found | {node.name: (ceil(node.macs / machine.compute_instances),
                                node.macs * machine.compute.energy_pj_per_mac)
                    for node in graph.nodes if isinstance(node, MacNode)}


def _assumptions(problem: ResidencyProblem, machine: Accelerator) -> tuple[str, ...]:
    """Return what a plan takes for granted, in sentences."""
    lines = [f"Operations take MACs over the {machine.compute_instances:,} units of {machine.name}, others what its "
             "vector unit takes; the plan's latency has transfers and operations one after the other."]
    if problem.cut_bytes:
        whole = sum(size for _, size in problem.cut_bytes)
        names = {name for name, _ in problem.cut_bytes}
        left = sum(one.size_bytes for one in problem.tensors if one.name in names)
        lines.append(f"{len(names)} tensors of {whole:,} bytes were cut to {left:,}: what was cut away is not counted.")
    tiles = Counter(step.name.rpartition(TILE)[0] for step in problem.steps if TILE in step.name)
    if tiles:
        named = ", ".join(f"{name} {count}" for name, count in tiles.most_common(MOST_NAMED))
        more = f" and {len(tiles) - MOST_NAMED} more" if len(tiles) > MOST_NAMED else ""
        lines.append(f"{len(tiles)} operations were run in {tiles.total():,} tiles: {named}{more}.")
    if len(problem.pads) > 1 and not problem.moving:
        lines.append("There is no way between scratchpads: what changes place passes the main memory.")
    return tuple(lines)
