"""Foreign files made ours, and ours made foreign."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.base import InputError
from tilewright.hardware import Accelerator, dump_accelerator
from tilewright.interop import Note, dump_problem, dump_timeloop, load_timeloop, refuse_notes
from tilewright.mapping import Constraints, Mapping, dump_constraints, dump_mapping
from tilewright.workload import Operator


@dataclass(frozen=True)
class Converted:
    """Files by name, and what could not be honoured in full."""

    files: dict[str, str]
    notes: tuple[Note, ...]

    def write(self, folder: str | Path) -> list[Path]:
        """Write the files into a folder, which is made where it is missing; return their paths.

        Raises
        ------
        InputError
            If that cannot be done.
        """
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
            paths = [place / name for name in self.files]
            for path in paths:
                path.write_text(self.files[path.name], encoding="utf-8")
        except OSError as error:
            raise InputError("--out", "must be a folder that can be written", str(folder), str(error)) from None
        return paths


def from_timeloop(paths: Sequence[str | Path], *, strict: bool = False) -> Converted:
    """Return Timeloop's files as ours: ``accelerator.yaml``, ``mapping.yaml``, ``space.yaml``, whichever they hold.

    The problem becomes ``problem.yaml``, in Timeloop's own form, which is read wherever a network is.

    Raises
    ------
    InputError
        If the files are wrong or, with ``strict``, not honoured in full.
    """
    found = load_timeloop(paths, strict=strict)
    files: dict[str, str] = {}
    if found.accelerator is not None:
        files["accelerator.yaml"] = dump_accelerator(found.accelerator)
    if found.operator is not None:
        files["problem.yaml"] = dump_problem(found.operator)
        if found.mapping is not None:
            files["mapping.yaml"] = dump_mapping(found.mapping, found.operator, found.accelerator)
        if found.constraints is not None and found.constraints != Constraints():
            files["space.yaml"] = dump_constraints(found.constraints)
    return Converted(files, found.notes)


def to_timeloop(operator: Operator, accelerator: Accelerator, mapping: Mapping, *, strict: bool = False) -> Converted:
    """Return an operator, an accelerator and a mapping as Timeloop's files, version 0.4, with ERT and ART.

    Raises
    ------
    InputError
        If Timeloop cannot express the mapping or, with ``strict``, not all of it.
    """
    made = dump_timeloop(operator, accelerator, mapping)
    if strict:
        refuse_notes(made.notes)
    return Converted(made.files, made.notes)

