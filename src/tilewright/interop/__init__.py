"""Foreign formats: ONNX networks; cases of mapped loop nests as JSON lines."""

from tilewright.interop.cases import Case, case_lines, case_result, parse_case, read_cases
from tilewright.interop.onnx import load_onnx

__all__ = ["Case", "case_lines", "case_result", "load_onnx", "parse_case", "read_cases"]
