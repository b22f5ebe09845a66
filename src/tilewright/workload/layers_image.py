"""Layers that work on images: convolutions, poolings and the blocks of well-known networks.

Each record or function is one kind of layer of a layer table (`table.py`): its fields, or its parameters after two, are
what the table may say; called, it draws itself on a sketch behind the value ``x`` and returns the value that it hands
on. Batch normalisation is folded into the convolution before it; biases are left out: they carry no
multiply-accumulates.
"""

from itertools import product
from typing import Literal

from tilewright.base import InputError
from tilewright.workload.sketch import Sketch, Value, Window, drawn_by, layer

Extent = int | list[int]


@layer("conv")
class Conv:
    """A convolution, followed by its activation where there is one; ``tied`` weights are those of another layer.

    ``padding`` is the same all round, one of each axis, or ``[before, after]`` of each.
    """

    name: str
    out: int
    kernel: Extent
    stride: Extent = 1
    padding: Extent | list[tuple[int, int]] = 0
    dilation: Extent = 1
    groups: int = 1
    activation: str = ""
    tied: bool = False

    def __call__(self, s: Sketch, x: Value) -> Value:
        window = Window(self.kernel, self.stride, self.padding, self.dilation, self.groups)
        y = s.conv(x, self.name, self.out, window, tied=self.tied)
        return s.vector(self.activation, y, f"{self.name}.{self.activation}") if self.activation else y


@layer("pool")
class Pool:
    """A pooling over a window; over the whole image where there is no ``kernel``."""

    name: str
    kind: Literal["max", "average"] = "max"
    kernel: Extent = 0
    stride: Extent = 1
    padding: Extent = 0
    ceil: bool = False

    def __call__(self, s: Sketch, x: Value) -> Value:
        window = Window(self.kernel, self.stride, self.padding) if self.kernel else None
        return s.pool(x, self.name, self.kind, window, ceil=self.ceil)


@drawn_by("upsample")
def upsample(s: Sketch, x: Value, name: str, size: tuple[int, ...] = (), times: int = 2) -> Value:
    """Repeat the nearest rows and columns up to ``size``, or so many times where that is left out."""
    return s.move("upsample", [x], name, (x.shape[0], *(size or [times * extent for extent in x.shape[1:]])))


@drawn_by("stack")
def stack(s: Sketch, x: Value, name: str, others: list[str]) -> Value:
    """Put the channels of images of one size one after the other."""
    return stacked(s, [x, *(s.value(f"{name}.others", other) for other in others)], name)


@layer("roi_align")
class RoiAlign:
    """Regions cut out of a pyramid, each cell the average of ``samples`` x ``samples`` bilinear points.

    Hands on ``(regions, channels * size * size)``. Source: He et al., Mask R-CNN, ICCV 2017, section 3.
    """

    name: str
    others: list[str]
    regions: int
    size: int
    samples: int

    def __call__(self, s: Sketch, x: Value) -> Value:
        points = self.regions * x.shape[0] * (self.size * self.samples) ** 2
        sources = [x, *(s.value(f"{self.name}.others", other) for other in self.others)]
        shape = (self.regions, x.shape[0] * self.size * self.size)
        return s.move("roi_align", sources, self.name, shape, read_words=4 * points)


