"""Runs a study: computes its cells on all cores, keeps each as it ends, and writes what was found."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tilewright.base import InputError, csv_text, write_whole
from tilewright.jobs import Observer, Runner
from tilewright.reproduce.study import REPRODUCTIONS, Findings, Setting, Study, Table
from tilewright.store import results_in

DEFAULT_FOLDER = Path("out/reproduce")


@dataclass(frozen=True)
class StudyOutcome:
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
    on: str = "threads",
) -> StudyOutcome:
    """Run a reproduction and write its tables (CSV), figures and judgements (JSON) to ``out/<name>/``.

    Cells computed by an earlier run, finished or not, are taken from what is kept there (see `results_in`), unless
    the sources of the model have changed since.

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
    workers, on
        As of `tilewright.jobs.Runner`.

    Raises
    ------
    InputError
        If a name is unknown, the number of seeds is not positive, or the folder cannot be written.
    """
    study = study if isinstance(study, Study) else REPRODUCTIONS.get(study)
    if not isinstance(setting, Setting):
        if setting not in ("quick", "full"):
            raise InputError("setting", "must be quick or full", setting)
        setting = study.quick if setting == "quick" else study.full
    if seeds is not None:
        if seeds < 1:
            raise InputError("--seeds", "must be a positive integer", seeds)
        setting = replace(setting, seeds=seeds)
    folder = Path(out) / study.name
    began = time.perf_counter()
    owner = REPRODUCTIONS.get(study.cells) if study.cells else study
    with results_in(Path(out) / owner.name, owner.name, owner.version, fresh=fresh,
                    keep_outdated=keep_outdated) as kept:
        folder.mkdir(parents=True, exist_ok=True)
        runner = Runner(study.name, workers=workers, on=on, keeper=kept, observer=observer,
                        folder=Path(out) / owner.name)
        findings = study.run(setting, runner)
        outcome = StudyOutcome(
            study, setting, findings, time.perf_counter() - began, runner.computed, len(kept.taken),
            len(kept.outdated), datetime.now(UTC).isoformat(timespec="seconds"), folder,
            {"tilewright": version("tilewright"), "sources": kept.sources, "study": str(study.version)})
        write_outcome(outcome)
    return outcome


def write_outcome(outcome: StudyOutcome) -> None:
    """Write the CSV file of every table and one of the claims, and everything as JSON."""
    judged = [(each.verdict, each.claim.text, each.claim.published, each.ours, each.effect, each.claim.judged,
               each.because)
              for each in outcome.findings.judgements]
    columns = ("Verdict", "Claim", "Published", "Ours", "Of the effect", "Judged", "Because")
    claims = Table("claims", "Claims", columns, tuple(judged))
    for table in (*outcome.findings.tables, claims):
        write_whole(outcome.file(f"{table.name}.csv"), csv_text([table.columns, *table.rows]))
    write_whole(outcome.file("json"), json.dumps(outcome.plain, indent=1) + "\n")
