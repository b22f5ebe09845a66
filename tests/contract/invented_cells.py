"""What cells of studies could hold, made up without a search: `test_verdicts` alters it until every verdict turns."""

from functools import cache

from tilewright.hardware import preset
from tilewright.reproduce.gamma_contest import convolutions
from tilewright.reproduce.mse_fig5_4 import UNIFORM
from tilewright.reproduce.mse_warm import operators

FOUND = {
    "edp": 1e9, "energy_pj": 1e5, "latency_cycles": 1e4, "utilisation": 0.5, "bottleneck": "compute", "steps": 9000,
    "samples": 100, "legal_samples": 100, "complete": False, "mapping": "", "seconds": 1.0,
    "history": [[1, 8e9], [50, 2e9], [100, 1e9]], "times": [[0.01, 8e9], [0.5, 2e9], [1.0, 1e9]],
}
ORDERS = {"groups": 16, "latencies": 4, "ratio": 14.4, "own": 2.0, "best": 1.0, "cycles": 1e4, "largest": 315,
          "orders": 5040, "mapping": ""}
NETWORK = {"network": "", "cpu_seconds": 1.0, "ranks": [0.9, 0.9], "loss": 0.1,
           "layer_rank": {"accel-a": 0.9, "accel-b": 0.5}}


def invented(key):
    """Return what a cell of this key could hold, None where its own function is to say."""
    kinds = {"tune": tuned, "train": lambda _: NETWORK, "orders of": lambda _: ORDERS, "picture of": picture,
             "tested": sparse, "then": pipeline, "tiling": warmed, "random": lambda _: {"worst": 1e12}}
    for name, kind in kinds.items():
        if name in key:
            return kind(key)
    best = (key.get("options") or {}).get("paper", False) is True  # Gamma as published, which wins everywhere there
    return (FOUND | {"latency_cycles": 1e2} if best else FOUND) if {"samples", "seconds", "flow"} & set(key) else None


def tuned(_):
    return {"machine": "flexion", "latency_cycles": 1e6, "energy_pj": 1e6}


@cache
def fixed_design(name):
    return preset(name)


def picture(key):
    names = key["contenders"]
    point = {"near": 0.5, "best": 1e9, "legal": 100, "first": 0.1, "last": 0.5}
    return {"explained": [0.3, 0.2], "features": 9, "bound": 1e8, "best": 1e9,
            "random": {"near": 0.01, "spread": 0.5, "median": 10.0}, "distances": dict.fromkeys(names, 1.0),
            "mappers": {name: dict(point) for name in (UNIFORM, *names)},
            "shown": {name: [[0.0, 1.0], [0.0, 1.0], [1e9, 2e9], [1, 2]] for name in ("random", *names)}}


def sparse(key):
    """Return what is found for some densities: it is the best there."""
    return {"edp": {f"{density:g}": 1e6 if density in key["over"] else 2e6 for density in key["tested"]}, "mapping": ""}


def pipeline(key):
    stage = dict.fromkeys(("interval_cycles", "energy_pj", "layer_power_mw", "peak_power_mw", "power_mw",
                           "mean_cycles"), 1e6)
    layer = {"latency_cycles": 1e6, "energy_pj": 1e6, "power_mw": 1.0, "mapping": ""}
    return {"limit_cycles": 1e6, "missing": [], "first": stage, "then": stage,
            "layers": [{"name": each.name, "first": layer, "then": layer}
                       for each in convolutions(key["network"], key["every"])]}


def warmed(key):
    """Return what is found cold and, on regular shapes five times as soon, warm."""
    lent = {"published": [2e9, 3e9], "all": [2e9, 3e9]}
    soon = {**FOUND, "history": [[1, 2e9], [50 if key["network"] == "mnasnet" else 10, 1e9]], "oracle": True}
    return {"layers": [
        {"cold": {**FOUND, "from": [], "oracle": True}, "warm": {**soon, "from": ["a"][:place]}, "random": 1e10,
         "lenders": {"previous": "a", "similar": "b"}, "previous": lent, "similar": lent}
        for place, _ in enumerate(operators(key["network"]))]}
