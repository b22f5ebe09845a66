"""ConfuciuX, figures 8.4 and 8.5: layers of MobileNet-V2 alone, and what a critic learns of them."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.allocation import PE_LEVELS, AllocationProblem, AllocationTable, allocate, observations
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, judge
from tilewright.reproduce.confuciux_allocation import ONE_STAGE, OWNER, confirmed_note, shown, table
from tilewright.reproduce.confuciux_contest import TRAFFIC
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, Value, claims, reproduction

Floats = NDArray[np.float64]
NETWORK = "mobilenet-v2"
LAYERS = {"layer 12": 11, "layer 23 (depthwise)": 22, "layer 34": 33}
OBJECTIVES = ("latency", "energy")
NEAR = 1.01
"""Figures that are no further apart are alike."""
PAIRS, FLAT, DEPTHWISE, AGENT, HEURISTICS = claims("confuciux-fig8.4")


def contour_cell(free: bool) -> Cell:
    """Return the cell of all pairs: each layer's figures, rows of elements, and what they are summed over layers."""
    def compute() -> dict[str, Any]:
        known = table(NETWORK, "dla", 12, free)
        figures = {"latency": known.latency_cycles[:, 0], "energy": known.energy_pj[:, 0]}
        heavy = int(known.stages.macs.argmax())
        return {objective: {"all": rows.sum(axis=0).tolist(), "heaviest": rows[heavy].tolist(),
                            **{name: rows[at].tolist() for name, at in LAYERS.items()}}
                for objective, rows in figures.items()}

    return Cell({"contours": NETWORK, "free": free}, compute)


def contours(runner: Runner, free: bool) -> Mapping[tuple[str, str], Floats]:
    """Return the figures of all pairs ``(p, k)``, by objective and layer."""
    (value,) = runner.run([contour_cell(free)])
    return {(objective, name): np.array(rows) for objective in OBJECTIVES for name, rows in value[objective].items()}


def layer_cell(name: str, objective: str, free: bool, epochs: int, seed: int) -> Cell:
    """Return the cell of the agent on one layer."""
    def compute() -> dict[str, Any]:
        whole, at = table(NETWORK, "dla", 12, free), slice(LAYERS[name], LAYERS[name] + 1)
        stages = whole.stages
        alone = type(stages)(stages.operators[at], stages.names[at], stages.runs[at], stages.machine)
        one = AllocationTable(alone, whole.latency_cycles[at], whole.energy_pj[at], whole.area_um2[at],
                              whole.power_mw[at])
        found = allocate(AllocationProblem(one, objective=objective),  # type: ignore[arg-type]
                         ONE_STAGE, epochs=epochs, seed=seed)
        return {"last": found.value}

    return Cell({"layer": name, "objective": objective, "free": free, "epochs": epochs, "seed": seed}, compute, epochs)


def smallest(figures: Floats) -> tuple[int, int]:
    """Return the levels of the pair with the fewest bytes in all of those that are as good as the best."""
    size = np.array(PE_LEVELS)[:, None] * (10 * np.arange(1, figures.shape[1] + 1) + 9)
    p, k = np.unravel_index(np.where(figures <= NEAR * figures.min(), size, np.inf).argmin(), figures.shape)
    return int(p), int(k)


@reproduction("confuciux-fig8.4", Setting("quick", 2, {"epochs": 600, "traffic": ("free", "dram")}),
              Setting("full", 10, {"epochs": 5_000, "traffic": ("free", "dram")}), cells=OWNER)
def run84(setting: Setting, runner: Runner) -> Findings:
    """Look at all pairs, and let the agent choose."""
    tables, plots, judged = [], [], list[Judgement]()
    for free in setting.free:
        known = contours(runner, free)
        each = [(objective, name) for objective in OBJECTIVES for name in LAYERS]
        values = iter(runner.run([layer_cell(name, objective, free, setting["epochs"], seed)
                                  for objective, name in each for seed in range(setting.seeds)]))
        found = {one: [next(values)["last"] for _ in range(setting.seeds)] for one in each}
        rules = {one: [float(known[one][smallest(known[one[0], rule])]) for rule in ("heaviest", "all")]
                 for one in each}
        rows: list[tuple[Value, ...]] = [(name, objective, *(level + 1 for level in smallest(known[objective, name])),
                 *(shown(value) for value in (float(known[objective, name].min()), float(np.median(
                     found[objective, name])), *rules[objective, name]))) for objective, name in each]
        tables.append(Table("layers" if free else "layers-dram", f"The best pair of each layer, {TRAFFIC[free]}", (
            "Layer", "Objective", "Level of elements", "Level of buffers", "Best", "Agent (median)", "Heuristic A",
            "Heuristic B"), tuple(rows)))
        plots += [Plot(f"{objective}-{name.split()[1]}{'' if free else '-dram'}", f"{objective} of {name}, "
                       f"{TRAFFIC[free]}", [{"type": "contour", "z": known[objective, name].tolist()}],
                       {"xaxis": {"title": {"text": "buffer level"}}, "yaxis": {"title": {"text": "element level"}}})
                  for objective, name in each]
        judged = judged or _judged(known, found, rules)
    return Findings(tuple(tables), tuple(judged), tuple(plots), (confirmed_note(runner, NETWORK, "dla"),))


