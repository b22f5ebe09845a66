"""MAESTRO's description of networks: layers with type, strides, dimensions and dataflow, as they are written."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.interop.maestro.source import Reader

TYPES = {
    "CONV": ("N", "G", "K", "C", "R", "S", "Y", "X"), "DSCONV": ("N", "K", "C", "R", "S", "Y", "X"),
    "TRCONV": ("N", "K", "C", "R", "S", "Y", "X"), "NGCONV": ("N", "G", "K", "C", "R", "S", "Y", "X"),
    "GEMM": ("M", "N", "K"), "BMM": ("B", "M", "N", "K"),
}
"""The types of layers that are read, and their dimensions."""
OPTIONAL = ("N", "G")
"""Dimensions of convolutions that are 1 where they are not given."""
OUTPUT_OF = {"Y'": "Y", "X'": "X"}
"""Rows and columns of the output, and the dimensions of the input that they stand for."""
_FIELDS = ("Type", "Stride", "Dimensions", "Dataflow")
_KINDS = {"TemporalMap": False, "SpatialMap": True}


@dataclass(frozen=True)
class MappingDirective:
    """``TemporalMap(size, offset) dimension`` or ``SpatialMap(size, offset) dimension``."""

    line: int
    spatial: bool
    size: int
    offset: int
    dimension: str


@dataclass(frozen=True)
class Stage:
    """The directives of one cluster level, in order; ``cluster`` is the size of its clusters.

    The outermost stage has none: it has as many clusters as the machine has room for.
    """

    line: int
    cluster: int | None
    directives: tuple[MappingDirective, ...]


@dataclass(frozen=True)
class LayerText:
    """A layer as the file states it. ``dataflow`` is None where neither it nor a layer before it has one.

    ``stated`` says whether the dataflow is its own; ``lines`` are those of its parts. ``genome_label`` is the file that
    its dataflow comes from where that is another one.
    """

    label: str
    name: str
    line: int
    type: str
    strides: dict[str, int]
    sizes: dict[str, int]
    dataflow: tuple[Stage, ...] | None
    stated: bool = True
    lines: dict[str, int] = field(default_factory=dict, compare=False)
    genome_label: str = ""

    def where(self, part: str = "") -> str:
        """Return ``file:line layer name`` of the layer or one of its parts."""
        label = self.flow_label if part == "Dataflow" else self.label
        return f"{label}:{self.lines.get(part, self.line)} {self.name}{'.' + part if part else ''}"

    @property
    def flow_label(self) -> str:
        """The file that the dataflow stands in."""
        return self.genome_label or self.label


@dataclass(frozen=True)
class NetworkText:
    """A network as it is written; ``accelerator_lines`` are those of Accelerator blocks, which are passed over."""

    name: str
    layers: tuple[LayerText, ...]
    accelerator_lines: tuple[int, ...] = ()


def parse_network(label: str, text: str) -> NetworkText:
    """Return the network in a text; ``label`` (a file's name) opens the messages of errors.

    A layer without ``Dataflow`` follows that of the layer before it, sizes as they came out there, as in MAESTRO; one
    with an empty ``Dataflow {}`` follows none.

    Raises an `InputError` with file and line, where the text is not such a description.
    """
    reader = Reader(label, text)
    name, layers, skipped, found = "", list[LayerText](), list[int](), False
    while reader.next is not None:
        token = reader.word("Network, Constant or Accelerator")
        if token.text == "Constant":
            constant = reader.word("a name")
            reader.skip(":", "=")
            reader.constants[constant.text] = reader.whole(f"the constant {constant.text}")
            reader.skip(";")
        elif token.text == "Accelerator":
            skipped.append(token.line)
            reader.skip_block()
        elif token.text == "Network":
            if found:
                raise reader.fail("must be the only Network of the file", line=token.line)
            name, found = reader.name_before_brace("a network's name"), True
            layers = _layers(reader)
        else:
            raise reader.fail("must be Network, Constant or Accelerator", token.text, line=token.line)
    if not found:
        raise reader.fail("must hold a Network", "none", line=1)
    if not layers:
        raise reader.fail("must have at least one Layer", "none")
    return NetworkText(name or "network", tuple(layers), tuple(skipped))


def _layers(reader: Reader) -> list[LayerText]:
    layers: list[LayerText] = []
    while not reader.closes():
        token = reader.word("Layer or a closing brace")
        if token.text != "Layer":
            raise reader.fail("must be Layer or a closing brace", token.text, line=token.line)
        layers.append(_layer(reader, token.line, layers[-1].dataflow if layers else None))
    return layers


def _layer(reader: Reader, line: int, before: tuple[Stage, ...] | None) -> LayerText:
    """Read what follows the word Layer."""
    name = reader.name_before_brace("a layer's name") or "Layer"
    kind, strides, sizes, dataflow, lines = "", dict[str, int](), dict[str, int](), before, dict[str, int]()
    while not reader.closes():
        token = reader.word(f"one of {', '.join(_FIELDS)} or a closing brace")
        if token.text not in _FIELDS:
            raise reader.fail(f"must be one of {', '.join(_FIELDS)}", token.text, line=token.line)
        if token.text in lines:
            raise reader.fail(f"{token.text} must be given once", f"{token.text} again", line=token.line)
        lines[token.text] = token.line
        reader.skip(":")
        if token.text == "Type":
            kind = reader.word("a type of layer").text
            if kind not in TYPES:
                raise reader.fail(f"Type must be one of {', '.join(TYPES)}", kind, line=token.line)
            reader.skip(";", ",")
        elif token.text == "Dataflow":
            dataflow = _dataflow(reader, sizes, strides)
        else:
            (strides if token.text == "Stride" else sizes).update(_sizes(reader, token.text))
    layer = LayerText(reader.label, name, line, kind, strides, sizes, dataflow or None, "Dataflow" in lines, lines)
    _check(reader, layer)
    return layer


def _sizes(reader: Reader, what: str) -> dict[str, int]:
    """Read ``{ K: 64, C: 3 }``; colons, commas and semicolons may be left out."""
    reader.expect("{", f"after {what}")
    found: dict[str, int] = {}
    while not reader.closes():
        name = reader.word("a dimension or a closing brace")
        reader.skip(":")
        size = reader.whole(f"{what} of {name.text}")
        if found.get(name.text, size) != size:
            raise reader.fail(f"{what} of {name.text} must be given once", size, line=name.line)
        found[name.text] = size
        reader.skip(",", ";")
    return found


def _check(reader: Reader, layer: LayerText) -> None:
    """Refuse layers without a type or dimensions, or with those of another type."""
    if not layer.type:
        raise reader.fail(f"{layer.name} must have a Type", None, f"One of {', '.join(TYPES)}", line=layer.line)
    if not layer.sizes:
        raise reader.fail(f"{layer.name} must have Dimensions", line=layer.line)
    known = TYPES[layer.type]
    for part, given in (("Dimensions", layer.sizes), ("Stride", layer.strides)):
        for name in given:
            if name not in known:
                raise reader.fail(f"{part} of a {layer.type} layer must be of {', '.join(known)}", name,
                                  line=layer.lines[part])
    _check_directives(reader, layer, (*known, *OUTPUT_OF) if "Y" in known else known)
    optional = (*OPTIONAL, "K") if layer.type == "DSCONV" else OPTIONAL if "Y" in known else ()
    missing = [name for name in known if name not in layer.sizes and name not in optional]
    if missing:
        raise reader.fail(f"Dimensions of a {layer.type} layer must give {', '.join(missing)}", ", ".join(layer.sizes),
                          line=layer.lines["Dimensions"])
    for name in layer.strides:
        if name not in ("Y", "X"):
            raise reader.fail("Stride must be of Y and X", name, line=layer.lines["Stride"])


def _check_directives(reader: Reader, layer: LayerText, known: tuple[str, ...]) -> None:
    """Refuse directives over other dimensions."""
    for directive in (one for stage in layer.dataflow or () for one in stage.directives):
        if layer.stated and directive.dimension not in known:
            raise reader.fail(f"directives of a {layer.type} layer must be of {', '.join(known)}",
                              directive.dimension, line=directive.line)


def _dataflow(reader: Reader, sizes: dict[str, int], strides: dict[str, int]) -> tuple[Stage, ...]:
    """Read the directives in braces, one stage for each level of clusters."""

    def size_of(name: str, line: int) -> int:
        if name in OUTPUT_OF and OUTPUT_OF[name] in sizes:
            inner, kernel = OUTPUT_OF[name], {"Y'": "R", "X'": "S"}[name]
            return max(1, (sizes[inner] - sizes.get(kernel, 1)) // strides.get(inner, 1) + 1)
        if name not in sizes:
            raise reader.fail("Sz must be of a dimension given before the Dataflow", name, line=line)
        return sizes[name]

    stages: list[Stage] = []
    line, cluster, directives = reader.line, None, list[MappingDirective]()
    reader.expect("{", "after Dataflow")
    while not reader.closes():
        token = reader.word("TemporalMap, SpatialMap, Cluster or a closing brace")
        if token.text == "Cluster":
            stages.append(Stage(line, cluster, tuple(directives)))
            line, directives = token.line, []
            cluster = _cluster(reader, size_of)
        elif token.text in _KINDS:
            reader.expect("(", f"after {token.text}")
            size = reader.whole(f"the size of a {token.text}", size_of)
            reader.expect(",", "between size and offset")
            offset = reader.whole(f"the offset of a {token.text}", size_of)
            reader.expect(")", "after the offset")
            dimension = reader.word("a dimension").text
            directives.append(MappingDirective(token.line, _KINDS[token.text], size, offset, dimension))
        else:
            raise reader.fail("must be TemporalMap, SpatialMap or Cluster", token.text, line=token.line)
        reader.skip(";", ",")
    if cluster is not None and not directives:
        raise reader.fail("must have directives after the last Cluster", "none", line=line)
    if not directives:
        return ()
    return (*stages, Stage(line, cluster, tuple(directives)))


def _cluster(reader: Reader, size_of: Callable[[str, int], int]) -> int:
    reader.expect("(", "after Cluster")
    size = reader.whole("the size of a Cluster", size_of)
    if reader.skip(","):
        kind = reader.word("P or L")
        if kind.text not in ("P", "L"):
            raise reader.fail("a Cluster must be of kind P (physical) or L (logical)", kind.text, line=kind.line)
    reader.expect(")", "after the Cluster")
    return size
