"""The one runner: does jobs side by side, keeps their values as they come, shows how far it is, and can be stopped.

A clock keeps the time that the jobs of a run take together.
"""

import json
import math
import os
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from inspect import isgenerator
from pathlib import Path
from typing import Any, TypeVar, cast

from tilewright.base import replace_file
from tilewright.base import working_seconds as now
from tilewright.jobs.executors import LOOK_SECONDS, RETRIES, Call, Executor, Failed, Stopped, executor
from tilewright.jobs.job import (
    Job,
    Keeper,
    Observer,
    RunnerProgress,
    Steps,
    Stop,
    interruptible,
    present_stop,
    stopped_by,
)

SECONDS = "seconds.txt"
"""File of a run's folder with the time that it has taken."""
KEEP_SECONDS = 10.0
T = TypeVar("T")
TURN_SECONDS = 0.1
MOST_OPEN = 100
"""Jobs that are set up and have not ended, where time is not limited: a search takes some megabytes."""
UNDER_WAY = object()
"""What a turn gives of work that has not ended."""


class Clock:
    """The time of a run in all its legs, but what is compiled meanwhile: its steps, and before them its set-up.

    Parameters
    ----------
    folder
        Where the seconds are kept from leg to leg.
    span
        Seconds that there are, None without a limit.
    """

    def __init__(self, folder: Path | None = None, span: float | None = None) -> None:
        self.now = now
        self.folder, self.span = folder, span
        self.earlier = 0.0 if folder is None else load_seconds(folder)
        self.begun = self.working = self.latest = self.saved = now()
        self.started = False

    def start(self) -> None:
        """Take note that the first step begins: all jobs that wait for no other are set up."""
        if not self.started:
            self.started, self.working = True, self.now()

    def look(self) -> None:
        """Take note that a step has ended; what comes after the last one is no work."""
        self.latest = self.now()
        if self.latest - self.saved >= KEEP_SECONDS:
            self.keep()

    @property
    def setup_seconds(self) -> float:
        """Seconds before the first step."""
        return self.working - self.begun

    @property
    def seconds(self) -> float:
        """Seconds from then to the last step, and those of earlier legs."""
        return self.earlier + max(0.0, self.latest - self.working)

    def left(self) -> float:
        """Return the seconds left; the set-up of this leg has taken its part of them, half of all at most."""
        if self.span is None:
            return math.inf
        now = self.now()
        working = self.working if self.started else now
        return self.span - self.earlier - min(working - self.begun, self.span / 2) - (now - working)

    def keep(self) -> None:
        """Write down the seconds of all legs, where that can be written."""
        self.saved = self.now()
        if self.folder is not None:
            with suppress(OSError):
                replace_file(self.folder / SECONDS, f"{self.seconds:.3f}\n".encode())


def load_seconds(folder: Path) -> float:
    """Return the time that a run has taken in all its legs, 0 where none is kept."""
    with suppress(OSError, ValueError):
        return max(0.0, float((folder / SECONDS).read_text()))
    return 0.0


