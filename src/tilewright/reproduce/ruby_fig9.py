"""Ruby, figure 9: AlexNet's second layer on the Eyeriss-like array, mapped by hand, by perfect tiling, by Ruby-S."""


from tilewright.cost import DenseModel
from tilewright.jobs import Runner
from tilewright.mapping import LevelLoops, Loop, Mapping, dump_mapping
from tilewright.reproduce.claims import Judgement, judge
from tilewright.reproduce.ruby_contest import PARTS, RANDOM, Entry, Match, change, eyeriss_like, oracle_word
from tilewright.reproduce.searching import Layer, SeededSearch, bound_figures, by_seed, costs, mapping_counted, play
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, Value, claims, reproduction
from tilewright.workload import Operator, convolution

PERFECT, BYHAND, RUBY, EDP, ENERGY = claims("ruby-fig9")
HAND = "by hand"


def layer() -> Operator:
    """Return AlexNet's second layer as the paper has it: 27 x 27 x 48 in, 5 x 5 filters, 96 of them."""
    return convolution("alexnet-conv2", in_channels=48, out_channels=96, out_size=(27, 27), kernel=5)


def strip_mined() -> Mapping:
    """Return Eyeriss's own mapping of the layer (Chen et al., ISCA 2016, and table III of JSSC 2017).

    27 output rows fold into strips of 14 and 13, stacked on the 12 rows of the array above one another, 5 filter rows
    each. An element works on 16 filters and 2 channels at a time (p = 16, q = 2); the buffer gathers the sums of 64
    filters over all channels (m = 64), while output columns slide past.
    """
    return Mapping((
        LevelLoops("DRAM", (Loop("K", 64), Loop("C", 2))),
        LevelLoops("GLB", (Loop("K", 16), Loop("Q", 1))),
        LevelLoops("PEs", (Loop("P", 2, "X"), Loop("P", 1, "Y"), Loop("R", 1, "Y"))),
        LevelLoops("Spads", (Loop("C", 1), Loop("S", 1), Loop("K", 1))),
    ))


@reproduction("ruby-fig9", Setting("quick", 3, {"mappers": (RANDOM, "gamma"), "samples": 20_000}),
              Setting("full", 10, {"mappers": (RANDOM, "gamma"), "samples": 100_000}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Cost the mapping by hand, search both spaces with every mapper, and compare; judge by the first mapper."""
    operator, machine = layer(), eyeriss_like()
    text = dump_mapping(strip_mined(), operator, machine)

    def case(match: Match) -> SeededSearch:
        key: dict[str, object] = {"layer": operator.name, "machine": machine.name, "strategy": HAND, "mapping": text}
        alone = Cell(key, lambda: {**costs(DenseModel(operator, machine).cost(strip_mined())), "mapping": text})
        by_hand = SeededSearch([alone], mapping_counted(key, operator, machine))
        return by_hand if match.strategy == HAND else match.case(setting.seeds)

    asked = [(HAND, "", 0), *((strategy, mapper, setting["samples"]) for mapper in setting["mappers"]
                              for strategy in ("perfect", "ruby-s"))]
    found = play(runner, [Match(Layer("alexnet", operator.name, 1, operator), machine, strategy, "row-stationary",
                                mapper, samples) for strategy, mapper, samples in asked], case)
    return Findings((_table(found),), _judge(found), (_plot(found),), tuple(
        f"{_name(entry)}:\n{entry.median['mapping']}" for entry in found[:3] if entry.median))


def use(entry: Entry) -> float:
    """Return the share of elements at work, averaged over the steps of compute."""
    return entry.of.layer.operator.macs / (entry["steps"] * entry.of.machine.compute_instances)


def _name(entry: Entry) -> str:
    return f"{entry.of.strategy}{f', {entry.of.mapper}' if entry.of.mapper else ''}"


def _table(entries: list[Entry]) -> Table:
    bound = bound_figures(layer(), eyeriss_like())
    hand = entries[0]
    rows: list[tuple[Value, ...]] = [
        (_name(entry), 100 * use(entry), entry["edp"], entry["edp"] / hand["edp"], entry["energy_pj"],
         entry["energy_pj"] / hand["energy_pj"], int(entry["latency_cycles"]), int(entry["steps"]),
         "agrees" if entry.oracle and entry.oracle["agrees"] else "disagrees") for entry in entries]
    rows.append(("bound", None, bound["edp"], bound["edp"] / hand["edp"], bound["energy_pj"],
                 bound["energy_pj"] / hand["energy_pj"], int(max(bound["compute_cycles"], bound["data_cycles"])),
                 int(bound["compute_cycles"]), ""))
    published: tuple[tuple[Value, ...], ...] = (
        ("published: by hand", 85, None, 1.0, None, 1.0, None, None, ""),
        ("published: perfect", 71, None, None, None, None, None, None, ""),
        ("published: ruby-s", 85, None, 0.84, None, 0.9, None, None, ""))
    return Table("mappings", "AlexNet layer 2 on the Eyeriss-like array", (
        "Mapping", "Use (%)", "EDP (pJ x cycles)", "over by hand", "Energy (pJ)", "over by hand ", "Cycles", "Steps",
        "Oracle"), (*published, *rows), (oracle_word(entries),))


def _judge(entries: list[Entry]) -> tuple[Judgement, ...]:
    hand, perfect, ruby = entries[:3]
    seeds = by_seed((hand, perfect, ruby))
    beside = f"; perfect tiling {change(perfect['edp'] / hand['edp'])} against the mapping by hand"
    ours = "".join(f"; {_name(entry)}: {100 * use(entry):.1f} %, EDP {change(entry['edp'] / hand['edp'])}"
                   for entry in entries[3:])
    return (
        judge(PERFECT, [use(p) for _, p, _ in seeds], f"{100 * use(perfect):.1f} %{ours}"),
        judge(BYHAND, [use(h) / use(p) for h, p, _ in seeds], f"{100 * use(hand):.1f} %",
              "27 rows on two strips of 14: 135 of 168 elements work on average"),
        judge(RUBY, [use(r) / use(p) for _, p, r in seeds], f"{100 * use(ruby):.1f} %"),
        judge(EDP, [r["edp"] / h["edp"] for h, _, r in seeds], change(ruby["edp"] / hand["edp"]) + beside),
        judge(ENERGY, [r["energy_pj"] / h["energy_pj"] for h, _, r in seeds],
              change(ruby["energy_pj"] / hand["energy_pj"])),
    )


def _plot(entries: list[Entry]) -> Plot:
    hand = entries[0]
    data = [{"type": "bar", "name": text, "x": [_name(entry) for entry in entries], "marker": {"color": colour},
             "y": [entry[figure] / hand[figure] for entry in entries]} for text, figure, colour in PARTS]
    return Plot("mappings", "Against the mapping by hand", data, {
        "barmode": "group", "yaxis": {"title": {"text": "over the mapping by hand"}, "rangemode": "tozero"}})
