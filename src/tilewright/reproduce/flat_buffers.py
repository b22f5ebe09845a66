"""FLAT, table A.1 and figures A.2 to A.12: footprints, rooflines, utilisation by buffer, energy, the design space."""

from collections.abc import Callable, Sequence
from functools import partial
from statistics import geometric_mean
from typing import Any

from tilewright.fusion.flat import (
    FLAT_MODELS,
    Attention,
    dataflow_cost,
    flat_block,
    fused_costs,
    fused_space,
    table_words,
)
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, apart, counted, judge
from tilewright.reproduce.flat_runs import (
    AGREES,
    CLOUD,
    EDGE,
    NEAR,
    READING,
    Cells,
    least_room,
    machine_of,
    measured,
)
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, claims, reproduction

ROWS = (1, 64, 256)
TPU_TFLOPS, TPU_GBS = 123.0, 900.0
"""Of a TPU-v3 chip: Jouppi et al., A domain-specific supercomputer for training deep neural networks, CACM 2020."""
RIDGE = TPU_TFLOPS * 1e3 / TPU_GBS

FORMULAS, REFETCHED = claims("flat-tableA1")


@reproduction("flat-tableA1", Setting("quick", 1, {"models": tuple(FLAT_MODELS), "sequence": 512}),
              Setting("full", 1, {"models": tuple(FLAT_MODELS), "sequence": 4096}))
def table_a1(setting: Setting, runner: Runner) -> Findings:
    """Count the footprints of plans beside the formulas."""
    keys = [(model, name) for model in setting["models"] for name in ("m", "b", "h", *(f"r{rows}" for rows in ROWS))]
    found = runner.run([Cell({"model": model, "granularity": name, "sequence": setting["sequence"]},
                             partial(_footprint, model, name, setting["sequence"])) for model, name in keys])
    rows = tuple((model, name, value["printed"], value["words"], value["keys"])
                 for (model, name), value in zip(keys, found, strict=True))
    by = dict(zip(keys, found, strict=True))
    again = [by[model, "r64"]["keys"] / by[model, "h"]["keys"] for model in setting["models"]]
    judged = (judge(FORMULAS, sum(value["printed"] == value["words"] for value in found) / len(found),
                    f"{len(found)} footprints"),
              judge(REFETCHED, max(again), f"{max(again):.2f} times",
                    "4Nd of the formula is room for all keys and values of the head, twice: they stay. Plans that keep "
                    "fewer need less than the table says"))
    table = Table("footprints", "Words of buffer, batch 64", (
        "Model", "Granularity", "Table A.1", "Ours", "Words of K"), rows, (
        AGREES, "Bound: keys are fetched once at least, as they are here."))
    plot = Plot("footprints", "Words of buffer", [{"type": "bar", "x": [f"{row[0]} {row[1]}" for row in rows],
                                                  "y": [row[3] for row in rows]}],
                {"yaxis": {"type": "log", "title": {"text": "words"}}})
    return Findings((table,), judged, (plot,))


