"""The tables of the store, as they are at the present schema (`migrations` says how older ones are lifted to it)."""

import sqlalchemy as sa

SCHEMA = 3
"""Number of the present schema."""

METADATA = sa.MetaData()
META = sa.Table("tilewright_meta", METADATA, sa.Column("key", sa.String(32), primary_key=True),
                 sa.Column("value", sa.String(64), nullable=False))
RUNS = sa.Table(
    "runs", METADATA,
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
    sa.Column("latency_cycles", sa.BigInteger, nullable=False),
    sa.Column("energy_pj", sa.Float, nullable=False),
    sa.Column("edp", sa.Float, nullable=False),
    sa.Column("macs", sa.BigInteger, nullable=False),
    sa.Column("utilisation", sa.Float, nullable=False),
    sa.Column("area_um2", sa.Float, nullable=False),
    sa.Column("search_seconds", sa.Float, nullable=False),
    sa.Column("samples", sa.BigInteger, nullable=False),
    sa.Column("record", sa.Text, nullable=False),
)
LAYERS = sa.Table(
    "layers", METADATA,
    sa.Column("run_id", sa.String(64), sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("shape", sa.Text, nullable=False),
    sa.Column("operator_sha256", sa.String(64), nullable=False, index=True),
    sa.Column("macs", sa.BigInteger, nullable=False),
    sa.Column("latency_cycles", sa.BigInteger),
    sa.Column("energy_pj", sa.Float),
    sa.Column("edp", sa.Float),
    sa.Column("utilisation", sa.Float),
    sa.Column("bottleneck", sa.Text),
    sa.Column("bound_latency_cycles", sa.BigInteger),
    sa.Column("bound_energy_pj", sa.Float),
    sa.Column("score", sa.Float),
    sa.Column("samples", sa.BigInteger),
    sa.Column("legal_samples", sa.BigInteger),
    sa.Column("seconds", sa.Float),
    sa.Column("seed", sa.Text),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("record", sa.Text, nullable=False),
)
LIBRARY = sa.Table(
    "library", METADATA,
    # What a best mapping is the best of; one entry each.
    sa.Column("operator_sha256", sa.String(64), primary_key=True),
    sa.Column("accelerator_sha256", sa.String(64), primary_key=True),
    sa.Column("objective", sa.Text, primary_key=True),
    sa.Column("space_sha256", sa.String(64), primary_key=True),
    sa.Column("model", sa.String(64), primary_key=True),
    # What it is looked up by.
    sa.Column("form", sa.Text, nullable=False),
    sa.Column("structure", sa.Text, nullable=False),
    sa.Column("dimensions", sa.Text, nullable=False),
    # What it is.
    sa.Column("score", sa.Float, nullable=False),
    sa.Column("latency_cycles", sa.BigInteger, nullable=False),
    sa.Column("energy_pj", sa.Float, nullable=False),
    sa.Column("mapping", sa.Text, nullable=False),
    # Where it comes from.
    sa.Column("layer", sa.Text, nullable=False),
    sa.Column("network", sa.Text, nullable=False),
    sa.Column("accelerator", sa.Text, nullable=False),
    sa.Column("run_id", sa.String(64), nullable=False),
    sa.Column("mapper", sa.Text, nullable=False),
    sa.Column("seed", sa.Text, nullable=False),
    sa.Column("samples", sa.BigInteger, nullable=False),
    sa.Column("found", sa.String(40), nullable=False, index=True),
    sa.Column("tilewright_version", sa.String(32), nullable=False),
    sa.Index("ix_library_form_structure", "form", "structure"),
)
RESULTS = sa.Table(
    "results", METADATA,
    sa.Column("key", sa.String(24), primary_key=True),
    sa.Column("sources", sa.String(64), primary_key=True),
    sa.Column("study", sa.Text, nullable=False, index=True),
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("computed", sa.String(40), nullable=False),
)
