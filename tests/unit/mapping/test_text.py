"""The loop nest that people read."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from tilewright.mapping import LevelLoops, Loop, Mapping, NestRoom, nest_rows, render
from tilewright.workload import convolution

CONV = convolution("conv2_1", in_channels=64, out_channels=64, in_size=56, kernel=3, padding=1)
NEST = Mapping((
    LevelLoops("DRAM", (Loop("P", 8), Loop("K", 32))),
    LevelLoops("GLB", (Loop("Q", 4), Loop("C", 10)), ("I", "O")),
    LevelLoops("PEs", (Loop("Q", 1, "X"), Loop("K", 11, "X"), Loop("C", 1, "Y"))),
    LevelLoops("RF", (Loop("P", 1), Loop("C", 1), Loop("K", 1), Loop("R", 1), Loop("S", 1)), ("W", "O")),
))

DRAWN = """\
conv2_1 on spads   N=1 K=64 C=64 P=56 Q=56 R=3 S=3
DRAM  I 210.2 KiB   W 36.0 KiB   O 196.0 KiB
        for P in 0..7                 step 8
         for K in 0..2                step 32
GLB   I 36.2 KiB   O 14.0 KiB         2x 50.2 KiB of 108.0 KiB, 93%
          for Q in 0..14              step 4
           for C in 0..7              step 10, last 4
PEs   array 14 x 12                   uses 12 x 10, 71%
            par-for Q in 0..4 @X      step 1
             par-for K in 0..3 @X     step 11, last 10
              par-for C in 0..10 @Y   step 1
RF    W 99 B of 224 B   O 88 B of 24 B
               for P in 0..8          step 1
                for K in 0..11        step 1
                 for R in 0..3        step 1
                  for S in 0..3       step 1
MAC   O[N,K,P,Q] += I[N,C,P+R,Q+S] * W[K,C,R,S]"""


def test_render_draws_the_nest(machines):
    assert render(NEST, CONV, machines["spads"]) == DRAWN


def test_markup_says_the_same_in_colours(machines):
    out = io.StringIO()
    Console(file=out, width=200, force_terminal=True).print(render(NEST, CONV, machines["spads"], markup=True),
                                                            highlight=False)
    assert "\x1b[1;36mGLB" in out.getvalue()
    assert "\x1b[31mW 99 B of 224 B   O 88 B of 24 B" in out.getvalue(), "what does not fit is red"
    plain = io.StringIO()
    Console(file=plain, width=200).print(render(NEST, CONV, machines["spads"], markup=True), highlight=False)
    assert [line.rstrip() for line in plain.getvalue().splitlines()] == DRAWN.splitlines()


def test_rows_carry_what_a_page_draws(machines):
    rows = nest_rows(NEST, CONV, machines["spads"])
    assert [row.kind for row in rows] == (["memory"] + ["for"] * 2 + ["memory"] + ["for"] * 2 + ["fanout"]
                                          + ["par-for"] * 3 + ["memory"] + ["for"] * 4 + ["compute"])
    assert [row.indent for row in rows] == [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 11]
    glb = rows[3]
    assert {tile.tensor: (tile.role, tile.words, tile.bytes) for tile in glb.tiles} == {
        "I": ("inputs", 64 * 10 * 58, 37120.0), "O": ("outputs", 32 * 8 * 56, 14336.0)}
    assert glb.rooms == (NestRoom(None, 2 * (37120 + 14336.0), 110592.0, 2),)
    assert (rows[8].count, rows[8].note, rows[10].instances) == (3, "step 11, last 10", 168)
    assert [(t.tensor, t.partition) for t in rows[10].tiles] == [("W", "weights"), ("O", "outputs")]
    assert rows[-1].level == "MAC"


def test_arrays_that_are_too_small_for_their_loops_are_red(machines):
    wide = Mapping(tuple(replace(entry, loops=(Loop("K", 1, "X"),)) if entry.level == "PEs" else entry
                         for entry in NEST.levels))
    drawn = render(wide, CONV, machines["spads"], markup=True).splitlines()
    told = [next(line for line in text if "uses" in line) for text in (
        drawn, render(NEST, CONV, machines["spads"], markup=True).splitlines())]
    assert ["[red]" in line for line in told] == [True, False]


def test_loops_that_run_once_are_left_out(machines):
    idle = Mapping((LevelLoops("DRAM", (Loop("K", 64), Loop("K", 1))),))
    rows = nest_rows(idle, CONV, machines["scalar"])
    assert [row.text for row in rows if row.kind == "for"] == ["for K in 0..64"]


@pytest.mark.parametrize(("machine", "text"), [
    ("flexible", "flexible array 168 x 1"), ("blocks", "array 16 x 16 of 4 x 4 blocks"), ("systolic", "array 32 x 32")])
def test_arrays_say_how_they_are_built(machines, machine, text):
    entries = tuple(LevelLoops(level.name) for level in machines[machine].levels)
    rows = nest_rows(Mapping(entries), CONV, machines[machine])
    assert next(row for row in rows if row.kind == "fanout").text == text


def test_a_mapping_prints_by_itself():
    assert str(NEST).splitlines()[:3] == [
        "DRAM  [P: 8, K: 32]", "GLB   [Q: 4, C: 10] keeps I O", "PEs   [Q@X: 1, K@X: 11, C@Y: 1]"]
    assert str(Mapping(())) == ""
