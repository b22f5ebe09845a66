"""The zoo: accelerators that ship with Tilewright, one cited YAML file each."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.base import late_module, unknown_name
from tilewright.hardware.accelerator import Accelerator
from tilewright.hardware.design import DesignSpace

files = late_module("tilewright.hardware.files")  # YAML and pydantic load only when a file is read
ZOO = Path(__file__).parent / "zoo"


def preset_names() -> tuple[str, ...]:
    """Return the names of the shipped accelerators."""
    return tuple(sorted(path.stem for path in ZOO.glob("*.yaml")))


def preset(name: str) -> Accelerator:
    """Return the shipped accelerator called ``name``; an unknown name is an `InputError`.

    >>> preset("eyeriss").compute_instances
    168
    """
    found: Accelerator = _shipped(name, files.load_accelerator)
    return found


def find_accelerator(name_or_path: str) -> Accelerator:
    """Return the preset of this name, or the accelerator in this file or YAML text; else an `InputError`."""
    found: Accelerator = files.load_accelerator(name_or_path) if _is_file(name_or_path) else preset(name_or_path)
    return found


def find_design_space(name_or_path: str) -> DesignSpace:
    """Return what may vary of the preset of this name, or of the accelerator in this file or YAML text."""
    load = files.load_design_space
    found: DesignSpace = load(name_or_path) if _is_file(name_or_path) else _shipped(name_or_path, load)
    return found


@cache
def _shipped(name: str, load: Callable[[Path], Any]) -> Any:
    if name not in preset_names():
        raise unknown_name("accelerator", name, list(preset_names()))
    return load(ZOO / f"{name}.yaml")


def _is_file(name_or_path: str) -> bool:
    """Whether this is no name of a preset, but a file or YAML text."""
    return name_or_path not in preset_names() and (
        "\n" in name_or_path or os.path.isfile(name_or_path) or name_or_path.endswith((".yaml", ".yml"))
        or "/" in name_or_path)
