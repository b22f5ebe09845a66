"""Plans of the attentions of a network as YAML, both ways.

.. code-block:: yaml

    network: bert-base
    signature: 0be6a0fbb22b9a33
    asked: {objective: latency, softmax: free, causal: false, memory_bytes: 524288, clock_mhz: 940, word_bits: 16}
    attentions:
      layer.0.attention:
      - {operators: L-A, rows: 4, keys: 64, keys_outer: true, key_chunk: 64, value_chunk: 64, buffers: 1}

The signature, that of the attentions, and what was asked for may be left out. An attention has one part, ``L-A``, or
two that are not fused, ``L`` and ``A``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from tilewright.base import Fields, FieldsDocument, digest
from tilewright.fusion.flat.blocks import Attention
from tilewright.fusion.flat.costs import Softmax
from tilewright.fusion.flat.machines import FlatMachine
from tilewright.fusion.flat.search import AttentionPlan, FlatObjective, TilePlan

Parts = tuple[TilePlan, ...]


class _Part(Fields):
    operators: Literal["L-A", "L", "A"]
    rows: Annotated[int, Field(ge=1)]
    keys: Annotated[int, Field(ge=1)]
    keys_outer: bool = False
    key_chunk: Annotated[int, Field(ge=1)] | None = None
    value_chunk: Annotated[int, Field(ge=1)] | None = None
    buffers: Annotated[int, Field(ge=1, le=2)] = 1
    sparing: bool = False


_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Asked(Fields):
    objective: FlatObjective = "latency"
    softmax: Softmax = "free"
    causal: bool = False
    memory_bytes: _Positive | None = None
    clock_mhz: _Positive | None = None
    word_bits: Annotated[int, Field(ge=1)] | None = None


class _PlanFields(Fields):
    network: Annotated[str, Field(min_length=1)]
    signature: str = ""
    asked: _Asked = _Asked()
    attentions: Annotated[dict[str, list[_Part]], Field(min_length=1)]


def attention_yaml(network: str, plans: Sequence[AttentionPlan], machine: FlatMachine, softmax: Softmax) -> str:
    """Return the plans of a network's attentions as YAML, with what they are for."""
    found = tuple(plan.attention for plan in plans)
    asked = _Asked(objective=plans[0].objective, softmax=softmax, causal=any(one.causal for one in found),
                   memory_bytes=machine.capacity_words * machine.word_bytes, clock_mhz=machine.clock_mhz,
                   word_bits=machine.word_bits)
    lines = [f"network: {json.dumps(network)}", f'signature: "{_signature(found)}"',
             f"asked: {_inline(asked.model_dump())}", "attentions:"]
    for plan in plans:
        lines.append(f"  {json.dumps(plan.attention.name)}:")
        lines += (f"  - {_inline(vars(part))}" for part in plan.parts)
    return "\n".join((*lines, ""))


def _inline(fields: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{field}: {json.dumps(value)}" for field, value in fields.items()) + "}"


def _signature(attentions: tuple[Attention, ...]) -> str:
    """Return what tells attentions of other sizes apart; a mask is asked for besides."""
    return digest(tuple(replace(one, causal=False) for one in attentions))


def _read(source: str | Path) -> tuple[FieldsDocument, _PlanFields]:
    document = FieldsDocument.of(source, "plan", "network:, attentions:")
    return document, document.validated(_PlanFields, document.plain())


def attention_terms(source: str | Path) -> dict[str, Any]:
    """Return what plans were made for: ``objective``, ``softmax``, ``causal``, and of the machine what it was then.

    Those are ``memory_bytes``, ``clock_mhz`` and ``word_bits``; None where the file does not say.

    Raises an `InputError` if the file says something wrong.
    """
    return _read(source)[1].asked.model_dump()


def read_attention_plans(source: str | Path, attentions: tuple[Attention, ...]) -> dict[str, Parts]:
    """Return the plans in a file, or in YAML text, of the attentions of a network.

    Raises an `InputError` if the file says something wrong, is of other attentions, or has a tile that is larger than
    its attention.
    """
    document, fields = _read(source)
    known = {one.name: one for one in attentions}
    if set(fields.attentions) != set(known):
        raise document.fail(("attentions",), "must name the attentions of the network, each once",
                            ", ".join(fields.attentions), f"It has {', '.join(known)}; the plan is of {fields.network}")
    if fields.signature not in ("", _signature(attentions)):
        raise document.fail(("signature",), "must be that of the network: attentions have the same names, but other "
                            "sizes", fields.signature, f"The plan is of {fields.network}")
    found = {}
    for name, parts in fields.attentions.items():
        if [part.operators for part in parts] not in (["L-A"], ["L", "A"]):
            raise document.fail(("attentions", name), "must have one part L-A, or L and then A",
                                ", ".join(part.operators for part in parts))
        for place, part in enumerate(parts):
            for field, most in (("rows", known[name].rows), ("keys", known[name].keys)):
                if getattr(part, field) > most:
                    raise document.fail(("attentions", name, place, field), f"must be at most {most}",
                                        getattr(part, field))
        found[name] = tuple(TilePlan(
            part.operators, part.rows, part.keys, part.keys_outer, min(part.keys, part.key_chunk or part.keys),
            min(part.keys, part.value_chunk or part.keys), part.buffers, part.sparing) for part in parts)
    return found
