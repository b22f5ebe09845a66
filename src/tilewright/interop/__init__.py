"""Foreign formats: ONNX networks, Timeloop's YAML, cases of mapped loop nests as JSON lines."""

from tilewright.interop.cases import Case, case_lines, case_result, parse_case, read_cases
from tilewright.interop.onnx import load_onnx
from tilewright.interop.timeloop import (
    Note,
    TimeloopDesign,
    TimeloopText,
    dump_problem,
    dump_timeloop,
    load_timeloop,
    refuse_notes,
)

__all__ = [
    "Case",
    "Note",
    "TimeloopDesign",
    "TimeloopText",
    "case_lines",
    "case_result",
    "dump_problem",
    "dump_timeloop",
    "load_onnx",
    "load_timeloop",
    "parse_case",
    "read_cases",
    "refuse_notes",
]
