"""FLAT, figures A.7 to A.12: what dataflows reach with which buffer, what energy, and the design space."""

from collections.abc import Callable, Sequence
from statistics import geometric_mean
from typing import Any

from tilewright.fusion.flat import Attention, dataflow_cost, flat_block
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, apart, judge
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
