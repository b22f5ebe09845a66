"""PyTorch import: every kind of operator on small modules, names, edges, weights, bindings, ``.pt2`` files."""

import warnings
from math import prod

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from tilewright.base import InputError
from tilewright.interop import load_exported, load_torch
from tilewright.workload import DataMovement, MacNode, Unmodelled, VectorOperator, coverage


class Calls(nn.Module):
    """A module that calls a function."""

    def __init__(self, function, **parameters):
        super().__init__()
        self.function = function
        for name, shape in parameters.items():
            self.register_parameter(name, nn.Parameter(torch.zeros(shape)))

    def forward(self, *inputs):
        return self.function(self, *inputs)


def given(*shapes):
    return tuple(torch.zeros(shape) for shape in shapes)


def sizes(node):
    return dict(node.operator.dimensions)


def saved(module, inputs, path, **options):
    torch.export.save(torch.export.export(module.eval(), inputs, strict=False, **options), path)
    return path


# A module, the shapes of its inputs, the kind of its one nest and that nest's sizes.
NESTS = {
    "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1), [(2, 4, 9)], "conv", {"N": 2, "K": 6, "C": 4, "P": 5, "R": 3}),
    "conv2d": (nn.Conv2d(3, 8, (3, 5), padding=(1, 2)), [(1, 3, 7, 9)], "conv",
               {"N": 1, "K": 8, "C": 3, "P": 7, "Q": 9, "R": 3, "S": 5}),
    "conv3d": (nn.Conv3d(2, 4, 2), [(1, 2, 3, 4, 5)], "conv",
               {"N": 1, "K": 4, "C": 2, "D": 2, "P": 3, "Q": 4, "T": 2, "R": 2, "S": 2}),
    "grouped": (nn.Conv2d(4, 8, 3, groups=2), [(1, 4, 5, 5)], "conv",
                {"N": 1, "G": 2, "K": 4, "C": 2, "P": 3, "Q": 3, "R": 3, "S": 3}),
    "depthwise": (nn.Conv2d(4, 4, 3, groups=4), [(1, 4, 5, 5)], "depthwise",
                  {"N": 1, "G": 4, "K": 1, "C": 1, "P": 3, "Q": 3, "R": 3, "S": 3}),
    "dilated": (nn.Conv2d(1, 1, 3, dilation=2), [(1, 1, 9, 9)], "conv",
                {"N": 1, "K": 1, "C": 1, "P": 5, "Q": 5, "R": 3, "S": 3}),
    "same_dilated": (nn.Conv1d(1, 1, 3, padding="same", dilation=2), [(1, 1, 9)], "conv",
                     {"N": 1, "K": 1, "C": 1, "P": 9, "R": 3}),
    "same": (nn.Conv1d(1, 1, 4, padding="same"), [(1, 1, 9)], "conv", {"N": 1, "K": 1, "C": 1, "P": 9, "R": 4}),
    "valid": (nn.Conv1d(1, 1, 4, padding="valid"), [(1, 1, 9)], "conv", {"N": 1, "K": 1, "C": 1, "P": 6, "R": 4}),
    "unbatched": (nn.Conv2d(3, 2, 3), [(3, 5, 5)], "conv",
                  {"N": 1, "K": 2, "C": 3, "P": 3, "Q": 3, "R": 3, "S": 3}),
    "transposed": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), [(1, 4, 5, 5)],
                   "conv_transpose", {"N": 1, "G": 2, "K": 3, "C": 2, "P": 5, "Q": 5, "R": 3, "S": 3}),
    "linear": (nn.Linear(16, 5), [(2, 3, 16)], "matmul", {"B": 1, "M": 6, "N": 5, "K": 16}),
    "matmul": (Calls(lambda _, a, b: a @ b), [(2, 3, 4), (2, 4, 5)], "matmul", {"B": 2, "M": 3, "N": 5, "K": 4}),
    "broadcast": (Calls(lambda _, a, b: a @ b), [(2, 3, 4), (4, 5)], "matmul", {"B": 1, "M": 6, "N": 5, "K": 4}),
    "weights_left": (Calls(lambda m, x: m.w @ x, w=(7, 4)), [(4, 5)], "matmul", {"B": 1, "M": 5, "N": 7, "K": 4}),
    "bmm": (Calls(lambda _, a, b: torch.bmm(a, b)), [(2, 3, 4), (2, 4, 5)], "matmul",
            {"B": 2, "M": 3, "N": 5, "K": 4}),
    "baddbmm": (Calls(lambda _, a, b, c: torch.baddbmm(a, b, c)), [(2, 3, 5), (2, 3, 4), (2, 4, 5)], "matmul",
                {"B": 2, "M": 3, "N": 5, "K": 4}),
    "addmm": (Calls(lambda m, x: torch.addmm(m.b, x, m.w), b=(5,), w=(4, 5)), [(3, 4)], "matmul",
              {"B": 1, "M": 3, "N": 5, "K": 4}),
    "mv": (Calls(lambda _, a, b: torch.mv(a, b)), [(3, 4), (4,)], "matmul", {"B": 1, "M": 3, "N": 1, "K": 4}),
    "dot": (Calls(lambda _, a, b: torch.dot(a, b)), [(4,), (4,)], "matmul", {"B": 1, "M": 1, "N": 1, "K": 4}),
    "inner": (Calls(lambda _, a, b: torch.inner(a, b)), [(3, 4), (5, 4)], "matmul", {"B": 1, "M": 3, "N": 5, "K": 4}),
    "tensordot": (Calls(lambda _, a, b: torch.tensordot(a, b, dims=([1, 2], [2, 0]))), [(2, 3, 4), (4, 6, 3)],
                  "matmul", {"B": 1, "M": 2, "N": 6, "K": 12}),
    "vecdot_first": (Calls(lambda _, a, b: torch.linalg.vecdot(a, b, dim=0)), [(3, 4), (3, 4)], "matmul",
                     {"B": 4, "M": 1, "N": 1, "K": 3}),
    "vecdot": (Calls(lambda _, a, b: torch.linalg.vecdot(a, b)), [(3, 4), (3, 4)], "matmul",
               {"B": 3, "M": 1, "N": 1, "K": 4}),
    "einsum": (Calls(lambda _, a, b: torch.einsum("bid,bjd->bij", a, b)), [(2, 3, 4), (2, 5, 4)], "einsum",
               {"b": 2, "i": 3, "j": 5, "d": 4}),
    "ellipsis": (Calls(lambda _, a, b: torch.einsum("...id,...jd->...ij", a, b)), [(2, 3, 4), (2, 5, 4)], "einsum",
                 {"A": 2, "i": 3, "j": 5, "d": 4}),
    "bilinear": (nn.Bilinear(4, 5, 3), [(2, 4), (2, 5)], "einsum", {"n": 2, "o": 3, "i": 4, "j": 5}),
}


