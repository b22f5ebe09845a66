"""The study of DiGamma: what it reads of the published table, and how it judges rows."""

import math

import pytest

from tilewright.reproduce.digamma_designs import BASELINES, DIGAMMA, OURS, design_cell, problem
from tilewright.reproduce.digamma_fig6_6 import LATENCY, PRODUCT, best_share, lead, published_leads


def row(**given):
    return {**dict.fromkeys((*BASELINES, DIGAMMA, OURS), math.inf), **given}


def test_the_printed_rows_give_a_smaller_gain_in_the_cloud_than_the_text():
    edge, cloud = published_leads()
    assert edge == pytest.approx(3.0, abs=0.25)
    assert cloud == pytest.approx(6.3, abs=0.05)


def test_the_printed_tables_have_digamma_best_or_tied_where_the_text_says():
    for table, best in ((LATENCY, 13), (PRODUCT, 12)):
        rows = {at: {**dict(zip((*BASELINES, DIGAMMA), [math.inf if math.isnan(each) else each for each in figures],
                                strict=True)), OURS: math.inf} for at, figures in table.items()}
        assert best_share(rows) == pytest.approx(best / 14)


def test_gains_are_of_rows_where_both_found_a_design():
    rows = {("edge", "ncf"): row(CMA=4.0, DE=2.0, **{DIGAMMA: 1.0}), ("edge", "dlrm"): row(CMA=9.0, **{DIGAMMA: 1.0}),
            ("cloud", "ncf"): row(CMA=1.0)}
    assert lead(rows, "edge") == pytest.approx(2.0)
    assert math.isnan(lead(rows, "cloud"))
    assert best_share(rows) == pytest.approx(2 / 3)


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
