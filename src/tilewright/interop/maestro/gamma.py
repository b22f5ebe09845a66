"""GAMMA's layer tables and genomes, as they are written.

A table has a row ``K,C,Y,X,R,S,T`` for every layer (T: 1 convolution, 2 depthwise, 3 matrix product with N, K and M in
the places of K, C and Y), or ``M,N,K``, with or without a header. A genome is a list of seven genes for every level of
clusters: which dimension spreads and how many clusters there are, then a tile for each dimension, outermost loop first.
It stands in the column ``best_sol`` of ``result_c.csv``, one row for each row of the table, or at the end of the log of
a layer, which has the layer's own sizes above it.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.base import InputError, whole_of
from tilewright.interop.maestro.network import LayerText, MappingDirective, NetworkText, Stage
from tilewright.interop.notes import Notes
from tilewright.interop.signs import COLUMNS, PRODUCT, SOLUTION, is_log

GENES = COLUMNS[:-1]
TYPES = {0: "CONV", 1: "CONV", 2: "DSCONV", 3: "GEMM"}
"""What T stands for; 0 is a fully connected layer, written as a convolution."""
AS_PRODUCT = {"K": "N", "C": "K", "Y": "M"}
"""Dimensions of a matrix product by the letters that GAMMA's rows and genes have for them."""
ELEMENTS = "PE"
_LOG_LAYER = re.compile(r"^Layer:\s*\[([^\]]*)\]", re.MULTILINE)
_GENE = re.compile(r"\[\s*['\"](\w+)['\"]\s*,\s*(?:np\.int[0-9]+\()?([0-9]+)\)?\s*\]")
_BETWEEN = re.compile(r"[\s,\[\]]*")
_LARGEST = 2**31


def is_table(name: str, text: str) -> bool:
    """Whether a text is taken for a layer table: a file of comma-separated values."""
    return name.lower().endswith(".csv") or text.split("\n", 1)[0].replace(" ", "").split(",") == list(COLUMNS)


def parse_table(label: str, text: str) -> NetworkText:
    """Return the layers of a table, called Layer_1 and so on, without dataflows.

    Raises an `InputError` with file and line, where a row is not one of positive whole numbers in known columns.
    """
    layers: list[LayerText] = []
    for line, cells in _rows(label, text):
        if not layers and tuple(cell.upper() for cell in cells) in (COLUMNS, PRODUCT):
            continue
        if len(cells) not in (len(COLUMNS), len(PRODUCT)):
            raise InputError(f"{label}:{line}", f"must have the columns {','.join(COLUMNS)} or {','.join(PRODUCT)}",
                             f"{len(cells)} columns: {', '.join(cells)[:80]}")
        columns = COLUMNS if len(cells) == len(COLUMNS) else PRODUCT
        layers.append(_layer(label, f"Layer_{len(layers) + 1}", line, dict(zip(columns, cells, strict=True))))
    if not layers:
        raise InputError(f"{label}:1", "must have at least one row of sizes", "none")
    return NetworkText(Path(label).stem, tuple(layers))


def _rows(label: str, text: str) -> list[tuple[int, list[str]]]:
    """Return the rows that are not blank, with the lines where they end."""
    reader = csv.reader(text.splitlines(keepends=True))
    found = []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                found.append((reader.line_num, cells))
    except csv.Error as error:
        raise InputError(f"{label}:{reader.line_num}", "must be comma-separated values", str(error)) from None
    return found


def _whole(where: str, text: str, least: int = 1) -> int:
    number = whole_of(text.removesuffix(".0"), least, _LARGEST)
    if number is None:
        raise InputError(where, f"must be a whole number from {least} to {_LARGEST}", text)
    return number


def _layer(label: str, name: str, line: int, cells: dict[str, str]) -> LayerText:
    values = {column: _whole(f"{label}:{line} {column}", cell, 0 if column == "T" else 1)
              for column, cell in cells.items()}
    lines = {"Dimensions": line, "Type": line}
    if "M" in values:
        return LayerText(label, name, line, "GEMM", {}, values, None, False, lines)
    kind = TYPES.get(values["T"])
    if kind is None:
        raise InputError(f"{label}:{line} T", f"must be one of {', '.join(map(str, TYPES))}", values["T"])
    sizes = {letter: values[letter] for letter in GENES}
    if kind == "GEMM" and sizes["X"] == sizes["R"] == sizes["S"] == 1:
        sizes = {AS_PRODUCT[letter]: sizes[letter] for letter in AS_PRODUCT}
    elif kind == "GEMM":
        kind = "CONV"
    return LayerText(label, name, line, kind, {}, sizes, None, False, lines)


