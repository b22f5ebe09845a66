"""The family of foreign formats: what their files hold in our nouns, and who reads and writes them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from tilewright.base import InputError, Registry, replace_file
from tilewright.hardware import Accelerator
from tilewright.interop import signs
from tilewright.interop.notes import Note, Notes
from tilewright.interop.signs import Part
from tilewright.mapping import Constraints
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Graph, Operator, coverage


@dataclass(frozen=True)
class Foreign:
    """What files of one format hold, in our nouns; None or nothing for what they do not."""

    graph: Graph | None = None
    accelerator: Accelerator | None = None
    mappings: Mapping[str, Nest] = field(default_factory=dict)
    """By the name of the layer of ``graph`` that they map."""
    constraints: Constraints | None = None
    notes: tuple[Note, ...] = field(default=(), compare=False)
    """What could not be honoured in full, dropped or approximated, with file and line."""

    @property
    def operator(self) -> Operator | None:
        """The one layer of the network, None where there is none.

        Raises an `InputError` if there are several.
        """
        nodes = self.graph.mac_nodes if self.graph else ()
        if len(nodes) > 1:
            raise InputError("layer", "must be given, as there are several", ", ".join(n.name for n in nodes[:3]))
        return nodes[0].operator if nodes else None

    @property
    def mapping(self) -> Nest | None:
        """The mapping of the one layer, None where there is none."""
        return self.mappings.get(self.operator.name) if self.operator else None


@dataclass(frozen=True)
class ForeignText:
    """Files by name, and what they could not say."""

    files: Mapping[str, str]
    notes: tuple[Note, ...] = ()

    def write(self, folder: str | Path) -> list[Path]:
        """Write the files into a folder, which is made where it is missing; return their paths.

        Raises an `InputError` if that cannot be done.
        """
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
            paths = [place / name for name in self.files]
            for path in paths:
                replace_file(path, self.files[path.name].encode())
        except (OSError, ValueError) as error:  # ValueError: a name with a null byte
            raise InputError("--out", "must be a folder that can be written", str(folder), str(error)) from None
        return paths


@dataclass(frozen=True)
class Format:
    """A foreign format: plain functions, none of which runs code that stands in a file."""

    name: str
    summary: str
    holds: Callable[[Path], frozenset[Part]]
    """What a file seems to hold, by its name and first lines; nothing where it is not of this format. Must be quick
    and raise nothing, also where the file is missing."""
    read: Callable[[Sequence[Path], Mapping[str, int | str]], Foreign]
    """Reads files that belong together; the second argument binds sizes that they leave open, by name. Raises
    `InputError` with file and line."""
    write: Callable[[Foreign], ForeignText] | None = None
    """Writes what there is of a network, an accelerator, mappings and constraints; None where the format is only read.
    Raises `InputError` where something is missing, or the format cannot say it even roughly."""
    energise: Callable[[Accelerator, Sequence[Path]], tuple[Accelerator, tuple[Note, ...]]] | None = None
    """Gives a machine of any origin the energies that files of this format hold, with notes; None where it holds
    none."""
    together: bool = False
    """Whether what a file says of a machine needs the network, whose names it uses; then they are read together."""


FORMATS: Registry[Format] = Registry("format")
"""The formats by name; one entry below registers one."""


def _late(name: str) -> Callable[..., Any]:
    """Return a function of a module of this room that loads when it is called."""
    module, _, function = name.rpartition(".")

    def call(*given: object, **named: object) -> object:
        return getattr(import_module(f"tilewright.interop.{module}"), function)(*given, **named)

    return call


def _one(what: str, name: str) -> Callable[[Sequence[Path], Mapping[str, int | str]], Foreign]:
    """Return what reads one network file by a function that loads when it is called."""
    return lambda paths, bind: read_one(paths, what, partial(_late(name), bind=bind))


for _form in (
    Format("magma", "MAGMA's job lists (CSV: thread, layer, six sizes, type); read only", signs.holds_magma,
           _late("magma.read")),
    Format("maestro", "MAESTRO's networks with dataflows and its hardware files (.m)", signs.holds_maestro,
           _late("maestro.read"), _late("maestro.dump_maestro")),
    Format("gamma", "GAMMA's layer tables (CSV) and genomes (result_c.csv, logs of layers), with MAESTRO's hardware "
           "files", signs.holds_maestro, _late("maestro.read"), _late("maestro.dump_gamma")),
    Format("onnx", "ONNX networks (.onnx); read only", signs.holds_network(".onnx"),
           _one("ONNX file", "onnx.load_onnx")),
    Format("pytorch", "networks exported by PyTorch (.pt2 of torch.export.save); read only",
           signs.holds_network(".pt2"), _one(".pt2 file", "pytorch.load_exported")),
    Format("huggingface", "configurations of Hugging Face (config.json, or its folder); read only",
           signs.holds_configuration, _one("configuration", "pytorch.load_huggingface")),
    Format("scale-sim", "SCALE-Sim's configurations and topologies (convolutions, M N K)", signs.holds_scalesim,
           _late("scalesim.read_scalesim"), _late("scalesim.dump_scalesim")),
    Format("zigzag", "ZigZag's YAML, versions of 2024 to 2026: accelerator, workload, mapping; read only",
           signs.holds_zigzag, _late("zigzag.read"), together=True),
    Format("accelforge", "AccelForge's YAML: architecture, workload, mapping; read only", signs.holds_accelforge,
           _late("accelforge.read"), together=True),
    Format("timeloop", "Timeloop's YAML, versions 0.3 and 0.4: architecture, problem, mapping, constraints, ERT, ART",
           signs.holds_timeloop, _late("timeloop.read"), _late("timeloop.write"), _late("timeloop.energise"),
           together=True),
    Format("timeloop-model", "Timeloop's YAML as timeloop-model reads it without a front end; read as timeloop",
           lambda path: frozenset(), _late("timeloop.read"), _late("timeloop.write_program")),
):
    FORMATS.register(_form.name)(_form)


def format_of(path: str | Path, part: Part | None = None) -> Format | None:
    """Return the format of a file that holds ``part`` (anything where None), None if it is of no foreign format."""
    for name in FORMATS:
        found = FORMATS.get(name).holds(Path(path))
        if found and (part is None or part in found):
            return FORMATS.get(name)
    return None


def read_one(paths: Sequence[Path], what: str, load: Callable[[Path], Graph]) -> Foreign:
    """Read the one network file, with notes of what is approximated and what is not modelled of it.

    Raises an `InputError` if there is not one file, or as ``load``.
    """
    if len(paths) != 1:
        raise InputError("FILE", f"must be one {what}", ", ".join(map(str, paths)))
    graph = load(paths[0])
    found, notes = coverage(graph), Notes()
    for text, names in found.approximations:
        notes.approximated(_where(graph, names), f"as {text}")
    for text, names in found.unmodelled:
        notes.dropped(_where(graph, names), text)
    return Foreign(graph, notes=tuple(notes))


def _where(graph: Graph, names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{graph.source}: {', '.join(names[:3])}{more}"


def refuse_sizes(bind: Mapping[str, int | str], what: str) -> None:
    """Refuse sizes given for files that leave none open."""
    if bind:
        raise InputError("bind", f"must be left out with {what}", ", ".join(bind), "Write the sizes into it")
