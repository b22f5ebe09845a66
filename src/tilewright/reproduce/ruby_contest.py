"""Searches for the same layers in several map spaces at equal samples, on the machines of Ruby's evaluation.

The paper takes its designs from the Timeloop and Accelergy exercises: 45 nm, LPDDR4, no limit on the DRAM's bandwidth
(delay is counted in multiply-accumulates). Our energies are those of the table ``45nm`` (each row with its source).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from tilewright.hardware import Accelerator, load_accelerator
from tilewright.mapping import Constraints, MapSpace, dataflow_constraints, padded
from tilewright.reproduce.searching import Layer, SeededSearch, Tried, bound_figures, confirmed, searched, total
from tilewright.workload import Operator, matmul


def eyeriss_like(across: int = 14, down: int = 12) -> Accelerator:
    """Return the Eyeriss-like baseline (section II.B), with an array of another size where asked."""
    return _machine("eyeriss", across=across, down=down)


def simba_like(elements: int, vectors: int, width: int) -> Accelerator:
    """Return the Simba-like machine (section IV.C): elements with so many vector units, each so wide."""
    return _machine("simba", elements=elements, vectors=vectors, width=width)


def toy(elements: int) -> Accelerator:
    """Return the toy of section III.A: a line of elements with 1 KiB of scratchpad each, words of a byte."""
    return _machine("toy", elements=elements)


def grid(elements: int) -> Accelerator:
    """Return the toy of section II.D: a buffer of 1 KiB and a line of elements without storage, words of a byte."""
    return _machine("grid", elements=elements)


@cache
def _machine(design: str, **sizes: int) -> Accelerator:
    """Return a machine of ``data/ruby-<design>.yaml`` with an array of these sizes."""
    text = (files(__package__) / "data" / f"ruby-{design}.yaml").read_text(encoding="utf-8")
    return load_accelerator(Template(text).substitute(sizes))


def vector(size: int) -> Operator:
    """Return the scaling of a vector, the smallest operator with one dimension."""
    return matmul(f"vector-{size}", m=size, n=1, k=1)


Restrict = Callable[[Operator, Accelerator], Constraints]

TILINGS = {"perfect": "perfect", "padding": "perfect", "ruby-s": "ruby-s", "ruby-t": "ruby-t", "ruby": "ruby"}
"""By strategy: the tiling of its space. ``padding`` is perfect tiling of a padded operator."""
RANDOM = "random-pruned"
PUBLISHED: dict[str, Any] = {"dividing": 0.0, "stall": 3_000, "walkers": 24, "batch": 240}
"""How the paper's mapper searches (section IV): at random, without a leaning to whole factors, until 3,000 valid
mappings in a row do not improve EDP, on 24 threads, each of which ends so, as Timeloop's do."""
LONGEST = 3_000_000
"""Mappings at which such a search is broken off; few come near."""
BESIDE = ("Judged is the paper's mapper, random search that ends after 3,000 mappings in a row without improvement on "
          "each of 24 threads; ours stand beside it, at equal samples.")
PARTS = (("EDP", "edp", "@curve-0"), ("energy", "energy_pj", "@curve-1"), ("cycles", "latency_cycles", "@curve-2"))


@dataclass(frozen=True)
class Match:
    """One strategy on one layer: its space, who searches it, and for how long."""

    layer: Layer
    machine: Accelerator
    strategy: str
    flow: str
    mapper: str
    samples: int
    objective: str = "edp"

    @property
    def space(self) -> MapSpace:
        """The space that is searched."""
        operator = self.layer.operator
        if self.strategy == "padding":
            operator = padded(operator, self.machine, FLOWS[self.flow](operator, self.machine), to="side")
        return space_of(operator, self.machine, self.strategy, self.flow)

    @property
    def bounds(self) -> dict[str, float]:
        """What nothing is below on the layer as it is, not as it is padded."""
        return dict(bound_figures(self.layer.operator, self.machine, self.space.constraints.keeps))

    def case(self, seeds: int) -> SeededSearch:
        """Return the search with every seed."""
        key: dict[str, object] = {"network": self.layer.network, "layer": self.layer.name,
                                  "machine": self.machine.name, "strategy": self.strategy, "flow": self.flow}
        spent = ({"samples": LONGEST, "options": PUBLISHED} if self.mapper == RANDOM else {"samples": self.samples})
        return searched(key, self.space, seeds, mapper=self.mapper, objective=self.objective, **spent)


Entry = Tried[Match]

def space_of(operator: Operator, machine: Accelerator, strategy: str, flow: str = "free") -> MapSpace:
    """Return the space of a strategy."""
    return MapSpace(operator, machine, TILINGS[strategy], FLOWS[flow](operator, machine))  # type: ignore[arg-type]


def row_stationary(operator: Operator, machine: Accelerator) -> Constraints:
    """Keep to row-stationary data flow, as the paper's Eyeriss-like baseline (section IV.A)."""
    return dataflow_constraints("row-stationary", operator, machine)


def channels_across(operator: Operator, machine: Accelerator) -> Constraints:
    """Spread only output channels (M) and input channels (C) over arrays, as figures 7 c, d and Simba do.

    In arrays inside elements, units along X hold different outputs, and lanes along Y sum up inputs.
    """
    inputs, weights = operator.operands
    sliding = {d for tensor in operator.tensors for axis in tensor.axes if len(axis.terms) > 1 for d in axis.dimensions}
    out = tuple(d for d in operator.sizes if d in operator.output.dimensions and d in weights.dimensions
                and d not in inputs.dimensions)
    into = tuple(d for d in operator.sizes if d not in operator.output.dimensions and d not in sliding)
    loops = {f"{machine.fanouts[0].name}.X": (*out, *into)}
    for fanout in machine.fanouts[1:]:
        loops |= {f"{fanout.name}.X": out, f"{fanout.name}.Y": into}
    return Constraints(loops=loops)


def one_across(operator: Operator, machine: Accelerator) -> Constraints:
    """Spread one dimension only, the largest (of equals the first)."""
    largest = max(operator.sizes, key=lambda d: operator.sizes[d])
    return Constraints(loops={f"{machine.fanouts[0].name}.X": (largest,)})


FLOWS: dict[str, Restrict] = {"free": lambda operator, machine: Constraints(), "one": one_across,
                              "row-stationary": row_stationary, "channels": channels_across}


def oracle_word(entries: Iterable[Entry]) -> str:
    """Return what the oracle said about a number of entries, for a note below a table."""
    agree, count, whole = confirmed(entries)
    return (f"The oracle confirms {agree} of the {count} mappings behind these medians, {whole} walked whole and "
            f"{count - whole} as scaled-down twins.")


def network_total(entries: Iterable[Entry], name: str) -> float:
    """Return a figure of the whole network: energy or cycles added up, or for EDP the product of both sums."""
    entries = list(entries)
    return math.prod(total(entries, each) for each in (("energy_pj", "latency_cycles") if name == "edp" else (name,)))


def change(value: float) -> str:
    """Return a ratio as a change in percent, for example ``-14.2 %``."""
    return f"{100 * (value - 1):+.1f} %"
