"""Ruby, figures 10 and 12: ResNet-50 layer by layer, perfect tiling against Ruby-S, on two kinds of machine."""

from collections.abc import Sequence

from tilewright.hardware import Accelerator
from tilewright.reproduce.ruby_contest import (
    Entry,
    Match,
    below,
    change,
    layer_table,
    mean_ratio,
    near,
    network_layers,
    play,
    ratio,
    ratio_plot,
    worse,
)
from tilewright.reproduce.ruby_machines import eyeriss_like, simba_like
from tilewright.reproduce.running import Watch
from tilewright.reproduce.study import REPRODUCTIONS, Claim, Findings, Judgement, Setting, Study, Table, Verdict

Rows = list[tuple[Entry, Entry]]
_NAMED = 5

NEVER_WORSE = Claim(
    "Ruby-S contains the perfect factorisations, so it need not lose", "all layers at or below 1, but for layer 1 on "
    "Simba", "holds where the median EDP of no layer is above perfect tiling's at equal samples, in direction where "
    "at most one layer in ten is, by under 5 %")

CLAIMS10 = (
    Claim("Ruby-S lowers the EDP of all of ResNet-50", "-14 %",
          "holds within 5 points, in direction for any other decrease"),
    Claim("It does so by fewer cycles", "-17 %",
          "holds within 5 points, in direction for any other decrease"),
    Claim("for slightly more energy", "+2 %",
          "holds within 5 points, in direction where it falls less than the cycles"),
    Claim("Layers gain up to 50 % of EDP, 20 % on average", "up to -50 %, average -20 %",
          "holds where the best layer gains 40 % or more and the (geometric) mean is -15 % or lower, in direction for "
          "a mean of -5 %"),
    Claim("Pointwise and dense layers gain most", "named as the reason",
          "holds where their mean EDP falls at least 10 points further than that of the other layers"),
    NEVER_WORSE,
)
CLAIMS12 = (
    Claim("On 15 elements of four 4-wide units, Ruby-S lowers the EDP of ResNet-50", "-10 %",
          "holds within 5 points, in direction for any other decrease"),
    Claim("Several layers gain up to 25 %", "up to -25 %",
          "holds where the best layer gains 20 % to 30 %, in direction where it gains more"),
    Claim("On 9 elements of three 3-wide units it gains far more", "-45 %",
          "holds within 5 points, in direction where it gains more than on 15 elements"),
    NEVER_WORSE,
)


def rows_of(watch: Watch, setting: Setting, machine: Accelerator, flow: str, mapper: str) -> Rows:
    """Return perfect tiling and Ruby-S for every layer that the setting asks for."""
    layers = network_layers("resnet50", every=setting["every"])
    matches = [Match(layer, machine, strategy, flow, mapper, setting["samples"])
               for layer in layers for strategy in ("perfect", "ruby-s")]
    found = play(watch, matches, setting.seeds)
    return list(zip(found[::2], found[1::2], strict=True))


def never_worse(by_mapper: dict[str, Rows], name: str = "edp") -> Judgement:
    """Judge whether Ruby-S ends above perfect tiling anywhere, by the mapper named first; tell the others' losses."""
    told: list[str] = []
    verdict: Verdict | None = None
    for mapper, rows in by_mapper.items():
        lost = worse(rows, name)
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        told.append(f"{mapper}: {len(rows) - len(lost)} of {len(rows)} at or below"
                    + (f", above: {', '.join(lost[:_NAMED])}{more}" if lost else ""))
        largest = max(ruby[name] / perfect[name] for perfect, ruby in rows)
        if verdict is None:
            slight = len(lost) <= len(rows) / 10 and largest < 1.05
            verdict = "holds" if not lost else "holds in direction" if slight else "does not hold"
    assert verdict is not None
    return Judgement(NEVER_WORSE, "; ".join(told), verdict)


def by_mapper_text(by_mapper: dict[str, Rows], name: str) -> str:
    """Return the whole network's change under each mapper."""
    return ", ".join(f"{change(ratio(rows, name))} ({mapper})" for mapper, rows in by_mapper.items())


