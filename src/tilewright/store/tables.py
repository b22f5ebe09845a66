"""The tables of the store, as they are at the present schema (`migrations` says how older ones are lifted to it)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

import sqlalchemy as sa

from tilewright.mapping import Mapping
from tilewright.store.codec import fingerprint
from tilewright.store.layer_records import LevelRecord, mapping_from

SCHEMA = 3
"""Number of the present schema."""
KEY = ("operator_sha256", "accelerator_sha256", "objective", "space_sha256", "model")
"""What a best mapping is the best of: the library has one entry each."""


@dataclass(frozen=True)
class RunSummary:
    """The columns of a stored run that can be asked for without reading it whole."""

    id: str
    created: str
    tilewright_version: str
    network: str
    network_sha256: str
    accelerator: str
    accelerator_sha256: str
    objective: str
    mapper: str
    seed: int
    budget_samples: int | None
    budget_seconds: float | None
    layers: int
    unmapped_layers: int
    latency_cycles: int
    energy_pj: float
    edp: float
    macs: int
    utilisation: float
    area_um2: float
    search_seconds: float
    samples: int


@dataclass(frozen=True)
class Entry:
    """A best mapping: what it is the best of, what it is, and where it comes from."""

    operator_sha256: str
    accelerator_sha256: str
    objective: str
    space_sha256: str
    model: str
    """``operator_sha256``, ``accelerator_sha256``, ``objective``, ``space_sha256`` and ``model``: what it is the best
    of: all that decides the cost of operator and machine, the objective with its constraints, which mappings were to
    choose from, and what scored them. No two entries agree in all five."""
    form: str
    structure: str
    dimensions: str
    """``form``, ``structure`` and ``dimensions``: what it is looked up by: the `form` of the operator, the machine's
    levels, the sizes."""
    score: float
    latency_cycles: int
    energy_pj: float
    mapping: str
    """JSON of its levels, each a list of the fields of a `LevelRecord`."""
    layer: str
    network: str
    accelerator: str
    run_id: str
    mapper: str
    seed: str
    samples: int
    found: str
    tilewright_version: str
    """``layer``, ``network``, ``accelerator``, ``run_id``, ``mapper``, ``seed``, ``samples``, ``found`` and
    ``tilewright_version``: the search that found it first."""

    @cached_property
    def id(self) -> str:
        """A short name of what the mapping is the best of."""
        return fingerprint(*(getattr(self, name) for name in KEY))[:12]

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Size of each dimension."""
        return {str(name): int(size) for name, size in json.loads(self.dimensions)}

    def loops(self) -> Mapping:
        """Return the mapping itself."""
        return mapping_from(LevelRecord(*level) for level in json.loads(self.mapping))


_LENGTHS = {"id": 64, "run_id": 64, "model": 64, "created": 40, "found": 40, "tilewright_version": 32}
_COUNTS = ("layers", "unmapped_layers")


def _columns(row: type, key: tuple[str, ...], indexed: tuple[str, ...]) -> Iterator[sa.Column[Any]]:
    """Yield the columns of a table whose rows are read into a dataclass, one for each field."""
    for one in fields(row):
        kinds = get_args(one.type) or (one.type,)
        length = 64 if one.name.endswith("_sha256") else _LENGTHS.get(one.name)
        kind: Any = {str: sa.String(length) if length else sa.Text(), float: sa.Float(),
                int: sa.Integer() if one.name in _COUNTS else sa.BigInteger()}[kinds[0]]
        yield sa.Column(one.name, kind, primary_key=one.name in key, index=one.name in indexed or None,
                        nullable=type(None) in kinds)


METADATA = sa.MetaData()
META = sa.Table("tilewright_meta", METADATA, sa.Column("key", sa.String(32), primary_key=True),
                 sa.Column("value", sa.String(64), nullable=False))
RUNS = sa.Table("runs", METADATA, *_columns(RunSummary, ("id",), ("created", "network", "accelerator")),
                sa.Column("record", sa.Text, nullable=False))
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
LIBRARY = sa.Table("library", METADATA, *_columns(Entry, KEY, ("found",)),
                   sa.Index("ix_library_form_structure", "form", "structure"))
RESULTS = sa.Table(
    "results", METADATA,
    sa.Column("key", sa.String(24), primary_key=True),
    sa.Column("sources", sa.String(64), primary_key=True),
    sa.Column("study", sa.Text, nullable=False, index=True),
    sa.Column("job", sa.Text, nullable=False),
    sa.Column("value", sa.Text, nullable=False),
    sa.Column("computed", sa.String(40), nullable=False),
)