def with_genomes(network: NetworkText | None, files: Sequence[tuple[str, str]],
                 notes: Notes) -> tuple[NetworkText, int | None]:
    """Return a network with the dataflows of genomes in ``(label, text)``, and how many elements they ask for.

    A result may have fewer rows than the table has layers (GAMMA searches as many as it is told): they are the first.

    Raises an `InputError` with file and line, where a genome is none, or belongs to no layer.
    """
    logs = [file for file in files if is_log(file[1])]
    results = [file for file in files if not is_log(file[1])]
    if logs:
        if network is not None or results:
            raise InputError(f"{logs[0][0]}:1", "must come without a layer table: a log has its own layer",
                             (results or [(network.layers[0].label if network else "", "")])[0][0])
        return NetworkText("gamma", tuple(_logged(label, text) for label, text in logs)), None
    label, text = results[0]
    if len(results) > 1:
        raise InputError(f"{results[1][0]}:1", "must be the only result", label)
    if network is None:
        raise InputError(f"{label}:1", "must come with the layer table that it is the result of", None,
                         f"For example tilewright convert model.csv {label} hw_config.m --out converted")
    return _with_result(network, label, text, notes)


def _logged(label: str, text: str) -> LayerText:
    """Return the layer of a log."""
    found = _LOG_LAYER.search(text)
    if found is None:
        raise InputError(f"{label}:1", "must have the sizes of its layer, Layer: [K C Y X R S T]")
    line = text.count("\n", 0, found.start()) + 1
    cells = found[1].replace(",", " ").replace(".", " ").split()
    if len(cells) != len(COLUMNS):
        raise InputError(f"{label}:{line} Layer", f"must give {', '.join(COLUMNS)}", found[1].strip())
    layer = _layer(label, Path(label).name, line, dict(zip(COLUMNS, cells, strict=True)))
    head, mark, genome = text.partition("Best Sol:")
    if not mark:
        raise InputError(f"{label}:{line}", "must have the genome after Best Sol:")
    return _with_dataflow(layer, label, head.count("\n") + 1, genome)


def _with_result(network: NetworkText, label: str, text: str, notes: Notes) -> tuple[NetworkText, int | None]:
    (first, header), *rows = _rows(label, text)
    place = header.index(SOLUTION)
    layers, elements = list(network.layers), 0
    if len(rows) > len(layers):
        raise InputError(f"{label}:{rows[len(layers)][0]}", "must have at most a row for each layer of the table",
                         len(rows), f"The table has {len(layers)}")
    if not rows:
        raise InputError(f"{label}:{first}", "must have a row for each layer that was searched", "none")
    for index, (line, cells) in enumerate(rows):
        if len(cells) != len(header):
            raise InputError(f"{label}:{line}", f"must have {len(header)} columns as the header", len(cells))
        if ELEMENTS in header and cells[header.index(ELEMENTS)]:
            elements = max(elements, _whole(f"{label}:{line} {ELEMENTS}", cells[header.index(ELEMENTS)]))
        if cells[place]:
            layers[index] = _with_dataflow(layers[index], label, line, cells[place])
    if len(rows) < len(layers):
        notes.approximated(f"{label}:1 {SOLUTION}",
                           f"{len(rows)} genomes as those of the first {len(rows)} of {len(layers)} layers")
    return replace(network, layers=tuple(layers)), elements or None


def _with_dataflow(layer: LayerText, label: str, line: int, genome: str) -> LayerText:
    """Return a layer with the dataflow of a genome that stands in another file, or elsewhere in its own."""
    stages = _stages(f"{label}:{line} {SOLUTION}", genome, line, layer.type)
    return replace(layer, dataflow=stages, stated=True, lines={**layer.lines, "Dataflow": line}, genome_label=label)


def _stages(where: str, text: str, line: int, kind: str) -> tuple[Stage, ...]:
    """Return the cluster levels of a genome."""
    genes = [(match[1], _whole(where, match[2])) for match in _GENE.finditer(text)]
    rest = _GENE.sub("", text)
    if not genes or not _BETWEEN.fullmatch(rest):
        raise InputError(where, "must be a list of genes such as [['K', 168], ['K', 4], ...]",
                         rest.strip(" ,[]\n")[:40] or "none")
    size = len(COLUMNS)
    if len(genes) % size:
        raise InputError(where, f"must have {size} genes for every level", len(genes))
    stages = []
    for start in range(0, len(genes), size):
        (spread, clusters), *tiles = genes[start:start + size]
        if sorted(letter for letter, _ in tiles) != sorted(GENES):
            raise InputError(where, f"must have one tile for each of {', '.join(GENES)} at every level",
                             ", ".join(letter for letter, _ in tiles))
        if spread not in GENES:
            raise InputError(where, f"must spread one of {', '.join(GENES)}", spread)
        directives = tuple(MappingDirective(line, letter == spread, tile, tile, _dimension(letter, kind))
                           for letter, tile in tiles if not (letter == "K" and kind == "DSCONV"))
        stages.append(Stage(line, clusters if start else None, directives))
    return tuple(stages)


def _dimension(letter: str, kind: str) -> str:
    """Return what a gene's letter means: tiles over Y and X are rows and columns of the output."""
    if kind == "GEMM":
        return AS_PRODUCT.get(letter, letter)
    return f"{letter}'" if letter in ("Y", "X") else letter
