"""Known networks, kept as data: one layer table a network, with its sources and published figures (``data/``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tilewright.base import InputError, unknown_name, whole_of
from tilewright.workload.graph import Graph
from tilewright.workload.table import defaults, read_document, table_graph

_DATA = Path(__file__).parent / "data"
_ALIASES = {"t5": "t5-base", "bert": "bert-base", "shufflenetv1": "shufflenet", "mnasnetb1": "mnasnet",
            "gpt2small": "gpt2", "fasterrcnnresnet50fpn": "faster-rcnn", "neumf": "ncf", "flaubertbase": "flaubert",
            "densenet": "densenet121", "resnext5032x4d": "resnext50", "albertbase": "albert",
            "distilbertbase": "distilbert", "wideanddeep": "wide-deep"}


@dataclass(frozen=True)
class Published:
    """A figure that somebody else published about a network.

    ``quantity`` is ``macs``, ``parameters`` or ``nodes``; ``options`` are those at which it holds; ``tolerance`` is
    relative, and says how exactly the source states it (rounding, and what it counts besides).
    """

    quantity: str
    value: int
    tolerance: float
    source: str
    options: tuple[tuple[str, int | str], ...] = ()


@dataclass(frozen=True)
class ZooEntry:
    """What the zoo knows of a network without building it.

    ``derived`` states the configuration from which the total follows where nobody published a total. A language model's
    ``options`` are those of its first phase; ``phases`` has those of the others.
    """

    name: str
    title: str
    source: str
    options: tuple[tuple[str, int | str], ...]
    published: tuple[Published, ...]
    derived: str = ""
    phases: tuple[tuple[tuple[str, int | str], ...], ...] = ()


def names() -> tuple[str, ...]:
    """Return the names of all networks, sorted."""
    return tuple(sorted(path.stem for path in _DATA.glob("*.yaml")))


def describe(name: str) -> ZooEntry:
    """Return title, sources, options and published figures of one network."""
    document = _document(_canonical(name))
    published = tuple(Published(p["quantity"], int(p["value"]), float(p["tolerance"]), p["source"],
                                tuple((p.get("options") or {}).items())) for p in document.get("published", ()))
    phases = tuple(tuple(defaults(document, phase).items()) for phase in document.get("phases") or (None,))
    return ZooEntry(document["name"], document["title"], document["source"], phases[0], published,
                    document.get("derived", ""), phases[1:])


def load(name: str, /, **options: int | str) -> Graph:
    """Build a network of the zoo: ``load("bert-base", sequence=128)``, or ``load("bert-base:sequence=128")``.

    A language model has phases: ``load("llama-3-8b:phase=decode,context=4096,batch=8")``.

    Case, hyphens, underscores and spaces in the name do not matter. What ``options`` there are: `describe`.

    Raises an `InputError` if the network or an option is unknown, or an option is no positive integer.
    """
    bare, _, suffix = name.partition(":")
    known = _canonical(bare)
    given = {**_suffix_options(name, suffix), **options}
    if all(isinstance(value, int | str) for value in given.values()):
        return _built(known, **given)
    return table_graph(_document(known), given)  # which refuses it


@lru_cache(maxsize=32, typed=True)
def _built(name: str, /, **options: int | str) -> Graph:
    """Build a network once: comparisons and studies name the same few again and again."""
    return table_graph(_document(name), options)


def _canonical(name: str) -> str:
    known = {_bare(n): n for n in names()} | _ALIASES
    if _bare(name) not in known:
        raise unknown_name("network", name, list(names()))
    return known[_bare(name)]


def _bare(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


@cache
def _document(name: str) -> Mapping[str, Any]:
    return read_document(_DATA / f"{name}.yaml")


def _suffix_options(name: str, suffix: str) -> dict[str, int | str]:
    options: dict[str, int | str] = {}
    for part in filter(None, suffix.split(",")):
        key, _, value = part.partition("=")
        found = value.strip() or None if key.strip() == "phase" else whole_of(value, 0)
        if found is None:
            raise InputError(f"network {name}", "must give options as `name:option=number,...`", part,
                             "For example 'bert-base:sequence=128,batch=4'")
        if key.strip() in options:
            raise InputError(f"network {name}", "must give each option once", part)
        options[key.strip()] = found
    return options
