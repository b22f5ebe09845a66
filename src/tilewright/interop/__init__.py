"""Foreign formats: files of ONNX, PyTorch, Timeloop, ZigZag, AccelForge, MAESTRO, GAMMA and SCALE-Sim; mapped nests."""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.interop.cases import Case as Case
    from tilewright.interop.cases import case_lines as case_lines
    from tilewright.interop.cases import case_result as case_result
    from tilewright.interop.cases import parse_case as parse_case
    from tilewright.interop.formats import FORMATS as FORMATS
    from tilewright.interop.formats import Foreign as Foreign
    from tilewright.interop.formats import ForeignText as ForeignText
    from tilewright.interop.formats import Format as Format
    from tilewright.interop.formats import format_of as format_of
    from tilewright.interop.maestro import dump_gamma as dump_gamma
    from tilewright.interop.maestro import dump_maestro as dump_maestro
    from tilewright.interop.maestro import load_maestro as load_maestro
    from tilewright.interop.notes import Note as Note
    from tilewright.interop.notes import Notes as Notes
    from tilewright.interop.notes import refuse_notes as refuse_notes
    from tilewright.interop.onnx import load_onnx as load_onnx
    from tilewright.interop.pytorch import TorchNetwork as TorchNetwork
    from tilewright.interop.pytorch import load_exported as load_exported
    from tilewright.interop.pytorch import load_given as load_given
    from tilewright.interop.pytorch import load_huggingface as load_huggingface
    from tilewright.interop.pytorch import load_torch as load_torch
    from tilewright.interop.scalesim import ScaleSimConfig as ScaleSimConfig
    from tilewright.interop.scalesim import read_config as read_config
    from tilewright.interop.signs import Part as Part
    from tilewright.interop.timeloop import dump_program as dump_program
    from tilewright.interop.timeloop import dump_timeloop as dump_timeloop
    from tilewright.interop.timeloop import load_timeloop as load_timeloop

__getattr__, __all__ = late_names(__name__)
