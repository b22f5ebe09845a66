"""Ruby, figures 4, 5 and 8: one dimension on a line of elements; every space is searched to its end."""

from typing import Any

from tilewright.jobs import Runner
from tilewright.mapping import padded
from tilewright.reproduce.claims import Judgement, apart, judge
from tilewright.reproduce.ruby_contest import grid, space_of, toy, vector
from tilewright.reproduce.searching import SeededSearch, bound_figures, confirmed, play, said, searched
from tilewright.reproduce.study import Findings, Plot, Setting, Table, Value, claims, reproduction

SIZE, ELEMENTS = 100, 6
MACHINE = grid(ELEMENTS)
FIG4, FIG5 = claims("ruby-fig4")
_SETTING = {"samples": 1_000_000}


@reproduction("ruby-fig4", Setting("quick", 1, _SETTING), Setting("full", 1, _SETTING))
def run4(setting: Setting, runner: Runner) -> Findings:
    """Search both spaces to their ends for the least latency."""
    found = play(runner, ("perfect", "ruby-s"), lambda strategy: searched(
        {"strategy": strategy}, space_of(vector(SIZE), MACHINE, strategy), 1, mapper="exhaustive",
        samples=setting["samples"], objective="latency"))
    perfect, ruby = (int(tried["steps"]) for tried in found)
    last = SIZE - (ruby - 1) * ELEMENTS
    judged = (
        judge(FIG4, ((perfect == 20) + (SIZE / perfect == 5)) / 2, f"{perfect} steps, {SIZE / perfect:g} elements"),
        judge(FIG5, ((ruby == 17) + (last == 4) + (perfect - ruby == 3)) / 3,
              f"{ruby} steps, {last} elements in the last, {perfect - ruby} saved"))
    bound = bound_figures(vector(SIZE), MACHINE)
    rows = tuple((tried.of, value["samples"], value["steps"], int(bound["compute_cycles"]), 100 * value["utilisation"],
                  value["edp"], said(tried.oracle)) for tried in found for value in tried.runs)
    table = Table("spaces", f"{SIZE} elements on {ELEMENTS} processing elements", (
        "Space", "Mappings", "Fewest steps", "Compute bound (cycles)", "Use (%)", "EDP", "Oracle"), rows, (
        "Every mapping of both spaces was evaluated.",))
    plot = Plot("steps", "Fewest steps", [{"type": "bar", "x": [tried.of for tried in found], "y": [perfect, ruby]}],
                {"yaxis": {"title": {"text": "steps"}}})
    return Findings((table,), judged, (plot,))


LINE = 16
STRATEGIES = ("perfect", "padding", "ruby-s")
_SAMPLES = 1_000_000

PRIME, NOTHING, PADDING, ALWAYS = claims("ruby-fig8")


def sizes_of(setting: Setting) -> list[int]:
    """Return the sizes of the sweep: every so manieth up to the last, and those that the paper names."""
    return sorted({*range(setting["step"], setting["last"] + 1, setting["step"]), 100, 113, 127, 128})


@reproduction("ruby-fig8", Setting("quick", 1, {"step": 8, "last": 256}), Setting("full", 1, {"step": 1, "last": 512}))
def run8(setting: Setting, runner: Runner) -> Findings:
    """Search every space to its end at every size."""
    machine, sizes = toy(LINE), sizes_of(setting)

    def case(where: tuple[int, str]) -> SeededSearch:
        size, strategy = where
        operator = padded(vector(size), machine, to="side") if strategy == "padding" else vector(size)
        return searched({"size": size, "strategy": strategy}, space_of(operator, machine, strategy), 1,
                        mapper="exhaustive", samples=_SAMPLES)

    found = play(runner, [(size, strategy) for size in sizes for strategy in STRATEGIES], case)
    best = {tried.of: tried.runs[0] for tried in found}
    agree, asked, whole = confirmed(found)
    left = sum(not value["complete"] for value in best.values())
    ended = f"{left} searches ran out of samples" if left else f"all {len(best)} searches ended by themselves"
    table = Table("sweep", "EDP over that of Ruby-S, by the size of the dimension (figure 8)", (
        "Size", "PFM / Ruby-S", "Padding / Ruby-S", "EDP bound", "EDP Ruby-S", "Compute bound (cycles)", "Steps PFM",
        "Steps padding", "Steps Ruby-S", "Mappings PFM", "Mappings Ruby-S"),
        tuple(_row(size, best, machine) for size in sizes), (
        f"Every mapping of every space was evaluated ({ended}). The oracle confirms "
        f"{agree} of the {asked} best ones, {whole} walked whole. "
        "EDP in pJ x cycles.",))
    return Findings((table,), _judge(best, sizes), (_plot(best, sizes),))


def _row(size: int, best: Any, machine: Any) -> tuple[Value, ...]:
    perfect, pad, ruby = (best[size, strategy] for strategy in STRATEGIES)
    bound = bound_figures(vector(size), machine)
    return (size, perfect["edp"] / ruby["edp"], pad["edp"] / ruby["edp"], bound["edp"], ruby["edp"],
            int(bound["compute_cycles"]), perfect["steps"], pad["steps"], ruby["steps"], perfect["samples"],
            ruby["samples"])


def _judge(best: Any, sizes: list[int]) -> tuple[Judgement, ...]:
    def over(size: int, strategy: str) -> float:
        return float(best[size, strategy]["edp"] / best[size, "ruby-s"]["edp"])

    prime, pad_prime, pad = over(127, "perfect"), over(127, "padding"), over(113, "padding")
    above = [size for size in sizes if min(over(size, strategy) for strategy in STRATEGIES[:2]) < 1 - 1e-9]
    steps = best[127, "perfect"]["steps"]
    energy = best[113, "padding"]["energy_pj"] / best[113, "ruby-s"]["energy_pj"]
    return (
        judge(PRIME, steps / best[127, "ruby-s"]["steps"], f"{steps} steps, EDP {prime:.1f} times"),
        judge(NOTHING, apart(pad_prime, 1.0), f"{100 * (pad_prime - 1):+.1f} %"),
        judge(PADDING, pad, f"{100 * (pad - 1):+.1f} %",
              f"energy {100 * (energy - 1):+.1f} %; 113 and 128 take "
              f"{best[113, 'ruby-s']['steps']} and {best[113, 'padding']['steps']} steps"),
        judge(ALWAYS, 1 - len(above) / len(sizes),
              f"above at {', '.join(map(str, above))}" if above else "never above"),
    )


def _plot(best: Any, sizes: list[int]) -> Plot:
    names = {"perfect": ("perfect tiling", "@strong"), "padding": ("padding", "@curve-1"),
             "ruby-s": ("Ruby-S", "@curve-0")}
    data = [{"type": "scatter", "mode": "lines+markers", "name": name, "x": sizes,
             "y": [best[size, strategy]["edp"] / best[size, "ruby-s"]["edp"] for size in sizes],
             "line": {"color": colour}, "marker": {"size": 4}} for strategy, (name, colour) in names.items()]
    return Plot("sweep", "EDP over that of Ruby-S on 16 elements (lower is better)", data, {
        "xaxis": {"title": {"text": "Size of the dimension"}},
        "yaxis": {"type": "log", "title": {"text": "EDP / EDP of Ruby-S"}}}, "Best mapping of each space.")
