"""Random files of MAESTRO and GAMMA: every mapping computes its layer, and import, export, import is the identity."""

from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.base import InputError
from tilewright.cost.reference import walk
from tilewright.interop import dump_gamma, dump_maestro, load_maestro

CONV, GEMM = ("N", "K", "C", "R", "S", "Y", "X"), ("M", "N", "K")


@st.composite
def sizes(draw, kind):
    if kind in ("GEMM", "BMM"):
        return {name: draw(st.sampled_from((3, 2, 5, 1))) for name in (("B",) if kind == "BMM" else ()) + GEMM}
    kernel = {name: draw(st.integers(1, 3)) for name in ("R", "S")}
    image = {name: kernel[other] + draw(st.sampled_from((2, 3, 4, 0))) for name, other in (("Y", "R"), ("X", "S"))}
    groups = {"G": draw(st.integers(1, 3))} if kind == "NGCONV" else {}
    channels = {name: draw(st.sampled_from((2, 3, 1, 5))) for name in ("N", "K", "C")}
    return {**groups, **channels, **({"K": 1} if kind == "DSCONV" else {}), **kernel, **image}


@st.composite
def stages(draw, names):
    """Directives of up to three cluster levels; tiles and offsets fit or do not."""
    lines = []
    for level in range(draw(st.sampled_from((2, 2, 3, 1)))):
        if level:
            lines.append(f"Cluster({draw(st.sampled_from((2, 3, 4, 1)))}, P);")
        by_letter = {name.rstrip("'"): name for name in draw(st.permutations(names))}
        chosen = list(by_letter.values())[:draw(st.sampled_from((7, 5, 4, 2, 1)))]
        spatial = {chosen[draw(st.integers(0, len(chosen) - 1))], chosen[draw(st.integers(0, len(chosen) - 1))]}
        for name in chosen:
            size = draw(st.sampled_from((1, 2, 1, 3, 6)))
            offset = draw(st.sampled_from((1, size, size + 1)))
            lines.append(f"{'SpatialMap' if name in spatial else 'TemporalMap'}({size}, {offset}) {name};")
    return "\n".join(lines)


@st.composite
def networks(draw):
    layers = []
    for index in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(("CONV", "CONV", "DSCONV", "NGCONV", "TRCONV", "GEMM", "BMM")))
        found = draw(sizes(kind))
        names = tuple(found) + (("Y'", "X'") if "Y" in found else ())
        stride = f"Stride {{ Y: {draw(st.integers(1, 2))}, X: {draw(st.integers(1, 2))} }}" if "Y" in found else ""
        flow = draw(st.sampled_from(("own", "own", "own", "none", "empty")))
        text = {"own": f"Dataflow {{\n{draw(stages(names))}\n}}", "none": "", "empty": "Dataflow { }"}[flow]
        dimensions = ", ".join(f"{name}: {size}" for name, size in found.items())
        layers.append(f"Layer L{index} {{ Type: {kind} {stride} Dimensions {{ {dimensions} }}\n{text} }}")
    return "Network net {\n" + "\n".join(layers) + "\n}\n"


@st.composite
def hardware(draw):
    lines = [f"num_pes: {draw(st.integers(16, 70))}"]
    for name in ("l1_size_cstr", "l2_size_cstr", "noc_bw_cstr", "offchip_bw_cstr"):
        if draw(st.booleans()):
            lines.append(f"{name}: {draw(st.integers(1, 10_000))}")
    return "\n".join(lines)


@st.composite
def genomes(draw):
    """A layer table, and a genome for some of its rows."""
    rows, cells = [], []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from((1, 2, 3)))
        r, s = (1, 1) if kind == 3 else (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
        y, x = r + draw(st.integers(0, 4)), 1 if kind == 3 else s + draw(st.integers(0, 4))
        k = 1 if kind == 2 else draw(st.integers(1, 5))
        rows.append(f"{k},{draw(st.integers(1, 5))},{y},{x},{r},{s},{kind}")
        genes = []
        for _ in range(draw(st.integers(1, 3))):
            genes.append([draw(st.sampled_from("KCYX")), draw(st.integers(1, 3))])
            genes += [[letter, draw(st.integers(1, 6))] for letter in draw(st.permutations("KCYXRS"))]
        cells.append(str(genes) if draw(st.integers(0, 4)) else "")
    result = ",PE,best_sol\n" + "".join(f'{index},30.0,"{cell}"\n' for index, cell in enumerate(cells))
    return {"net.csv": "K,C,Y,X,R,S,T\n" + "\n".join(rows), "result_c.csv": result}


def loaded(files):
    with TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in files]
        for path in paths:
            path.write_text(files[path.name])
        return load_maestro(paths)


def check(found, dump):
    """Every mapping computes exactly its layer, and what is written reads back as it was."""
    for node in found.graph.mac_nodes:
        if node.name in found.mappings:
            counts = walk(node.operator, found.accelerator, found.mappings[node.name]).counts
            macs = prod(node.operator.sizes.values())
            assert counts["L1", "I"].reads == counts["L1", "W"].reads == counts["L1", "O"].updates == macs
    written = dump(found)
    again = loaded(written.files)
    assert again.graph.nodes == found.graph.nodes
    assert again.graph.name == found.graph.name
    assert again.accelerator == found.accelerator
    assert again.mappings == found.mappings
    assert dump(again).files == written.files
    assert all("clamped" not in note.text and "offset" not in note.text for note in again.notes)


@settings(max_examples=30, deadline=None)
@given(networks(), st.none() | hardware())
def test_networks_and_hardware(network, machine):
    try:
        found = loaded({"net.m": network} | ({"hw.m": machine} if machine else {}))
    except InputError as error:
        assert "must have room in" in str(error)
        return
    check(found, dump_maestro)


@settings(max_examples=40, deadline=None)
@given(genomes(), st.none() | hardware())
def test_layer_tables_and_genomes(files, machine):
    check(loaded(files | ({"hw.m": machine} if machine else {})), dump_gamma)
