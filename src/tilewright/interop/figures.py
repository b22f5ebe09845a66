"""Energies that foreign files leave to an estimator, from the nearest of our own technologies, with a note for each."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Compute, load_accelerator
from tilewright.interop.sections import Node
from tilewright.workload import ROLES

TECHNOLOGIES = {16: "16nm", 28: "28nm", 45: "45nm", 65: "65nm"}
DEFAULT_TECHNOLOGY = 45
_MOST_REGISTER_BYTES = 4096


@dataclass(frozen=True)
class Estimated:
    """A component whose energy is looked up: where the file has it, its class, and the technology that the file asks.

    ``better`` says what would give the tool's own figure.
    """

    node: Node
    name: str
    kind: str
    technology: str
    frequency_mhz: float
    better: str

    def access(self, capacity_bytes: float | None, word_bits: int, dram_type: str = "LPDDR4") -> AccessEnergy:
        """Return picojoules a word of a memory of this capacity (None is unlimited).

        Raises an `InputError` if our tables have no figure for it.
        """
        text = self.kind.lower()
        base: dict[str, Any] = {"memory": "M", "keeps": list(ROLES), "word_bits": word_bits}
        if "dram" in text or capacity_bytes is None:
            choices: list[dict[str, Any]] = [
                {"kind": "dram", "dram_type": kind} for kind in dict.fromkeys((dram_type, "LPDDR4"))]
        else:
            size = capacity_bytes
            registers = any(part in text for part in ("reg", "_rf", "latch", "flop")) and size <= _MOST_REGISTER_BYTES
            kinds = ("registers", "sram") if registers else ("sram", "registers")
            choices = [{"kind": kind, "capacity_bytes": room} for room in dict.fromkeys((size, max(size, 1.0)))
                       for kind in kinds]
        machine, chosen = self._tabled([[base | choice] for choice in choices])
        self._note(machine, "" if chosen == 0 else " of " + str(choices[chosen].get("dram_type",
                                                                                      choices[chosen]["kind"])))
        return machine.levels[-1].energy  # type: ignore[union-attr]

    def compute(self, width_bits: int) -> Compute:
        """Return the compute unit, for words of this width."""
        kind = "fp" if "fp" in self.kind.lower() else "int"
        machine, _ = self._tabled([[]], {"name": self.name, "type": kind, "width_bits": width_bits})
        self._note(machine)
        return replace(machine.compute, name=self.name)

    @property
    def _nanometres(self) -> int | None:
        found = re.search(r"\d+", self.technology)
        return None if found is None else int(found.group())

    def _note(self, machine: Accelerator, kind: str = "") -> None:
        asked = self._nanometres
        other = f" (the file says {self.technology})" if asked is not None and asked not in TECHNOLOGIES else ""
        self.node.approximated(f"energy of {self.name} from our {machine.technology} table{kind}{other}; {self.better}")

    def _tabled(self, choices: Sequence[Sequence[Mapping[str, Any]]],
                compute: dict[str, Any] | None = None) -> tuple[Accelerator, int]:
        """Return a machine of the first levels that the nearest technology we know has figures for, and which."""
        asked = self._nanometres
        nearest = min(TECHNOLOGIES, key=lambda known: abs(known - (DEFAULT_TECHNOLOGY if asked is None else asked)))
        outermost = {"memory": "outermost", "keeps": list(ROLES), "kind": "dram", "dram_type": "LPDDR4"}
        refused: InputError | None = None
        for index, levels in enumerate(choices):
            tree = {"name": "looked up", "technology": TECHNOLOGIES[nearest], "frequency_mhz": self.frequency_mhz,
                    "word_bits": {"inputs": 8, "weights": 8, "outputs": 8},
                    "leakage": "omitted", "levels": [outermost, *levels],
                    "compute": compute or {"name": "MAC", "energy_pj_per_mac": 0.0, "area_um2": 0.0,
                                           "leakage_mw": 0.0}}
            try:
                return load_accelerator(_yaml(tree)), index
            except InputError as error:
                refused = refused or error
        assert refused is not None
        raise self.node.fail(f"must have an energy that our tables know: {refused.rule}", refused.given,
                             self.better[:1].upper() + self.better[1:]) from None


def _yaml(tree: Mapping[str, Any]) -> str:
    out = StringIO()
    YAML(typ="safe", pure=True).dump(dict(tree), out)
    return out.getvalue()
