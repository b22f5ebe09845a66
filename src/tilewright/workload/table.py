"""Layer tables: a network as a short YAML or JSON document, the form in which the zoo is kept.

.. code-block:: yaml

    name: tiny
    options: {batch: 1, size: 32}        # what a user may set; $size below stands for it
    input: [3, $size, $size]             # channels, rows, columns (or positions, features), without the batch
    layers:
    - conv: {name: conv1, out: 16, kernel: 3, padding: 1, activation: relu}
    - pool: {name: pool1}
    - linear: {name: fc, out: 10}

Each layer reads the one before it, or the one that it names as ``input``. `LAYERS` lists the kinds.

A language model has ``phases`` in place of some options, ``{prefill: {sequence: 2048}, decode: {context: 2048}}``; the
first is taken unless ``phase`` is given. ``$sequence`` are then the tokens of each sequence that one pass takes in (one
in ``decode``), and ``$context`` those that the last of them attends to, itself included.
"""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.base import InputError, read_json, read_text, read_yaml, renamed_note, shown, unknown_name
from tilewright.workload import layers_diffusion, layers_image, layers_language, layers_sequence  # noqa: F401  (they register their kinds of layers)
from tilewright.workload.graph import Graph
from tilewright.workload.plain import operators_graph
from tilewright.workload.sketch import LAYERS, Layer, Sketch, Value

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_PHASES = ("prefill", "decode")
TABLE_FIELDS = {
    "name": "Of the network.", "title": "What lists call it.", "source": "Where its sizes come from.",
    "published": "Multiply-accumulates and parameters that its authors publish.",
    "derived": "How these follow, where they are not as published.",
    "options": "What a user may set, with what it is otherwise; ``$NAME`` below stands for it.",
    "phases": "Of a language model, in place of some options: ``prefill`` and ``decode`` with theirs.",
    "input": "Shape that the first layer reads, without the batch.", "notes": "What is assumed, a line each.",
    "layers": "Layers, in order: ``KIND: {fields}``."}
"""What a layer table may say, and what it means."""


def read_table(path: str | Path, /, **options: int | str) -> Graph:
    """Read a layer table, or operators written out (`plain`), from a YAML or JSON file and return its network.

    Raises an `InputError` if the file cannot be read, or as `table_graph` and `operators_graph`.
    """
    document = read_document(Path(path))
    if "operators" not in document:
        return table_graph(document, options, source=str(path))
    if options:
        raise InputError("bind", "must be left out where operators are written out", ", ".join(options),
                         "Write the sizes into the file")
    return operators_graph(document, source=str(path))


def read_document(path: Path) -> dict[str, Any]:
    """Read one YAML or JSON file that holds a mapping."""
    text = read_text(path)
    document = (read_json if path.suffix == ".json" else read_yaml)(text, str(path))
    if not isinstance(document, dict):
        raise InputError(str(path), "must hold a mapping with `layers` or `operators`", shown(document))
    return document


def table_graph(document: Mapping[str, Any], options: Mapping[str, int | str] | None = None, source: str = "") -> Graph:
    """Return the network of a layer table; ``options`` override the table's own, ``source`` stands in for its source.

    Raises an `InputError` if a key, kind of layer, field or option is unknown, a value has the wrong type, or shapes
    disagree.
    """
    name = str(document.get("name", "network"))
    for key in document:
        if key not in TABLE_FIELDS:
            raise unknown_name("key", str(key), sorted(TABLE_FIELDS), name)
    chosen = _options(name, document, options or {})
    layers = document.get("layers")
    if not isinstance(layers, list) or not layers:
        raise InputError(f"{name}.layers", "must be a list with at least one layer", layers)
    sketch = Sketch(name, chosen["batch"])
    shape = _resolve(f"{name}.input", document.get("input") or [1], chosen)
    if not isinstance(shape, list) or not all(type(n) is int and n > 0 for n in shape):
        raise InputError(f"{name}.input", "must be a list of positive integers", shape)
    value = Value("", tuple(shape))
    for index, entry in enumerate(layers):
        value = _draw(sketch, value, f"{name}.layers[{index}]", entry, chosen)
    citation = document.get("source", source)
    notes = document.get("notes") or []
    if not isinstance(notes, list) or not all(isinstance(one, str) for one in notes):
        raise InputError(f"{name}.notes", "must be a list of texts", notes)
    given = tuple(layer["name"] for entry in layers for layer in entry.values() if "name" in layer)
    notes = [*notes, *renamed_note([name for name in sketch.renamed if name.startswith(given)])]
    if len(chosen) > 1 or chosen["batch"] > 1:
        notes.append("Options: " + ", ".join(f"{key}={number}" for key, number in chosen.items()))
    return sketch.graph(str(citation), notes, chosen["batch"] * chosen["sequence"] if "phase" in chosen else 0)


