"""The zoo: every total against what somebody else published, or against a formula from the paper's configuration."""

from itertools import pairwise
from math import prod

import pytest

from tilewright.base import InputError
from tilewright.workload import (
    DataMovement,
    Graph,
    MacNode,
    Unmodelled,
    VectorOperator,
    coverage,
    unique_operators,
    zoo,
)

REQUIRED = ("densenet121", "googlenet", "resnext50", "squeezenet", "mobilebert", "distilbert", "albert", "wide-deep",
            "din", "alexnet", "vgg16", "resnet18", "resnet50", "mobilenet-v2", "mnasnet", "shufflenet", "bert-base",
            "bert-large", "gpt2", "transformer-xl", "xlm", "flaubert", "t5-base", "dlrm", "ncf", "gnmt",
            "faster-rcnn", "deepspeech2", "alphagozero", "deepbench-conv-training", "deepbench-conv-server",
            "deepbench-conv-device", "deepbench-gemm-training", "deepbench-gemm-server", "deepbench-gemm-device")


def test_the_zoo_has_what_was_asked_for() -> None:
    assert set(REQUIRED) <= set(zoo.names())


@pytest.mark.parametrize("name", zoo.names())
def test_totals_against_published_figures(name: str) -> None:
    for figure in zoo.describe(name).published:
        graph = zoo.load(name, **dict(figure.options))
        ours = {"macs": graph.macs, "parameters": graph.weight_words, "nodes": len(graph.mac_nodes)}[figure.quantity]
        assert ours == pytest.approx(figure.value, rel=figure.tolerance, abs=0), figure.source
        assert figure.tolerance <= 0.015


def encoder(layers: int, width: int, inner: int, rows: int) -> int:
    """Transformer blocks: four projections, two products of activations, two feed-forward layers."""
    return layers * (4 * rows * width * width + 2 * rows * rows * width + 2 * rows * width * inner)


def t5(layers: int, width: int, inner: int, rows: int) -> int:
    decoder = layers * (8 * rows * width * width + 4 * rows * rows * width + 2 * rows * width * inner)
    return encoder(layers, width, inner, rows) + decoder + rows * width * 32128


def transformer_xl(rows: int, memory: int) -> int:
    d, keys = 1024, rows + memory
    block = (2 * rows + 3 * keys) * d * d + 3 * rows * keys * d + 2 * rows * d * 4096  # q, o; k, v, r; 3 products; ff
    tails = sum(d * width + width * words for width, words in ((256, 20000), (64, 160000), (16, 67735)))
    return 18 * block + rows * (d * 20003 + tails)


def gnmt(source: int, target: int) -> int:
    h = 1024
    encode = 2 * (h + h) + (2 * h + h) + 2 * (h + h)
    decode = (h + h) + 3 * (2 * h + h)
    attend = target * (h * h + 2 * source * h) + source * h * h  # query, scores and context; keys
    return 4 * h * (source * encode + target * decode) + attend + target * h * 32320


def deepspeech2(frames: int) -> int:
    steps = frames // 2
    convolutions = steps * (81 * 32 * 41 * 11 + 41 * 32 * 32 * 21 * 11)
    recurrent = steps * 3 * 2560 * ((32 * 41 + 2560) + 2 * (2560 + 2560))
    return convolutions + recurrent + steps * (2560 * 81 + 2560 * 29)


def layers(*widths: int) -> int:
    return sum(a * b for a, b in pairwise(widths))


def whisper(blocks: int, width: int, text: int) -> int:
    """Two convolutions over 3,000 frames, blocks over 1,500 and ``text`` positions, attention across, and the head."""
    sound = 3000 * 3 * 80 * width + 1500 * 3 * width * width
    across = blocks * (2 * (text + 1500) * width * width + 2 * text * 1500 * width)
    return (sound + encoder(blocks, width, 4 * width, 1500) + encoder(blocks, width, 4 * width, text) + across
            + text * width * 51865)


def stable_diffusion(attention: bool = True) -> int:
    """The blocks of unet/config.json, channels written out; without the products of activations where not asked for."""

    def conv(channels: int, out: int, side: int, kernel: int = 9) -> int:
        return channels * out * side * side * kernel

    def block(channels: int, out: int, side: int) -> int:
        shortcut = conv(channels, out, side, 1) if channels != out else 0
        return conv(channels, out, side) + conv(out, out, side) + 1280 * out + shortcut

    def transformer(width: int, side: int) -> int:
        rows = side * side
        products = 2 * rows * width * (rows + 77) if attention else 0
        return (2 + 4 + 2 + 8 + 4) * rows * width * width + 2 * 77 * 768 * width + products

    blocks = [(320, 320, 64), (320, 320, 64), (320, 640, 32), (640, 640, 32), (640, 1280, 16), (1280, 1280, 16),
              (2560, 1280, 16), (2560, 1280, 16), (1920, 1280, 16), (1920, 640, 32), (1280, 640, 32), (960, 640, 32),
              (960, 320, 64), (640, 320, 64), (640, 320, 64)]
    plain = 4 * block(1280, 1280, 8) + 3 * block(2560, 1280, 8) + transformer(1280, 8)
    between = (conv(320, 320, 32) + conv(640, 640, 16) + conv(1280, 1280, 8)
               + conv(1280, 1280, 16) + conv(1280, 1280, 32) + conv(640, 640, 64))
    ends = 2 * conv(4, 320, 64) + 320 * 1280 + 1280 * 1280
    return ends + plain + between + sum(block(*one) + transformer(*one[1:]) for one in blocks)


