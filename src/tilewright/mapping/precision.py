"""What words are on a machine: the model's number types or the machine's own, and what its lanes make of them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import TypeAlias

from tilewright.base import InputError
from tilewright.hardware import PARTIAL_SUMS, Accelerator, NumberType, Precision, number_type, read_type
from tilewright.workload import ROLES, DataMovement, Graph, MacNode, Node, Operator, Tensor, VectorOperator

Attributes: TypeAlias = tuple[tuple[str, int | str], ...]
TYPES, ELEMENT_TYPE = "types", "element_type"
"""Attributes by which readers of networks tell the types of all tensors of a layer, and of other work."""
AUTO, MODEL, MACHINE = WAYS = ("auto", "model", "machine")
_UNCHOSEN = ("fp32", "fp64")
"""What files hold where nobody has chosen a precision."""


@dataclass(frozen=True)
class LaneUse:
    """What a multiply-accumulate of an operator takes of a lane."""

    cycles: Fraction = Fraction(1)
    """Of one; below 1 where a lane does several at once."""
    energy: float = 1.0
    """In multiply-accumulates of the machine's own words."""
    partial_bits: int | None = None
    """Width of partial sums where the machine states it."""
    told: str = ""
    """How that came about, where operands are not the machine's own words."""
    whole: bool = True
    """Whether lanes take the operands whole, not in parts."""


def lane_use(operator: Operator, accelerator: Accelerator) -> LaneUse:
    """Return what a multiply-accumulate of an operator takes of a lane.

    What the machine states for the types of the operands holds. Else the fastest that is stated for words as wide, its
    own words among them, takes them in. Wider words than all go through a lane part by part, as in the TPU (Jouppi et
    al., ISCA 2017, section 2: half speed where one operand is twice as wide, a quarter where both are): a product takes
    as many cycles, each of a whole multiply-accumulate's energy, as its operands have parts. Of more than two
    operands, the widest beside the inputs counts.
    """
    types = tuple((tensor.role, tensor.type) for tensor in operator.operands)
    return _lane_use(types, accelerator.precisions, accelerator.word_bits) if any(name for _, name in types) else _OWN


_OWN = LaneUse()


@lru_cache(maxsize=1024)
def _lane_use(operands: tuple[tuple[str, str], ...], stated: tuple[Precision, ...],
              words: tuple[tuple[str, int], ...]) -> LaneUse:
    own = [dict(words).get(role, 8) for role in ROLES[:2]]
    pair = [_widest([number_type(name) for role, name in operands if role == side and name]) for side in ROLES[:2]]
    names = [f"words of {bits} bits" if found is None else found.name for found, bits in zip(pair, own, strict=True)]
    text = " x ".join(names)
    exact = next((one for one in stated if [one.inputs, one.weights] == [
        found.name if found is not None else "" for found in pair]), None)
    if exact is not None:
        return _stated(exact, f"{text} as stated")
    widths = [bits if found is None else found.bits for found, bits in zip(pair, own, strict=True)]
    kinds = ["int" if found is None else found.kind for found in pair]
    able = [one for one in stated if all(_takes(name, bits, kind) for name, bits, kind in zip(
        (one.inputs, one.weights), widths, kinds, strict=True))]
    best = max(able, key=lambda one: (one.macs_per_cycle, -one.energy), default=None)
    fits = all(bits <= most for bits, most in zip(widths, own, strict=True))
    if best is not None and (not fits or best.macs_per_cycle > 1):
        return _stated(best, f"{text} as {best.name}")
    if fits:
        own_words = widths == own and set(kinds) == {"int"}
        return _OWN if own_words else LaneUse(told=f"{text} as the machine's words of {own[0]} x {own[1]} bits")
    parts = ceil(widths[0] / own[0]) * ceil(widths[1] / own[1])
    return LaneUse(Fraction(parts), float(parts), None, (
        f"{text} in {parts} parts of {own[0]} x {own[1]} bits, a cycle each, as the machine states nothing for them"),
        whole=False)


def _widest(types: list[NumberType | None]) -> NumberType | None:
    return max((found for found in types if found is not None), key=lambda found: found.bits, default=None)


def _takes(name: str, bits: int, kind: str) -> bool:
    """Whether what is stated for a type takes in words of so many bits."""
    found = number_type(name)
    return found is not None and found.bits >= bits and kind in {"int", found.kind}


def _stated(one: Precision, told: str) -> LaneUse:
    cycles = 1 / Fraction(str(one.macs_per_cycle)).limit_denominator(1 << 20)
    rate = f"{one.macs_per_cycle:g} a cycle"
    return LaneUse(cycles, one.energy, one.partial_bits, f"{told}: {rate}, {one.energy:.3g} times the energy")


