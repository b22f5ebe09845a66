"""The whole dense model as a program: counts, cycles, energy, legality (`single` for many mappings)."""

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, lcm
from typing import Literal

from tilewright.cost.dense import operations as op
from tilewright.cost.dense.closed_form import View
from tilewright.cost.dense.lowering import Words
from tilewright.cost.dense.nest import Boundary, carries
from tilewright.cost.dense.program import FAR, FAR_WIDE, WIDEST, Machine, Program, Sizes, remembered
from tilewright.cost.dense.walk_records import VIEWS
from tilewright.cost.dense.walks import Walks
from tilewright.cost.hardware import PERIOD, RATES
from tilewright.cost.records import KINDS
from tilewright.cost.sums import BLOCKING, PRICES, SERVED, KeptTensor, Plan
from tilewright.cost.tables import TallyKey, need_keys, table_keys
from tilewright.hardware import LEAKAGE, RATE, Accelerator, Fanout, Memory, Number, exact_rate, room_name
from tilewright.mapping import Layout, by_room, held_bits, lane_use
from tilewright.workload import Operator, Tensor

Term = tuple[int, int | Fraction]
"""Wide row of words, and the bits of each."""

Written = tuple[Machine, tuple[TallyKey, ...]]
"""A program, and the keys of its last outputs; the costs before them have none."""


def parameters_of(structure: Accelerator) -> tuple[Number, ...]:
    """Return the numbers that programs take: all but areas and leakage, of which they take the total."""
    return (*(key for key in structure.numbers if key[1] not in ("area_um2", "leakage_mw")), LEAKAGE)


Rates = Literal["whole", "short", "long"]
"""How cycles are found exactly in double precision, where a quotient of whole numbers below 2^53 is rounded up rightly:

by rates that are whole numbers over powers of two; by words times the cycles of a rate over its words; or, where that
product may be too large, of the rest that is left when the words of a rate have been taken off as often as may be.
"""


def kind_of_rates(operator: Operator, accelerator: Accelerator, rates: Iterable[float]) -> Rates:
    """Return how cycles of a layer at these rates are found exactly."""
    periods = [exact_rate(float(rate)).denominator for rate in rates]
    if not any(cycles & (cycles - 1) for cycles in periods):
        return "whole"
    cycles = max(periods)
    widths = [held_bits(tensor, accelerator) for tensor in operator.tensors]
    bits = sum(widths) * lcm(*(width.denominator for width in widths))
    return "short" if len(KINDS) * bits * operator.macs * cycles < 2**53 else "long"


def narrow_enough(operator: Operator) -> bool:
    """Whether single precision carries every extent, and every word of a sliding axis, exactly."""
    sizes = operator.sizes
    sliding = [axis for tensor in operator.tensors for axis in tensor.axes if len(axis.terms) == 2]
    words = [sizes[first] * sizes[second] for first, second in (axis.dimensions for axis in sliding)]
    return max(sizes.values()) < WIDEST and max(words, default=0) < 2**24


