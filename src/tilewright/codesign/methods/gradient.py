"""One loop of gradient descent over all mappings; hardware is what they need (Hong et al., DOSA, MICRO 2023).

The cost model is made smooth (`search/relaxed`), and so are needs: capacities and sides are about the largest that any
layer takes, and energies, area and limits follow from them. Points are rounded to mappings as they descend.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from tilewright.base import require_extra
from tilewright.codesign.designs import DESIGNERS
from tilewright.codesign.limits import Floats, figures_of, power_mw
from tilewright.codesign.methods.decoding import NeededDesigns
from tilewright.codesign.problem import Nests
from tilewright.codesign.session import Session
from tilewright.hardware import AREA, LEAKAGE, NETWORK, Number
from tilewright.search import Count, MapperOptions, Options, Share, read_options

if TYPE_CHECKING:
    from tilewright.search.descent import NeededNumbers
    from tilewright.search.points import Points


@dataclass(frozen=True)
class GradientDesignOptions(MapperOptions):
    """Options of ``gradient``."""

    starts: Annotated[Count, "Designs that descend together."] = 16
    steps: Annotated[Count, "Steps of each descent."] = 100
    every: Annotated[Count, "Steps after which the points are rounded and scored."] = 10
    rate: Annotated[Share, "Length of a step, in logarithms of loop counts."] = 0.15
    newcomers: Annotated[Share, "Share of the starts that are drawn; the others are the best ones, shaken."] = 0.5


@DESIGNERS.register("gradient", GradientDesignOptions)
class GradientDesigner:
    """Mappings of all layers descend together along the gradient of the objective, with the hardware that they need.

    Needs the extra `learn` (PyTorch), but no training. Only designs that are rounded and scored count as samples.
    Numbers that mappings do not need, such as bandwidths, are drawn, and unknown to the gradient.
    """

    extra = "learn"

    def __init__(self, session: Session, options: Options) -> None:
        self.options = read_options(GradientDesignOptions, options, "gradient")
        require_extra(self.extra, "design method", "gradient")
        self.session, self.problem = session, session.problem
        self.designs = NeededDesigns(session.problem)
        self.rng = np.random.default_rng((session.seed, 0x97AD))

    def steps(self) -> Iterator[None]:
        """Descend, round, score, and begin again from what was best."""
        from tilewright.search.descent import NetworkDescent  # noqa: PLC0415  (PyTorch loads late)
        from tilewright.search.points import to_mappings  # noqa: PLC0415

        session, layers, options = self.session, len(self.problem.layers), self.options
        descent = NetworkDescent(self.designs.spaces, self.problem.weights, self._numbers(), self.problem.objective,
                                 lambda: session.exhausted)
        best: list[Points] = []
        ranks = np.empty(0)
        while session.left >= layers:
            count = int(min(options.starts, session.left // layers))
            chosen = {key: self.designs.between(key, self.rng.random(count)) for key in self.designs.genes}
            for moved in descent.run(self._starts(count, best), options.steps, options.every, options.rate):
                count = int(min(count, session.left // layers))
                if not count:
                    return
                points = [(logs[:count], orders[:count]) for logs, orders in moved]
                batches = [to_mappings(one, space) for one, space in zip(points, self.designs.spaces, strict=True)]
                scores = session.score(*self.designs.complete(
                    {key: column[:count] for key, column in chosen.items()}, batches, arrays=True))
                ranks = np.concatenate([ranks, np.where(scores.excess > 0, 1e300 * (1 + np.minimum(
                    scores.excess, 1e6)), scores.score)])
                best = [tuple(np.concatenate(pair) for pair in zip(*both, strict=True))  # type: ignore[misc]
                        for both in zip(best, points, strict=True)] if best else points
                order = np.argsort(ranks, kind="stable")[:options.starts]
                ranks, best = ranks[order], [(logs[order], orders[order]) for logs, orders in best]
                yield
                if session.over:
                    return

    def _starts(self, count: int, best: "list[Points]") -> "list[Points]":
        """Return points of every layer: drawn, and of the best designs, shaken."""
        from tilewright.search.points import onto_simplex, to_points  # noqa: PLC0415

        kept = min(int(count * (1 - self.options.newcomers)), count - 1, len(best[0][0]) if best else 0)
        found = []
        for layer, space in enumerate(self.designs.spaces):
            logs, orders = to_points(space.sample(self.rng, count - kept, 0.5), space)
            if kept:
                own = best[layer][0][:kept], best[layer][1][:kept]
                logs = np.concatenate([logs, own[0] + self.rng.normal(0, 0.3, own[0].shape)])
                orders = np.concatenate([orders, own[1] + self.rng.normal(0, 0.2, own[1].shape)])
            free, totals = space.arrays.free.astype(np.bool_), np.log(space.arrays.sizes)
            found.append((onto_simplex(logs, free, totals), orders))
        return found

    def _numbers(self) -> "NeededNumbers":
        """Return what mappings need, and what follows from it."""
        from tilewright.search.descent import EXCESS, POWER, NeededNumbers  # noqa: PLC0415

        problem, budget, machine = self.problem, self.problem.budget, self.problem.space.accelerator
        needed = problem.needed([Nests.of(problem.ones(layer, 0)) for layer in range(len(problem.layers))])
        prices = [key for key in machine.numbers if key[1] == NETWORK or key[1].endswith("_energy_pj_per_word")]
        most = budget.most("power")

        def figures(logs: Mapping[Number, Floats]) -> dict[Number, NDArray[np.float64]]:
            numbers = budget.completed({key: np.clip(np.exp(column), problem.smallest[key], self.designs.highest[key])
                                        for key, column in logs.items()})
            taken = figures_of(machine, numbers)
            excess = sum((np.maximum(figure / budget.most(what) - 1, 0) for what, figure in taken.items()),
                         start=np.zeros(1))
            found = {key: numbers[key] for key in (*prices, LEAKAGE, AREA)} | {EXCESS: excess}
            return found if most == np.inf else found | {POWER: power_mw(machine, 1.0, np.ones(1)) / most}

        return NeededNumbers(problem.space.follow, {key: float(np.log(problem.smallest[key])) for key in needed},
                             {key: float(np.log(self.designs.highest[key])) for key in needed}, figures)
