"""Why a figure of a mapping is what it is: a count by its derivation, cycles and energy by what sets them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.cost.dense import closed_form as cf
from tilewright.cost.dense import derivations
from tilewright.cost.dense.derivations import aligned_columns, loop_lines
from tilewright.cost.dense.nest import Nest
from tilewright.cost.limits import LANES, limits_of, relief, with_twice
from tilewright.cost.records import COMPUTE, KINDS, Cost, CycleLimit, limited_by
from tilewright.cost.sparse.model import cost_model
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping import Mapping, lanes
from tilewright.workload import Operator

FIGURES = ("latency", "energy")
_MOST = 3


@dataclass(frozen=True)
class FigureExplanation:
    """Cycles or energy of a mapping, with all that sets them."""

    count: str
    """``latency`` (its value in cycles) or ``energy`` (in pJ)."""
    value: float
    title: str
    sections: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
    """Headings, each with rows of texts."""
    oracle: int | None = None
    """The cycles by the oracle, None where it was not asked."""
    check: str = ""
    """What the comparison found, in words."""

    def text(self) -> str:
        """Return the explanation for a terminal."""
        parts = ["\n".join([head, *aligned_columns(rows)]) for head, rows in self.sections if rows]
        return "\n\n".join([self.title, *parts, *([self.check] if self.check else [])])


def explain(operator: Operator, accelerator: Accelerator, mapping: Mapping, count: str, *,
            check: bool = True) -> derivations.Explanation | FigureExplanation:
    """Derive one count of a mapping, such as ``GLB.I.reads``; or say what sets its ``latency`` or ``energy``.

    The tensor may be named by its role (``GLB.inputs.reads``, ``glb.input.reads``); capital letters do not matter.
    With ``check`` the oracle walks the nest too, if it is small enough, and if the machine makes no use of zeros.

    Raises an `InputError` if there is no such count, or the mapping does not describe a complete nest.
    """
    figure = count.strip().lower()
    if figure not in FIGURES:
        return derivations.explain(operator, accelerator, mapping, count, check=check)
    nest = derivations.described(operator, accelerator, mapping)
    cost = cost_model(operator, accelerator).cost(mapping)
    if figure == "energy":
        return FigureExplanation("energy", cost.energy_pj, _energy_title(cost), tuple(_energy_sections(nest, cost)))
    oracle, verdict = None, ""
    if check and accelerator.sparsity is None:
        oracle, verdict = derivations.checked(nest, cost.latency_cycles, lambda found: found.latency_cycles)
    limits = limits_of(cost)
    title = f"latency = {cost.latency_cycles:,} cycles; what sets them: {limited_by(limits)}"
    sections = tuple(_latency_sections(nest, cost, limits))
    return FigureExplanation("latency", cost.latency_cycles, title, sections, oracle, verdict)


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _latency_sections(nest: Nest, cost: Cost, limits: tuple[CycleLimit, ...],
                      ) -> Iterator[tuple[str, tuple[tuple[str, ...], ...]]]:
    """Yield what sets the cycles, what is hidden behind it, which loops do it, and what twice as much would give."""
    total = cost.latency_cycles
    told, hidden = [one for one in limits if one.adds], [one for one in limits if not one.adds]
    yield "Cycles, one after the other:", tuple(
        (f"{one.words}, beyond that" if one.adds < one.cycles else one.words, f"{one.adds:,}", _share(one.adds, total),
         _needs(one, cost)) for one in told)
    yield "Hidden behind them, the next limit first:", tuple(
        (one.words, f"{one.cycles:,}", _share(one.cycles, total), _needs(one, cost)) for one in hidden)
    yield "Loops:", tuple(_loops(nest, cost, limits))
    near = [one.name for one in told if one.kind in ("port", "waits")]
    given = (nest.operator, nest.accelerator, nest.mapping)
    tried = [relief(*given, of) for of in dict.fromkeys((COMPUTE, *near, *(one.name for one in hidden)))]
    if near and told[0].kind == "compute":
        wider = with_twice(nest.accelerator, near[0])
        both = relief(nest.operator, wider, nest.mapping, COMPUTE)
        tried.append(both and replace(both, spread=f"{both.spread}, and the bandwidth of {near[0]}"))
    yield "By the model, this mapping takes with twice", tuple(
        (f"the lanes, over {found.spread}" if found.of == LANES else f"the bandwidth of {found.of}",
         f"{found.latency_cycles:,}", f"{100 * (found.latency_cycles / total - 1):+.1f} %")
        for found in tried if found is not None)


def _needs(limit: CycleLimit, cost: Cost) -> str:
    if limit.kind == "compute":
        return f"steps; {100 * cost.utilisation:.1f} % of the MACs at work over all cycles"
    if limit.kind == "ramp":
        return "first tiles in, last ones out"
    moved = cost.traffic[limit.name]
    words = f"{moved.read_words:,.0f} words read, {moved.write_words:,.0f} written by the busiest instance"
    return f"{limit.cycles:,} for {words}" if 0 < limit.adds < limit.cycles else words


def _loops(nest: Nest, cost: Cost, limits: tuple[CycleLimit, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the loops that make the steps, the lanes in use, and for each port named the loops that bring its words."""
    levels = nest.accelerator.levels
    turns = [f"{levels[loop.level].name} {loop.dimension} {loop.count}" for loop in nest.loops if not loop.spatial]
    yield "compute", f"{cost.steps:,} steps" + (
        "" if cost.paced_cycles is None else f" in {cost.paced_cycles:,} cycles"), " x ".join(turns) or "one step"
    for index, fanout in enumerate(levels):
        if isinstance(fanout, Fanout):
            x, y = lanes(nest.mapping.levels[index], nest.extents(index))
            across = [f"{loop.dimension} {loop.count}" for loop in nest.loops if loop.level == index]
            yield fanout.name, f"{x * y:,} of {fanout.instances:,} lanes", " x ".join(across) or "one"
    for limit in limits:
        if limit.kind in ("port", "waits") and limit.adds:
            yield from _bringing(nest, cost, limit.name)


