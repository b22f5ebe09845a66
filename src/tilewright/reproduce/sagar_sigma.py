"""SAGAR, figure 14: beside SIGMA, of as many units and of as much area, dense and sparse.

SIGMA (Qin et al., HPCA 2020) lets the words of one operand that are not zero rest, as many as there are units, and
streams the other one past them, a row a cycle over a network that reaches every unit at once; an adder tree then sums
up. The paper says of its model only that it counts streaming, computing and adding. Ours waits for nothing, as all of
SAGAR's figures do: a fold is a cycle to fill, one for each row that streams, and the depth of the tree.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil, log2

from tilewright.cost import SAGAR, best_configurations
from tilewright.jobs import Runner
from tilewright.reproduce.claims import counted, judge
from tilewright.reproduce.sagar_figures import NETWORKS, layers
from tilewright.reproduce.study import Cell, Findings, Plot, Setting, Table, claims, reproduction

UNITS = {"sigma_c": SAGAR.macs, "sigma_a": 2734, "sigma_70": round(0.7 * SAGAR.macs)}
"""SIGMA of as many units as SAGAR, as many as figure 14 has at equal area, and as many as 30 % of the area pay for."""
SPARSITIES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def sigma_cycles(product: Sequence[int], units: int, sparsity: float = 0.0) -> int:
    """Return the cycles of a product (m, n, k) on SIGMA, the better of its operands resting; see the module.

    Zeros, of ``sparsity`` in either operand, do not rest, and never shorten what streams: a row is one cycle.
    """
    m, n, k = product
    found = []
    for resting, rows in ((k * n, m), (m * k, n)):
        words = max(1, ceil((1 - sparsity) * resting))
        tree = ceil(log2(min(units, max(1, ceil((1 - sparsity) * k)))))
        found.append(ceil(words / units) * (1 + rows + tree))
    return min(found)


def _network(name: str) -> dict[str, list[float]]:
    """Return cycles of every layer, times how often it runs: SAGAR, one array, and SIGMAs at all sparsities."""
    products = layers(name, NETWORKS[name])
    sizes = [size for _, size, _ in products]
    spaces = {"sagar": SAGAR.configurations("realisable"), "monolithic": SAGAR.units(128, 128)}
    cycles = {machine: best_configurations(sizes, space, SAGAR).cycles.tolist() for machine, space in spaces.items()}
    for sigma, units in UNITS.items():
        cycles |= {f"{sigma} {sparsity}": [sigma_cycles(size, units, sparsity) for size in sizes]
                   for sparsity in SPARSITIES}
    return {machine: [float(each * times) for each, (*_, times) in zip(values, products, strict=True)]
            for machine, values in cycles.items()}


AHEAD, WIDER, TENFOLD, BEHIND, SEVENTY = claims("sagar-fig14")


def crossing(found: Mapping[str, Sequence[float]], sigma: str) -> float:
    """Return the last sparsity at which SAGAR is not slower than a SIGMA; -1 where it always is."""
    return max((each for each in SPARSITIES if sum(found["sagar"]) <= sum(found[f"{sigma} {each}"])), default=-1.0)


@reproduction("sagar-fig14", Setting("quick", 1), Setting("full", 1))
def figure14(setting: Setting, runner: Runner) -> Findings:
    """Count three networks on SAGAR and on SIGMAs of three sizes."""
    found = dict(zip(NETWORKS, runner.run([Cell({"figure": 14, "network": name}, lambda name=name: _network(name))
                                           for name in NETWORKS]), strict=True))
    whole = {name: {machine: sum(values) for machine, values in each.items()} for name, each in found.items()}
    ahead = [theirs < ours for each in found.values()
             for theirs, ours in zip(each["sigma_c 0.0"], each["sagar"], strict=True)]
    speech = [whole["deepspeech2"][f"sigma_c {each}"] for each in SPARSITIES]
    wider = [later < before for before, later in pairwise(speech)]
    ratios = [each["sigma_a 0.0"] / each["sigma_c 0.0"] for each in whole.values()]
    behind = [each["sagar"] < each["sigma_a 0.0"] for each in whole.values()]
    last = {sigma: crossing(found["alphagozero"], sigma) for sigma in UNITS}
    machines = ("sagar", "monolithic", "sigma_c 0.0", "sigma_a 0.0", "sigma_70 0.0", "sigma_c 0.7", "sigma_a 0.7")
    table = Table("networks", "Cycles that wait for nothing", ("Network", *machines), tuple(
        (name, *(each[machine] for machine in machines)) for name, each in whole.items()), (
            f"A name of SIGMA, then sparsity. Units: {', '.join(f'{one} {most:,}' for one, most in UNITS.items())}. "
            "SIGMA's own ten layers are not told.",
            "Those of SAGAR agree with a walk of every word (tests/oracle/partition_walk.py); SIGMA's are a formula."))
    shown = [{"type": "scatter", "name": sigma, "x": list(SPARSITIES), "y": [
        whole["alphagozero"][f"{sigma} {each}"] / whole["alphagozero"]["sagar"] for each in SPARSITIES]}
        for sigma in UNITS]
    fewer = SAGAR.macs / UNITS["sigma_a"]
    return Findings((table,), (
        counted(AHEAD, ahead, of="layers"), counted(WIDER, wider, of="steps"),
        judge(TENFOLD, max(ratios), f"{max(ratios):.1f}x", f"there are {fewer:.1f} times fewer units"),
        counted(BEHIND, behind, of="networks"),
        judge(SEVENTY, float(last["sigma_a"] == 0.7), f"{last['sigma_a']:.0%}; {last['sigma_70']:.0%} with "
              f"{UNITS['sigma_70']:,} units, which are of SAGAR's area if that is 30 % less")), (
            Plot("sparsity", "Cycles of AlphaGoZero over SAGAR's", shown, {
                "xaxis": {"title": {"text": "sparsity"}}, "yaxis": {"type": "log"}}),))
