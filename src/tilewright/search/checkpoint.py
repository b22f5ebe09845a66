"""Checkpoints of searches: one file each, replaced as a whole, tied to what it was a search of."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np

from tilewright.base import InputError, replace_file
from tilewright.search.records import Budget
from tilewright.search.state import State

_KEY = "search"


def save_checkpoint(path: Path, identity: dict[str, str], state: State) -> None:
    """Write ``state`` and what identifies the search, so that the file is either the old or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = io.BytesIO()
    text = np.frombuffer(json.dumps(identity).encode(), dtype=np.uint8)
    np.savez(file, allow_pickle=False, **{_KEY: text}, **state)
    replace_file(path, file.getvalue())


def load_checkpoint(path: Path, identity: dict[str, str]) -> State | None:
    """Return the state in ``path``, None if there is no such file.

    Raises
    ------
    InputError
        If the file is damaged or belongs to another search.
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            found = json.loads(file[_KEY].tobytes())
            state = {name: file[name] for name in file.files if name != _KEY}
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError("checkpoint", "must be a file written by a search", str(path),
                         "Delete it to start afresh") from error
    different = sorted(name for name in {*found, *identity} if found.get(name) != identity.get(name))
    if different:
        raise InputError("checkpoint", f"must belong to the same search; {', '.join(different)} differ", str(path),
                         "Give another file, or delete it to start afresh")
    return state


def plan_of(kept: State | None, budget: Budget) -> Budget:
    """Return what the mapper plans for: the budget, or that under which the search was begun."""
    if kept is None:
        return budget
    samples, seconds = kept["plan"].tolist()
    return Budget(int(samples) or None, seconds or None)
