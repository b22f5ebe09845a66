"""MAGMA, figure 7.6 (a): what jobs take on a core with channels, and on one with rows, in parallel."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

from tilewright.jobs import Runner
from tilewright.reproduce.claims import cases, exact, gain, judge, lower
from tilewright.reproduce.magma_systems import SOURCE, first_mapping, only, oracles
from tilewright.reproduce.study import Cell, Findings, Setting, Table, reproduction
from tilewright.scheduling import LayerJob, analyse, network_jobs
from tilewright.workload import zoo

DLA, EYE = "dla", "eye"
PUBLISHED: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = {
    "Vision": {"mobilenet-v2": (3.1e5, 1.1e6, 6.8e-1, 8.8e-2), "resnet50": (8.5e4, 7.0e6, 5.2e-1, 3.6e-4),
               "shufflenet": (9.6e4, 4.9e5, 1.5, 2.3e-2)},
    "Lang": {"gpt2": (1.7e4, 3.5e6, 3.4e-1, 1.6e-5), "mobilebert": (5.5e2, 1.1e5, 1.1e1, 5.0e-4),
             "transformer-xl": (4.5e3, 9.2e5, 1.3, 6.4e-5)},
    "Recom": {"dlrm": (2.4e2, 9.7e5, 5.6e1, 2.5e-4), "wide-deep": (2.8e2, 1.1e6, 3.0e1, 5.2e-6),
              "ncf": (4.6e1, 1.8e5, 3.7e2, 6.4e-5)},
}
"""Mean cycles of a job on each core, and the bandwidth that it needs: 64 x 64 elements, figure 7.6 (a)."""
AVERAGES = {"Vision": (1.7e5, 2.8e6), "Lang": (7.4e3, 1.5e6), "Recom": (1.9e2, 7.6e5)}
OPTIONS: Mapping[str, Mapping[str, int]] = {
    "Vision": {}, "Lang": {"sequence": 20}, "Recom": {}}
"""One image, one sentence of 20 words (as in the released lists), one recommendation: the text has no sizes."""
BYTES_A_CYCLE = 5.0
"""What one GB/s is at 200 MHz: the more generous reading of the printed bandwidths."""

SLOWER = {task: gain(f"{task} jobs take longer with rows in parallel than with channels",
                     f"{slow / fast:.3g}x", slow / fast, "the ratio of the mean cycles over its three networks")
          for task, (fast, slow) in AVERAGES.items()}
NEEDS = cases("Channels in parallel need more bandwidth", "9 of 9 networks", "the share of networks")
ONCE = exact("Every job moves the weights of its layer", "18 means of cycles and bandwidth",
             "the share of printed means that allow a network's weights to be moved once: the bytes of n jobs are at "
             "most n times n times the product of both means")
CLAIMS = (*SLOWER.values(), NEEDS, ONCE)

_QUICK = Setting("quick", 2, {"samples": 90, "every": 9})
_FULL = Setting("full", 10, {"samples": 2_000, "every": 1})


@reproduction("magma-fig7.6", "Job analysis: cycles and required bandwidth of jobs on cores of 64 x 64 elements",
              SOURCE.format("figure 7.6 (a)"), CLAIMS, _QUICK, _FULL)
def run76(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.6 (a)."""
    asked = [(task, name, seed) for task, names in PUBLISHED.items() for name in names
             for seed in range(setting.seeds)]
    cells = [_cell(task, name, seed, setting) for task, name, seed in asked]
    found = dict(zip(asked, runner.run(cells), strict=True))
    system = only("s5", range(4, 8))
    told = oracles(runner, [(cell, _jobs(task, name, setting)[0], system.cores[0].accelerator, found[task, name, seed])
                            for cell, (task, name, seed) in zip(cells, asked, strict=True) if seed == 0])
    seeds = range(setting.seeds)
    judged = [judge(claim, [_ratio(found, task, seed) for seed in seeds],
                    ", ".join(f"{_ratio(found, task, seed):.3g}x" for seed in seeds)) for task, claim in SLOWER.items()]
    shares = [lower((_wanted(found[task, name, seed], EYE), _wanted(found[task, name, seed], DLA))
                    for task, names in PUBLISHED.items() for name in names) for seed in seeds]
    judged.append(judge(NEEDS, shares, ", ".join(f"{share:.2f}" for share in shares)))
    covered = [_allowed(task, name, cycles, rate) for task, names in PUBLISHED.items()
               for name, row in names.items() for cycles, rate in zip(row[:2], row[2:], strict=True)]
    judged.append(judge(ONCE, sum(covered) / len(covered), f"{sum(covered)} of {len(covered)}",
                        "the others move less than their weights, even if GB/s are meant and one job has all of both",
                        impossible=not all(covered)))
    return Findings((_table(found),), tuple(judged), notes=(
        "The released program divides one tile by the runtime; ours are all bytes of the fastest mapping found, over "
        "its cycles. Layers are those of the zoo, one in so many as the setting says.", told))


