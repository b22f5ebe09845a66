"""Mapped loop nests as JSON lines: one operator, accelerator and mapping per line, and what they cost.

The format: ``dims`` (name -> size); ``tensors`` (``name``, ``output``, ``axes`` as lists of ``[dimension,
coefficient]``); ``levels``, outermost first, of kind ``memory`` (``keeps``, ``loops``, ``energy_pj_per_word``,
``bandwidth_words_per_cycle``, ``capacity_words``, ``block_words``, ``access_grain``, ``leakage_mw``) or ``fanout``
(``mesh``, ``loops``, ``axes``, ``multicast``, ``reduce``), with loops as ``[dimension, step]``, outer to inner;
``energy_pj_per_mac``. Unknown keys are ignored.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tilewright.base import MOST_BYTES, InputError, open_binary, path_text, read_json
from tilewright.cost import Cost
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory
from tilewright.mapping import LevelLoops, Loop, Mapping
from tilewright.workload import Axis, Operator, Role, Tensor

WORD_BITS = 8
"""Width of every word in the format."""

Positive = Annotated[int, Field(ge=1, strict=True)]
Name = Annotated[str, Field(min_length=1)]
Energy = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Case(NamedTuple):
    """One line of a case file."""

    id: str
    operator: Operator
    accelerator: Accelerator
    mapping: Mapping


class _Entry(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Tensor(_Entry):
    name: Name
    output: bool = False
    axes: tuple[tuple[tuple[Name, Positive], ...], ...]


class _Energy(_Entry):
    read: Energy = 0.0
    fill: Energy = 0.0
    update: Energy = 0.0
    drain: Energy = 0.0


class _Bandwidth(_Entry):
    read: Rate | None = None
    write: Rate | None = None
    shared: Rate | None = None


class _Memory(_Entry):
    kind: Literal["memory"]
    name: Name
    keeps: tuple[Name, ...]
    loops: tuple[tuple[Name, Positive], ...] = ()
    energy_pj_per_word: _Energy = _Energy()
    bandwidth_words_per_cycle: _Bandwidth | None = None
    capacity_words: Annotated[float, Field(gt=0)] | None = None
    block_words: Positive = 1
    access_grain: tuple[Positive, Positive] = (1, 1)
    leakage_mw: Energy = 0.0

    def built(self) -> tuple[Memory, LevelLoops]:
        """Return the level and its loops."""
        energy, rate = self.energy_pj_per_word, self.bandwidth_words_per_cycle or _Bandwidth()
        capacity = None if self.capacity_words is None else self.capacity_words * WORD_BITS / 8
        memory = Memory(
            self.name, self.keeps, AccessEnergy(energy.read, energy.fill, energy.update, energy.drain),
            capacity_bytes=capacity, word_bits=WORD_BITS, block_words=self.block_words,
            bandwidth=Bandwidth(rate.read, rate.write, rate.shared), buffering="buffet", leakage_mw=self.leakage_mw,
            access_grain=self.access_grain,
        )
        return memory, LevelLoops(self.name, tuple(Loop(*loop) for loop in self.loops), self.keeps)


class _Fanout(_Entry):
    kind: Literal["fanout"]
    name: Name
    mesh: tuple[Positive, Positive]
    loops: tuple[tuple[Name, Positive], ...] = ()
    axes: tuple[Literal["X", "Y"], ...] | None = None
    multicast: bool = True
    reduce: bool = True

    @model_validator(mode="after")
    def _one_axis_per_loop(self) -> "_Fanout":
        if self.axes is not None and len(self.axes) != len(self.loops):
            raise ValueError(f"axes must name one side for each of the {len(self.loops)} loops")
        return self

    def built(self) -> tuple[Fanout, LevelLoops]:
        """Return the level and its loops."""
        loops = tuple(Loop(dimension, step, self.axes[at] if self.axes else "X")
                      for at, (dimension, step) in enumerate(self.loops))
        return Fanout(self.name, self.mesh, self.multicast, self.reduce), LevelLoops(self.name, loops)


class _Case(_Entry):
    id: str | int
    workload: str = "case"
    dims: dict[Name, Positive]
    tensors: tuple[_Tensor, ...]
    levels: tuple[Annotated[_Memory | _Fanout, Field(discriminator="kind")], ...]
    energy_pj_per_mac: Energy = 0.0


def case_lines(source: Path | Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Yield ``(file:line, text)`` of each line of a file or stream that is not blank, one at a time.

    Raises an `InputError` if the file cannot be read, or a line is not UTF-8.
    """
    if isinstance(source, Path):
        try:
            with open_binary(source) as file:
                yield from _numbered(str(source), iter(partial(file.readline, MOST_BYTES + 1), b""))
        except InputError:
            raise
        except (OSError, ValueError) as error:  # ValueError: a name with a null byte
            raise InputError(str(source), "must be a readable text file", str(error)) from None
    else:
        yield from _numbered("standard input", source)


