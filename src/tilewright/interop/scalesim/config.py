"""SCALE-Sim's configuration files: what they say of an array, as a machine of ours."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.base import InputError, read_text, unknown_name, whole_of
from tilewright.cost import SYSTOLIC_DATAFLOWS, SYSTOLIC_RESTING, SystolicArray, SystolicMemories
from tilewright.hardware import Accelerator, load_accelerator
from tilewright.interop.notes import Note, Notes
from tilewright.interop.signs import ARRAY

MEMORIES = {"inputs": "IfmapSRAM", "weights": "FilterSRAM", "outputs": "OfmapSRAM"}
SIZES = {"inputs": "IfmapSramSzkB", "weights": "FilterSramSzkB", "outputs": "OfmapSramSzkB"}
_PLACED = ("ifmapoffset", "filteroffset", "ofmapoffset", "memorybanks", "onchipmemorybanks", "onchipmemorybankports",
           "readrequestbuffer", "writerequestbuffer", "ifmapsrambankbandwidth", "ifmapsrambanknum", "ifmapsrambankport",
           "filtersrambankbandwidth", "filtersrambanknum", "filtersrambankport")
"""Layouts and banks, which stood among the architecture's settings before they had a section of their own."""
_KNOWN = {("general", "run_name"), ("run_presets", "interfacebandwidth"),
          *((ARRAY, name) for name in ("bandwidth", "arrayheight", "arraywidth", "dataflow")),
          *((ARRAY, name.lower()) for name in SIZES.values()),
          *((section, name) for section in (ARRAY, "layout") for name in _PLACED),
          *(("sparsity", name) for name in ("sparserep", "optimizedmapping", "blocksize", "randomnumbergeneratorseed"))}
"""Settings that are read, and those of which nothing is lost: they only matter where a switch below is on."""
_SWITCHES = {
    "ifmapcustomlayout": "the layout of words in banks, and the conflicts that come of it",
    "filtercustomlayout": "the layout of words in banks, and the conflicts that come of it",
    "sparsitysupport": "compressed weights; the ratios that the topology names are kept as densities of the weights",
    "useramulatortrace": "the latencies of Ramulator",
}
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class ScaleSimConfig:
    """What a configuration says of the machine."""

    name: str
    rows: int
    columns: int
    sram_kb: tuple[int, int, int]
    """Kibibytes of the memories of inputs (ifmap), weights (filter) and outputs (ofmap), both halves together."""
    dataflow: str
    bandwidth: int | None = None
    """Words a cycle that DRAM moves for each of them; None where SCALE-Sim is to say what is wanted (``CALC``)."""

    def array(self) -> SystolicArray:
        """Return the machine as the systolic model takes it."""
        return SystolicArray(self.rows, self.columns, self.dataflow,
                             SystolicMemories(*(1024 * size for size in self.sram_kb)), (self.bandwidth,) * 3)

    def accelerator(self, where: str = "") -> Accelerator:
        """Return the machine in our nouns: DRAM, a memory for each tensor, the array, what rests in its elements.

        Energies and areas are those of the technology ``45nm``, words have 8 bits, a cycle is a nanosecond.

        Raises an `InputError` if a memory is of a size that the technology does not know; ``where`` is what it names.
        """
        rate = ("" if self.bandwidth is None else
                f", bandwidth_words_per_cycle: {{read: {2 * self.bandwidth}, write: {self.bandwidth}}}")
        lines = [f"name: {_quoted(self.name)}", "technology: 45nm", "frequency_mhz: 1000",
                 "word_bits: {inputs: 8, weights: 8, outputs: 8}", "levels:",
                 f"- {{memory: DRAM, keeps: [inputs, weights, outputs], kind: dram, dram_type: LPDDR4{rate}}}"]
        for (role, name), size in zip(MEMORIES.items(), self.sram_kb, strict=True):
            lines.append(f"- {{memory: {name}, keeps: [{role}], kind: sram, capacity_bytes: {1024 * size}, "
                         "buffering: double}")
        lines += [f"- {{fanout: PEs, shape: [{self.columns}, {self.rows}], multicast: true, "
                  f"reduce: {'false' if self.dataflow == 'os' else 'true'}}}",
                  f"- {{memory: PERegister, keeps: [{SYSTOLIC_RESTING[self.dataflow]}], kind: registers, "
                  "capacity_bytes: 1, buffering: buffet}", "compute: {name: MAC, type: int, width_bits: 8}"]
        try:
            return load_accelerator("\n".join(lines) + "\n")
        except InputError as error:
            raise InputError(where or error.field, error.rule, error.given, error.mend) from None


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


@dataclass
class _Setting:
    section: str
    name: str
    value: str
    line: int


