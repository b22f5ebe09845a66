"""Studies of searches as a user asks for them: mappers side by side, axes, loop orders, the space in two dimensions."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tilewright.api.inputs import Machine, Network, load_mapping, load_target, pick_operator
from tilewright.api.spaces import Limits, choose_space
from tilewright.api.tasks import read_budget
from tilewright.base import InputError
from tilewright.jobs import Observer, Runner, Stop
from tilewright.mapping import Mapping as Nest
from tilewright.mapping import MapSpace, flexible_machine, flexible_within
from tilewright.search import Budget, search
from tilewright.search.studies import (
    AxisStudy,
    Contender,
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
from tilewright.store import kept_in

DEFAULT_MAPPERS = "auto,gamma,random-pruned"


def compare(  # noqa: PLR0913  (keywords of an entry point)
    network: Network,
    arch: Machine,
    layer: str | None = None,
    mappers: str | Iterable[str | Contender] = DEFAULT_MAPPERS,
    *,
    objective: str = "edp",
    budget: str | int | Budget = 10_000,
    seeds: int = 10,
    seed: int = 0,
    tiling: str | None = None,
    constraints: Limits | None = None,
    dataflow: str | None = None,
    bind: Mapping[str, int] | None = None,
    out: str | Path | None = None,
    workers: int = 1,
    on: str = "threads",
    told: Observer | None = None,
    stop: Stop | None = None,
) -> Contest:
    """Search one layer with several mappers and many seeds: which is better, how surely, and how fast.

    Parameters
    ----------
    network, layer, tiling, constraints, dataflow, bind
        Which layer, and which of its mappings, as in `map_space`.
    mappers
        Names, options after a colon: ``gamma,gamma:crossover=0,random``.
    budget
        Of each search: mappings, seconds (``2s``), or both.
    seeds
        Searches of each mapper, of seeds ``seed`` and up.
    out
        A folder where searches are kept as they end, to be taken over by a later call.
    workers, on
        Searches side by side, and where: ``threads``, ``processes``, ``ray``, ``ray://HOST:PORT``. Scores do not depend
        on it; seconds are only fair with one on a thread.
    told
        Told how far it is.

    Raises
    ------
    InputError
        If something that was given is wrong.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.compare("matmul:M=64,N=64,K=64", "edge-s1", mappers="gamma,random", budget=500, seeds=6)
    >>> found.final("gamma").median <= found.final("random").median
    True
    """
    space = study_space(network, arch, layer, tiling=tiling, constraints=constraints, dataflow=dataflow, bind=bind)
    entrants = parse_contenders(mappers)
    with kept_in(out, "compare") as kept:
        return run_contest(space, entrants, Terms(objective, read_budget(budget), seeds, seed),
                           Runner(workers=workers, on=on, keeper=kept, observer=told, stop=stop))


def study_axes(  # noqa: PLR0913
    network: Network,
    arch: Machine,
    layer: str | None = None,
    mapper: str | Contender = "gamma",
    *,
    mapping: str | Path | Nest | None = None,
    objective: str = "edp",
    budget: str | int | Budget = 10_000,
    seeds: int = 10,
    seed: int = 0,
    tiling: str | None = None,
    constraints: Limits | None = None,
    dataflow: str | None = None,
    bind: Mapping[str, int] | None = None,
    out: str | Path | None = None,
    workers: int = 1,
    on: str = "threads",
    told: Observer | None = None,
    stop: Stop | None = None,
) -> AxisStudy:
    """Explore tile sizes, loop orders and parallelism, alone and together, to see which axis matters.

    Parameters
    ----------
    mapper
        Any, with options after a colon; what is fixed is left out of its map space.
    mapping
        What the others are fixed at: a YAML file, its text, or a mapping; by default a random one for each seed.

    Others are those of `compare`; errors too.
    """
    space = study_space(network, arch, layer, tiling=tiling, constraints=constraints, dataflow=dataflow, bind=bind)
    nest = None if mapping is None else load_mapping(mapping, space.operator, space.accelerator)
    with kept_in(out, "axes") as kept:
        return axes_of(space, mapper, Terms(objective, read_budget(budget), seeds, seed), nest,
                       Runner(workers=workers, on=on, keeper=kept, observer=told, stop=stop))


def study_orders(  # noqa: PLR0913
    network: Network,
    arch: Machine,
    layer: str | None = None,
    mapping: str | Path | Nest | None = None,
    *,
    objective: str = "edp",
    memories: Iterable[str] | None = None,
    mapper: str = "auto",
    budget: str | int | Budget = 10_000,
    seed: int = 0,
    tiling: str | None = None,
    bind: Mapping[str, int] | None = None,
) -> OrderStudy:
    """Score one mapping with every order of its loops: how many costs there are, and how far apart.

    Parameters
    ----------
    mapping
        A YAML file, its text, or a mapping; by default the best that ``mapper`` finds within ``budget``.
    memories
        Where loops change their order, the same at all of them; by default everywhere.

    Others are those of `compare`.

    Raises
    ------
    InputError
        If something that was given is wrong, or no mapping is found.

    Examples
    --------
    >>> import tilewright as tw
    >>> found = tw.study_orders("conv:K=16,C=8,P=14,Q=14,R=3,S=3", "accel-b", budget=500)
    >>> found.orders, len(found.groups) < 100
    (720, True)
    """
    space = study_space(network, arch, layer, tiling=tiling, bind=bind)
    operator, accelerator = space.operator, space.accelerator
    if mapping is not None:
        nest = load_mapping(mapping, operator, accelerator)
    else:
        found = search(operator, accelerator, objective=objective, mapper=mapper, budget=read_budget(budget), seed=seed,
                       space=space).mapping
        if found is None:
            raise InputError("budget", "must let the mapper find a legal mapping", str(budget))
        nest = found
    return orders_of(operator, accelerator, nest, objective=objective, memories=memories)


def study_landscape(  # noqa: PLR0913
    network: Network,
    arch: Machine,
    layer: str | None = None,
    mappers: str | Iterable[str | Contender] = "gamma,random-pruned",
    *,
    objective: str = "edp",
    points: int = 20_000,
    budget: str | int | Budget = 5_000,
    seed: int = 0,
    uniform: bool = False,
    tiling: str | None = None,
    constraints: Limits | None = None,
    dataflow: str | None = None,
    bind: Mapping[str, int] | None = None,
) -> Landscape:
    """Draw a map space in two dimensions: random mappings by principal components, and what mappers sample of it.

    Parameters
    ----------
    points
        Random mappings that fit.
    budget
        Of each mapper.
    uniform
        Draw every mapping of the space with the same chance, instead of spreading the draws over all scales of tiles.

    Others are those of `compare`; errors too.
    """
    space = study_space(network, arch, layer, tiling=tiling, constraints=constraints, dataflow=dataflow, bind=bind)
    return landscape_of(space, mappers, objective=objective, points=points, budget=read_budget(budget), seed=seed,
                        uniform=uniform)


def study_space(  # noqa: PLR0913
    network: Network, arch: Machine, layer: str | None, *, tiling: str | None = None,
    constraints: Limits | None = None, dataflow: str | None = None, bind: Mapping[str, int] | None = None,
) -> MapSpace:
    """Return the map space of a layer, as `map_space` does, within what the machine's flexibility allows.

    Raises
    ------
    InputError
        Also where that is a union of several spaces, of which no study is made.
    """
    operator, (machine, own) = pick_operator(network, layer, bind), load_target(arch, network)
    accelerator = flexible_machine(machine)
    choice = replace(choose_space(tiling, constraints, dataflow, [operator]), own=own)
    choice.refuse_empty([operator], accelerator)
    spaces = flexible_within(choice.space(operator, accelerator))
    if len(spaces) > 1:
        raise InputError(f"{accelerator.name}.flexibility", "must leave one map space to be studied", len(spaces),
                         "Take a machine without this section")
    return spaces[0]
