"""FLAT, table A.1 and figures A.2 and A.3: footprints of granularities, and where operators stand on a roofline."""

from functools import partial
from typing import Any

from tilewright.fusion.flat import FLAT_MODELS, flat_block, fused_costs, fused_space, table_words
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Judgement, counted, judge
from tilewright.reproduce.flat_runs import AGREES, EDGE, READING, machine_of
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
