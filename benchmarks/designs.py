"""Design methods at equal samples, within the budgets of DiGamma or like DOSA; and the tuning of ``digamma``.

Usage: python benchmarks/designs.py [--methods digamma cma-es ...] [--networks ...] [--platforms edge cloud]
       [--samples 40000] [--seeds 5] [--rounds 12]
       python benchmarks/designs.py --platforms gemmini --networks resnet50 bert-base --samples 10000 --seeds 3
       --methods auto gradient two-loop:outer=random,share=16 two-loop:outer=gp,share=16
       python benchmarks/designs.py --tune 200 [--networks ...] [--platforms ...] [--samples 40000] [--seeds 2]

A method may carry options, as in ``digamma:preset=release``. Printed are medians, least and largest of the latency over
seeds, in how many seeds anything was found within the budget, CPU seconds a run, and after ``--rounds`` of splitting
the median over the bound of the whole budget. On ``gemmini`` it is the energy-delay product, of machines as in
`gemmini-like.yaml` with any array up to 128 x 128. ``--tune``
searches the options of ``digamma`` by Optuna (TPE): the mean over problems of the logarithm of the median latency, over
other seeds than those that methods are compared on; it begins with the preset ``tuned``, and leaves a trial whose mean
over the first problems is worse than most. What it found is printed as a preset.
"""

import argparse
import json
import math
import time
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from tilewright.codesign import DesignProblem, budget_bound, design, read_limits
from tilewright.codesign.methods.digamma import digamma_options
from tilewright.hardware import find_design_space
from tilewright.jobs import Runner
from tilewright.reproduce.digamma_designs import BUDGETS, NETWORKS
from tilewright.reproduce.digamma_designs import problem as platform_problem
from tilewright.workload import unique_operators, zoo

METHODS = ("digamma", "digamma:preset=release", "random", "ga", "pso", "tbpsa", "one-plus-one", "de", "portfolio",
           "cma-es")
TUNING_SEED = 1000
SHARES = ("crossover", "reorder", "tiles", "hardware", "parallel", "grow", "age", "exchange", "parents", "reach")
LOW_SHARES = {"elite": 0.02, "layers": 0.05}
COUNTS = {"population": (10, 100), "genes": (1, 4), "trims": (0, 8)}
"""What is tuned: shares up to 1, those evenly in their logarithm from so much, and counts."""
SPACE = Path(__file__).with_name("gemmini-like.yaml")


@cache
def problem(network: str, platform: str) -> DesignProblem:
    """Return the design for a network: of a platform of DiGamma, or of machines like Gemmini."""
    if platform != "gemmini":
        return platform_problem(network, platform, free=False, keeping=False)
    return DesignProblem.of([(unique_operators(zoo.load(network)), 1.0)], find_design_space(str(SPACE)),
                            read_limits("elements=16384"), objective="edp")


def score(of: tuple[str, str], method: str, options: dict[str, Any], samples: int, seed: int) -> float:
    """Return the best score of a run."""
    return design(problem(*of), method, samples=samples, seed=seed, runner=Runner(workers=1),
                  options=options, proof=0).score


def contender(text: str) -> tuple[str, dict[str, Any]]:
    """Return method and options of ``digamma:preset=release,population=30``."""
    method, _, given = text.partition(":")
    pairs = [pair.split("=") for pair in given.split(",") if pair]

    def read(value: str) -> Any:
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value

    return method, {name: read(value) for name, value in pairs}


def compare(asked: argparse.Namespace) -> None:
    """Print a row for each problem and method."""
    heads = "".join(f"{head:>11}" for head in ("median", "least", "largest"))
    print(f"{'platform':<9}{'network':<14}{'method':<40}{heads}{'found':>7}{'CPU s':>7}{'/ bound':>9}")
    for platform in asked.platforms:
        for network in asked.networks:
            bound = budget_bound(problem(network, platform), asked.rounds) if asked.rounds else math.nan
            for text in asked.methods:
                began = time.process_time()
                found = [score((network, platform), *contender(text), asked.samples, seed)
                         for seed in range(asked.seeds)]
                seconds = (time.process_time() - began) / asked.seeds
                feasible = sum(map(math.isfinite, found))
                print(f"{platform:<9}{network:<14}{text:<40}{median(found):>11.4g}{min(found):>11.4g}{max(found):>11.4g}"
                      f"{feasible:>7}{seconds:>7.2f}{median(found) / bound:>9.3f}", flush=True)


def tune(asked: argparse.Namespace) -> None:
    """Print the best options of ``digamma`` that Optuna finds."""
    import optuna

    known = vars(digamma_options({}))

    def loss(trial: Any) -> float:
        found: dict[str, Any] = {name: round(trial.suggest_float(name, 0.0, 1.0), 2) for name in SHARES}
        found |= {name: round(trial.suggest_float(name, low, 1.0, log=True), 2) for name, low in LOW_SHARES.items()}
        found |= {name: trial.suggest_int(name, *most, log=most[0] > 0) for name, most in COUNTS.items()}
        trial.set_user_attr("options", {"ranked": True, "logarithmic": True, "exact": True, **found})
        options, logs = {"preset": "release", **trial.user_attrs["options"]}, list[float]()
        for at, of in enumerate(product(asked.networks, asked.platforms)):
            logs.append(math.log(min(median(score(of, "digamma", options, asked.samples, TUNING_SEED + seed)
                                            for seed in range(asked.seeds)), 1e30)))
            trial.report(fmean(logs), at)
            if trial.should_prune():
                raise optuna.TrialPruned
        return fmean(logs)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0, multivariate=True),
                                pruner=optuna.pruners.MedianPruner(n_startup_trials=4))
    study.enqueue_trial({name: known[name] for name in (*SHARES, *LOW_SHARES, *COUNTS)})

    def told(study: Any, trial: Any) -> None:
        if study.best_trial.number == trial.number:
            print(f"{trial.number:>5} {trial.value:.4f} {json.dumps(trial.user_attrs['options'])}", flush=True)

    study.optimize(loss, asked.tune, callbacks=[told])


def main() -> None:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--platforms", nargs="+", default=list(BUDGETS))
    parser.add_argument("--samples", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--tune", type=int, default=0)
    asked = parser.parse_args()
    (tune if asked.tune else compare)(asked)


if __name__ == "__main__":
    main()
