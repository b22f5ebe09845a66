"""The denoising network of a latent diffusion model, as a record like those of `layers_image.py`."""

from dataclasses import dataclass, field

from tilewright.workload.layers_image import stacked
from tilewright.workload.sketch import Sketch, Value, Window, layer

_EVEN = Window(3, 1, 1)


@layer("unet")
class UNet:
    """One pass of a U-Net: residual blocks told the time, and transformers that attend to a text.

    Source: Rombach et al., Latent Diffusion Models, CVPR 2022, section 3.3 and appendix E.2.1; Ronneberger et al.,
    U-Net, MICCAI 2015.

    Parameters
    ----------
    widths
        Channels at each size, from the largest to the smallest.
    attention
        At how many of these, from the largest, there are transformers (and in the middle).
    repeat
        Residual blocks at each size on the way down; one more on the way up.
    text
        Positions and features of what is attended to.
    """

    name: str
    widths: list[int]
    attention: int
    repeat: int
    heads: int
    text: list[int] = field(default_factory=lambda: [77, 768])

    def __call__(self, s: Sketch, x: Value) -> Value:
        channels = x.shape[0]
        time = Value("", (self.widths[0],), "time")
        for place in (1, 2):
            time = s.linear(time, f"{self.name}.time{place}", 4 * self.widths[0])
            time = s.vector("silu", time, f"{self.name}.time{place}.silu")
        draw = _Drawing(s, time, Value("", (self.text[0], self.text[1]), "text"), self.heads)
        x = s.conv(x, f"{self.name}.in", self.widths[0], _EVEN)
        kept = [x]
        for index, width in enumerate(self.widths):
            part = f"{self.name}.down{index}"
            for place in range(self.repeat):
                x = draw.block(x, f"{part}.{place}", width, attending=index < self.attention)
                kept.append(x)
            if index < len(self.widths) - 1:
                x = s.conv(x, f"{part}.half", width, Window(3, 2, 1))
                kept.append(x)
        x = draw.block(x, f"{self.name}.middle.0", self.widths[-1], attending=True)
        x = draw.block(x, f"{self.name}.middle.1", self.widths[-1], attending=False)
        for index, width in reversed(list(enumerate(self.widths))):
            part = f"{self.name}.up{index}"
            for place in range(self.repeat + 1):
                x = stacked(s, [x, kept.pop()], f"{part}.{place}.concat")
                x = draw.block(x, f"{part}.{place}", width, attending=index < self.attention)
            if index:
                twice = s.move("upsample", [x], f"{part}.twice", (width, *(2 * size for size in x.shape[1:])))
                x = s.conv(twice, f"{part}.conv", width, _EVEN)
        return s.conv(draw.normed(x, f"{self.name}.out"), f"{self.name}.out", channels, _EVEN)


@dataclass(frozen=True)
class _Drawing:
    """What all blocks read."""

    sketch: Sketch
    time: Value
    text: Value
    heads: int

    def block(self, x: Value, name: str, width: int, *, attending: bool) -> Value:
        """Add a residual block, and a transformer behind it."""
        s, shortcut = self.sketch, x
        y = s.conv(self.normed(x, f"{name}.1"), f"{name}.conv1", width, _EVEN)
        told = s.linear(self.time, f"{name}.time", width)
        y = s.vector("add", y, f"{name}.told", told)
        y = s.conv(self.normed(y, f"{name}.2"), f"{name}.conv2", width, _EVEN)
        if shortcut.shape != y.shape:
            shortcut = s.conv(shortcut, f"{name}.shortcut", width, Window(1))
        y = s.vector("add", y, f"{name}.add", shortcut)
        return self.transformer(y, f"{name}.transformer") if attending else y

    def normed(self, x: Value, name: str) -> Value:
        """Add a normalisation of groups of channels and its activation."""
        s = self.sketch
        return s.vector("silu", s.vector("group_norm", x, f"{name}.norm"), f"{name}.silu")

    def transformer(self, image: Value, name: str) -> Value:
        """Add attention of every place to all and to the text, and a gated feed-forward."""
        s, width = self.sketch, image.shape[0]
        y = s.conv(s.vector("group_norm", image, f"{name}.norm"), f"{name}.in", width, Window(1))
        sizes = {"c": width, "r": image.shape[1], "q": image.shape[2]}
        turned = y.seen("c r q -> rq c", **sizes)
        x = s.move("transpose", [turned], f"{name}.rows", turned.shape)
        for kind, keys in (("self", None), ("text", self.text)):
            y = s.vector("layer_norm", x, f"{name}.{kind}.norm")
            parts = [s.linear(of, f"{name}.{kind}.{part}", width)
                     for part, of in (("query", y), ("key", keys or y), ("value", keys or y))]
            mixed = s.attention(f"{name}.{kind}", (parts[0], parts[1], parts[2]), (self.heads, 0))
            x = s.vector("add", s.linear(mixed, f"{name}.{kind}.output", width), f"{name}.{kind}.add", x)
        y = s.linear(s.vector("layer_norm", x, f"{name}.ff.norm"), f"{name}.ff1", 8 * width)
        half, gate = (y.part(1, start, 4 * width) for start in (0, 4 * width))
        y = s.vector("multiply", s.vector("gelu", gate, f"{name}.gelu"), f"{name}.gated", half)
        x = s.vector("add", s.linear(y, f"{name}.ff2", width), f"{name}.ff.add", x)
        back = s.move("transpose", [x.seen("rq c -> c r q", **sizes)], f"{name}.image", image.shape)
        return s.vector("add", s.conv(back, f"{name}.out", width, Window(1)), f"{name}.add", image)
