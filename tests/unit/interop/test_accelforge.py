"""AccelForge's files: what they say, figures of the program itself, and what is refused."""

import json
from functools import partial
from pathlib import Path

import pytest
from read_texts import read_texts

import tilewright as tw
from tilewright.base import InputError
from tilewright.cost import cost_model
from tilewright.hardware import Bandwidth
from tilewright.interop import dump_timeloop, format_of
from tilewright.mapping import violations

FIGURES = json.loads((Path(__file__).parent / "accelforge_figures.json").read_text(encoding="utf-8"))
MACHINES, LAYERS = FIGURES["machines"], FIGURES["layers"]
"""Small files of ours, and what AccelForge (see ``source``) says of them: ``moves`` are picojoules of reads and writes.
``benchmarks/foreign_tools.py`` records them."""
FETCHED = "a tensor that stands below a loop that does not touch it is fetched anew each time; here it stays"
HALO = "words that a neighbouring tile held are fetched again; here they stay"
STARTS = "lanes that add up the same words start from zero otherwise, where partial sums come back"
DIFFERENT = {
    1: {"Main.A": FETCHED, "Buffer.A": FETCHED},
    4: {"Main.I": HALO, "Buffer.I": HALO, "Pad.I": HALO, "Main.F": FETCHED, "Pad.F": FETCHED},
    5: {"Buffer.A": FETCHED, "Pad.A": FETCHED},
    6: {"Buffer.A": FETCHED, "Pad.A": FETCHED, "Pad.Z": STARTS},
    7: {"Main.W": FETCHED, "Pad.W": FETCHED},
    10: {"Main.Z": FETCHED, "Buffer.Z": FETCHED},
    11: {"Main.O": FETCHED, "Buffer.O": FETCHED},
}
"""By triple: memory and tensor whose energies differ, and the rule."""
CHAIN = """\
workload:
  rank_sizes: {M: 4, K: 8, N: 8, L: 2}
  bits_per_value: {~W: 8, W: 4}
  einsums:
  - "T[m, n] = A[m, k] * W[k, n]"
  - {einsum: "U[m, n] = T[m, n]"}
  - name: V
    tensor_accesses:
    - {name: U, projection: [m, n]}
    - {name: X, projection: {N: n, L: l}}
    - {name: V, projection: [m, l], output: true, bits_per_value: 16}
    n_instances: 3
"""
read = partial(read_texts, "accelforge")


def test_a_machine_has_energies_of_words_and_rates_of_cycles(tmp_path):
    machine = read(tmp_path, MACHINES["rows"]).accelerator
    assert [level.name for level in machine.levels] == ["Main", "Buffer", "PEs_rows", "PEs_cols", "Reg"]
    main, buffer, rows, cols, reg = machine.levels
    assert (main.capacity_bytes, buffer.capacity_bytes, machine.frequency_mhz) == (None, 4096, 1000)
    assert [round(energy, 9) for energy in vars(buffer.energy).values()] == [4, 8, 8, 4]
    assert (main.bandwidth, buffer.bandwidth) == (Bandwidth(shared=8), Bandwidth(32, 16))
    assert (rows.multicast, rows.reduce) == ((("inputs", True), ("weights", False)), False)
    assert (cols.multicast, cols.reduce) == (False, True)
    assert (reg.keeps, reg.always, main.always) == (("weights",), True, True)
    assert machine.compute.energy_pj_per_mac == pytest.approx(0.5)


def test_words_are_the_narrowest_that_a_memory_keeps_and_rates_count_those(tmp_path):
    """64 bits a cycle are 16 words of 4 bits, as weights have."""
    (layer, _) = CHAIN.split('  - {einsum: "U', 1)
    main = read(tmp_path, MACHINES["rows"], layer).accelerator.memories[0]
    assert (main.word_bits, main.bandwidth, main.energy.read_pj) == (4, Bandwidth(shared=16), pytest.approx(8))


def test_a_rate_of_all_actions_together_is_one_port(tmp_path):
    machine = read(tmp_path, MACHINES["pads"]).accelerator
    buffer = machine.level("Buffer")
    assert buffer.bandwidth == Bandwidth(shared=16)
    assert (buffer.keeps, round(buffer.area_um2, 6), buffer.leakage_mw) == (("inputs", "outputs"), 2000, 1)
    assert [level.shape for level in machine.fanouts] == [(4, 2)]


def test_components_without_energies_take_them_from_our_tables(tmp_path):
    actions = "".join(f"    - {{name: {name}, energy: 2e-12, throughput: 16e9}}\n" for name in ("read", "write"))
    found = read(tmp_path, MACHINES["plain"].replace(f"    actions:\n{actions}", "    component_class: LPDDR4\n"))
    assert found.accelerator.level("Main").energy.read_pj > 1
    assert any("energy of Main from our" in note.text for note in found.notes)


