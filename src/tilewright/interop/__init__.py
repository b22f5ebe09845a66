"""Foreign formats: ONNX networks."""

from tilewright.interop.onnx import load_onnx

__all__ = ["load_onnx"]
