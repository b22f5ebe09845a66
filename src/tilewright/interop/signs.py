"""By what a file shows of which foreign format it is, so that no code of a format loads for what is not of it."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import Literal

from tilewright.base import InputError, open_binary, read_json, read_text

Part = Literal["network", "accelerator", "mapping", "constraints", "energies", "settings"]
Shape = Literal["convolutions", "products"]
CONVOLUTION = ("IFMAP Height", "IFMAP Width", "Filter Height", "Filter Width", "Channels", "Num Filter", "Strides")
PRODUCT = ("M", "N", "K")
"""What a topology of SCALE-Sim holds, and the columns of either kind."""
COLUMNS, SOLUTION = ("K", "C", "Y", "X", "R", "S", "T"), "best_sol"
"""Columns of GAMMA's layer tables (or `PRODUCT`), and the column of its results that holds the genome."""
KEYS = {"num_pes": "elements", "numpes": "elements", "l1_size_cstr": "l1_bytes", "l1size": "l1_bytes",
        "l2_size_cstr": "l2_bytes", "l2size": "l2_bytes", "noc_bw_cstr": "network_words", "noc_bw": "network_words",
        "offchip_bw_cstr": "offchip_words", "offchip_bw": "offchip_words", "noc_numhops": "hops"}
"""What the fields of MAESTRO's hardware files mean, by their names in small letters; both spellings are in use."""

CONSTRAINTS = ("architecture_constraints", "mapspace_constraints", "constraints", "extra_mapping_constraints",
               "mapspace")
"""Sections of Timeloop's files that leave mappings out."""
ESTIMATORS = ("components", "compound_components")
"""Sections that only say how energies are estimated; of no use where an ERT gives them."""
UNUSED = {"mapper": "how Timeloop searches", "globals": "what Timeloop and Accelergy are run with",
          "ERT_summary": "a summary; the ERT itself is read", "ART_summary": "a summary; the ART itself is read",
          "energy_estimation": "a result, not an input", "action_counts": "a result, not an input"}
_SECTIONS: Mapping[str, Part] = {
    "problem": "network", "architecture": "accelerator", "mapping": "mapping", "ERT": "energies", "ART": "energies",
    **dict.fromkeys(CONSTRAINTS, "constraints"), **dict.fromkeys((*ESTIMATORS, *UNUSED), "settings"),
    "sparse_optimizations": "settings", "variables": "settings"}
_GIVEN = re.compile(r"(?P<file>.+?)(?P<said>(?::[A-Za-z_]\w*=[^:]*)+)", re.DOTALL)
ARRAY = "architecture_presets"
"""The section that every configuration of SCALE-Sim has."""
HF_FILE = "config.json"
_HF_MARKS = ("model_type", "architectures", "transformers_version")
_OURS = ("layers", "operators", "levels")  # tables and machines of ours may be called so as well
_LARGEST_HF = 2**22
_LOG = re.compile(r"\s*Layer id:")
_FIRST_WORD = re.compile(r"(?:\s|//[^\n]*)*([A-Za-z0-9_.]+'?)")
_NETWORK = re.compile(r"^[^/\n]*\bNetwork\b[^{}\n]*(?:\n\s*)?\{", re.MULTILINE)
_ZIGZAG_ACCELERATOR = re.compile(r"(?ms)^memories:.*^operational_array:|^operational_array:.*^memories:")
_ZIGZAG_LISTS: Mapping[str, Part] = {
    r"^(?:- |[ ]+)(?:equation|loop_dims|operator_type):": "network",
    r"^(?:- |[ ]+)(?:spatial_mapping|spatial_mapping_hint|temporal_ordering|memory_operand_links):": "mapping"}
_BELOW = r":[ ]*(?:#[^\n]*)?\n(?:[ ]*(?:#[^\n]*|\{%[^\n]*)?\n)*[ ]+"
_ACCELFORGE: Mapping[str, Part] = {
    rf"(?m)^arch{_BELOW}(?:nodes|variables|extra_attributes_for_all_component_models):": "accelerator",
    r"(?ms)^workload:.*^[ ]+einsums:": "network", rf"(?m)^mapping{_BELOW}nodes:": "mapping",
    rf"(?m)^renames{_BELOW}einsums:": "settings"}
