"""PyTorch networks: modules and exported programs, ``.pt2`` files, configurations of Hugging Face."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.base import InputError
from tilewright.interop.formats import FORMATS, Foreign, Format, Part
from tilewright.interop.pytorch.huggingface import configuration_file, load_huggingface
from tilewright.interop.pytorch.network import is_torch, load_exported, load_given, load_torch
from tilewright.interop.pytorch.torch import TorchNetwork
from tilewright.interop.scene import graph_notes
from tilewright.workload import Graph

__all__ = ["TorchNetwork", "is_torch", "load_exported", "load_given", "load_huggingface", "load_torch"]

_NETWORK: frozenset[Part] = frozenset(("network",))


def _one(paths: Sequence[Path], what: str) -> Path:
    if len(paths) != 1:
        raise InputError("FILE", f"must be one {what}", ", ".join(map(str, paths)))
    return paths[0]


def _told(graph: Graph) -> Foreign:
    return Foreign(graph, notes=graph_notes(graph))


def _holds_exported(path: Path) -> frozenset[Part]:
    return _NETWORK if path.suffix.lower() == ".pt2" else frozenset()


def _exported(paths: Sequence[Path], bind: Mapping[str, int]) -> Foreign:
    return _told(load_exported(_one(paths, ".pt2 file"), bind=bind))


def _holds_configuration(path: Path) -> frozenset[Part]:
    return _NETWORK if configuration_file(path) else frozenset()


def _configuration(paths: Sequence[Path], bind: Mapping[str, int]) -> Foreign:
    return _told(load_huggingface(_one(paths, "configuration"), bind=bind))


FORMATS.register("pytorch")(Format(
    "pytorch", "networks exported by PyTorch (.pt2 of torch.export.save); read only", _holds_exported, _exported))
FORMATS.register("huggingface")(Format(
    "huggingface", "configurations of Hugging Face (config.json, or its folder); read only", _holds_configuration,
    _configuration))
