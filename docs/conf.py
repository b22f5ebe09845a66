"""How the site is built: ``sphinx-build -W docs out/site``. Its notebooks run then; an error ends the build."""

import ast
import inspect
import os
import subprocess
import sys
import tempfile
from importlib import import_module, metadata
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent))
SOURCE = ROOT / "src" / "tilewright"
ROOMS = [path.parent.name for path in sorted(SOURCE.glob("*/__init__.py"))]

project = "Tilewright"
author = "The Tilewright developers"
release = metadata.version("tilewright")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
default_role = "py:obj"
myst_heading_anchors = 3

# Notebooks keep their runs in a store of this build, and find nothing there that an earlier one left.
os.environ["TILEWRIGHT_STORE"] = f"{tempfile.mkdtemp()}/runs.sqlite"
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_merge_streams = True

autosummary_generate = False
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["gymnasium", "ray", "sb3_contrib", "stable_baselines3", "torch", "transformers"]
napoleon_google_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = "Tilewright"
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["wide.css"]


def constants(room: str) -> dict[str, str]:
    """Return the strings that stand below the constants of a room's files, which say what they are."""
    found = {}
    for path in (SOURCE / room).rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for node, below in pairwise(body):
            if (isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr)
                    and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {target.id: below.value.value for target in targets if isinstance(target, ast.Name)}
    return found


def room_page(room: str) -> str:
    """Return the page of a room: a table of what its ``__all__`` names, and their docstrings."""
    module, told = import_module(f"tilewright.{room}"), constants(room)
    offered = {name: getattr(module, name) for name in module.__all__}
    code = [name for name, thing in offered.items() if inspect.isclass(thing) or inspect.isroutine(thing)]
    lines = [f"# `tilewright.{room}`", "", "```{eval-rst}", f".. module:: tilewright.{room}", "",
             inspect.getdoc(module) or "", "", ".. autosummary::", "", *(f"   {name}" for name in code), ""]
    for name, thing in offered.items():
        if name in code:
            members = ["   :members:"] if inspect.isclass(thing) else []
            lines += [f".. auto{'class' if members else 'function'}:: {name}", *members, ""]
        elif not isinstance(thing, ModuleType):
            meaning = inspect.cleandoc(told.get(name, "")).split("\n")
            lines += [f".. py:data:: {name}", "", *(f"   {line}" for line in meaning), ""]
    return "\n".join([*lines, "```", ""])


def write_reference(app: Sphinx) -> None:
    """Write the pages on the rooms and on the command line, so that nobody keeps them by hand."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    with mock(app.config.autodoc_mock_imports):
        pages = {room: room_page(room) for room in ROOMS if room != "cli"}
    from file_fields import files_page  # noqa: PLC0415  (it lies beside this file, which is no package)

    pages["files"] = files_page()
    for room, page in pages.items():
        (folder / f"{room}.md").write_text(page, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "typer", "tilewright.cli.all_verbs", "utils", "docs", "--name", "tilewright",
                    "--title", "The command line", "--output", folder / "command-line.md"],
                   check=True, capture_output=True)


AS_WRITTEN: dict[str, list[str]] = {}
"""What is said of fields and properties, by name: Napoleon would take what comes before a colon for a type."""


def remember(_app: Sphinx, what: str, name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Keep what is said of a field or a property."""
    if what in ("attribute", "property"):
        AS_WRITTEN[name] = list(lines)


def put_back(_app: Sphinx, _what: str, name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Put it back, behind Napoleon."""
    lines[:] = AS_WRITTEN.pop(name, lines)


def setup(app: Sphinx) -> None:
    """Let Sphinx write the reference before it reads the pages."""
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", remember, priority=400)
    app.connect("autodoc-process-docstring", put_back, priority=600)
