"""Ruby, figures 10 and 12: ResNet-50 layer by layer, perfect tiling against Ruby-S, on two kinds of machine."""

from collections.abc import Callable

from tilewright.hardware import Accelerator
from tilewright.jobs import Runner
from tilewright.reproduce.claims import Claim, Judgement, apart, cases, gain, judge, lower, same
from tilewright.reproduce.ruby_contest import (
    RANDOM,
    Match,
    Rows,
    best_ratio,
    by_seed,
    change,
    layer_table,
    mean_ratio,
    network_layers,
    not_worse,
    play,
    ratio,
    ratio_plot,
    worse,
)
from tilewright.reproduce.ruby_machines import eyeriss_like, simba_like
from tilewright.reproduce.study import REPRODUCTIONS, Findings, Setting, Study, Table

_NAMED = 5

NEVER_WORSE = cases(
    "Ruby-S contains the perfect factorisations, so it need not lose", "all layers at or below 1, but for layer 1 on "
    "Simba", "the share of layers where Ruby-S is not above perfect tiling")
EDP10 = gain("Ruby-S lowers the EDP of all of ResNet-50", "-14 %", 0.86)
CYCLES10 = gain("It does so by fewer cycles", "-17 %", 0.83)
ENERGY10 = same("for slightly more energy", "+2 %", 0.83, "energy, which stands beside 17 % fewer cycles")
BEST10 = gain("Layers gain up to 50 % of EDP", "up to -50 %", 0.5, "the best layer's ratio")
MEAN10 = gain("and 20 % on average", "average -20 %", 0.8, "the geometric mean over layers")
FLAT10 = cases("Pointwise and dense layers gain most", "named as the reason",
               "the share of pairs with another layer in which such a layer's ratio is lower")
CLAIMS10 = (EDP10, CYCLES10, ENERGY10, BEST10, MEAN10, FLAT10, NEVER_WORSE)
EDP15 = gain("On 15 elements of four 4-wide units, Ruby-S lowers the EDP of ResNet-50", "-10 %", 0.9)
BEST15 = gain("Several layers gain up to 25 %", "up to -25 %", 0.75, "the best layer's ratio")
EDP9 = gain("On 9 elements of three 3-wide units it gains far more", "-45 %", 0.55)
CLAIMS12 = (EDP15, BEST15, EDP9, NEVER_WORSE)
BESIDE = ("Judged is the paper's mapper, random search that ends after 3,000 mappings in a row without improvement on "
          "each of 24 threads; ours stand beside it, at equal samples.")


def rows_of(runner: Runner, setting: Setting, machine: Accelerator, flow: str, mapper: str) -> Rows:
    """Return perfect tiling and Ruby-S for every layer that the setting asks for."""
    layers = network_layers("resnet50", every=setting["every"])
    matches = [Match(layer, machine, strategy, flow, mapper, setting["samples"])
               for layer in layers for strategy in ("perfect", "ruby-s")]
    found = play(runner, matches, setting.seeds)
    return list(zip(found[::2], found[1::2], strict=True))


def never_worse(by_mapper: dict[str, Rows], name: str = "edp") -> Judgement:
    """Judge whether Ruby-S ends above perfect tiling anywhere, by the mapper named first; tell the others' losses."""
    told: list[str] = []
    for mapper, rows in by_mapper.items():
        lost = worse(rows, name)
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        told.append(f"{mapper}: {len(rows) - len(lost)} of {len(rows)} at or below"
                    + (f", above: {', '.join(lost[:_NAMED])}{more}" if lost else ""))
    rows = next(iter(by_mapper.values()))
    return judge(NEVER_WORSE, [not_worse(one, name) for one in by_seed(rows)], "; ".join(told))


def judged_ratio(claim: Claim, by_mapper: dict[str, Rows], measure: Callable[[Rows], float]) -> Judgement:
    """Judge a ratio of the mapper named first, and tell those of the others."""
    told = ", ".join(f"{change(measure(rows))} ({mapper})" for mapper, rows in by_mapper.items())
    return judge(claim, [measure(one) for one in by_seed(next(iter(by_mapper.values())))], told)


