"""Words: values that people type, names that are free, hashes that tell things apart, text in notebooks."""

import hashlib
from collections.abc import Container, Iterable, Sequence
from html import escape


def value_of(text: str) -> str | int | float | bool:
    """Return the integer, number, true or false that a word looks like, else the word."""
    if not text.isascii():  # Python reads digits of every script
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def whole_of(text: str, least: int = 1, most: int = 2**63 - 1) -> int | None:
    """Return the whole number that a text of digits 0 to 9 says; None where it is none from ``least`` to ``most``."""
    digits = text.lstrip("0") or "0"
    if not (text.isascii() and text.isdecimal()) or len(digits) > len(str(most)):
        return None  # Python reads digits of every script, and refuses to read thousands of them
    return number if least <= (number := int(digits)) <= most else None


def free_name(wanted: str, taken: Container[str], mark: str = "_") -> str:
    """Return ``wanted``; where it is taken, with the first number from 2 behind a mark that makes it free."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}{mark}{number}"
    return name


def renamed_note(names: Sequence[str]) -> tuple[str, ...]:
    """Tell of names that stand more than once in a file, which have numbers: at most three of them."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (f"names that repeat have numbers: {', '.join(names[:3])}{more}",) if names else ()


def sizes_text(sizes: Iterable[tuple[str, int]]) -> str:
    """Return the sizes above one in a line, for example ``K64 C64 P56 Q56 R3 S3``; empty where none is."""
    return " ".join(f"{name}{size}" for name, size in sizes if size > 1)


def together(names: Sequence[str]) -> str:
    """Return names as in a sentence: ``latency, energy and power``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def digest(thing: object) -> str:
    """Return a short hash of all that ``repr`` tells."""
    return hashlib.sha256(repr(thing).encode()).hexdigest()[:16]


def text_html(text: object) -> str:
    """Return text as HTML that keeps its lines and columns, for notebooks."""
    return f'<pre style="line-height: 1.25; overflow-x: auto; white-space: pre">{escape(str(text))}</pre>'
