"""The design method of our own: mappings in pools serve all machines, bounds choose the first, and both meet."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tilewright.codesign.breeding import Breeder, children_of
from tilewright.codesign.designs import DESIGNERS
from tilewright.codesign.limits import Floats
from tilewright.codesign.pools import MOST, MappingPool, Worth
from tilewright.codesign.problem import LayerFront, Nests
from tilewright.codesign.screening import (
    HardwareBoxes,
    Places,
    bounds_at,
    grown,
    reaching,
    taken,
    values_at,
)
from tilewright.codesign.session import Candidate, Session
from tilewright.cost import HardwareBatch
from tilewright.hardware import Number
from tilewright.search import MOST_STARTS, MapperOptions, Options, first_of_front, read_options

Machine = Mapping[Number, float]
SPLITS = 16
"""Boxes that are split at once; the space begins with twice as many."""
FIRST_ROUNDS, LAST_ROUNDS, BETWEEN = 2, 5, 12
"""Rounds of splitting before the first machine is mapped, and after the last one, at most; between them, where time is
limited, one after so many rounds of breeding."""
NEAR = 1.02, 1.1, 1.3
"""By which factors bounds of the first machines may be above the least."""
FIRST_BREEDS = 2
"""Rounds of breeding for the first machines."""
ROUNDS, FEWEST_ROUNDS = 48, 16
"""Rounds of breeding that samples are shared among; fewer where layers would have less than `FEW` children in each."""
FEWEST, FEW, LARGEST = 2, 64, 2304
"""Children of a layer in a round, on the average: at least, and if there are rounds enough; and in all of these."""
FACTORS = 1.5, 1.2, 1.09, 1.04
"""By which a number is changed."""
STEPS = 1.41, 1.19, 1.09, 2.0
"""By which the neighbours that are bred for differ."""
NEAREST = 12
"""How many nearest values of counts and rates are tried, either way."""
VALUES = 24
"""Capacities that mappings need, of each memory, that machines are made of."""
MOVES = 3
"""Steps from machine to machine between two rounds of breeding, at most."""
CLOSE = 0.005
"""Bounds are tightened no further where they are this close to the best score."""
STALE = 400
"""Rounds without a better machine after which nothing better is looked for."""


@DESIGNERS.register("auto")
class Auto:
    """Branch and bound names the first machines, pooled mappings tell the next, and children are bred where it pays.

    A mapping is scored once, and what it needs and takes tells what it comes to on any machine. Each round looks up the
    neighbours of the best machine, of capacities that known mappings need and as much of another number as then fits,
    moves to the best of them, and breeds mappings for it and for one of the others: the more of a layer, the further it
    is from its bound. Boxes of machines are split for the first ones, and for what none can beat.
    """

    def __init__(self, session: Session, options: Options) -> None:
        read_options(MapperOptions, options, "auto")
        self.session, self.problem = session, session.problem
        self.breeder = Breeder(session.problem)
        self.pooling = self.breeder.pooling
        self.rng = np.random.default_rng((session.seed, 0xA070))
        self.pools: list[MappingPool] = []
        self.round = self.stale = 0
        self.leading: list[list[int]] = [self.problem.plain_sets(layer) for layer in range(len(self.problem.layers))]
        """Kept sets of each layer that promise much."""
        self.sparing = int(session.problem.objective.endswith("area"))
        self.low = np.array([one.place(self.problem.smallest[key]) for key, one in self.problem.space.ranges.items()])
        self.queue: list[tuple[float, Machine]] = []
        self.factor = 0
        self.offered: dict[tuple[float, ...], float] = {}
        """What machines were to come to when they were last scored."""
        self.within: dict[bytes, tuple[bool, Places]] = {}
        self.bounded: dict[bytes, tuple[float, Floats, Floats]] = {}
        """By the places of machines what is `_reached` from them, and their bounds with those of each layer."""

    def steps(self) -> Iterator[None]:
        """Work until the session is over, step by step."""
        session, layers = self.session, len(self.problem.layers)
        self.boxes = HardwareBoxes.whole(self.problem, 2 * SPLITS)
        session.bound = self.boxes.least
        for _ in range(FIRST_ROUNDS):
            self._split()
        yield
        share = int(min(session.left / (2 * layers), LARGEST))
        self.children = max(share // ROUNDS, min(share // FEWEST_ROUNDS, FEW), FEWEST) * layers
        self.shares = np.full(layers, 1.0 / layers)
        targets = self._first_machines()
        self._lead(targets[0])
        self._begin(targets)
        for _ in range(FIRST_BREEDS):
            if not session.over:
                self._breed(targets)
                yield
        proved = False
        while not session.over and self.stale < STALE:
            self._move(targets)
            if session.over:
                break
            targets = self._targets()
            if session.left <= 2 * self.children and not proved:  # the last rounds
                self._prove()
                proved = True
            self._breed(targets)
            if session.seconds is not None and self.round % BETWEEN == 0 and not self._near():
                self._split()
            yield

    def _prove(self) -> None:
        """Tighten the bound for a while."""
        for _ in range(LAST_ROUNDS):
            if self._near() or self.session.runner.stop.is_set():
                break
            self._split()

    def _near(self) -> bool:
        """Whether the bound needs no tightening any more."""
        return self.boxes.least >= self.session.score_so_far * (1 - CLOSE)

    def _split(self) -> None:
        """Split boxes, for a better bound."""
        session = self.session
        self.boxes.split(SPLITS, session.score_so_far)  # boxes that cannot score below are dropped
        session.bound = max(session.bounded(session.bound), min(self.boxes.least, session.score_so_far))

    def _first_machines(self) -> list[Machine]:
        """Return machines to begin with: the roomiest of those whose bounds are near the least.

        What small buffers cost, bounds hardly tell. Where nothing but the power is limited, those with the least room
        instead: it keeps mappings from being quicker than the power allows. So does the smallest array, which is slow.
        """
        if self.problem.space.alone:
            return [dict(self.problem.smallest)]
        boxes = self.boxes
        first = np.argsort(boxes.bound, kind="stable")[:128]
        reached = reaching(self.problem, boxes.low[first], boxes.high[first])
        alone = {limit.what for limit in self.problem.limits} == {"power"}
        places = np.unique(np.concatenate([reached, boxes.low[first][:alone * len(first)]]), axis=0)
        bounds, values = bounds_at(self.problem, places)[0], values_at(self.problem, places)
        roomy = np.log(np.column_stack(list(values.values()))).sum(axis=1)
        room = -roomy if alone else roomy
        chosen = dict.fromkeys(int(np.where(bounds <= bounds.min() * near, room, -np.inf).argmax()) for near in NEAR)
        found: list[Machine] = [_row(values, at) for at in chosen]
        slow = {key: self.problem.smallest[key] if key[1] in ("x", "y", "instances") else value
                for key, value in found[0].items()}
        return [*found, slow] if alone else found

    def _begin(self, machines: list[Machine]) -> None:
        """Pool the mappings to begin from, as they fit some machines and the roomiest; add the one that they need."""
        session, problem = self.session, self.problem
        if not session.known:
            return
        most = int(min(session.left / (2 * len(problem.layers) * (len(machines) + 1)), MOST_STARTS))
        ranges = problem.space.ranges
        roomy = {**machines[0], **{key: ranges[key].high for key in self.pooling.needed}}
        needing: list[Nests] = []
        for machine in (*machines, roomy):
            made, prices, found = problem.machine(machine), self.pooling.prices(machine), dict[int, MappingPool]()
            hardware = HardwareBatch(base=made)
            for layer, operator in enumerate(problem.layers):
                nests = problem.begun(layer, made, session.known.get(operator.name, ()))[:most]
                session.spent += len(nests)
                if nests:
                    found[layer] = self.pooling.pool(layer, Nests.joined(*nests), hardware, prices)
                    needing += nests[:1] if machine is roomy else []
            if found:
                self._pool(found, machine)
        if self.pools:
            if len(needing) == len(problem.layers):
                machines.append({**machines[0], **{key: float(row[0]) for key, row in problem.needed(needing).items()}})
            self._move(machines)
            if session.best is not None:
                machines[:] = self._targets()

    def _lead(self, machine: Machine) -> None:
        """Look which kept sets promise most on a machine, where energy counts: bounds on latency tell few apart."""
        if self.problem.priced:
            made = self.problem.machine(machine)
            self.leading = [[*dict.fromkeys((*self.problem.leading(layer, made), *known))]
                            for layer, known in enumerate(self.leading)]

    @property
    def worths(self) -> tuple[Worth, ...]:
        """What cycles and picojoules are worth in the objective, near the best so far."""
        sums, best = self.problem.sums, self.session.nearest
        limited = self.problem.budget.most("power") < np.inf
        if not limited and sums in ("latency", "energy"):
            return ((1.0, 0.0),) if sums == "latency" else ((0.0, 1.0),)
        rate = 1.0 if best is None else best.figures.energy_pj / best.figures.latency_cycles
        return tuple((rate * factor, 1.0) for factor in (1.0, 0.3, 0.6, 1.7, 3.0))

    def _breed(self, machines: Sequence[Machine]) -> None:
        """Breed children on some machines, and pool them."""
        session = self.session
        spare = session.left - len(self.problem.layers)  # for the machine that children may be best on
        allowed = int(min(self.children, max(spare, 0) // len(machines)))
        if not allowed:  # what is left does not go round
            session.spent += int(max(session.left, 0))
            return
        counts = np.floor(self.shares * allowed).astype(np.int64)
        counts[np.argsort(-self.shares, kind="stable")[:allowed - int(counts.sum())]] += 1
        worths, jobs = self.worths, []
        for place, machine in enumerate(machines):
            worth = worths[int(self.rng.integers(len(worths)))] if place else worths[0]
            wanted = self.breeder.wanted(self.pools, counts.tolist(), machine, worth, self.rng, self.leading)
            jobs.append(self.breeder.job(wanted, machine, worth, (session.seed, self.round, place),
                                         kept=session.runner.keeper is not None))
        self.round += 1
        for machine, value in zip(machines, session.runner.part(jobs), strict=True):
            if value is not None:
                session.spent += int(value["samples"])
                self._pool(children_of(value), machine)

    def _pool(self, found: Mapping[int, MappingPool], machine: Machine) -> None:
        """Put children into the pools."""
        prices = self.pooling.prices(machine)
        if not self.pools:
            empty = next(iter(found.values()))
            self.pools = [found.get(layer, empty).take(slice(0)) for layer in range(len(self.problem.layers))]
        for layer, pool in found.items():
            made = self.pools[layer].joined(pool).unbeaten(prices, len(self.pools[layer]))
            if len(made) > MOST:
                cycle, picojoule = self.worths[0]
                made = made.least(cycle * made.latency + picojoule * made.energy(prices)[:, 0], MOST)
            self.pools[layer] = made

    def _move(self, machines: Sequence[Machine]) -> None:
        """Look machines up in the pools, and move on to the best as long as there is a better one."""
        before = self.session.best
        centres = [dict(one) for one in machines] if before is None else [dict(before.chosen)]
        for _ in range(MOVES):
            parts = [self._around(centre) for centre in centres]
            around = {key: np.concatenate([part[key] for part in parts]) for key in self.problem.space.ranges}
            chosen, merits = self.pooling.look_up(self.pools, around, self.worths)
            order = np.argsort(merits, kind="stable")
            self.around, self.order = around, order
            best, known = int(order[0]), self.session.best
            machine, merit = _row(around, best), float(merits[best])
            so_far = min(np.inf if known is None else known.score, self.offered.get(tuple(machine.values()), np.inf))
            if not merit < so_far * (1 - 1e-9) or self.session.left < len(self.pools):
                break
            self.offered[tuple(machine.values())] = merit
            self._offer(machine, chosen[:, best])
            centres = [machine]
            if self.session.over or self.problem.space.alone:
                break
        self.stale = 0 if self.session.best is not before else self.stale + 1

    def _offer(self, machine: Machine, chosen: NDArray[np.intp]) -> None:
        """Cost a machine with mappings ``(l)`` as the model does, and take note of it; each mapping is a sample."""
        session, fronts = self.session, list[LayerFront | None]()
        hardware = HardwareBatch(base=self.problem.machine(machine))
        for layer, pool in enumerate(self.pools):
            rows = chosen[[layer]]
            if self.problem.spreads and len(pool):
                rows = np.flatnonzero(self.pooling.fits(pool, machine)[:, 0])
                rows = rows[first_of_front(np.column_stack([
                    pool.latency[rows], pool.energy(self.pooling.prices(machine))[rows, 0]]))]
            fronts.append(self.pooling.front(layer, pool, hardware, rows) if len(pool) and len(rows) else None)
        session.spent += sum(1 for one in fronts if one is not None)
        session.offer(Candidate.of(self.problem, machine, fronts))

    def _around(self, centre: Machine) -> dict[Number, Floats]:
        """Return machines around one, itself among them.

        One number is changed, to what mappings need or a little, and another is as large as then fits.
        """
        problem, ranges = self.problem, self.problem.space.ranges
        own = np.array([one.place(centre[key]) for key, one in ranges.items()], dtype=np.int64)
        rows = [own[None]]
        for at, key in enumerate(ranges):
            wanted = self._values(key, centre[key])
            changed = np.tile(own, (len(wanted), 1))
            changed[:, at] = wanted
            rows.append(changed)
        rows += [part for factor in FACTORS for part in self._scaled(centre, factor)]
        changed = np.unique(np.concatenate(rows), axis=0)
        changed = np.maximum(changed, self.low)
        return values_at(problem, np.unique(self.within_reach(changed, changed), axis=0))

    def within_reach(self, places: Places, others: Places) -> Places:
        """Return the machines within limits, and others with each number in turn as large as these allow.

        Of the others those that are within limits with that number at its least. Kept by machine: most are neighbours
        of a best one that stays the same for many rounds.
        """
        known, both = self.within, [[row.tobytes() for row in part] for part in (places, others)]
        new = {key: row for part, rows in zip(both, (places, others), strict=True)
               for key, row in zip(part, rows, strict=True) if key not in known}
        if new:
            known.update(zip(new, self._reached(np.array([*new.values()])), strict=True))
        return np.concatenate([places[[known[key][0] for key in both[0]]], *(known[key][1] for key in both[1])])

    def _reached(self, places: Places) -> list[tuple[bool, Places]]:
        """Return of each machine whether it is within limits, and those with one number as large as these allow."""
        at = np.repeat(np.arange(len(self.low)), len(places))
        least, every = np.tile(places, (len(self.low), 1)), np.arange(len(at))
        least[every, at] = self.low[at]
        found = taken(self.problem, np.concatenate([places, least]))
        held, below = found[len(places):] <= 1, found[len(places):]
        most = np.array([len(one) - 1 for one in self.problem.space.ranges.values()])
        made = grown(self.problem, least[held], most[at[held]], at[held], below[held])
        whose = (every % len(places))[held]
        return [(bool(found[place] <= 1), made[whose == place]) for place in range(len(places))]

    def _values(self, key: Number, value: float) -> NDArray[np.int64]:
        """Return places of a number near a value: what mappings need there, and a little more or less."""
        one = self.problem.space.ranges[key]
        near = [value * factor for step in FACTORS for factor in (step, 1 / step)]
        for at, name in enumerate(self.pooling.needed):
            if name == key and key[1].startswith("capacity"):
                needs = np.unique(np.maximum(np.concatenate([pool.needs[:, at] for pool in self.pools]), one.low))
                nearest = np.argsort(np.abs(np.log(needs / value)), kind="stable")[:4 * VALUES]
                near += needs[self.rng.permutation(nearest)[:VALUES]].tolist()
        places = one.places(np.array(near) * (1 + 1e-12)).tolist()
        if not key[1].startswith("capacity"):
            places += (one.place(value) + np.arange(-NEAREST, NEAREST + 1)).tolist()
        return np.unique(np.clip(places, 0, len(one) - 1))

    def _targets(self) -> list[Machine]:
        """Return what to breed for: the best machine, as roomy as may be, and a neighbour that was not bred for yet."""
        best = _row(self.around, int(self.order[0]))
        if self.problem.space.alone:
            if self.round % BETWEEN == 3:
                self._fill(best, STEPS[0])
            return [best, best]
        for _ in range(len(STEPS)):
            if not self.queue:
                self._fill(best, STEPS[self.factor])
                self.factor = (self.factor + 1) % len(STEPS)
        while self.queue:
            bound, machine = self.queue.pop(0)
            if bound < self.session.score_so_far:
                return [best, machine]
        return [best, best]

    def _fill(self, best: Machine, factor: float) -> None:
        """Queue the machines with one number more or less by a factor or the least, and another as large as then fits.

        Those come first whose bound is least. Bounds are kept by machine. Children are shared among layers by how far
        each is from its bound.
        """
        ranges = self.problem.space.ranges
        own = np.array([one.place(best[key]) for key, one in ranges.items()], dtype=np.int64)
        changed = np.tile(own, (3 * len(own), 1))
        for at, (key, one) in enumerate(ranges.items()):
            changed[3 * at:3 * at + 3, at] = [one.place(best[key] * factor), one.place(best[key] / factor), 0]
        changed = np.maximum(changed, self.low)
        changed = changed[(changed != own).any(axis=1)]
        near = np.concatenate([changed[:len(changed) * self.sparing], *self._scaled(best, factor)])
        places = np.unique(self.within_reach(near, changed), axis=0)
        places = np.concatenate([own[None], places[(places != own).any(axis=1)]])
        keys, values, known = [row.tobytes() for row in places], values_at(self.problem, places), self.bounded
        new = [at for at, key in enumerate(keys) if key not in known]
        if new:
            found, layers = bounds_at(self.problem, places[new])
            known.update((keys[at], (float(found[row]), layers.latency_cycles[:, row], layers.energy_pj[:, row]))
                         for row, at in enumerate(new))
        bounds = [known[key][0] for key in keys]
        self.queue = [(bounds[at], _row(values, at)) for at in np.argsort(bounds, kind="stable").tolist() if at]
        self._share(*known[keys[0]][1:])

    def _scaled(self, best: Machine, factor: float) -> list[Places]:
        """Return the machines with all numbers more or less by a factor, where it pays to take less than is allowed."""
        ranges = self.problem.space.ranges
        return [np.array([[max(one.place(best[key] * by), one.place(self.problem.smallest[key]))
                           for key, one in ranges.items()]]) for by in (factor, 1 / factor)] * self.sparing

    def _share(self, latency: Floats, energy: Floats) -> None:
        """Share children among layers by how far each is from its bounds ``(l)`` in the best design."""
        best = self.session.nearest
        if best is None or best.fronts is None:
            return
        self._lead(best.chosen)
        cycle, picojoule = self.worths[0]
        own = np.array([cycle * front.latency[at] + picojoule * front.energy[at]
                        for front, at in zip(best.fronts, best.choice, strict=True)])
        left = self.problem.weights * np.maximum(own - cycle * latency - picojoule * energy, 0.002 * own)
        self.shares = 0.8 * left / left.sum() + 0.2 / len(left)


def _row(values: Mapping[Number, Floats], at: int) -> dict[Number, float]:
    return {key: float(column[at]) for key, column in values.items()}