class Model:
    """Writes the program of one operator on one machine for one layout.

    The program is that of all operators whose sizes are 1 where this one's are (`Machine.of`).

    Parameters
    ----------
    narrow
        Whether single precision carries its extents (`narrow_enough`).
    even
        For mappings whose loops all divide what they split, which take far fewer instructions.
    rates
        How cycles are found (`kind_of_rates`); but for whole numbers a `PERIOD` stands beside each rate.
    """

    def __init__(self, operator: Operator, accelerator: Accelerator, layout: Layout, *,  # noqa: PLR0913
                 narrow: bool, even: bool = False, rates: Rates = "whole") -> None:
        self.operator = operator
        self.accelerator = accelerator
        self.layout = layout
        keys = list(parameters_of(accelerator))
        self.rates = rates
        if rates != "whole":
            keys += [(name, what + PERIOD) for name, what in keys if what in RATES]
        self.parameters = {key: row for row, key in enumerate(keys)}
        self.walked = Walks(operator, accelerator, layout).levels
        self.program = Program(len(self.parameters), FAR if narrow else FAR_WIDE)
        self.words = Words(operator, accelerator, layout, self.program, even=even)
        self.plan = Plan(operator, accelerator, layout.keeps)

    def costs(self) -> Written:
        """Return the program of cycles, energy and excess."""
        return self.program.finish(self._costs()), ()

    def timed(self) -> Written:
        """Return the program of cycles, excess and needs; in the place of energy is none."""
        costs, keys = self._costs(priced=False), need_keys(self.accelerator)
        return self.program.finish([*costs, *map(self._told, keys)]), keys

    def table(self) -> Written:
        """Return the program of costs, all words summed over instances, and needs."""
        costs, keys = self._costs(), table_keys(self.accelerator, self.layout.keeps)
        return self.program.finish([*costs, *map(self._told, keys)]), keys

    def needs(self) -> Written:
        """Return the program of bytes and lanes alone."""
        keys = need_keys(self.accelerator)
        return self.program.finish(list(map(self._told, keys))), keys

    def _told(self, key: TallyKey) -> int:
        """Wide row: what a key of a table stands for."""
        view, level, name, kind = key
        if view == "lanes":
            return self.words.sides(level, kind)
        if view == "room":
            return self._rooms(level).get(name, self.constant(0))
        tensor = self.operator.tensor(name)
        return self._taken(tensor, level) if view == "tile" else self._moved(tensor, level, kind, busiest=False)

    def _costs(self, priced: bool = True) -> list[int]:
        steps = self.words.steps()
        excess, paced = self._excess(), self._paced(steps)
        steady, ramp = self._steady(paced), self._ramp()
        latency = self.program.one(op.wide_add, steady, ramp)
        energy = self._energy(latency) if priced else self.constant(0)
        outputs = [latency, energy, excess, steps, steady, ramp, self._traffic()]
        if self.walked:
            blocked, others = self._steady_parts(paced, self.walked)
            outputs += [blocked, self.constant(0) if others is None else others]
        return outputs

    def _paced(self, steps: int) -> int:
        """Wide row: cycles of so many steps, as fast as lanes take the words of the operands."""
        pace = lane_use(self.operator, self.accelerator).cycles
        if pace.numerator > 1:
            steps = self.program.one(op.wide_multiply, steps, self.constant(pace.numerator))
        if pace.denominator > 1:
            steps = self.program.one(op.ceildiv, steps, self.constant(pace.denominator))
        return steps

    def tallies(self) -> Written:
        """Return the program of all counts that the sparse model starts from.

        Those of the busiest instance, and of the first and last tiles, only where a bandwidth limits them.
        """
        found: dict[TallyKey, int] = {("total", -1, "", "steps"): self.words.steps()}
        arrays = self.program.one(op.wide_add, self.constant(0), self.constant(0), fresh=True)
        for level, hardware in enumerate(self.accelerator.levels):
            if isinstance(hardware, Fanout):
                self._over_array(arrays, level, hardware)
        found["total", -1, "", "arrays"] = arrays
        for kept in self.plan.kept:
            views, level = ["total"], kept.level
            if self._limited(level, "read") or self._limited(level, "write"):
                views += VIEWS if level in self.walked else ["busiest"]
            found |= {(view, level, kept.tensor.name, kind): self._moved(kept.tensor, level, kind, view != "total")
                      for view in views for kind in KINDS}
        compute = len(self.accelerator.levels)
        found |= {("total", compute, tensor.name, kind): self._moved(tensor, compute, kind, busiest=False)
                  for tensor in self.operator.tensors for kind in ("fills", "drains")}
        found |= {("edge", level, kept.tensor.name, kind): self._at_end(edge, kind)
                  for level in self.plan.overlapping for last in (False, True)
                  for port, kind, moved in self.plan.ends(level, last) if self._limited(moved[0][0].level, port)
                  for kept, edge in moved}
        found |= {key: self._told(key) for key in need_keys(self.accelerator) if key[0] == "lanes"}
        return self.program.finish(list(found.values())), tuple(found)

    def _at_end(self, edge: Boundary, kind: str) -> int:
        """Wide row: words at the child (fills, drains) or its parent (reads, updates) in the cold start or the tail."""
        if edge.tensor.is_output:
            return self.words.last_tile(edge) if kind == "drains" else (
                self.words.words(edge, View(True, edge.parent, "last")))
        find = self.words.first_received if kind == "fills" else self.words.first_read
        return find(edge, self._forwarded(edge))

    def constant(self, value: float | Sizes) -> int:
        """Wide row that holds ``value``."""
        return self.program.product([], value)

    def _parameter(self, level: int, what: str) -> int | None:
        return self.parameters.get((self.accelerator.levels[level].name, what))

    def _spared(self, level: int) -> list[Term]:
        """Rows of words that come home to a memory for the last time, and the bits (below 0) that each takes more."""
        return [(self.constant(Sizes((), kept.tensor.axes)), kept.final_bits - kept.bits)
                for kept in self.plan.of(level) if kept.final_bits != kept.bits]

    def _edge(self, tensor: Tensor, *, parent: int = -1, child: int = -1) -> Boundary | None:
        return next((edge for edge in self.plan.crossings if edge.tensor is tensor
                     and (edge.parent == parent or edge.child == child)), None)

    @remembered
    def _moved(self, tensor: Tensor, level: int, kind: str, busiest: bool) -> int:
        """Wide row: words of one kind of access at a memory (or, for fills and drains, at the compute unit)."""
        inward = kind in ("reads", "updates")
        edge = self._edge(tensor, parent=level) if inward else self._edge(tensor, child=level)
        if edge is None or (kind in ("updates", "drains") and not tensor.is_output):
            return self.constant(0)
        if kind == "reads" and tensor.is_output:
            return self._read_back(edge, busiest)
        if kind == "fills" and tensor.is_output:
            return self._filled(edge, busiest)
        return self.words.words(edge, View(True, level if busiest else 0)) if inward else self._inward(edge, busiest)

    def _inward(self, edge: Boundary, busiest: bool) -> int:
        return self.words.words(edge, View(False, edge.child if busiest else 0))

    def _evicted(self, tensor: Tensor, level: int, busiest: bool) -> int:
        edge = self._edge(tensor, child=level)
        return self.constant(Sizes((), tensor.axes)) if edge is None else self._inward(edge, busiest)

    def _read_back(self, edge: Boundary, busiest: bool) -> int:
        """Wide row: updates less the words that start from zero in the parent."""
        updates = self._moved(edge.tensor, edge.parent, "updates", busiest)
        evicted = self._evicted(edge.tensor, edge.parent, busiest)
        return self.program.one(op.linear, updates, evicted, self._moved(edge.tensor, edge.parent, "fills", busiest))

    def _filled(self, edge: Boundary, busiest: bool) -> int:
        delivered = self._delivered_to_first(edge) if busiest else self._read_back(edge, busiest)
        apart = self.words.apart(edge)
        if apart is None:
            return delivered
        return self.program.one(op.keep_if, apart, self.constant(0), delivered)

    def _delivered_to_first(self, edge: Boundary) -> int:
        """Partial sums read back into the child's first instance (`single.delivered_to_first`)."""
        evicted = self._followed(edge.child, edge)
        chain = [at for at in self.plan.crossings if at.tensor is edge.tensor and at.child <= edge.child]
        starts = self._followed(chain[0].parent, edge)
        for inner in chain[:-1]:
            apart = self.words.apart(inner)
            if apart is not None:
                starts = self.program.one(op.keep_if, apart, self._followed(inner.child, edge), starts)
        return self.program.one(op.linear, evicted, starts, self.constant(0))

    def _followed(self, keeper: int, edge: Boundary) -> int:
        """Words that the first instance of ``keeper`` evicts, of those that the child's first instance touches."""
        at_keeper = self._edge(edge.tensor, child=keeper)
        return self.words.followed(edge, at_keeper)

    def _traffic(self) -> int:
        """Wide row: bytes that are read from and written to the outermost memory."""
        terms = [(self._moved(kept.tensor, 0, kind, busiest=False), float(kept.bits) / 8)
                 for kept in self.plan.of(0) for kind in kept.kinds]
        terms += [(row, float(bits) / 8) for row, bits in self._spared(0)]
        return self._weighted(terms) if terms else self.constant(0)

    def _excess(self) -> int:
        """Wide row: how far over capacities and arrays, each as the share by which it is exceeded, summed."""
        total = self.program.one(op.wide_add, self.constant(0), self.constant(0), fresh=True)
        for level, hardware in enumerate(self.accelerator.levels):
            if isinstance(hardware, Memory):
                self._over_capacity(total, level)
                self._over_shared(total, level, hardware)
            else:
                self._over_array(total, level, hardware)
        return total

    def _over_shared(self, total: int, level: int, memory: Memory) -> None:
        """Add lanes over dimensions of what a memory keeps that one instance serves together: there may be one."""
        used = {name for kept in self.plan.of(level) for name in kept.tensor.dimensions}
        for at, array in enumerate(self.accelerator.levels):
            for side in (side for side in "XY" if memory.shares(array.name, side)):
                self.program.emit(op.over, total, self.words.sides(at, side, used), self.constant(1))

    def _taken(self, tensor: Tensor, level: int) -> int:
        """Wide row: bytes that a tensor takes of one instance of a memory; its home holds all of it."""
        outside = 0 if self._edge(tensor, child=level) is None else level
        words = self.words.tile(tensor, outside, self.accelerator.footprint == "box")
        share = self.accelerator.memory(level).copies * float(held_bits(tensor, self.accelerator)) / 8
        return self.program.one(op.wide_multiply, words, self.constant(share))

    def _rooms(self, level: int) -> dict[str, int]:
        """Wide rows: bytes taken of each room of a memory in which something stays, by the name of its number."""
        kept = [each.tensor for each in self.plan.of(level)]
        return {room_name(owner): self._total(self._taken(tensor, level) for tensor in tensors)
                for owner, tensors in by_room(self.accelerator.memory(level), kept).items()}

    def _over_capacity(self, total: int, level: int) -> None:
        for what, taken in self._rooms(level).items():
            capacity = self._parameter(level, what)
            if capacity is not None:
                self.program.emit(op.over, total, taken, capacity)

    def _over_array(self, total: int, level: int, fanout: Fanout) -> None:
        need = {axis: self.words.sides(level, axis) for axis in "XY"}
        have = {what: self._parameter(level, what) for what in ("x", "y", "instances")}
        assert have["x"] is not None and have["y"] is not None and have["instances"] is not None
        if fanout.flexible:
            used = [need["X"], need["Y"]]
            self.program.emit(op.over, total, self.program.one(op.wide_multiply, *used), have["instances"])
        elif fanout.blocks:
            block_x, block_y = (self.constant(size) for size in fanout.blocks)
            used = [self.program.one(op.blocks, need[a], b) for a, b in (("X", block_x), ("Y", block_y))]
            self.program.emit(op.over, total, self.program.one(op.wide_multiply, *used), have["instances"])
        else:
            self.program.emit(op.over, total, need["X"], have["x"])
            if any(slot.level == level and slot.axis == "Y" for slot in self.layout.slots):
                self.program.emit(op.over, total, need["Y"], have["y"])

    def _weighted(self, terms: list[tuple[int, float]]) -> int:
        """Wide row: sum of rows times constants."""
        total = self.program.one(op.wide_multiply, terms[0][0], self.constant(terms[0][1]), fresh=True)
        for row, weight in terms[1:]:
            self.program.emit(op.fma, total, row, self.constant(weight))
        return total

    def _port(self, level: int, kinds: tuple[str, ...], port: str) -> int | None:
        """Wide row: cycles that a port of the busiest instance needs; None where it is unlimited."""
        if self._parameter(level, RATE.format(port)) is None:
            return None
        terms = [(self._moved(kept.tensor, level, kind, busiest=True), kept.bits)
                 for kind in kinds for kept in self.plan.of(level) if kind in kept.kinds]
        terms += self._spared(level) if "updates" in kinds else []
        return self._port_cycles(level, port, terms) if terms else None

    def _port_cycles(self, level: int, port: str, terms: list[Term]) -> int:
        """Wide row: cycles to move words of so many bits, rounded up once and exactly: whole numbers are divided."""
        limit = self._parameter(level, RATE.format(port))
        period = self._parameter(level, RATE.format(port) + PERIOD)
        assert limit is not None
        parts = lcm(*(width.denominator for _, width in terms))
        own, bits = self.accelerator.memory(level).word_bits * parts, [int(width * parts) for _, width in terms]
        unit = gcd(own, *bits)
        four = [*(row for row, _ in terms), *[self.constant(0)] * 4][:4]
        if len(terms) <= 4 and set(bits) == {own} and self.rates != "long":
            if period is not None:
                return self.program.one(op.scaled, *four, limit, period)
            return self.program.one(op.port2, *four[:2], limit) if len(terms) <= 2 else (
                self.program.one(op.port4, *four, limit))
        times = own // unit
        exact = 1 if period is None and not times & (times - 1) else times
        words = self._weighted([(row, wide / unit / times * exact) for (row, _), wide in zip(terms, bits, strict=True)])
        if exact > 1:
            limit = self.program.one(op.wide_multiply, limit, self.constant(exact))
        if period is None:
            return self.program.one(op.ceildiv, words, limit)
        if self.rates == "short":
            return self.program.one(op.scaled, words, *[self.constant(0)] * 3, limit, period)
        return self.program.one(op.periods, words, limit, period)

    def _slowest(self, rows: Iterable[int | None]) -> int | None:
        return self.program.fold(op.wide_larger, rows, None)

    def _total(self, rows: Iterable[int | None]) -> int:
        return self.program.fold(op.wide_add, rows, self.constant(0))

    def _steady(self, steps: int) -> int:
        blocked, slowest = self._steady_parts(steps)
        return self.program.fold(op.wide_larger, (blocked, slowest), blocked)

    def _steady_parts(self, steps: int, without: tuple[int, ...] = ()) -> tuple[int, int | None]:
        """Wide rows: steps and what blocks them, and the cycles of the slowest port, at memories but ``without``."""
        blocked: list[int | None] = [steps]
        ports: list[int | None] = []
        for level, _ in self.plan.memories:
            if level in without:
                continue
            ports += [self._port(level, kinds, port) for port, kinds in SERVED.items()]
            if level in self.plan.blocking:
                blocked += [self._slowest(self._port(level, (kind,), port) for port in (own, "shared"))
                            for kind, own in BLOCKING.items()]
        return self._total(blocked), self._slowest(ports)

    def _ramp(self) -> int:
        return self._total(self._end(level, last) for level in self.plan.overlapping for last in (False, True))

    def _transfer(self, level: int, port: str, terms: list[Term]) -> int | None:
        """Wide row: cycles to move words through a port; None where it is unlimited."""
        limited = [name for name in (port, "shared") if self._parameter(level, RATE.format(name)) is not None]
        return self._slowest(self._port_cycles(level, name, terms) for name in limited)

    def _limited(self, level: int, port: str) -> bool:
        return any(self._parameter(level, RATE.format(name)) is not None for name in (port, "shared"))

    def _end(self, level: int, last: bool) -> int | None:
        """Wide row: cycles of the slowest port as the first tiles come to a memory, or the last one leaves it."""
        return self._slowest(
            self._transfer(moved[0][0].level, port, [
                (self._at_end(edge, kind), kept.final_bits) for kept, edge in moved])
            for port, kind, moved in self.plan.ends(level, last))

    def _forwarded(self, edge: Boundary) -> Boundary | None:
        """Return the edge inside this one, if the memory between forwards words."""
        forwards = self.accelerator.memory(edge.child).forwards == "words"
        return self._edge(edge.tensor, parent=edge.child) if forwards else None

    def _energy(self, latency: int) -> int:
        compute = self.parameters[self.accelerator.compute.name, "energy_pj_per_mac"]
        macs = self.constant(self.words.all_of(self.words.sizes))
        energy = lane_use(self.operator, self.accelerator).energy
        macs = macs if energy == 1 else self.program.one(op.wide_multiply, macs, self.constant(energy))
        total = self.program.one(op.wide_multiply, macs, compute, fresh=True)
        terms = [term for level, _ in self.plan.memories for kept in self.plan.of(level)
                 for term in self._access_energy(kept)]
        for level, fanout in enumerate(self.accelerator.levels):
            price = self._parameter(level, "network_energy_pj_per_word")
            if isinstance(fanout, Fanout) and fanout.network_energy_pj_per_word and price is not None:
                terms += [(self._moved(edge.tensor, edge.child, kind, busiest=False), price)
                          for edge in self.plan.crossings if carries(self.accelerator, edge, level)
                          for kind in ("fills", "drains") if kind == "fills" or edge.tensor.is_output]
        if self.accelerator.leakage_mw:
            terms.append((latency, self.parameters[LEAKAGE]))
        for at in range(0, len(terms) - 2, 3):
            self.program.emit(op.fma3, total, *(row for term in terms[at : at + 3] for row in term))
        for term in terms[len(terms) // 3 * 3 :]:
            self.program.emit(op.fma, total, *term)
        return total

    def _access_energy(self, kept: KeptTensor) -> list[tuple[int, int]]:
        """Rows of words (of the memory's width) with the rows of their price."""
        found: list[tuple[int, int]] = []
        for kind in kept.kinds:
            moved = self._moved(kept.tensor, kept.level, kind, busiest=False)
            parts = [(moved, kept.bits)]
            if kind == "updates" and kept.final_bits != kept.bits:
                last = self.constant(Sizes((), kept.tensor.axes))
                parts = [(self.program.one(op.linear, moved, last, self.constant(0)), kept.bits),
                         (last, kept.final_bits)]
            price = self.parameters[kept.memory.name, PRICES[kind]]
            found += [(self._accessed(kept.memory, words, bits), price) for words, bits in parts]
        return found

    def _accessed(self, memory: Memory, words: int, bits: int | Fraction) -> int:
        """Wide row: words of so many bits in those of a memory, in whole blocks."""
        if memory.block_words > 1:
            words = self.program.one(op.blocks, words, self.constant(memory.block_words))
        scale = float(bits) / memory.word_bits
        return words if scale == 1 else self.program.one(op.wide_multiply, words, self.constant(scale))