def _draw(sketch: Sketch, value: Value, path: str, entry: object, options: dict[str, Any]) -> Value:
    if not isinstance(entry, dict) or len(entry) != 1:
        raise InputError(path, "must be one layer, `kind: {fields}`", entry)
    kind, given = next(iter(entry.items()))
    if kind not in LAYERS:
        raise unknown_name("kind of layer", str(kind), list(LAYERS), path)
    if not isinstance(given, dict):
        raise InputError(f"{path}.{kind}", "must hold the layer's fields", given)
    settings = {key: _resolve(f"{path}.{kind}.{key}", item, options) for key, item in given.items()}
    settings.setdefault("name", kind)
    origin = settings.pop("input", None)
    if origin is not None:
        value = sketch.value(f"{path}.{kind}.input", str(origin))
    layer = _layer(f"{path}.{kind}", kind, settings)
    try:
        result = layer(sketch, value)
    except InputError as error:
        raise InputError(f"{path}: {error.field}", error.rule, error.given, error.mend) from None
    except (IndexError, ValueError):
        raise InputError(f"{path}.{kind}", "must fit the shape that it reads", value.shape) from None
    sketch.values[settings["name"]] = result
    return result


def _layer(path: str, kind: str, settings: dict[str, Any]) -> Layer:
    from pydantic import ValidationError  # noqa: PLC0415  (at the edge only, and late: it is slow to load)

    known = [field.name for field in fields(LAYERS[kind])]  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            raise unknown_name("field", str(key), known, path)
    try:
        layer: Layer = _reader(kind).validate_python(settings, strict=False)
        return layer
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if not str(part).startswith(("list[", "int", "function")))
        if first["type"] == "missing":
            raise InputError(f"{path}.{place}", "must be given") from None
        rule = str(first["msg"]).replace("Input should be", "must be")
        raise InputError(f"{path}.{place}", rule, first["input"]) from None


@cache
def _reader(kind: str) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(LAYERS[kind])


def _resolve(path: str, value: Any, options: dict[str, Any]) -> Any:
    """Put the options in place of ``$name``, at any depth."""
    if isinstance(value, list):
        return [_resolve(path, item, options) for item in value]
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in options:
            raise InputError(path, "must name an option of this table", value, f"Known: {', '.join(options)}")
        return options[value[1:]]
    return value


def defaults(document: Mapping[str, Any], phase: object = None) -> dict[str, Any]:
    """Return the options of a table with their defaults, in one ``phase`` (the first where None) if it has some.

    Raises an `InputError` if it has no such phase, or phases that are none.
    """
    name, phases = str(document.get("name", "network")), document.get("phases")
    options = document.get("options") or {}
    if not isinstance(options, dict):
        raise InputError(f"{name}.options", "must hold the options with what they are otherwise", options)
    found = {"batch": 1, **options}
    if phases is None:
        return found
    if not isinstance(phases, dict) or not set(phases) <= set(_PHASES) or not all(
            isinstance(one, dict) for one in phases.values()) or not phases:
        raise InputError(f"{name}.phases", f"must hold the options of {' and '.join(_PHASES)}", phases)
    phase = next(iter(phases)) if phase is None else phase
    if phase not in phases:
        raise unknown_name("phase", str(phase), list(phases), f"{name}.options")
    if phase == "prefill" and "sequence" not in phases[phase]:
        raise InputError(f"{name}.phases.prefill", "must hold the option sequence", phases[phase])
    return {"phase": phase, **found, **phases[phase]}


def _options(name: str, document: Mapping[str, Any], given: Mapping[str, int | str]) -> dict[str, Any]:
    """Return the options that are chosen; those of a phase with the tokens that it takes in and attends to."""
    chosen = defaults(document, given.get("phase"))
    for key, value in given.items():
        if key not in chosen:
            known = [each for each in chosen if each != "phase"]
            where = f"{name}.options" + (f" in {chosen['phase']}" if "phase" in chosen else "")
            raise unknown_name("option", key, known, where)
        chosen[key] = value
    for key, value in chosen.items():
        if key != "phase" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise InputError(f"{name}.options.{key}", "must be a positive integer", value)
    if chosen.get("phase") == "decode":
        return {**chosen, "sequence": 1, "context": chosen.get("context", 1)}
    return {**chosen, "context": chosen["sequence"]} if "phase" in chosen else chosen
