"""The oracle: walks the loop nest literally, by our rules or by another tool's; shares no code with the fast model."""

from tilewright.base import offered
from tilewright.cost.records import KINDS as KINDS
from tilewright.cost.reference.conventions import ASSUMPTIONS as ASSUMPTIONS
from tilewright.cost.reference.conventions import CONVENTIONS as CONVENTIONS
from tilewright.cost.reference.conventions import MAESTRO as MAESTRO
from tilewright.cost.reference.conventions import MAESTRO_SOURCES as MAESTRO_SOURCES
from tilewright.cost.reference.conventions import TILEWRIGHT as TILEWRIGHT
from tilewright.cost.reference.conventions import TIMELOOP as TIMELOOP
from tilewright.cost.reference.conventions import Conventions as Conventions
from tilewright.cost.reference.fused import walk_fused as walk_fused
from tilewright.cost.reference.parting import Parting as Parting
from tilewright.cost.reference.parting import partings as partings
from tilewright.cost.reference.proof_space import EQUAL as EQUAL
from tilewright.cost.reference.proof_space import GivenUp as GivenUp
from tilewright.cost.reference.proof_space import ProofSpace as ProofSpace
from tilewright.cost.reference.proofs import Verdict as Verdict
from tilewright.cost.reference.proofs import check_claim as check_claim
from tilewright.cost.reference.replay import Replay as Replay
from tilewright.cost.reference.replay import ReplayedCount as ReplayedCount
from tilewright.cost.reference.replay import replay as replay
from tilewright.cost.reference.replay import replay_size as replay_size
from tilewright.cost.reference.sparse import SparseNest as SparseNest
from tilewright.cost.reference.sparse import SparseWalk as SparseWalk
from tilewright.cost.reference.sparse import run_length_words as run_length_words
from tilewright.cost.reference.walker import TOUCH_BUDGET as TOUCH_BUDGET
from tilewright.cost.reference.walker import walk as walk

__all__ = list(offered(__name__))