def _numbered(name: str, lines: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        if len(line) > MOST_BYTES:
            raise InputError(f"{name}:{number}", f"must have at most {MOST_BYTES // 2**20} MiB a line")
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            raise InputError(f"{name}:{number}", "must be a readable text file in UTF-8", str(error)) from None
        if text:
            yield f"{name}:{number}", text


def parse_case(line: str, where: str = "case") -> Case:
    """Return the case in one line of JSON; ``where`` (``file:line``) opens the messages of errors.

    Words have 8 bits, memories are buffets (nothing blocks the compute). The format has no energy for
    drains: where ``energy_pj_per_word`` lacks ``drain``, as for every other energy that is left out, it is 0 pJ.
    """
    raw = read_json(line, where, one_line=True)
    try:
        found = _Case.model_validate(raw)
    except ValidationError as error:
        raise _explained(error, where) from None
    try:
        return Case(str(found.id), _operator(found), *_machine(found))
    except InputError as error:
        raise InputError(f"{where}: {error.field}", error.rule, error.given, error.mend) from None


def case_result(case_id: str, cost: Cost) -> dict[str, Any]:
    """Return what is written for a case: totals, and words by ``Memory.Tensor`` summed over instances."""
    return {
        "id": case_id, "macs": cost.macs, "steps": cost.steps, "cycles": cost.steady_cycles,
        "energy_pj": cost.energy_pj,
        "counts": {
            f"{memory}.{tensor}": {"reads": count.reads, "fills": count.fills, "updates": count.updates,
                                   "drains": count.drains}
            for (memory, tensor), count in cost.counts.items()
        },
    }


def _explained(error: ValidationError, where: str) -> InputError:
    first = error.errors()[0]
    path = path_text(tuple(part for part in first["loc"] if part not in ("memory", "fanout"))).lstrip(".")
    given = None if isinstance(first["input"], dict | list) else first["input"]
    return InputError(f"{where}: {path}" if path else where, first["msg"], given)


def _operator(case: _Case) -> Operator:
    """Return the operator: operands in their order, the output last."""
    operands: tuple[Role, ...] = ("weights", "inputs")
    tensors: list[Tensor] = []
    outputs: list[Tensor] = []
    for tensor in case.tensors:
        axes = tuple(Axis(terms) for terms in tensor.axes)
        if tensor.output:
            outputs.append(Tensor(tensor.name, "outputs", axes))
        else:
            tensors.append(Tensor(tensor.name, operands[min(len(tensors), 1)], axes))
    return Operator(str(case.id), case.workload, tuple(case.dims.items()), (*tensors, *outputs))


def _machine(case: _Case) -> tuple[Accelerator, Mapping]:
    known = {tensor.name for tensor in case.tensors}
    for index, level in enumerate(case.levels):
        for position, (dimension, _) in enumerate(level.loops):
            if dimension not in case.dims:
                raise InputError(f"levels[{index}].loops[{position}]", f"must loop over one of {', '.join(case.dims)}",
                                 dimension)
        if isinstance(level, _Memory) and not known.issuperset(level.keeps):
            raise InputError(f"levels[{index}].keeps", f"must be among {', '.join(sorted(known))}",
                             ", ".join(level.keeps))
    built = [level.built() for level in case.levels]
    accelerator = Accelerator(
        str(case.id), tuple(level for level, _ in built), Compute(energy_pj_per_mac=case.energy_pj_per_mac),
        word_bits=(("inputs", WORD_BITS), ("weights", WORD_BITS), ("outputs", WORD_BITS)),
    )
    return accelerator, Mapping(tuple(loops for _, loops in built))
