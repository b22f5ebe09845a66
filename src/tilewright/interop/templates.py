"""The texts of Timeloop's files: templates are rendered by a process of its own, with limits on time and memory."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.base import InputError, read_text
from tilewright.interop import rendering

MOST_SECONDS, MOST_BYTES = 5, 2**30
"""Time of the processor and memory that a template may take with all that it includes."""
_LONGEST_WAIT = 60
"""Seconds that a machine under load may take for those of the processor."""
_MOST_SHOWN = 300


@dataclass(frozen=True)
class Rendered:
    """The text of a file, templates written out; and the name and text of each file that it includes as a tree."""

    text: str
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def rendered(path: Path, variables: Mapping[str, str | int], folders: Iterable[Path]) -> Rendered:
    """Return the text of a file, which may include what stands in ``folders``.

    Raises an `InputError` if it cannot be read, includes itself or anything elsewhere, is no template of the functions
    that Timeloop's front end has, or takes more time or memory than any that is meant.
    """
    text = read_text(path)
    if "{{" not in text and "{%" not in text:
        return Rendered(text)
    named = os.environ.get("TILEWRIGHT_INCLUDE", "").split(os.pathsep)
    further = [Path(folder).resolve() for folder in named if folder]
    roots = {*folders, *further}
    asked = {"path": str(path.resolve()), "variables": dict(variables), "roots": sorted(map(str, roots)),
             "seconds": MOST_SECONDS, "bytes": MOST_BYTES}
    try:
        done = subprocess.run([sys.executable, "-P", rendering.__file__], input=json.dumps(asked), text=True,
                              encoding="utf-8", capture_output=True, timeout=_LONGEST_WAIT, check=False)
        answer = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError, MemoryError):
        raise InputError(path.name, f"must be a template that takes at most {MOST_SECONDS} s and "
                         f"{MOST_BYTES // 2**20:,} MiB") from None
    if "refused" in answer:
        where, rule, *more = (part[:_MOST_SHOWN] for part in answer["refused"])
        raise InputError(where, rule, *more)
    return Rendered(answer["text"], {name: (label, part) for name, (label, part) in answer["texts"].items()})