def on_images(side: int, channels: int, *stacks: tuple[tuple[int, int], ...]) -> int:
    """Convolutions (channels, kernel) that keep their size, in stacks; each stack is followed by a halving."""
    total = 0
    for stack in stacks:
        for out, kernel in stack:
            total += channels * out * side * side * kernel * kernel
            channels = out
        side = max(1, side // 2)
    return total


# Nobody published a total of multiply-accumulates for these: the total follows from the configuration in the source.
DERIVED = {
    "xlm": encoder(12, 2048, 8192, 512),
    "flaubert": encoder(12, 768, 3072, 512),
    "t5-small": t5(6, 512, 2048, 512),
    "t5-base": t5(12, 768, 3072, 512),
    "transformer-xl": transformer_xl(384, 384),
    "dlrm": layers(13, 512, 256, 128) + 27 * 27 * 128 + layers(479, 1024, 1024, 512, 256, 1),
    "ncf": layers(256, 256, 128, 64) + 128,
    "gnmt": gnmt(50, 50),
    "deepspeech2": deepspeech2(700),
    "albert": encoder(12, 768, 3072, 512) + 512 * 128 * 768 + 768 * 768,
    "mobilebert": 24 * (512 * (2 * 512 * 128 + 2 * 128 * 128 + 512 * 128 + 128 * 128 + 8 * 128 * 512 + 128 * 512)
                        + 2 * 512 * 512 * 128) + 512 * 384 * 512,
    "minerva": layers(784, 256, 256, 256, 10),
    "lenet5": 9 * 32 * 26 * 26 + 9 * 32 * 32 * 24 * 24 + layers(4608, 128, 10),
    "cnn10": on_images(32, 3, ((32, 3), (32, 3)), ((64, 3), (64, 3))) + layers(4096, 512, 10),
    "vgg-cifar10": on_images(32, 3, ((64, 3),) * 2, ((128, 3),) * 2, ((256, 3),) * 3, ((512, 3),) * 3)
    + layers(2048, 512, 10),
    "elu": on_images(32, 3, ((192, 5),), ((192, 1), (240, 3)), ((240, 1), (260, 2)), ((260, 1), (280, 2)),
                     ((280, 1), (300, 2)), ((300, 1), (100, 1))),
    "large-elu": on_images(
        32, 3, ((384, 3),), ((384, 1), (384, 2), (640, 2), (640, 2)), ((640, 1), (768, 2), (768, 2), (768, 2)),
        ((768, 1), (896, 2), (896, 2)), ((896, 3), (1024, 2), (1024, 2)), ((1024, 1), (1152, 2), (1152, 1), (100, 1))),
    "whisper-tiny": whisper(4, 384, 448),
    "whisper-base": whisper(6, 512, 448),
    "stable-diffusion-1.5": stable_diffusion(),
    "wide-deep": layers(1200, 1024, 512, 256, 1),
    "din": 100 * (layers(512, 80, 40, 1) + 128) + 128 * 128 + layers(256, 80, 40, 1),
    "alphagozero": 361 * (9 * 256 * (17 + 40 * 256) + 3 * 256) + 722 * 362 + 361 * 256 + 256,
}


@pytest.mark.parametrize("name", DERIVED)
def test_totals_against_the_configuration(name: str) -> None:
    assert zoo.describe(name).derived
    assert zoo.load(name).macs == DERIVED[name]


def test_modules_of_stable_diffusion_against_a_published_count() -> None:
    """Kim et al., BK-SDM, arXiv:2305.15798, table 1: 339G for latents of 64 x 64, counted by module."""
    graph = zoo.load("stable-diffusion-1.5")
    modules = sum(node.macs for node in graph.mac_nodes if "weights" not in dict(node.operator.attributes))
    assert modules == stable_diffusion(attention=False) == pytest.approx(339e9, rel=0.002)


def test_every_network_is_held_to_something() -> None:
    held = {name for name in zoo.names() if {"macs", "nodes"} & {
        figure.quantity for figure in zoo.describe(name).published}} | set(DERIVED)
    held |= {name for name in zoo.names() if zoo.describe(name).phases}  # test_language_models.py holds these
    assert held == set(zoo.names())


def test_deepbench_kernels_against_published_speeds() -> None:
    """DeepBench's README gives times and TeraFLOPS, both rounded: their product is twice the multiply-accumulates."""
    graph = zoo.load("deepbench-gemm-training")
    published = {"gemm_m1760_n128_k1760_nn": (0.10, 7.93), "gemm_m7680_n64_k2560_nn": (0.45, 5.59),
                 "gemm_m2560_n64_k2560_nn": (0.16, 5.31), "gemm_m5124_n9124_k2560_tn": (29.51, 8.21),
                 "gemm_m3072_n128_k1024_tn": (0.13, 6.01)}
    for name, (milliseconds, teraflops) in published.items():
        node = graph.node(name)
        assert isinstance(node, MacNode)
        assert 2 * node.macs == pytest.approx(milliseconds * teraflops * 1e9, rel=0.06)


@pytest.mark.parametrize("name", zoo.names())
def test_every_network_is_sound(name: str) -> None:
    graph, entry = zoo.load(name), zoo.describe(name)
    assert entry.name == graph.name == name
    assert len(entry.source) > 20
    assert entry.title
    assert all(len(figure.source) > 10 for figure in entry.published)
    assert sum(u.operator.macs * u.count for u in unique_operators(graph)) == graph.macs
    report = coverage(graph)
    assert report.macs_fraction == 1
    assert report.bytes_fraction > 0.99
    assert not report.unknown
    check_words(graph)


def check_words(graph: Graph) -> None:
    """A vector node or movement reads no more of a node than that node hands on (duplicates and halves aside)."""
    for node in graph.nodes:
        if isinstance(node, VectorOperator):
            assert node.operations > 0
            assert node.written_words > 0
        elif isinstance(node, MacNode):
            assert prod(node.operator.sizes.values()) == node.operator.macs
        else:
            assert isinstance(node, DataMovement | Unmodelled)


@pytest.mark.parametrize(("name", "expected"), [("resnet50", 24), ("resnet18", 12), ("vgg16", 12), ("bert-base", 6)])
def test_unique_layers(name: str, expected: int) -> None:
    """ResNet-50: 20 convolutions of distinct shape in the blocks, 3 strided projections beside, stem and classifier."""
    assert len(unique_operators(zoo.load(name))) == expected


@pytest.mark.parametrize("name", ["resnet50", "bert-base", "dlrm", "gnmt", "transformer-xl", "faster-rcnn"])
def test_batch_multiplies_the_work_not_the_weights(name: str) -> None:
    one, four = zoo.load(name), zoo.load(name, batch=4)
    assert four.weight_words == one.weight_words
    shared = sum(n.macs for n in one.mac_nodes if n.name.endswith(".position"))  # position encodings know no batch
    assert four.macs == 4 * one.macs - 3 * shared


def test_images_of_another_size() -> None:
    """Twice the rows and columns: four times the convolutions, the same classifier."""
    classifier = 2048 * 1000
    assert zoo.load("resnet50", size=448).macs - classifier == 4 * (zoo.load("resnet50").macs - classifier)


def test_recurrent_cells_read_their_gates() -> None:
    node = zoo.load("gnmt").node("decoder2.cell")
    assert isinstance(node, VectorOperator)
    assert node.inputs == ("decoder2.input", "decoder2.state")
    assert (node.read_words, node.written_words, node.count) == (2 * 4 * 1024 + 1024, 2 * 1024, 50)


def test_names_are_forgiving_and_take_options() -> None:
    assert zoo.load("ResNet_50").name == "resnet50"
    assert zoo.load("T5").name == "t5-base"
    assert zoo.load("bert-base:sequence=128,batch=2").macs == zoo.load("bert-base", sequence=128, batch=2).macs
    assert zoo.load("gnmt", source=10, target=20).macs == gnmt(10, 20)


@pytest.mark.parametrize(("name", "options", "message"), [
    ("resnet5", {}, "network: must be a known network; Got 'resnet5'; Did you mean resnet18, resnet50, resnext50?"),
    ("", {}, "network: must be a known network; Got ''; Known: albert, alexnet"),
    ("bert-base", {"sequenze": 3}, "bert-base.options: must be a known option; Got 'sequenze'; Did you mean sequence?"),
    ("bert-base", {"sequence": 0}, "bert-base.options.sequence: must be a positive integer; Got 0."),
    ("bert-base", {"batch": True}, "bert-base.options.batch: must be a positive integer; Got True."),
    ("bert-base:sequence", {}, "must give options as `name:option=number,...`; Got 'sequence'; For example"),
    ("bert-base:sequence=8,batch=2,sequence=9", {}, "must give each option once; Got 'sequence=9'"),
    ("bert-base:sequence=-1", {}, "must give options as `name:option=number,...`; Got 'sequence=-1'"),
])
def test_unknown_names_and_options(name: str, options: dict, message: str) -> None:
    with pytest.raises(InputError) as error:
        zoo.load(name, **options)
    assert message in str(error.value)


def test_attention_is_wired_as_it_runs() -> None:
    graph = zoo.load("bert-base", sequence=16)
    assert graph.node("layer.0.attention.scores").inputs == ("layer.0.attention.query", "layer.0.attention.key")
    context = graph.node("layer.0.attention.context")
    assert isinstance(context, MacNode)
    assert context.inputs == ("layer.0.attention.softmax", "layer.0.attention.value")
    assert dict(context.operator.attributes)["weights"] == "activations"
    assert graph.node("layer.1.attention.query").inputs == ("layer.0.ff.norm",)