_YAML, _TEMPLATES = (".yaml", ".yml"), (".yaml", ".yml", ".jinja", ".jinja2")
_MAESTRO_START, _SCALE_SIM_START = 20_000, 2**16
_MAGMA_COLUMNS = 9


@dataclass(frozen=True)
class Given:
    """A file, and the variables of its template: ``top.yaml.jinja2:architecture=eyeriss_like``."""

    path: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str | Path) -> "Given":
        """Read a file's name, and what stands behind it; a file may be called so as well."""
        match = _GIVEN.fullmatch(str(text))
        with suppress(OSError, ValueError):  # a name that no file system takes
            if match is None or Path(text).is_file():
                return cls(Path(text))
        assert match is not None
        pairs = (pair.partition("=") for pair in match["said"][1:].split(":"))
        return cls(Path(match["file"]), {name: value for name, _, value in pairs})

    @property
    def folders(self) -> list[Path]:
        """Folders of the files that are given: its own, and those of files that its variables name."""
        own, named = self.path.resolve().parent, []
        for value in self.variables.values():
            with suppress(OSError, ValueError):  # a name that no file system takes
                named.append((own / value).resolve().parent)
        return [own, *named]


def holds_network(suffix: str) -> Callable[[Path], frozenset[Part]]:
    """Return what tells networks by the end of their names alone."""
    return lambda path: frozenset({"network"} if path.suffix.lower() == suffix else ())


def holds_configuration(path: Path) -> frozenset[Part]:
    """Return what a configuration of Hugging Face, or its folder, holds."""
    return frozenset({"network"} if configuration_file(path) else ())


def configuration_file(path: str | Path) -> Path | None:
    """Return the configuration that a path names: a folder that has one, or a JSON file that is one; None otherwise."""
    file = Path(path)
    if file.is_dir() and (file / HF_FILE).is_file():
        return file / HF_FILE
    try:
        if file.suffix.lower() != ".json" or not file.is_file() or file.stat().st_size > _LARGEST_HF:
            return None
        raw = read_json(read_text(file), str(file))
    except (OSError, ValueError):  # InputError among them
        return file if file.name == HF_FILE else None
    if isinstance(raw, dict) and any(mark in raw for mark in _OURS):
        return None
    return file if file.name == HF_FILE or (isinstance(raw, dict) and any(mark in raw for mark in _HF_MARKS)) else None


def holds_zigzag(path: Path) -> frozenset[Part]:
    """Return what a YAML file holds whose fields, or those of whose entries, are ZigZag's."""
    text = _yaml_of(path, _YAML)
    if _ZIGZAG_ACCELERATOR.search(text):
        return frozenset({"accelerator"})
    if not re.search(r"^- ", text, re.MULTILINE) or re.search(r"^\w+:", text, re.MULTILINE):
        return frozenset()
    return frozenset(part for sign, part in _ZIGZAG_LISTS.items() if re.search(sign, text, re.MULTILINE))


def holds_accelforge(path: Path) -> frozenset[Part]:
    """Return what a YAML file holds whose sections, at its margin, are AccelForge's: nodes of trees, and einsums."""
    text = _yaml_of(Given.of(path).path, _TEMPLATES)
    return frozenset(part for sign, part in _ACCELFORGE.items() if re.search(sign, text))


def holds_timeloop(path: Path) -> frozenset[Part]:
    """Return what a YAML file holds whose sections, at its margin, are Timeloop's."""
    given = Given.of(path)
    text = _yaml_of(given.path, _TEMPLATES)
    found = _sections_at_margin(text)
    if re.search(r"^\{[{%]", text, re.MULTILINE):
        from tilewright.interop.templates import rendered  # noqa: PLC0415  (templates are rare)

        try:
            found |= _sections_at_margin(rendered(given.path, given.variables, given.folders).text)
        except InputError:  # which reading it will tell
            found |= {"settings"}
    return frozenset(found)


def _sections_at_margin(text: str) -> set[Part]:
    names = (line.split(":")[0] for line in text.splitlines() if line[:1].isalpha())
    return {_SECTIONS[name] for name in names if name in _SECTIONS}


