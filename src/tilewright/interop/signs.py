"""By what a file shows of which foreign format it is, so that no code of a format loads for what is not of it."""

import re
from collections.abc import Mapping
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Literal

from tilewright.base import InputError, open_binary, read_json, read_text

Part = Literal["network", "accelerator", "mapping", "constraints", "energies", "settings"]

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
_NETWORK = re.compile(r"^[^/\n]*\bNetwork\b[^{}\n]*(?:\n\s*)?\{", re.MULTILINE)
_MAESTRO_START, _SCALE_SIM_START = 20_000, 2**16


def holds_onnx(path: Path) -> frozenset[Part]:
    """Return what an ONNX file holds, by its name."""
    return frozenset({"network"} if path.suffix.lower() == ".onnx" else ())


def holds_exported(path: Path) -> frozenset[Part]:
    """Return what a program exported by PyTorch holds, by its name."""
    return frozenset({"network"} if path.suffix.lower() == ".pt2" else ())


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


def holds_timeloop(path: Path) -> frozenset[Part]:
    """Return what a YAML file holds whose sections, at its margin, are Timeloop's."""
    file, _ = parted(path)
    if file.suffix.lower() not in (".yaml", ".yml", ".jinja", ".jinja2"):
        return frozenset()
    try:
        text = read_text(file)
    except InputError:
        return frozenset()
    found = _sections_at_margin(text)
    if re.search(r"^\{[{%]", text, re.MULTILINE):
        from tilewright.interop.timeloop.templates import Given, rendered  # noqa: PLC0415  (templates are rare)

        try:
            found |= _sections_at_margin(rendered(Given.of(path)).text)
        except InputError:  # which reading it will tell
            found |= {"settings"}
    return frozenset(found)


def parted(text: str | Path) -> tuple[Path, str]:
    """Return a file, and the variables given to its template behind its name (``:architecture=eyeriss_like``)."""
    match = _GIVEN.fullmatch(str(text))
    if match is None:
        return Path(text), ""
    with suppress(OSError, ValueError):  # a name that no file system takes
        if Path(text).is_file():
            return Path(text), ""
    return Path(match["file"]), match["said"]


def _sections_at_margin(text: str) -> set[Part]:
    names = (line.split(":")[0] for line in text.splitlines() if line[:1].isalpha())
    return {_SECTIONS[name] for name in names if name in _SECTIONS}


def holds_scalesim(path: Path) -> frozenset[Part]:
    """Return what a file seems to hold: a ``.csv`` with a topology's head, any file with the section of the array."""
    start = _start_of(path, _SCALE_SIM_START)
    if is_array(start):
        return frozenset({"accelerator"})
    if path.suffix.lower() == ".csv":
        from tilewright.interop.scalesim.topology import shape_of  # noqa: PLC0415

        return frozenset({"network"} if start and shape_of(start) is not None else ())
    return frozenset()


def is_array(text: str) -> bool:
    """Whether a text is a configuration of SCALE-Sim."""
    return re.search(rf"^\s*\[{ARRAY}\]", text, re.MULTILINE) is not None


def holds_maestro(path: Path) -> frozenset[Part]:
    """Return what a file seems to hold, by its name and beginning; nothing where it is none of MAESTRO's or GAMMA's."""
    suffix = path.suffix.lower()
    if suffix not in (".m", ".csv", ""):
        return frozenset()
    from tilewright.interop.maestro import gamma, hardware  # noqa: PLC0415

    text = _start_of(path, _MAESTRO_START)
    if suffix == "":
        return frozenset({"network", "mapping"} if gamma.is_log(text) else ())
    if suffix == ".csv":
        return frozenset({"mapping"} if gamma.is_genomes(text) else
                         {"network"} if gamma.looks_like_table(text) else ())
    if hardware.is_hardware(text):
        return frozenset({"accelerator"})
    return frozenset({"network", "mapping"} if _NETWORK.search(text) else ())


def _start_of(path: Path, letters: int) -> str:
    """Return the beginning of a text, nothing of what is none."""
    try:
        with TextIOWrapper(open_binary(path), encoding="utf-8-sig") as file:
            return file.read(letters)
    except (OSError, ValueError):  # ValueError: not UTF-8, or a name with a null byte
        return ""
