"""What Timeloop would not take is told when it is written, and with --strict not written.

The figures are those of its own messages (NVlabs/timeloop 4cf6d4c, timeloop-model on these very files).
"""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tilewright.api import convert
from tilewright.base import InputError
from tilewright.cli import app
from tilewright.hardware import Accelerator, AccessEnergy, Compute, Fanout, Memory, dump_accelerator
from tilewright.interop import Foreign, dump_program, dump_timeloop
from tilewright.mapping import LevelLoops, Loop, Mapping, dump_mapping, is_legal
from tilewright.workload import Graph, MacNode, convolution

ROLES = ("inputs", "weights", "outputs")
OPERATOR = convolution("c", in_channels=8, out_channels=4, kernel=(1, 1), out_size=(14, 14), stride=2)
NEST = Mapping((LevelLoops("DRAM", (Loop("K", 2),)), LevelLoops("GLB", (Loop("P", 1), Loop("Q", 1), Loop("C", 2))),
                LevelLoops("PE", (Loop("C", 1, "X"), Loop("K", 1, "Y"))), LevelLoops("RF")))


def machine(**glb):
    return Accelerator("m", (
        Memory("DRAM", ROLES, AccessEnergy(*[100.0] * 4)),
        Memory("GLB", ROLES, AccessEnergy(*[6.0] * 4), **{"capacity_bytes": 6000.0, "block_words": 8, **glb}),
        Fanout("PE", (2, 2)), Memory("RF", ROLES, AccessEnergy(*[1.0] * 4), 64.0, buffering="buffet")),
        Compute("MAC", 1.0))


# "couldn't map level GLB: mapped tile size 6240 exceeds buffer capacity 3000", and so on.
SAID = {"twice": ({}, "GLB", 6240, 3000),
        "once": ({"buffering": "buffet", "capacity_bytes": 6239.0}, "GLB", 6240, 6232),
        "in parts": ({"buffering": "buffet", "partitions_bytes": (("inputs", 2000.0),)}, "GLB_inputs", 5832, 2000)}


@pytest.mark.parametrize("name", SAID)
@pytest.mark.parametrize("dump", [dump_program, dump_timeloop])
def test_tiles_whose_boxes_do_not_fit_are_told_with_level_tensors_words_and_capacity(dump, name):
    made, level, words, capacity = SAID[name]
    accelerator = machine(**made)
    assert is_legal(NEST, OPERATOR, accelerator)
    assert not is_legal(NEST, OPERATOR, replace(accelerator, footprint="box"))
    told = [note for note in dump(OPERATOR, accelerator, NEST).notes if note.kind == "refused"]
    assert [note.where for note in told] == [f"mapping.{level}"]
    assert told[0].text.startswith(f"tiles of {words:,} words (I 5,832")
    assert f"more than the {capacity:,} that {level} holds" in told[0].text
    what = Foreign(Graph("c", (MacNode(OPERATOR),)), accelerator, {"c": NEST})
    with pytest.raises(InputError, match="would be refused"):
        convert(what, "timeloop-model", strict=True)


@pytest.mark.parametrize("to", ["timeloop", "maestro", "scale-sim"])
@pytest.mark.parametrize(("array", "shared", "rule"), [
    ({"multicast": "x"}, (), "m.PE: must merge the words of all tensors alike"),
    ({"reduce": (("outputs", "y"),)}, (), "m.PE: must merge the words of all tensors alike"),
    ({}, ("PE.x",), "m.Reg.shared: must be left out for")])
def test_what_other_formats_cannot_say_of_networks_and_memories_is_refused(to, array, shared, rule):
    dram, glb, mesh, _ = machine().levels
    made = Accelerator("m", (dram, glb, replace(mesh, **array), Memory(
        "Reg", ("weights",), AccessEnergy(*[1.0] * 4), 64.0, shared=shared)), Compute("MAC", 1.0))
    what = Foreign(Graph("c", (MacNode(OPERATOR),)), made)
    with pytest.raises(InputError, match=rule):
        convert(what, to)
    assert "shape: [2, 2]" in convert(what).files["accelerator.yaml"]


def test_what_fits_as_a_box_is_written_without_a_word():
    accelerator = replace(machine(buffering="buffet", capacity_bytes=6240.0), footprint="box")
    assert is_legal(NEST, OPERATOR, accelerator)
    assert not [note for note in dump_program(OPERATOR, accelerator, NEST).notes if note.kind == "refused"]


def test_arrays_of_free_shape_are_as_wide_as_the_mapping_and_lanes_beyond_one_of_blocks_are_told():
    one = machine(buffering="buffet", capacity_bytes=6240.0)
    free, blocks = (replace(one, levels=tuple(replace(level, **kind) if isinstance(level, Fanout) else level
                                              for level in one.levels))
                    for kind in ({"flexible": True}, {"blocks": (1, 1)}))
    across = replace(NEST, levels=(*NEST.levels[:2], LevelLoops("PE", (Loop("C", 1, "X"), Loop("K", 1, "X"))),
                                   NEST.levels[3]))
    assert not [note for note in dump_program(OPERATOR, free, across).notes if note.kind == "refused"]
    assert "meshX: 4" in dump_program(OPERATOR, free, across).files["arch.yaml"]
    notes = dump_program(OPERATOR, blocks, across).notes
    assert [str(note) for note in notes if note.kind == "refused"] == [
        "mapping.PE: refused: 4 lanes along X, more than the 2 of the array that is written"]


def test_convert_tells_and_with_strict_writes_nothing(tmp_path):
    (tmp_path / "machine.yaml").write_text(dump_accelerator(machine()))
    (tmp_path / "mapping.yaml").write_text(dump_mapping(NEST, OPERATOR, machine()))
    asked = ["convert", str(tmp_path / "mapping.yaml"), "--network", "conv:K=4,C=8,P=14,Q=14,R=1,S=1,stride=2",
             "--arch", str(tmp_path / "machine.yaml"), "--to", "timeloop-model", "--out", str(tmp_path / "out")]
    strict = CliRunner().invoke(app, [*asked, "--strict"])
    assert isinstance(strict.exception, InputError)
    assert not (tmp_path / "out").exists()
    loose = CliRunner().invoke(app, asked)
    assert loose.exit_code == 0
    assert "mapping.GLB: refused: tiles of 6,240 words (I 5,832, W 16, O 392), more than the 3,000" in loose.output
    boxed = CliRunner().invoke(app, ["evaluate", *asked[1:6], "--footprint", "box"])
    assert boxed.exit_code == 1
    assert "12480 B of 6000 B" in boxed.output.replace("\n", " ")
