"""Which address? Buffers that live for a while, placed so that none share an address at one time."""

from tilewright.packing import constraint, exact, heuristics  # noqa: F401  (registers)
from tilewright.packing.buffers import Buffers, Packing, verify_packing
from tilewright.packing.files import buffers_csv, read_buffers
from tilewright.packing.session import PACKERS, Packer, PackingSession, pack

__all__ = ["PACKERS", "Buffers", "Packer", "Packing", "PackingSession", "buffers_csv", "pack", "read_buffers",
           "verify_packing"]
