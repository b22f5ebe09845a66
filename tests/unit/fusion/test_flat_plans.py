"""Plans of attention: spaces within one another, bounds below all plans, machines, attention of networks."""

import json
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from tilewright.base import InputError
from tilewright.fusion.flat import (
    SPACES,
    Attention,
    AttentionCounts,
    TilePlan,
    attention_bound,
    attentions,
    best_plan,
    flat_block,
    flat_machine,
    forced_words,
    fused_costs,
    fused_space,
    given_plan,
    other_products,
    unfused_costs,
)
from tilewright.fusion.flat.search import product_space
from tilewright.hardware import preset
from tilewright.workload import zoo

EDGE, CLOUD = (flat_machine(preset(name)) for name in ("flat-edge", "flat-cloud"))
CASES = [Attention("square", 4, 512, 512, 64, 64), Attention("ragged", 3, 197, 333, 40, 24),
         Attention("causal", 2, 300, 700, 64, 64, causal=True), Attention("decode", 16, 4, 4096, 128, 128, group=4)]


@pytest.mark.parametrize("machine", [EDGE, CLOUD], ids=["edge", "cloud"])
@pytest.mark.parametrize("sequence", [512, 1024, 4096, 16384, 65536])
def test_bert_is_within_a_percent_of_what_no_plan_can_beat(machine, sequence):
    found = {space: best_plan(flat_block("BERT", sequence).attention, machine, space) for space in SPACES}
    assert 0 <= found["online"].gap <= 0.01
    costs = [found[space].cost.latency_cycles for space in SPACES]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("machine", [EDGE, CLOUD], ids=["edge", "cloud"])
def test_the_footprint_does_not_grow_where_the_online_softmax_pays(machine):
    found = [best_plan(flat_block("BERT", sequence).attention, machine) for sequence in (4096, 16384, 65536, 262144)]
    assert all(plan.online and len(plan.parts) == 1 for plan in found)
    assert len({plan.cost.footprint_words for plan in found}) == 1
    offline = [best_plan(plan.attention, machine, "flat").cost.footprint_words for plan in found]
    assert offline[-1] > 10 * found[-1].cost.footprint_words


