"""Networks and machines as SCALE-Sim's topologies and configurations."""

import re
from dataclasses import dataclass, field
from math import ceil

from tilewright.base import InputError, free_name
from tilewright.cost import SYSTOLIC_RESTING, SystolicProduct, systolic_array
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.interop.formats import Foreign, ForeignText
from tilewright.interop.notes import Notes
from tilewright.interop.scalesim.config import SIZES, ScaleSimConfig
from tilewright.interop.scalesim.topology import DEPTHWISE
from tilewright.interop.signs import CONVOLUTION, PRODUCT
from tilewright.workload import Graph, MacNode, Operator

_DEFAULT_KB = 64


def dump_scalesim(made: Foreign) -> ForeignText:
    """Return what there is of a network and a machine as SCALE-Sim's files, for versions 2 and 3; mappings it has none.

    Convolutions and products do not go into one file.

    Raises an `InputError` if there is neither, no layer can be written, or the machine has not one array.
    """
    if made.graph is None and made.accelerator is None:
        raise InputError("scale-sim", "must be written of a network or an accelerator", "neither")
    files: dict[str, str] = {}
    notes = Notes()
    if made.graph is not None:
        files |= _topologies(made.graph, notes)
    if made.accelerator is not None:
        files["scale.cfg"] = _config_text(_config(made.accelerator, notes))
    for name, given in (("mappings", made.mappings or None), ("constraints", made.constraints)):
        if given is not None:
            notes.dropped(name, "SCALE-Sim maps by its dataflow alone")
    return ForeignText(files, tuple(notes))


def _config(accelerator: Accelerator, notes: Notes) -> ScaleSimConfig:
    """Return what a configuration says of a machine with one array."""
    name = accelerator.name
    dataflow = _dataflow(accelerator)
    array = systolic_array(accelerator, dataflow or "os")
    if dataflow is None:
        notes.approximated(name, "output-stationary: no memory inside the array keeps one tensor alone")
    words = array.memories.inputs, array.memories.weights, array.memories.outputs
    sizes = [_DEFAULT_KB if count is None else max(1, ceil(count / 1024)) for count in words]
    if any(count is not None and count != 1024 * size for count, size in zip(words, sizes, strict=True)):
        notes.approximated(name, "memories of whole kibibytes of 8-bit words: "
                           + ", ".join(f"{memory} {size}" for memory, size in zip(SIZES.values(), sizes, strict=True)))
    if None in words:
        notes.approximated(name, f"tensors without a memory of their own outside the array get {_DEFAULT_KB} KiB")
    rate = array.shared_bandwidth or array.bandwidths[2]
    config = ScaleSimConfig(" ".join(name.split()), array.rows, array.columns,
                            (sizes[0], sizes[1], sizes[2]), array.dataflow,
                            None if rate is None else max(1, ceil(rate)))
    try:
        alike = config.accelerator() == accelerator
    except InputError:
        alike = False
    if not alike:
        notes.dropped(name, "levels other than the array and a memory for each tensor, energies, areas, frequency, and "
                            "bandwidths other than one of DRAM for each tensor")
    return config


def _dataflow(accelerator: Accelerator) -> str | None:
    """Return the dataflow of the one tensor that rests inside the array, None where that is none or several."""
    arrays = [level for level in accelerator.levels if isinstance(level, Fanout)]
    inside = accelerator.levels[accelerator.levels.index(arrays[-1]) + 1:] if arrays else ()
    kept = {role for level in inside if isinstance(level, Memory) for role in SYSTOLIC_RESTING.values()
            if level.can_keep(role[0].upper(), role)}
    return next((flow for flow, role in SYSTOLIC_RESTING.items() if kept == {role}), None)


def _config_text(config: ScaleSimConfig) -> str:
    lines = ["[general]", f"run_name = {config.name}", "", "[architecture_presets]", f"ArrayHeight : {config.rows}",
             f"ArrayWidth : {config.columns}"]
    lines += [f"{name} : {size}" for name, size in zip(SIZES.values(), config.sram_kb, strict=True)]
    lines += ["IfmapOffset : 0", "FilterOffset : 10000000", "OfmapOffset : 20000000",
              f"Dataflow : {config.dataflow}", f"Bandwidth : {config.bandwidth or 10}", "ReadRequestBuffer : 32",
              "WriteRequestBuffer : 32", "", "[layout]"]
    for name in ("Ifmap", "Filter"):
        lines += [f"{name}CustomLayout : False", f"{name}SRAMBankBandwidth : {config.bandwidth or 10}",
                  f"{name}SRAMBankNum : 1", f"{name}SRAMBankPort : 2"]
    lines += ["", "[sparsity]", "SparsitySupport : false", "SparseRep : ellpack_block", "OptimizedMapping : false",
              "BlockSize : 8", "RandomNumberGeneratorSeed : 40", "", "[run_presets]",
              f"InterfaceBandwidth : {'CALC' if config.bandwidth is None else 'USER'}", "UseRamulatorTrace : False"]
    return "\n".join(lines) + "\n"


def _topologies(graph: Graph, notes: Notes) -> dict[str, str]:
    """Return a network as a topology, or two."""
    writer = _Writer(notes)
    notes.others(graph)
    for node in graph.mac_nodes:
        writer.layer(node)
    if not writer.convolutions and not writer.products:
        raise InputError(graph.name, "must have a convolution or matrix product to be written as a topology")
    name = re.sub(r"[^\w .()-]+", "_", graph.name).strip() or "topology"
    both = bool(writer.convolutions and writer.products)
    files = {}
    if writer.convolutions:
        files[f"{name}.csv"] = _table(CONVOLUTION, writer.convolutions)
    if writer.products:
        files[f"{name}{'-products' if both else ''}.csv"] = _table(PRODUCT, writer.products)
    if both:
        notes.approximated(graph.name, "two files, as SCALE-Sim reads convolutions and products apart; their "
                                  "order is lost")
    return files


