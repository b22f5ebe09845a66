"""Figure 5.6 of the map-space study: what crossover is worth."""

from tilewright.jobs import Runner
from tilewright.report import contest_plot
from tilewright.reproduce.claims import Judgement, judge, lower
from tilewright.reproduce.gamma_contest import baselines
from tilewright.reproduce.mse_study import SIZES, Found, SearchSetup, contest_of, published, scores_table, searches
from tilewright.reproduce.searching import by_seed
from tilewright.reproduce.study import Findings, Setting, claims, reproduction
from tilewright.search.studies import CROSSOVER_ONLY

MACHINE = "accel-b"
FULL, WITHOUT, ONLY, STANDARD = "Gamma", "without crossover", "crossover only", "standard GA"
OURS, OURS_WITHOUT, OURS_ONLY = "our Gamma", "ours without crossover", "ours, crossover only"
TEN = 10.0

ORDER, HUGE, INADEQUATE, BEST = claims("mse-fig5.6", ORDER=TEN)


@reproduction("mse-fig5.6", Setting("quick", 5, {"samples": 5_000, "workloads": 3}),
              Setting("full", 10, {"samples": 5_000, "workloads": 3}))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search with and without crossover, with nothing else, and without domain operators."""
    names = tuple(SIZES)[:setting["workloads"]]
    ready, missing = baselines()
    methods = [(FULL, "gamma", published()), (WITHOUT, "gamma", published(crossover=False)),
               (ONLY, "gamma", published(())), (OURS, "gamma", {}), (OURS_WITHOUT, "gamma", {"crossover": 0.0}),
               (OURS_ONLY, "gamma", {name: float(rate) for name, rate in CROSSOVER_ONLY.items()}),
               *((STANDARD, method.mapper, {}) for method in ready if method.label == STANDARD)]
    found = searches(runner, [SearchSetup(name, title, mapper, options, MACHINE)
                                for name in names for title, mapper, options in methods], setting)
    labels = [title for title, _, _ in methods]
    plots = tuple(contest_plot(contest_of(found, name, labels), "samples", bands=False,
                               title=(f"curves-{place}", f"{name} on Accel-B")) for place, name in enumerate(names))
    notes = [f"Gamma has its published operators at rates of 0.5; ours has the extensions of this mapper, at its rates "
             f"({OURS_ONLY}: crossover at 1)."]
    notes.append("The standard GA was not measured: what it needs is not installed." if STANDARD in missing else
                 "The standard GA sees mappings as shares of the logarithms of sizes, and is told how far over the "
                 "memories a mapping is, which is kinder than tile sizes themselves and one penalty.")
    return Findings((scores_table(found, FULL, "Gamma with and without crossover"),), _judge(found, names), plots,
                    tuple(notes))


def _judge(found: Found, names: tuple[str, ...]) -> tuple[Judgement, ...]:
    seeds = by_seed(found)
    rivals = [title for title in (WITHOUT, ONLY, STANDARD) if (names[0], title) in found]

    def told(title: str, of: str = FULL) -> str:
        return ", ".join(f"{name} {found[name, title]['edp'] / found[name, of]['edp']:.2f}x" for name in names)

    def higher(*titles: str) -> list[float]:
        return [lower((one[name, FULL]["edp"], one[name, title]["edp"]) for name in names for title in titles)
                for one in seeds]

    lowest = {name: min([FULL, *rivals], key=lambda title: found[name, title]["edp"]) for name in names}
    ten = Judgement(ORDER, "not measured", "not judged", "no standard GA can be built here")
    if STANDARD in rivals:
        ten = judge(ORDER, [min(one[name, STANDARD]["edp"] / one[name, FULL]["edp"] for name in names)
                            for one in seeds], f"{told(STANDARD)}; over our Gamma: {told(STANDARD, OURS)}")
    return (
        ten, judge(HUGE, higher(WITHOUT), f"{told(WITHOUT)}; ours: {told(OURS_WITHOUT, OURS)}"),
        judge(INADEQUATE, higher(ONLY), f"{told(ONLY)}; ours: {told(OURS_ONLY, OURS)}"),
        judge(BEST, higher(*rivals), "lowest: " + ", ".join(f"{name} {title}" for name, title in lowest.items())))
