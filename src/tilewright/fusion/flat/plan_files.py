"""Plans of the attentions of a network as YAML, both ways.

.. code-block:: yaml

    network: bert-base
    attentions:
      layer.0.attention:
      - {operators: L-A, rows: 4, keys: 64, keys_outer: true, key_chunk: 64, value_chunk: 64, buffers: 1}

An attention has one part, ``L-A``, or two that are not fused, ``L`` and ``A``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tilewright.base import FieldsDocument
from tilewright.fusion.flat.blocks import Attention
from tilewright.fusion.flat.search import TilePlan

Parts = tuple[TilePlan, ...]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    operators: Literal["L-A", "L", "A"]
    rows: Annotated[int, Field(ge=1)]
    keys: Annotated[int, Field(ge=1)]
    keys_outer: bool = False
    key_chunk: Annotated[int, Field(ge=1)] | None = None
    value_chunk: Annotated[int, Field(ge=1)] | None = None
    buffers: Annotated[int, Field(ge=1, le=2)] = 1


class _Fields(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    network: Annotated[str, Field(min_length=1)]
    attentions: Annotated[dict[str, list[_Part]], Field(min_length=1)]


def attention_yaml(network: str, plans: Mapping[str, Parts]) -> str:
    """Return the plans of a network's attentions as YAML."""
    lines = [f"network: {json.dumps(network)}", "attentions:"]
    for name, parts in plans.items():
        lines.append(f"  {json.dumps(name)}:")
        lines += ("  - {" + ", ".join(f"{field}: {json.dumps(value)}" for field, value in vars(part).items()) + "}"
                  for part in parts)
    return "\n".join((*lines, ""))


def read_attention_plans(source: str | Path, attentions: tuple[Attention, ...]) -> dict[str, Parts]:
    """Return the plans in a file, or in YAML text, of the attentions of a network.

    Raises
    ------
    InputError
        If the file says something wrong, is of other attentions, or has a tile that is larger than its attention.
    """
    document = FieldsDocument.of(source, "plan", "network:, attentions:")
    fields = document.validated(_Fields, document.plain())
    known = {one.name: one for one in attentions}
    if set(fields.attentions) != set(known):
        raise document.fail(("attentions",), "must name the attentions of the network, each once",
                            ", ".join(fields.attentions), f"It has {', '.join(known)}; the plan is of {fields.network}")
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
            min(part.keys, part.value_chunk or part.keys), part.buffers) for part in parts)
    return found
