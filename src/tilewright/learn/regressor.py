"""A multi-layer perceptron from vectors to vectors, with the means and deviations that normalise both."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tilewright.learn.files import Arrays, read_arrays, write_arrays
from tilewright.learn.threads import one_thread

Floats = NDArray[np.float32]
_KIND = "tilewright-regressor-1"


@dataclass(frozen=True)
class Scale:
    """What makes values ``(n, f)`` of mean 0 and deviation 1: ``mean`` and ``deviation``, each ``(f)``."""

    mean: torch.Tensor
    deviation: torch.Tensor

    @classmethod
    def of(cls, values: Floats) -> "Scale":
        """Measure values; those that do not vary are left as they are, but for their mean."""
        deviation = values.std(axis=0, dtype=np.float64)
        return cls(torch.from_numpy(values.mean(axis=0, dtype=np.float64).astype(np.float32)),
                   torch.from_numpy(np.where(deviation > 1e-6, deviation, 1.0).astype(np.float32)))

    def to(self, values: torch.Tensor) -> torch.Tensor:
        """Normalise."""
        return (values - self.mean) / self.deviation

    def back(self, values: torch.Tensor) -> torch.Tensor:
        """Undo `to`."""
        return values * self.deviation + self.mean

    def on(self, device: str) -> "Scale":
        """Return it on a device."""
        return Scale(self.mean.to(device), self.deviation.to(device))


@dataclass(frozen=True)
class Regressor:
    """A perceptron with ReLU between its layers: ``weights`` and ``biases``, layer by layer, on normalised values."""

    weights: tuple[torch.Tensor, ...]
    biases: tuple[torch.Tensor, ...]
    inputs: Scale
    outputs: Scale

    @classmethod
    def fresh(cls, widths: tuple[int, ...], scales: tuple[Scale, Scale], seed: int) -> "Regressor":
        """Return an untrained one of layers of ``widths``, inputs and outputs included (He et al., ICCV 2015)."""
        drawn = torch.Generator().manual_seed(seed)
        weights = [torch.randn(out, into, generator=drawn) * (2.0 / into) ** 0.5 for into, out in pairwise(widths)]
        weights[-1] = weights[-1] * 0.1
        return cls(tuple(weights), tuple(torch.zeros(out) for out in widths[1:]), *scales)

    @property
    def parameters(self) -> tuple[torch.Tensor, ...]:
        """All that training changes."""
        return (*self.weights, *self.biases)

    def normalised(self, values: torch.Tensor) -> torch.Tensor:
        """Return ``(n, o)``: normalised outputs for normalised inputs ``(n, f)``; differentiable."""
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            values = torch.relu(torch.nn.functional.linear(values, weight, bias))
        return torch.nn.functional.linear(values, self.weights[-1], self.biases[-1])

    def on(self, device: str) -> "Regressor":
        """Return it on a device, apart from what it was trained by."""
        weights, biases = (tuple(part.detach().to(device) for part in parts) for parts in (self.weights, self.biases))
        return Regressor(weights, biases, self.inputs.on(device), self.outputs.on(device))

    def predict(self, values: Floats) -> Floats:
        """Return ``(n, o)`` for ``(n, f)``, on one thread."""
        with one_thread(), torch.no_grad():
            found = [self.outputs.back(self.normalised(self.inputs.to(part)))
                     for part in torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).split(1 << 16)]
        return np.concatenate([part.numpy() for part in found]) if found else np.empty((0, 0), dtype=np.float32)

    def slopes(self, values: Floats, weights: Floats) -> Floats:
        """Return ``(n, f)``: by how much the sum of ``weights`` ``(n, o)`` times the outputs grows with the inputs.

        Inputs count in their deviations.
        """
        with one_thread():
            point = self.inputs.to(torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))).requires_grad_()
            found = self.outputs.back(self.normalised(point)) * torch.from_numpy(weights.astype(np.float32))
            (slope,) = torch.autograd.grad(found.sum(), point)
        return np.asarray(slope.numpy())

    def arrays(self) -> Arrays:
        """Return all of it as arrays."""
        found = {f"weight{i}": part for i, part in enumerate(self.weights)}
        found |= {f"bias{i}": part for i, part in enumerate(self.biases)}
        found |= {f"{name}.{what}": getattr(getattr(self, name), what)
                  for name in ("inputs", "outputs") for what in ("mean", "deviation")}
        return {name: part.detach().numpy().copy() for name, part in found.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Regressor":
        """Undo `arrays`."""
        layers = sum(name.startswith("weight") for name in arrays)
        parts = {name: torch.from_numpy(np.array(part, dtype=np.float32)) for name, part in arrays.items()}
        scales = [Scale(parts[f"{name}.mean"], parts[f"{name}.deviation"]) for name in ("inputs", "outputs")]
        return cls(tuple(parts[f"weight{i}"] for i in range(layers)), tuple(parts[f"bias{i}"] for i in range(layers)),
                   *scales)


def save_regressor(path: Path, regressor: Regressor, about: Mapping[str, Any]) -> None:
    """Write a network, and plain data about it, so that the file is either the old or the new one."""
    write_arrays(path, _KIND, regressor.arrays(), about)


def load_regressor(path: Path) -> tuple[Regressor, dict[str, Any]]:
    """Return the network in a file, and what is said about it. Code in the file is not run.

    Raises an `InputError` if there is no such file, or it holds something else.
    """
    arrays, about = read_arrays(path, _KIND, "surrogate", "train-surrogate")
    return Regressor.from_arrays(arrays), about
