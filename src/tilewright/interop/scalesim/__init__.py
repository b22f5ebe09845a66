"""SCALE-Sim's configurations (``.cfg``) and topologies (``.csv``), versions 1 to 3, both ways; no tool is needed."""

from tilewright.interop.scalesim.config import ScaleSimConfig, read_config
from tilewright.interop.scalesim.design import read_scalesim
from tilewright.interop.scalesim.writing import dump_scalesim

__all__ = ["ScaleSimConfig", "dump_scalesim", "read_config", "read_scalesim"]
