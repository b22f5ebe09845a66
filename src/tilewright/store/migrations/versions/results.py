"""Schema 3: values of jobs."""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Create the table of results; all else stays as it is."""
    op.create_table(
        "results", sa.Column("key", sa.String(24), primary_key=True), sa.Column("sources", sa.String(64),
                                                                               primary_key=True),
        sa.Column("study", sa.Text, nullable=False, index=True),
        *(sa.Column(name, kind, nullable=False) for name, kind in (
            ("job", sa.Text), ("value", sa.Text), ("computed", sa.String(40)))))