@layer("residual")
class Residual:
    """Residual blocks, the first with ``stride``.

    ``basic`` is two 3x3 convolutions; ``bottleneck`` is 1x1, 3x3 (which strides, in ``groups``), 1x1. A projection
    stands beside the first block where shapes differ. Source: He et al., Deep Residual Learning, CVPR 2016, table 1;
    groups: Xie et al., Aggregated Residual Transformations, CVPR 2017, figure 3 (c).
    """

    name: str
    kind: Literal["basic", "bottleneck"]
    width: int
    out: int
    repeat: int
    stride: int = 1
    groups: int = 1

    def __call__(self, s: Sketch, x: Value) -> Value:
        for index in range(self.repeat):
            x = self._block(s, x, f"{self.name}.{index}", self.stride if index == 0 else 1)
        return x

    def _block(self, s: Sketch, x: Value, block: str, stride: int) -> Value:
        shortcut = x
        if self.kind == "basic":
            plan = [(self.width, 3, stride), (self.out, 3, 1)]
        else:
            plan = [(self.width, 1, 1), (self.width, 3, stride), (self.out, 1, 1)]
        for number, (channels, kernel, step) in enumerate(plan, start=1):
            groups = self.groups if kernel > 1 else 1
            x = s.conv(x, f"{block}.conv{number}", channels, Window(kernel, step, kernel // 2, groups=groups))
            if number < len(plan):
                x = s.vector("relu", x, f"{block}.relu{number}")
        if shortcut.shape != x.shape:
            shortcut = s.conv(shortcut, f"{block}.downsample", self.out, Window(1, stride))
        return s.vector("relu", s.vector("add", x, f"{block}.add", shortcut), f"{block}.relu")


@drawn_by("dense_block")
def dense_block(s: Sketch, x: Value, name: str, growth: int, repeat: int) -> Value:
    """Layers of a 1x1 convolution of four times the ``growth`` and a 3x3 one, each reading all that came before.

    Source: Huang et al., Densely Connected Convolutional Networks, CVPR 2017, section 3 (DenseNet-BC).
    """
    for index in range(repeat):
        part = f"{name}.{index}"
        y = s.conv(s.vector("relu", x, f"{part}.relu1"), f"{part}.conv1", 4 * growth, Window(1))
        y = s.conv(s.vector("relu", y, f"{part}.relu2"), f"{part}.conv2", growth, Window(3, 1, 1))
        x = stacked(s, [x, y], f"{part}.concat")
    return x


@drawn_by("inception")
def inception(s: Sketch, x: Value, name: str, widths: list[int], kernel: int = 5) -> Value:
    """Draw four branches side by side: 1x1; 1x1 and 3x3; 1x1 and ``kernel``; pooling and 1x1.

    ``widths`` are those of the 1x1 branch, of both convolutions of the next two, and of the last.
    Source: Szegedy et al., Going Deeper with Convolutions, CVPR 2015, figure 2 (b), table 1.
    """

    def conv(x: Value, part: str, out: int, kernel: int) -> Value:
        y = s.conv(x, f"{name}.{part}", out, Window(kernel, 1, kernel // 2))
        return s.vector("relu", y, f"{name}.{part}.relu")

    first, narrow, middle, thin, wide, last = widths
    pooled = s.pool(x, f"{name}.pool", "max", Window(3, 1, 1))
    ends = [conv(x, "1", first, 1), conv(conv(x, "2.1", narrow, 1), "2.2", middle, 3),
            conv(conv(x, "3.1", thin, 1), "3.2", wide, kernel), conv(pooled, "4", last, 1)]
    return stacked(s, ends, f"{name}.concat")


@drawn_by("fire")
def fire(s: Sketch, x: Value, name: str, squeeze: int, expand: int) -> Value:
    """Draw a 1x1 convolution to ``squeeze`` channels, then 1x1 and 3x3 ones side by side of ``expand`` each.

    Source: Iandola et al., SqueezeNet, arXiv:1602.07360, section 3.2.
    """
    x = s.vector("relu", s.conv(x, f"{name}.squeeze", squeeze, Window(1)), f"{name}.relu")
    ends = [s.conv(x, f"{name}.expand{kernel}", expand, Window(kernel, 1, kernel // 2))
            for kernel in (1, 3)]
    return s.vector("relu", stacked(s, ends, f"{name}.concat"), f"{name}.relu2")


def stacked(s: Sketch, images: list[Value], name: str) -> Value:
    """Return the channels of images of one size one after the other; other sizes are an `InputError`."""
    wrong = [image.shape[1:] for image in images if image.shape[1:] != images[0].shape[1:]]
    if wrong:
        raise InputError(f"{name}.inputs", f"must all have the size {'x'.join(map(str, images[0].shape[1:]))}",
                         "x".join(map(str, wrong[0])))
    return s.join(images, name, 0)


@layer("c2f")
class CrossStage:
    """Half of the channels through ``repeat`` pairs of 3x3 convolutions, all that came before joined by a 1x1 one.

    Source: Jocher et al., Ultralytics YOLOv8, 2023, ``C2f``; Wang et al., CSPNet, CVPRW 2020, section 3.
    """

    name: str
    out: int
    repeat: int = 1
    residual: bool = False

    def __call__(self, s: Sketch, x: Value) -> Value:
        half, x = self.out // 2, activated(s, x, f"{self.name}.split", self.out)
        last = x.part(0, half, half)
        parts, y = [x], s.move("slice", [last], f"{self.name}.half", last.shape, x.words // 2)
        for index in range(self.repeat):
            part, before = f"{self.name}.{index}", y
            for place in (1, 2):
                y = activated(s, y, f"{part}.conv{place}", half, Window(3, 1, 1))
            y = s.vector("add", y, f"{part}.add", before) if self.residual else y
            parts.append(y)
        return activated(s, stacked(s, parts, f"{self.name}.concat"), f"{self.name}.join", self.out)


@drawn_by("sppf")
def pyramid_pooling(s: Sketch, x: Value, name: str, out: int) -> Value:
    """Half of the channels, and three 5x5 poolings of them one behind the other, joined by a 1x1 convolution.

    Source: Jocher et al., Ultralytics YOLOv5 and YOLOv8, ``SPPF``.
    """
    parts = [activated(s, x, f"{name}.narrow", x.shape[0] // 2)]
    for index in range(3):
        parts.append(s.pool(parts[-1], f"{name}.pool{index}", "max", Window(5, 1, 2)))
    return activated(s, stacked(s, parts, f"{name}.concat"), f"{name}.join", out)


@layer("detect")
class Detect:
    """Boxes and classes at every place of ``x`` and ``others``: two 3x3 convolutions and a 1x1 one for each.

    Each side of a box is the mean over the softmax of ``bins`` distances (Li et al., Generalized Focal Loss, NeurIPS
    2020, section 3). Source: Jocher et al., Ultralytics YOLOv8, 2023, ``Detect``.
    """

    name: str
    others: list[str]
    classes: int
    bins: int = 16

    def __call__(self, s: Sketch, x: Value) -> Value:
        levels, places = [x, *(s.value(f"{self.name}.others", other) for other in self.others)], 0
        narrow = min(level.shape[0] for level in levels)
        widths = {"box": max(16, narrow // 4, 4 * self.bins), "class": max(narrow, min(self.classes, 100))}
        ends: dict[str, list[Value]] = {kind: [] for kind in widths}
        for index, level in enumerate(levels):
            places += level.words // level.shape[0]
            for kind, width in widths.items():
                part = f"{self.name}.{index}.{kind}"
                y = activated(s, level, f"{part}.conv1", width, Window(3, 1, 1))
                y = activated(s, y, f"{part}.conv2", width, Window(3, 1, 1))
                y = s.conv(y, part, self.classes if kind == "class" else 4 * self.bins, Window(1))
                ends[kind].append(y.seen("ab r c -> b a rc", a=4 if kind == "box" else 1, b=y.shape[0] // (
                    4 if kind == "box" else 1), r=y.shape[1], c=y.shape[2]))
        boxes = s.join(ends["box"], f"{self.name}.boxes", -1)
        sides = s.conv(s.vector("softmax", boxes, f"{self.name}.softmax"), f"{self.name}.distances", 1, Window(1))
        classes = s.join([one.shaped(*one.shape[::2]) for one in ends["class"]], f"{self.name}.classes", -1)
        scores = s.vector("sigmoid", classes, f"{self.name}.sigmoid")
        return s.join([sides.shaped(4, places), scores], f"{self.name}.found", 0)


def activated(s: Sketch, x: Value, name: str, out: int, window: Window | None = None) -> Value:
    """Return a convolution (1x1 unless ``window`` says else) and its sigmoid-weighted activation."""
    return s.vector("silu", s.conv(x, name, out, window or Window(1)), f"{name}.silu")


@layer("inverted_residual")
class InvertedResidual:
    """Inverted residual blocks: 1x1 expansion, depthwise convolution, linear 1x1 projection.

    Source: Sandler et al., MobileNetV2, CVPR 2018, table 1.
    """

    name: str
    out: int
    expand: int
    repeat: int
    stride: int = 1
    kernel: int = 3
    activation: str = "relu6"

    def __call__(self, s: Sketch, x: Value) -> Value:
        for index in range(self.repeat):
            block, shortcut, wide = f"{self.name}.{index}", x, x.shape[0] * self.expand
            if self.expand != 1:
                x = s.conv(x, f"{block}.expand", wide, Window(1))
                x = s.vector(self.activation, x, f"{block}.{self.activation}1")
            window = Window(self.kernel, self.stride if index == 0 else 1, self.kernel // 2, groups=wide)
            x = s.vector(self.activation, s.conv(x, f"{block}.depthwise", wide, window), f"{block}.{self.activation}2")
            x = s.conv(x, f"{block}.project", self.out, Window(1))
            if shortcut.shape == x.shape:
                x = s.vector("add", x, f"{block}.add", shortcut)
        return x


@layer("shuffle_v1")
class ShuffleV1:
    """ShuffleNet units: grouped 1x1, shuffle, depthwise 3x3, grouped 1x1; the first one halves the image.

    The bottleneck has ``out // 4`` channels. The first unit's output is concatenated with a pooled shortcut; its first
    convolution has ``first_groups`` groups where given. Source: Zhang et al., ShuffleNet, CVPR 2018, figure 2, table 1.
    """

    name: str
    out: int
    groups: int
    repeat: int
    first_groups: int = 0

    def __call__(self, s: Sketch, x: Value) -> Value:
        for index in range(self.repeat):
            x = self._unit(s, x, f"{self.name}.{index}", first=index == 0)
        return x

    def _unit(self, s: Sketch, x: Value, block: str, *, first: bool) -> Value:
        shortcut, narrow = x, self.out // 4
        groups = (self.first_groups or self.groups) if first else self.groups
        x = s.vector("relu", s.conv(x, f"{block}.compress", narrow, Window(1, groups=groups)), f"{block}.relu1")
        mixed = x.seen("gc r q -> cg r q", g=groups, c=narrow // groups, r=x.shape[1], q=x.shape[2])
        x = s.move("channel_shuffle", [mixed], f"{block}.shuffle", x.shape)
        x = s.conv(x, f"{block}.depthwise", narrow, Window(3, 2 if first else 1, 1, groups=narrow))
        final = self.out - shortcut.shape[0] if first else self.out
        x = s.conv(x, f"{block}.expand", final, Window(1, groups=self.groups))
        if first:
            shortcut = s.pool(shortcut, f"{block}.pool", "average", Window(3, 2, 1))
            x = s.join([shortcut, x], f"{block}.concat", 0)
        else:
            x = s.vector("add", x, f"{block}.add", shortcut)
        return s.vector("relu", x, f"{block}.relu")


@drawn_by("shuffle_v2")
def shuffle_v2(s: Sketch, x: Value, name: str, out: int, repeat: int) -> Value:
    """Draw ShuffleNet V2 units, of which the first halves the image.

    Source: Ma et al., ShuffleNet V2, ECCV 2018, figure 3 (c) and (d).
    """
    half = out // 2
    for index in range(repeat):
        block, first = f"{name}.{index}", index == 0
        if first:
            left = s.conv(x, f"{block}.left.depthwise", x.shape[0], Window(3, 2, 1, groups=x.shape[0]))
            left = s.vector("relu", s.conv(left, f"{block}.left.project", half, Window(1)), f"{block}.left.relu")
            right = x
        else:
            left, right = x.part(0, 0, half), x.part(0, half, half)
            right = s.move("split", [right], f"{block}.split", right.shape, read_words=x.words // 2)
        right = s.vector("relu", s.conv(right, f"{block}.expand", half, Window(1)), f"{block}.relu1")
        right = s.conv(right, f"{block}.depthwise", half, Window(3, 2 if first else 1, 1, groups=half))
        right = s.vector("relu", s.conv(right, f"{block}.project", half, Window(1)), f"{block}.relu2")
        x = s.move("channel_shuffle", [left, right], f"{block}.shuffle", (out, *right.shape[1:]))
    return x


@drawn_by("convolution_list")
def convolution_list(s: Sketch, x: Value, name: str, rows: list[str]) -> Value:
    """Independent convolutions, a line each: W H C N K S R pad_w pad_h stride_w stride_h (DeepBench's order).

    A comma-separated list in place of a number stands for one convolution each.
    """
    for index, fields in enumerate(expand(f"{name}.rows", rows, 11)):
        width, height, channels, batch, out, kernel_w, kernel_h, pad_w, pad_h, stride_w, stride_h = map(int, fields)
        own = f"{name}_{width}x{height}x{channels}_n{batch}_k{out}_{kernel_w}x{kernel_h}_s{stride_w}"
        window = Window([kernel_h, kernel_w], [stride_h, stride_w], [pad_h, pad_w])
        given = Value("", (channels, height, width), f"{name}.{index}")
        x = s.with_batch(batch).conv(given, own, out, window)
    return x


def expand(path: str, rows: list[str], numbers: int, words: int = 0) -> list[tuple[str, ...]]:
    """Split lines of so many numbers and then words; comma-separated fields give every combination."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        fields = [field.split(",") for field in row.split()]
        wrong = [entry for field in fields[:numbers] for entry in field if not (entry.isascii() and entry.isdecimal())]
        if len(fields) != numbers + words or wrong:
            raise InputError(path, f"must have {numbers} numbers" + (f" and {words} word" if words else ""), row)
        lines += product(*fields)
    return lines