class Runner:
    """Runs jobs, one list of them or several after one another.

    Jobs begin in their order. Those whose function makes steps are all set up first, then each makes one step, then
    they go round in turns of `TURN_SECONDS`; where their time is not limited, of very many `MOST_OPEN` do, and the next
    one begins as one ends. In other processes each is done in one go. The first error ends the others, as does Ctrl-C;
    what had ended by then is kept.

    Parameters
    ----------
    name
        What the run is called where its standing is shown.
    workers
        Jobs side by side; by default one for each core this process may use, or what the cluster has.
    on
        ``threads``, ``processes``, ``ray`` or ``ray://HOST:PORT``; values do not depend on it.
    keeper
        Values that are kept there are taken over, others put there.
    stop
        Ends the run when set, by default with the job that it is run for.
    clock
        Counts the time of steps.
    folder
        For files that jobs leave beside what is kept.
    """

    def __init__(self, name: str = "", *, workers: int | None = None, on: str = "threads",  # noqa: PLR0913
                 keeper: Keeper | None = None, observer: Observer | None = None, stop: Stop | None = None,
                 clock: Clock | None = None, folder: Path = Path()) -> None:
        self.name, self.on, self.workers = name, on, workers
        self.keeper, self.observer = keeper, observer
        self.stop = stop or present_stop()
        self.clock, self.folder = clock or Clock(), folder
        self.computed = self.samples = 0
        self.started = time.perf_counter()
        self.resting: list[Executor] = []
        """Threads that are idle; they hold the arrays that models work in, and serve the next list of jobs."""

    @property
    def side_by_side(self) -> int:
        """Jobs that are done side by side on this machine, where there are so many."""
        return self.workers or len(os.sched_getaffinity(0))

    def run(self, jobs: Sequence[Job[T]]) -> list[T]:
        """Return the values of all jobs, in order.

        Raises a `KeyboardInterrupt` if the run was stopped before the end.
        """
        found = self.part(jobs)
        values = [value for value in found if value is not None]
        if len(values) < len(found):
            raise KeyboardInterrupt
        return values

    def part(self, jobs: Sequence[Job[T]]) -> list[T | None]:
        """Return the values of jobs, in order; None of those that were not done as the run was stopped."""
        values, error = self.attempt(jobs)
        if error is not None:
            raise error
        return values

    def attempt(self, jobs: Sequence[Job[T]]) -> tuple[list[T | None], Exception | None]:
        """Return the values of jobs, None of those not done, and the first error, which ended the others."""
        found = _Batch(self, jobs)
        missing = len(jobs) - found.done
        found.show()
        if missing and not self.stop.is_set():
            with interruptible(self.stop):
                found.work(self.resting.pop() if self.resting else executor(self.on, self.workers, missing))
            self.clock.keep()
        return found.values, found.error

    def kept(self, jobs: Sequence[Job[T]]) -> list[T | None]:
        """Return the values of jobs that are kept, None of others."""
        if self.keeper is None:
            return [None] * len(jobs)
        asked = [place for place, job in enumerate(jobs) if job.key is not None]
        values: list[T | None] = [None] * len(jobs)
        for place, value in zip(asked, self.keeper.take([jobs[place].key or {} for place in asked]), strict=True):
            values[place] = value
        return values

    def keep(self, job: Job[T], value: T) -> T:
        """Keep a value, and return it as it will be read."""
        value = value if job.received is None else job.received(value)
        self.computed += 1
        self.samples += job.scored(value)
        if self.keeper is None or job.key is None:
            return value
        read: T = json.loads(json.dumps(value))
        self.keeper.put(job.key, read)
        return read


@dataclass
class _Turn:
    """A job, its steps once it is set up, and for how long it goes on."""

    place: int
    steps: Steps[Any] | None = None
    seconds: float = 0.0

    def take(self, call: Call, clock: Clock, stop: Stop) -> Any:
        """Do the job, or set its steps up, or go on with them; return the value, or that it is `UNDER_WAY`."""
        with stopped_by(stop):
            if self.steps is None:
                made = call()
                if not isgenerator(made):
                    if stop.is_set():
                        raise Stopped
                    return made
                self.steps = cast(Steps[Any], made)
                return self._step()
            clock.start()
            until = clock.now() + self.seconds
            while True:
                value = self._step()
                if value is not UNDER_WAY:
                    return value
                clock.look()
                if clock.now() >= until:
                    self.seconds = TURN_SECONDS
                    return UNDER_WAY

    def _step(self) -> Any:
        assert self.steps is not None
        try:
            next(self.steps)
        except StopIteration as end:
            return end.value
        return UNDER_WAY


