"""Studies of searches as a user asks for them: mappers side by side, axes, loop orders, the space in two dimensions."""

from dataclasses import replace

from tilewright.api.flags import takes
from tilewright.api.inputs import load_mapping, load_target, pick_operator
from tilewright.api.options import (
    AxesOptions,
    CompareOptions,
    LandscapeOptions,
    LookOptions,
    OrdersOptions,
    StudyOptions,
)
from tilewright.api.spaces import choose_space
from tilewright.api.study_runs import study_runner
from tilewright.api.tasks import read_budget
from tilewright.base import InputError
from tilewright.mapping import MapSpace, flexible_machine, flexible_within
from tilewright.search import search
from tilewright.search.studies import (
    AxisStudy,
    Contest,
    Landscape,
    OrderStudy,
    Terms,
    parse_contenders,
    run_contest,
)
from tilewright.search.studies import study_axes as axes_of
from tilewright.search.studies import study_landscape as landscape_of
from tilewright.search.studies import study_orders as orders_of


@takes(CompareOptions)
def compare(asked: CompareOptions) -> Contest:
    """Search one layer with several mappers and many seeds: which is better, how surely, and how fast.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.compare("matmul:M=64,N=64,K=64", "edge-s1", mappers="gamma,random", budget=500, seeds=6)
    >>> found.final("gamma").median <= found.final("random").median
    True
    """
    space = study_space(asked)
    entrants = parse_contenders(asked.mappers)
    with study_runner(asked, "compare") as runner:
        return run_contest(space, entrants, _terms(asked), runner)


@takes(AxesOptions)
def study_axes(asked: AxesOptions) -> AxisStudy:
    """Explore tile sizes, loop orders and parallelism, alone and together, to see which axis matters."""
    space = study_space(asked)
    given = asked.mapping
    nest = None if given is None else load_mapping(given, space.operator, space.accelerator)
    with study_runner(asked, "axes") as runner:
        return axes_of(space, asked.mapper, _terms(asked), nest, runner)


@takes(OrdersOptions, raises=", or no mapping is found")
def study_orders(asked: OrdersOptions) -> OrderStudy:
    """Score one mapping with every order of its loops: how many costs there are, and how far apart.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.study_orders("conv:K=16,C=8,P=14,Q=14,R=3,S=3", "accel-b", budget=500)
    >>> found.orders, len(found.groups) < 100
    (720, True)
    """
    space = study_space(asked)
    operator, accelerator = space.operator, space.accelerator
    if asked.mapping is not None:
        nest = load_mapping(asked.mapping, operator, accelerator)
    else:
        found = search(operator, accelerator, objective=asked.objective, mapper=asked.mapper,
                       budget=read_budget(asked.budget), seed=asked.seed, space=space).mapping
        if found is None:
            raise InputError("budget", "must let the mapper find a legal mapping", str(asked.budget))
        nest = found
    return orders_of(operator, accelerator, nest, objective=asked.objective, memories=asked.memories)


@takes(LandscapeOptions)
def study_landscape(asked: LandscapeOptions) -> Landscape:
    """Draw a map space in two dimensions: random mappings by principal components, and what mappers sample of it."""
    space = study_space(asked)
    return landscape_of(space, asked.mappers, objective=asked.objective, points=asked.points,
                        budget=read_budget(asked.budget), seed=asked.seed, uniform=asked.uniform)


def study_space(asked: LookOptions) -> MapSpace:
    """Return the map space of a layer, as `map_space` does, within what the machine's flexibility allows.

    Where that is a union of several spaces, of which no study is made, it is an `InputError`.
    """
    machine, own = load_target(asked.arch, asked.network)
    accelerator = flexible_machine(machine)
    operator = pick_operator(asked.network, asked.layer, asked.bind, arch=accelerator, precision=asked.precision)
    choice = replace(choose_space(asked.tiling, asked.constraints, asked.dataflow, [operator]), own=own)
    choice.refuse_empty([operator], accelerator)
    spaces = flexible_within(choice.space(operator, accelerator))
    if len(spaces) > 1:
        raise InputError(f"{accelerator.name}.flexibility", "must leave one map space to be studied", len(spaces),
                         "Take a machine without this section")
    return spaces[0]


def _terms(asked: StudyOptions) -> Terms:
    return Terms(asked.objective, read_budget(asked.budget), asked.seeds, asked.seed)
