"""MAGMA, figures 7.7 and 7.8: throughput on a homogeneous and on heterogeneous systems, against other methods."""

from tilewright.jobs import Runner
from tilewright.reproduce.claims import exact, gain, judge
from tilewright.reproduce.magma_systems import BLACK_BOX, HAND, Place, beside, contest, leads, throughput
from tilewright.reproduce.study import Findings, Setting, reproduction

SMALL, LARGE = "16GB/s", "256GB/s"
HOMOGENEOUS: dict[Place, float] = {("vision", "s1", SMALL): 249, ("lang", "s1", SMALL): 397,
                                   ("recom", "s1", SMALL): 194, ("mix", "s1", SMALL): 329}
HETEROGENEOUS: dict[Place, float] = {("vision", "s2", SMALL): 254, ("mix", "s2", SMALL): 271,
                                     ("vision", "s4", LARGE): 254, ("mix", "s4", LARGE): 383}
"""MAGMA's throughput in GFLOP/s, as printed."""
RECOM_FLOP_PER_BYTE = 2.0
"""Of the released lists of recommendation jobs, each tensor moved once: all are fully connected layers of one row
(github.com/maestro-project/magma, commit f25ef66, batch_recom)."""
NOTES = (
    "Jobs are drawn from the zoo, as the released lists cannot be shipped; batches and sequences are our assumption. "
    "Two genomes and proportional sharing, as in the text. The rules of herald-like and ai-mt-like are ours.",)

HERALD = gain("On S1 MAGMA is faster than Herald-like", "1.4x", 1.4, "the geometric mean over tasks")
AIMT = gain("On S1 it is faster than AI-MT-like", "1.41x", 1.41, "the same")
OTHERS = gain("On S1 it is faster than the other methods", "1.6x", 1.6, "the geometric mean over tasks and methods")
RECOM = exact("Recommendations run at 194 GFLOP/s on 16 GB/s", "194 GFLOP/s",
              "whether that many bytes can be had: the released jobs do 2 FLOP for each byte that must move")
CLAIMS77 = (HERALD, AIMT, OTHERS, RECOM)

FACTORS = {("s2", "herald-like"): 2.3, ("s2", "ai-mt-like"): 39.5, ("s2", "black-box methods"): 13.4,
           ("s4", "herald-like"): 1.7, ("s4", "ai-mt-like"): 52.0, ("s4", "black-box methods"): 10.0}
FASTER = {key: gain(f"On {key[0].upper()} MAGMA is faster than {key[1]}", f"{factor:g}x", factor,
                    "the geometric mean over its tasks" + (" and methods" if "box" in key[1] else ""))
          for key, factor in FACTORS.items()}

TASKS = ("vision", "lang", "recom", "mix")
_QUICK = Setting("quick", 2, {"samples": 300, "mappings": 60, "jobs": 16, "tasks": ("recom", "mix")})
_FULL = Setting("full", 10, {"samples": 10_000, "mappings": 2_000, "jobs": 100, "tasks": TASKS})


@reproduction("magma-fig7.7", "Throughput on a small homogeneous system: MAGMA against other methods",
              "Kao, dissertation, Georgia Tech 2022, figure 7.7", CLAIMS77, _QUICK, _FULL)
def run77(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.7."""
    places = tuple(place for place in HOMOGENEOUS if place[0] in setting["tasks"])
    found, told = contest(places, setting, runner)
    most = RECOM_FLOP_PER_BYTE * 16
    printed = HOMOGENEOUS["recom", "s1", SMALL]
    return Findings((throughput(found, places, HOMOGENEOUS),), (
        leads(HERALD, found, places, setting, HAND[:1]), leads(AIMT, found, places, setting, HAND[1:]),
        leads(OTHERS, found, places, setting, BLACK_BOX),
        judge(RECOM, float(printed <= most), f"at most {most:g} GFLOP/s",
              "2 FLOP a byte; batches of 7 and more could, of which the text says nothing",
              impossible=printed > most)), notes=(*NOTES, beside(found, places, setting), told))


@reproduction("magma-fig7.8", "Throughput on heterogeneous systems, small and large: MAGMA against other methods",
              "Kao, dissertation, Georgia Tech 2022, figure 7.8", tuple(FASTER.values()), _QUICK, _FULL)
def run78(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.8."""
    places = tuple(place for place in HETEROGENEOUS if place[0] in setting["tasks"])
    found, told = contest(places, setting, runner)
    judged = [leads(claim, found, [place for place in places if place[1] == system], setting,
                    BLACK_BOX if "box" in other else (other,)) for (system, other), claim in FASTER.items()]
    return Findings((throughput(found, places, HETEROGENEOUS),), tuple(judged),
                    notes=(*NOTES, beside(found, places, setting), told))
