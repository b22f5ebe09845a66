"""PyTorch networks: modules and exported programs, ``.pt2`` files, configurations of Hugging Face."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.interop.formats import Foreign, read_one
from tilewright.interop.pytorch.huggingface import load_huggingface
from tilewright.interop.pytorch.network import load_exported, load_given, load_torch
from tilewright.interop.pytorch.torch import TorchNetwork

__all__ = ["TorchNetwork", "load_exported", "load_given", "load_huggingface", "load_torch", "read_configuration",
           "read_program"]


def read_program(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read one exported program, as a format does."""
    return read_one(paths, ".pt2 file", lambda path: load_exported(path, bind=bind))


def read_configuration(paths: Sequence[Path], bind: Mapping[str, int | str]) -> Foreign:
    """Read one configuration, as a format does."""
    return read_one(paths, "configuration", lambda path: load_huggingface(path, bind=bind))
