"""Schema 3: values of jobs. Its tables are as declared: no later schema has changed them."""

from alembic import op

from tilewright.store.tables import RESULTS

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Create the table of results; all else stays as it is."""
    RESULTS.create(op.get_bind())
