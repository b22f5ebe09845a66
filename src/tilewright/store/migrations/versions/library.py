"""Schema 2: the library of best mappings. Its tables are as declared: no later schema has changed them."""

from alembic import op

from tilewright.store.tables import LIBRARY

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Create the library's table; runs stay as they are."""
    LIBRARY.create(op.get_bind())