@pytest.mark.parametrize("case", NESTS)
def test_each_nest_has_its_sizes(case):
    module, shapes, kind, expected = NESTS[case]
    graph = load_torch(module, given(*shapes))
    (node,) = graph.mac_nodes
    assert (node.kind, sizes(node)) == (kind, expected)
    assert node.macs == prod(expected.values())
    assert coverage(graph).sentence.startswith("100 % of MACs, 100 % of bytes modelled")


@pytest.mark.parametrize("case", ["conv1d", "transposed", "linear", "broadcast", "addmm", "einsum"])
def test_a_program_of_simpler_operators_has_the_same_nests(case):
    module, shapes, *_ = NESTS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, of its pytrees
        exported = torch.export.export(module.eval(), given(*shapes), strict=False).run_decompositions()
    graph = load_torch(exported)
    assert not [node for node in graph.nodes if isinstance(node, Unmodelled)]
    assert graph.macs == load_torch(module, given(*shapes)).macs


def test_weights_are_told_from_activations():
    graph = load_torch(Calls(lambda m, x: (x @ m.w) @ (x @ m.w).T, w=(4, 5)), given((3, 4)))
    first, again, last = (dict(node.operator.attributes) for node in graph.mac_nodes)
    assert "weights" not in first
    assert again["weights"] == "tied"
    assert last["weights"] == "activations"
    assert graph.weight_words == 20