def test_a_workload_is_a_network_of_einsums(tmp_path):
    found = read(tmp_path, CHAIN)
    first, copied, last = found.graph.nodes
    assert (first.name, first.operator.sizes) == ("T", {"m": 4, "k": 8, "n": 8})
    assert [(tensor.role, tensor.word_bits) for tensor in first.operator.tensors] == [
        ("inputs", 8), ("weights", 4), ("outputs", 8)]
    assert (copied.kind, copied.operations, copied.inputs) == ("elementwise", 32, ("T",))
    assert (last.count, last.inputs, last.operator.tensor("V").word_bits) == (3, ("U",), 16)


@pytest.mark.parametrize(("text", "kept"), [
    ("All - weight", ("inputs", "outputs")), ("~(input | output)", ("weights",)), ("Inputs & input", ("inputs",)),
    ("Outputs", ("outputs",)), ("~Main.tensors | weight", ("weights",)),
])
def test_tensors_are_named_by_sets(text, kept, tmp_path):
    for files in ((MACHINES["rows"],), (MACHINES["rows"], LAYERS["fc"])):
        found = read(tmp_path, files[0].replace("keep: weight", f"keep: {text}"), *files[1:])
        assert found.accelerator.level("Reg").keeps == kept


def test_ranges_may_have_their_end(tmp_path):
    ended = LAYERS["conv"].replace("0 <= p < 8", "0 <= p <= 8")
    assert read(tmp_path, ended).operator.sizes["p"] == 9


def test_templates_take_variables_behind_the_name(tmp_path):
    (tmp_path / "chain.yaml").write_text(
        "workload:\n  rank_sizes: {M: {{SIZE}}, K: 4, N: 4}\n  bits_per_value: {All: 8}\n  einsums:\n"
        "  {% for i in range(COUNT + 1) %}\n  - 'T{{i}}[m, n] = A{{i}}[m, k] * W{{i}}[k, n]'\n  {% endfor %}\n")
    path = f"{tmp_path}/chain.yaml:COUNT=2:SIZE=8"
    assert format_of(path).name == "accelforge"
    assert tw.load_network(path).macs == 3 * 8 * 4 * 4


@pytest.mark.parametrize("number", range(len(FIGURES["triples"])))
def test_energies_and_cycles_are_those_of_accelforge_but_for_named_rules(number, tmp_path):
    triple = FIGURES["triples"][number]
    found = read(tmp_path, MACHINES[triple["machine"]], LAYERS[triple["layer"]], triple["mapping"])
    assert not violations(found.mapping, found.operator, found.accelerator)
    cost = cost_model(found.operator, found.accelerator).cost(found.mapping)
    assert cost.steady_cycles / found.accelerator.frequency_mhz == pytest.approx(triple["microseconds"])
    wrong = set()
    for (memory, tensor), count in cost.counts.items():
        energy = found.accelerator.level(memory).energy
        ours = (count.reads * energy.read_pj + count.drains * energy.drain_pj,
                count.fills * energy.fill_pj + count.updates * energy.update_pj)
        theirs = triple["moves"].get(f"{memory}.{tensor}", (0, 0))
        if ours != pytest.approx(theirs, rel=1e-5, abs=1e-6):
            wrong.add(f"{memory}.{tensor}")
            assert sum(ours) < sum(theirs)
    assert wrong == set(DIFFERENT.get(number, ()))
    told = any("fetched anew" in note.text for note in found.notes)
    assert told == (FETCHED in DIFFERENT.get(number, {}).values())
    assert wrong or cost.energy_pj == pytest.approx(triple["energy_pj"], rel=1e-5)


def test_mappings_of_another_tool_are_evaluated_with_their_files(tmp_path):
    """Timeloop's here, written from AccelForge's."""
    triple = FIGURES["triples"][8]
    found = read(tmp_path, MACHINES[triple["machine"]], LAYERS[triple["layer"]], triple["mapping"])
    dump_timeloop(found.operator, found.accelerator, found.mapping).write(tmp_path)
    mapping, problem, *machine = (str(tmp_path / f"{name}.yaml") for name in ("mapping", "problem", "arch", "ERT"))
    evaluated = tw.evaluate(mapping, problem, ",".join(machine))
    assert evaluated.legal
    assert evaluated.cost.energy_pj == pytest.approx(triple["energy_pj"], rel=1e-5)


def test_einsums_that_run_one_after_the_other_are_mapped_each(tmp_path):
    nodes = "".join(f"""\
    - !Nested
      nodes:
      - !Storage {{component: Buffer, tensors: [{', '.join(tensors)}]}}
      - !Temporal {{rank_variable: m, tile_shape: 1}}
      - !Temporal {{rank_variable: n, tile_shape: 1}}
      - !Temporal {{rank_variable: {last}, tile_shape: 1}}
      - !Compute {{einsum: {name}, component: MAC}}
""" for name, tensors, last in (("T", "AWT", "k"), ("V", "UXV", "l")))
    text = ("mapping:\n  nodes:\n  - !Storage {component: Main, tensors: [A, W, T, U, X, V]}\n  - !Sequential\n"
            f"    nodes:\n{nodes}")
    found = read(tmp_path, MACHINES["plain"], CHAIN, text)
    assert set(found.mappings) == {"T", "V"}
    fused = text.replace("  - !Sequential", "  - !Temporal {rank_variable: m, tile_shape: 1}\n  - !Sequential")
    with pytest.raises(InputError, match="must not be shared by several einsums"):
        read(tmp_path, MACHINES["plain"], CHAIN, fused)
    kept = text.replace("tensors: [A, W, T, U", "tensors: [A, W, U")
    with pytest.raises(InputError, match="must have every tensor of T in Main"):
        read(tmp_path, MACHINES["plain"], CHAIN, kept)


