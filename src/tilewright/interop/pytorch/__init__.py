"""PyTorch networks: modules and exported programs, ``.pt2`` files, configurations of Hugging Face."""

from tilewright.interop.pytorch.archive import load_exported, load_given, load_torch
from tilewright.interop.pytorch.huggingface import load_huggingface
from tilewright.interop.pytorch.torch import TorchNetwork

__all__ = ["TorchNetwork", "load_exported", "load_given", "load_huggingface", "load_torch"]
