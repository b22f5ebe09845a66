"""Records as JSON text and files, both ways, and fingerprints of their content."""

import hashlib
import json
import math
import os
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from tilewright.base import InputError, path_text, read_json, write_whole
from tilewright.store.record import SCHEMA_VERSION, LayerRecord, RunRecord

LATER = {"sparsity": None, "structure": None, "even": False, "footprint": "exact", "vector": None,
         "precisions": (), "type": "", "partial_bits": None}
"""Fields that came later, and what they are where nothing is said: left out there, so that fingerprints stay."""


def fingerprint(*things: object) -> str:
    """Return the SHA-256 (hex) of the canonical JSON of dataclasses or plain data; equal content, equal hash.

    Fields that came later are left out where nothing is said, so that older hashes stay what they are.
    """
    plain = [told(asdict(thing)) if is_dataclass(thing) and not isinstance(thing, type) else thing
             for thing in things]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain_number)
    return hashlib.sha256(text.encode()).hexdigest()


def told(fields: dict[str, object]) -> dict[str, object]:
    """Return the fields of something that say what earlier versions did not say without them."""
    return {name: value for name, value in fields.items() if name not in LATER or value != LATER[name]}


def record_to_json(record: RunRecord | LayerRecord, indent: int | None = None) -> str:
    """Return a record as JSON; numbers that are not finite become the strings ``Infinity`` and ``NaN``."""
    return json.dumps(_plain(record), indent=indent, ensure_ascii=False, allow_nan=False)


def run_from_json(text: str | bytes, where: str = "record") -> RunRecord:
    """Return the run that ``text`` describes.

    Raises an `InputError` if the text is not JSON, is no run record, or of a schema of another version.

    Of a pipeline, which is two runs, it is the second one; the first where there was no second.
    """
    data = read_json(text, where)
    if isinstance(data, dict) and "pipeline" in data:
        data = data.get("then") or data.get("first")
    if not isinstance(data, dict) or not isinstance(data.get("schema_version"), int):
        raise InputError(where, "must be a run record of Tilewright, with a schema_version",
                         type(data).__name__ if not isinstance(data, dict) else sorted(data)[:8])
    version = data["schema_version"]
    if not 1 <= version <= SCHEMA_VERSION:
        raise InputError(f"{where}.schema_version", f"must be from 1 to {SCHEMA_VERSION}, which this version reads",
                         version, "Upgrade Tilewright to read later ones")
    run: RunRecord = _validated(RunRecord, data, where)
    return run


def layer_from_json(text: str | bytes, where: str = "record") -> LayerRecord:
    """Return the layer that ``text`` describes; what is none is an `InputError`."""
    layer: LayerRecord = _validated(LayerRecord, read_json(text, where), where)
    return layer


def write_run(record: RunRecord, path: str | os.PathLike[str]) -> Path:
    """Write a run as indented JSON; the file appears whole or not at all (an `InputError`)."""
    return write_whole(Path(path), record_to_json(record, indent=1) + "\n")


def read_run(path: str | os.PathLike[str]) -> RunRecord:
    """Return the run in a JSON file; a missing or foreign file is an `InputError`."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(str(path), "must be a readable JSON file", error.strerror or str(error)) from None
    return run_from_json(text, str(path))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _validated(kind: Any, data: Any, where: str) -> Any:
    """Return the record that plain data describes, an `InputError` where it is none."""
    try:
        return _adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        given = first.get("input")
        raise InputError(f"{where}{path_text(first['loc'])}", first["msg"][0].lower() + first["msg"][1:],
                         given if isinstance(given, str | int | float) else None) from None


def _plain(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return _plain(_plain_number(value))


def _plain_number(value: object) -> object:
    """Return one of NumPy's numbers as Python's."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"{type(value).__name__} has no place in a record")
    return item()