def test_a_transposed_view_of_weights_is_tied_too():
    graph = load_torch(Calls(lambda m, x: (x @ m.w) @ m.w.T, w=(4, 5)), given((3, 4)))
    assert [dict(node.operator.attributes).get("weights") for node in graph.mac_nodes] == [None, "tied"]
    assert graph.weight_words == 20


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.bn1(self.conv1(x)) + x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(Block(), Block())
        self.fc = nn.Linear(4, 10)

    def forward(self, x):
        x = self.layer1(x)
        return self.fc(functional.adaptive_avg_pool2d(x, 1).flatten(1))


def test_nodes_are_named_by_the_path_of_their_module():
    graph = load_torch(Net(), given((1, 4, 6, 6)))
    assert graph.name == "Net"
    assert [node.name for node in graph.nodes] == [
        "layer1.0.conv1", "layer1.0.bn1", "layer1.0", "layer1.0.relu", "layer1.1.conv1", "layer1.1.bn1", "layer1.1",
        "layer1.1.relu", "adaptive_avg_pool2d", "flatten", "fc"]
    assert graph.node("layer1.1.conv1").inputs == ("layer1.0.relu",)
    assert graph.node("layer1.1").inputs == ("layer1.1.bn1", "layer1.0.relu")
    assert graph.node("layer1.0").kind == "add"


def test_a_module_that_is_called_twice_is_two_nodes_and_told():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return self.fc(self.fc(x))

    graph = load_torch(Twice(), given((2, 4)))
    assert [node.name for node in graph.nodes] == ["fc", "fc_2"]
    assert graph.weight_words == 16
    assert graph.notes == ("names that repeat have numbers: fc_2",)


def test_what_is_changed_in_place_is_read_from_who_changed_it():
    def function(_, x):
        y = x * 2
        y.add_(1)
        return y @ y.T

    graph = load_torch(Calls(function), given((3, 4)))
    assert graph.mac_nodes[0].inputs == ("add", "numpy_T")
    assert graph.node("numpy_T").inputs == ("add",)


def test_what_is_written_through_views_is_no_constant():
    def function(_, x):
        both = torch.empty(3, 8)
        both[:, :4] = x
        both[:, 4:] = x * 2
        return x.T @ both

    graph = load_torch(Calls(function), given((3, 4)))
    (node,) = graph.mac_nodes
    assert dict(node.operator.attributes)["weights"] == "activations"
    assert set(node.inputs) == {"numpy_T", "copy", "copy_2"}
    assert graph.weight_words == 0


@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (4, 2)])
def test_attention_is_two_products_and_a_softmax(heads, groups):
    def function(_, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, enable_gqa=heads != groups)

    graph = load_torch(Calls(function), given((2, heads, 5, 8), (2, groups, 7, 8), (2, groups, 7, 6)))
    scores, softmax, context = graph.nodes
    assert [node.name for node in graph.nodes] == ["attention.scores", "attention.softmax", "attention.context"]
    assert scores.macs == 2 * heads * 5 * 7 * 8
    assert context.macs == 2 * heads * 5 * 7 * 6
    assert sizes(scores) == {"B": 2 * groups, "M": 5 * heads // groups, "N": 7, "K": 8}
    assert softmax.operations == 5 * 2 * heads * 5 * 7
    assert "without regard to masks" in coverage(graph).sentence


def test_multi_head_attention_and_a_transformer_layer():
    module = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    graph = load_torch(module, given((2, 5, 8)))
    assert graph.macs == 10 * 8 * 24 + 2 * (4 * 5 * 5 * 4) + 10 * 8 * 8 + 2 * 10 * 8 * 16
    assert graph.weight_words == 8 * 24 + 8 * 8 + 2 * 8 * 16
    assert graph.node("self_attn.attention.scores").inputs
    assert isinstance(graph.node("norm1"), VectorOperator)


def test_recurrent_layers_are_products_at_once_and_step_by_step():
    graph = load_torch(nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True), given((2, 5, 8)))
    state = graph.node("lstm.layer1.backward.state") if any(
        node.name.startswith("lstm") for node in graph.nodes) else graph.nodes[10]
    assert state.count == 5
    assert graph.macs == 2 * (2 * 5 * 24 * 8 + 5 * 2 * 24 * 6) + 2 * (2 * 5 * 24 * 12 + 5 * 2 * 24 * 6)
    assert graph.weight_words == sum(prod(shape) for shape in [(24, 8), (24, 6), (24, 12), (24, 6)]) * 2


