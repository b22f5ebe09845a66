"""Runs a study: computes its cells on all cores, keeps each as it ends, and writes what was found."""

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tilewright.base import InputError, csv_text, write_whole
from tilewright.reproduce.cells import CellFile
from tilewright.reproduce.study import REPRODUCTIONS, Findings, Setting, Study, Table
from tilewright.store import model_sources

DEFAULT_FOLDER = Path("out/reproduce")


@dataclass(frozen=True)
class Cell:
    """One part of a study: computed once, then kept.

    Parameters
    ----------
    key
        All that decides the value, in plain data (layer, machine, tiling, mapper, samples, seed ...).
    compute
        Returns the value, plain data too. It may run on any thread; where it searches, it passes on ``watch.stop``.
    samples
        Mappings it scores, for the rate that is shown.
    """

    key: Mapping[str, object]
    compute: Callable[[], dict[str, Any]]
    samples: int = 0


@dataclass(frozen=True)
class Standing:
    """Where a study stands: cells done and in all (of those known so far), samples scored, seconds, seconds left."""

    study: str
    done: int
    total: int
    samples: int
    seconds: float
    eta_seconds: float | None


Observer = Callable[[Standing], None]


class Watch:
    """What goes on beside a study: where cells are kept, who is shown them, and what may stop it.

    Parameters
    ----------
    workers
        Cells computed side by side; by default one for each core this process may use.
    """

    def __init__(self, study: str, cells: CellFile, observer: Observer | None = None,
                 workers: int | None = None) -> None:
        self.study, self.cells, self.observer = study, cells, observer
        self.workers = workers or len(os.sched_getaffinity(0))
        self.stop = threading.Event()
        """Set when the run ends early: searches end after their present batch, and their cells are not kept."""
        self._writing = threading.Lock()
        self.computed = self.samples = 0
        self.started = time.perf_counter()

    def run(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """Return the values of cells, in order; those kept are not computed again.

        An error or Ctrl-C ends the run; what had ended is kept.
        """
        values = [self.cells.get(cell.key) for cell in cells]
        missing = [index for index, value in enumerate(values) if value is None]
        self._show(len(cells) - len(missing), len(cells), time.perf_counter(), 0)
        for index, value in self._compute(cells, missing):
            values[index] = value
        return [value for value in values if value is not None]

    def _compute(self, cells: Sequence[Cell], missing: list[int]) -> list[tuple[int, dict[str, Any]]]:
        began, found = time.perf_counter(), []
        before = len(cells) - len(missing)
        with ThreadPoolExecutor(max(1, min(self.workers, len(missing)))) as pool:
            futures = {pool.submit(self._one, cells[index]): index for index in missing}
            try:
                for future in as_completed(futures):
                    found.append((futures[future], future.result()))
                    self.computed += 1
                    self.samples += cells[futures[future]].samples
                    self._show(before + len(found), len(cells), began, len(found))
            except BaseException:
                self.stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return found

    def _one(self, cell: Cell) -> dict[str, Any]:
        value = cell.compute()
        if self.stop.is_set():
            raise InputError("study", "was stopped")
        value = dict(json.loads(json.dumps(value)))  # the same, fresh or read from the file
        with self._writing:
            self.cells.put(cell.key, value)
        return value

    def _show(self, done: int, total: int, began: float, fresh: int) -> None:
        if self.observer is None:
            return
        now = time.perf_counter()
        eta = (now - began) * (total - done) / fresh if fresh else 0.0 if done == total else None
        self.observer(Standing(self.study, done, total, self.samples, now - self.started, eta))


@dataclass(frozen=True)
class Outcome:
    """A study that was run: what it is, what it spent, what it found, and where that was written."""

    study: Study
    setting: Setting
    findings: Findings
    seconds: float
    computed_cells: int
    reused_cells: int
    older_cells: int
    when: str
    folder: Path
    versions: Mapping[str, str] = field(default_factory=dict)

    def file(self, ending: str) -> Path:
        """Return the path of one of this outcome's files: ``<setting>.<ending>`` in the study's folder."""
        return self.folder / f"{self.setting.name}.{ending}"

    @property
    def plain(self) -> dict[str, Any]:
        """All of it as plain data."""
        study = self.study
        return {
            "reproduction": study.name, "title": study.title, "source": study.source, "when": self.when,
            "setting": {"name": self.setting.name, "seeds": self.setting.seeds, **self.setting.values},
            "seconds": self.seconds, "cells": {"computed": self.computed_cells, "reused": self.reused_cells,
                                               "of_other_sources": self.older_cells},
            "versions": dict(self.versions), **asdict(self.findings),
        }


def run_study(  # noqa: PLR0913  (keywords of the one entry point)
    study: str | Study,
    setting: str | Setting = "quick",
    *,
    seeds: int | None = None,
    out: str | Path = DEFAULT_FOLDER,
    fresh: bool = False,
    keep_outdated: bool = False,
    observer: Observer | None = None,
    workers: int | None = None,
) -> Outcome:
    """Run a reproduction and write its tables (CSV), figures and judgements (JSON) to ``out/<name>/``.

    Cells computed by an earlier run, finished or not, are taken from ``cells.jsonl`` there, unless the sources of the
    model have changed since.

    Parameters
    ----------
    study, setting
        Names, or records of one's own.
    seeds
        Repetitions, in place of the setting's.
    fresh
        Forget all cells computed before.
    keep_outdated
        Take over what other sources of the model computed too; the outcome tells how many cells that are.

    Raises
    ------
    InputError
        If a name is unknown, the number of seeds is not positive, or the folder cannot be written.
    """
    study = study if isinstance(study, Study) else REPRODUCTIONS.get(study)
    setting = setting if isinstance(setting, Setting) else _setting(study, setting)
    if seeds is not None:
        if seeds < 1:
            raise InputError("--seeds", "must be a positive integer", seeds)
        setting = replace(setting, seeds=seeds)
    folder = Path(out) / study.name
    began = time.perf_counter()
    owner = REPRODUCTIONS.get(study.cells) if study.cells else study
    with CellFile(Path(out) / owner.name, owner.name, owner.version, fresh=fresh,
                  keep_outdated=keep_outdated) as cells:
        folder.mkdir(parents=True, exist_ok=True)
        watch = Watch(study.name, cells, observer, workers)
        findings = study.run(setting, watch)
        outcome = Outcome(
            study, setting, findings, time.perf_counter() - began, watch.computed, len(cells.taken),
            len(cells.outdated), datetime.now(UTC).isoformat(timespec="seconds"), folder,
            {"tilewright": version("tilewright"), "sources": model_sources(), "study": str(study.version)})
        write_outcome(outcome)
    return outcome


def _setting(study: Study, name: str) -> Setting:
    found = {"quick": study.quick, "full": study.full}.get(name)
    if found is None:
        raise InputError("setting", "must be quick or full", name)
    return found


def write_outcome(outcome: Outcome) -> None:
    """Write the CSV file of every table and one of the claims, and everything as JSON."""
    judged = [(each.verdict, each.claim.text, each.claim.published, each.ours, each.effect, each.claim.judged,
               each.because)
              for each in outcome.findings.judgements]
    columns = ("Verdict", "Claim", "Published", "Ours", "Of the effect", "Judged", "Because")
    claims = Table("claims", "Claims", columns, tuple(judged))
    for table in (*outcome.findings.tables, claims):
        write_whole(outcome.file(f"{table.name}.csv"), csv_text([table.columns, *table.rows]))
    write_whole(outcome.file("json"), json.dumps(outcome.plain, indent=1) + "\n")
