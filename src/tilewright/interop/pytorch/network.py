"""The ways in: a module with its inputs, an exported program, a ``.pt2`` file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.base import InputError
from tilewright.interop.pytorch.archive import read_archive
from tilewright.interop.pytorch.huggingface import is_pretrained, load_pretrained
from tilewright.interop.pytorch.torch import export_module, is_exported, is_module, read_exported
from tilewright.interop.pytorch.translate import graph_of
from tilewright.workload import Graph


def load_torch(module: Any, inputs: Sequence[Any] | None = None,
               kwargs: Mapping[str, Any] | None = None, *, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read a PyTorch module, or what ``torch.export.export`` made of one.

    A module is exported for inputs of these shapes, as for inference; shapes are all that is computed, so that module
    and inputs may be on the meta device. The module stays as it was.

    Parameters
    ----------
    module
        A ``torch.nn.Module`` or a ``torch.export.ExportedProgram``.
    inputs, kwargs
        Arguments of the module's ``forward``; none for an exported program, or for a model of transformers whose
        sizes ``bind`` gives.
    bind
        Sizes of an exported program's dynamic dimensions, by input and axis (``images[0]``), or of a transformers
        model's inputs (``batch``, ``sequence``).

    Raises
    ------
    InputError
        If PyTorch is not installed, the module cannot be traced with these inputs, or a dynamic dimension is not bound.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> graph = load_torch(torch.nn.Linear(64, 10), (torch.zeros(1, 64),))  # doctest: +SKIP
    """
    if is_exported(module):
        if inputs is not None or kwargs:
            raise InputError("inputs", "must be left out with an exported program, which has its own")
        return graph_of(read_exported(module), bind or {})
    if not is_module(module):
        raise InputError("module", "must be a torch.nn.Module or an exported program", type(module).__name__)
    if inputs is None and not kwargs and is_pretrained(module):
        return load_pretrained(module, bind=bind)
    if inputs is None and not kwargs:
        raise InputError(type(module).__name__, "must come with the inputs of its forward", None,
                         "Give them beside it, (module, inputs), or export it: torch.export.export(module, inputs)")
    if inputs is not None and not isinstance(inputs, list | tuple):
        raise InputError("inputs", "must be a tuple of the arguments of forward", type(inputs).__name__,
                         "Write (tensor,) for a single one")
    exported = export_module(module, inputs or (), kwargs or {}, where=type(module).__name__,
                             mend="See that it runs with these inputs: module(*inputs)")
    return graph_of(read_exported(exported, type(module).__name__), bind or {})


def load_given(given: Any, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read a module, an exported program, or a pair of a module and its inputs."""
    if not isinstance(given, tuple):
        return load_torch(given, bind=bind)
    module, inputs = given
    return load_torch(module, **{"kwargs" if isinstance(inputs, Mapping) else "inputs": inputs}, bind=bind)


def load_exported(path: str | Path, *, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Read a ``.pt2`` file of ``torch.export.save``; PyTorch need not be installed, and nothing in the file is run.

    Raises an `InputError` if the file cannot be read, or a dynamic dimension is not bound.
    """
    return graph_of(read_archive(path), bind or {})