@pytest.mark.parametrize(("module", "gates"), [
    (nn.GRU(8, 6), 3), (nn.RNN(8, 6), 1), (nn.RNN(8, 6, nonlinearity="relu"), 1)])
def test_other_cells(module, gates):
    graph = load_torch(module, given((5, 2, 8)))
    assert graph.macs == gates * 6 * 5 * 2 * (8 + 6)


def test_a_projected_state_is_a_third_product():
    graph = load_torch(nn.LSTM(8, 6, proj_size=3), given((5, 2, 8)))
    assert graph.macs == 5 * 2 * (24 * 8 + 24 * 3 + 3 * 6)


def test_one_step_of_a_cell():
    graph = load_torch(nn.LSTMCell(8, 6), given((2, 8)))
    assert graph.macs == 2 * 24 * (8 + 6)


VECTORS = {
    "relu": (nn.ReLU(), [(2, 3)], 6), "gelu": (nn.GELU(), [(2, 3)], 30), "tanh_gelu": (nn.GELU("tanh"), [(2, 3)], 54),
    "softmax": (nn.Softmax(-1), [(2, 3)], 30), "layer_norm": (nn.LayerNorm(3), [(2, 3)], 48),
    "rms_norm": (nn.RMSNorm(3), [(2, 3)], 30), "max_pool": (nn.MaxPool2d(2), [(1, 2, 4, 4)], 32),
    "avg_pool": (nn.AvgPool2d((2, 1)), [(1, 2, 4, 4)], 32), "global": (nn.AdaptiveAvgPool2d(1), [(1, 2, 4, 4)], 32),
    "sum": (Calls(lambda _, x: x.sum(0)), [(2, 3)], 6),
    "max": (Calls(lambda _, x, y: torch.max(x, y)), [(3,), (3,)], 3),
    "cast": (Calls(lambda _, x: x.half()), [(2, 3)], 6), "topk": (Calls(lambda _, x: x.topk(3)[0]), [(2, 8)], 32),
    "bilinear": (nn.Upsample(scale_factor=2, mode="bilinear"), [(1, 2, 3, 3)], 576),
    "nearest": (nn.Upsample(scale_factor=2), [(1, 2, 3, 3)], 0),
}


@pytest.mark.parametrize("case", VECTORS)
def test_vector_work_is_counted(case):
    module, shapes, operations = VECTORS[case]
    (node,) = [node for node in load_torch(module, given(*shapes)).nodes if isinstance(node, VectorOperator)]
    assert node.operations == operations


MOVES = {
    "transpose": (lambda _, x: x.transpose(0, 1), 6, 6), "view": (lambda _, x: x.view(3, 2), 0, 0),
    "slice": (lambda _, x: x[:, 1:], 4, 4), "all_of_it": (lambda _, x: x[:], 0, 0),
    "cat": (lambda _, x: torch.cat([x, x]), 12, 12), "pad": (lambda _, x: functional.pad(x, (1, 1)), 6, 10),
    "expand": (lambda _, x: x.expand(4, 2, 3), 6, 24), "same_type": (lambda _, x: x.float(), 0, 0),
    "copy": (lambda _, x: x.contiguous(), 0, 0), "halves": (lambda _, x: x.split(1)[0], 6, 6),
}


