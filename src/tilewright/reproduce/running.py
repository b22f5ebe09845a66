"""Runs a study: computes its cells on all cores, keeps each as it ends, writes what was found, and shows it."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tilewright.base import InputError, csv_text, write_whole
from tilewright.jobs import Observer, Runner
from tilewright.report import print_tables, significant, write_plots
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


_COLOURS = {"holds": "green", "holds in direction": "yellow", "does not hold": "red", "impossible as published": "red",
            "not judged": "dim"}


def print_reproduction(outcome: StudyOutcome, console: Console | None = None) -> None:
    """Print the paper's table beside ours, and the verdict on every claim."""
    console = console or Console(highlight=False)
    study, found = outcome.study, outcome.findings
    console.print(Text(f"{study.name}: {study.title}", style="bold"), soft_wrap=True)
    console.print(f"{study.source} · {outcome.setting}", style="dim", markup=False, soft_wrap=True)
    print_tables(found.tables, numeric, console)
    console.print("\nClaims", style="bold")
    for judged in found.judgements:
        console.print(Text.assemble((judged.verdict, f"bold {_COLOURS[judged.verdict]}"), f": {judged.claim.text}"),
                      soft_wrap=True)
        part = f" ({judged.effect} of the effect)" if judged.effect else ""
        console.print(f"  published {judged.claim.published}; ours {judged.ours}{part}"
                      f"{f'; {judged.because}' if judged.because else ''}", markup=False, soft_wrap=True)
    for note in found.notes:
        console.print(f"\n{note}", markup=False, soft_wrap=True)
    console.print(f"\n{outcome.computed_cells} cells computed, {outcome.reused_cells} taken over, "
                  f"{significant(outcome.seconds)} s.", style="dim", markup=False, soft_wrap=True)
    if outcome.older_cells:
        console.print(f"{outcome.older_cells} cells were computed by other sources than the present ones: without "
                      "--keep-outdated they are computed anew.", style="yellow", markup=False, soft_wrap=True)


def write_reproduction(outcome: StudyOutcome) -> Path:
    """Write the page of a reproduction beside its data, and return its path."""
    return write_plots("reproduction.html.j2", outcome.file("html"), outcome.findings.plots, outcome=outcome,
                       numeric=numeric)


def numeric(table: Table) -> tuple[int, ...]:
    """Return the columns of a table that hold numbers."""
    columns = range(len(table.columns))
    return tuple(index for index in columns
                 if any(row[index] is not None for row in table.rows)
                 and all(row[index] is None or not isinstance(row[index], str) for row in table.rows))
