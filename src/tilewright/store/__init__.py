"""Results and everything needed to repeat them: records, their JSON, the database of runs, mappings and jobs.

All of it, and the libraries behind it, loads when first used.
"""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.store.build import accelerator_of as accelerator_of
    from tilewright.store.build import cost_record as cost_record
    from tilewright.store.build import coverage_record as coverage_record
    from tilewright.store.build import layer_record as layer_record
    from tilewright.store.build import mapping_of as mapping_of
    from tilewright.store.build import new_run as new_run
    from tilewright.store.build import new_run_id as new_run_id
    from tilewright.store.build import operator_fingerprint as operator_fingerprint
    from tilewright.store.build import operator_of as operator_of
    from tilewright.store.build import tokens_record as tokens_record
    from tilewright.store.build import vector_records as vector_records
    from tilewright.store.codec import fingerprint as fingerprint
    from tilewright.store.codec import read_run as read_run
    from tilewright.store.codec import record_to_json as record_to_json
    from tilewright.store.codec import run_from_json as run_from_json
    from tilewright.store.codec import write_run as write_run
    from tilewright.store.database import Kept as Kept
    from tilewright.store.database import Store as Store
    from tilewright.store.database import keep as keep
    from tilewright.store.database import rescued as rescued
    from tilewright.store.diagnosis import diagnosed as diagnosed
    from tilewright.store.layer_records import BoundsRecord as BoundsRecord
    from tilewright.store.layer_records import CostRecord as CostRecord
    from tilewright.store.layer_records import CountRecord as CountRecord
    from tilewright.store.layer_records import DiagnosisRecord as DiagnosisRecord
    from tilewright.store.layer_records import LevelRecord as LevelRecord
    from tilewright.store.layer_records import MappingRecord as MappingRecord
    from tilewright.store.layer_records import RooflineRecord as RooflineRecord
    from tilewright.store.layer_records import TrafficRecord as TrafficRecord
    from tilewright.store.layer_records import level_records as level_records
    from tilewright.store.layer_records import mapping_from as mapping_from
    from tilewright.store.library import Library as Library
    from tilewright.store.library import Provenance as Provenance
    from tilewright.store.library import RunLibrary as RunLibrary
    from tilewright.store.library import entry as entry
    from tilewright.store.library import machine_fingerprint as machine_fingerprint
    from tilewright.store.library import problem as problem
    from tilewright.store.opening import default_path as default_path
    from tilewright.store.opening import store_url as store_url
    from tilewright.store.record import SCHEMA_VERSION as SCHEMA_VERSION
    from tilewright.store.record import AcceleratorRecord as AcceleratorRecord
    from tilewright.store.record import AnswerRecord as AnswerRecord
    from tilewright.store.record import CoverageRecord as CoverageRecord
    from tilewright.store.record import FrontPointRecord as FrontPointRecord
    from tilewright.store.record import FrontRecord as FrontRecord
    from tilewright.store.record import LayerRecord as LayerRecord
    from tilewright.store.record import NetworkFrontRecord as NetworkFrontRecord
    from tilewright.store.record import NetworkPointRecord as NetworkPointRecord
    from tilewright.store.record import NetworkRecord as NetworkRecord
    from tilewright.store.record import OperatorRecord as OperatorRecord
    from tilewright.store.record import PaddingRecord as PaddingRecord
    from tilewright.store.record import RequestRecord as RequestRecord
    from tilewright.store.record import RunRecord as RunRecord
    from tilewright.store.record import SearchRecord as SearchRecord
    from tilewright.store.record import SoftwareRecord as SoftwareRecord
    from tilewright.store.record import StartRecord as StartRecord
    from tilewright.store.record import TensorRecord as TensorRecord
    from tilewright.store.record import TokensRecord as TokensRecord
    from tilewright.store.record import TotalsRecord as TotalsRecord
    from tilewright.store.record import VectorRecord as VectorRecord
    from tilewright.store.results import Results as Results
    from tilewright.store.results import kept_in as kept_in
    from tilewright.store.results import results_in as results_in
    from tilewright.store.tables import Entry as Entry
    from tilewright.store.tables import RunSummary as RunSummary

__getattr__, __all__ = late_names(__name__)