@dataclass
class _File:
    """The settings of a file by section and name, both in lower case, and the notes of reading them."""

    label: str
    settings: dict[tuple[str, str], _Setting]
    notes: Notes = field(default_factory=Notes)

    def where(self, setting: _Setting) -> str:
        return f"{self.label}:{setting.line} {setting.section}.{setting.name}"

    def dropped(self, setting: _Setting, text: str) -> None:
        self.notes.dropped(self.where(setting), text)

    def setting(self, section: str, name: str) -> _Setting:
        found = self.settings.get((section.lower(), name.lower()))
        if found is None:
            raise InputError(f"{self.label} {section}.{name}", "must be given", None,
                             f"Write {name} : ... below [{section}]")
        return found

    def whole(self, section: str, name: str) -> int:
        setting = self.setting(section, name)
        number = whole_of(setting.value, 1, _LARGEST)
        if number is None:
            raise InputError(self.where(setting), f"must be a whole number from 1 to {_LARGEST}", setting.value)
        return number


def parse_settings(path: Path) -> _File:
    """Return the settings of a configuration file with their lines.

    Raises an `InputError` if the file cannot be read, a line is neither a section, a setting nor a comment, or one
    stands twice.
    """
    section = ""
    found: dict[tuple[str, str], _Setting] = {}
    for number, raw in enumerate(read_text(path).splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        head = re.fullmatch(r"\[([^\]]+)\]", line)
        if head:
            section = head[1].strip()
            continue
        parts = re.fullmatch(r"([^:=]+?)\s*[:=]\s*(.*)", line)
        if parts is None or not section:
            raise InputError(f"{path.name}:{number}", "must be a [section], then NAME : VALUE", line)
        setting = _Setting(section, parts[1].strip(), parts[2].strip(), number)
        key = section.lower(), setting.name.lower()
        if key in found:
            raise InputError(f"{path.name}:{number} {section}.{setting.name}",
                             f"must be given once; it also stands in line {found[key].line}", setting.value)
        found[key] = setting
    return _File(path.name, found)


def read_config(path: str | Path) -> tuple[ScaleSimConfig, tuple[Note, ...]]:
    """Read a configuration file, and tell what could not be honoured in full.

    Raises an `InputError` with file and line, if something is missing or wrong.
    """
    file = parse_settings(Path(path))
    if not any(section == ARRAY for section, _ in file.settings):
        raise InputError(f"{file.label}:1", f"must have a section [{ARRAY}]")
    flow = file.setting(ARRAY, "Dataflow")
    if flow.value.lower() not in SYSTOLIC_DATAFLOWS:
        error = unknown_name("dataflow", flow.value, list(SYSTOLIC_DATAFLOWS))
        raise InputError(file.where(flow), f"must be one of {', '.join(SYSTOLIC_DATAFLOWS)}", flow.value, error.mend)
    first = _is_first(file)
    inputs, weights, outputs = (file.whole(ARRAY, name.removesuffix("kB") if first else name)
                                for name in SIZES.values())
    named = file.settings.get(("general", "run_name"))
    config = ScaleSimConfig((named.value.strip("\"'") if named else "") or Path(path).stem,
                            file.whole(ARRAY, "ArrayHeight"), file.whole(ARRAY, "ArrayWidth"),
                            (inputs, weights, outputs), flow.value.lower(), _bandwidth(file))
    _note_the_rest(file)
    return config, tuple(file.notes)


def _is_first(file: _File) -> bool:
    """Whether a file is of version 1, which names memories without their unit and never waits for DRAM."""
    names = {name for section, name in file.settings if section == ARRAY}
    return "ifmapsramsz" in names and "ifmapsramszkb" not in names


def _bandwidth(file: _File) -> int | None:
    mode = file.settings.get(("run_presets", "interfacebandwidth"))
    if mode is None:
        if not _is_first(file):
            file.notes.approximated(f"{file.label} run_presets.InterfaceBandwidth",
                                    "not given; taken as CALC, which never waits for DRAM")
        return None
    if mode.value.upper() not in ("CALC", "USER"):
        raise InputError(file.where(mode), "must be CALC or USER", mode.value)
    if mode.value.upper() == "CALC":
        return None
    setting = file.setting(ARRAY, "Bandwidth")
    rates = [part.strip() for part in setting.value.split(",")]
    first = whole_of(rates[0], 1, _LARGEST)
    if first is None or any(whole_of(rate, 1, _LARGEST) is None for rate in rates):
        raise InputError(file.where(setting), "must be whole numbers of words a cycle, from 1", setting.value)
    if len(set(rates)) > 1:
        file.dropped(setting, "all but the first bandwidth, which SCALE-Sim takes for every tensor")
    return first


def _note_the_rest(file: _File) -> None:
    """Tell what of the file means something that is not modelled."""
    first = {(ARRAY, name.lower().removesuffix("kb")) for name in SIZES.values()} if _is_first(file) else set()
    for key, setting in file.settings.items():
        if key in _KNOWN or key in first:
            continue
        if key[1] in _SWITCHES:
            if setting.value.lower() not in ("true", "false"):
                raise InputError(file.where(setting), "must be True or False", setting.value)
            if setting.value.lower() == "true":
                file.dropped(setting, _SWITCHES[key[1]])
        elif key == ("network_presets", "topologycsvloc"):
            file.dropped(setting, "the topology is named beside the configuration")
        else:
            file.dropped(setting, "not a setting that is modelled")
