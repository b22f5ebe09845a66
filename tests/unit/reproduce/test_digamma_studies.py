"""The study of DiGamma: what it reads of the published table, and how it judges rows."""

import math

import pytest

from tilewright.codesign import design
from tilewright.cost import DenseModel
from tilewright.jobs import Runner
from tilewright.mapping import dataflow, load_mapping
from tilewright.reproduce import digamma_designs
from tilewright.reproduce.digamma_designs import (
    AUTO,
    DIGAMMA,
    GRID,
    METHODS,
    OURS,
    design_cell,
    given_machine,
    lead,
    problem,
    spread_of,
)
from tilewright.reproduce.digamma_figures import BASELINES, LATENCY, PRODUCT, best_share
from tilewright.reproduce.study import Setting


def row(**given):
    return {**dict.fromkeys((*BASELINES, DIGAMMA, OURS), math.inf), **given}


def test_the_printed_tables_have_digamma_best_or_tied_where_the_text_says():
    for table, best in ((LATENCY, 13), (PRODUCT, 12)):
        rows = {at: {**dict(zip((*BASELINES, DIGAMMA), [math.inf if math.isnan(each) else each for each in figures],
                                strict=True)), OURS: math.inf} for at, figures in table.items()}
        assert best_share(rows, BASELINES) == pytest.approx(best / 14)


def test_gains_are_of_rows_where_both_found_a_design():
    rows = {("edge", "ncf"): row(CMA=4.0, DE=2.0, **{DIGAMMA: 1.0}), ("edge", "dlrm"): row(CMA=9.0, **{DIGAMMA: 1.0}),
            ("cloud", "ncf"): row(CMA=1.0)}
    assert lead(rows, "edge", DIGAMMA, BASELINES) == pytest.approx(2.0)
    assert lead(rows, "edge", DIGAMMA, ("CMA",)) == pytest.approx(6.0)
    assert math.isnan(lead(rows, "cloud", DIGAMMA, BASELINES))
    assert best_share(rows, BASELINES) == pytest.approx(2 / 3)


def test_the_oracle_counts_the_design_of_median_latency_of_every_method(monkeypatch):
    counted, counts = [], digamma_designs.oracle_cell

    def noted(key, operator, machine, mapping):
        counted.append(mapping)
        return counts(key, operator, machine, mapping)

    monkeypatch.setattr(digamma_designs, "oracle_cell", noted)
    methods = ["Random", "Grid + dla", "Compute + Gamma", DIGAMMA, AUTO]
    found = digamma_designs.contest([("edge", "ncf")], methods, True, Setting("tiny", 3, {"samples": 80, "rounds": 0}),
                                    Runner(workers=1))
    runs = found.found["edge", "ncf"]
    middle = [sorted(runs[name], key=lambda run: run["latency"] or math.inf)[1] for name in methods]
    assert counted == [run["mapping"] for run in middle if run["latency"]]
    assert len(counted) >= 4
    assert f"{len(counted)} of {len(counted)} designs" in found.note


def test_platforms_have_the_released_areas_and_free_ports_on_demand():
    free, limited = (problem("ncf", "edge", free) for free in (True, False))
    assert free.space.accelerator.compute.area_um2 == 282.0
    assert all(memory.bandwidth.shared is None and memory.bandwidth.read is None
               for memory in free.space.accelerator.memories)
    assert limited.space.accelerator.level("DRAM").bandwidth.shared == 32


def test_a_cell_is_plain_data_and_tells_where_nothing_was_found():
    of = ("ncf", "edge", True)
    found = design_cell(of, DIGAMMA, 200, 0).function()
    assert found["latency"] > 0
    assert found["area"] <= 0.2e6
    assert set(found["machine"]) == {"SG.capacity_bytes", "PEs.instances", "SL.capacity_bytes"}
    assert set(found["spread"]) == {"filters", "channels", "positions"}


@pytest.mark.parametrize("method", [*BASELINES, DIGAMMA, OURS])
def test_all_methods_of_the_figure_spread_one_dimension_by_each_side_as_its_encoding_has_it(method):
    asked = problem("ncf", "edge", True)
    name, options = METHODS[method]
    found = design(asked, name, samples=4 * len(asked.layers), runner=Runner(workers=1), options=options, proof=0)
    nests = [found.best.mapping(asked, layer) for layer in range(len(asked.layers))]
    for at, slot in enumerate(nests[0].layout.slots):
        if slot.axis != "T":
            assert all(((nest.steps[at - 1] > nest.steps[at]).sum(axis=0) <= 1).all() for nest in nests)


def test_given_machines_fill_the_area_as_they_are_told_to():
    asked = problem("ncf", "edge", True)
    for share, local in GRID:
        chosen = given_machine(asked, share, local)
        area = float(asked.area(chosen))
        assert 0.99 * 0.2e6 < area <= 0.2e6
        assert chosen["PEs", "instances"] * 282 / 0.2e6 == pytest.approx(share, abs=0.003)
    few, many = (given_machine(asked, 0.5, local) for local in (0.25, 0.75))
    assert many["SL", "capacity_bytes"] > 2.5 * few["SL", "capacity_bytes"]


def test_hardware_alone_takes_the_best_machine_of_the_grid_with_the_mappings_of_a_style():
    found = design_cell(("ncf", "edge", True), "Grid + dla", 1, 0).function()
    asked = problem("ncf", "edge", True)
    cycles = []
    for shares in GRID:
        machine = asked.machine(given_machine(asked, *shares))
        costs = [DenseModel(layer, machine).cost(dataflow("nvdla", layer, machine)) for layer in asked.layers]
        cycles.append(sum(weight * cost.latency_cycles for weight, cost in zip(asked.weights, costs, strict=True)))
    assert found["latency"] == pytest.approx(min(cycles))


def test_mappings_alone_keep_the_machine_that_is_given():
    asked = problem("ncf", "edge", True)
    found = design_cell(("ncf", "edge", True), "Compute + Gamma", 400, 0).function()
    chosen = given_machine(asked, 0.75)
    assert found["machine"] == {".".join(key): value for key, value in chosen.items()}
    least = min(asked.layers, key=lambda layer: layer.macs)
    nest = load_mapping(found["mapping"], least, asked.machine(chosen))
    assert spread_of(least, nest) <= {"filters", "channels", "positions"}
    assert found["latency"] >= sum(layer.macs for layer in asked.layers) / found["elements"]
