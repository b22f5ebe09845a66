"""One mapping looked at closely: what is wrong with it, what it costs, what nothing can beat."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.api.inputs import (
    Machine,
    Network,
    load_layers,
    load_mapping,
    load_network,
    load_target,
    load_together,
    pick_operator,
    refuse_density,
)
from tilewright.api.text import shown
from tilewright.base import InputError
from tilewright.cost import Cost, LowerBounds, VectorWork, cost_model, kept_bounds, layer_bounds
from tilewright.cost import vector_work as costs_of_vectors
from tilewright.hardware import Accelerator, Fanout
from tilewright.mapping import (
    Constraints,
    KeptSets,
    MapSpace,
    Violation,
    is_legal,
    smallest_mapping,
    violations,
)
from tilewright.mapping import Mapping as Nest
from tilewright.store import LayerRecord, MappingRecord, layer_record, mapping_from
from tilewright.workload import Density, Operator, graph_with_densities, unique_operators

COSTLESS = ("levels", "dimension", "step", "coverage", "axis", "keeps", "outermost")
"""Violations that leave a mapping without a meaning; the others only ask for a larger machine."""


@dataclass(frozen=True)
class Evaluation:
    """A mapping, what is wrong with it, and what it costs.

    ``cost`` is None where the violations leave the mapping without a meaning. Where it only exceeds a memory or an
    array, the cost is that on a machine which is large enough, and ``bounds`` do not apply to it.
    """

    operator: Operator
    accelerator: Accelerator
    mapping: Nest
    violations: tuple[Violation, ...]
    cost: Cost | None
    bounds: LowerBounds

    @property
    def legal(self) -> bool:
        """Whether nothing is wrong with the mapping."""
        return not self.violations

    @property
    def record(self) -> LayerRecord:
        """The evaluation as it is stored and shown; it has a mapping only where that can be drawn."""
        mapped = None if self.cost is None else (self.mapping, self.cost)
        return layer_record(self.operator, self.accelerator, mapped, self.bounds if self.legal or not mapped else None,
                            reason="" if mapped else "; ".join(map(str, self.violations)))

    def __str__(self) -> str:
        from tilewright.report import print_layer  # noqa: PLC0415  (rich loads late)

        wrong = "".join(f"{violation}\n" for violation in self.violations)
        return wrong + shown(lambda console: print_layer(self.record, console, self.accelerator.frequency_mhz))


def evaluate(mapping: str | Path | Nest | MappingRecord, network: Network | None, arch: Machine,  # noqa: PLR0913
             layer: str | None = None, *, bind: Mapping[str, int | str] | None = None,
             density: Mapping[str, Density] | None = None, precision: str = "auto") -> Evaluation:
    """Check one mapping and cost it, exactly, without search and without waiting for the compiler.

    Parameters
    ----------
    mapping
        A YAML file, its text, a mapping, or that of a layer of a run. One of another tool (ZigZag, AccelForge,
        Timeloop, MAESTRO) is read with the machine and the network in files of that tool.
    network, layer
        The operator, or a network and the name of its layer (see `load_network`). None where files of another tool that
        are given as ``mapping`` or ``arch`` hold it.
    arch
        A preset, a YAML file, or an accelerator.
    density
        Of tensors, by name or role: ``{"weights": 0.5}``, ``{"W": "2:4"}``, for machines with a ``sparsity`` section.
    precision
        Which words tensors have: ``auto``, ``model``, ``machine``, a type, or types by role; see `tilewright map`.

    Raises
    ------
    InputError
        If something cannot be read. A mapping that can be read but is illegal is no error: see `Evaluation`.

    Examples
    --------
    >>> import tilewright as tw
    >>> operator, machine = tw.matmul("scores", m=128, n=128, k=64), tw.load_accelerator("tpu-like")
    >>> found = tw.evaluate(tw.dataflow("weight-stationary", operator, machine), operator, machine)
    >>> found.legal, found.cost.latency_cycles >= found.bounds.latency_cycles
    (True, True)
    """
    if isinstance(mapping, MappingRecord):
        mapping = mapping_from(mapping.levels)
    together = load_together(mapping, network, arch, layer)
    if together is not None:
        operator, accelerator, mapping = together
        operator = pick_operator(operator, arch=accelerator, precision=precision)
    elif network is None:
        raise InputError("network", "must be given")
    else:
        accelerator, _ = load_target(arch, network)
        operator = pick_operator(network, layer, bind, arch=accelerator, precision=precision)
    if density:
        refuse_density(accelerator, "density")
    operator = graph_with_densities(load_network(operator), density or {}).mac_nodes[0].operator
    nest = load_mapping(mapping, operator, accelerator)
    wrong = violations(nest, operator, accelerator)
    costless = any(violation.kind in COSTLESS for violation in wrong)
    model = cost_model(operator, accelerator)
    return Evaluation(operator, accelerator, nest, wrong, None if costless else model.cost(nest),
                      layer_bounds(operator, accelerator, bypass=True) if _passes_fixed(nest, operator, accelerator)
                      else kept_bounds(operator, accelerator))


def _passes_fixed(mapping: Nest, operator: Operator, accelerator: Accelerator) -> bool:
    """Whether a memory lets a tensor pass that it keeps in every mapping that is searched."""
    kept = {entry.level: entry.keeps for entry in mapping.levels if entry.keeps is not None}
    passed = {(memory.name, tensor.name) for memory in accelerator.memories for tensor in operator.tensors
              if memory.can_keep(tensor.name, tensor.role)
              and tensor.name not in kept.get(memory.name, (tensor.name,))}
    return not passed <= set(KeptSets(MapSpace(operator, accelerator)).open)


def case_cost(operator: Operator, accelerator: Accelerator, mapping: Nest, *, reference: bool = False) -> Cost:
    """Return what a mapping costs by the fast model or, for ``reference``, by the oracle; its fit is not looked at.

    A mapping that is no complete loop nest, or is too large for the oracle, is an `InputError`.
    """
    if not is_legal(mapping, operator, accelerator):
        for violation in violations(mapping, operator, accelerator):
            if violation.kind in COSTLESS:
                raise InputError("levels", "must be a complete loop nest", violation.message, violation.mend)
    if reference:
        from tilewright.cost.reference import walk  # noqa: PLC0415  (the oracle only when asked for)

        if accelerator.sparsity is not None:
            raise InputError("--reference", "must be left out where a machine makes use of zeros, which have no oracle "
                             "without given tensors", accelerator.name, "See docs/sparsity.md")
        return walk(operator, accelerator, mapping)
    return cost_model(operator, accelerator).cost(mapping)


def bounds(network: Network, arch: Machine, *, bind: Mapping[str, int | str] | None = None,  # noqa: PLR0913
           density: Mapping[str, Density] | None = None, bypass: bool = True,
           precision: str = "auto") -> dict[str, LowerBounds]:
    """Return what no mapping of each layer can beat, by the layer's name; equal layers share one `LowerBounds`.

    They hold whatever memories keep, as far as the machine leaves that open, as in a search; without ``bypass`` they
    are those of mappings in which memories keep every tensor that they can. ``density`` and ``precision`` are as of
    `evaluate`.
    """
    accelerator, _ = load_target(arch, network)
    if density:
        refuse_density(accelerator, "density")
    found: dict[str, LowerBounds] = {}
    graph = load_layers(network, bind, arch=accelerator, precision=precision)
    for unique in unique_operators(graph_with_densities(graph, density or {})):
        found.update(dict.fromkeys(unique.names, (kept_bounds if bypass else layer_bounds)(
            unique.operator, accelerator)))
    return found


def vector_work(network: Network, arch: Machine, *, bind: Mapping[str, int | str] | None = None,
                precision: str = "auto") -> tuple[VectorWork, ...]:
    """Return what each operator of a network takes that is no multiply-accumulate loops, in their order.

    Examples
    --------
    >>> import tilewright as tw
    >>> [one.kind for one in tw.vector_work("bert-base", "tpu-like") if "layer.0.attention" in one.node.name]
    ['scale', 'softmax', 'add', 'layer_norm']
    """
    accelerator, _ = load_target(arch, network)
    return costs_of_vectors(load_layers(network, bind, arch=accelerator, precision=precision), accelerator)


def why_unmapped(space: MapSpace) -> str:
    """Say why a search found no legal mapping: there is none, the budget was too small, or constraints too tight."""
    kept, smallest = KeptSets(space), smallest_mapping(space.operator, space.accelerator)
    passing = zip(smallest.levels, space.accelerator.levels, kept[len(kept) - 1].layout.keeps, strict=True)
    least = Nest(tuple(entry if isinstance(level, Fanout) else replace(entry, keeps=keeps)
                       for entry, level, keeps in passing))
    most, told = ("; ".join(wrong.message for wrong in violations(nest, space.operator, space.accelerator))
                  for nest in (smallest, least))
    if told:
        return f"even the smallest tiles are illegal: {told}"
    if most:
        return (f"even the smallest tiles are illegal where memories keep all that they can ({most}), but legal where "
                "tensors pass memories: give a larger budget or another mapper")
    if space.constraints != Constraints():
        return "the machine has legal mappings, but the constraints may leave none: loosen them, or search longer"
    return "legal mappings exist (all loops at the outermost memory is one): give a larger budget or another mapper"
