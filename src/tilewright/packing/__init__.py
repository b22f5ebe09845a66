"""Which address? Buffers that live for a while, placed so that none share an address at one time."""

import tilewright.packing.methods  # noqa: F401  (they register themselves)
from tilewright.packing.buffers import Buffers, Packing, buffers_csv, read_buffers, verify_packing
from tilewright.packing.session import PACKERS, Packer, PackingSession, pack

__all__ = ["PACKERS", "Buffers", "Packer", "Packing", "PackingSession", "buffers_csv", "pack", "read_buffers",
           "verify_packing"]
