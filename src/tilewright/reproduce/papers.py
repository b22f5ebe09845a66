"""Writes what studies found into a page of the documentation: one table for each, between two marks."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tilewright.base import InputError, write_whole
from tilewright.reproduce.claims import effect
from tilewright.reproduce.study import REPRODUCTIONS, Study

END = "<!-- end of study -->"
PREFERRED = ("full", "part", "quick")
"""Settings whose outcomes are kept: the first that there is becomes the table, others are told where verdicts turn."""

Kept = Mapping[str, Any]


def mark(name: str) -> str:
    """Return the line before the table of a study."""
    return f"<!-- study {name} -->"


def write_page(page: Path, folder: Path) -> list[str]:
    """Put the outcomes kept in a folder into the marked places of a page; return the names of the studies written.

    Raises an `InputError` if the page cannot be read, or nothing that it has a place for was kept.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError("--write-page", "must be a page that can be read", str(page), error.strerror or "") from None
    written = []
    for name in REPRODUCTIONS:
        found = outcomes(folder / name)
        place = re.compile(re.escape(mark(name)) + "\n.*?" + re.escape(END), re.DOTALL)
        old = place.search(text)
        if found and old:
            table = table_of(REPRODUCTIONS.get(name), found)
            text = f"{text[:old.start()]}{mark(name)}\n{table}\n{END}{text[old.end():]}"
            written.append(name)
    if not written:
        raise InputError("--out", "must hold outcomes of studies that the page has places for", str(folder))
    write_whole(page, text)
    return written


def outcomes(folder: Path) -> dict[str, Kept]:
    """Return the outcomes kept of one study by setting, the one to be shown first."""
    return {setting: json.loads(file.read_text(encoding="utf-8")) for setting in PREFERRED
            if (file := folder / f"{setting}.json").exists()}


def table_of(study: Study, found: Mapping[str, Kept]) -> str:
    """Return the table of a study: when and on how much it was measured in its head, then a row for each claim."""
    (_, shown), *others = found.items()
    rows = [f"| {head(study, shown)} | published | ours | of the effect | verdict |", "|---|---|---|---|---|"]
    for place, judged in enumerate(shown["judgements"]):
        turned = [f"{name}: {each['verdict']}" for name, other in others
                  for each in other["judgements"][place:place + 1]
                  if each["verdict"] not in (judged["verdict"], "not judged", "")]
        verdict = judged["verdict"] + (f" ({'; '.join(turned)})" if turned else "")
        told = "; ".join(part for part in (judged["ours"], judged["because"]) if part)
        rows.append("| " + " | ".join(part.replace("|", "/").replace("\n", " ") for part in (
            judged["claim"]["text"], judged["claim"]["published"], told, effect(judged["reached"]), verdict)) + " |")
    return "\n".join(rows)


def head(study: Study, found: Kept) -> str:
    """Return name, date, seeds, samples and share of cases of an outcome."""
    when = datetime.fromisoformat(found["when"])
    setting = dict(found["setting"])
    name, seeds = setting.pop("name"), setting.pop("seeds")
    parts = [f"{when.day} {when:%B %Y}", name, f"{seeds} seed{'s' if seeds > 1 else ''}"]
    every = setting.pop("every", 1)
    if "every" in study.full.values:
        parts.append("all layers" if every == 1 else f"one layer in {every}")
    for key, value in setting.items():
        whole = study.full.values.get(key)
        if isinstance(value, list):
            some = "" if not isinstance(whole, tuple) or len(whole) == len(value) else f" of {len(whole)}"
            parts.append(f"{key} {' '.join(map(str, value))}" if all(isinstance(each, str) for each in value)
                         else f"{len(value)}{some} {key}")
        elif isinstance(value, (int, float)):
            parts.append(f"{key} {value:,}")
    outdated = found["cells"]["of_other_sources"]
    return f"**`{study.name}`** ({', '.join(parts)}{f'; {outdated} cells of an earlier model' if outdated else ''})"
