"""Renders one Jinja2 template of Timeloop's front end, and what it includes: the program of a process of its own.

A template is a program: it can loop for ever, and fill the memory. So it runs apart, with limits on both (`templates`
starts it). It imports nothing of the package, and reads no file outside the folders it is given.
"""

import glob
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateError, UndefinedError
from jinja2.sandbox import SandboxedEnvironment

MOST_TEXT = 2**24
"""Letters of all texts together, at most."""
FUNCTIONS = ("add_to_path", "cwd", "find_path", "find_paths", "include", "include_all", "include_text", "path_exists",
             "setenv")
INCLUDED = "!include_loaded"
"""The tag of a value that stands in another file: names of texts, a path in each behind them."""


class RefusedError(Exception):
    """What is wrong: where, the rule, what was given, how to mend it."""


@dataclass
class Rendering:
    """The texts of a template and of the files that it includes as trees, by a name for each."""

    variables: Mapping[str, str | int]
    """What templates know beside the functions."""
    roots: Sequence[Path]
    """Folders, links resolved, of which files may be included."""
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)
    letters: int = 0

    def text(self, path: Path, folders: Sequence[Path] = (), within: tuple[Path, ...] = ()) -> str:
        """Return the text of a file; ``folders`` are searched beside its own, ``within`` are the files around it."""
        if path in within:
            raise RefusedError(within[-1].name, "must not include a file that includes it", path.name)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise RefusedError(str(path), "must be a readable text file in UTF-8", str(error)) from None
        if "{{" in text or "{%" in text:
            text = self._rendered(path, text, [path.parent, *folders], (*within, path))
        self.letters += len(text)
        if self.letters > MOST_TEXT:
            raise RefusedError(path.name, f"must have at most {MOST_TEXT:,} letters, includes written out")
        return text

    def _rendered(self, path: Path, text: str, folders: list[Path], inside: tuple[Path, ...]) -> str:
        environment = SandboxedEnvironment(undefined=StrictUndefined)
        environment.globals |= self._functions(path, folders, inside)
        try:
            return environment.from_string(text).render(self.variables)
        except (TemplateError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            mend = (f"Give a variable behind the file's name: {inside[0].name}:NAME=VALUE"
                    if isinstance(error, UndefinedError) else "")
            raise RefusedError(f"{path.name}{_line(error)}", f"must be a Jinja2 template of {', '.join(FUNCTIONS)}",
                               str(error) or type(error).__name__, mend) from None

    def _functions(self, path: Path, folders: list[Path], inside: tuple[Path, ...]) -> dict[str, Callable[..., Any]]:
        def add_to_path(name: str) -> str:
            folders.append(path.parent / name)
            return ""

        def tree(found: Sequence[Path], keys: str) -> str:
            names = []
            for one in found:
                name = f"p{len(self.texts)}"
                self.texts[name] = one.name, ""
                names.append(name)
                self.texts[name] = one.name, self.text(one, folders, inside)
            return f"{INCLUDED} {'+'.join(names)}{'.' if keys else ''}{keys.lstrip('.')}"

        return {
            "add_to_path": add_to_path, "cwd": lambda: str(path.parent), "setenv": lambda name, value: "",
            "find_path": lambda name: str(self._found(path, folders, name)[0]),
            "find_paths": lambda name: list(map(str, self._found(path, folders, name))),
            "include": lambda name, keys="": tree(self._found(path, folders, name)[:1], keys),
            "include_all": lambda name, keys="": tree(self._found(path, folders, name), keys),
            "include_text": lambda name: self.text(self._found(path, folders, name)[0], folders, inside),
            "path_exists": lambda name: bool(self._matching(folders, name)[0])}

    def _found(self, path: Path, folders: Sequence[Path], name: object) -> list[Path]:
        """Return the files of a name or pattern, of which there must be some, within the roots."""
        found, outside = self._matching(folders, str(name))
        if not found and outside:
            raise RefusedError(path.name, "must include files in the folders of the files that are given", str(name),
                               "Name the folder in TILEWRIGHT_INCLUDE where its files may be read")
        if not found:
            raise RefusedError(path.name, "must include files that exist", str(name))
        return found

    def _matching(self, folders: Sequence[Path], name: str) -> tuple[list[Path], bool]:
        """Return the files of a name or pattern within the roots, and whether any place for them is outside."""
        found: dict[Path, None] = {}
        outside = False
        for folder in folders:
            for place in (folder / name, *(folder / hit for hit in sorted(glob.glob(name, root_dir=folder)))):
                try:
                    real = place.resolve()
                    inside = any(real.is_relative_to(root) for root in self.roots)
                    if inside and real.is_file():
                        found[real] = None
                except (OSError, ValueError):  # a name that no file system takes
                    continue
                outside = outside or not inside
        return list(found), outside


def _line(error: BaseException) -> str:
    """Return ``:line`` of the template in which an error arose."""
    number, trace = getattr(error, "lineno", None), error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            number = trace.tb_lineno
        trace = trace.tb_next
    return f":{number}" if number else ""


def _limit(seconds: int, size: int) -> None:
    """Bound the time of the processor and the memory of this process."""
    try:
        import resource  # noqa: PLC0415  (not on every system)
    except ImportError:
        return
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, size)):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def main() -> None:
    """Render what standard input asks for, as JSON; write the texts, or why there are none."""
    asked = json.load(sys.stdin)
    _limit(asked["seconds"], asked["bytes"])
    try:
        rendering = Rendering(asked["variables"], [Path(root) for root in asked["roots"]])
        text = rendering.text(Path(asked["path"]))
        answer: dict[str, Any] = {"text": text, "texts": rendering.texts}
    except RefusedError as refused:
        answer = {"refused": [str(part) for part in refused.args]}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
