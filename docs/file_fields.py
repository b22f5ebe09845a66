"""The page on every field of the files that people write, made from the schemas that check them."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticUndefined

from tilewright.hardware.files import DesignFields, SparsityFields
from tilewright.hardware.flexibility_files import FlexibilityFields
from tilewright.hardware.schema import AcceleratorFields, FanoutFields, MemoryFields, TechnologyFields
from tilewright.mapping.files import FusedFileFields, MappingFields
from tilewright.mapping.spaces.files import SpaceFields
from tilewright.scheduling.system_files import SystemFields
from tilewright.workload.sketch import LAYERS
from tilewright.workload.table import TABLE_FIELDS

HEAD = ("| field | what | otherwise | meaning |", "|---|---|---|---|")
SECTIONS: dict[str, tuple[type[BaseModel], ...]] = {
    "Machines": (AcceleratorFields, MemoryFields, FanoutFields, TechnologyFields, FlexibilityFields, SparsityFields,
                 DesignFields),
    "Mappings": (MappingFields,),
    "Constraints and map spaces": (SpaceFields,),
    "Systems": (SystemFields,),
    "Fused groups": (FusedFileFields,),
}
"""Files, each with the models that check it; those that they hold follow them."""


def meanings(model: type) -> dict[str, str]:
    """Return what stands below each field of a class, in one line."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(tree, ast.ClassDef)
    return {node.target.id: " ".join(below.value.value.split())
            for node, below in zip(tree.body, tree.body[1:], strict=False)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)}


def within(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the models that one holds, by name, in their order, and itself first."""
    found: dict[str, type[BaseModel]] = {}

    def look(annotation: Any) -> None:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation.__name__ not in found:
            found[annotation.__name__] = annotation
            for field in annotation.model_fields.values():
                look(field.annotation)
        for part in getattr(annotation, "__args__", ()):
            look(part)

    look(model)
    return found


def kind(schema: Mapping[str, Any]) -> str:
    """Return what a value must be, from its JSON schema, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{told(name)}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(each) for each in schema["anyOf"] if each.get("type") != "null"))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    shape = schema.get("type")
    if shape == "array":
        count = {(2, 2): "two of ", (1, 2): "one or two of "}.get((schema.get("minItems"), schema.get("maxItems")), "")
        return f"{count or 'list of '}{kind(schema.get('items', {}))}"
    if shape == "object":
        inner = schema.get("additionalProperties")
        return f"by name: {kind(inner)}" if isinstance(inner, dict) else "fields"
    words = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`"}.get(
        str(shape), "see below")
    limits = [f"{sign} {schema[key]:g}" for key, sign in (
        ("exclusiveMinimum", "above"), ("minimum", "from"), ("maximum", "to")) if key in schema and schema[key] < 1e9]
    return " ".join([words, *limits])


def told(name: str) -> str:
    """Return the heading of a model: the words of its name."""
    return " ".join(re.findall("[A-Z][a-z]*", name.removesuffix("Fields"))).lower()


def default(value: Any) -> str:
    """Return what a field is where it is left out; ``required`` where it must not be."""
    if value in (PydanticUndefined, MISSING):
        return "required"
    if value in (None, "", {}, [], ()) or isinstance(value, BaseModel):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def rows(properties: Mapping[str, Any], defaults: Mapping[str, Any], said: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a table of fields."""
    yield from HEAD
    for name, schema in properties.items():
        meaning = said.get(name, "").replace("``", "`").replace("|", "\\|")
        yield f"| `{name}` | {kind(schema)} | {default(defaults[name])} | {meaning} |"


def model_lines(model: type[BaseModel]) -> Iterator[str]:
    """Yield the section of a model: its heading, what it is, and its fields."""
    schema, said = model.model_json_schema(by_alias=True), meanings(model)
    schema = schema if "properties" in schema else schema["$defs"][model.__name__]  # a model that holds itself
    shown = {field.alias or name: (field, name) for name, field in model.model_fields.items()}
    defaults = {alias: field.get_default(call_default_factory=True) if field.default_factory else field.default
                for alias, (field, _) in shown.items()}
    yield from (f"({model.__name__.lower()})=", f"### {told(model.__name__).capitalize()}", "",
                " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split()).replace("``", "`"), "")
    meaning = {alias: said.get(name, "") for alias, (_, name) in shown.items()}
    yield from (*rows(schema["properties"], defaults, meaning), "")


def layer_lines(name: str, record: type) -> Iterator[str]:
    """Yield the section of a kind of layer of layer tables."""
    assert is_dataclass(record)
    schema = TypeAdapter(record).json_schema()
    defaults = {field.name: field.default_factory() if field.default_factory is not MISSING else field.default
                for field in fields(record)}
    text = (inspect.getdoc(record) or "").replace("``", "`")
    yield from (f"### `{name}`", "", text, "", "| field | what | otherwise |", "|---|---|---|")
    yield from (f"| `{key}` | {kind(each)} | {default(defaults[key])} |" for key, each in schema["properties"].items())
    yield ""


def plain_lines(heading: str, said: Mapping[str, str]) -> Iterator[str]:
    """Yield the section of fields that no model checks."""
    yield from (f"### {heading}", "", "| field | meaning |", "|---|---|")
    yield from (f"| `{name}` | {meaning.replace('``', '`')} |" for name, meaning in said.items())
    yield ""


def files_page() -> str:
    """Return the page: machines, mappings, constraints, systems and layer tables, field by field."""
    lines = ["# Files, field by field", "", "Made from the schemas that check the files. What is not required may be "
             "left out; *otherwise* says what then holds, where that is a value.", ""]
    shown: set[str] = set()
    for heading, models in SECTIONS.items():
        lines += [f"## {heading}", ""]
        for model in models:
            for name, inner in within(model).items():
                if name not in shown:
                    shown.add(name)
                    lines += model_lines(inner)
    lines += ["## Layer tables", "", *plain_lines("A layer table", TABLE_FIELDS),
              "Every layer also takes `input`, the name of the layer that it reads in place of the one before it.", ""]
    for name, record in LAYERS.items():
        lines += layer_lines(name, record)
    return "\n".join(lines)
