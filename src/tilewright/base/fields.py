"""YAML documents that people write: read with line numbers, checked by pydantic models, errors that point into them."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from tilewright.base.documents import read_text, read_yaml, shown
from tilewright.base.errors import InputError
from tilewright.base.located import Location, line_of, path_text

Model = TypeVar("Model", bound=BaseModel)
_RANK = {"extra_forbidden": 0, "missing": 2}  # a misspelt field is told before the field that it leaves missing


def wrong(rule: str, mend: str = "") -> PydanticCustomError:
    """Return the error for a broken ``rule``; the mend travels with it to the message."""
    return PydanticCustomError("rule", "{rule}", {"rule": rule, "mend": mend})


class Fields(BaseModel):
    """Strict fields: no unknown names, no silent conversions."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FieldsDocument:
    """One YAML document of fields: its tree with line numbers, and errors that point into it.

    Parameters
    ----------
    label
        What errors call the file.
    root
        What they call its top, before the path of a field: ``arch.levels[1]``.
    start
        How such a file begins, told where the text is no mapping.

    Raises
    ------
    InputError
        If the text is no YAML, or no mapping.
    """

    def __init__(self, label: str, text: str, root: str, start: str) -> None:
        self.label, self.root = label, root
        tree = read_yaml(text, label, "lines")
        if not isinstance(tree, CommentedMap):
            raise InputError(f"{label}:1 {root}", "must be a mapping of fields", shown(tree), f"Start with {start}")
        self.tree = tree

    @classmethod
    def of(cls, source: str | Path, root: str, start: str) -> "FieldsDocument":
        """Return the document in a file, or in YAML text (a text of more than one line)."""
        if isinstance(source, str) and "\n" in source:
            return cls("<text>", source, root, start)
        return cls(Path(source).name, read_text(source), root, start)

    def fail(self, where: Location, rule: str, given: object = None, mend: str = "") -> InputError:
        """Return the error for the place ``where``."""
        return InputError(f"{self.label}:{line_of(self.tree, where)} {self.root}{path_text(where)}", rule, given, mend)

    def validated(self, model: type[Model], data: Any, where: Location = ()) -> Model:
        """Return the fields at ``where``, checked; what is wrong with them is an `InputError`."""
        try:
            return model.model_validate(data)
        except ValidationError as errors:
            found = [(_RANK.get(error["type"], 1), line_of(self.tree, (*where, *error["loc"])), i, error)
                     for i, error in enumerate(errors.errors(include_url=False))]
            error = min(found)[3]
            loc: Location = error["loc"]
            rule, given, mend = _explain(model, dict(error))
            raise self.fail((*where, *loc), rule, given, mend) from None

    def plain(self, *where: str) -> Any:
        """Return the tree, or the part at ``where``, without ruamel's types."""
        node: Any = self.tree
        for key in where:
            node = node[key]
        return _plain(node)


def _plain(node: Any) -> Any:
    """Return the tree without ruamel's types."""
    if isinstance(node, CommentedMap):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, CommentedSeq):
        return [_plain(value) for value in node]
    if isinstance(node, float):
        return float(node)
    if isinstance(node, int) and not isinstance(node, bool):
        return int(node)
    return node


def _explain(model: type[BaseModel], error: dict[str, Any]) -> tuple[str, object, str]:
    """Return rule, given and mend in our words for one error of pydantic."""
    kind, given = error["type"], error["input"]
    if kind == "extra_forbidden":
        return _unknown_field(model, error["loc"])
    if kind == "missing":
        return "is required", None, f"Add {error['loc'][-1]}"
    if kind == "model_type":
        return "must be a mapping of fields", None if isinstance(given, list) else given, ""
    context = error.get("ctx") or {}
    rule = context.get("rule") or re.sub(r"^(Input|List|String|Dictionary|Value) should ", "must ", error["msg"])
    shown = "null" if given is None else None if isinstance(given, dict | list) else given
    return rule, shown, context.get("mend", "")


def _unknown_field(model: type[BaseModel], loc: Location) -> tuple[str, object, str]:
    *parents, name = loc
    for parent in parents:
        nested = _model_within(model.model_fields[parent].annotation) if parent in model.model_fields else None
        model = nested or model
    known = list(model.model_fields)
    near = get_close_matches(str(name), known, n=1, cutoff=0.5)
    return "is not a known field", None, f"Did you mean {near[0]}?" if near else f"Known fields: {', '.join(known)}"


def _model_within(annotation: Any) -> type[BaseModel] | None:
    """Return the first pydantic model in a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_within(part) for part in getattr(annotation, "__args__", ()))
    return next((model for model in found if model), None)