@dataclass(frozen=True)
class _Line:
    name: str
    cells: tuple[int, ...]
    ratio: str | None


def _table(columns: tuple[str, ...], lines: list[_Line]) -> str:
    """Return a topology; strides of columns and ratios have a column where a layer needs one."""
    head = ["Layer name" if columns is CONVOLUTION else "Layer", *columns]
    wide = any(len(line.cells) > len(columns) for line in lines)
    if wide:
        head[-1:] = ["Stride Height", "Stride Width"]
    if any(line.ratio for line in lines):
        head.append("Sparsity")
    rows = [", ".join(head) + ","]
    for line in lines:
        cells = [line.name, *map(str, line.cells)]
        if wide and len(line.cells) == len(columns):
            cells.append(cells[-1])
        if any(each.ratio for each in lines):
            cells.append(line.ratio or "1:1")
        rows.append(", ".join(cells) + ",")
    return "\n".join(rows) + "\n"


@dataclass
class _Writer:
    notes: Notes
    convolutions: list[_Line] = field(default_factory=list)
    products: list[_Line] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def layer(self, node: MacNode) -> None:
        """Write a layer as a convolution where it is one that SCALE-Sim has, otherwise as a product."""
        operator = node.operator
        if node.count > 1:
            self.notes.approximated(operator.name, f"written once; it runs {node.count} times")
        if operator.kind in ("conv", "depthwise") and self._convolution(operator):
            return
        try:
            product = SystolicProduct.of(operator)
        except InputError as error:
            self.notes.dropped(operator.name, f"{error.rule}")
            return
        if operator.kind != "matmul":
            self.notes.approximated(operator.name, "written as a matrix product: its windows are not told")
        if product.count > 1:
            self.notes.approximated(operator.name, f"one of {product.count} products alike")
        self.products.append(_Line(self._name(operator.name), (product.m, product.n, product.k),
                                   self._ratio(operator)))

    def _name(self, name: str, depthwise: bool | None = None) -> str:
        """Return a name that SCALE-Sim reads as one cell; of a convolution, as depthwise only where it is."""
        plain = re.sub(r"[,\r\n]+", "_", name).strip() or "layer"
        if depthwise and DEPTHWISE not in plain:
            plain = f"{plain}_{DEPTHWISE}"
        if depthwise is False:
            plain = plain.replace(DEPTHWISE, "_".join(DEPTHWISE))
        free = free_name(plain, self.names)
        self.names.add(free)
        if free != name:
            self.notes.approximated(name, f"called {free}")
        return free

    def _ratio(self, operator: Operator) -> str | None:
        for tensor in operator.tensors:
            if tensor.role != "weights" and tensor.density < 1:
                self.notes.dropped(operator.name, f"the density of {tensor.name}")
        weights = next((tensor for tensor in operator.operands if tensor.role == "weights"), None)
        if weights is None or weights.density == 1:
            return None
        if weights.structure is None:
            self.notes.dropped(operator.name, f"a density of {weights.name} that is no ratio")
            return None
        return f"{weights.structure[0]}:{weights.structure[1]}"

    def _convolution(self, operator: Operator) -> bool:
        """Write a two-dimensional convolution without dilation, dense or depthwise; False where it is none."""
        sizes, inputs = operator.sizes, operator.operands[0]
        sliding = [axis for axis in inputs.axes if len(axis.terms) > 1]
        steps = {name: scale for axis in sliding for name, scale in axis.terms}
        groups = sizes.get("G", 1)
        if (len(sliding) != 2 or not {"K", "C", "P", "Q", "R", "S"} <= set(sizes)
                or steps.get("R") != 1 or steps.get("S") != 1 or (groups > 1 and sizes["C"] > 1)):
            return False
        depthwise = groups > 1 or None if sizes["C"] == 1 else False
        if sizes.get("N", 1) > 1:
            self.notes.approximated(operator.name, f"one of a batch of {sizes['N']}")
        known = dict(operator.attributes)
        extents = [self._extent(known, index, sizes[out], sizes[kernel], steps[out])
                   for index, (out, kernel) in enumerate((("P", "R"), ("Q", "S")))]
        strides = (steps["P"],) if steps["P"] == steps["Q"] else (steps["P"], steps["Q"])
        ratio = self._ratio(operator)
        if len(strides) > 1:
            self.notes.approximated(operator.name, "a stride for columns of its own, which version 3 does not read")
        self.convolutions.append(_Line(
            self._name(operator.name, depthwise),
            (*extents, sizes["R"], sizes["S"], groups * sizes["C"], sizes["K"], *strides), ratio))
        return True

    @staticmethod
    def _extent(known: dict[str, int | str], index: int, out: int, kernel: int, step: int) -> int:
        """Return rows or columns of the padded input that give as many outputs, no more than it has."""
        reach = (out - 1) * step + kernel
        if "in_size" not in known or "padding" not in known:
            return reach
        sides = [int(side) for side in str(known["padding"]).split("x")[index].split(":")]
        given = int(str(known["in_size"]).split("x")[index]) + (2 * sides[0] if len(sides) == 1 else sum(sides))
        return given if reach - step < given < reach and given >= kernel else reach