@pytest.mark.parametrize("case", MOVES)
def test_words_that_move_are_counted(case):
    function, read, written = MOVES[case]
    nodes = load_torch(Calls(lambda m, x: function(m, x).contiguous()), given((2, 3))).nodes
    assert all(isinstance(node, DataMovement) for node in nodes)
    assert (sum(node.read_words for node in nodes), sum(node.written_words for node in nodes)) == (read, written)


def test_tables_of_embeddings_are_weights_also_where_positions_are_constant():
    class Embeds(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(50, 4), nn.Embedding(9, 4)

        def forward(self, tokens):
            return self.words(tokens) + self.positions(torch.arange(5))

    graph = load_torch(Embeds(), (torch.zeros(2, 5, dtype=torch.long),))
    assert graph.weight_words == 59 * 4
    assert [(type(node).__name__, node.name) for node in graph.nodes] == [
        ("DataMovement", "words"), ("DataMovement", "positions"), ("VectorOperator", "add")]
    assert graph.notes == ("1 constant node folded",)


def test_a_dropout_counts_only_while_training():
    graph = load_torch(nn.Dropout(0.5), given((2, 3)))
    assert isinstance(graph.nodes[0], DataMovement)


@torch.library.custom_op("tilewright_tests::mystery", mutates_args=())
def mystery(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@mystery.register_fake
def _(x):
    return torch.empty_like(x)


@pytest.mark.parametrize("function", [lambda _, x: torch.fft.fft(x), lambda _, x: torch.linalg.inv(x),
                                      lambda _, x: mystery(x)])
def test_what_is_not_known_is_listed_with_unknown_macs(function):
    graph = load_torch(Calls(function), given((4, 4)))
    (node,) = [node for node in graph.nodes if isinstance(node, Unmodelled)]
    assert node.macs is None
    assert node.words == 32
    assert coverage(graph).unknown == (node.name,)
    assert "an unknown share: 0 MACs and 0 bytes modelled, 1 node of unknown size lost" in coverage(graph).sentence


def test_branches_are_listed_with_unknown_macs():
    def function(_, x):
        y = x * 2
        return torch.cond(x.sum() > 0, lambda t: t @ t.transpose(0, 1), lambda t: t @ t, (y,))

    graph = load_torch(Calls(function), given((4, 4)))
    (node,) = [node for node in graph.nodes if isinstance(node, Unmodelled)]
    assert node.reason == "control flow, branches are chosen at run time"
    assert node.macs is None
    assert set(node.inputs) == {"gt", "mul"}


def test_a_size_that_depends_on_data_leaves_its_readers_unmodelled():
    graph = load_torch(Calls(lambda m, x: x[torch.nonzero(x[:, 0])[:, 0]] @ m.w, w=(3, 4)), given((5, 3)))
    unmodelled = {node.name: node.macs for node in graph.nodes if isinstance(node, Unmodelled)}
    assert unmodelled == {"nonzero": 0, "select_2": 0, "index": 0, "matmul": None}
    assert coverage(graph).unknown


def test_what_only_wraps_is_looked_into(tmp_path):
    def function(m, x):
        with torch.no_grad():
            y = x @ m.w
            with torch.autocast("cpu", enabled=False):
                y = y.float() @ m.w
        return y @ m.w

    module, inputs = Calls(function, w=(4, 4)), given((3, 4))
    graph = load_torch(module, inputs)
    assert [node.macs for node in graph.mac_nodes] == [48, 48, 48]
    assert graph.mac_nodes[2].inputs == ("matmul_2",)
    assert load_exported(saved(module, inputs, tmp_path / "net.pt2")).nodes == graph.nodes


def test_the_module_stays_as_it_was():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.BatchNorm1d(4).eval())
    load_torch(module, given((2, 4)))
    assert [part.training for part in module.modules()] == [True, True, True, False]


def test_modules_on_the_meta_device_have_no_weights():
    with torch.device("meta"):
        module, images = nn.Conv2d(1000, 100_000, 3), torch.zeros(1, 1000, 50, 50)
    assert load_torch(module, (images,)).macs == 48 * 48 * 9 * 10**8


def test_arguments_by_name_and_containers():
    class Named(nn.Module):
        def forward(self, pair, *, scale):
            return (pair["a"] @ pair["b"]) * scale

    graph = load_torch(Named(), ({"a": torch.zeros(2, 3), "b": torch.zeros(3, 4)},), {"scale": torch.ones(())})
    assert graph.macs == 24


def dynamic_program():
    class Images(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)

        def forward(self, x, y):
            h = self.conv(x).flatten(2)
            return h @ y, h.shape[2] + 1

    shapes = ({0: torch.export.Dim("batch", max=64), 2: torch.export.Dim.AUTO}, {0: torch.export.Dim.AUTO})
    inputs = given((4, 3, 16, 16), (4, 64, 5))
    return torch.export.export(Images().eval(), inputs, dynamic_shapes=shapes, strict=False)


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory):
    path = tmp_path_factory.mktemp("exported") / "images.pt2"
    program = dynamic_program()
    torch.export.save(program, path)
    return program, path


