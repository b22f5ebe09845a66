"""Which map space each layer is searched in: a tiling, a file of constraints, a dataflow."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tilewright.api.flags import takes
from tilewright.api.inputs import Limits, load_target, pick_operator
from tilewright.api.options import MapSpaceOptions
from tilewright.base import InputError
from tilewright.hardware import Accelerator
from tilewright.mapping import (
    DATAFLOWS,
    TILINGS,
    Constraints,
    MapSpace,
    Padding,
    SpaceFile,
    SpaceSize,
    Tiling,
    dump_constraints,
    padded,
    read_space,
)
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator

_FILES = (".yaml", ".yml")


@dataclass(frozen=True)
class SpaceChoice:
    """The map spaces of the layers of a network."""

    tiling: Tiling = "imperfect"
    file: SpaceFile | None = None
    """What the spaces leave out, as a file; None for nothing."""
    dataflow: str = ""
    """The dataflow that was chosen apart from the file (and is among its fields, though not in its text), if any."""
    elsewhere: frozenset[str] = frozenset()
    """Names of dimensions and tensors that some layer has; entries of the file may name them, and mean nothing to
    layers without them."""
    pad: bool = False
    """Whether the spaces are those of padded operators."""
    own: Constraints | None = None
    """What the files of the machine leave out, besides."""

    @property
    def file_name(self) -> str:
        """The file's name, or one for constraints that came without; empty where there are none."""
        if self.file is None or not self.file.text:
            return ""
        return self.file.name if self.file.name.endswith(_FILES) else "constraints.yaml"

    def text(self, operators: Sequence[Operator], accelerator: Accelerator) -> str:
        """Return what the spaces leave out as a space file; what the machine's files do, which have one layer, too."""
        if self.own is not None:
            return dump_constraints(self.space(operators[0], accelerator).constraints)
        return self.file.text if self.file else ""

    def space(self, operator: Operator, accelerator: Accelerator) -> MapSpace:
        """Return the mappings of one operator to choose from; those of the padded one where operators are padded.

        A file that does not fit the operator and the accelerator is an `InputError`.
        """
        if self.pad:
            operator = self.padding(operator, accelerator).padded
        return MapSpace(operator, accelerator, self.tiling, self._constraints(operator, accelerator))

    def padding(self, operator: Operator, accelerator: Accelerator) -> Padding:
        """Return what padding makes of an operator; itself where operators are not padded."""
        if not self.pad:
            return Padding(operator, operator)
        return Padding(operator, padded(operator, accelerator, self._constraints(operator, accelerator)))

    def _constraints(self, operator: Operator, accelerator: Accelerator) -> Constraints:
        if self.file is None:
            return self.own or Constraints()
        others = self.elsewhere - {*operator.sizes, *(tensor.name for tensor in operator.tensors)}
        given = self.file.constraints(operator, accelerator, others)
        try:
            return given.intersect(self.own, operator) if self.own is not None else given
        except InputError as error:
            raise InputError(error.field, "must go with what the files of the machine say", error.given,
                             "Take the entry out of --constraints, or the constraint out of the architecture") from None

    def refuse_empty(self, operators: Iterable[Operator], accelerator: Accelerator) -> None:
        """Raise if what was asked for leaves some operator no mapping, with the smallest set of entries that conflict.

        Operators for which the machine alone has none are passed over.
        """
        if self.file is not None or self.own is not None or self.tiling != "imperfect":
            for operator in operators:
                where = self.file.where if self.file is not None else None
                self.space(operator, accelerator).refuse_empty(where, alone=False)


