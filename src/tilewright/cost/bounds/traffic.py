"""The least of any weighted sum of accesses: what memories move as sums of what crosses boundaries, stage by stage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.cost.bounds.compute import ComputeStage
from tilewright.cost.bounds.groups import Floats, tiles_of
from tilewright.cost.bounds.passing import keepers
from tilewright.cost.bounds.refetch import Stages
from tilewright.cost.bounds.rows import MachineRows, Whole
from tilewright.hardware import ACCESSES, NETWORK, Accelerator, Fanout, Memory
from tilewright.workload import Operator, Tensor

_MOST_CHOICES, MOST_MEMORIES = 32, 5
COMPUTE = ""

Sum = tuple[str, tuple[str, ...]]
"""Accesses of some kinds at a memory, in words of its own width."""
ENERGY: Sum = "", ()
"""The picojoules of all accesses and networks."""


@dataclass(frozen=True)
class TensorTraffic:
    """The accesses for one tensor as weighted sums, in each of some chains (k) of memories that keep it (rules 4 to 6).

    Arrays (k, 1 + 2 m) hold the weights of a constant, of the words that cross the port of each of m memories, parents
    of boundaries, outermost first, and of those that the children there receive or evict: 0 where it is none's parent.
    """

    tensor: Tensor
    operator: Operator
    rows: MachineRows
    memories: tuple[str, ...]
    """Those that keep the tensor in any of the chains; the outermost does in all."""
    kept: NDArray[np.bool_]
    """Whether (k, m) they do."""
    among: "tuple[TensorTraffic, int] | None" = None
    """More chains, of which this is one, and its place: sums of all take hardly longer than those of one."""

    @cached_property
    def chain(self) -> tuple[str, ...]:
        """The memories of the first chain."""
        return tuple(name for name, here in zip(self.memories, self.kept[0].tolist(), strict=True) if here)

    @cached_property
    def last(self) -> NDArray[np.bool_]:
        """Where (k, m) memories feed the compute units."""
        after = np.cumsum(self.kept[:, ::-1], axis=1)[:, ::-1]
        found: NDArray[np.bool_] = self.kept & (after == 1)
        return found

    @cached_property
    def _known(self) -> dict[tuple[Sum, ...], tuple[Floats, NDArray[np.bool_]]]:
        return {}

    def take(self, place: int) -> "TensorTraffic":
        """Return one of the chains."""
        here = self.kept[place]
        return TensorTraffic(self.tensor, self.operator, self.rows,
                             tuple(name for name, kept in zip(self.memories, here, strict=True) if kept),
                             np.ones((1, int(here.sum())), dtype=np.bool_), (self, place))

    def settled(self, wanted: tuple[Sum, ...]) -> tuple[Floats, NDArray[np.bool_]]:
        """Return sums (k, o, 1 + 2 m, r) that are no larger, and where (k, o, r) they have no negative weights.

        Where no fan-out lies between, as much comes in as was asked for. What a memory evicts of outputs has been
        updated there before, so that it is at most what crosses the next boundary.
        """
        if wanted not in self._known and self.among is not None:
            flow, place = self.among
            (weights, right), here = flow.settled(wanted), flow.kept[place]
            columns = np.concatenate(([True], here, here))
            self._known[wanted] = weights[place, :, columns].swapaxes(0, 1)[None], right[place][None]
        if wanted not in self._known:
            more = next((sums for sums in tuple(self._known) if sums[:len(wanted)] == wanted), None)
            if more is not None:
                weights, right = self._known[more]
                return weights[:, :len(wanted)], right[:, :len(wanted)]
            count = len(self.memories)
            weights = self._weights(wanted)
            apart, _ = self._between
            over = np.zeros((len(self.kept), len(wanted), self.rows.count))
            for at in range(count):
                here, parted = self.kept[:, at, None, None], apart[:, at, None, None]
                come = weights[:, :, 1 + count + at]
                moved = np.where(parted, np.minimum(come, 0.0), come)
                weights[:, :, 1 + at] += np.where(here, over, 0.0) + np.where(parted, 0.0, moved)
                over = np.where(here, np.where(parted, moved, 0.0), over)
                come -= moved
            self._known[wanted] = weights, weights[:, :, 1:].min(axis=2) >= -1e-9
        return self._known[wanted]

    def alone(self, wanted: tuple[Sum, ...], asked: Floats) -> Floats:
        """Return (k, o, r) the least of sums where other tensors take no room; 0 where none is known.

        A tensor by itself is fetched once, as the innermost loop can leave it in place; more often where rules forbid
        that loop, which is not counted. Compute has ``asked`` (m, r) times for words of the memory that feeds it.
        """
        (weights, right), words = self.settled(wanted), float(self.tensor.words(self.operator.sizes))
        total = weights[:, :, 0]
        for at in range(len(self.memories)):
            crossing, come = weights[:, :, 1 + at], weights[:, :, 1 + len(self.memories) + at]
            total = total + np.where(self.last[:, at, None, None], crossing * asked[at],
                                     crossing * words + come * words)
        return np.maximum(0.0, np.where(right, total, 0.0))

    def _weights(self, wanted: tuple[Sum, ...]) -> Floats:
        """Return (k, o, 1 + 2 m, r) weights of sums."""
        accesses, sent = self._moved
        total = np.zeros((len(self.kept), len(wanted), 1 + 2 * len(self.memories), self.rows.count))
        for place, (memory, kinds) in enumerate(wanted):
            here = total[:, place]
            if (memory, kinds) == ENERGY:
                for (name, kind), weights in accesses.items():
                    price = self.rows.numbers[name, f"{kind}_energy_pj_per_word"]
                    here += weights[:, :, None] * (price * self.rows.scale(self.tensor, name))
                for name, weights in sent.items():
                    here += weights[:, :, None] * self.rows.numbers[name, NETWORK]
            elif memory in self.memories:
                moved = sum((accesses[memory, kind] for kind in kinds if (memory, kind) in accesses),
                            start=np.zeros((1, 1)))
                here += (moved * self.rows.scale(self.tensor, memory))[:, :, None]
        return total

    @cached_property
    def _moved(self) -> tuple[dict[tuple[str, str], Floats], dict[str, Floats]]:
        """Accesses by memory and kind, and words sent by array, each (k, 1 + 2 m)."""
        count, (_, merging) = len(self.memories), self._between
        unit = np.eye(1 + 2 * count)
        one, none = unit[0], np.zeros((len(self.kept), 1 + 2 * count))
        accesses: dict[tuple[str, str], Floats] = {}
        sent: dict[str, Floats] = {}
        received = crossing = none
        filled = none - self.tensor.words(self.operator.sizes) * one
        for at, (name, arrays) in enumerate(zip(self.memories, self._arrays, strict=True)):
            here, moved = self.kept[:, at, None], unit[1 + at]
            come = np.where(self.last[:, at, None], one * self.operator.macs, unit[1 + count + at])
            if at:
                accesses[name, "fill"] = np.where(here, filled, 0.0)
            if self.tensor.is_output:
                if at:
                    accesses[name, "drain"] = np.where(here, received, 0.0)
                read = moved - received + filled
                accesses[name, "update"], accesses[name, "read"] = here * moved, here * read
                filled = np.where(here, np.where(merging[:, at, None], read, 0.0), filled)
                crossing = np.where(here, come + filled, crossing)
            else:
                accesses[name, "read"] = here * moved
                filled = crossing = np.where(here, come, crossing)
            received = np.where(here, come, received)
            sent |= dict.fromkeys((array.name for array in arrays), crossing)
        return accesses, sent

    @cached_property
    def _arrays(self) -> list[list[Fanout]]:
        """The arrays between each memory and the next."""
        levels = self.rows.machine.levels
        places = [place for place, level in enumerate(levels) if level.name in self.memories]
        return [[level for level in levels[first:last] if isinstance(level, Fanout)]
                for first, last in pairwise([*places, len(levels)])]

    @cached_property
    def _between(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where (k, m) arrays of several lanes lie between a memory and the next that keeps the tensor; all merge.

        Partial sums are then always read back into one of the instances that merge (rule 5). Lanes along an axis of two
        dimensions may be set apart even where one of these has only one value.
        """
        spread = [[array for array in arrays if self.rows.instances([array])[0] > 1]  # in all rows alike
                  for arrays in self._arrays]
        slides = any(len(axis.terms) > 1 and any(self.operator.sizes[d] > 1 for d in axis.dimensions)
                     for axis in self.tensor.axes)
        merging = [all(all(array.merges(self.tensor.name, self.tensor.role)) for array in arrays) for arrays in spread]
        apart = np.tile(np.array([bool(arrays) for arrays in spread]), (len(self.kept), 1))
        merges = np.tile(np.array(merging) & (not slides), (len(self.kept), 1))
        for at in range(len(self.memories) - 2, -1, -1):
            passed = ~self.kept[:, at + 1]
            apart[:, at] |= passed & apart[:, at + 1]
            merges[:, at] &= ~passed | merges[:, at + 1]
        return apart, merges


