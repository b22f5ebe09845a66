"""Named things that plug in: one registry per family, filled by one line per member."""

import sys
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import Generic, TypeVar

from tilewright.base.errors import InputError

T = TypeVar("T")


class Registry(Generic[T]):
    """A family of named members, kept in the order of registration.

    Parameters
    ----------
    family
        What a member is called in messages, for example ``"mapper"``.
    homes
        Modules that register members. They load when a member is asked for: in turn, until one has registered it.
    """

    def __init__(self, family: str, *homes: str) -> None:
        self.family = family
        self._homes = homes
        self._members: dict[str, T] = {}
        self._options: dict[str, type] = {}
        self._also: dict[str, str] = {}

    def register(self, name: str, options: type | None = None, also: tuple[str, ...] = ()) -> Callable[[T], T]:
        """Return a decorator that registers its argument under ``name``, with the record of its options.

        By the names in ``also`` it is found, too, but not listed.
        """
        if not any(home in sys.modules for home in self._homes):
            self._known()  # what comes from elsewhere stands after the members of the homes, and has another name

        def add(member: T) -> T:
            if name in self._members:
                raise ValueError(f"{self.family} {name!r} is registered twice")
            self._members[name] = member
            if options is not None:
                self._options[name] = options
            self._also.update(dict.fromkeys(also, name))
            return member

        return add

    def get(self, name: str) -> T:
        """Return the member called ``name``; an unknown name is an `InputError` that suggests a near one."""
        if not isinstance(name, str):
            raise InputError(self.family, "must be a name", name)
        known = self._known(name)
        try:
            return known[self._also.get(name, name)]
        except KeyError:
            raise unknown_name(self.family, name, list(known)) from None

    def options(self, name: str) -> type | None:
        """Return the record of the options of the member called ``name``; None where it named none."""
        self.get(name)
        return self._options.get(self._also.get(name, name))

    def _known(self, name: object = None) -> dict[str, T]:
        """Return all members; of those in homes at least the one called ``name``."""
        for home in self._homes:
            if name in self._members or name in self._also:
                break
            import_module(home)
        return self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __contains__(self, name: object) -> bool:
        return name in self._known(name)

    def __len__(self) -> int:
        return len(self._known())


def unknown_name(family: str, name: str, known: list[str], field: str = "") -> InputError:
    """Return the error for a ``name`` that is none of ``known``, with the nearest ones as the mend.

    ``field`` is where it was given; what it is a name of, unless told.
    """
    near = get_close_matches(str(name).lower(), [k.lower() for k in known], n=3, cutoff=0.5)
    near = [k for k in known if k.lower() in near]
    mend = f"Did you mean {', '.join(near)}?" if near else f"Known: {', '.join(known)}"
    return InputError(field or family, f"must be a known {family}", name, mend)