def choose_space(tiling: str | None, constraints: Limits | None, dataflow: str | None,
                 operators: Iterable[Operator], pad: bool = False) -> SpaceChoice:
    """Return what was chosen, for these operators.

    Where no tiling is given it is that of the file; where that has none, perfect with padding, and else imperfect.

    Raises an `InputError` if a name is unknown, the file says something wrong in itself, or says other than what was
    given beside it.
    """
    if tiling is not None and tiling not in TILINGS:
        raise InputError("tiling", f"must be one of {', '.join(TILINGS)}", tiling)
    if dataflow is not None:
        DATAFLOWS.get(dataflow)
    file = _file(constraints) if constraints is not None else None
    if file is not None:
        for name, mine, theirs in (("tiling", tiling, file.tiling), ("dataflow", dataflow, file.fields.dataflow)):
            if mine is not None and theirs is not None and mine != theirs:
                raise InputError(name, f"must be {theirs}, as in {file.where(name)}", mine, "Leave one of them out")
    if dataflow is not None:
        file = file or replace(SpaceFile.parse("dataflow", "{}\n"), text="")
        file = replace(file, fields=file.fields.model_copy(update={"dataflow": dataflow}))
    chosen = tiling or (file and file.tiling) or ("perfect" if pad else "imperfect")
    elsewhere = frozenset(name for operator in operators
                          for name in (*operator.sizes, *(tensor.name for tensor in operator.tensors)))
    return SpaceChoice(chosen, file, dataflow or "", elsewhere, pad)


def _file(constraints: Limits) -> SpaceFile:
    if isinstance(constraints, Constraints):
        return SpaceFile.parse("constraints", dump_constraints(constraints))
    return read_space(constraints)


def is_space(constraint: object) -> bool:
    """Whether this is about map spaces (`Constraints`, a YAML file, its text), rather than a limit such as power<=3."""
    return isinstance(constraint, Constraints | Path) or (
        isinstance(constraint, str) and ("\n" in constraint or constraint.endswith(_FILES)))


@dataclass(frozen=True)
class SpaceFigures:
    """How large a map space is, and how many of its mappings fit the memories.

    ``fitting`` is estimated by draws; None where there were none. A space without mappings has a size of 0, and
    ``conflict`` says why.
    """

    tiling: str
    size: SpaceSize
    fitting: SpaceSize | None = None
    conflict: str = ""

    @property
    def fitting_share(self) -> float | None:
        """The share of the mappings that fits the memories; None where it is not known."""
        return None if self.fitting is None else self.fitting.mappings / max(1, self.size.mappings)


def space_figures(space: MapSpace, draws: int = 20_000, seed: int = 0) -> SpaceFigures:
    """Return the size of a space, and how many of its mappings fit the memories, estimated by uniform ``draws``."""
    try:
        space.refuse_empty()
    except InputError as error:
        return SpaceFigures(space.tiling, SpaceSize(0, exact=True), conflict=error.rule)
    fitting = space.legal_size(np.random.default_rng(seed), draws) if draws else None
    return SpaceFigures(space.tiling, space.size(), fitting)


def drawn_mappings(space: MapSpace, count: int, seed: int = 0) -> list[Nest]:
    """Return ``count`` mappings drawn uniformly from those that fit; that too few are found is an `InputError`."""
    batch = space.draw(np.random.default_rng(seed), count, legal=True)
    return [batch.mapping(index, space.operator.sizes) for index in range(count)]


@takes(MapSpaceOptions, raises=", or leaves no mapping")
def map_space(asked: MapSpaceOptions) -> MapSpace:
    """Return the map space of one layer: all its mappings on a machine that a mapper may use.

    Examples
    --------
    >>> import tilewright as tw
    >>> space = tw.map_space("matmul:M=6,N=4,K=2", arch="edge-s1", tiling="ruby-s")
    >>> space.size().exact
    True
    """
    accelerator, own = load_target(asked.arch, asked.network)
    operator = pick_operator(asked.network, asked.layer, asked.bind, arch=accelerator, precision=asked.precision)
    choice = replace(choose_space(asked.tiling, asked.constraints, asked.dataflow, (), asked.pad), own=own)
    choice.refuse_empty([operator], accelerator)
    return choice.space(operator, accelerator)
