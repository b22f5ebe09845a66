"""The zoo: accelerators that ship with Tilewright, one cited YAML file each."""

import os
from functools import cache
from pathlib import Path

from tilewright.base import unknown_name
from tilewright.hardware.accelerator import Accelerator
from tilewright.hardware.design import DesignSpace

ZOO = Path(__file__).parent / "zoo"


def preset_names() -> tuple[str, ...]:
    """Return the names of the shipped accelerators."""
    return tuple(sorted(path.stem for path in ZOO.glob("*.yaml")))


def preset(name: str) -> Accelerator:
    """Return the shipped accelerator called ``name``; an unknown name is an `InputError`.

    >>> preset("eyeriss").compute_instances
    168
    """
    if name not in preset_names():
        raise unknown_name("accelerator", name, list(preset_names()))
    return _shipped(name)


@cache
def _shipped(name: str) -> Accelerator:
    from tilewright.hardware.files import load_accelerator  # noqa: PLC0415 - YAML and pydantic only when a file is read

    return load_accelerator(ZOO / f"{name}.yaml")


def find_accelerator(name_or_path: str) -> Accelerator:
    """Return the preset of this name, or the accelerator in this file or YAML text; else an `InputError`."""
    if _is_file(name_or_path):
        from tilewright.hardware.files import load_accelerator  # noqa: PLC0415

        return load_accelerator(name_or_path)
    return preset(name_or_path)


def find_design_space(name_or_path: str) -> DesignSpace:
    """Return what may vary of the preset of this name, or of the accelerator in this file or YAML text."""
    if _is_file(name_or_path):
        from tilewright.hardware.files import load_design_space  # noqa: PLC0415

        return load_design_space(name_or_path)
    if name_or_path not in preset_names():
        raise unknown_name("accelerator", name_or_path, list(preset_names()))
    return _shipped_space(name_or_path)


@cache
def _shipped_space(name: str) -> DesignSpace:
    from tilewright.hardware.files import load_design_space  # noqa: PLC0415

    return load_design_space(ZOO / f"{name}.yaml")


def _is_file(name_or_path: str) -> bool:
    """Whether this is no name of a preset, but a file or YAML text."""
    return name_or_path not in preset_names() and (
        "\n" in name_or_path or os.path.isfile(name_or_path) or name_or_path.endswith((".yaml", ".yml"))
        or "/" in name_or_path)