def holds_scalesim(path: Path) -> frozenset[Part]:
    """Return what a file seems to hold: a ``.csv`` with a topology's head, any file with the section of the array."""
    start = _start_of(path, _SCALE_SIM_START)
    if is_array(start):
        return frozenset({"accelerator"})
    if path.suffix.lower() == ".csv":
        return frozenset({"network"} if start and shape_of(start) is not None else ())
    return frozenset()


def shape_of(text: str) -> Shape | None:
    """Return what a topology's rows are, by its head; None where the text seems to be none."""
    lines = [line for line in text.lstrip("\ufeff").splitlines() if line.strip()]
    head = [cell.strip().lower() for cell in lines[0].split(",")] if lines else []
    if len(head) < len(PRODUCT) + 1 or not head[0].startswith("layer") or any("intraline" in cell for cell in head):
        return None
    if any("ifmap" in cell for cell in head) or len(head) > len(CONVOLUTION):
        return "convolutions"
    return "products" if {"m", "n", "k"} <= set(head) or len(head) <= len(PRODUCT) + 3 else None


def is_array(text: str) -> bool:
    """Whether a text is a configuration of SCALE-Sim."""
    return re.search(rf"^\s*\[{ARRAY}\]", text, re.MULTILINE) is not None


def holds_maestro(path: Path) -> frozenset[Part]:
    """Return what a file seems to hold, by its name and beginning; nothing where it is none of MAESTRO's or GAMMA's."""
    suffix = path.suffix.lower()
    if suffix not in (".m", ".csv", ""):
        return frozenset()
    text = _start_of(path, _MAESTRO_START)
    if suffix == "":
        return frozenset({"network", "mapping"} if is_log(text) else ())
    if suffix == ".csv":
        return frozenset({"mapping"} if is_genomes(text) else
                         {"network"} if looks_like_table(text) else ())
    if is_hardware(text):
        return frozenset({"accelerator"})
    return frozenset({"network", "mapping"} if _NETWORK.search(text) else ())


def holds_magma(path: Path) -> frozenset[Part]:
    """Return what a file seems to hold, by its name and first row: one of MAGMA's job lists."""
    if path.suffix.lower() != ".csv":
        return frozenset()
    first = _start_of(path, _MAESTRO_START).lstrip("\ufeff\r\n ").partition("\n")[0]
    cells = [cell.strip() for cell in first.split(",")]
    return frozenset({"network"} if len(cells) == _MAGMA_COLUMNS and all(
        cell.isascii() and cell.isdecimal() for cell in cells) else ())


def is_log(text: str) -> bool:
    """Whether a text is the log of a layer."""
    return _LOG.match(text) is not None


def is_genomes(text: str) -> bool:
    """Whether a text holds genomes: the log of a layer, or a result that has them."""
    first = text.lstrip().split("\n", 1)[0]
    return is_log(text) or SOLUTION in [cell.strip() for cell in first.split(",")]


def looks_like_table(text: str) -> bool:
    """Whether the first line of a text is that of a layer table."""
    cells = [cell.strip() for cell in text.lstrip().split("\n", 1)[0].split(",")]
    named = tuple(cell.upper() for cell in cells)
    numbers = len(cells) in (len(COLUMNS), len(PRODUCT)) and all(cell.isascii() and cell.isdecimal() for cell in cells)
    return named in (COLUMNS, PRODUCT) or numbers


def is_hardware(text: str) -> bool:
    """Whether a text begins as hardware files do."""
    first = _FIRST_WORD.match(text)
    return first is not None and first[1].lower() in KEYS


def _yaml_of(path: Path, suffixes: Sequence[str]) -> str:
    """Return the text of a file with such a suffix, nothing of what is none."""
    with suppress(InputError):
        return read_text(path) if path.suffix.lower() in suffixes else ""
    return ""


def _start_of(path: Path, letters: int) -> str:
    """Return the beginning of a text, nothing of what is none."""
    try:
        with TextIOWrapper(open_binary(path), encoding="utf-8-sig") as file:
            return file.read(letters)
    except (OSError, ValueError):  # ValueError: not UTF-8, or a name with a null byte
        return ""
