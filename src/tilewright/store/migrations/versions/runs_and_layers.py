"""Schema 1: runs and their layers, as first released."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create the tables of an empty database."""
    op.create_table(
        "tilewright_meta", sa.Column("key", sa.String(32), primary_key=True),
        sa.Column("value", sa.String(64), nullable=False))
    op.create_table(
        "runs",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("created", sa.String(40), nullable=False, index=True),
        sa.Column("tilewright_version", sa.String(32), nullable=False),
        sa.Column("network", sa.Text, nullable=False, index=True),
        sa.Column("network_sha256", sa.String(64), nullable=False),
        sa.Column("accelerator", sa.Text, nullable=False, index=True),
        sa.Column("accelerator_sha256", sa.String(64), nullable=False),
        sa.Column("objective", sa.Text, nullable=False),
        sa.Column("mapper", sa.Text, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("budget_samples", sa.BigInteger),
        sa.Column("budget_seconds", sa.Float),
        sa.Column("layers", sa.Integer, nullable=False),
        sa.Column("unmapped_layers", sa.Integer, nullable=False),
        *(sa.Column(name, kind, nullable=False) for name, kind in (
            ("latency_cycles", sa.BigInteger), ("energy_pj", sa.Float), ("edp", sa.Float), ("macs", sa.BigInteger),
            ("utilisation", sa.Float), ("area_um2", sa.Float), ("search_seconds", sa.Float),
            ("samples", sa.BigInteger), ("record", sa.Text))),
    )
    op.create_table(
        "layers",
        sa.Column("run_id", sa.String(64), sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("shape", sa.Text, nullable=False),
        sa.Column("operator_sha256", sa.String(64), nullable=False, index=True),
        sa.Column("macs", sa.BigInteger, nullable=False),
        *(sa.Column(name, kind) for name, kind in (
            ("latency_cycles", sa.BigInteger), ("energy_pj", sa.Float), ("edp", sa.Float), ("utilisation", sa.Float),
            ("bottleneck", sa.Text), ("bound_latency_cycles", sa.BigInteger), ("bound_energy_pj", sa.Float),
            ("score", sa.Float), ("samples", sa.BigInteger), ("legal_samples", sa.BigInteger), ("seconds", sa.Float),
            ("seed", sa.Text))),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("record", sa.Text, nullable=False),
    )