def _footprint(model: str, name: str, sequence: int) -> dict[str, Any]:
    """Return the table's words, those of the plan part by part, and the keys that it fetches of an instance."""
    block = flat_block(model, sequence)
    attention, heads = block.attention, FLAT_MODELS[model][1]
    instances = {"m": attention.instances, "b": heads}.get(name, 1)
    size = int(name[1:]) if name[0] == "r" else sequence
    tiles = fused_space(attention, machine_of(EDGE), "flat")
    chosen = (tiles.rows == size) & (tiles.key_chunk == sequence) & (tiles.value_chunk == sequence) & ~tiles.keys_outer
    costs = fused_costs(attention, machine_of(EDGE, 2.0**40), tiles.take(chosen))
    return {"printed": table_words(attention, name[0], size), "words": instances * int(costs.footprint_words[0]),
            "keys": int(costs.words["K"][0]) // attention.instances}


SUFFICIENT, LOW, HIGHER = claims("flat-figA2")


def _intensities(model: str, sequence: int, batch: int) -> dict[str, float]:
    """Return operations a byte (two a multiply-accumulate, words of two bytes, each once) by operator."""
    block = flat_block(model, sequence, batch)
    one = block.attention
    logits = one.rows * one.keys
    words = {"L": one.depth * (one.rows + one.keys) + logits, "A": one.width * (one.rows + one.keys) + logits,
             "f(L,A)": one.compulsory_words // one.instances}
    found = {name: logits * (one.depth + one.width if name[0] == "f" else one.depth) / words[name] for name in words}
    for each in block.products:
        moved = each.rows * each.depth + each.depth * each.columns + each.rows * each.columns
        found[each.name] = each.rows * each.depth * each.columns / moved
    return found


def _roofline(setting: Setting, runner: Runner, batch: int) -> Findings:
    keys = [(model, sequence) for model in setting["models"] for sequence in setting["sequences"]]
    found = runner.run([Cell({"model": model, "sequence": sequence, "batch": batch, "of": "intensity"},
                             partial(_intensities, model, sequence, batch)) for model, sequence in keys])
    pair = ("L", "A")
    dense = [value > RIDGE for each in found for name, value in each.items() if name not in (*pair, "f(L,A)")]
    low = [each[name] < RIDGE for each in found for name in pair]
    higher = [each["f(L,A)"] > max(each[name] for name in pair) and each["f(L,A)"] > RIDGE for each in found]
    judged: tuple[Judgement, ...] = (counted(SUFFICIENT, dense), counted(LOW, low))
    if batch == 1:
        judged += (counted(HIGHER, higher),)
    rows = tuple((model, sequence, name, value, min(TPU_TFLOPS, value * TPU_GBS / 1e3), TPU_TFLOPS)
                 for (model, sequence), each in zip(keys, found, strict=True) for name, value in each.items())
    table = Table("intensities", f"Operations a byte, batch {batch}; the ridge is {RIDGE:.0f}", (
        "Model", "Sequence", "Operator", "Operations a byte", "Attainable TFLOP/s", "Bound (TFLOP/s)"), rows, (
        f"TPU-v3: {TPU_TFLOPS:g} TFLOP/s, {TPU_GBS:g} GB/s a chip. The figure prints no numbers. {AGREES}",))
    plot = Plot("roofline", "Attainable by operations a byte", [
        {"type": "scatter", "mode": "markers", "x": [row[3] for row in rows], "y": [row[4] for row in rows],
         "text": [f"{row[0]} {row[1]} {row[2]}" for row in rows]}],
        {"xaxis": {"type": "log", "title": {"text": "operations a byte"}}, "yaxis": {"type": "log"}})
    return Findings((table,), judged, (plot,), (READING,))


@reproduction("flat-figA2", Setting("quick", 1, {"models": ("TrXL",), "sequences": (512, 1024, 2048)}),
              Setting("full", 1, {"models": ("TrXL",), "sequences": (512, 1024, 2048, 4096, 16384)}))
def figure_a2(setting: Setting, runner: Runner) -> Findings:
    """Count operations and bytes of batch 1."""
    return _roofline(setting, runner, 1)


@reproduction("flat-figA3", Setting("quick", 1, {"models": ("BERT", "TrXL", "XLM"), "sequences": (512,)}),
              Setting("full", 1, {"models": ("BERT", "TrXL", "XLM"), "sequences": (512,)}), claims=(SUFFICIENT, LOW))
def figure_a3(setting: Setting, runner: Runner) -> Findings:
    """Count operations and bytes of batch 64; ResNet-50 is left out."""
    return _roofline(setting, runner, 64)


BUFFERS = tuple(float(f"{10**(power / 2):.3g}") * 20e3 for power in range(11))
"""Bytes of the sweeps: 20 KB to 2 GB."""
MOST = 2.0**33


def swept(found: Cells, title: str, *notes: str) -> tuple[Table, Plot]:
    """Return the table and the plot of utilisation by buffer."""
    rows = tuple((*key[1:4], key[4] if len(key) > 4 else None, value["utilisation"], value["latency_cycles"],
                  value["bound_cycles"], value["energy_pj"], value["dram_words"]) for key, value in found.items())
    table = Table("buffers", title, ("Model", "Sequence", "Dataflow", "Buffer (B)", "Utilisation", "Cycles",
                                     "Bound (cycles)", "Energy (pJ)", "DRAM words"), rows, (*notes, AGREES, READING))
    lines = sorted({(row[1], row[2]) for row in rows})
    data = [{"type": "scatter", "mode": "lines+markers", "name": f"{name} {sequence:,}",
             "x": [row[3] for row in rows if row[1:3] == (sequence, name)],
             "y": [row[4] for row in rows if row[1:3] == (sequence, name)]} for sequence, name in lines]
    return table, Plot("buffers", title, data, {"xaxis": {"type": "log", "title": {"text": "bytes of buffer"}},
                                                "yaxis": {"title": {"text": "utilisation"}}})


def _rooms(runner: Runner, machine: str, attentions: Sequence[tuple[str, int]],
           dataflows: Sequence[tuple[str, float]]) -> dict[tuple[Any, ...], float]:
    """Return the least buffers with which dataflows reach utilisations, at most `MOST`."""
    keys = [(model, sequence, *each) for model, sequence in attentions for each in dataflows]

    def cell(model: str, sequence: int, name: str, reached: float) -> Cell:
        attention = flat_block(model, sequence).attention
        return Cell({"machine": machine, "model": model, "sequence": sequence, "dataflow": name, "reaches": reached},
                    lambda: {"bytes": min(MOST, least_room(machine, attention, name, reached))})

    found = runner.run([cell(*key) for key in keys])
    return {key: value["bytes"] for key, value in zip(keys, found, strict=True)}


NAIVE, LARGE, WHOLE, FEWER, TOP = claims("flat-figA7")
FIGURE_A7 = ("naive", "flex-m", "flex-b", "flex-h", "flat-m", "flat-b", "flat-h", "flat-r64", "flat-r256")


@reproduction("flat-figA7", Setting("quick", 1, {"buffers": BUFFERS[::2]}), Setting("full", 1, {"buffers": BUFFERS}))
def figure_a7(setting: Setting, runner: Runner) -> Findings:
    """Sweep buffers, and seek the least ones that reach what is printed."""
    at = (10e6, 100e6, 0.6e6, 2e9)
    found = measured(runner, [(EDGE, "BERT", 512, name, room) for name in FIGURE_A7
                              for room in sorted({*setting["buffers"], *at})])
    rooms = _rooms(runner, EDGE, [("BERT", 512)], [("flex-h", 0.92), ("flat-r64", 0.99)])
    flex, flat = rooms.values()

    def reached(name: str, room: float) -> float:
        return float(found[EDGE, "BERT", 512, name, room]["utilisation"])

    best = max(reached(name, 0.6e6) for name in ("flat-r64", "flat-r256"))
    table, plot = swept(found, "Utilisation of L and A, BERT, 512 tokens, edge")
    whole = reached("flex-m", 2e9)
    return Findings((table,), (
        judge(NAIVE, apart(reached("naive", 10e6), 0.2), f"{reached('naive', 10e6):.2f}"),
        judge(LARGE, apart(reached("naive", 100e6), 0.6), f"{reached('naive', 100e6):.2f}",
              "fixed tiles of the array's size gain nothing from more room"),
        judge(WHOLE, float(whole < NEAR), f"{whole:.2f} with 2 GB", "table A.1 says 403 M words for M, 0.8 GB"),
        judge(FEWER, flex / flat, f"{flex / 1e6:.2g} MB over {flat / 1e6:.2g} MB",
              "table A.1 has 0.52 M words for a head, 1 MB; 160 MB is nearer all logits of the batch"),
        judge(TOP, best, f"{best:.2f}")), (plot,))


NEAR_EDGE, LESS_EDGE, DILUTED = claims("flat-figA8", LESS_EDGE=10**1.5)
NEAR_CLOUD, LESS_CLOUD, FLEX_LARGE, FLEX_LONG = claims("flat-figA9", LESS_CLOUD=10**2.5)


def _optima(setting: Setting, runner: Runner, machine: str, model: str) -> tuple[Cells, dict[tuple[Any, ...], float]]:
    names = ("flex-opt", "flat-opt", "online-opt")
    found = measured(runner, [(machine, model, sequence, name, room) for sequence in setting["sequences"]
                              for name in names for room in (*setting["buffers"], 2e9)]
                     + [(machine, model, sequence, name) for sequence in setting["sequences"] for name in names])
    rooms = _rooms(runner, machine, [(model, sequence) for sequence in setting["sequences"]],
                   [("flex-opt", NEAR), ("flat-opt", NEAR), ("online-opt", NEAR)])
    return found, rooms


def _shared(found: Cells, rooms: dict[tuple[Any, ...], float], claims: tuple[Claim, Claim]) -> tuple[Judgement, ...]:
    """Judge what both figures say: utilisation with the machine's own buffer, and least buffers."""
    least, online = (min(value["utilisation"] for key, value in found.items() if key[3:] == (name,))
                     for name in ("flat-opt", "online-opt"))
    less, more = ([room / rooms[*key[:2], name, NEAR] for key, room in rooms.items() if key[2] == "flex-opt"]
                  for name in ("flat-opt", "online-opt"))
    return (judge(claims[0], least, f"{least:.2f}", f"{online:.2f} with an online softmax"),
            judge(claims[1], geometric_mean(less), ", ".join(f"{ratio:.2g}" for ratio in less),
                  "with an online softmax " + ", ".join(f"{ratio:.2g}" for ratio in more)))


@reproduction("flat-figA8", Setting("quick", 1, {"sequences": (512, 4096, 65536), "buffers": BUFFERS[::4]}),
              Setting("full", 1, {"sequences": (512, 4096, 65536), "buffers": BUFFERS}))
def figure_a8(setting: Setting, runner: Runner) -> Findings:
    """Sweep buffers on the edge machine."""
    found, rooms = _optima(setting, runner, EDGE, "BERT")
    blocks = measured(runner, [(EDGE, "BERT", 512, name) for name in ("flex-opt", "flat-opt")], block=True)
    flex, flat = (float(value["latency_cycles"]) for value in blocks.values())
    table, plot = swept(found, "Utilisation of L and A, BERT, edge")
    return Findings((table,), (*_shared(found, rooms, (NEAR_EDGE, LESS_EDGE)),
                               judge(DILUTED, apart(flex, flat), f"{flex / flat:.3f}")), (plot,))


@reproduction("flat-figA9", Setting("quick", 1, {"sequences": (4096, 16384, 262144), "buffers": BUFFERS[::4]}),
              Setting("full", 1, {"sequences": (4096, 16384, 262144), "buffers": BUFFERS}))
def figure_a9(setting: Setting, runner: Runner) -> Findings:
    """Sweep buffers on the cloud machine."""
    found, rooms = _optima(setting, runner, CLOUD, "XLM")
    short, long = (found[CLOUD, "XLM", sequence, "flex-opt", 2e9]["utilisation"]
                   for sequence in (min(setting["sequences"]), max(setting["sequences"])))
    table, plot = swept(found, "Utilisation of L and A, XLM, cloud")
    because = "logits in DRAM bind whatever the buffer holds: 256 x 256 elements ask for more than 400 GiB/s"
    return Findings((table,), (*_shared(found, rooms, (NEAR_CLOUD, LESS_CLOUD)),
                               judge(FLEX_LARGE, apart(short, 0.8), f"{short:.2f}", because),
                               judge(FLEX_LONG, apart(long, 0.6), f"{long:.2f}", because)), (plot,))


def _energies(name: str, machine: str, model: str) -> Callable[[Setting, Runner], Findings]:
    claim, = claims(name, 3**0.5)

    def run(setting: Setting, runner: Runner) -> Findings:
        """Take the least energies of both spaces."""
        found = measured(runner, [(machine, model, sequence, name, room) for sequence in setting["sequences"]
                                  for name in ("flex-opt", "flat-opt", "online-opt") for room in setting["buffers"]])
        pairs = {(sequence, room): found[machine, model, sequence, "flex-opt", room]["energy_pj"]
                 / found[machine, model, sequence, "flat-opt", room]["energy_pj"]
                 for sequence in setting["sequences"] for room in setting["buffers"]}
        table, plot = swept(found, f"Energy of L and A, {model}, {machine}")
        mean = geometric_mean(pairs.values())
        return Findings((table,), (judge(claim, mean, f"{mean:.2f} times; {min(pairs.values()):.2f} to "
                                         f"{max(pairs.values()):.2f}", "energies a word are of our technologies; the "
                                         "paper prints none"),), (plot,))

    return run


for _name, _machine, _model, _lengths in (("flat-figA10", EDGE, "BERT", (512, 4096, 65536)),
                                          ("flat-figA11", CLOUD, "XLM", (4096, 16384, 262144))):
    _measure = _energies(_name, _machine, _model)
    reproduction(_name, Setting("quick", 1, {"sequences": _lengths, "buffers": BUFFERS[2::4]}),
                 Setting("full", 1, {"sequences": _lengths, "buffers": BUFFERS}))(_measure)

CORNER, = claims("flat-figA12")


@reproduction("flat-figA12", Setting("quick", 1, {"rooms": 12}), Setting("full", 1, {"rooms": 40}))
def figure_a12(setting: Setting, runner: Runner) -> Findings:
    """Take the best of each family within every footprint."""
    rooms = [2.0**16 * 2 ** (16 * step / (setting["rooms"] - 1)) for step in range(setting["rooms"])]
    families = {"Flex": ("flex-b", "flex-h", "flex-r16", "flex-r64", "flex-r256"),
                "FLAT": ("flat-b", "flat-h", "flat-r16", "flat-r64", "flat-r256")}
    attention = flat_block("BERT", 512).attention
    found = runner.run([Cell({"family": name, "bytes": room}, lambda each=(names, room): _best_of(attention, *each))
                        for name, names in families.items() for room in rooms])
    best = {name: [value["utilisation"] for value in found[place * len(rooms):][:len(rooms)]]
            for place, name in enumerate(families)}
    told = [1.0 if flat > flex * (1 + 1e-6) else 0.5 if flat >= flex * (1 - 1e-6) else 0.0
            for flex, flat in zip(best["Flex"], best["FLAT"], strict=True)]
    rows = tuple(zip(rooms, best["Flex"], best["FLAT"], [1.0] * len(rooms), strict=True))
    table = Table("corner", "Best utilisation within a footprint, named dataflows", ("Bytes", "Flex", "FLAT", "Bound"),
                  rows, (AGREES, READING))
    plot = Plot("corner", "Best utilisation within a footprint", [
        {"type": "scatter", "mode": "lines", "name": name, "x": rooms, "y": values} for name, values in best.items()],
        {"xaxis": {"type": "log", "title": {"text": "bytes"}}})
    return Findings((table,), (judge(CORNER, sum(told) / len(told), f"{sum(told):g} of {len(told)}",
                                     "with 2-byte words Flex is compute-bound too once a tile of rows fits"),), (plot,))


def _best_of(attention: Attention, names: Sequence[str], room: float) -> dict[str, Any]:
    machine = machine_of(EDGE, room)
    least = min(dataflow_cost(attention, machine, name).latency_cycles for name in names)
    return {"utilisation": attention.macs / machine.elements / least}