MALFORMED = {
    "no compute": (0, "  - !Compute", "  - !Memory", "arch.nodes: must end in a !Compute"),
    "unknown component": (0, "  - !Container", "  - !Cache", "must be a !Memory, !Compute"),
    "size of a word": (0, "size: 8 * 4096", "size: much", "size: must be a number or an expression"),
    "set of nothing": (0, "keep: weight", "keep: filters", "keep: must be a set of tensors"),
    "no set": (0, "keep: weight", "keep: weight +", "keep: must be a set of tensors"),
    "keeps nothing": (0, "keep: weight", "keep: Nothing", "must let the memory keep some tensor"),
    "negative energy": (0, "energy: 2e-12", "energy: -2e-12", "energy: must not be negative"),
    "no throughput": (0, "throughput: 64e9", "throughput: 0", "throughput: must be positive"),
    "no fan-out": (0, "fanout: 4, may", "fanout: 0, may", "fanout: must be a whole number of at least 1"),
    "latency": (0, "max(a.n_calls / a.throughput for a in actions)", "prod(a)", "must be the sum or max"),
    "bits of an action": (0, "bits_per_action: 16", "bits_per_action: 0", "bits_per_action: must be positive"),
    "no einsums": (1, "  einsums:", "  einsum:", "workload.einsums: must be a list"),
    "no size": (1, "K: 16", "J: 16", "must have the size of every rank variable"),
    "no output": (1, ", output: True", "", "must have one output, and operands"),
    "two names": (1, "name: W,", "name: A,", "each with a name of its own"),
    "index of three": (1, "[m, n]", "{M: m + n + k, N: n}", "must use each dimension at most once"),
    "index that is none": (1, "[m, k]", "{M: m * n, K: k}", "must be indexed by rank variables"),
    "bits of unknown": (1, "{All: 8}", "{Filters: 8}", "must be a set of tensors"),
    "unknown einsum": (2, "einsum: fc", "einsum: fd", "must name an einsum of the workload"),
    "unknown variable": (2, "rank_variable: k", "rank_variable: q", "must be a rank variable of fc (m, k, n)"),
    "unknown memory": (2, "component: Reg", "component: Regs", "component: must be a memory (Main, Buffer, Reg)"),
    "unknown lanes": (2, "name: cols", "name: Z", "must name a component and one of its spatial fan-outs"),
    "what it does not keep": (2, "tensors: [W]}\n  - !Temporal {rank_variable: m", "tensors: [A]}\n  - !Temporal "
                              "{rank_variable: m", "must be kept in Reg"),
    "uneven": (2, "component: Buffer, tensors: [A]", "component: Buffer, tensors: [W]", "must stand in Buffer once"),
    "no tile": (2, "tile_shape: 8", "tile_shape: 0", "tile_shape: must be a whole number"),
    "no end": (2, "  - !Compute {einsum: fc, component: MAC}\n", "", "must end in a !Compute"),
}


@pytest.mark.parametrize("name", list(MALFORMED))
def test_what_is_wrong_is_one_error_with_its_line(name, tmp_path):
    which, old, new, expected = MALFORMED[name]
    texts = [MACHINES["rows"], LAYERS["fc"], FIGURES["triples"][0]["mapping"]]
    assert old in texts[which]
    texts[which] = texts[which].replace(old, new, 1)
    with pytest.raises(InputError) as error:
        read(tmp_path, *texts)
    assert expected in str(error.value)
    assert str(error.value).startswith(f"file{which}.yaml:")


def test_loops_between_the_depths_of_a_memory_are_refused(tmp_path):
    text = FIGURES["triples"][0]["mapping"].replace("variable: n, tile_shape: 8", "variable: m, tile_shape: 8")
    with pytest.raises(InputError, match="must have all tensors of Buffer at one depth"):
        read(tmp_path, MACHINES["rows"], LAYERS["fc"], text)


def test_files_that_do_not_go_together(tmp_path):
    mapping = FIGURES["triples"][0]["mapping"]
    with pytest.raises(InputError, match="must come with the architecture"):
        read(tmp_path, LAYERS["fc"], mapping)
    with pytest.raises(InputError, match="must come with the workload"):
        read(tmp_path, MACHINES["rows"], mapping)
    with pytest.raises(InputError, match="must be given once"):
        read(tmp_path, MACHINES["rows"], MACHINES["plain"])
