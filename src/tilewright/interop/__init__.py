"""Foreign formats: files of ONNX, PyTorch, Timeloop, ZigZag, AccelForge, MAESTRO, GAMMA and SCALE-Sim; mapped nests."""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.interop.cases import Case, case_lines, case_result, parse_case
    from tilewright.interop.formats import FORMATS, Foreign, ForeignText, Format, format_of
    from tilewright.interop.maestro import dump_gamma, dump_maestro, load_maestro
    from tilewright.interop.notes import Note, Notes, refuse_notes
    from tilewright.interop.onnx import load_onnx
    from tilewright.interop.pytorch import TorchNetwork, load_exported, load_given, load_huggingface, load_torch
    from tilewright.interop.scalesim import ScaleSimConfig, read_config
    from tilewright.interop.signs import Part
    from tilewright.interop.timeloop import dump_program, dump_timeloop, load_timeloop

__all__ = [
    "FORMATS",
    "Case",
    "Foreign",
    "ForeignText",
    "Format",
    "Note",
    "Notes",
    "Part",
    "ScaleSimConfig",
    "TorchNetwork",
    "case_lines",
    "case_result",
    "dump_gamma",
    "dump_maestro",
    "dump_program",
    "dump_timeloop",
    "format_of",
    "load_exported",
    "load_given",
    "load_huggingface",
    "load_maestro",
    "load_onnx",
    "load_timeloop",
    "load_torch",
    "parse_case",
    "read_config",
    "refuse_notes",
]

__getattr__ = late_names(__name__)
