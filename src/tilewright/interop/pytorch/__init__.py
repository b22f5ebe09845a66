"""PyTorch networks: modules and exported programs, ``.pt2`` files, configurations of Hugging Face."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.base import InputError
from tilewright.interop.formats import Foreign
from tilewright.interop.pytorch.huggingface import load_huggingface
from tilewright.interop.pytorch.network import is_torch, load_exported, load_given, load_torch
from tilewright.interop.pytorch.torch import TorchNetwork
from tilewright.interop.scene import graph_notes
from tilewright.workload import Graph

__all__ = ["TorchNetwork", "is_torch", "load_exported", "load_given", "load_huggingface", "load_torch",
           "read_configuration", "read_program"]


def _one(paths: Sequence[Path], what: str) -> Path:
    if len(paths) != 1:
        raise InputError("FILE", f"must be one {what}", ", ".join(map(str, paths)))
    return paths[0]


def _told(graph: Graph) -> Foreign:
    return Foreign(graph, notes=graph_notes(graph))


def read_program(paths: Sequence[Path], bind: Mapping[str, int]) -> Foreign:
    """Read one exported program, as a format does."""
    return _told(load_exported(_one(paths, ".pt2 file"), bind=bind))


def read_configuration(paths: Sequence[Path], bind: Mapping[str, int]) -> Foreign:
    """Read one configuration, as a format does."""
    return _told(load_huggingface(_one(paths, "configuration"), bind=bind))
