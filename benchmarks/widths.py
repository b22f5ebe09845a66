"""AdaptNet's widths, which the paper does not tell: trials of Optuna, as CSV.

Usage: python benchmarks/widths.py [TRIALS [SAMPLES [DEVICE]]]

Each trial trains AdaptNet for two passes over nine tenths of uniform products on SAGAR (14 M; the same for all trials)
and tells how many of 100,000 others take as few cycles as they can. Embeddings are 4 to 40 wide, the hidden layer 32 to
512, steps 0.002 to 0.05 long; kilobytes are those of tables and weights at a byte each (published: 512).
"""

import sys
import time

import optuna

from tilewright.cost import SAGAR
from tilewright.learn import TrainingWatch
from tilewright.recommendation import (
    NETWORKS,
    Choices,
    NetworkKind,
    ProductSample,
    label,
    train_recommender,
    training_options,
)
from tilewright.recommendation.labels import LARGEST

PUBLISHED = {"width": 13, "hidden": 128, "rate": 0.01}
"""The hidden layer; the width is the most that 512 KB hold; the rate is ours."""


def main(trials: int, samples: int, device: str) -> None:
    choices = Choices(SAGAR, "published")
    known = label(choices, ProductSample("uniform", samples, 0))
    unseen = label(choices, ProductSample("uniform", 100_000, 1))

    def learn(trial: optuna.Trial) -> float:
        width, hidden = trial.suggest_int("width", 4, 40), trial.suggest_int("hidden", 32, 512, log=True)
        rate = trial.suggest_float("rate", 2e-3, 5e-2, log=True)
        name = f"trial-{trial.number}"
        NETWORKS.register(name)(NetworkKind("", lambda _: (3, LARGEST, width), (hidden,), rate))
        began = time.perf_counter()
        done = train_recommender(choices, known.parts[0], name, training_options(name, 2, 1024, 0),
                                 TrainingWatch(device=device))
        told = done.recommender.judged(unseen)
        print(trial.number, width, hidden, f"{rate:.4f}", f"{done.recommender.classifier.size / 1e3:.0f}",
              f"{told.same_cycles:.4f},{told.mean_share:.5f},{told.worst_share:.3f},{time.perf_counter() - began:.0f}",
              sep=",", flush=True)
        return told.same_cycles

    print("trial,width,hidden,rate,kilobytes,same_cycles,mean_share,worst_share,seconds")
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.enqueue_trial(PUBLISHED)
    study.optimize(learn, trials)


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    given = sys.argv[1:]
    main(int(given[0]) if given else 24, int(float(given[1])) if len(given) > 1 else 14_000_000,
         given[2] if len(given) > 2 else "cpu")