@lru_cache(maxsize=1024)
def _charges(chains: tuple[tuple[str, ...], ...],
             levels: tuple[str, ...]) -> dict[str, tuple[tuple[Floats, ...], list[int]]]:
    """Return by stage which sets of boundaries may be charged there, and which of these each choice takes.

    Each boundary of each tensor is charged to the stage of its child, or to one that it passes. Sets are given by
    tensor (u, n), with 1 for a boundary that is charged.
    """
    places = {name: index for index, name in enumerate(levels)}
    stages = [name for name in levels if any(name in chain[1:] for chain in chains)]
    options = []
    for chain in chains:
        for parent, child in pairwise((*chain, COMPUTE)):
            last = places.get(child, len(places))
            options.append((child, *(name for name in stages if places[parent] < places[name] < last)))
    ends = np.cumsum([len(chain) for chain in chains])[:-1]
    choices = _choices(options)
    found = {}
    for stage in (*stages, COMPUTE):
        charged = [tuple(each == stage for each in choice) for choice in choices]
        sets = list(dict.fromkeys(charged))
        table = np.array(sets, dtype=np.float64)
        found[stage] = tuple(np.split(table, ends, axis=1)), [sets.index(each) for each in charged]
    return found


def _choices(options: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return a stage for each boundary in all ways; where they are many, all at their own but one."""
    if prod(map(len, options)) <= _MOST_CHOICES:
        return list(product(*options))
    own = tuple(option[0] for option in options)
    return [own, *((*own[:i], other, *own[i + 1:]) for i, option in enumerate(options) for other in option[1:])]


@dataclass(frozen=True)
class Port:
    """What accesses of some kinds share at a memory: words a cycle, (r)."""

    memory: Memory
    kinds: tuple[str, ...]
    rate: Floats


def _a_cycle(rate: tuple[Whole, Whole]) -> Floats:
    words, cycles = rate
    return words.astype(np.float64) / cycles.astype(np.float64)


def ports_of(rows: MachineRows) -> list[Port]:
    """Return all ports with a limit."""
    return rows.once("ports", lambda: [
        Port(memory, kinds, _a_cycle(rows.rates[memory.name, port])) for memory in rows.machine.memories
        for port, kinds in ACCESSES.items() if (memory.name, port) in rows.rates])


def blocking_of(rows: MachineRows) -> list[Port]:
    """Return what compute waits for at single-buffered memories: drains and fills, at the slower of both rates."""
    return rows.once("blocking", lambda: _blocking_of(rows))


def _blocking_of(rows: MachineRows) -> list[Port]:
    found = []
    for memory in rows.machine.memories[1:]:
        for kind, own in (("drain", "read"), ("fill", "write")):
            given = [_a_cycle(rows.rates[memory.name, port]) for port in (own, "shared")
                     if (memory.name, port) in rows.rates]
            if memory.buffering == "single" and given:
                found.append(Port(memory, (kind,), np.min(given, axis=0)))
    return found


def port_sums(ports: Sequence[Port], priced: bool) -> tuple[Sum, ...]:
    """Return the sums that `cycles_of` takes, those of energy first where it is ``priced``."""
    return ((ENERGY,) if priced else ()) + tuple((port.memory.name, port.kinds) for port in ports)


def cycles_of(moved: Floats, ports: Sequence[Port], rows: MachineRows) -> Floats:
    """Return (..., p, r) cycles of ports, not rounded, that move (..., p, r) words in all instances."""
    rates = np.array([port.rate for port in ports]).reshape(len(ports), rows.count)
    instances = np.array([rows.active[port.memory.name] for port in ports]).reshape(len(ports), rows.count)
    cycles: Floats = moved / rates / instances
    return cycles


def known_flows(operator: Operator, rows: MachineRows) -> dict[tuple[str, tuple[str, ...]], TensorTraffic]:
    """Return what is known of tensors and chains of memories."""
    return rows.once((operator, "traffic"), dict)


def _flows(tensor: Tensor, operator: Operator, rows: MachineRows, chain: tuple[str, ...]) -> Iterator[TensorTraffic]:
    """Yield what moves of a tensor in every chain that it may have beside one, if they are few and of the same home."""
    memories = keepers(tensor, rows.machine, {})
    if chain[0] != memories[0] or len(memories) > MOST_MEMORIES:
        yield TensorTraffic(tensor, operator, rows, chain, np.ones((1, len(chain)), dtype=np.bool_))
    else:
        kept = np.array([*product((True,), *[(True, False)] * (len(memories) - 1))])
        yield from map(TensorTraffic(tensor, operator, rows, memories, kept).take, range(len(kept)))


def least_alone(flow: TensorTraffic, ports: Sequence[Port], homes: dict[str, str],
                perfect: bool) -> tuple[Floats, Floats]:
    """Return the least energy (k, r) and the least cycles (k, p, r) of ports for one tensor, as `Traffic.ports_least`.

    Other tensors take no room further in than their ``homes``.
    """
    tiles, name = tiles_of(flow.operator, perfect), flow.tensor.name
    asked = [ComputeStage(tiles, flow.rows, homes | {name: memory}).alone(name) for memory in flow.memories]
    found = flow.alone(port_sums(ports, True), np.array(asked))
    return found[:, 0], cycles_of(found[:, 1:], ports, flow.rows)


@dataclass(frozen=True)
class Traffic:
    """Lower bounds on weighted sums of accesses, over all tiles that fit and all loop orders at once."""

    stages: Stages
    flows: tuple[TensorTraffic, ...]

    @classmethod
    def of(cls, operator: Operator, machines: Accelerator | MachineRows, chains: dict[str, tuple[str, ...]],
           perfect: bool = False) -> "Traffic":
        """Return the traffic of an operator whose tensors stay in ``chains`` of memories, outermost first."""
        rows = machines if isinstance(machines, MachineRows) else MachineRows.one(machines, None)
        known = known_flows(operator, rows)
        for tensor in operator.tensors:
            if (tensor.name, chains[tensor.name]) not in known:
                for flow in _flows(tensor, operator, rows, chains[tensor.name]):
                    known.setdefault((tensor.name, flow.chain), flow)
        return cls(Stages(operator, rows, chains, perfect),
                   tuple(known[tensor.name, chains[tensor.name]] for tensor in operator.tensors))

    @property
    def rows(self) -> MachineRows:
        """The machines."""
        return self.stages.rows

    def ports_least(self, ports: Sequence[Port], priced: bool = True) -> tuple[Floats, Floats]:
        """Return the least energy (r) of memories and networks, and the least cycles (p, r) of ports, not rounded.

        Energy is 0 where it is not ``priced``.
        """
        sums = port_sums(ports, priced)
        found = self.least(sums) if sums else np.zeros((0, self.rows.count))
        energy = found[0] if priced else np.zeros(self.rows.count)
        return energy, cycles_of(found[priced:], ports, self.rows)

    def least(self, wanted: Sequence[Sum]) -> Floats:
        """Return (o, r) lower bounds on sums of accesses; 0 where none is known."""
        settled = [each.settled(tuple(wanted)) for each in self.flows]
        known = np.all([right[0] for _, right in settled], axis=0)
        totals = self._totals([np.where(known[:, None], weights[0], 0.0) for weights, _ in settled])
        return np.maximum(0.0, np.where(known, totals, 0.0))

    def _totals(self, sums: list[Floats]) -> Floats:
        """Return (o, r) bounds on sums of accesses: by tensor (o, 1 + 2 n, r), settled."""
        charges = _charges(tuple(each.chain for each in self.flows), tuple(self.stages.places))
        totals = np.sum([weights[:, 0] for weights in sums], axis=0)[:, None]
        words = np.array([float(each.tensor.words(self.stages.operator.sizes)) for each in self.flows])[:, None]
        for name, (sets, taken) in charges.items():
            merged = np.stack([own @ weights[:, 1:1 + len(each.chain)]
                               for each, weights, own in zip(self.flows, sums, sets, strict=True)], axis=2)
            received = np.broadcast_to(self._received(name, sums)[:, None], merged.shape)
            least = np.zeros((*merged.shape[:2], self.rows.count))
            some = merged.any(axis=(2, 3)) | received.any(axis=(2, 3))
            if some.any():
                least[some] = self._compute.least(merged[some]) if name == COMPUTE else (
                    self.stages.by_name[name].least(merged[some] * words, received[some] * words))
            totals = totals + least[:, taken]
        best: Floats = totals.max(axis=1)
        return best

    def _received(self, name: str, sums: list[Floats]) -> Floats:
        """Return (o, t, r) the weights of what the instances of a stage receive; next to compute it is no choice."""
        found = np.zeros((len(sums[0]), len(self.flows), self.rows.count))
        for place, (each, weights) in enumerate(zip(self.flows, sums, strict=True)):
            if name in each.chain[1:]:
                found[:, place] = weights[:, len(each.chain) + each.chain.index(name)]
        return found

    @cached_property
    def _compute(self) -> ComputeStage:
        feeding = {each.tensor.name: each.chain[-1] for each in self.flows}
        return ComputeStage(self.stages.tiles, self.rows, feeding)
