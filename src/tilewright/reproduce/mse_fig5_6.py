"""Figure 5.6 of the map-space study: what crossover is worth."""

from tilewright.reproduce.gamma_platforms import baselines
from tilewright.reproduce.mse_fig5_5 import most
from tilewright.reproduce.mse_study import SIZES, Entry, Found, contest_of, play, published, same_space, scores_table
from tilewright.reproduce.running import Watch
from tilewright.reproduce.study import QUARTER, REPRODUCTIONS, Claim, Findings, Judgement, Setting, Study, reaches
from tilewright.reproduce.study_plots import contest_plot
from tilewright.search.studies import CROSSOVER_ONLY, compare

MACHINE = "accel-b"
FULL, WITHOUT, ONLY, STANDARD = "Gamma", "without crossover", "crossover only", "standard GA"
OURS, OURS_WITHOUT, OURS_ONLY = "our Gamma", "ours without crossover", "ours, crossover only"
SURE = 0.05
TEN = 10.0

ORDER = Claim("Gamma performs an order of magnitude better than a standard genetic algorithm", "10x on all three",
              f"holds where the median EDP of the standard GA is 10 times Gamma's or more on all workloads, {QUARTER}")
HUGE = Claim("Disabling crossover hugely impacts performance", "named (figure 5.6)",
             "holds where the median EDP without it is at least 1.5 times Gamma's on all workloads, in direction where "
             "it is higher on some by more than luck (p at most 0.05)")
INADEQUATE = Claim("Crossover alone is not adequate either", "named",
                   "holds where its median EDP is higher than Gamma's on all workloads by more than luck (p at most "
                   "0.05), in direction where higher on all")
BEST = Claim("Crossover with all mutations gives the best mappings", "named",
             "holds where Gamma's median EDP is the lowest on all workloads, in direction on most, or where no variant "
             "is lower by more than luck (p at most 0.05)")
CLAIMS = (ORDER, HUGE, INADEQUATE, BEST)


def run(setting: Setting, watch: Watch) -> Findings:
    """Search with and without crossover, with nothing else, and without domain operators."""
    names = tuple(SIZES)[:setting["workloads"]]
    ready, missing = baselines()
    methods = [(FULL, "gamma", published()), (WITHOUT, "gamma", published(crossover=False)),
               (ONLY, "gamma", published(())), (OURS, "gamma", {}), (OURS_WITHOUT, "gamma", {"crossover": 0.0}),
               (OURS_ONLY, "gamma", {name: float(rate) for name, rate in CROSSOVER_ONLY.items()}),
               *((STANDARD, method.mapper, {}) for method in ready if method.label == STANDARD)]
    found = play(watch, [Entry(name, title, mapper, options, same_space(name, MACHINE))
                         for name in names for title, mapper, options in methods], setting.seeds, setting["samples"])
    labels = [title for title, _, _ in methods]
    judged = (_order(found, names), _huge(found, names), _only(found, names), _best(found, names))
    plots = tuple(contest_plot(contest_of(found, name, labels), "samples", bands=False,
                               title=(f"curves-{place}", f"{name} on Accel-B")) for place, name in enumerate(names))
    notes = [f"Gamma has its published operators at rates of 0.5; ours has the extensions of this mapper, at its rates "
             f"({OURS_ONLY}: crossover at 1)."]
    notes.append("The standard GA was not measured: what it needs is not installed." if STANDARD in missing else
                 "The standard GA sees mappings as shares of the logarithms of sizes, and is told how far over the "
                 "memories a mapping is, which is kinder than tile sizes themselves and one penalty.")
    return Findings((scores_table(found, FULL, "Gamma with and without crossover"),), judged, plots, tuple(notes))


def _ratios(found: Found, names: tuple[str, ...], title: str, of: str = FULL) -> dict[str, float]:
    return {name: found[name, title].edp / found[name, of].edp for name in names}


def _worse(found: Found, name: str, first: str, second: str) -> bool:
    """Whether the first is worse than the second by more than luck."""
    duel = compare(found[name, first].scores, found[name, second].scores)
    return duel.p <= SURE and duel.wins < 0.5


def _told(ratios: dict[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.2f}x" for name, ratio in ratios.items())


def _order(found: Found, names: tuple[str, ...]) -> Judgement:
    if (names[0], STANDARD) not in found:
        return Judgement(ORDER, "not measured", "not judged", "no standard GA can be built here")
    ratios = _ratios(found, names, STANDARD)
    least = min(ratios.values())
    own = _told(_ratios(found, names, STANDARD, OURS))
    return Judgement(ORDER, f"{_told(ratios)}; over our Gamma: {own}",
                     "holds" if least >= TEN else "holds in direction" if reaches(least, TEN) else "does not hold")


def _huge(found: Found, names: tuple[str, ...]) -> Judgement:
    ratios = _ratios(found, names, WITHOUT)
    sure = [name for name in names if _worse(found, name, WITHOUT, FULL)]
    own = _told(_ratios(found, names, OURS_WITHOUT, OURS))
    return Judgement(HUGE, f"{_told(ratios)}; ours: {own}",
                     "holds" if min(ratios.values()) >= 1.5 else "holds in direction" if sure else "does not hold")


def _only(found: Found, names: tuple[str, ...]) -> Judgement:
    ratios = _ratios(found, names, ONLY)
    sure = all(_worse(found, name, ONLY, FULL) for name in names)
    own = _told(_ratios(found, names, OURS_ONLY, OURS))
    return Judgement(INADEQUATE, f"{_told(ratios)}; ours: {own}",
                     "holds" if sure else "holds in direction" if min(ratios.values()) > 1 else "does not hold")


def _best(found: Found, names: tuple[str, ...]) -> Judgement:
    rivals = [title for title in (WITHOUT, ONLY, STANDARD) if (names[0], title) in found]
    lowest = {name: min([FULL, *rivals], key=lambda title: found[name, title].edp) for name in names}
    verdict = most([title == FULL for title in lowest.values()])
    beaten = any(_worse(found, name, FULL, title) for name in names for title in rivals)
    if verdict == "does not hold" and not beaten:
        verdict = "holds in direction"
    return Judgement(BEST, "lowest: " + ", ".join(f"{name} {title}" for name, title in lowest.items()), verdict,
                     "" if beaten else "no variant is lower by more than luck")


REPRODUCTIONS.register("mse-fig5.6")(Study(
    "mse-fig5.6", "What crossover is worth to Gamma, on Accel-B",
    "Kao, dissertation, Georgia Tech 2022, figure 5.6", CLAIMS,
    Setting("quick", 5, {"samples": 5_000, "workloads": 3}), Setting("full", 10, {"samples": 5_000, "workloads": 3}),
    run))
