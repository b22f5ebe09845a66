"""Record what ZigZag counts of our small files, for tests/unit/interop/zigzag_figures.json; print how near we are.

    python benchmarks/foreign_tools.py --python PATH_OF_PYTHON_WITH_ZIGZAG [--write]

The interpreter is one of an environment with ZigZag alone (``pip install zigzag-dse six``); it runs this file too.
"""

import argparse
import json
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

FIGURES = Path(__file__).parents[1] / "tests" / "unit" / "interop" / "zigzag_figures.json"
MOVES = ("RD_OUT_TO_LOW", "WR_IN_BY_HIGH", "WR_IN_BY_LOW", "RD_OUT_TO_HIGH")


def counted(files):
    """Return what ZigZag says of an accelerator, a workload and a mapping: run in its own environment."""
    import zigzag.mapping.data_movement as moving
    from zigzag.mapping.temporal_mapping import TemporalMappingType
    from zigzag.stages.evaluation.cost_model_evaluation import CostModelStage
    from zigzag.stages.main import MainStage
    from zigzag.stages.mapping.spatial_mapping_generation import SpatialMappingGeneratorStage
    from zigzag.stages.mapping.temporal_mapping_generator_stage import TemporalMappingGeneratorStage
    from zigzag.stages.parser.accelerator_parser import AcceleratorParserStage
    from zigzag.stages.parser.workload_parser import WorkloadParserStage
    from zigzag.stages.results.reduce_stages import MinimalEnergyStage
    from zigzag.stages.workload_iterator import WorkloadStage

    stages = [WorkloadParserStage, AcceleratorParserStage, WorkloadStage, SpatialMappingGeneratorStage,
              MinimalEnergyStage, TemporalMappingGeneratorStage, CostModelStage]
    accelerator, workload, mapping = files
    main = MainStage(stages, accelerator=accelerator, workload=workload, mapping=mapping, loma_lpf_limit=6,
                     loma_show_progress_bar=False, temporal_mapping_type=TemporalMappingType.UNEVEN,
                     access_same_data_considered_as_no_access=True)
    found = next(iter(main.run()))[0]
    moves = {}
    for operand, energies in found.mem_energy_breakdown.items():
        link = found.memory_operand_links.layer_to_mem_op(operand)
        for level, energy in enumerate(energies):
            name = found.accelerator.get_memory_level(link, level).memory_instance.name
            elements = found.mapping.unit_mem_data_movement[operand][level].get_attribute(
                moving.DataMoveAttr.DATA_ELEM_MOVE_COUNT)
            moved = [elements.get(moving.DataDirection[move]) for move in MOVES]
            moves[f"{name}.{operand}"] = [*moved, round(energy, 6)]
    cycles = {"ideal": found.ideal_temporal_cycle, "stalled": found.latency_total0, "total": found.latency_total2}
    return {"cycles": cycles, "energy_pj": found.energy_total, "moves": moves}


def recorded(python, figures):
    """Return the figures anew."""
    for triple in figures["triples"]:
        with tempfile.TemporaryDirectory() as folder:
            texts = (figures["machines"][triple["machine"]], figures["layers"][triple["layer"]], triple["mapping"])
            paths = [Path(folder) / f"{name}.yaml" for name in ("accelerator", "workload", "mapping")]
            for path, text in zip(paths, texts, strict=True):
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([python, __file__, "--count", *map(str, paths)], check=True, capture_output=True,
                                  text=True, cwd=folder)
            triple.update(json.loads(done.stdout))
            print(triple["machine"], triple["layer"], *ours(paths), triple["energy_pj"], triple["cycles"]["total"])
    return figures


def ours(paths):
    """Return our energy and cycles of the same files."""
    from tilewright.cost import cost_model
    from tilewright.interop import FORMATS

    found = FORMATS.get("zigzag").read(paths, {})
    cost = cost_model(found.operator, found.accelerator).cost(found.mapping)
    return round(cost.energy_pj, 1), cost.latency_cycles


def main():
    """Run the program on every triple."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--python", help="an interpreter that has ZigZag")
    parser.add_argument("--write", action="store_true", help="write the figures into the tests")
    parser.add_argument("--count", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.count:
        logging.disable(logging.CRITICAL)
        json.dump(counted(asked.count), sys.stdout)
        return
    figures = recorded(asked.python, json.loads(FIGURES.read_text(encoding="utf-8")))
    if asked.write:
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
