"""Whatever the machine, the operator and the space: nothing is below its bound, and what is proved optimal is."""

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tilewright.cost.reference import walk
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import Constraints, MapSpace
from tilewright.search import search
from tilewright.workload import ROLES, Operator, convolution, depthwise, matmul

RATES = st.sampled_from((None, None, 0.25, 0.5, 1.0, 4.0))
PICOJOULES = st.sampled_from((0.5, 1.0, 2.0, 10.0))


@st.composite
def operators(draw: st.DrawFn) -> Operator:
    few, kind = st.integers(1, 4), draw(st.sampled_from(("matmul", "conv", "depthwise")))
    if kind == "matmul":
        return matmul("m", m=draw(st.integers(1, 6)), n=draw(st.integers(1, 6)), k=draw(st.integers(1, 6)),
                      batch=draw(st.integers(1, 2)))
    if kind == "depthwise":
        return depthwise("d", draw(few), in_size=(draw(st.integers(3, 6)),), kernel=draw(st.integers(1, 3)),
                         stride=draw(st.integers(1, 2)))
    groups = draw(st.integers(1, 2))
    return convolution("c", in_channels=groups * draw(st.integers(1, 3)), out_channels=groups * draw(st.integers(1, 3)),
                       in_size=(draw(st.integers(5, 8)),), kernel=draw(st.integers(1, 3)), groups=groups,
                       stride=draw(st.integers(1, 3)), dilation=draw(st.integers(1, 2)))


@st.composite
def machines(draw: st.DrawFn) -> Accelerator:
    def memory(name: str, keeps: tuple[str, ...], limited: bool) -> Memory:
        size, apart = float(draw(st.integers(4, 150))), limited and draw(st.booleans())
        return Memory(name, keeps, AccessEnergy(*(draw(PICOJOULES) for _ in range(4))),
                      capacity_bytes=size if limited and not apart else None,
                      partitions_bytes=tuple((role, size) for role in keeps) if apart else (),
                      bandwidth=Bandwidth(draw(RATES), draw(RATES), draw(RATES)),
                      buffering=draw(st.sampled_from(("single", "double", "buffet"))))

    levels: list[Memory | Fanout] = [memory("M0", ROLES, False)]
    for index in range(1, draw(st.integers(2, 4))):
        if draw(st.booleans()):
            levels.append(memory(f"M{index}", tuple(role for role in ROLES if draw(st.booleans())), True))
        else:
            levels.append(Fanout(f"F{index}", (draw(st.integers(1, 6)), draw(st.integers(1, 3))),
                                 multicast=draw(st.booleans()), reduce=draw(st.booleans()),
                                 network_energy_pj_per_word=draw(st.sampled_from((0.0, 1.0)))))
    return Accelerator("m", tuple(levels), Compute("MAC", 0.3, leakage_mw=draw(st.sampled_from((0.0, 0.1)))))


@st.composite
def spaces(draw: st.DrawFn) -> MapSpace:
    operator, accelerator = draw(operators()), draw(machines())
    keeps = {memory.name: tuple(t.name for t in operator.tensors
                                if memory.can_keep(t.name, t.role) and draw(st.booleans()))
             for memory in accelerator.memories[1:]} if draw(st.booleans()) else {}
    return MapSpace(operator, accelerator, draw(st.sampled_from(("perfect", "imperfect"))), Constraints(keeps=keeps))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(spaces(), st.sampled_from(("edp", "latency", "energy")))
def test_the_best_of_all_mappings_is_not_below_the_bound(space, objective):
    assume(space.size().mappings <= 300_000)
    operator, accelerator = space.operator, space.accelerator
    every = search(operator, accelerator, space=space, mapper="exhaustive", objective=objective, budget=10**6)
    assert every.complete
    proved = search(operator, accelerator, space=space, mapper="exact", objective=objective, budget=10**6,
                    options={"start": 30})
    assert proved.complete
    assert (proved.mapping is None) == (every.mapping is None)
    if every.mapping is None:
        return
    cost = walk(operator, accelerator, every.mapping)
    score = {"edp": cost.edp, "latency": cost.latency_cycles, "energy": cost.energy_pj}[objective]
    assert every.bounding.score <= score * (1 + 1e-12)
    assert abs(proved.score / score - 1) <= 1e-9
