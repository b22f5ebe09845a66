"""Schema 1: runs and their layers, as first released. Its tables are as declared: no later schema has changed them."""

from alembic import op

from tilewright.store.tables import LAYERS, META, RUNS

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create the tables of an empty database."""
    for table in (META, RUNS, LAYERS):
        table.create(op.get_bind())
