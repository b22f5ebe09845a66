"""Random networks of PyTorch: our multiply-accumulates are those that PyTorch counts, saved or not."""

from io import BytesIO

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tilewright.interop import load_exported, load_torch
from tilewright.workload import Unmodelled

CONVOLUTIONS = {1: (nn.Conv1d, nn.ConvTranspose1d), 2: (nn.Conv2d, nn.ConvTranspose2d),
                3: (nn.Conv3d, nn.ConvTranspose3d)}


class Attends(nn.Module):
    """Positions attend to one another, in so many heads."""

    def __init__(self, channels, heads):
        super().__init__()
        self.heads, self.size = heads, channels
        self.qkv = nn.Linear(channels, 3 * heads * channels)
        self.out = nn.Linear(heads * channels, channels)

    def forward(self, x):
        y = x.flatten(2).transpose(1, 2)
        b, n, _ = y.shape
        q, k, v = self.qkv(y).view(b, n, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        z = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(z.transpose(1, 2).reshape(b, n, -1)).transpose(1, 2).reshape(x.shape)


class Mixes(nn.Module):
    """Products of activations, written in one of several ways."""

    def __init__(self, way):
        super().__init__()
        self.way = way

    def forward(self, x):
        y = x.flatten(2)
        if self.way == "matmul":
            return torch.matmul(y.transpose(1, 2), y) @ y.transpose(1, 2) + x.sum()
        if self.way == "bmm" or y.shape[2] == 1:  # of one position, PyTorch's einsum makes no product that it counts
            return torch.bmm(y, y.transpose(1, 2))
        if self.way == "baddbmm":
            return torch.baddbmm(y, torch.bmm(y, y.transpose(1, 2)), y)
        return torch.einsum("bcn,bdn->bcd", y, y)


@st.composite
def networks(draw):
    rank = draw(st.integers(1, 3))
    layers, channels = [], 4
    for _ in range(draw(st.integers(1, 3))):
        transposed = draw(st.booleans())
        groups = draw(st.sampled_from([g for g in (1, 2, channels) if channels % g == 0]))
        out = groups * draw(st.integers(1, 3))
        stride = draw(st.integers(1, 2))
        sizes = {"stride": stride, "dilation": draw(st.integers(1, 2)), "padding": draw(st.integers(0, 1)),
                 "groups": groups, "bias": draw(st.booleans())}
        if transposed:
            sizes["output_padding"] = draw(st.integers(0, stride - 1))
        layers += [CONVOLUTIONS[rank][transposed](channels, out, draw(st.integers(1, 3)), **sizes),
                   nn.ReLU(inplace=draw(st.booleans()))]
        channels = out
    end = draw(st.sampled_from(["none", "attention", "linear", "matmul", "bmm", "baddbmm", "einsum"]))
    if end == "attention":
        layers.append(Attends(channels, draw(st.integers(1, 2))))
    elif end == "linear":
        layers += [nn.AdaptiveAvgPool1d(1) if rank == 1 else nn.AdaptiveAvgPool2d(1) if rank == 2 else
                   nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(channels, draw(st.integers(1, 9)))]
    elif end != "none":
        layers.append(Mixes(end))
    shape = (draw(st.integers(1, 2)), 4, *draw(st.tuples(*[st.integers(9, 11)] * rank)))
    return nn.Sequential(*layers).eval().to("meta"), (torch.zeros(shape, device="meta"),)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
def test_counts_are_those_of_pytorch(network):
    module, inputs = network
    try:
        with FlopCounterMode(display=False) as counter:
            module(*inputs)
    except RuntimeError:  # the kernel is larger than what the layer before has left
        return
    graph = load_torch(module, inputs)
    assert 2 * graph.macs == counter.get_total_flops()
    assert not any(isinstance(node, Unmodelled) for node in graph.nodes)
    names = {name.removesuffix(".weight") for name, p in module.named_parameters() if name.endswith(".weight")}
    assert names == {node.name for node in graph.mac_nodes if "weights" not in dict(node.operator.attributes)}
    assert graph.weight_words == sum(p.numel() for name, p in module.named_parameters() if name.endswith("weight"))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
def test_saving_and_reading_again_changes_nothing(tmp_path_factory, network):
    module, inputs = network
    try:
        exported = torch.export.export(module, inputs, strict=False)
    except Exception:
        return
    path = tmp_path_factory.mktemp("saved") / "net.pt2"
    stream = BytesIO()
    torch.export.save(exported, stream)
    path.write_bytes(stream.getvalue())
    first, again = load_torch(exported), load_exported(path)
    assert again.nodes == first.nodes
    assert again.notes == first.notes