@pytest.mark.parametrize("batch", [1, 7])
def test_dynamic_dimensions_are_bound(dynamic, batch):
    program, path = dynamic
    bind = {name: size for name, size in {"x[0]": batch, "x[2]": 16}.items() if _asked(program, name)}
    graph = load_torch(program, bind=bind)
    assert sizes(graph.node("conv"))["N"] == batch
    assert graph.node("conv").macs == batch * 8 * 3 * 9 * 64
    assert f"Bound x[0] = {batch}" in graph.notes
    assert load_exported(path, bind=bind).nodes == graph.nodes


def _asked(program, name):
    try:
        load_torch(program)
    except InputError as error:
        return name in str(error.given).split(", ")
    return False


def test_a_dimension_may_be_named_by_any_of_its_places(dynamic):
    program, _ = dynamic
    by_x, by_y = ({"x[0]": 3}, {"y[0]": 3})
    rest = {"x[2]": 16} if _asked(program, "x[2]") else {}
    assert load_torch(program, bind=by_x | rest).nodes == load_torch(program, bind=by_y | rest).nodes
    with pytest.raises(InputError, match="must agree with x"):
        load_torch(program, bind=by_x | {"y[0]": 4} | rest)


def test_an_unbound_dimension_is_one_clear_error(dynamic):
    for load in (lambda: load_torch(dynamic[0]), lambda: load_exported(dynamic[1])):
        says = r"[Ii]mages(\.pt2)?: dynamic dimensions: must be bound; Got 'x\[0\]"
        with pytest.raises(InputError, match=says) as found:
            load()
        assert "--bind x[0]=SIZE" in found.value.mend


@pytest.mark.parametrize(("bind", "rule"), [
    ({"x[0]": 65}, "must be from"), ({"x[0]": 0}, "must be a positive integer"),
    ({"x[0]": "2"}, "must be a positive integer"), ({"x[0]": 2, "batch": 2}, "must name a dynamic dimension"),
])
def test_wrong_sizes_are_refused(dynamic, bind, rule):
    rest = {"x[2]": 16} if _asked(dynamic[0], "x[2]") else {}
    with pytest.raises(InputError, match=rule):
        load_torch(dynamic[0], bind=bind | rest)


@pytest.mark.parametrize("case", ["same", "unbatched", "transposed", "weights_left", "ellipsis", "tensordot"])
def test_a_saved_program_is_the_same_network(case, tmp_path):
    module, shapes, *_ = NESTS[case]
    graph = load_torch(module, given(*shapes))
    again = load_exported(saved(module, given(*shapes), tmp_path / "net.pt2"))
    assert again.nodes == graph.nodes
    assert [getattr(node, "attributes", node.name) for node in again.nodes] == [
        getattr(node, "attributes", node.name) for node in graph.nodes]
    assert [node.operator.attributes for node in again.mac_nodes] == [
        node.operator.attributes for node in graph.mac_nodes]


