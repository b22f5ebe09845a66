"""Record what ZigZag and AccelForge say of our small files, for the tests of their readers; print how near we are.

    python benchmarks/foreign_tools.py zigzag|accelforge --python PYTHON [--write]
    python benchmarks/foreign_tools.py zigzag|accelforge --files FOLDER [--variables BATCH_SIZE=1:N_EINSUMS=2]

The interpreter is one of an environment with the tool alone (``pip install zigzag-dse six``, or ``accelforge`` under
Python 3.12); it runs this file too. The figures stand in ``tests/unit/interop/TOOL_figures.json``. The second line
reads every machine and workload below a folder, as of the tool's repository, and says what it holds or what is wrong.
"""

import argparse
import json
import logging
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

Figures = dict[str, Any]
FIGURES = Path(__file__).parents[1] / "tests" / "unit" / "interop"
MOVES = ("RD_OUT_TO_LOW", "WR_IN_BY_HIGH", "WR_IN_BY_LOW", "RD_OUT_TO_HIGH")


def counted_accelforge(files: list[str]) -> Figures:
    """Return what AccelForge says of an architecture, a workload and a mapping: run in its own environment."""
    from accelforge.frontend.spec import Spec
    from accelforge.model.main import evaluate_mapping
    from accelforge.util.parallel import set_n_parallel_jobs

    set_n_parallel_jobs(1)
    found = evaluate_mapping(Spec.from_yaml(*files))
    energies = found.energy(per_component=True, per_tensor=True, per_action=True)
    picojoules: dict[str, list[float]] = {}
    for (component, tensor, action), energy in energies.items():
        if tensor is not None and action in ("read", "write"):
            pair = picojoules.setdefault(f"{component}.{tensor}", [0.0, 0.0])
            pair[action == "write"] = round(float(energy) * 1e12, 2)
    return {"microseconds": round(float(found.latency()) * 1e6, 6), "energy_pj": round(float(found.energy()) * 1e12, 1),
            "moves": picojoules}


def counted_zigzag(files: list[str]) -> Figures:
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


def recorded(tool: str, python: str, figures: Figures) -> Figures:
    """Return the figures of a tool anew."""
    for triple in figures["triples"]:
        with tempfile.TemporaryDirectory() as folder:
            texts = (figures["machines"][triple["machine"]], figures["layers"][triple["layer"]], triple["mapping"])
            paths = [Path(folder) / f"{name}.yaml" for name in ("accelerator", "workload", "mapping")]
            for path, text in zip(paths, texts, strict=True):
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([python, __file__, tool, "--count", *map(str, paths)], check=True, text=True,
                                  capture_output=True, cwd=folder)
            triple.update(json.loads(done.stdout))
            theirs = triple["cycles"]["total"] if "cycles" in triple else triple["microseconds"]
            print(triple["machine"], triple["layer"], *ours(tool, paths), triple["energy_pj"], theirs)
    return figures


def ours(tool: str, paths: list[Path]) -> tuple[float, int]:
    """Return our energy and cycles of the same files."""
    from tilewright.cost import cost_model
    from tilewright.interop import FORMATS

    found = FORMATS.get(tool).read(paths, {})
    assert found.operator is not None and found.accelerator is not None and found.mapping is not None
    cost = cost_model(found.operator, found.accelerator).cost(found.mapping)
    return round(cost.energy_pj, 1), cost.latency_cycles


def listed(tool: str, folder: Path, variables: str | None) -> None:
    """Print what each file of a tool below a folder holds, or the error."""
    from tilewright.base import InputError
    from tilewright.interop import FORMATS

    form, read = FORMATS.get(tool), 0
    paths = [path for path in sorted(folder.rglob("*.yaml")) if form.holds(path) & {"accelerator", "network"}]
    for path in paths:
        try:
            found = form.read([Path(f"{path}:{variables}") if variables else path], {})
        except InputError as error:
            print(f"{path.relative_to(folder)}: {error}")
            continue
        read += 1
        machine = "" if found.accelerator is None else f"{len(found.accelerator.levels)} levels "
        network = "" if found.graph is None else f"{len(found.graph.nodes)} nodes, {found.graph.macs:,} MACs"
        print(f"{path.relative_to(folder)}: {machine}{network}, {len(found.notes)} notes")
    print(f"{read} of {len(paths)} files are read")


def short(match: re.Match[str]) -> str:
    """Return a list of numbers in one line."""
    return f"[{' '.join(match[1].split())}]"


def main() -> None:
    """Run the program on every triple."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("tool", choices=("zigzag", "accelforge"))
    parser.add_argument("--python", help="an interpreter that has the tool")
    parser.add_argument("--write", action="store_true", help="write the figures into the tests")
    parser.add_argument("--files", type=Path, help="read the files below this folder instead")
    parser.add_argument("--variables", help="of templates among them")
    parser.add_argument("--count", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.files:
        listed(asked.tool, asked.files, asked.variables)
        return
    if asked.count:
        logging.disable(logging.CRITICAL)
        counted = counted_zigzag if asked.tool == "zigzag" else counted_accelforge
        json.dump(counted(asked.count), sys.stdout)
        return
    file = FIGURES / f"{asked.tool}_figures.json"
    figures = recorded(asked.tool, asked.python, json.loads(file.read_text(encoding="utf-8")))
    if asked.write:
        text = json.dumps(figures, indent=1)
        file.write_text(re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", short, text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
