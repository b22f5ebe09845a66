"""SCALE-Sim's files: import, export, import again is the identity; damaged ones are read or refused in one error."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.base import InputError
from tilewright.interop import FORMATS

FORM = FORMATS.get("scale-sim")
NAMES = st.lists(st.from_regex(r"[A-Za-z#/][A-Za-z0-9_. /:#'-]{0,8}[a-z]", fullmatch=True), min_size=1, max_size=5)
COUNTS = st.integers(1, 40)


@st.composite
def convolutions(draw, wide):
    kernel = draw(st.tuples(*[st.integers(1, 4)] * 2))
    size = [side + draw(st.integers(0, 9)) for side in kernel]
    cells = [*size, *kernel, draw(COUNTS), draw(COUNTS), draw(st.integers(1, 4))]
    return [*cells, *([draw(st.integers(1, 4))] if wide else [])]


@st.composite
def topologies(draw):
    names = draw(NAMES)
    wide, sparse = draw(st.booleans()), draw(st.booleans())
    if draw(st.booleans()):
        head = ["Layer name", "IFMAP Height", "IFMAP Width", "Filter Height", "Filter Width", "Channels", "Num Filter",
                "Strides", *(["Stride Width"] if wide else [])]
        rows = [draw(convolutions(wide)) for _ in names]
    else:
        head, rows = ["Layer", "M", "N", "K"], [[draw(COUNTS) for _ in range(3)] for _ in names]
    for row in rows if sparse else ():
        most = draw(st.integers(1, 8))
        row.append(f"{draw(st.integers(1, most))}:{most}")
    comma = draw(st.sampled_from([",", ",  # a remark", ""]))
    lines = [",".join(head) + ","] + [draw(st.sampled_from([", ", ","])).join([name, *map(str, row)]) + comma
                                      for name, row in zip(names, rows, strict=True)]
    return "\n".join(lines) + "\n"


@st.composite
def configurations(draw):
    sign = draw(st.sampled_from([":", " = ", " : "]))
    fields = {"ArrayHeight": draw(COUNTS), "ArrayWidth": draw(COUNTS), "IfmapSramSzkB": draw(COUNTS),
              "FilterSramSzkB": draw(COUNTS), "OfmapSramSzkB": draw(COUNTS), "Bandwidth": draw(COUNTS),
              "Dataflow": draw(st.sampled_from(["os", "ws", "is"])), "MemoryBanks": 1}
    name = draw(st.from_regex(r"[A-Za-z][A-Za-z0-9_':. ]{0,8}", fullmatch=True)).strip()
    lines = ["[general]", f"run_name{sign}{name}", "[architecture_presets]",
             *(f"{key}{sign}{value}" for key, value in draw(st.permutations(list(fields.items())))),
             "[run_presets]", f"InterfaceBandwidth{sign}{draw(st.sampled_from(['CALC', 'USER']))}"]
    return "\n".join(lines) + "\n"


def again(name, text):
    """What a text holds, and what its export holds, the export's notes with it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text)
        first = FORM.read([path], {})
        made = FORM.write(first)
        return first, made, FORM.read(made.write(Path(folder) / "again"), {})


@settings(max_examples=5, deadline=None)
@given(topologies())
def test_topologies(text):
    first, made, second = again("net.csv", text)
    assert list(made.files) == ["net.csv"]
    assert second.graph == first.graph
    assert [node.operator.attributes for node in second.graph.mac_nodes] == [
        node.operator.attributes for node in first.graph.mac_nodes]


@settings(max_examples=12, deadline=None)
@given(configurations())
def test_configurations(text):
    first, made, second = again("scale.cfg", text)
    assert second.accelerator == first.accelerator
    assert not first.notes
    assert not second.notes
    assert not made.notes


@settings(max_examples=50, deadline=None)
@given(st.one_of(topologies(), configurations()), st.data())
def test_damaged_files_are_read_or_refused(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 12)))
    damaged = text[:start] + data.draw(st.text(max_size=6)) + text[end:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ("scale.cfg" if "[" in text else "net.csv")
        path.write_bytes(damaged.encode("utf-8", "surrogatepass"))
        FORM.holds(path)
        try:
            found = FORM.read([path], {})
        except InputError as error:
            assert error.rule
        else:
            assert found.graph or found.accelerator
