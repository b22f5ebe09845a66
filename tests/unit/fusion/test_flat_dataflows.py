"""FLAT's dataflows by name, its table of footprints, and its own model as it is replayed."""

from dataclasses import replace

import pytest

from tilewright.base import InputError
from tilewright.fusion.flat import (
    DATAFLOWS,
    FLAT_MODELS,
    Product,
    RerunPlan,
    attention_bound,
    block_cost,
    dataflow_cost,
    flat_block,
    flat_machine,
    fused_costs,
    fused_space,
    product_cost,
    rerun_best,
    rerun_cost,
    table_words,
)
from tilewright.hardware import preset
from tilewright.validation import SETS
from tilewright.validation.flat import BUFFERED, BYTES, LATENCY, flat_rows

EDGE, CLOUD = (flat_machine(preset(name)) for name in ("flat-edge", "flat-cloud"))


@pytest.mark.parametrize("model", FLAT_MODELS)
def test_footprints_are_those_of_table_a1(model):
    batch, n = 64, 512
    width, heads, _ = FLAT_MODELS[model]
    attention, d = flat_block(model, n).attention, width // heads
    assert table_words(attention, "m") == 8 * batch * width * n + batch * heads * n**2
    assert table_words(attention, "b") == 8 * width * n + heads * n**2
    assert table_words(attention, "h") == 8 * n * d + n**2
    for rows in (1, 64, 256):
        assert table_words(attention, "r", rows) == 4 * rows * d + 4 * n * d + rows * n


def test_a_plan_of_whole_rows_takes_what_table_a1_says():
    """The exact model's footprint, where keys and values are held, is the table's."""
    attention = flat_block("BERT", 512).attention
    tiles = fused_space(attention, EDGE, "flat")
    costs = fused_costs(attention, EDGE, tiles)
    held = [place for place in range(len(tiles)) if tiles.key_chunk[place] == tiles.value_chunk[place] == 512]
    assert len(held) > 20
    for place in held:
        assert costs.footprint_words[place] == table_words(attention, "r", int(tiles.rows[place]))


def test_of_the_run_of_the_authors_model_all_rows_are_within_five_percent():
    rows = list(flat_rows())
    assert len(rows) == 48
    for row in rows:
        cost = rerun_cost(row.attention, row.machine, row.plan)
        assert cost.buffered == pytest.approx(row.figures[BUFFERED], abs=1e-9)
        assert cost.dram_bytes == pytest.approx(row.figures[BYTES], rel=0.001)
        assert cost.latency_seconds == pytest.approx(row.figures[LATENCY], rel=0.006)
        least = attention_bound(row.attention, row.machine).latency_cycles / (row.machine.clock_mhz * 1e6)
        assert cost.latency_seconds >= least
    assert "flat" in SETS


def test_wider_heads_move_what_the_published_reading_says():
    """XLM (128 features) on the cloud at 512: five tensors where keys and values are staged, half of an array idle."""
    attention = flat_block("XLM", 512).attention
    cost = rerun_cost(attention, CLOUD, RerunPlan(256, frozenset({"logits", "K", "V"})))
    one = 2 * attention.instances * attention.rows * attention.depth
    assert cost.dram_bytes == (1 + 2 + 2 * 2) * one
    whole = rerun_cost(attention, CLOUD, RerunPlan(0, frozenset({"logits", "K", "V"})))
    assert whole.dram_bytes == 5 * one
    assert whole.latency_seconds == pytest.approx(1.5 * whole.ideal_seconds)
    assert whole.utilisation == pytest.approx(2 / 3)


@pytest.mark.parametrize("fused", [False, True])
def test_a_search_in_the_authors_rules_is_no_worse_than_their_plans(fused):
    for row in flat_rows():
        if row.plan.fused <= fused:
            best = rerun_best(row.attention, row.machine, fused=fused)[1]
            assert best.latency_seconds <= rerun_cost(row.attention, row.machine, row.plan).latency_seconds * 1.0001


@pytest.mark.parametrize("name", DATAFLOWS)
@pytest.mark.parametrize("machine", [EDGE, CLOUD], ids=["edge", "cloud"])
def test_no_dataflow_is_below_the_bound_and_more_room_is_no_worse(machine, name):
    attention = flat_block("BERT", 2048).attention
    bound = attention_bound(attention, replace(machine, capacity_words=2**40))
    costs = [dataflow_cost(attention, replace(machine, capacity_words=2**power), name) for power in range(16, 31, 2)]
    assert all(cost.latency_cycles >= bound.compute_cycles for cost in costs)
    assert all(cost.dram_words >= bound.compulsory_words for cost in costs)
    latencies = [cost.latency_cycles for cost in costs]
    assert latencies == pytest.approx(sorted(latencies, reverse=True), rel=1e-6)


def test_finer_granularities_need_less_room_and_fusion_saves_the_logits():
    attention = flat_block("BERT", 512).attention
    rooms = [dataflow_cost(attention, EDGE, f"flat-{name}").footprint_words for name in ("m", "b", "h", "r64")]
    assert rooms == sorted(rooms, reverse=True)
    wide = replace(EDGE, capacity_words=2**40)
    fused, apart = (dataflow_cost(attention, wide, name).dram_words for name in ("flat-h", "flex-h"))
    assert apart - fused == 2 * 768 * 512**2
    with pytest.raises(InputError, match="dataflow"):
        dataflow_cost(attention, EDGE, "flat-x")
    with pytest.raises(InputError, match="rows"):
        dataflow_cost(attention, EDGE, "flat-r0")


def test_products_beside_the_attention_are_alike_in_all_dataflows():
    block = flat_block("BERT", 512)
    of = {name: block_cost(block, EDGE, name).latency_cycles - dataflow_cost(block.attention, EDGE, name).latency_cycles
          for name in ("naive", "flex-opt", "flat-opt")}
    macs = sum(product.macs * product.count for product in block.products)
    assert max(of.values()) == pytest.approx(min(of.values())) == pytest.approx(macs / EDGE.elements, rel=0.01)
    small = product_cost(Product("p", 1, 7, 5, 3), replace(EDGE, capacity_words=10**6))
    assert small.compute_cycles == 3 and small.dram_words == 7 * 3 + 5 * 3 + 7 * 5
    with pytest.raises(InputError, match="capacity"):
        product_cost(Product("p", 1, 7, 5, 3), replace(EDGE, capacity_words=4))
