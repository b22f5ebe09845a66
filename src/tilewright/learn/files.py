"""Files of trained networks: arrays, and plain data about them. Nothing in a file is run."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.base import InputError, replace_file

Arrays = dict[str, NDArray[Any]]


def write_arrays(path: Path, kind: str, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Write arrays of a kind of network, so that the file is either the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.BytesIO()
    torch.save({"kind": kind, "about": json.dumps(about),
                "arrays": {name: torch.from_numpy(np.asarray(array)) for name, array in arrays.items()}}, text)
    replace_file(path, text.getvalue())


def read_arrays(path: Path, kind: str, field: str, verb: str) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays in a file of a kind, and what is said about them.

    ``field`` is what the file was given as, ``verb`` the one of the command line that writes such files.

    Raises an `InputError` if there is no such file, or it holds something else.
    """
    rule, mend = f"must be a file that {verb} wrote", f"Train one: tilewright {verb}"
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(field, "must be a file", str(path), mend) from None
    except Exception:  # whatever unpickling other files ends with
        raise InputError(field, rule, str(path), mend) from None
    if not isinstance(found, dict) or found.get("kind") != kind:
        raise InputError(field, rule, str(path), mend)
    return {name: part.numpy() for name, part in found["arrays"].items()}, json.loads(found["about"])


def write_state(path: Path, kind: str, mark: str, state: Mapping[str, Any]) -> None:
    """Keep where a training stands: tensors and plain data; ``mark`` says what is trained on what."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.BytesIO()
    torch.save({"kind": kind, "mark": mark, "state": dict(state)}, text)
    replace_file(path, text.getvalue())


def read_state(path: Path, kind: str, mark: str) -> dict[str, Any] | None:
    """Return what `write_state` kept; None if there is no such file.

    Raises an `InputError` if it holds something else, or another training.
    """
    if not path.exists():
        return None
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # whatever unpickling other files ends with
        found = None
    mend = "Delete it to begin anew, or name another file"
    if not isinstance(found, dict) or found.get("kind") != kind:
        raise InputError("checkpoint", "must be a file that training wrote", str(path), mend)
    if found["mark"] != mark:
        raise InputError("checkpoint", "must be of the same training: data, network, seed and pace", str(path), mend)
    return dict(found["state"])
