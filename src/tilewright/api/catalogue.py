"""What the registries hold, described from the docstrings of their members."""

import inspect
from dataclasses import dataclass, fields
from typing import Any

from tilewright.api.flags import told
from tilewright.base import EXTRAS, Registry
from tilewright.search import MAPPERS, search


@dataclass(frozen=True)
class Option:
    """One option of a mapper: its default, and what it does."""

    name: str
    default: object
    about: str


DEFAULT_MAPPER: str = inspect.signature(search).parameters["mapper"].default


def mapper_names() -> list[str]:
    """Return the names of all mappers: the default first, the others by alphabet."""
    return sorted(MAPPERS, key=lambda name: (name != DEFAULT_MAPPER, name))


def mapper_summary(name: str) -> str:
    """Return the first line of what a mapper says about itself; an unknown name is an `InputError`."""
    return member_summary(MAPPERS.get(name))


def member_summary(member: Any) -> str:
    """Return the first line of what a member of a registry says about itself; an optimiser says what it does."""
    box = getattr(member, "box", None)
    return (inspect.getdoc(member if box is None else box.build) or "").split("\n")[0]


def member_options(registry: Registry[Any], name: str) -> tuple[Option, ...]:
    """Return the options of a member of a registry, as their record documents them."""
    kind = registry.options(name)
    if kind is None:
        return ()
    about = told(kind)
    return tuple(Option(field.name, field.default, about.get(field.name, "")) for field in fields(kind))


def mapper_extra(name: str) -> str:
    """Return the extra of the package that a mapper needs, empty where it needs none."""
    return getattr(MAPPERS.get(name), "extra", "")


def mappers_page() -> str:
    """Return the page of the documentation on mappers; a test keeps ``docs/mappers.md`` equal to it."""
    lines = ["# Mappers", "", "Chosen by `--mapper`, their options by `--option NAME=VALUE`. This page is written by",
             "`tilewright.api.mappers_page` from what each mapper says about itself.",
             "[How to add one](how-to.md#write-a-mapper).", "",
             "| mapper | how it searches | needs |", "|---|---|---|"]
    for name in mapper_names():
        default, extra = " (default)" if name == DEFAULT_MAPPER else "", mapper_extra(name)
        needs = f"`{extra}`" if extra else ""
        lines.append(f"| [{name}](#{name}){default} | {mapper_summary(name)} | {needs} |")
    for name in mapper_names():
        lines += ["", f"## {name}", "", inspect.getdoc(MAPPERS.get(name)) or ""]
        if extra := mapper_extra(name):
            lines += ["", f"It needs the extra `{extra}`: `{EXTRAS[extra][1]}`."]
        if options := member_options(MAPPERS, name):
            lines += ["", "| option | default | what it does |", "|---|---|---|"]
            lines += [f"| `{option.name}` | `{option.default}` | {option.about} |" for option in options]
    return "\n".join(lines) + "\n"
