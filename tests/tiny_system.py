"""A system of three small cores, which jobs are scheduled on."""

TINY = """
name: tiny
clock_mhz: 200
host_bandwidth: 1GB/s
memory_bandwidth: 1GB/s
cores:
- {accelerator: magma-core, dataflow: nvdla, count: 2, with: {PEs.x: 4, PEs.y: 4, SG.capacity_bytes: 4 KiB}}
- {accelerator: magma-core, name: LB, dataflow: eyeriss-rows, with: {PEs.x: 8, PEs.y: 2, SG.capacity_bytes: 2 KiB}}
"""
