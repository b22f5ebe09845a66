"""What DiGamma's evaluation designs (Kao 2022, section 6.3.1): networks, platforms, and the methods by name.

Platforms are Gamma's second systems: one array of any shape between a shared and a local buffer, in the technology of
the release's areas, within 0.2 and 7 mm2 of elements and buffers. In the release traffic is free; beside that stand the
platforms with their DRAM and ports. One machine runs the whole network, each layer with a mapping of its own; a sample
is one scored mapping of one layer. Batches are 1, sequences as the zoo has them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from math import isfinite
from typing import Any

from tilewright.codesign import DesignProblem, budget_bound, design, read_limits
from tilewright.hardware import Bandwidth, DesignSpace, Memory, find_accelerator
from tilewright.jobs import Runner
from tilewright.mapping import dump_mapping
from tilewright.reproduce.searching import oracle_cell
from tilewright.reproduce.study import Cell
from tilewright.workload import unique_operators, zoo

BUDGETS = {"edge": "area=0.2mm2", "cloud": "area=7mm2"}
NETWORKS = {"resnet18": "ResNet-18", "resnet50": "ResNet-50", "mobilenet-v2": "MobileNet-V2", "mnasnet": "MnasNet",
            "bert-base": "BERT", "ncf": "NCF", "dlrm": "DLRM"}
DIGAMMA, OURS = "DiGamma", "DiGamma, tuned"
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "Random": ("random", {}), "stdGA": ("ga", {}), "PSO": ("pso", {}), "TBPSA": ("tbpsa", {}),
    "(1+1)-ES": ("one-plus-one", {}), "DE": ("de", {}), "Portfolio": ("portfolio", {}), "CMA": ("cma-es", {}),
    DIGAMMA: ("digamma", {"preset": "release"}), OURS: ("digamma", {})}
BASELINES = tuple(METHODS)[:-2]


@cache
def problem(network: str, platform: str, free: bool) -> DesignProblem:
    """Return the design of a platform for a network; ``free``: no port limits."""
    text = (resources.files("tilewright.hardware") / "zoo" / f"{platform}-s2.yaml").read_text(encoding="utf-8")
    own = next(line for line in text.splitlines() if line.startswith("technology:"))
    machine = find_accelerator(text.replace(own, "technology: kao-15nm"))
    if free:
        machine = replace(machine, levels=tuple(
            replace(level, bandwidth=Bandwidth()) if isinstance(level, Memory) else level for level in machine.levels))
    return DesignProblem.of([(unique_operators(zoo.load(network)), 1.0)], DesignSpace.of(machine),
                            read_limits(BUDGETS[platform]))


def design_cell(of: Sequence[Any], method: str, samples: int, seed: int) -> Cell:
    """Return the cell of one run on the `problem` ``of``: cycles and square micrometres, if it found a design."""
    def compute() -> dict[str, Any]:
        name, options = METHODS[method]
        found = design(problem(*of), name, samples=samples, seed=seed, runner=Runner(workers=1), options=options,
                       proof=0)
        if not isfinite(found.score):
            return {"latency": None, "area": None}
        least = min(found.problem.layers, key=lambda layer: layer.macs)
        return {"latency": found.score, "area": found.figures.area_um2,
                "machine": {".".join(key): value for key, value in found.chosen.items()},
                "mapping": dump_mapping(found.layers[least.name].mapping, least, found.machine)}

    return Cell({"of": list(of), "method": method, "samples": samples, "seed": seed}, compute, samples)


def bound_cell(of: Sequence[Any], rounds: int) -> Cell:
    """Return the cell of what no machine within the budget can beat."""
    return Cell({"of": list(of), "bound": rounds}, lambda: {"latency": budget_bound(problem(*of), rounds)})


def confirmed_note(runner: Runner, found: Sequence[tuple[Sequence[Any], Mapping[str, Any]]]) -> str:
    """Have the oracle count the smallest layer of designs that were found, each with its `problem`."""
    cells = []
    for of, value in found:
        if value["latency"] is not None:
            asked = problem(*of)
            least = min(asked.layers, key=lambda layer: layer.macs)
            machine = asked.machine({key: value["machine"][".".join(key)] for key in asked.space.ranges})
            cells.append(oracle_cell({"of": list(of), "machine": value["machine"]}, least, machine, value["mapping"]))
    told = runner.run(cells)
    return f"The oracle confirms the smallest layer of {sum(each['agrees'] for each in told)} of {len(told)} designs."