def compute_cycles(steps: int, operator: Operator, accelerator: Accelerator) -> int:
    """Return the cycles that so many steps of compute take."""
    return ceil(steps * lane_use(operator, accelerator).cycles)


@dataclass(frozen=True)
class Wanted:
    """Which words a network is to have: the model's (all that it states, or but what nobody chose), or given types.

    ``chosen`` says of ``auto`` that somebody chose: beside other floating point, as bf16, fp32 is meant.
    """

    way: str
    types: tuple[tuple[str, NumberType], ...] = ()
    chosen: bool = False

    @classmethod
    def parse(cls, text: str) -> "Wanted":
        """Read ``auto``, ``model``, ``machine``, a type (``int8``), or types by role (``inputs=fp16,weights=int4``).

        What is no type is an `InputError`.
        """
        plain = text.strip().lower()
        if plain in WAYS:
            return cls(plain)
        if "=" not in plain:
            found = read_type("precision", plain)
            return cls(plain, tuple((role, found) for role in ROLES))
        parts = [part.partition("=") for part in plain.split(",")]
        given = {role.strip(): kind.strip() for role, _, kind in parts}
        wrong = next((role for role in given if role not in ROLES), None)
        if wrong is not None or len(given) < len(parts):
            raise InputError("precision", f"must name each of {', '.join(ROLES)} once at most", text,
                             "For example inputs=fp16,weights=int4")
        return cls(plain, tuple((role, read_type(f"precision.{role}", kind)) for role, kind in given.items()))

    def of(self, role: str, declared: str) -> NumberType | None:
        """Return the type of a tensor that the model declares as ``declared``; None where it is the machine's."""
        if self.way not in WAYS:
            return dict(self.types).get(role)
        found = number_type(declared) if declared and self.way != MACHINE else None
        return None if found is None or self._leaves(found) else found

    def _leaves(self, found: NumberType) -> bool:
        return self.way == AUTO and not self.chosen and found.name in _UNCHOSEN

    def among(self, declared: Iterable[str]) -> "Wanted":
        """Return what is wanted of a network that declares these types."""
        known = (number_type(name) for name in declared if name)
        return replace(self, chosen=any(found is not None and found.kind == "fp" and found.name not in _UNCHOSEN
                                        for found in known))


def declared_types(operator: Operator) -> tuple[str, ...]:
    """Return the types of an operator's tensors as its model states them, in their order; empty where it does not."""
    given = str(dict(operator.attributes).get(TYPES, "")).split(",")
    return tuple(given) if len(given) == len(operator.tensors) else ("",) * len(operator.tensors)


def precise(operator: Operator, accelerator: Accelerator, wanted: str | Wanted = AUTO) -> Operator:
    """Return an operator whose words have the widths that are wanted; what its tensors state themselves stays."""
    asked = Wanted.parse(wanted).among(declared_types(operator)) if isinstance(wanted, str) else wanted
    found = [_typed(tensor, asked.of(_asked_role(operator, tensor), declared))
             for tensor, declared in zip(operator.tensors, declared_types(operator), strict=True)]
    lanes, own = lane_use(replace(operator, tensors=tuple(found)), accelerator), dict(accelerator.word_bits)
    if asked.way == AUTO and not lanes.whole:
        found = _taken_whole(operator, found, own)
        lanes = lane_use(replace(operator, tensors=tuple(found)), accelerator)
    output = found[-1]
    if output.partial_bits is None and (lanes.partial_bits is not None or output != operator.output):
        final = output.word_bits or own.get("outputs", 0)
        sums = max(final, lanes.partial_bits or own.get(PARTIAL_SUMS, own.get("outputs", 0)))
        # Where zeros are made use of, one width alone is known, which holds all.
        found[-1] = replace(output, word_bits=sums) if accelerator.sparsity is not None else replace(
            output, partial_bits=sums)
    left = _without(operator.attributes, TYPES)
    if tuple(found) == operator.tensors and left == operator.attributes:
        return operator
    return replace(operator, tensors=tuple(found), attributes=left)


def _taken_whole(operator: Operator, typed: list[Tensor], own: dict[str, int]) -> list[Tensor]:
    """Return tensors of which operands wider than the machine's words, and the output, are as they were."""
    kinds = [number_type(tensor.type) if tensor.type else None for tensor in typed]
    wide = [kind is not None and kind.bits > own.get(tensor.role, 0) for kind, tensor in zip(kinds, typed, strict=True)]
    return [before if too_wide or before.is_output else tensor
            for before, tensor, too_wide in zip(operator.tensors, typed, wide, strict=True)]


def _asked_role(operator: Operator, tensor: Tensor) -> str:
    """Return the role whose type a tensor takes: keys, values and other activations are inputs, whatever the side."""
    constant = dict(operator.attributes).get("weights", "") not in ("activations", "cache")
    return tensor.role if constant or tensor.role != "weights" else "inputs"


