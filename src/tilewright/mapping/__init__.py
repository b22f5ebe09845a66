"""How it runs: mappings, legality, map spaces, dataflows."""

from typing import TYPE_CHECKING

from tilewright.base import late_names

if TYPE_CHECKING:
    from tilewright.mapping.batch import Layout, MappingBatch, Slot
    from tilewright.mapping.dataflows import DATAFLOWS, Dataflow, classes_of, dataflow
    from tilewright.mapping.files import dump_mapping, load_mapping
    from tilewright.mapping.fit import (
        Room,
        by_room,
        check_homes,
        extents_at,
        full_keeps,
        held_bits,
        kept_tensors,
        lanes,
        partition_of,
        tensor_bits,
        tile_bytes,
        tile_fits,
    )
    from tilewright.mapping.flexibility import Flexion, TileRule, flexion
    from tilewright.mapping.flexible import (
        effective_pairs,
        flexible_machine,
        flexible_spaces,
        flexible_within,
        stand_ins,
    )
    from tilewright.mapping.footprint import axis_sides, compression, footprint_bits, padding_words, stored
    from tilewright.mapping.fused import (
        FusedGroup,
        FusedLeaf,
        FusedLink,
        FusedMapping,
        FusedNode,
        HeldTensor,
        SharedLoop,
        operations_of,
    )
    from tilewright.mapping.fused_files import (
        TREES,
        asked_of_trees,
        dump_fused,
        is_fused_file,
        load_fused,
        numbered_groups,
    )
    from tilewright.mapping.fused_legality import (
        FusedViolation,
        fused_rooms,
        fused_violations,
        held_bytes,
        tree_violations,
    )
    from tilewright.mapping.fused_networks import fused_group
    from tilewright.mapping.fused_turns import FusedTree, HeldWords, Turns, first_needed
    from tilewright.mapping.kept_spaces import KeptSets
    from tilewright.mapping.legality import Violation, is_legal, repair, smallest_mapping, violations
    from tilewright.mapping.mapping import LevelLoops, Loop, Mapping
    from tilewright.mapping.padding import Padding, padded
    from tilewright.mapping.precision import (
        LaneUse,
        compute_cycles,
        lane_use,
        precise,
        precise_graph,
    )
    from tilewright.mapping.spaces.conflicts import Atom, conflicts
    from tilewright.mapping.spaces.counting.size import SpaceSize
    from tilewright.mapping.spaces.files import (
        SpaceFile,
        dump_constraints,
        dump_space,
        load_constraints,
        load_space,
        read_space,
    )
    from tilewright.mapping.spaces.rules.constraints import ANY, Bounds, Constraints, written_out
    from tilewright.mapping.spaces.rules.presets import dataflow_constraints
    from tilewright.mapping.spaces.rules.tilings import TILINGS, Tiling
    from tilewright.mapping.spaces.space import Enumeration, MapSpace, random_state
    from tilewright.mapping.text import NestRow, Tile, nest_rows, render
    from tilewright.mapping.tile_counts import EstimatedCount, parted_buffer, parted_triples, shared_buffer, triples
    from tilewright.mapping.zeros import Zeros

__all__ = [
    "ANY",
    "DATAFLOWS",
    "TILINGS",
    "TREES",
    "Atom",
    "Bounds",
    "Constraints",
    "Dataflow",
    "Enumeration",
    "EstimatedCount",
    "Flexion",
    "FusedGroup",
    "FusedLeaf",
    "FusedLink",
    "FusedMapping",
    "FusedNode",
    "FusedTree",
    "FusedViolation",
    "HeldTensor",
    "HeldWords",
    "KeptSets",
    "LaneUse",
    "Layout",
    "LevelLoops",
    "Loop",
    "MapSpace",
    "Mapping",
    "MappingBatch",
    "NestRow",
    "Padding",
    "Room",
    "SharedLoop",
    "Slot",
    "SpaceFile",
    "SpaceSize",
    "Tile",
    "TileRule",
    "Tiling",
    "Turns",
    "Violation",
    "Zeros",
    "asked_of_trees",
    "axis_sides",
    "by_room",
    "check_homes",
    "classes_of",
    "compression",
    "compute_cycles",
    "conflicts",
    "dataflow",
    "dataflow_constraints",
    "dump_constraints",
    "dump_fused",
    "dump_mapping",
    "dump_space",
    "effective_pairs",
    "extents_at",
    "first_needed",
    "flexible_machine",
    "flexible_spaces",
    "flexible_within",
    "flexion",
    "footprint_bits",
    "full_keeps",
    "fused_group",
    "fused_rooms",
    "fused_violations",
    "held_bits",
    "held_bytes",
    "is_fused_file",
    "is_legal",
    "kept_tensors",
    "lane_use",
    "lanes",
    "load_constraints",
    "load_fused",
    "load_mapping",
    "load_space",
    "nest_rows",
    "numbered_groups",
    "operations_of",
    "padded",
    "padding_words",
    "parted_buffer",
    "parted_triples",
    "partition_of",
    "precise",
    "precise_graph",
    "random_state",
    "read_space",
    "render",
    "repair",
    "shared_buffer",
    "smallest_mapping",
    "stand_ins",
    "stored",
    "tensor_bits",
    "tile_bytes",
    "tile_fits",
    "tree_violations",
    "triples",
    "violations",
    "written_out",
]

__getattr__ = late_names(__name__)
