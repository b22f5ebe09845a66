"""Results and everything needed to repeat them: records, their JSON, the database of runs, mappings and jobs.

All of it, and the libraries behind it, loads when first used.
"""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.store.build import (
        accelerator_of,
        cost_record,
        coverage_record,
        layer_record,
        mapping_of,
        model_sources,
        new_run,
        new_run_id,
        operator_fingerprint,
        operator_of,
        tokens_record,
        vector_records,
    )
    from tilewright.store.codec import fingerprint, read_run, record_to_json, run_from_json, write_run
    from tilewright.store.cost_records import (
        BoundsRecord,
        CostRecord,
        CountRecord,
        DiagnosisRecord,
        ReliefRecord,
        RooflineRecord,
        TrafficRecord,
    )
    from tilewright.store.database import Store
    from tilewright.store.diagnosis import diagnosed
    from tilewright.store.library import Library, Provenance, Shelf, entry, machine_fingerprint, problem
    from tilewright.store.mapping_record import LevelRecord, MappingRecord, NestRowRecord, RoomRecord, TileRecord
    from tilewright.store.nest import level_records, mapping_from
    from tilewright.store.opening import default_path, store_url
    from tilewright.store.record import (
        SCHEMA_VERSION,
        AcceleratorRecord,
        AnswerRecord,
        CoverageRecord,
        FrontPointRecord,
        FrontRecord,
        LayerRecord,
        NetworkFrontRecord,
        NetworkPointRecord,
        NetworkRecord,
        OperatorRecord,
        PaddingRecord,
        RequestRecord,
        RunRecord,
        SearchRecord,
        SoftwareRecord,
        StartRecord,
        TensorRecord,
        TokensRecord,
        TotalsRecord,
        VectorRecord,
    )
    from tilewright.store.results import Results, kept_in, results_in
    from tilewright.store.saving import Kept, keep, rescued
    from tilewright.store.tables import Entry, RunSummary

__all__ = [
    "SCHEMA_VERSION",
    "AcceleratorRecord",
    "AnswerRecord",
    "BoundsRecord",
    "CostRecord",
    "CountRecord",
    "CoverageRecord",
    "DiagnosisRecord",
    "Entry",
    "FrontPointRecord",
    "FrontRecord",
    "Kept",
    "LayerRecord",
    "LevelRecord",
    "Library",
    "MappingRecord",
    "NestRowRecord",
    "NetworkFrontRecord",
    "NetworkPointRecord",
    "NetworkRecord",
    "OperatorRecord",
    "PaddingRecord",
    "Provenance",
    "ReliefRecord",
    "RequestRecord",
    "Results",
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
    "TokensRecord",
    "TotalsRecord",
    "TrafficRecord",
    "VectorRecord",
    "accelerator_of",
    "cost_record",
    "coverage_record",
    "default_path",
    "diagnosed",
    "entry",
    "fingerprint",
    "keep",
    "kept_in",
    "layer_record",
    "level_records",
    "machine_fingerprint",
    "mapping_from",
    "mapping_of",
    "model_sources",
    "new_run",
    "new_run_id",
    "operator_fingerprint",
    "operator_of",
    "problem",
    "read_run",
    "record_to_json",
    "rescued",
    "results_in",
    "run_from_json",
    "store_url",
    "tokens_record",
    "vector_records",
    "write_run",
]

__getattr__ = late_names(__name__)
