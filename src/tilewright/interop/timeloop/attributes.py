"""The attributes of Timeloop's components: those that are read, those that change nothing here, those to be told.

Names and meanings are those of Timeloop's buffers (``BufferLevel::ParseSpecs``) and of the storage attributes of its
front end.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.interop.sections import Node

BUFFERS = ("DRAM", "SRAM", "regfile", "smartbuffer", "storage")
COMPUTES = ("mac", "compute")
NETWORKS = ("XY_NoC", "Legacy", "ReductionTree", "SimpleMulticast")
"""Timeloop tells what a component is by these parts of its class, and passes over all others."""

SPELLINGS: dict[str, tuple[str, ...]] = {
    "depth": ("depth", "memory_depth", "data_storage_depth"),
    "entries": ("entries",),
    "kilobytes": ("sizeKB",),
    "width": ("width", "memory_width", "data_storage_width"),
    "word": ("datawidth", "word-bits", "word_bits", "word_width"),
    "block": ("block-size", "block_size", "n_words"),
    "cluster": ("cluster-size", "cluster_size"),
    "read": ("read_bandwidth",),
    "write": ("write_bandwidth",),
    "shared": ("shared_bandwidth",),
    "both": ("bandwidth",),
    "buffering": ("multiple_buffering", "multiple-buffering"),
    "energy": ("vector-access-energy", "vector_access_energy"),
    "bits": ("width", "multiplier_width", "datawidth", "word-bits", "word_bits"),
}
"""What is read of a component, and how files spell it."""

READ = {name for names in SPELLINGS.values() for name in names} | {
    "technology", "global_cycle_seconds", "type", "instances", "meshX", "meshY", "class"}

ESTIMATED = {
    "adder_width", "multiplier_width", "exponent", "mantissa", "num_pipeline_stages", "latency", "cycle_time",
    "voltage", "n_banks", "num_banks", "num-banks", "n_ports", "num_ports", "num-ports", "nports", "n_rd_ports",
    "n_wr_ports",
    "n_rw_ports", "n_rdwr_ports", "update_fifo_depth", "metadata_counter_width", "max_fanout", "vdd", "temperature",
    "action_latency_cycles", "area_scale", "energy_scale", "n_bits", "precision", "version", "comment", "description",
}
"""What only estimates of energy and area ask for: those come from the ERT, or from our tables (which is told)."""

METADATA = {"metadata_storage_width", "metadata_storage_depth", "metadata_datawidth", "metadata_block_size",
            "decompression_supported", "compression_supported"}
"""What only compressed tensors ask for; the formats say what is kept of them."""

_OFF: tuple[object, ...] = (None, False, 0, 0.0, "", "false", "False", "no", {}, [])
NEUTRAL: dict[str, tuple[tuple[object, ...], str]] = {
    "has_power_gating": (_OFF, "power gating: leakage is that of all instances"),
    "power_gated_at": ((None, ""), "power gating: leakage is that of all instances"),
    "min_utilization": (_OFF, "a least share of the memory that tiles must fill"),
    "min-utilization": (_OFF, "a least share of the memory that tiles must fill"),
    "reduction_supported": ((None, True, "true", "True", "yes"), "a memory that cannot add: it is taken to"),
    "network_fill_latency": (_OFF, "the latency of the network"),
    "network_drain_latency": (_OFF, "the latency of the network"),
    "per_dataspace_bandwidth_consumption_scale": (_OFF, "bandwidths that differ from tensor to tensor"),
    "allow_overbooking": (_OFF, "overbooking: tiles must fit"),
    "concordant_compressed_tile_traversal": (_OFF, "the order in which compressed tiles are read"),
    "tile_partition_supported": (_OFF, "tiles of compressed tensors that are cut while it runs"),
    "addr-gen-energy": (_OFF, "the energy of generating addresses"),
    "cluster-area": (_OFF, "the area of a cluster"),
    "network-word-bits": ((None,), "the width of the network's words: energy of networks is not counted"),
    "network_word_bits": ((None,), "the width of the network's words: energy of networks is not counted"),
    "network_read": ((None,), "which network serves reads: all serve all"),
    "network_fill": ((None,), "which network serves fills: all serve all"),
    "network_drain": ((None,), "which network serves drains: all serve all"),
    "network_update": ((None,), "which network serves updates: all serve all"),
    "router-energy": (_OFF, "energy of the network"), "wire-energy": (_OFF, "energy of the network"),
}
"""Values with which an attribute changes nothing, and what any other would have said."""

_POWER_OFF = {"power_gated_at"}
_NAME = re.compile(r"[A-Za-z_]\w*")


def kind_of(name: object) -> str:
    """Return what Timeloop takes a class for: ``memory``, ``compute``, ``network``, or nothing."""
    text = str(name)
    if any(part in text for part in BUFFERS):
        return "memory"
    if any(part in text for part in COMPUTES):
        return "compute"
    return "network" if any(part in text for part in NETWORKS) else ""


def names_used(tree: Any) -> Iterator[str]:
    """Yield the names that stand in expressions anywhere in a tree."""
    if isinstance(tree, Mapping):
        for value in tree.values():
            yield from names_used(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from names_used(value)
    elif isinstance(tree, str):
        yield from _NAME.findall(tree)


def note_attributes(attributes: Node, used: set[str]) -> None:
    """Note those of a node's attributes that say something which is not honoured; ``used`` are names in expressions."""
    given = attributes.fields(empty=True)
    gated = given.get("has_power_gating") not in _OFF
    for name, value in given.items():
        if name in READ or name in ESTIMATED or name in METADATA or name in used:
            continue
        if name in NEUTRAL:
            neutral, text = NEUTRAL[name]
            if not any(value is one or (value == one and type(value) is type(one)) for one in neutral) and (
                    name not in _POWER_OFF or gated):
                attributes[name].dropped(text)
        else:
            attributes[name].dropped("an attribute that is not known here")
