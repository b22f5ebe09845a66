"""Results and everything needed to repeat them: records, their JSON, and the database of runs.

Only the records load at once; the rest, and the libraries behind it, when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tilewright.store.record import (
    SCHEMA_VERSION,
    AcceleratorRecord,
    AnswerRecord,
    BoundsRecord,
    CostRecord,
    CountRecord,
    FrontPointRecord,
    FrontRecord,
    LayerRecord,
    LevelRecord,
    MappingRecord,
    NestRow,
    NetworkRecord,
    OperatorRecord,
    PaddingRecord,
    RequestRecord,
    RooflineRecord,
    RoomRecord,
    RunRecord,
    SearchRecord,
    SoftwareRecord,
    StartRecord,
    TensorRecord,
    TileRecord,
    TotalsRecord,
    TrafficRecord,
    VectorRecord,
)

if TYPE_CHECKING:
    from tilewright.store.build import (
        accelerator_of,
        accelerator_record,
        bounds_record,
        cost_record,
        fingerprint,
        headline_of,
        mapping_of,
        model_sources,
        network_record,
        new_run_id,
        not_modelled,
        operator_fingerprint,
        operator_of,
        operator_record,
        padded_record,
        roofline_record,
        software_record,
        timestamp,
        totals_of,
        vector_records,
    )
    from tilewright.store.codec import read_run, record_to_json, run_from_json, write_run
    from tilewright.store.database import RunSummary, Store
    from tilewright.store.library import Entry, Library, Provenance, Shelf, entry, problem
    from tilewright.store.nest import level_records, mapping_from, mapping_record
    from tilewright.store.opening import default_path, store_url
    from tilewright.store.saving import Kept, keep, rescued

__all__ = [
    "SCHEMA_VERSION",
    "AcceleratorRecord",
    "AnswerRecord",
    "BoundsRecord",
    "CostRecord",
    "CountRecord",
    "Entry",
    "FrontPointRecord",
    "FrontRecord",
    "Kept",
    "LayerRecord",
    "LevelRecord",
    "Library",
    "MappingRecord",
    "NestRow",
    "NetworkRecord",
    "OperatorRecord",
    "PaddingRecord",
    "Provenance",
    "RequestRecord",
    "RooflineRecord",
    "RoomRecord",
    "RunRecord",
    "RunSummary",
    "SearchRecord",
    "Shelf",
    "SoftwareRecord",
    "StartRecord",
    "Store",
    "TensorRecord",
    "TileRecord",
    "TotalsRecord",
    "TrafficRecord",
    "VectorRecord",
    "accelerator_of",
    "accelerator_record",
    "bounds_record",
    "cost_record",
    "default_path",
    "entry",
    "fingerprint",
    "headline_of",
    "keep",
    "level_records",
    "mapping_from",
    "mapping_of",
    "mapping_record",
    "model_sources",
    "network_record",
    "new_run_id",
    "not_modelled",
    "operator_fingerprint",
    "operator_of",
    "operator_record",
    "padded_record",
    "problem",
    "read_run",
    "record_to_json",
    "rescued",
    "roofline_record",
    "run_from_json",
    "software_record",
    "store_url",
    "timestamp",
    "totals_of",
    "vector_records",
    "write_run",
]

_LATER = {
    "build": ("accelerator_of", "accelerator_record", "bounds_record", "cost_record", "fingerprint", "headline_of",
              "mapping_of", "model_sources", "network_record", "new_run_id", "not_modelled", "operator_fingerprint",
              "operator_of", "operator_record", "padded_record", "roofline_record", "software_record", "timestamp",
              "totals_of", "vector_records"),
    "codec": ("read_run", "record_to_json", "run_from_json", "write_run"),
    "database": ("RunSummary", "Store"),
    "library": ("Entry", "Library", "Provenance", "Shelf", "entry", "problem"),
    "nest": ("level_records", "mapping_from", "mapping_record"),
    "opening": ("default_path", "store_url"),
    "saving": ("Kept", "keep", "rescued"),
}


def __getattr__(name: str) -> object:
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
