"""The oracle: walks the loop nest literally, by our rules or by another tool's; shares no code with the fast model."""

from tilewright.cost.records import KINDS
from tilewright.cost.reference.conventions import (
    ASSUMPTIONS,
    CONVENTIONS,
    MAESTRO,
    MAESTRO_SOURCES,
    TILEWRIGHT,
    TIMELOOP,
    Conventions,
)
from tilewright.cost.reference.fused import walk_fused
from tilewright.cost.reference.parting import Parting, partings
from tilewright.cost.reference.proof_space import ProofSpace
from tilewright.cost.reference.proofs import EQUAL, Verdict, check_claim
from tilewright.cost.reference.replay import Replay, ReplayedCount, replay, replay_size
from tilewright.cost.reference.sparse import SparseNest, SparseWalk, run_length_words
from tilewright.cost.reference.walker import TOUCH_BUDGET, walk

__all__ = [
    "ASSUMPTIONS",
    "CONVENTIONS",
    "EQUAL",
    "KINDS",
    "MAESTRO",
    "MAESTRO_SOURCES",
    "TILEWRIGHT",
    "TIMELOOP",
    "TOUCH_BUDGET",
    "Conventions",
    "Parting",
    "ProofSpace",
    "Replay",
    "ReplayedCount",
    "SparseNest",
    "SparseWalk",
    "Verdict",
    "check_claim",
    "partings",
    "replay",
    "replay_size",
    "run_length_words",
    "walk",
    "walk_fused",
]