def run10(setting: Setting, runner: Runner) -> Findings:
    """Search ResNet-50 on the Eyeriss-like baseline with every mapper of the setting; judge by the first."""
    machine = eyeriss_like()
    by_mapper = {mapper: rows_of(runner, setting, machine, "row-stationary", mapper) for mapper in setting["mappers"]}
    rows = next(iter(by_mapper.values()))
    judged = (
        judged_ratio(EDP10, by_mapper, lambda one: ratio(one, "edp")),
        judged_ratio(CYCLES10, by_mapper, lambda one: ratio(one, "latency_cycles")),
        _energy(by_mapper), judged_ratio(BEST10, by_mapper, best_ratio), judged_ratio(MEAN10, by_mapper, mean_ratio),
        _flat(rows), never_worse(by_mapper))
    return Findings(_tables(by_mapper, machine), judged, (
        ratio_plot("layers", f"Ruby-S over perfect tiling by layer ({next(iter(by_mapper))}; figure 10)", rows),),
        (BESIDE,))


def _energy(by_mapper: dict[str, Rows]) -> Judgement:
    told = ", ".join(f"{change(ratio(rows, 'energy_pj'))} ({mapper})" for mapper, rows in by_mapper.items())
    return judge(ENERGY10, [apart(ratio(one, "energy_pj"), 1.0) for one in by_seed(next(iter(by_mapper.values())))],
                 told)


def _tables(by_mapper: dict[str, Rows], machine: Accelerator) -> tuple[Table, ...]:
    return tuple(layer_table(f"{machine.name}-{mapper}", f"ResNet-50 on {machine.name}, {mapper}", rows)
                 for mapper, rows in by_mapper.items())


def _flat(rows: Rows) -> Judgement:
    """Judge whether layers without a window gain more than those with one."""
    def split(one: Rows) -> tuple[Rows, Rows]:
        sizes = [perfect.match.layer.operator.sizes for perfect, _ in one]
        flat = [each.get("R", 1) == each.get("S", 1) == 1 for each in sizes]
        return ([pair for pair, plain in zip(one, flat, strict=True) if plain],
                [pair for pair, plain in zip(one, flat, strict=True) if not plain])

    def gains(one: Rows) -> list[float]:
        return [ruby["edp"] / perfect["edp"] for perfect, ruby in one]

    if not all(split(rows)):
        return Judgement(FLAT10, "only one kind was measured", "not judged")
    flat, other = (change(mean_ratio(part)) for part in split(rows))
    return judge(FLAT10, [lower((a, b) for a in gains(split(one)[0]) for b in gains(split(one)[1]))
                          for one in by_seed(rows)], f"pointwise and dense {flat}, others {other}")


def run12(setting: Setting, runner: Runner) -> Findings:
    """Search ResNet-50 on two Simba-like machines; judge by the mapper named first."""
    machines = (simba_like(15, 4, 4), simba_like(9, 3, 3))
    found = [{mapper: rows_of(runner, setting, machine, "channels", mapper) for mapper in setting["mappers"]}
             for machine in machines]
    lost = never_worse({f"{mapper} on {machine.name}": rows for machine, by_mapper in zip(machines, found, strict=True)
                        for mapper, rows in by_mapper.items()})
    judged = (
        judged_ratio(EDP15, found[0], lambda one: ratio(one, "edp")), judged_ratio(BEST15, found[0], best_ratio),
        judged_ratio(EDP9, found[1], lambda one: ratio(one, "edp")), lost)
    tables = [table for machine, by_mapper in zip(machines, found, strict=True)
              for table in _tables(by_mapper, machine)]
    plots = tuple(ratio_plot(machine.name, f"Ruby-S over perfect tiling by layer on {machine.name} (figure 12)",
                             next(iter(by_mapper.values())))
                  for machine, by_mapper in zip(machines, found, strict=True))
    return Findings(tuple(tables), judged, plots, (BESIDE,))


_QUICK = Setting("quick", 3, {"mappers": (RANDOM, "gamma"), "samples": 5_000, "every": 4})
_FULL = Setting("full", 10, {"mappers": (RANDOM, "gamma"), "samples": 20_000, "every": 1})

REPRODUCTIONS.register("ruby-fig10")(Study(
    "ruby-fig10", "ResNet-50 on an Eyeriss-like machine: perfect tiling against Ruby-S",
    "Horeni et al., Ruby, ISPASS 2022, figure 10", CLAIMS10, _QUICK, _FULL, run10))
REPRODUCTIONS.register("ruby-fig12")(Study(
    "ruby-fig12", "ResNet-50 on Simba-like machines: perfect tiling against Ruby-S",
    "Horeni et al., Ruby, ISPASS 2022, figure 12", CLAIMS12, _QUICK, _FULL, run12))