def run10(setting: Setting, watch: Watch) -> Findings:
    """Search ResNet-50 on the Eyeriss-like baseline with every mapper of the setting; judge by the first."""
    machine = eyeriss_like()
    by_mapper = {mapper: rows_of(watch, setting, machine, "row-stationary", mapper) for mapper in setting["mappers"]}
    rows = next(iter(by_mapper.values()))
    edp, cycles, energy = (ratio(rows, name) for name in ("edp", "latency_cycles", "energy_pj"))
    best, mean = min(ruby["edp"] / perfect["edp"] for perfect, ruby in rows), mean_ratio(rows)
    flat = [pair for pair in rows if _is_flat(pair[0])]
    other = [pair for pair in rows if not _is_flat(pair[0])]
    judged = [
        Judgement(CLAIMS10[0], by_mapper_text(by_mapper, "edp"), near(edp, 0.86)),
        Judgement(CLAIMS10[1], by_mapper_text(by_mapper, "latency_cycles"), near(cycles, 0.83)),
        Judgement(CLAIMS10[2], by_mapper_text(by_mapper, "energy_pj"),
                  "holds" if 0.97 <= energy <= 1.07 else "holds in direction" if cycles < energy else "does not hold"),
        Judgement(CLAIMS10[3], f"up to {change(best)}, mean {change(mean)}",
                  "holds" if best <= 0.6 and mean <= 0.85 else below(mean, 0, 0.95)),
        _flat_judgement(flat, other),
        never_worse(by_mapper),
    ]
    return Findings(_tables(by_mapper, machine), tuple(judged), (
        ratio_plot("layers", f"Ruby-S over perfect tiling by layer ({next(iter(by_mapper))}; figure 10)", rows),))


def _tables(by_mapper: dict[str, Rows], machine: Accelerator) -> tuple[Table, ...]:
    return tuple(layer_table(f"{machine.name}-{mapper}", f"ResNet-50 on {machine.name}, {mapper}", rows)
                 for mapper, rows in by_mapper.items())


def _is_flat(entry: Entry) -> bool:
    """Whether a layer is pointwise or dense."""
    sizes = entry.match.layer.operator.sizes
    return sizes.get("R", 1) == sizes.get("S", 1) == 1


def _flat_judgement(flat: Sequence[tuple[Entry, Entry]], other: Sequence[tuple[Entry, Entry]]) -> Judgement:
    if not flat or not other:
        return Judgement(CLAIMS10[4], "only one kind was measured", "not judged")
    of_flat, of_other = mean_ratio(flat), mean_ratio(other)
    return Judgement(CLAIMS10[4], f"pointwise and dense {change(of_flat)}, others {change(of_other)}",
                     below(of_flat, of_other - 0.1, of_other))


def run12(setting: Setting, watch: Watch) -> Findings:
    """Search ResNet-50 on two Simba-like machines; judge by the mapper named first."""
    machines = (simba_like(15, 4, 4), simba_like(9, 3, 3))
    found = [{mapper: rows_of(watch, setting, machine, "channels", mapper) for mapper in setting["mappers"]}
             for machine in machines]
    large, small = (next(iter(by_mapper.values())) for by_mapper in found)
    edp15, edp9 = ratio(large, "edp"), ratio(small, "edp")
    best = min(ruby["edp"] / perfect["edp"] for perfect, ruby in large)
    lost = never_worse({f"{mapper} on {machine.name}": rows for machine, by_mapper in zip(machines, found, strict=True)
                        for mapper, rows in by_mapper.items()})
    judged = (
        Judgement(CLAIMS12[0], by_mapper_text(found[0], "edp"), near(edp15, 0.9)),
        Judgement(CLAIMS12[1], f"up to {change(best)}", "holds" if 0.7 <= best <= 0.8 else below(best, 0, 0.7)),
        Judgement(CLAIMS12[2], by_mapper_text(found[1], "edp"),
                  "holds" if near(edp9, 0.55) == "holds" else below(edp9, 0, edp15)),
        lost,
    )
    tables = [table for machine, by_mapper in zip(machines, found, strict=True)
              for table in _tables(by_mapper, machine)]
    plots = tuple(ratio_plot(machine.name, f"Ruby-S over perfect tiling by layer on {machine.name} (figure 12)",
                             next(iter(by_mapper.values())))
                  for machine, by_mapper in zip(machines, found, strict=True))
    return Findings(tuple(tables), judged, plots)


_QUICK = Setting("quick", 3, {"mappers": ("gamma",), "samples": 5_000, "every": 1})
_FULL = Setting("full", 10, {"mappers": ("gamma", "random-pruned"), "samples": 20_000, "every": 1})

REPRODUCTIONS.register("ruby-fig10")(Study(
    "ruby-fig10", "ResNet-50 on an Eyeriss-like machine: perfect tiling against Ruby-S",
    "Horeni et al., Ruby, ISPASS 2022, figure 10", CLAIMS10, _QUICK, _FULL, run10))
REPRODUCTIONS.register("ruby-fig12")(Study(
    "ruby-fig12", "ResNet-50 on Simba-like machines: perfect tiling against Ruby-S",
    "Horeni et al., Ruby, ISPASS 2022, figure 12", CLAIMS12, _QUICK, _FULL, run12))