@pytest.mark.parametrize("attention", CASES, ids=lambda each: each.name)
@pytest.mark.parametrize("softmax", ["free", "vector"])
def test_no_plan_is_below_the_bound(attention, softmax):
    for machine in (EDGE, replace(EDGE, capacity_words=4096, dram_rate=0.5), replace(CLOUD, buffer_rate=64.0)):
        bound = attention_bound(attention, machine, softmax)
        space = product_space(attention, machine)
        scores, mixed = unfused_costs(attention, machine, space, softmax)
        fused = fused_costs(attention, machine, fused_space(attention, machine, "online", softmax), softmax)
        for name, least in (("latency_cycles", bound.latency_cycles), ("energy_pj", bound.energy_pj),
                            ("dram_words", bound.dram_words), ("buffer_words", bound.buffer_words)):
            values = [getattr(costs, name)[costs.legal] for costs in (fused, scores, mixed)]
            assert values[0].size == 0 or values[0].min() >= least
            if values[1].size and values[2].size and name != "energy_pj":
                assert values[1].min() + values[2].min() >= least


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
def test_counts_that_are_derived_add_up_to_what_plans_cost(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        rows, keys, depth, width = rng.integers(1, 60, 4).tolist()
        causal = bool(rng.integers(2)) and rows <= keys
        one = Attention("some", 3, rows, keys, depth, width, causal=causal)
        machine = replace(EDGE, capacity_words=int(rng.integers(2 * (depth + width + 1), 9000)))
        for space in (fused_space(one, machine, "online", "vector"), product_space(one, machine)):
            for at in rng.integers(len(space), size=4).tolist():
                values = [values[at].item() for values in vars(space).values()]
                for names in (("L-A",), ("L", "A")):
                    try:
                        plan = given_plan(one, machine, tuple(TilePlan(name, *values) for name in names))
                    except InputError:
                        continue
                    counts = AttentionCounts(plan, machine)
                    for tensor in ("Q", "K", "V", "O", "logits"):
                        both = counts.value(tensor, "reads") + counts.value(tensor, "updates")
                        assert both == plan.cost.words[tensor]
                    held = [counts.value(tensor, "held") for tensor in ("Q", "K", "V", "O", "logits")]
                    assert len(names) == 2 or sum(held) == plan.cost.footprint_words


def words_in_order(pairs, slots):
    """The words of DRAM of pairs of single features in an order, where what is needed last makes room.

    A row is a query and an output, a key a key and a value: one slot each.
    """
    uses, here, begun, words = {}, set(), set(), 0
    for at, (row, key) in enumerate(pairs):
        uses.setdefault((0, row), []).append(at)
        uses.setdefault((1, key), []).append(at)
    for row, key in pairs:
        for one in ((0, row), (1, key)):
            uses[one].pop(0)
            if one not in here:
                if len(here) == slots:
                    here = here - {max(here - {(0, row), (1, key)}, key=lambda other: (uses[other] or [inf])[0])}
                # A key and a value; or a query, and an output that left and comes back.
                words += 2 if one[0] else 3 if one in begun else 1
                here, begun = here | {one}, begun | {one}
    return words + len({row for row, _ in pairs})


@pytest.mark.parametrize(("size", "slots"), [(24, 12), (40, 16), (36, 12)])
def test_no_order_of_rows_and_keys_moves_fewer_words_than_are_forced(size, slots):
    """Strips that turn back at their ends move less than tiles do; what touches DRAM takes the buffer twice."""
    found = []
    for rows in range(1, slots):
        for turning in (1, -1):
            strips = [range(first, min(size, first + rows)) for first in range(0, size, rows)]
            order = [(row, key) for at, strip in enumerate(strips) for key in range(size)[::turning ** at]
                     for row in strip]
            found += [words_in_order(order, slots), words_in_order([pair[::-1] for pair in order], slots)]
    attention = Attention("small", 1, size, size, 1, 1)
    forced = forced_words(attention, 4 * slots + 1)
    assert attention.compulsory_words < forced <= min(found) < 1.5 * forced


def test_a_small_buffer_forces_words_that_plans_move():
    """Where it bites, the argument of Hong and Kung is above what is compulsory, and below every plan."""
    attention = Attention("long", 1, 4096, 4096, 64, 64)
    for capacity in (65536, 262144):
        machine = replace(EDGE, capacity_words=capacity)
        forced, found = forced_words(attention, capacity), best_plan(attention, machine, objective="dram")
        assert attention.compulsory_words < forced <= found.cost.dram_words
        assert found.cost.dram_words < 1.45 * forced
    assert forced_words(attention, 10**7) < attention.compulsory_words


@pytest.mark.parametrize("objective", ["latency", "energy", "edp", "dram"])
@pytest.mark.parametrize("attention", CASES, ids=lambda each: each.name)
def test_no_best_plan_is_worse_than_unfused_or_flat(attention, objective):
    found = [best_plan(attention, EDGE, space, objective) for space in SPACES]
    values = [plan.cost.value(objective) for plan in found]
    assert values == sorted(values, reverse=True)
    assert all(plan.gap >= 0 for plan in found)
    assert found[0].fused is False


def test_of_unfused_plans_edp_is_least_over_pairs():
    attention, machine = Attention("small", 2, 24, 36, 16, 8), replace(EDGE, capacity_words=900, dram_rate=1.0)
    both = unfused_costs(attention, machine, product_space(attention, machine))
    latency, energy = ([getattr(costs, name)[costs.legal] for costs in both]
                       for name in ("latency_cycles", "energy_pj"))
    every = np.add.outer(*latency) * np.add.outer(*energy)
    assert best_plan(attention, machine, "flex", "edp").cost.value("edp") == pytest.approx(every.min())


@pytest.mark.parametrize("machine", [EDGE, CLOUD], ids=["edge", "cloud"])
def test_flash_attention_is_found_where_words_of_dram_count(machine):
    """Rows outside, keys inside: queries and outputs move once, keys and values once for each tile of rows."""
    attention = flat_block("BERT", 65536).attention
    plan = best_plan(attention, machine, objective="dram")
    (tile,) = plan.parts
    assert plan.online and not tile.keys_outer and tile.keys < attention.keys
    one = attention.instances * attention.rows * attention.depth
    passes = -(-attention.rows // tile.rows)
    assert plan.cost.words == {"Q": one, "K": passes * one, "V": passes * one, "O": one, "logits": 0}
    assert plan.cost.footprint_words > 0.75 * machine.capacity_words or passes == 2


def test_nothing_overlaps_the_first_tiles_that_come_in_and_the_last_one_that_goes_out():
    attention, machine = CASES[1], replace(EDGE, capacity_words=4096, dram_rate=0.5)
    tiles = product_space(attention, machine)
    found = fused_costs(attention, machine, tiles)
    steady = np.maximum(found.compute_cycles, np.maximum(
        found.dram_words / machine.dram_rate, found.buffer_words / machine.buffer_rate))
    first, last = 40 * tiles.rows + 40 * tiles.key_chunk, 24 * tiles.rows  # of Q and K, of O
    assert found.latency_cycles == pytest.approx(steady + (first + last) / 0.5)


def test_a_softmax_on_the_vector_unit_takes_time_and_a_second_tile_hides_it():
    attention = flat_block("BERT", 1024).attention
    free, slow = (best_plan(attention, EDGE, softmax=softmax) for softmax in ("free", "vector"))
    assert slow.cost.vector_cycles > 0 == free.cost.vector_cycles
    # 32 lanes at five operations an element make 6.4 logits a cycle, the array 1024 / 128 = 8.
    assert slow.cost.latency_cycles == pytest.approx(1.25 * free.cost.latency_cycles, rel=1e-3)
    assert slow.bound.vector_cycles > slow.bound.compute_cycles and slow.gap < 0.01
    assert slow.parts[0].buffers == 2


def test_causal_attention_takes_half_the_work_where_tiles_are_small():
    attention = flat_block("BERT", 16384).attention
    plain, masked = (best_plan(replace(attention, causal=causal), EDGE) for causal in (False, True))
    assert masked.cost.compute_cycles / plain.cost.compute_cycles == pytest.approx(0.5, abs=0.005)
    assert masked.gap <= 0.01


def test_the_clock_and_the_width_of_words_keep_bytes_a_second():
    fast = flat_machine(preset("flat-edge"), clock_mhz=1880)
    wide = flat_machine(preset("flat-edge"), word_bits=32)
    assert fast.dram_rate * 2 == pytest.approx(EDGE.dram_rate) and fast.elements == 1024
    assert wide.dram_rate * 2 == pytest.approx(EDGE.dram_rate) and wide.capacity_words * 2 == EDGE.capacity_words
    assert EDGE.dram_rate * 940e6 * 2 == pytest.approx(50 * 2**30, rel=1e-4)
    assert CLOUD.dram_rate * 940e6 * 2 == pytest.approx(400 * 2**30, rel=1e-4)


def test_what_cannot_be_planned_says_why():
    with pytest.raises(InputError, match="buffer"):
        best_plan(CASES[0], replace(EDGE, capacity_words=100))
    with pytest.raises(InputError, match="keeps inputs and outputs"):
        flat_machine(preset("shidiannao-like"))
    with pytest.raises(InputError, match="one a position"):
        Attention("bad", 1, 8, 4, 1, 1, causal=True)
    with pytest.raises(InputError, match="space"):
        best_plan(CASES[0], EDGE, "fused")
    with pytest.raises(InputError, match="positive"):
        flat_machine(preset("flat-edge"), clock_mhz=-1)


def test_attentions_of_networks_are_found_with_all_their_products():
    found = attentions(zoo.load("bert-base", sequence=256, batch=2))
    assert [(one.instances, one.rows, one.keys, one.depth, one.heads, one.count) for one in found] == [
        (24, 256, 256, 64, 12, 12)]
    (decode,) = attentions(zoo.load("llama-3-8b", phase="decode", context=512, batch=3), causal=True)
    assert (decode.instances, decode.rows, decode.group, decode.heads, decode.causal) == (24, 4, 4, 8, True)
    assert attentions(zoo.load("vgg16")) == ()
    for name in ("t5-small", "transformer-xl", "whisper-tiny"):
        graph = zoo.load(name)
        plain = sum(node.macs for node in graph.mac_nodes if set(node.operator.sizes) <= set("BMNK"))
        parts = (*attentions(graph), *other_products(graph))
        assert sum(part.macs * part.count for part in parts) == plain


def test_loops_are_told_as_people_read_them():
    plan = best_plan(flat_block("BERT", 4096).attention, EDGE)
    assert "online softmax" in plan.loops and "for instance in 768" in plan.loops
    assert "logits in DRAM" in best_plan(plan.attention, EDGE, "flex").loops


@pytest.mark.slow  # reading it takes seconds
def test_attention_of_a_hugging_face_configuration_is_found(tmp_path):
    from tilewright.api import load_network

    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256, "vocab_size": 1000,
              "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 2,
              "max_position_embeddings": 512}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (one,) = attentions(load_network(str(tmp_path / "config.json"), {"sequence": 128, "batch": 2}), causal=True)
    assert (one.instances, one.rows, one.keys, one.depth, one.group, one.heads, one.count) == (4, 512, 128, 32, 4, 2, 2)


def test_attention_of_a_module_is_found():
    torch = pytest.importorskip("torch")
    from tilewright.api import load_network

    class Heads(torch.nn.Module):
        def forward(self, x):
            heads = x.view(2, 32, 4, 16).transpose(1, 2)
            shares = torch.softmax(heads @ heads.transpose(-1, -2) / 4.0, -1)
            return (shares @ heads).transpose(1, 2).reshape(2, 32, 64)

    (one,) = attentions(load_network((Heads().eval(), (torch.zeros(2, 32, 64),))))
    assert (one.instances, one.rows, one.keys, one.depth, one.width) == (8, 32, 32, 16, 16)
