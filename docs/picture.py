"""Draw which room imports which, from the imports: ``python docs/picture.py`` writes ``docs/images/rooms.svg``."""

import ast
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "tilewright"
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
ROW, CELL, LEFT, NAMES, TOP = 34, 34, 16, 430, 84


def lines_of_rooms() -> list[list[str]]:
    """Return the rooms that exist, from the top line down, as the contract on imports lists them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = [contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers"]
    lines = [[room.strip(" ()") for room in line.split("|")] for line in layers]
    return [found for line in lines if (found := [room for room in line if (SOURCE / room).is_dir()])]


def question(room: str) -> str:
    """Return what a room is for: the first line of its docstring, up to the first stop."""
    told = ast.get_docstring(ast.parse((SOURCE / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    line = told.splitlines()[0]
    ends = [line.index(mark) for mark in ("?", ":", ";", ".") if mark in line]
    end = min(ends, default=len(line))
    return line[:end + (line[end:end + 1] == "?")]


def imports() -> set[tuple[str, str]]:
    """Return every two rooms of which some file of the first imports the second."""
    found: set[tuple[str, str]] = set()
    for path in SOURCE.glob("*/**/*.py"):
        here = path.relative_to(SOURCE).parts[0]
        modules = {node.module for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                   if isinstance(node, ast.ImportFrom) and node.module}
        there = {module.split(".")[1] for module in modules if module.startswith("tilewright.")}
        found.update((here, room) for room in there - {here})
    return found


def draw() -> str:
    """Return the picture: a row and a column for each room, and a disc where a row's room imports a column's."""
    lines, found = lines_of_rooms(), imports()
    rooms = [room for line in lines for room in line]
    place = {room: index for index, room in enumerate(rooms)}
    wide, high = LEFT + NAMES + CELL * len(rooms) + 24, TOP + ROW * len(rooms) + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" '
             'font-family="Helvetica, Arial, sans-serif" font-size="13">',
             "<title>Which room imports which</title>",
             f'<rect width="{wide}" height="{high}" rx="8" fill="#ffffff"/>']
    for number, line in enumerate(lines):
        top = TOP + ROW * place[line[0]]
        shade = "#f3f6fa" if number % 2 else "#e6edf5"
        parts.append(f'<rect x="{LEFT}" y="{top}" width="{wide - 2 * LEFT}" height="{ROW * len(line)}" '
                     f'fill="{shade}"/>')
    for room, index in place.items():
        middle, across = TOP + ROW * index + ROW // 2, LEFT + NAMES + CELL * index + CELL // 2
        parts += [f'<text x="{LEFT + 10}" y="{middle + 5}" font-weight="bold" fill="#16324f">{room}</text>',
                  f'<text x="{LEFT + 110}" y="{middle + 5}" fill="#333333">{escape(question(room))}</text>',
                  f'<text transform="translate({across + 5},{TOP - 8}) rotate(-50)" fill="#16324f">{room}</text>',
                  f'<rect x="{across - 5}" y="{middle - 5}" width="10" height="10" fill="#9db2c7"/>']
        for other, column in place.items():
            if (room, other) in found:
                parts.append(f'<circle cx="{LEFT + NAMES + CELL * column + CELL // 2}" cy="{middle}" r="7" '
                             f'fill="{"#1f6f8b" if column > index else "#c0392b"}"/>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
