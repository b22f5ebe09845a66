"""Graphs: order, duplicates, coverage."""

import subprocess
import sys

import pytest

from tilewright.base import InputError
from tilewright.workload import (
    DataMovement,
    Graph,
    MacNode,
    Unmodelled,
    VectorOperator,
    coverage,
    linear,
    matmul,
    unique_operators,
)


def node(name: str, *inputs: str, rows: int = 2, count: int = 1, note: str = "") -> MacNode:
    return MacNode(linear(name, rows=rows, in_features=10, out_features=5), inputs, count, note)


def test_duplicates_are_searched_once_and_counted() -> None:
    graph = Graph("g", (node("a"), node("b", "a", rows=3), node("c", "b", count=4), node("d", "a")))
    unique = unique_operators(graph)
    assert [(u.operator.name, u.count, u.names) for u in unique] == [("a", 6, ("a", "c", "d")), ("b", 1, ("b",))]
    assert sum(u.operator.macs * u.count for u in unique) == graph.macs == 6 * 100 + 150


def test_same_sizes_but_other_tensors_are_not_duplicates() -> None:
    batched = MacNode(matmul("a", 2, 3, 4, batch=5))
    rows = MacNode(linear("b", rows=10, in_features=4, out_features=3))
    assert len(unique_operators(Graph("g", (batched, rows)))) == 2


@pytest.mark.parametrize(("nodes", "message"), [
    ((node("a"), node("a")), "g.nodes: must have distinct names; Got 'a'."),
    ((node("b", "a"), node("a")), "g.b.inputs: must name nodes that come before; Got ['a']."),
])
def test_disordered_graphs_are_refused(nodes: tuple, message: str) -> None:
    with pytest.raises(InputError) as error:
        Graph("g", nodes)
    assert str(error.value) == message


def test_full_coverage_says_so() -> None:
    graph = Graph("g", (node("a"), VectorOperator("r", "relu", 10, 10, 10, ("a",)), DataMovement("v", "view", 0, 0)))
    report = coverage(graph)
    assert report.sentence == "100 % of MACs, 100 % of bytes modelled"
    assert report.bytes_modelled == 2 * 10 + 10 * 5 + 2 * 5 + 20


def test_bytes_follow_the_width_and_the_runs() -> None:
    assert coverage(Graph("g", (node("a", count=3),)), default_bits=16).bytes_modelled == 3 * 80 * 2
    assert VectorOperator("v", "add", 4, 8, 4, word_bits=32).bytes_moved() == 48


def test_what_is_not_modelled_is_weighed_and_named() -> None:
    graph = Graph("g", (node("a", note="something like it"), Unmodelled("x", "Odd", "nobody knows how", 50, 80)))
    report = coverage(graph)
    assert report.macs_fraction == 100 / 150
    assert report.bytes_fraction == 0.5
    assert report.sentence == ("66.7 % of MACs, 50.0 % of bytes modelled; these nodes approximated: "
                               "a as something like it; not modelled: x (Odd: nobody knows how)")


def test_unknown_weights_turn_the_fractions_into_limits() -> None:
    report = coverage(Graph("g", (node("a"), Unmodelled("x", "Loop", "trips unknown"))))
    assert report.unknown == ("x",)
    assert report.sentence.startswith("an unknown share: 100 MACs and 80 bytes modelled, 1 node of unknown size lost; "
                                      "not modelled: x (Loop: ")
    assert report.sentence.endswith("MACs or bytes unknown of x")


def test_coverage_is_numbers() -> None:
    lost = Unmodelled("x", "Odd", "nobody knows how", 50, 80), Unmodelled("z", "Loop", "trips unknown", 0)
    assert coverage(Graph("g", (node("a"), *lost))).figures == (
        "100 MACs and 80 bytes modelled, 50 MACs and 80 bytes lost with 1 node of known size, "
        "1 node of unknown size lost")
    assert coverage(Graph("g", (node("a"),))).figures == "100 MACs and 80 bytes modelled, none lost"
    assert [coverage(Graph("g", (node("a"), *some))).complete for some in ((), lost[:1], lost[1:])] == [
        True, False, False]


def test_nearly_all_never_reads_as_all() -> None:
    graph = Graph("g", (node("a", rows=10**9), Unmodelled("x", "Odd", "small", 1, 1)))
    assert coverage(graph).sentence.startswith("99.9 % of MACs, 99.9 % of bytes")


def test_long_lists_of_names_are_cut_short() -> None:
    nodes = tuple(Unmodelled(f"x{i}", "Odd", "many", 1, 1) for i in range(9))
    assert "x0, x1 and 7 more (Odd: many)" in coverage(Graph("g", nodes)).sentence


def test_nodes_are_found_by_name() -> None:
    graph = Graph("g", (node("a"),))
    assert graph.node("a").kind == "matmul"
    with pytest.raises(InputError, match="must have a node of this name"):
        graph.node("b")


def test_weights_are_counted_once() -> None:
    embedding = DataMovement("e", "embedding", 4, 4, attributes=(("parameters", 1000),))
    assert Graph("g", (embedding, node("a", count=7))).weight_words == 1050


def test_importing_the_room_loads_nothing_heavy() -> None:
    code = ("import sys, tilewright.workload as w; w.zoo.names(); "
            "print(sorted(m for m in ('onnx', 'numba', 'pydantic', 'ruamel.yaml', 'numpy') if m in sys.modules))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
