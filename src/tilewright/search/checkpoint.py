"""What changes during a search, as named arrays, and the file that keeps it, tied to what it was a search of."""

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tilewright.base import InputError, replace_file
from tilewright.mapping import Enumeration, MappingBatch

State = dict[str, NDArray[Any]]
_KEY = "search"


class Resumable:
    """What can be taken up where it was kept: all that changes during a search are its attributes ``changing``.

    They are arrays, numbers, generators, batches of mappings, or records, tuples and other resumables of such. None has
    nothing to keep.
    """

    changing: ClassVar[tuple[str, ...]]

    def state(self) -> State:
        """Return all that changes, as arrays; taken between a tell and an ask."""
        return {key: array for name in self.changing for key, array in _packed(name, getattr(self, name))}

    def restore(self, state: State) -> None:
        """Set all that changes as it was when `state` was taken."""
        for name in self.changing:
            setattr(self, name, _unpacked(getattr(self, name), part(state, name)))


def part(state: State, name: str) -> State:
    """Return what ``state`` says of its part ``name``; where that is one array, under an empty name."""
    found = {key.removeprefix(f"{name}."): array for key, array in state.items() if key.startswith(f"{name}.")}
    return {"": state[name]} if name in state else found


def _parts(thing: Any) -> State:
    """Return the parts of what is made of several by their names, of anything else none."""
    if hasattr(thing, "restore"):
        return dict(thing.state())
    if isinstance(thing, Enumeration):
        return dict(thing.state)
    if isinstance(thing, MappingBatch):
        return {"steps": thing.steps, "ranks": thing.ranks}
    if is_dataclass(thing):
        return {entry.name: getattr(thing, entry.name) for entry in fields(thing)}
    return {str(index): each for index, each in enumerate(thing)} if isinstance(thing, tuple) else {}


def _packed(name: str, thing: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    parts = _parts(thing)
    for key, each in parts.items():
        yield from _packed(f"{name}.{key}", each)
    if isinstance(thing, Generator):
        yield name, pack_generator(thing)
    elif not parts and thing is not None:
        yield name, np.array(thing)


def _unpacked(like: Any, state: State) -> Any:
    """Return what was packed; ``like`` is of its kind."""
    if hasattr(like, "restore"):
        like.restore(state)
    elif isinstance(like, Enumeration):
        like.state = {name: array.copy() for name, array in state.items()}
    elif isinstance(like, Generator):
        unpack_generator(like, state[""])
    elif isinstance(like, MappingBatch):
        return MappingBatch(like.layout, state["steps"], state["ranks"])
    elif is_dataclass(like) and not isinstance(like, type):
        return replace(like, **{name: _unpacked(each, part(state, name)) for name, each in _parts(like).items()})
    elif isinstance(like, tuple):
        return tuple(_unpacked(each, part(state, str(index))) for index, each in enumerate(like))
    elif like is not None:
        return state[""].copy() if isinstance(like, np.ndarray) else type(like)(state[""][()])
    return like


def pack_generator(rng: Generator) -> NDArray[np.uint8]:
    """Return the state of a generator as the bytes of its JSON."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), dtype=np.uint8)


def unpack_generator(rng: Generator, state: NDArray[np.uint8]) -> None:
    """Put a generator into the state that `pack_generator` returned."""
    rng.bit_generator.state = json.loads(state.tobytes())


def save_checkpoint(path: Path, identity: dict[str, str], state: State) -> None:
    """Write ``state`` and what identifies the search, so that the file is either the old or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = io.BytesIO()
    text = np.frombuffer(json.dumps(identity).encode(), dtype=np.uint8)
    np.savez(file, allow_pickle=False, **{_KEY: text}, **state)
    replace_file(path, file.getvalue())


def load_checkpoint(path: Path, identity: dict[str, str]) -> State | None:
    """Return the state in ``path``, None if there is no such file.

    Raises an `InputError` if the file is damaged or belongs to another search.
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
