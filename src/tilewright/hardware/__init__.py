"""What it runs on: memories, fan-outs, technology, the zoo of accelerators."""

from tilewright.hardware.accelerator import AccessEnergy, Accelerator, Bandwidth, Buffering, Compute, Fanout, Memory

__all__ = ["AccessEnergy", "Accelerator", "Bandwidth", "Buffering", "Compute", "Fanout", "Memory"]