def _bringing(nest: Nest, cost: Cost, memory: str) -> Iterator[tuple[str, ...]]:
    """Yield the largest counts at a memory, and the loops that make them as large as they are."""
    at = [level.name for level in nest.accelerator.levels].index(memory)
    moved = sorted(((getattr(count, kind), tensor, kind) for (name, tensor), count in cost.counts.items()
                    if name == memory for kind in KINDS), reverse=True)
    total = sum(words for words, _, _ in moved)
    for words, name, kind in moved[:_MOST]:
        edges = {edge.child if kind in ("fills", "drains") else edge.parent: edge
                 for edge in nest.boundaries(nest.operator.tensor(name))}
        if words and at in edges:
            lines = loop_lines(nest, edges[at], cf.View(merged=True))
            anew = " x ".join(f"{line.level} {line.dimension} {line.count}" for line in lines
                              if not line.spatial and line.action in ("advances", "slides"))
            every = edges[at].child == len(nest.accelerator.levels)
            yield (f"{memory}.{name}.{kind}", f"{_share(words, total)} of its words",
                   "anew every step" if every else f"anew by {anew}" if anew else "once")


def _energy_title(cost: Cost) -> str:
    most = max(cost.energy_by_component_pj, key=lambda name: cost.energy_by_component_pj[name])
    share = _share(cost.energy_by_component_pj[most], cost.energy_pj)
    return f"energy = {cost.energy_pj:,.0f} pJ; most of it, {share}: {most}"


def _energy_sections(nest: Nest, cost: Cost) -> Iterator[tuple[str, tuple[tuple[str, ...], ...]]]:
    """Yield energy by component, then by memory and tensor with the accesses that it is spent on."""
    total, ports = cost.energy_pj, {memory.name: memory for memory in nest.accelerator.memories}
    parts = sorted(cost.energy_by_component_pj.items(), key=lambda item: -item[1])
    yield "By component, in pJ:", tuple((name, f"{pj:,.0f}", _share(pj, total)) for name, pj in parts if pj)
    rows = []
    for (memory, tensor), pj in sorted(cost.energy_by_tensor_pj.items(), key=lambda item: -item[1]):
        count, energy = cost.counts[memory, tensor], ports[memory].energy
        accesses = [f"{getattr(count, kind):,} {kind} at {getattr(energy, f'{kind[:-1]}_pj'):g}" for kind in KINDS
                    if getattr(count, kind)]
        rows.append((f"{memory}.{tensor}", f"{pj:,.0f}", _share(pj, total), ", ".join(accesses)))
    yield "By memory and tensor, in pJ; accesses of one word of the memory:", tuple(rows)
    halves = {name: cost.energy_by_component_pj.get(name, 0.0) / 2 for name in ports}
    yield "With half the energy of each access of", tuple(
        (name, f"{total - half:,.0f}", f"{-100 * half / total:+.1f} %") for name, half in halves.items() if half)
