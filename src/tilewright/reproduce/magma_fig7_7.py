"""MAGMA, figures 7.7 and 7.8: throughput on a homogeneous and on heterogeneous systems, against other methods."""

from tilewright.jobs import Runner
from tilewright.reproduce.claims import exact, gain, judge
from tilewright.reproduce.magma_systems import (
    BLACK_BOX,
    FEW,
    HAND,
    NOTES,
    OURS,
    SOURCE,
    WHOLE,
    Place,
    beside,
    contest,
    leads,
    throughput,
)
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

OVER_HERALD = gain("On S1 MAGMA is faster than Herald-like", "1.4x", 1.4, "the geometric mean over tasks")
OVER_AIMT = gain("On S1 it is faster than AI-MT-like", "1.41x", 1.41, "the same")
OTHERS = gain("On S1 it is faster than the other methods", "1.6x", 1.6, "the geometric mean over tasks and methods")
RECOM = exact("Recommendations run at 194 GFLOP/s on 16 GB/s", "194 GFLOP/s",
              "whether that many bytes can be had: the released jobs do 2 FLOP for each byte that must move")
CLAIMS77 = (OVER_HERALD, OVER_AIMT, OTHERS, RECOM)

FACTORS = {("s2", "herald-like"): 2.3, ("s2", "ai-mt-like"): 39.5, ("s2", "black-box methods"): 13.4,
           ("s4", "herald-like"): 1.7, ("s4", "ai-mt-like"): 52.0, ("s4", "black-box methods"): 10.0}
FASTER = {key: gain(f"On {key[0].upper()} MAGMA is faster than {key[1]}", f"{factor:g}x", factor,
                    "the geometric mean over its tasks" + (" and methods" if "box" in key[1] else ""))
          for key, factor in FACTORS.items()}

ALIKE = {"s2": "s1", "s4": "s3"}
"""Systems of as many elements whose cores are all of one style."""
ABOVE_TEN = (13.4 * 10.0) ** 0.5
NO_SLOW = gain("MAGMA is as far ahead of black-box methods where no core is slow", "13.4x and 10x on S2 and S4",
               ABOVE_TEN, "the geometric mean on S1 and S3, with the same tasks")
NO_LISTS = gain("It is as far ahead of schedules by lists", "13.4x and 10x, over black-box methods", ABOVE_TEN,
                "the geometric mean over the best of all list schedules, on S2 and S4")
CLAIMS78 = (*FASTER.values(), NO_SLOW, NO_LISTS)

TASKS = ("vision", "lang", "recom", "mix")
_QUICK = Setting("quick", 2, FEW | {"tasks": ("recom", "mix")})
_FULL = Setting("full", 10, WHOLE | {"tasks": TASKS})


@reproduction("magma-fig7.7", "Throughput on a small homogeneous system: MAGMA against other methods",
              SOURCE.format("figure 7.7"), CLAIMS77, _QUICK, _FULL, version=2)
def run77(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.7."""
    places = tuple(place for place in HOMOGENEOUS if place[0] in setting["tasks"])
    found, told = contest(places, setting, runner)
    most = RECOM_FLOP_PER_BYTE * 16
    printed = HOMOGENEOUS["recom", "s1", SMALL]
    return Findings((throughput(found, places, HOMOGENEOUS),), (
        leads(OVER_HERALD, found, places, setting, HAND[:1]), leads(OVER_AIMT, found, places, setting, HAND[1:]),
        leads(OTHERS, found, places, setting, BLACK_BOX),
        judge(RECOM, float(printed <= most), f"at most {most:g} GFLOP/s",
              "2 FLOP a byte; batches of 7 and more could, of which the text says nothing",
              impossible=printed > most)), notes=(*NOTES, beside(found, places, setting), told))


@reproduction("magma-fig7.8", "Throughput on heterogeneous systems, small and large: MAGMA against other methods",
              SOURCE.format("figure 7.8"), CLAIMS78, _QUICK, _FULL, version=2, cells="magma-fig7.7")
def run78(setting: Setting, runner: Runner) -> Findings:
    """Measure and judge figure 7.8; beside it the same on systems without a slow core."""
    places = tuple(place for place in HETEROGENEOUS if place[0] in setting["tasks"])
    plain = tuple((task, ALIKE[name], bandwidth) for task, name, bandwidth in places)
    found, told = contest((*places, *plain), setting, runner)
    judged = [leads(claim, found, [place for place in places if place[1] == system], setting,
                    BLACK_BOX if "box" in other else (other,)) for (system, other), claim in FASTER.items()]
    judged += [leads(NO_SLOW, found, plain, setting, BLACK_BOX), leads(NO_LISTS, found, places, setting, OURS[:1])]
    return Findings((throughput(found, (*places, *plain), HETEROGENEOUS),), tuple(judged),
                    notes=(*NOTES, beside(found, places, setting), told))
