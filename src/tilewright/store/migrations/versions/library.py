"""Schema 2: the library of best mappings."""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Create the library's table; runs stay as they are."""
    op.create_table(
        "library",
        *(sa.Column(name, kind, primary_key=True) for name, kind in (
            ("operator_sha256", sa.String(64)), ("accelerator_sha256", sa.String(64)), ("objective", sa.Text),
            ("space_sha256", sa.String(64)), ("model", sa.String(64)))),
        *(sa.Column(name, kind, nullable=False) for name, kind in (
            ("form", sa.Text), ("structure", sa.Text), ("dimensions", sa.Text), ("score", sa.Float),
            ("latency_cycles", sa.BigInteger), ("energy_pj", sa.Float), ("mapping", sa.Text), ("layer", sa.Text),
            ("network", sa.Text), ("accelerator", sa.Text), ("run_id", sa.String(64)), ("mapper", sa.Text),
            ("seed", sa.Text), ("samples", sa.BigInteger))),
        sa.Column("found", sa.String(40), nullable=False, index=True),
        sa.Column("tilewright_version", sa.String(32), nullable=False),
    )
    op.create_index("ix_library_form_structure", "library", ["form", "structure"])
