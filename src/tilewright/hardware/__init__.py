"""What it runs on: memories, fan-outs, technology, the zoo of accelerators."""

from tilewright.hardware.accelerator import Accelerator, AccessEnergy, Bandwidth, Buffering, Compute, Fanout, Memory
from tilewright.hardware.files import dump_accelerator, load_accelerator
from tilewright.hardware.presets import find_accelerator, preset, preset_names
from tilewright.hardware.tables import build_technology, scale_technology, technology, technology_names
from tilewright.hardware.technology import Anchor, Curve, Storage, Technology
from tilewright.hardware.text import describe, format_bytes

__all__ = [
    "Accelerator",
    "AccessEnergy",
    "Anchor",
    "Bandwidth",
    "Buffering",
    "Compute",
    "Curve",
    "Fanout",
    "Memory",
    "Storage",
    "Technology",
    "build_technology",
    "describe",
    "dump_accelerator",
    "find_accelerator",
    "format_bytes",
    "load_accelerator",
    "preset",
    "preset_names",
    "scale_technology",
    "technology",
    "technology_names",
]