def _typed(tensor: Tensor, found: NumberType | None) -> Tensor:
    if found is None or tensor.word_bits is not None or tensor.type:
        return tensor
    return replace(tensor, word_bits=found.word_bits, type="" if tensor.is_output else found.name)


def precise_graph(graph: Graph, accelerator: Accelerator, wanted: str = AUTO) -> Graph:
    """Return a network whose words have the widths that are wanted, and tells so; raises as `Wanted.parse` does.

    That is settled then: nothing is wanted of what comes back.
    """
    declared = [name for node in graph.mac_nodes for name in declared_types(node.operator)]
    asked = Wanted.parse(wanted).among(declared)
    layers = {node.name: _settled(node, accelerator, asked) for node in graph.mac_nodes}
    if asked.way == AUTO and any(asked.of("inputs", name) is not None for before, now in zip(
            graph.mac_nodes, layers.values(), strict=True) for name in _left(before, now)):
        asked = replace(asked, way=MACHINE)  # other work has the words of the layers
    nodes = tuple(layers[node.name] if isinstance(node, MacNode) else _settled(node, accelerator, asked)
                  for node in graph.nodes)
    asked = Wanted.parse(wanted).among(declared)
    if all(new is old for new, old in zip(nodes, graph.nodes, strict=True)):
        return graph if wanted == AUTO else replace(graph, precision=precision_told(graph, graph, accelerator, asked))
    found = replace(graph, nodes=nodes)
    return replace(found, precision=precision_told(graph, found, accelerator, asked))


def _settled(node: Node, accelerator: Accelerator, asked: Wanted) -> Node:
    if isinstance(node, MacNode):
        operator = precise(node.operator, accelerator, asked)
        return node if operator is node.operator else replace(node, operator=operator)
    if not isinstance(node, VectorOperator | DataMovement) or node.word_bits is not None:
        return node
    found = asked.of("inputs", str(dict(node.attributes).get(ELEMENT_TYPE, "")))
    left = _without(node.attributes, ELEMENT_TYPE)
    if found is None:
        return node if left == node.attributes else replace(node, attributes=left)
    return replace(node, word_bits=ceil(found.word_bits), attributes=left)


def _without(attributes: Attributes, *names: str) -> Attributes:
    return tuple((name, value) for name, value in attributes if name not in names)


def precision_told(graph: Graph, found: Graph, accelerator: Accelerator, asked: Wanted) -> tuple[str, ...]:
    """Return in sentences which words the layers of a network have, and what lanes make of them.

    ``found`` is what became of the ``graph``. Nothing is said where it states no types and none were asked for.
    """
    operators = [node.operator for node in found.mac_nodes]
    left = {name for node, now in zip(graph.mac_nodes, found.mac_nodes, strict=True) for name in _left(node, now)}
    if asked.way in WAYS and not left and found.nodes == graph.nodes and not any(
            any(declared_types(node.operator)) for node in graph.mac_nodes):
        return ()
    words = Counter(_words(operator, accelerator) for operator in operators)
    told = "; ".join(f"{count} of {len(operators)} layers {text}" for text, count in words.items())
    if left and asked.way == AUTO:
        why = "lanes take no words as wide whole" if asked.chosen else "files hold it where nobody chose"
        told += f". Of the model {', '.join(sorted(left))} is not taken, as {why}"
    lanes = dict.fromkeys(text for operator in operators if (text := lane_use(operator, accelerator).told))
    return (f"Precision {asked.way}: {told}.", *(f"Lanes take {text}." for text in lanes))


def _left(before: MacNode, now: Node) -> set[str]:
    """Return the types that a layer declares of tensors which have the machine's words."""
    assert isinstance(now, MacNode)
    return {kind.name for tensor, declared in zip(now.operator.tensors, declared_types(before.operator), strict=True)
            if tensor.word_bits is None and (kind := number_type(declared)) is not None}


def _words(operator: Operator, accelerator: Accelerator) -> str:
    """Return the types or widths of an operator's tensors."""
    own = dict(accelerator.word_bits)
    if all(tensor.word_bits is None for tensor in operator.tensors):
        return f"the machine's words ({', '.join(str(own.get(role, '?')) for role in ROLES)} bits)"
    parts = []
    for tensor in operator.tensors:
        bits = own.get(tensor.role, "?") if tensor.word_bits is None else f"{tensor.word_bits:g}"
        parts.append(f"{tensor.name} {tensor.type + ' ' if tensor.type else ''}({bits} bits)")
    partial = operator.output.partial_bits
    sums = f", partial sums {partial:g} bits" if partial not in (None, operator.output.word_bits) else ""
    return ", ".join(parts) + sums