def test_reading_a_saved_program_neither_loads_pytorch_nor_runs_its_pickles(tmp_path):
    import os
    import subprocess
    import sys
    import zipfile

    path = saved(Net(), given((1, 4, 6, 6)), tmp_path / "net.pt2")
    trap = tmp_path / "trap.pt2"
    flag = tmp_path / "ran"

    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(flag),))

    import pickle

    with zipfile.ZipFile(path) as old, zipfile.ZipFile(trap, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, pickle.dumps(Trap()) if "sample_inputs" in info.filename or
                         "weight_" in info.filename else old.read(info))
    code = (f"import sys; from tilewright.interop import load_exported; g = load_exported({str(trap)!r}); "
            "print(len(g.mac_nodes), 'torch' in sys.modules)")
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["3", "False"]
    assert not flag.exists()


def test_counts_agree_with_pytorchs_own():
    module, inputs = Net().eval(), given((2, 4, 6, 6))
    with FlopCounterMode(display=False) as counter:
        module(*inputs)
    assert counter.get_total_flops() == 2 * load_torch(module, inputs).macs


class Branches(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x


class Broken(nn.Module):
    def forward(self, x):
        return x @ x


REFUSED = {
    "no_inputs": (lambda: load_torch(nn.Linear(4, 4)), "must come with the inputs of its forward"),
    "a_bare_tensor": (lambda: load_torch(nn.Linear(4, 4), torch.zeros(1, 4)), "must be a tuple of the arguments"),
    "too_many": (lambda: load_torch(nn.Linear(4, 4), given((1, 4), (1, 4))), "must be traceable by torch.export"),
    "wrong_shape": (lambda: load_torch(nn.Linear(4, 4), given((1, 5))), "must be traceable by torch.export"),
    "its_own_error": (lambda: load_torch(Broken(), given((2, 3))), "must be traceable by torch.export"),
    "branches_on_data": (lambda: load_torch(Branches(), given((2, 3))), "depends on values of tensors"),
    "no_module": (lambda: load_torch(torch.zeros(3), given((2, 3))), "must be a torch.nn.Module or"),
    "inputs_twice": (lambda: load_torch(dynamic_program(), given((2, 3))), "must be left out with an exported"),
    "bind_of_nothing": (lambda: load_torch(nn.Linear(4, 4), given((1, 4)), bind={"batch": 2}),
                        "must name a dynamic dimension"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_one_clear_error(case, capfd):
    load, text = REFUSED[case]
    with pytest.raises(InputError) as found:
        load()
    assert text in str(found.value)
    assert len(str(found.value)) < 900
    assert capfd.readouterr() == ("", "")


def test_networks_of_pytorch_stand_wherever_one_is_named(tmp_path, monkeypatch):
    import tilewright as tw

    monkeypatch.setenv("TILEWRIGHT_STORE", str(tmp_path / "runs.sqlite"))
    module, inputs = nn.Linear(16, 8), given((4, 16))
    exported = torch.export.export(module, inputs)
    graph = load_torch(module, inputs)
    assert tw.load_network((module, inputs)).nodes == tw.load_network(exported).nodes == graph.nodes
    assert tw.load_network((module, {"input": inputs[0]})).nodes == graph.nodes
    assert tw.load_network(saved(module, inputs, tmp_path / "net.pt2")).nodes == graph.nodes
    assert tw.explore((module, inputs), "flexion", "0000", budget=64, workers=1).outcomes
    run = tw.map((module, inputs), arch="eyeriss", budget=50)
    assert run.record.request.command.startswith("tilewright map Linear --arch eyeriss")
    assert run.layers["linear"].cost.macs == graph.macs
    with pytest.raises(InputError, match="must come with the inputs of its forward"):
        tw.map(module, arch="eyeriss", budget=50)


@pytest.mark.parametrize("given_to", [nn.Linear(4, 4), (nn.Linear(4, 4), ())])
def test_a_module_without_its_inputs(given_to):
    import tilewright as tw

    with pytest.raises(InputError):
        tw.bounds(given_to, arch="eyeriss")


def test_strict_reading_refuses_what_is_approximated(tmp_path):
    from tilewright.api import read_foreign

    path = saved(Net(), given((1, 4, 6, 6)), tmp_path / "plain.pt2")
    assert read_foreign([path], strict=True).notes == ()
    path = saved(Calls(lambda _, x: torch.fft.fft(torch.topk(x, 2)[0])), given((4, 4)), tmp_path / "odd.pt2")
    first, second = read_foreign([path]).notes
    assert str(first) == f"{path}: topk: approximated: as vector work with a heap"
    assert str(second) == f"{path}: fft_fft: dropped: fft_fft: operator not known here"
    with pytest.raises(InputError, match="must be honoured in full"):
        read_foreign([path], strict=True)


def test_packed_weights_are_products():
    def function(_, x, scales):
        return torch.ops.aten._weight_int8pack_mm(x, torch.zeros(32, 16, dtype=torch.int8), scales)

    inputs = (torch.zeros(3, 16, dtype=torch.bfloat16), torch.zeros(32, dtype=torch.bfloat16))
    (node,) = load_torch(Calls(function), inputs).mac_nodes
    assert sizes(node) == {"B": 1, "M": 3, "N": 32, "K": 16}
    assert node.approximated_as.startswith("a product with weights of 8 bits, and 1 for each of scales")
    assert node.operator.tensor("W").word_bits == 9


def test_a_network_is_the_same_from_its_onnx_file(tmp_path):
    """Nodes, words and operations of one network that both files say, word for word."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from tilewright.interop import load_onnx

    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.pool = nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.MaxPool2d(2)
            self.up, self.fc = nn.ConvTranspose2d(8, 8, 2, 2), nn.Linear(8, 10)

        def forward(self, x):
            h = torch.relu(self.bn(self.conv(x)))
            h = self.up(self.pool(h)) + h
            t = h.flatten(2).transpose(1, 2)
            return torch.softmax(self.fc(t @ t.transpose(1, 2) @ t)[:, :7], -1)

    shapes = {"w": (8, 3, 3, 3), "b": (8,), "s": (8,), "o": (8,), "m": (8,), "v": (8,), "u": (8, 8, 2, 2), "c": (8,),
              "f": (8, 10)}
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [("Conv", "x w b", "h1", {"pads": [1] * 4, "strides": [2, 2]}),
             ("BatchNormalization", "h1 s o m v", "h2", {}),
             ("Relu", "h2", "h3", {}), ("MaxPool", "h3", "h4", window), ("ConvTranspose", "h4 u c", "h5", window),
             ("Add", "h5 h3", "h6", {}), ("Reshape", "h6 flat", "h7", {}),
             ("Transpose", "h7", "t", {"perm": [0, 2, 1]}),
             ("Transpose", "t", "tt", {"perm": [0, 2, 1]}), ("MatMul", "t tt", "a", {}), ("MatMul", "a t", "d", {}),
             ("MatMul", "d f", "e", {}), ("Slice", "e zero seven one", "g", {}), ("Softmax", "g", "y", {})]
    weights = [numpy_helper.from_array(np.zeros(shape, np.float32), name) for name, shape in shapes.items()]
    weights += [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in
                {"flat": [2, 8, 64], "zero": [0], "seven": [7], "one": [1]}.items()]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs.split(), [output], **attributes) for kind, inputs, output, attributes in nodes],
        "both", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 7, 10])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), str(tmp_path / "both.onnx"))

    def told(network):
        return [(type(node).__name__, node.operator.dimensions if isinstance(node, MacNode) else (
            getattr(node, "operations", 0), node.read_words, node.written_words)) for node in network.nodes]

    theirs, ours = load_onnx(tmp_path / "both.onnx"), load_torch(Both(), given((2, 3, 16, 16)))
    assert ours.weight_words == theirs.weight_words
    assert [one for one in told(ours) if one[1] != (0, 0, 0)] == [one for one in told(theirs) if one[1] != (0, 0, 0)]
