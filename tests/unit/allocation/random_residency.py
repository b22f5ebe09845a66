"""Random problems, and the best plan of small ones by trying everything; shares nothing with the solvers."""

from functools import cache

import numpy as np

from tilewright.allocation import Bus, OperationStep, Pad, ResidencyProblem, ResidentTensor
from tilewright.base import InputError


def random_problem(rng, most_steps=6, across=None, roles=False):
    """Draw a problem: operations that read up to three tensors and write one, at times in place."""
    while True:
        tensors, steps = [ResidentTensor("x", _size(rng), outside=True)], []
        for at in range(int(rng.integers(2, most_steps + 1))):
            known = [place for place, one in enumerate(tensors) if not one.weights]
            reads = rng.choice(known[-4:], size=min(len(known[-4:]), int(rng.integers(1, 3))), replace=False).tolist()
            if rng.random() < 0.5:
                tensors.append(ResidentTensor(f"w{at}", _size(rng), weights=True, outside=True))
                reads.append(len(tensors) - 1)
            elif any(one.weights for one in tensors) and rng.random() < 0.3:
                reads.append(next(place for place, one in enumerate(tensors) if one.weights))
            if rng.random() < 0.15 and not tensors[reads[0]].outside:
                writes = (reads[0],)
            else:
                tensors.append(ResidentTensor(f"t{at}", _size(rng)))
                writes = (len(tensors) - 1,)
            steps.append(OperationStep(f"op{at}", tuple(dict.fromkeys(reads)), writes, int(rng.integers(1, 30)), 1.5))
        read = {one for step in steps for one in step.reads}
        tensors = [ResidentTensor(one.name, one.size_bytes, one.weights, one.outside,
                              not one.outside and (place not in read or rng.random() < 0.1))
                   for place, one in enumerate(tensors)]
        word = int(rng.choice([1, 4]))
        names = [("inputs",), ("weights",), ("outputs",)] if roles == "apart" else [
            ("inputs", "outputs"), ("weights",), ("inputs", "outputs")] if roles else [
            ("inputs", "weights", "outputs")] * 3
        same = int(rng.integers(12, 40)) if rng.random() < 0.5 else None
        pads = tuple(Pad(f"pad{at}", same or int(rng.integers(12, 60)), names[at], word, Bus(4.0, 2.0), across)
                     for at in range(3 if roles else int(rng.integers(1, 4))))
        try:
            return ResidencyProblem("random", tuple(steps), tuple(tensors), pads)
        except InputError:
            continue


def _size(rng):
    return int(rng.integers(1, 17))


def least_bytes(problem):  # noqa: C901
    """Return the least bytes from and to the main memory, by trying all that can be where in each step."""
    last = {one: max(at for at, step in enumerate(problem.steps) if one in step.touches)
            for step in problem.steps for one in step.touches}
    size = [one.size_bytes for one in problem.tensors]
    final = {one: max(at for at, step in enumerate(problem.steps) if one in step.writes)
             for step in problem.steps for one in step.writes}

    def places(at, here, touched):
        order = sorted({*here, *touched})

        def choose(rest, left, chosen):
            if not rest:
                yield dict(chosen)
                return
            one, *others = rest
            for pad, spec in enumerate(problem.pads):
                roles = ({"weights"} if problem.tensors[one].weights else {"inputs"} if one in problem.steps[at].reads
                         else {"outputs"}) if one in touched else (
                             {"weights"} if problem.tensors[one].weights else {"inputs", "outputs"})
                room = -(-size[one] // spec.word_bytes) * spec.word_bytes
                if roles & set(spec.roles) and room <= left[pad]:
                    fewer = [*left[:pad], left[pad] - room, *left[pad + 1:]]
                    yield from choose(others, fewer, {**chosen, one: pad})
            if one not in touched:
                yield from choose(others, left, chosen)

        yield from choose(order, [pad.capacity_bytes for pad in problem.pads], {})

    @cache
    def best(at, state):
        if at == len(problem.steps):
            return 0
        here = {one: (pad, dirty) for one, pad, dirty in state}
        step, found = problem.steps[at], float("inf")
        for chosen in places(at, here, step.touches):
            cost, dirty = 0, {}
            for one in {*here, *chosen}:
                pad, was = here.get(one, (None, False))
                stays = one in chosen and (chosen[one] == pad or (pad is not None and problem.moving))
                if not stays:
                    new = pad is None and one in step.writes and one not in step.reads
                    cost += (0 if new or one not in chosen else size[one]) + (size[one] if was else 0)
                if one in chosen:
                    dirty[one] = was and stays
            for one in step.writes:
                dirty[one] = True
                if problem.tensors[one].leaves and final[one] == at:
                    cost, dirty[one] = cost + size[one], False
            left = tuple(sorted((one, chosen[one], dirty[one]) for one in chosen if last[one] > at))
            found = min(found, cost + best(at + 1, left))
        return found

    return best(0, ())


def drawn(seed, count, **how):
    rng = np.random.default_rng(seed)
    return [random_problem(rng, **how) for _ in range(count)]
