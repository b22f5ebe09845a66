"""MAESTRO's networks, dataflows and hardware files, and GAMMA's layer tables and genomes, both ways."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.interop.formats import Foreign, refuse_sizes
from tilewright.interop.maestro.design import load_maestro
from tilewright.interop.maestro.gamma_writing import dump_gamma
from tilewright.interop.maestro.writing import dump_maestro

LAYER = "layer"
"""What is bound to the number of the one layer that is to be read."""

__all__ = ["dump_gamma", "dump_maestro", "load_maestro", "read"]


def read(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read files that belong together, as a format does."""
    number = bind.get(LAYER)
    refuse_sizes({name: value for name, value in bind.items() if name != LAYER}, "MAESTRO's and GAMMA's files")
    return load_maestro(paths, number if isinstance(number, int) else None)