def _jobs(task: str, name: str, setting: Setting) -> Sequence[LayerJob]:
    return network_jobs([(zoo.load(name, **OPTIONS[task]), 1)])[::setting["every"]]


def _allowed(task: str, name: str, cycles: float, rate: float) -> bool:
    """Whether jobs of these mean cycles and GB/s can move the weights of a network's layers once, one byte a word."""
    operators = [node.operator for node in zoo.load(name, **OPTIONS[task]).mac_nodes]
    weights = sum(tensor.words(one.sizes) for one in operators for tensor in one.operands
                  if tensor.role == "weights" and "weights" not in dict(one.attributes))
    return len(operators) ** 2 * cycles * BYTES_A_CYCLE * rate >= weights


def _cell(task: str, name: str, seed: int, setting: Setting) -> Cell:
    def compute() -> dict[str, Any]:
        jobs, system = _jobs(task, name, setting), only("s5", range(4, 8))
        analysis = analyse(jobs, system, samples=setting["samples"], seed=seed, runner=Runner(workers=1))
        cores = {DLA: 0, EYE: len(system.cores) - 1}
        cycles = analysis.table.cycles[analysis.rows][:, :, 0]
        moved = analysis.table.traffic_bytes[analysis.rows][:, :, 0]
        return {"cycles": {key: float(cycles[:, core].mean()) for key, core in cores.items()},
                "bandwidth": {key: float((moved[:, core] / cycles[:, core]).mean()) for key, core in cores.items()},
                "samples": analysis.samples,
                "mapping": first_mapping(jobs, analysis)}

    return Cell({"network": name, "every": setting["every"], "mappings": setting["samples"], "seed": seed}, compute,
                lambda value: int(value["samples"]))


def _ratio(found: Mapping[Any, Any], task: str, seed: int) -> float:
    slow, fast = (sum(found[task, name, seed]["cycles"][core] for name in PUBLISHED[task]) for core in (EYE, DLA))
    return slow / fast if fast else nan


def _wanted(value: Mapping[str, Any], core: str) -> float:
    return float(value["bandwidth"][core])


def _table(found: Mapping[Any, Any]) -> Table:
    rows = []
    for task, names in PUBLISHED.items():
        for name, (dla, eye, rate_dla, rate_eye) in names.items():
            value = found[task, name, 0]
            rows.append((task, name, value["cycles"][DLA], dla, value["cycles"][EYE], eye, value["bandwidth"][DLA],
                         rate_dla, value["bandwidth"][EYE], rate_eye))
    return Table("jobs", "Mean of a network's jobs, 64 x 64 elements (first seed)", (
        "Task", "Network", "HB cycles", "published", "LB cycles", "published", "HB bytes a cycle", "published",
        "LB bytes a cycle", "published"), tuple(rows), ("Published bandwidths are in GB/s, or in bytes a cycle.",))