def _judged(known: Mapping[tuple[str, str], Floats], found: Mapping[tuple[str, str], list[float]],
            rules: Mapping[tuple[str, str], list[float]]) -> list[Judgement]:
    best = {one: smallest(known[one]) for one in found}
    differ = [best[objective, one] != best[objective, other] for objective in OBJECTIVES
              for one, other in combinations(LAYERS, 2)]
    first, second, _ = (known["latency", name] for name in LAYERS)
    flat = np.abs(first[8:, 2:] / first[-1, -1] - 1) < NEAR - 1
    helps = second.min(axis=1) * NEAR >= second[:, 0]
    seeds = range(len(next(iter(found.values()))))
    agent = [float(np.mean([found[one][seed] <= NEAR * known[one].min() for one in found])) for seed in seeds]
    rule = [float(np.mean([found[one][seed] <= NEAR * value for one in found for value in rules[one]]))
            for seed in seeds]
    return [*(judge(claim, float(np.mean(told)), f"{np.sum(told)} of {np.size(told)}") for claim, told in (
        (PAIRS, differ), (FLAT, flat), (DEPTHWISE, helps))),
        *(judge(claim, values, f"{np.mean(values):.0%}") for claim, values in ((AGENT, agent), (HEURISTICS, rule)))]


CRITIC, IRREGULAR = claims("confuciux-fig8.5")


def critic_cell(points: int, told: bool, seed: int) -> Cell:
    """Return the cell of a critic learnt from states of equation 8.1, and where ``told`` the present choices.

    ``rmse`` is that of 20,000 other states, ``spread`` the standard deviation there; ``floor`` is the least RMSE of any
    function of the states, which lack the present choices: the latter's own spread at each layer.
    """
    def compute() -> dict[str, Any]:
        from tilewright.learn import TrainingOptions, train  # noqa: PLC0415 - loads PyTorch

        of = AllocationProblem(table(NETWORK, "dla", 12, True))
        rng, known = np.random.default_rng(seed), observations(of)
        latency = of.table.latency_cycles.reshape(len(known), 12, 12)

        def drawn(count: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            layer, levels = rng.integers(len(known), size=count), rng.integers(12, size=(count, 4))
            seen = np.concatenate([known[layer], levels[:, :4 if told else 2] / 5.5 - 1], axis=1)
            rewards = latency[layer, levels[:, 2], levels[:, 3]][:, None]
            return seen.astype(np.float32), rewards.astype(np.float32)

        seen, reward = drawn(points)
        network = train(seen, reward, TrainingOptions(batch=256, seed=seed)).regressor
        seen, reward = drawn(20_000)
        error = np.sqrt(np.mean((network.predict(seen) - reward) ** 2))
        return {"rmse": float(error), "spread": float(reward.std()),
                "floor": float(np.sqrt(latency.reshape(len(known), -1).var(axis=1).mean()))}

    return Cell({"critic": points, "told": told, "seed": seed}, compute)


@reproduction("confuciux-fig8.5", Setting("quick", 2, {"points": (2_600, 26_000)}),
              Setting("full", 5, {"points": (2_600, 26_000, 260_000)}), cells=OWNER)
def run85(setting: Setting, runner: Runner) -> Findings:
    """Let critics learn from ever more points."""
    asked = [(points, told) for told in (False, True) for points in setting["points"]]
    values = iter(runner.run([critic_cell(*one, seed) for one in asked for seed in range(setting.seeds)]))
    found = {one: [next(values) for _ in range(setting.seeds)] for one in asked}
    rows = tuple((points, "yes" if told else "no", *(float(np.median([run[name] for run in runs])) for name in (
        "rmse", "spread"))) for (points, told), runs in found.items())
    points, seeds = setting["points"], range(setting.seeds)
    judged = []
    for claim, told in ((CRITIC, False), (IRREGULAR, True)):
        left = [min(found[count, told][seed]["rmse"] / found[count, told][seed]["spread"] for count in points)
                for seed in seeds]
        best = min(run["rmse"] for count in points for run in found[count, told])
        judged.append(judge(claim, left, f"{np.median(left):.2f}, at best {best:.1E} cycles"))
    floor = found[points[0], False][0]["floor"]
    return Findings((Table("critics", "Cycles of layers of MobileNet-V2 told by critics: medians over seeds", (
        "Points", "Told the present choices", "RMSE", "Spread"), rows),), tuple(judged), notes=(
            f"The states of equation 8.1 have the choices of the step before but not the present ones: whatever a "
            f"critic learns from them, its RMSE is {floor:.1E} cycles or more.",
            confirmed_note(runner, NETWORK, "dla")))
