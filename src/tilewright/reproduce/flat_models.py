"""FLAT, figures A.13 to A.15: whole blocks of five models, their energy, and the bandwidth that L and A need."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import geometric_mean
from typing import Any

from tilewright.fusion.flat import FLAT_MODELS, flat_block
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, between, follows, judge
from tilewright.reproduce.flat_runs import (
    AGREES,
    CLOUD,
    EDGE,
    NEAR,
    READING,
    Cells,
    least_bandwidth,
    machine_of,
    measured,
    most_gain,
)
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, claims, published_groups, reproduction

SEQUENCES = (512, 4096, 16384, 65536, 262144)
Printed = Mapping[str, tuple[float, ...]]
SPEEDUPS, ENERGIES = published_groups("flat-figA14-speedup"), published_groups("flat-figA14-energy")
"""By machine and model, at each of the sequences."""
FAVOURED = ("At most is what the reading that favours fusion most allows: 4-byte words, 1 GHz, 10^9 bytes a GB, and a "
            "Flex plan whose softmax passes over the logits in DRAM once more each way. Flex-opt is no worse than that "
            "plan, and FLAT-opt not below the compute bound.")


def _mean(printed: Printed) -> float:
    return geometric_mean(value for values in printed.values() for value in values)


FASTER_EDGE, LESS_EDGE, FASTER_CLOUD, LESS_CLOUD, POSSIBLE, MEANS, FALLING = claims("flat-figA14")


def falling(energies: Mapping[str, Printed]) -> Judgement:
    """Judge whether ratios fall along rows, as savings grow with what there is to save; tell where they rise."""
    rows = {f"{model} on {machine}": values for machine, printed in energies.items()
            for model, values in printed.items()}
    rises = {name: [f"{one:g} before {other:g}" for one, other in pairwise(values) if other > one]
             for name, values in rows.items()}
    wrong = {name: told for name, told in rises.items() if told}
    return judge(FALLING, 1 - len(wrong) / len(rows), f"{len(rows) - len(wrong)} of {len(rows)} rows",
                 "; ".join(f"{name}: {', '.join(told)}" for name, told in wrong.items()))


def means() -> Judgement:
    """Judge the printed means by what the printed figures can mean."""
    return follows(MEANS, [(f"{kind}, {machine}", text, between(
        [value for values in printed[machine].values() for value in values], 2))
        for machine, texts in ((EDGE, ("1.75", "0.56")), (CLOUD, ("1.65", "0.45")))
        for kind, printed, text in zip(("speedup", "energy"), (SPEEDUPS, ENERGIES), texts, strict=True)])


def _limits(runner: Runner, asked: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str, int], float]:
    """Return what fusion can gain at most of blocks."""
    found = runner.run([Cell({"machine": machine, "model": model, "sequence": sequence, "of": "most gain"},
                             partial(most_gain, machine, flat_block(model, sequence)))
                        for machine, model, sequence in asked])
    return {key: float(value["gain"]) for key, value in zip(asked, found, strict=True)}


def _ratio(found: Cells, key: tuple[str, str, int], quantity: str, one: str = "flex-opt",
           other: str = "flat-opt") -> float:
    return float(found[*key, one][quantity] / found[*key, other][quantity])


@reproduction("flat-figA14", Setting("quick", 1, {"models": tuple(FLAT_MODELS), "sequences": SEQUENCES}),
              Setting("full", 1, {"models": tuple(FLAT_MODELS), "sequences": SEQUENCES}))
def figure_a14(setting: Setting, runner: Runner) -> Findings:
    """Take whole blocks of all models at all lengths."""
    keys = [(machine, model, sequence) for machine in (EDGE, CLOUD) for model in setting["models"]
            for sequence in setting["sequences"]]
    names = ("naive", "flex-opt", "flat-opt", "online-opt")
    found = measured(runner, [(*key, name) for key in keys for name in names], block=True)
    limits = _limits(runner, keys)
    printed = {key: SPEEDUPS[key[0]][key[1]][SEQUENCES.index(key[2])] for key in keys}
    rows = tuple((*key, printed[key], _ratio(found, key, "latency_cycles"),
                  _ratio(found, key, "latency_cycles", other="online-opt"), limits[key],
                  _ratio(found, key, "latency_cycles", one="naive"),
                  ENERGIES[key[0]][key[1]][SEQUENCES.index(key[2])], 1 / _ratio(found, key, "energy_pj"),
                  *(found[*key, "online-opt"][name] for name in ("latency_cycles", "bound_cycles"))) for key in keys)
    above = {key: limits[key] for key in keys if key[0] == EDGE and printed[key] > limits[key] + 0.005}
    judged: list[Judgement] = []
    for machine, quicker, saving in ((EDGE, FASTER_EDGE, LESS_EDGE), (CLOUD, FASTER_CLOUD, LESS_CLOUD)):
        here = [key for key in keys if key[0] == machine]
        faster = geometric_mean(_ratio(found, key, "latency_cycles") for key in here)
        online = geometric_mean(_ratio(found, key, "latency_cycles", other="online-opt") for key in here)
        naive = geometric_mean(_ratio(found, key, "latency_cycles", one="naive") for key in here)
        less = geometric_mean(1 / _ratio(found, key, "energy_pj") for key in here)
        most = geometric_mean(limits[key] for key in here)
        because = (f"at most {most:.2f}x by the reading that favours it most; {online:.2f}x with an online softmax; "
                   f"{naive:.2f}x over Naive")
        judged += (judge(quicker, faster, f"{faster:.2f}x", because,
                         impossible=most < geometric_mean(printed[key] for key in here)),
                   judge(saving, less, f"{less:.2f} of it", "energies a word are of our technologies"))
    edge = [key for key in keys if key[0] == EDGE]
    judged += (judge(POSSIBLE, 1 - len(above) / len(edge), f"{len(edge) - len(above)} of {len(edge)}", "; ".join(
        f"{model} {sequence:,}: {printed[machine, model, sequence]:.2f} > {limit:.2f}"
        for (machine, model, sequence), limit in above.items()), impossible=bool(above)), means(), falling(ENERGIES))
    table = Table("blocks", "Speedup and energy of whole blocks", (
        "Machine", "Model", "Sequence", "Published", "Ours", "With online softmax", "At most", "FLAT over Naive",
        "Energy published", "Energy ours", "Cycles", "Bound (cycles)"), rows, (FAVOURED, AGREES, READING))
    return Findings((table,), tuple(judged), (_plot(rows),))


def _plot(rows: Sequence[tuple[Any, ...]]) -> Plot:
    names = [f"{row[1]} {row[2]:,} {row[0].removeprefix('flat-')}" for row in rows]
    data = [{"type": "scatter", "mode": "markers", "name": name, "x": names, "y": [row[place] for row in rows]}
            for name, place in (("published", 3), ("ours", 4), ("at most", 6))]
    return Plot("blocks", "Speedup of FLAT-opt over Flex-opt", data, {"yaxis": {"type": "log"}})


EDGE_64K, CLOUD_64K, TEXT = claims("flat-figA13")
BREAKDOWN = {(EDGE, "BERT"): EDGE_64K, (CLOUD, "XLM"): CLOUD_64K}


@reproduction("flat-figA13", Setting("quick", 1, {"sequences": (512, 4096, 16384, 65536)}),
              Setting("full", 1, {"sequences": SEQUENCES}))
def figure_a13(setting: Setting, runner: Runner) -> Findings:
    """Take blocks and their attentions alone."""
    keys = [(machine, model, sequence) for machine, model in BREAKDOWN for sequence in setting["sequences"]]
    asked = [(*key, name) for key in keys for name in ("naive", "flex-opt", "flat-opt", "online-opt")]
    whole, alone = measured(runner, asked, block=True), measured(runner, asked)
    limits = _limits(runner, keys)
    rows = tuple((*each, alone[each]["latency_cycles"], whole[each]["latency_cycles"] - alone[each]["latency_cycles"],
                  whole[each]["latency_cycles"], whole[each]["bound_cycles"]) for each in asked)
    judged = []
    for (machine, model), claim in BREAKDOWN.items():
        key = (machine, model, 65536)
        ours, online = (_ratio(whole, key, "latency_cycles", other=name) for name in ("flat-opt", "online-opt"))
        judged.append(judge(claim, ours, f"{ours:.2f}x", f"at most {limits[key]:.2f}x by the reading that favours it "
                            f"most; {online:.2f}x with an online softmax",
                            impossible=claim.figure > limits[key] + 0.05))
    judged.append(follows(TEXT, [("XLM at 64 K", "3.07", (1.975, 1.985))]))
    table = Table("breakdown", "Cycles of a block", ("Machine", "Model", "Sequence", "Dataflow", "L and A", "Others",
                                                     "Block", "Bound (cycles)"), rows, (FAVOURED, AGREES, READING))
    plot = Plot("breakdown", "Cycles of a block", [
        {"type": "bar", "name": name, "x": [f"{row[1]} {row[2]:,} {row[3]}" for row in rows],
         "y": [row[place] for row in rows]} for name, place in (("L and A", 4), ("others", 5))], {"barmode": "stack"})
    return Findings((table,), tuple(judged), (plot,))


CLOUD_LESS, EDGE_LESS, SHAPE = claims("flat-figA15")
BANDWIDTH = {(CLOUD, "XLM"): CLOUD_LESS, (EDGE, "BERT"): EDGE_LESS}


@reproduction("flat-figA15", Setting("quick", 1, {"sequences": SEQUENCES}),
              Setting("full", 1, {"sequences": tuple(2**power for power in range(9, 19))}))
def figure_a15(setting: Setting, runner: Runner) -> Findings:
    """Seek the least bandwidths."""
    names = ("flex-opt", "flat-opt", "online-opt")
    keys = [(*where, sequence, name) for where in BANDWIDTH for sequence in setting["sequences"] for name in names]
    found = runner.run([Cell({"machine": machine, "model": model, "sequence": sequence, "dataflow": name,
                              "of": "least bandwidth"}, partial(_bandwidth, machine, model, sequence, name))
                        for machine, model, sequence, name in keys])
    rates = {key: float(value["gib"]) for key, value in zip(keys, found, strict=True)}
    judged = []
    for where, claim in BANDWIDTH.items():
        ratios, online = ([rates[*where, sequence, "flex-opt"] / rates[*where, sequence, name]
                           for sequence in setting["sequences"]] for name in names[1:])
        mean, more = geometric_mean(ratios), geometric_mean(online)
        judged.append(judge(claim, mean, f"{100 * (1 - 1 / mean):.0f} % less",
                            f"{100 * (1 - 1 / more):.0f} % with an online softmax"))
    curve = [rates[CLOUD, "XLM", sequence, "flat-opt"] for sequence in setting["sequences"]]
    judged.append(judge(SHAPE, float(min(curve) < min(curve[0], curve[-1])), ", ".join(f"{rate:.3g}" for rate in curve),
                        "online: " + ", ".join(f"{rates[CLOUD, 'XLM', sequence, 'online-opt']:.3g}"
                                               for sequence in setting["sequences"])))
    rows = tuple((*key, rate, _compulsory(*key[:3])) for key, rate in rates.items())
    table = Table("bandwidth", f"GiB/s for a utilisation of {NEAR}", (
        "Machine", "Model", "Sequence", "Dataflow", "GiB/s", "Bound (GiB/s)"), rows, (
        "The bound moves compulsory words alone, in steps of 5 %.", AGREES, READING))
    plot = Plot("bandwidth", "Bandwidth needed", [
        {"type": "scatter", "mode": "lines+markers", "name": f"{where[1]} {name}", "x": list(setting["sequences"]),
         "y": [rates[*where, sequence, name] for sequence in setting["sequences"]]} for where in BANDWIDTH
        for name in names], {"xaxis": {"type": "log"}, "yaxis": {"type": "log", "title": {"text": "GiB/s"}}})
    return Findings((table,), tuple(judged), (plot,))


def _bandwidth(machine: str, model: str, sequence: int, name: str) -> dict[str, float]:
    return {"gib": min(1e5, least_bandwidth(machine, flat_block(model, sequence).attention, name, NEAR))}


def _compulsory(machine: str, model: str, sequence: int) -> float:
    """Return the GiB/s with which compulsory words alone take as long as a utilisation of `NEAR` allows."""
    attention, on = flat_block(model, sequence).attention, machine_of(machine)
    cycles = attention.macs / on.elements / NEAR
    return attention.compulsory_words / cycles * on.word_bytes * on.clock_mhz * 1e6 / 2**30