class _Batch:
    """Jobs of one list: those that wait for others, that may begin, that are under way, and what has ended."""

    def __init__(self, runner: Runner, jobs: Sequence[Job[Any]]) -> None:
        self.runner, self.jobs = runner, jobs
        self.values: list[Any] = runner.kept(jobs)
        self.error: Exception | None = None
        left = [place for place, value in enumerate(self.values) if value is None]
        self.done, self.fresh, self.losses = len(jobs) - len(left), 0, 0
        needs = {place: {other for other in jobs[place].after if self.values[other] is None} for place in left}
        self.waiting = {place: others for place, others in needs.items() if others}
        self.ready = deque(place for place in left if place not in self.waiting)
        self.open: deque[_Turn] = deque()
        self.running: dict[Future[Any], _Turn] = {}
        self.began = time.perf_counter()

    def work(self, pool: Executor) -> None:
        """Do all that is left; an error that does not come from a job is raised, after what had ended was kept."""
        stop = self.runner.stop
        try:
            while self._fill(pool):
                wait(self.running, None if pool.near else LOOK_SECONDS, FIRST_COMPLETED)
                if stop.is_set():
                    pool.stop()
                for future in [future for future in self.running if future.done()]:
                    if future in self.running:
                        self._settle(pool, future)
        except BaseException:
            stop.set()
            pool.stop()
            pool.close()
            self._rescue()
            raise
        if pool.near:
            self.runner.resting.append(pool)
        else:
            pool.close()

    def show(self) -> None:
        """Tell where the run stands."""
        runner, total = self.runner, len(self.jobs)
        if runner.observer is None:
            return
        now = time.perf_counter()
        eta = (now - self.began) * (total - self.done) / self.fresh if self.fresh else (
            0.0 if self.done == total else None)
        runner.observer(RunnerProgress(runner.name, self.done, total, runner.samples, now - runner.started, eta))

    def _fill(self, pool: Executor) -> bool:
        """Let as many work as can; return whether any do."""
        while len(self.running) < pool.width and (turn := self._next()) is not None:
            call = self._call(turn.place)
            if pool.near:
                call = partial(turn.take, call, self.runner.clock, self.runner.stop)
            try:
                self.running[pool.submit(call)] = turn
            except pool.lost as error:
                self.ready.appendleft(turn.place)
                self._lose(pool, error)
        return bool(self.running)

    def _call(self, place: int) -> Call:
        job = self.jobs[place]
        found = ([self.values[other] for other in job.after],) if job.after else ()
        return partial(job.function, *job.inputs, *found)

    def _next(self) -> _Turn | None:
        """Return what to go on with: the next job that may begin, or steps under way; None where there is nothing."""
        if self.runner.stop.is_set():
            self.waiting.clear()
            self.ready.clear()
        crowded = self.runner.clock.span is None and len(self.open) + len(self.running) >= MOST_OPEN
        while self.ready and not (crowded and self.open):
            place = self.ready.popleft()
            known = self.runner.kept([self.jobs[place]])[0]  # another run may have done it meanwhile
            if known is None:
                return _Turn(place)
            self._end(place, known)
        return self.open.popleft() if self.open else None

    def _settle(self, pool: Executor, future: "Future[Any]") -> None:
        """Take note of what has become of a turn."""
        turn = self.running.pop(future)
        try:
            value = future.result()
            if isinstance(value, Failed):
                raise value.error
        except pool.lost as error:
            self.ready.appendleft(turn.place)
            self._lose(pool, error)
        except Stopped:
            pass
        except Exception as error:
            if pool.near or not self.runner.stop.is_set():  # others were broken off
                self.error = self.error or error
            self.runner.stop.set()
        else:
            if value is UNDER_WAY:
                self.open.append(turn)
                return
            if not pool.near:
                self.runner.clock.look()
            self.losses, self.fresh = 0, self.fresh + 1
            self._end(turn.place, self.runner.keep(self.jobs[turn.place], value))

    def _end(self, place: int, value: Any) -> None:
        """Take a value, and let those begin that waited for it alone."""
        self.values[place] = value
        self.done += 1
        self.waiting.pop(place, None)
        for other, needs in self.waiting.items():
            if place in needs:
                needs.remove(place)
                if not needs:
                    self.ready = deque(sorted([*self.ready, other]))
        self.show()

    def _lose(self, pool: Executor, error: BaseException) -> None:
        """Begin those again whose workers were lost, unless that has come to nothing too often."""
        self.losses += 1
        if self.losses > RETRIES:
            raise RuntimeError(f"Workers were lost {self.losses} times, and no job ended between: {error}") from error
        self.ready.extendleft(turn.place for turn in reversed(self.running.values()))
        self.running.clear()
        pool.renew()

    def _rescue(self) -> None:
        """Keep what had ended of those whose end was not seen."""
        for future, turn in self.running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                value = future.result()
                if value is not UNDER_WAY and turn.steps is None and not isinstance(value, Failed):
                    self.runner.keep(self.jobs[turn.place], value)
