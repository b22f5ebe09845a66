"""What it runs on: memories, fan-outs, technology, the zoo of accelerators."""

from tilewright.hardware.accelerator import (
    MOST_INSTANCES,
    NETWORK,
    PARTIAL_SUMS,
    PORTS,
    RATE,
    Accelerator,
    AccessEnergy,
    Bandwidth,
    Buffering,
    Compute,
    Fanout,
    Footprint,
    Memory,
    Number,
    exact_rate,
    flexibility_overhead,
    room_name,
)
from tilewright.hardware.changes import changed, read_bandwidth, read_change, read_values
from tilewright.hardware.design import DesignSpace, NumberRange, check_number
from tilewright.hardware.files import dump_accelerator, load_accelerator, load_design_space
from tilewright.hardware.flexibility import (
    AXES,
    CLASSES,
    CONVOLUTION,
    Degree,
    Flexibility,
    OrderFlexibility,
    ParallelismFlexibility,
    ShapeFlexibility,
    TileFlexibility,
)
from tilewright.hardware.flexibility_costs import (
    PUBLISHED_PERCENT,
    PUBLISHED_UM2,
    T_FLEX_READ_UM2,
    FlexibilityCosts,
    FlexibilityOverhead,
)
from tilewright.hardware.numbers import AREA, LEAKAGE, completed, with_numbers
from tilewright.hardware.precision import NumberType, Precision, number_type, read_type
from tilewright.hardware.presets import find_accelerator, find_design_space, preset, preset_names
from tilewright.hardware.schema import parse_bytes
from tilewright.hardware.sparsity import RUN_BITS, Compression, Elision, Sparsity
from tilewright.hardware.sparsity import Action as SparseAction
from tilewright.hardware.sparsity import Format as SparseFormat
from tilewright.hardware.tables import build_technology, scale_technology, technology, technology_names
from tilewright.hardware.technology import Anchor, Curve, Storage, Technology
from tilewright.hardware.text import axis_texts, describe, format_bytes
from tilewright.hardware.vector import VECTOR_KINDS, VectorUnit

__all__ = [
    "AREA",
    "AXES",
    "CLASSES",
    "CONVOLUTION",
    "LEAKAGE",
    "MOST_INSTANCES",
    "NETWORK",
    "PARTIAL_SUMS",
    "PORTS",
    "PUBLISHED_PERCENT",
    "PUBLISHED_UM2",
    "RATE",
    "RUN_BITS",
    "T_FLEX_READ_UM2",
    "VECTOR_KINDS",
    "Accelerator",
    "AccessEnergy",
    "Anchor",
    "Bandwidth",
    "Buffering",
    "Compression",
    "Compute",
    "Curve",
    "Degree",
    "DesignSpace",
    "Elision",
    "Fanout",
    "Flexibility",
    "FlexibilityCosts",
    "FlexibilityOverhead",
    "Footprint",
    "Memory",
    "Number",
    "NumberRange",
    "NumberType",
    "OrderFlexibility",
    "ParallelismFlexibility",
    "Precision",
    "ShapeFlexibility",
    "SparseAction",
    "SparseFormat",
    "Sparsity",
    "Storage",
    "Technology",
    "TileFlexibility",
    "VectorUnit",
    "axis_texts",
    "build_technology",
    "changed",
    "check_number",
    "completed",
    "describe",
    "dump_accelerator",
    "exact_rate",
    "find_accelerator",
    "find_design_space",
    "flexibility_overhead",
    "format_bytes",
    "load_accelerator",
    "load_design_space",
    "number_type",
    "parse_bytes",
    "preset",
    "preset_names",
    "read_bandwidth",
    "read_change",
    "read_type",
    "read_values",
    "room_name",
    "scale_technology",
    "technology",
    "technology_names",
    "with_numbers",
]
