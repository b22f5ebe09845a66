"""How like two operators are: what a mapping of one can lend to the other."""

from math import log

from tilewright.workload.operator import Operator


def form(operator: Operator) -> str:
    """Return what operators must share to lend one another mappings: kind, dimensions and what tensors use of them."""
    tensors = " ".join(f"{tensor.name}[{' '.join('+'.join(axis.dimensions) for axis in tensor.axes)}]"
                       for tensor in operator.tensors)
    return f"{operator.kind} {' '.join(operator.sizes)}: {tensors}"


def edit_distance(first: dict[str, int], second: dict[str, int]) -> tuple[int, float]:
    """Return how many dimensions differ in size, and how much: the sum of the logarithms of the ratios.

    Both have the same dimensions (operators of one `form`). The first figure is the similarity of Kao, dissertation,
    section 5.3.1; the second breaks ties.
    """
    ratios = [abs(log(size / second[name])) for name, size in first.items()]
    return sum(ratio > 0 for ratio in ratios), sum(ratios)
