"""Files of map spaces and of constraints: YAML, both ways, with the line in every error.

The format; every field may be left out::

    operator: conv2_1                  # for people
    accelerator: eyeriss               # for people
    dimensions: {K: 64, C: 64}         # must then agree with the operator
    tiling: ruby-s
    dataflow: row-stationary           # the constraints of a preset, beside which all others hold
    keeps: {GLB: [I, O]}               # by memory: tensors that stay there, by name or role
    loops: {PEs.X: [K, P]}             # by place (a memory, or one side of an array): dimensions that may loop there
    orders:
      GLB: [K, "*", R, S]              # by memory: a loop order, outermost first, or a list of them; "*": all others
    factors:
      PEs.X: {K: 7, C: {most: 4}}      # by place: how often a loop runs; a number fixes it
    tiles:
      Spads: {S: {least: 3}}           # by memory: the extent of the tile that it holds
    utilization: {PEs: 0.5}            # by fan-out: the least share of its instances in use
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from tilewright.base import (
    Fields,
    FieldsDocument,
    InputError,
    Location,
    line_of,
    read_text,
    wrong,
    yaml_flow,
    yaml_text,
)
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.mapping.batch import loop_places, slot_axes
from tilewright.mapping.dataflows import DATAFLOWS
from tilewright.mapping.spaces.rules.constraints import ANY, Bounds, Constraints
from tilewright.mapping.spaces.rules.presets import dataflow_constraints
from tilewright.mapping.spaces.rules.tilings import TILINGS, Tiling
from tilewright.mapping.spaces.space import MapSpace
from tilewright.workload import Operator, Tensor

Name = Annotated[str, Field(min_length=1)]


def _near(name: object, known: list[str]) -> str:
    near = get_close_matches(str(name).lower(), known, 1, 0.5)
    return f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}"


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong("must be a whole number of at least 1")
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise wrong("must be a share above 0 and at most 1")
    return float(value)


def _bounded(value: Any) -> Any:
    """Let a number stand for bounds that fix it."""
    if isinstance(value, dict):
        return value
    try:
        return {"least": _whole(value), "most": value}
    except PydanticCustomError:
        raise wrong("must be a whole number of at least 1, or least and most",
                     "For example 4, or {least: 1, most: 4}") from None


def _order_list(value: Any) -> Any:
    """Let one order stand for a list of one."""
    if isinstance(value, list) and value and not any(isinstance(item, list) for item in value):
        return [value]
    if isinstance(value, list) and value:
        return value
    raise wrong("must be an order, or a list of orders", f'For example [K, "{ANY}", R, S]')


def _distinct(names: list[str]) -> list[str]:
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise wrong(f"must not name {twice[0]} twice")
    return names


def _tiling(value: Any) -> Any:
    if value not in TILINGS:
        raise wrong("must be a known tiling", _near(value, list(TILINGS)))
    return value


def _dataflow(value: Any) -> Any:
    if value not in DATAFLOWS:
        raise wrong("must be a known dataflow", _near(value, list(DATAFLOWS)))
    return value


class BoundsFields(Fields):
    """Least and most of a number."""

    least: Annotated[int, BeforeValidator(_whole)] = 1
    """The least."""
    most: Annotated[int, BeforeValidator(_whole)] | None = None
    """The most; without end where left out."""

    @model_validator(mode="after")
    def _in_order(self) -> "BoundsFields":
        if self.most is not None and self.least > self.most:
            raise wrong("must have a least that is not above its most")
        return self


Names = Annotated[list[Name], AfterValidator(_distinct)]
Limits = dict[Name, Annotated[BoundsFields, BeforeValidator(_bounded)]]


class SpaceFields(Fields):
    """A whole space file; the format is described in `files`."""

    operator: str | None = None
    """For people."""
    accelerator: str | None = None
    """For people."""
    dimensions: dict[Name, Annotated[int, BeforeValidator(_whole)]] = Field(default_factory=dict)
    """Sizes that must then agree with the operator."""
    tiling: Annotated[Tiling, BeforeValidator(_tiling)] | None = None
    """How tiles divide."""
    dataflow: Annotated[str, BeforeValidator(_dataflow)] | None = None
    """A dataflow whose constraints hold beside all others."""
    keeps: dict[Name, Names] = Field(default_factory=dict)
    """By memory: tensors that stay there, by name or role."""
    loops: dict[Name, Names] = Field(default_factory=dict)
    """By place (a memory, or one side of an array, as ``PEs.X``): dimensions that may loop there."""
    orders: dict[Name, Annotated[list[Names], BeforeValidator(_order_list)]] = Field(default_factory=dict)
    """By memory: a loop order, outermost first, or a list of them; ``"*"`` stands for all others."""
    factors: dict[Name, Limits] = Field(default_factory=dict)
    """By place: how often a loop runs; a number fixes it."""
    tiles: dict[Name, Limits] = Field(default_factory=dict)
    """By memory: the extent of the tile that it holds; a number fixes it."""
    utilization: dict[Name, Annotated[float, BeforeValidator(_share)]] = Field(default_factory=dict)
    """By array: the least share of its instances in use."""


def dump_space(space: MapSpace) -> str:
    """Return a map space as YAML (format: see the module) that `load_space` reads back to an equal one."""
    tree = CommentedMap(operator=space.operator.name, accelerator=space.accelerator.name)
    tree["dimensions"] = yaml_flow(dict(space.operator.dimensions))
    tree["tiling"] = space.tiling
    return _written(tree, space.constraints)


def dump_constraints(constraints: Constraints) -> str:
    """Return constraints as YAML (format: see the module) that `load_constraints` reads back to equal ones."""
    return _written(CommentedMap(), constraints)


def _written(tree: CommentedMap, constraints: Constraints) -> str:
    for name in ("keeps", "loops"):
        entries = {place: yaml_flow(list(names)) for place, names in getattr(constraints, name).items()}
        tree[name] = CommentedMap(entries)
    tree["orders"] = CommentedMap({place: _orders(orders) for place, orders in constraints.orders.items()})
    for name in ("factors", "tiles"):
        tree[name] = CommentedMap({
            place: yaml_flow({dim: _bounds(bounds) for dim, bounds in limits.items()})
            for place, limits in getattr(constraints, name).items()})
    tree["utilization"] = yaml_flow(dict(constraints.utilization))
    for name in [name for name in tree if tree[name] == {}]:
        del tree[name]
    return yaml_text(tree)


def _orders(orders: tuple[tuple[str, ...], ...]) -> CommentedSeq:
    rows = [yaml_flow(list(order)) for order in orders]
    return rows[0] if len(rows) == 1 else CommentedSeq(rows)


def _bounds(bounds: Bounds) -> Any:
    if bounds.least == bounds.most:
        return bounds.least
    fields = {"least": bounds.least, "most": bounds.most}
    return yaml_flow({name: number for name, number in fields.items() if number is not None and (name, number) != (
        "least", 1)})


def load_space(source: str | Path, operator: Operator, accelerator: Accelerator) -> MapSpace:
    """Return the map space in a YAML file, or in the text itself where ``source`` is text of more than one line.

    Raises an `InputError` with file and line: broken YAML, unknown fields, names that neither operator nor accelerator
    has, numbers out of range, entries that contradict each other, a space without any mapping.
    """
    found = read_space(source)
    space = MapSpace(operator, accelerator, found.tiling or "imperfect", found.constraints(operator, accelerator))
    found.refuse_empty(space)
    return space


def load_constraints(source: str | Path, operator: Operator, accelerator: Accelerator) -> Constraints:
    """Return the constraints in a YAML file, or in text of more than one line; a tiling that it states is left aside.

    Raises an `InputError`, as for `load_space`, except that spaces without mappings are not looked for.
    """
    return read_space(source).constraints(operator, accelerator)


def read_space(source: str | Path) -> "SpaceFile":
    """Return a space file as it stands, for any operator and accelerator.

    Raises an `InputError` with file and line: broken YAML, unknown fields, values of the wrong kind or out of range.
    """
    if isinstance(source, str) and "\n" in source:
        return SpaceFile.parse("space", source)
    return SpaceFile.parse(str(source), read_text(source))


@dataclass(frozen=True)
class SpaceFile:
    """A file of a map space: its checked fields, and the line of each."""

    text: str
    fields: SpaceFields
    document: FieldsDocument

    @classmethod
    def parse(cls, name: str, text: str) -> "SpaceFile":
        """Return the file called ``name`` with this text; what is wrong in itself is an `InputError`."""
        document = FieldsDocument(name, text, "space", "tiling: ruby-s")
        return cls(text, document.validated(SpaceFields, document.plain()), document)

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.document.label

    @property
    def tiling(self) -> Tiling | None:
        """The tiling that the file states, if any."""
        return self.fields.tiling

    def where(self, path: str) -> str | None:
        """Return ``file:line`` of an entry such as ``factors.PEs.X.K``; None if the file does not say it.

        The line of what a dataflow asks for is that where the file names it.
        """
        kind, _, rest = path.partition(".")
        tree = self.document.tree
        section = tree.get(kind)
        found: Location | None = (kind,) if section is not None else None
        if isinstance(section, Mapping):
            places = [place for place in section if f"{rest}.".startswith(f"{place}.")]
            found = (kind,) if not rest else None
            for place in places:
                inner = rest[len(place) + 1:]
                if not inner or inner in section[place]:
                    found = (kind, place, inner)
        if found is None and "dataflow" in tree:
            found = ("dataflow",)
        return None if found is None else f"{self.name}:{line_of(tree, found)}"

    def constraints(self, operator: Operator, accelerator: Accelerator,
                    elsewhere: frozenset[str] = frozenset()) -> Constraints:
        """Return the constraints for an operator on an accelerator, the preset's among them.

        ``elsewhere`` are dimensions and tensors of other layers to which the file applies as well: their entries, and
        orders that do not name all that this operator has, mean nothing here and are left out.

        Raises an `InputError` with file and line: unknown names, numbers out of range, entries that contradict each
        other.
        """
        own = _Reader(self, operator, accelerator, elsewhere).constraints()
        name = self.fields.dataflow
        try:
            own.check(operator, accelerator)
            if name is None:
                return own
            preset = dataflow_constraints(name, operator, accelerator)
            preset = replace(preset, keeps={**preset.keeps, **own.keeps})
        except InputError as error:
            layer = f" ({operator.name})" if elsewhere else ""
            raise self._placed(error, error.rule + layer) from None
        try:
            both = preset.intersect(own, operator)
            both.check(operator, accelerator)
        except InputError as error:
            clash = InputError(error.field, error.rule, error.given)
            raise self._placed(clash, f"must go with the dataflow {name} of {operator.name}") from None
        return both

    def _placed(self, error: InputError, rule: str) -> InputError:
        """Return an error about an entry with its file and line; any other as it is."""
        if not error.field.startswith("space."):
            return error
        path = error.field.removeprefix("space.")
        given = list(error.given) if isinstance(error.given, tuple) else error.given
        line = self.where(path)
        return InputError(f"{line} {error.field}" if line else error.field, rule, given, error.mend)

    def refuse_empty(self, space: MapSpace) -> None:
        """Raise if the space has no mapping, with the smallest set of entries that conflict."""
        space.refuse_empty(self.where)


@dataclass(frozen=True)
class _Reader:
    """Turns the fields of one file into constraints, by the names of an operator and an accelerator."""

    file: SpaceFile
    operator: Operator
    accelerator: Accelerator
    elsewhere: frozenset[str]

    def constraints(self) -> Constraints:
        fields = self.file.fields
        self.dimensions()
        memories, places = [level.name for level in self.accelerator.memories], loop_places(self.accelerator)
        for kind, known in (("keeps", memories), ("loops", places), ("orders", memories), ("factors", places),
                            ("tiles", memories),
                            ("utilization", [level.name for level in self.accelerator.fanouts])):
            for place in getattr(fields, kind):
                self.place(kind, place, known)
        return Constraints(
            keeps={place: self.tensors(place, names) for place, names in fields.keeps.items()},
            loops=self.loops(),
            orders=self.orders(),
            factors=self.limits("factors"),
            tiles=self.limits("tiles"),
            utilization=fields.utilization,
        )

    def dimensions(self) -> None:
        for name, size in self.file.fields.dimensions.items():
            where: Location = ("dimensions", name)
            self.named(where, name)
            if name in self.operator.sizes and not self.elsewhere and size != self.operator.sizes[name]:
                raise self.error(where, f"must be {self.operator.sizes[name]}, as in {self.operator.name}", size,
                                 "Take the line out to use the file for another operator")

    def place(self, kind: str, place: str, known: list[str]) -> None:
        if place in known:
            return
        level = next((level for level in self.accelerator.levels if level.name == place.partition(".")[0]), None)
        what = {"loops": "a memory or a side of an array", "factors": "a memory or a side of an array",
                "utilization": "a fan-out"}.get(kind, "a memory")
        mend = f"Known: {', '.join(known)}"
        if isinstance(level, Fanout) and place == level.name and kind in ("loops", "factors"):
            mend = f"Say which side: {' or '.join(f'{place}.{axis}' for axis in slot_axes(level))}"
        elif near := get_close_matches(place, known, 1):
            mend = f"Did you mean {near[0]}?"
        raise self.error((kind, place), f"must be {what} of {self.accelerator.name}", place, mend)

    def named(self, where: Location, name: str) -> bool:
        """Whether the operator has this dimension; one that only other layers have is nothing to worry about."""
        known = list(self.operator.sizes)
        if name in known or name in self.elsewhere:
            return name in known
        near = [other for other in known if other.lower() == name.lower()]
        raise self.error(where, f"must be a dimension of {self.operator.name}", name,
                         f"Did you mean {near[0]}?" if near else f"Known: {', '.join(known)}")

    def tensors(self, place: str, names: list[str]) -> tuple[str, ...]:
        memory = self.accelerator.level(place)
        assert isinstance(memory, Memory)
        found: dict[str, Tensor] = {}
        for index, name in enumerate(names):
            tensors = [t for t in self.operator.tensors if name in (t.name, t.role)]
            if not tensors and name not in self.elsewhere:
                raise self.error(("keeps", place, index), f"must be a tensor of {self.operator.name}, or a role", name,
                                 f"Known: {', '.join(t.name for t in self.operator.tensors)}")
            for tensor in tensors:
                if not memory.can_keep(tensor.name, tensor.role):
                    raise self.error(("keeps", place, index), f"must be a tensor that {place} can keep", name,
                                     f"It keeps {', '.join(memory.keeps)}")
                found[tensor.name] = tensor
        return tuple(t.name for t in self.operator.tensors if t.name in found)

    def loops(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for place, names in self.file.fields.loops.items():
            known = tuple(name for index, name in enumerate(names) if self.named(("loops", place, index), name))
            if known or not names:
                found[place] = known
        return found

    def orders(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        found: dict[str, tuple[tuple[str, ...], ...]] = {}
        for place, orders in self.file.fields.orders.items():
            kept = [self.order(place, index, order) for index, order in enumerate(orders)]
            whole = tuple(order for order in kept if order)
            if whole:
                found[place] = whole
        return found

    def order(self, place: str, index: int, order: list[str]) -> tuple[str, ...]:
        """Return an order without dimensions of other layers; none where it leaves out one of this operator's."""
        known = tuple(name for at, name in enumerate(order)
                      if name == ANY or self.named(("orders", place, index, at), name))
        missing = [name for name in self.operator.sizes if name not in known] if ANY not in known else []
        if missing and not self.elsewhere:
            raise self.error(("orders", place, index), f"must name every dimension, or {ANY} for the others",
                             list(order), f'Add {", ".join(missing)}, or "{ANY}" in their place')
        return () if missing else known

    def limits(self, kind: str) -> dict[str, dict[str, Bounds]]:
        section: dict[str, dict[str, Any]] = getattr(self.file.fields, kind)
        return {place: {dim: Bounds(bounds.least, bounds.most) for dim, bounds in limits.items()
                        if self.named((kind, place, dim), dim)} for place, limits in section.items()}

    def error(self, where: Location, rule: str, given: object = None, mend: str = "") -> InputError:
        return self.file.document.fail(where, rule, given, mend)
