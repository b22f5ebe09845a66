"""Accelerator files: YAML 1.2 in and out, their ``sparsity:`` and ``design:`` too, with line numbers in every error."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from tilewright.base import Fields, FieldsDocument, InputError, Location, wrong, yaml_flow, yaml_text
from tilewright.hardware.accelerator import Accelerator, section_issues
from tilewright.hardware.design import DesignSpace, NumberRange
from tilewright.hardware.flexibility_files import FlexibilityFields, flexibility_tree, read_flexibility
from tilewright.hardware.levels import RATE, Memory, Merging, Number
from tilewright.hardware.resolve import Fail, LevelFields, Resolver, look_up
from tilewright.hardware.schema import (
    AcceleratorFields,
    Bytes,
    Count,
    FanoutFields,
    MemoryFields,
    Name,
    Positive,
    TechnologyFields,
)
from tilewright.hardware.sparsity import (
    FORMATS,
    ROLE_NAMES,
    Action,
    Capacity,
    Compression,
    Elision,
    Format,
    Sparsity,
    name_issues,
)
from tilewright.hardware.tables import build_technology, technology, technology_names
from tilewright.hardware.technology import Storage, Technology
from tilewright.hardware.vector import VectorUnit

ACTIONS: tuple[Action, ...] = ("skip", "gate")
Leaders = dict[Name, dict[Name, list[Name]]]


def load_accelerator(source: str | Path) -> Accelerator:
    """Read an accelerator from a YAML file, or from YAML text (a text of more than one line).

    Raises an `InputError` if the file cannot be read, is not YAML, or says something wrong. The field names file, line
    and path, for example ``eyeriss.yaml:12 arch.levels[1].capacity_bytes``.
    """
    return _document(source).accelerator()


def load_design_space(source: str | Path) -> DesignSpace:
    """Read what may vary of an accelerator from the ``design:`` section of its file, or of YAML text.

    Without such a section it is what `DesignSpace.of` says. Raises as `load_accelerator` does.
    """
    return _document(source).design_space()


def _document(source: str | Path) -> "_Document":
    return _Document(FieldsDocument.of(source, "arch", "name:, word_bits:, levels:, compute:"))


class _Document:
    """One accelerator file."""

    def __init__(self, document: FieldsDocument) -> None:
        self.document, self.fail = document, document.fail

    def accelerator(self) -> Accelerator:
        fields = self.document.validated(AcceleratorFields, self.document.plain())
        levels = [self._level(level, index) for index, level in enumerate(fields.levels)]
        self._check_levels(levels)
        table, name = self._technology(fields.technology)
        machine = Resolver(fields, table, name, self.fail).accelerator(levels)
        if fields.flexibility:
            flexible = self.document.validated(FlexibilityFields, fields.flexibility, ("flexibility",))
            node_nm = table.node_nm if table else None
            machine = self._with(machine, flexibility=read_flexibility(flexible, levels, node_nm, self.fail))
        if fields.sparsity is not None:
            sparse = self.document.validated(SparsityFields, fields.sparsity, ("sparsity",))
            machine = self._with(machine, sparsity=read_sparsity(sparse))
        if fields.vector is not None:
            given = fields.vector
            machine = self._with(machine, vector=VectorUnit(
                given.lanes, given.memory, given.energy_pj_per_operation, tuple(given.operations_per_cycle.items()),
                tuple(given.folds)))
        return machine

    def _with(self, machine: Accelerator, **section: Any) -> Accelerator:
        """Return the machine with a section of its file; what is wrong with it is an `InputError`."""
        for name, issue in section_issues(machine, **section):
            raise self.fail((name, *issue.where), issue.rule, issue.given, issue.mend)
        return replace(machine, **section)

    def design_space(self) -> DesignSpace:
        machine = self.accelerator()
        if self.document.tree.get("design") is None:
            return DesignSpace.of(machine)
        fields = self.document.validated(DesignFields, self.document.plain("design"), ("design",))
        return read_design(fields, machine, self.fail)

    def _level(self, data: dict[str, Any], index: int) -> LevelFields:
        where: Location = ("levels", index)
        if ("memory" in data) == ("fanout" in data):
            raise self.fail(where, "must be a memory or a fanout", sorted(data),
                            "Begin it with memory: NAME or fanout: NAME")
        if "fanout" in data:
            array = self.document.validated(FanoutFields, data, where)
            named = [((*where, what, name), name) for what in ("multicast", "reduce")
                     if isinstance(given := getattr(array, what), dict) for name in given]
            return self._named(array, named)
        memory = self.document.validated(MemoryFields, data, where)
        return self._named(memory, [((*where, "keeps", at), name) for at, name in enumerate(memory.keeps)])

    def _named(self, fields: LevelFields, named: Iterable[tuple[Location, str]]) -> LevelFields:
        """Return the fields, where names of tensors are no roles that are spelt wrong."""
        for issue in (issue for where, name in named for issue in name_issues(where, name)):
            raise self.fail(issue.where, issue.rule, issue.given, issue.mend)
        return fields

    def _check_levels(self, levels: list[LevelFields]) -> None:
        names: set[str] = set()
        for index, level in enumerate(levels):
            key = "memory" if isinstance(level, MemoryFields) else "fanout"
            name = level.memory if isinstance(level, MemoryFields) else level.fanout
            if name in names:
                raise self.fail(("levels", index, key), "must have a name of its own", name)
            names.add(name)
        first = levels[0]
        keeps = {name for level in levels if isinstance(level, MemoryFields) for name in level.keeps}
        if not isinstance(first, MemoryFields) or (keeps <= set(ROLE_NAMES) and len(keeps) < len(ROLE_NAMES)):
            raise self.fail(("levels", 0), "must be a memory, and all tensors kept by some memory",
                            sorted(keeps) or names.pop(), "Begin with the DRAM, keeps: [inputs, weights, outputs]")

    def _technology(self, given: Any) -> tuple[Technology | None, str]:
        where: Location = ("technology",)
        if isinstance(given, str):
            return (None if given == "given" else look_up(self.fail, where, technology, given)), given
        if not isinstance(given, dict):
            raise self.fail(where, "must be the name of a technology or a mapping of its rows", given,
                            f"Known: given, {', '.join(technology_names())}")
        fields = self.document.validated(TechnologyFields, given, where)
        if fields.base is None:
            return None, fields.name
        rows = fields.model_dump(exclude_none=True)
        return look_up(self.fail, where, build_technology, rows), fields.name


def dump_accelerator(accelerator: Accelerator) -> str:
    """Return YAML that `load_accelerator` reads back to an equal accelerator; every figure is written out.

    Memories of a technology's kind say so, and their figures follow where capacities vary (`completed`).
    """
    known = accelerator.technology == "given" or accelerator.technology in technology_names()
    kinds = technology(accelerator.technology).storage if known and accelerator.technology != "given" else {}
    levels = CommentedSeq(
        _memory_fields(level, kinds) if isinstance(level, Memory) else _filled(
            fanout=level.name,
            shape=yaml_flow(list(level.shape)),
            flexible=level.flexible,
            blocks=yaml_flow(list(level.blocks)) if level.blocks else None,
            multicast=_merging(level.multicast),
            reduce=_merging(level.reduce),
            network_energy_pj_per_word=level.network_energy_pj_per_word,
        )
        for level in accelerator.levels
    )
    compute = accelerator.compute
    tree = _filled(
        name=accelerator.name,
        technology=accelerator.technology if known else yaml_flow({"name": accelerator.technology}),
        frequency_mhz=accelerator.frequency_mhz,
        word_bits=yaml_flow(dict(accelerator.word_bits)),
        footprint=None if accelerator.footprint == "exact" else accelerator.footprint,
        sources=list(accelerator.sources) or None,
        assumptions=list(accelerator.assumptions) or None,
        levels=levels,
        compute=_filled(name=compute.name, energy_pj_per_mac=compute.energy_pj_per_mac, area_um2=compute.area_um2,
                        leakage_mw=compute.leakage_mw, precisions=_precision_trees(accelerator) or None),
        flexibility=_section(flexibility_tree(accelerator.flexibility)) if accelerator.flexibility else None,
        sparsity=_section(sparsity_tree(accelerator.sparsity)) if accelerator.sparsity else None,
        vector=yaml_flow(_vector_tree(accelerator.vector)) if accelerator.vector else None,
    )
    return yaml_text(tree)


def _merging(given: Merging) -> CommentedMap | bool | str:
    return yaml_flow(dict(given)) if isinstance(given, tuple) else given


def _memory_fields(memory: Memory, kinds: Mapping[str, Storage]) -> CommentedMap:
    bandwidth = _filled(**vars(memory.bandwidth))
    return _filled(
        memory=memory.name,
        keeps=yaml_flow(list(memory.keeps)),
        always=memory.always or None,
        shared=yaml_flow(list(memory.shared)) if memory.shared else None,
        kind=next((kind for kind, one in kinds.items() if one == memory.storage), None),
        capacity_bytes=memory.capacity_bytes,
        partitions_bytes=yaml_flow(dict(memory.partitions_bytes)) if memory.partitions_bytes else None,
        word_bits=memory.word_bits,
        block_words=memory.block_words,
        bandwidth_words_per_cycle=yaml_flow(bandwidth) if bandwidth else None,
        energy_pj_per_word=yaml_flow({name.removesuffix("_pj"): pj for name, pj in vars(memory.energy).items()}),
        buffering=memory.buffering,
        forwards=memory.forwards if memory.forwards != "tiles" else None,
        area_um2=memory.area_um2,
        leakage_mw=memory.leakage_mw,
        access_grain=yaml_flow(list(memory.access_grain)) if memory.access_grain != (1, 1) else None,
    )


def _precision_trees(accelerator: Accelerator) -> dict[str, Any]:
    """Return what lanes do with words of each type."""
    return {one.name: yaml_flow(_filled(macs_per_cycle=one.macs_per_cycle, energy=one.energy,
                                    partial_bits=one.partial_bits)) for one in accelerator.precisions}


def _vector_tree(unit: VectorUnit) -> dict[str, Any]:
    stated = {"memory": unit.memory, "energy_pj_per_operation": unit.energy_pj_per_operation,
              "operations_per_cycle": yaml_flow(dict(unit.operations_per_cycle)) if unit.operations_per_cycle else None,
              "folds": yaml_flow(list(unit.folds)) if unit.folds else None}
    return {"lanes": unit.lanes, **{name: value for name, value in stated.items() if value is not None}}


def _section(tree: dict[str, Any]) -> CommentedMap:
    """Return the tree with everything below its first level on one line each."""
    return CommentedMap(
        (key, yaml_flow(value) if isinstance(value, dict | list) else value) for key, value in tree.items())


def _filled(**fields: Any) -> CommentedMap:
    return CommentedMap((key, value) for key, value in fields.items() if value is not None)


class FormatFields(Fields):
    """A format, with the bits of its runs or coordinates where they are fixed."""

    format: Format
    """How zeros are left out."""
    bits: Count | None = None
    """Of a run or coordinate, where fixed."""


def _format(given: Any) -> Any:
    """Read the bare name of a format."""
    if isinstance(given, str):
        if given not in FORMATS:
            raise wrong(f"must be one of {', '.join(FORMATS)}")
        return {"format": given}
    return given


Formats = dict[Name, dict[Name, Annotated[FormatFields, BeforeValidator(_format)]]]


class ComputeZeros(Fields):
    """Operands whose zeros the compute unit gates or skips."""

    gate: list[Name] = Field(default_factory=list)
    """Operands whose zeros take no energy."""
    skip: list[Name] = Field(default_factory=list)
    """Operands whose zeros take no time either."""


class SparsityFields(Fields):
    """What a machine makes of zeros."""

    capacity: Capacity = "expected"
    """Whether a tile must fit in the mean, or at its fullest."""
    formats: Formats = Field(default_factory=dict)
    """By memory and tensor, the name of a format or its fields."""
    skip: Leaders = Field(default_factory=dict)
    """By memory and tensor, the tensors at whose zeros its words are not moved at all."""
    gate: Leaders = Field(default_factory=dict)
    """The same, but the cycles are spent."""
    compute: ComputeZeros = ComputeZeros()
    """What the compute unit does."""


def read_sparsity(fields: SparsityFields) -> Sparsity:
    """Return what a file says of zeros."""
    capacity: Capacity = fields.capacity
    return Sparsity(
        tuple(Compression(memory, tensor, given.format, given.bits)
              for memory, inner in fields.formats.items() for tensor, given in inner.items()),
        tuple(Elision(memory, action, tensor, tuple(on)) for action in ACTIONS
              for memory, inner in getattr(fields, action).items() for tensor, on in inner.items()),
        tuple(fields.compute.gate), tuple(fields.compute.skip), capacity)


def sparsity_tree(sparsity: Sparsity) -> dict[str, Any]:
    """Return the section that reads back to ``sparsity``, as plain collections."""
    formats: dict[str, dict[str, Any]] = {}
    for given in sparsity.formats:
        formats.setdefault(given.memory, {})[given.tensor] = (
            given.format if given.bits is None else {"format": given.format, "bits": given.bits})
    leaders: dict[str, dict[str, dict[str, list[str]]]] = {}
    for elision in sparsity.elisions:
        leaders.setdefault(elision.action, {}).setdefault(elision.memory, {})[elision.tensor] = list(elision.on)
    compute = {name: list(given) for name, given in (("gate", sparsity.gated), ("skip", sparsity.skipped)) if given}
    tree = {"capacity": sparsity.capacity, "formats": formats, **leaders, "compute": compute}
    return {name: value for name, value in tree.items() if value}


class RangeFields(Fields):
    """Values ``from`` one ``to`` another in steps, or a list of ``values``; capacities take units."""

    least: Bytes | None = Field(None, alias="from")
    """The least value."""
    most: Bytes | None = Field(None, alias="to")
    """The largest value."""
    step: Bytes | None = None
    """Between values."""
    values: Annotated[list[Bytes], Field(min_length=1)] | None = None
    """In place of these: the values."""

    @model_validator(mode="after")
    def _check(self) -> "RangeFields":
        if (self.values is None) == (self.least is None or self.most is None):
            raise wrong("must be a list of values, or give from and to", "For example {from: 1, to: 1024, step: 1}")
        if self.least is not None and self.most is not None and self.least > self.most:
            raise wrong(f"must not end ({self.most:g}) before it begins ({self.least:g})")
        if self.values is not None and sorted(set(self.values)) != self.values:
            raise wrong("must list its values in ascending order, each once")
        return self

    def range(self, step: float) -> NumberRange:
        """Return the range; ``step`` is that where none is given."""
        if self.values is not None:
            return NumberRange.listed(tuple(self.values))
        assert self.least is not None
        assert self.most is not None
        return NumberRange(self.least, self.most, self.step or step)


class FollowFields(Fields):
    """A number that is a multiple of another one."""

    of: Name
    """The number that it follows, as ``PEs.x``."""
    times: Positive = 1.0
    """What that is multiplied by."""


def _listed(given: Any) -> Any:
    return {"values": given} if isinstance(given, list) else given


class DesignFields(Fields):
    """Which numbers vary (``LEVEL.number``), what follows from them, and which levels a machine may do without."""

    vary: Annotated[dict[Name, Annotated[RangeFields, BeforeValidator(_listed)]], Field(min_length=1)]
    """By number (``SG.capacity_bytes``), its range or a list of values."""
    follow: dict[Name, FollowFields] = Field(default_factory=dict)
    """By number, what it follows."""
    optional: list[Name] = Field(default_factory=list)
    """Levels that a machine may do without."""


def read_design(fields: DesignFields, machine: Accelerator, fail: Fail) -> DesignSpace:
    """Return the design space that the section of a machine's file describes; ``fail`` points into the file."""
    ranges: dict[Number, NumberRange] = {}
    for name, given in fields.vary.items():
        where: Location = ("design", "vary", name)
        key = _number(machine, name)
        rate = key[1].startswith(RATE.format(""))
        ranges[key] = given.range(0.125 if rate else 1.0)
        whole = key[1] in ("x", "y", "instances")
        if whole and any(value != int(value) for value in (
                *ranges[key].values, ranges[key].low, ranges[key].high, ranges[key].step)):
            raise fail(where, "must be whole numbers", None, "")
        _checked(machine, ranges, {}, (), where, fail)
    follow: dict[Number, tuple[Number, float]] = {}
    for name, source in fields.follow.items():
        follow[_number(machine, name)] = _number(machine, source.of), source.times
        _checked(machine, ranges, follow, (), ("design", "follow", name), fail)
    return _checked(machine, ranges, follow, tuple(fields.optional), ("design", "optional"), fail)


def _number(machine: Accelerator, text: str) -> Number:
    """Return (level, what) of ``LEVEL.what``; levels may have dots in their names."""
    for level in machine.levels:
        if text.startswith(f"{level.name}."):
            return level.name, text.removeprefix(f"{level.name}.")
    name, _, what = text.partition(".")
    return name, what


def _checked(machine: Accelerator, ranges: dict[Number, NumberRange], follow: dict[Number, tuple[Number, float]],  # noqa: PLR0913, PLR0917
             optional: tuple[str, ...], where: Location, fail: Fail) -> DesignSpace:
    try:
        return DesignSpace(machine, ranges, follow, optional)
    except InputError as error:
        raise fail(where, error.rule, error.given, error.mend) from None
