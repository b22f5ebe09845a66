"""AccelForge's architectures: components and fan-outs of a hierarchy, made a machine.

There a second is the unit of time, and energies, sizes and rates are of bits unless an action says more. The clock here
is the rate of the compute unit, which begins one operation a cycle.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.base import InputError
from tilewright.hardware import Accelerator, AccessEnergy, Bandwidth, Compute, Fanout, Memory, Merging
from tilewright.interop.accelforge.workload import Einsums, Sets, chosen
from tilewright.interop.figures import Estimated
from tilewright.interop.sections import Node, Section
from tilewright.workload import ROLES, Operator

WORD_BITS = 8
"""Width of words where no workload states any."""
FREQUENCY_HZ = 1e9
"""The clock where the compute unit has no rate."""
_SHARED = re.compile(r"\s*sum\(\s*a\.n_calls\s+for\s+a\s+in\s+actions\s*\)\s*(/.+)")
_SUM = re.compile(r"\s*sum\(\s*a\.n_calls\s*/\s*a\.throughput\s+for\s+a\s+in\s+actions\s*\)\s*")
_MAX = re.compile(r"\s*max\(\s*a\.n_calls\s*/\s*a\.throughput\s+for\s+a\s+in\s+actions\s*\)\s*")
_COMPONENT = {"!", "name", "component_class", "size", "tensors", "actions", "spatial", "leak_power", "area",
              "total_latency", "enabled", "extra_attributes_for_component_model", "bits_per_action", "energy_scale",
              "actions_scale", "throughput_scale", "area_scale", "leak_power_scale", "skip_initial_output_write"}
_SPATIAL = {"name", "fanout", "may_reuse", "reuse", "min_usage", "power_gateable"}
_ALIASES = {"input": "inputs", "weight": "weights", "output": "outputs"}
Numbers = Mapping[str, Any]


def read_machine(section: Section, variables: Numbers, einsums: Einsums | None) -> Accelerator:
    """Return the machine of an ``arch`` section.

    Raises an `InputError` if something is missing or wrong, or an energy is neither given nor known.
    """
    root = section.root
    root.fields()
    root.note_unknown({"nodes", "extra_attributes_for_all_component_models", "variables"})
    names = {**variables, **root.get("variables", {}).fields(empty=True)}
    components = list(_flat(root))
    last = components[-1] if components else root
    if last.value.get("!") != "!Compute":
        raise root["nodes"].fail("must end in a !Compute")
    return _Reader(root, names, einsums, _clock(last, names)).machine(components)


def _flat(node: Node) -> Iterator[Node]:
    """Yield the components of a hierarchy, outermost first."""
    for entry in node["nodes"].items():
        kind = entry.fields().get("!")
        if kind in ("!Hierarchical", "!Array"):
            if "spatial" in entry:
                yield entry
            yield from _flat(entry)
        elif kind == "!Fork":
            entry.dropped("a branch with a compute unit of its own")
        elif kind in ("!Toll", "!Network"):
            entry.dropped("what passes through it costs nothing here")
        elif kind in ("!Memory", "!Compute", "!Container"):
            yield entry
        else:
            raise entry.fail("must be a !Memory, !Compute, !Container, !Hierarchical or !Array", kind)


def _limit(node: Node, names: Numbers) -> float | None:
    """Return a number, None where it is infinite."""
    if str(node.value).strip().lower() in ("inf", ".inf", "infinity"):
        return None
    return node.number(names)


def _clock(compute: Node, names: Numbers) -> float:
    """Return operations that one compute unit begins in a second."""
    match = _SHARED.fullmatch(str(compute["total_latency"].value or ""))
    rate: float | None
    if match is not None:
        seconds = compute.at("total_latency", f"1.0 {match[1]}").number(names)
        rate = 1 / seconds if seconds > 0 else None
    else:
        given = next((action["throughput"] for action in compute.get("actions", []).items(empty=True)
                      if action["name"].value == "compute" and "throughput" in action), None)
        rate = None if given is None else _limit(given, names)
    if rate is None:
        compute.approximated(f"no rate of the compute unit: {FREQUENCY_HZ / 1e6:g} MHz, one operation a cycle")
        return FREQUENCY_HZ
    if rate <= 0:
        raise compute.fail("must have a positive throughput", rate)
    return rate


@dataclass
class _Reader:
    root: Node
    names: Numbers
    einsums: Einsums | None
    clock: float

    def machine(self, components: list[Node]) -> Accelerator:
        """Return the machine."""
        levels: list[Memory | Fanout] = []
        kept: dict[str, frozenset[str]] = {}
        last = components[-1]
        for node in components:
            kind, name = node.value["!"], str(node["name"].value or "")
            if not name:
                raise node.fail("must have a name")
            node.note_unknown({*_COMPONENT, "nodes"})
            levels += self._fanouts(node)
            if kind == "!Compute" and node is not last:
                node.dropped("a compute unit before the last one")
            elif kind == "!Memory":
                levels.append(self._memory(node, kept))
        bits = {role: self._bits(role) for role in ROLES}
        try:
            return Accelerator(self.root.section.label.rsplit(".", 1)[0], tuple(levels), self._compute(last),
                               round(self.clock / 1e6, 6), tuple(bits.items()),
                               sources=(f"read from {self.root.section.label}",))
        except InputError as error:
            raise self.root.passed_on(error) from None

    @property
    def _operators(self) -> list[Operator]:
        return [node.operator for node in self.einsums.graph.mac_nodes] if self.einsums else []

    def _bits(self, role: str) -> int:
        widths = [int(tensor.word_bits) for operator in self._operators for tensor in operator.tensors
                  if tensor.role == role and tensor.word_bits]
        return max(widths, default=WORD_BITS)

    def _roles(self, node: Node, more: Mapping[str, frozenset[str]] | None = None) -> frozenset[str]:
        """Return the roles of tensors that a set expression names, of any einsum."""
        text = str(node.value)
        found: set[str] = set()
        every = frozenset(ROLES)
        general: Sets = {"All": every, "Tensors": every, "Nothing": frozenset(), "Intermediates": frozenset(),
                         "Persistent": frozenset(), "Outputs": frozenset({"outputs"}),
                         "Inputs": every - {"outputs"}, **(more or {}),
                         **{name: frozenset({role}) for name, role in _ALIASES.items()}}
        for operator in self._operators:
            roles = {tensor.name: tensor.role for tensor in operator.tensors}
            aliases = {name: frozenset(t for t, role in roles.items() if role == meant) for name, meant in
                       _ALIASES.items()}
            others = {name: frozenset(t for t, role in roles.items() if role in held)
                      for name, held in (more or {}).items()}
            assert self.einsums is not None
            sets = {**aliases, **self.einsums.sets[operator.name], **others}
            found |= {roles[name] for name in chosen(node, sets, text)}
        return frozenset(found) if self._operators else chosen(node, general, text)

    def _fanouts(self, node: Node) -> Iterator[Fanout]:
        """Yield an array for each pair of fan-outs that share as much, outermost first."""
        entries = node.get("spatial", []).items(empty=True)
        made: list[tuple[str, int, Merging, bool]] = []
        for entry in entries:
            entry.fields()
            entry.note_unknown(_SPATIAL)
            if "reuse" in entry:
                entry["reuse"].dropped("spatial loops only over what these tensors do not use: any may run here")
            if entry["min_usage"].value:
                entry["min_usage"].dropped("the least share of lanes in use: --constraints can ask for it")
            given = next((entry[name] for name in ("may_reuse", "reuse") if name in entry), replace(entry, value="All"))
            shared = self._roles(given)
            operands = shared & {"inputs", "weights"}
            multicast: Merging = len(operands) == 2 if len(operands) != 1 else tuple(
                (role, role in operands) for role in ("inputs", "weights"))
            made.append((str(entry["name"].value), entry["fanout"].whole(self.names), multicast, "outputs" in shared))
        name = str(node["name"].value)
        while made:
            first, *rest = made
            pair = [first, rest[0]] if rest and rest[0][2:] == first[2:] else [first]
            made = made[len(pair):]
            label = f"{name}_{'_by_'.join(one[0] for one in pair)}"
            yield Fanout(label, (first[1], pair[1][1] if len(pair) > 1 else 1), first[2], first[3])

    def _memory(self, node: Node, kept: dict[str, frozenset[str]]) -> Memory:
        tensors = node.get("tensors", {})
        tensors.fields(empty=True)
        held = self._roles(tensors["keep"], kept) if "keep" in tensors else frozenset[str]()
        if "keep" not in tensors and "may_keep" not in tensors:
            held = frozenset(ROLES)
        free = self._roles(tensors["may_keep"], kept) if "may_keep" in tensors else frozenset[str]()
        tensors.note_unknown({"keep", "may_keep", "tensor_order_options", "force_memory_hierarchy_order"})
        roles = [role for role in ROLES if role in held | free]
        if not roles:
            raise tensors.fail("must let the memory keep some tensor", str(tensors.value))
        kept[str(node["name"].value)] = held
        if held and free - held:
            tensors.approximated(f"{', '.join(sorted(held))} must be kept, the others may: here all of them may")
        word = min(self._bits(role) for role in roles)
        size = _limit(self._sized(node["size"]), self.names) if "size" in node else None
        capacity = None if size is None else size / 8
        scale = self._scaled(node, "area"), self._scaled(node, "leak_power")
        return Memory(str(node["name"].value), tuple(roles), self._access(node, word, capacity), capacity,
                      word_bits=word, bandwidth=self._bandwidth(node, word), buffering="buffet",
                      always=not free - held, area_um2=scale[0] * 1e12, leakage_mw=scale[1] * 1e3)

    def _sized(self, node: Node) -> Node:
        """Return a size whose widths of tensors, ``weight.bits_per_value``, are numbers."""
        if not isinstance(node.value, str):
            return node
        text = re.sub(r"\b(input|weight|output)\.bits_per_value", lambda m: str(self._bits(_ALIASES[m[1]])), node.value)
        return replace(node, value=re.sub(r"\b(if )(input|weight|output)\b", r"\g<1>1", text))

    def _scaled(self, node: Node, name: str) -> float:
        if node[name].value is None:
            return 0.0
        return node[name].number(self.names) * self._factor(node, f"{name}_scale")

    def _factor(self, node: Node, name: str) -> float:
        return node[name].number(self.names) if name in node else 1.0

    def _action(self, node: Node, name: str) -> Node | None:
        return next((action for action in node.get("actions", []).items(empty=True)
                     if action["name"].value == name), None)

    def _bits_of(self, node: Node, action: Node | None) -> float:
        given = next((one["bits_per_action"] for one in (action, node) if one is not None and "bits_per_action" in one),
                     None)
        bits = 1.0 if given is None else given.number(self.names)
        if bits <= 0:
            raise (given or node).fail("must be positive", bits)
        return bits

    def _access(self, node: Node, word: int, capacity: float | None) -> AccessEnergy:
        found = []
        scale = self._factor(node, "energy_scale") * self._factor(node, "actions_scale")
        for name in ("read", "write"):
            action = self._action(node, name)
            if action is None or "energy" not in action:
                return self._estimated(node).access(capacity, word) if node["component_class"].value != "Dummy" else (
                    AccessEnergy(0.0, 0.0, 0.0, 0.0))
            energy = action["energy"].not_negative(self.names)
            found.append(energy * 1e12 * word / self._bits_of(node, action) * scale)
        read, write = found
        return AccessEnergy(read, write, write, read)

    def _estimated(self, node: Node) -> Estimated:
        text = str(node["component_class"].value or "")
        kind = "DRAM" if re.search(r"(?i)ddr|hbm|dram", text) else text or "SRAM"
        extra = self.root.get("extra_attributes_for_all_component_models", {})
        metres = extra["tech_node"].number(self.names) if "tech_node" in extra else 0.0
        return Estimated(node, str(node["name"].value), kind, f"{metres * 1e9:.0f}nm" if metres else "",
                         self.clock / 1e6, "the file would give it as energy of its actions")

    def _rate(self, node: Node, name: str, word: int) -> float | None:
        """Return the words a cycle of an action; None is unlimited, as where the file leaves it to a model."""
        action = self._action(node, name)
        if action is None or "throughput" not in action:
            return None
        rate = _limit(action["throughput"], self.names)
        if rate is not None and rate <= 0:
            raise action["throughput"].fail("must be positive", rate)
        scale = self._factor(node, "throughput_scale") / self._factor(node, "actions_scale")
        return None if rate is None else rate * scale * self._bits_of(node, action) / word / self.clock

    def _bandwidth(self, node: Node, word: int) -> Bandwidth:
        text = str(node["total_latency"].value or "sum(a.n_calls / a.throughput for a in actions)")
        shared = _SHARED.fullmatch(text)
        if shared is not None:
            seconds = node.at("total_latency", f"1.0 {shared[1]}").number(self.names)
            bits = self._bits_of(node, self._action(node, "read"))
            return Bandwidth(shared=bits / word / self.clock / seconds if math.isfinite(seconds) and seconds else None)
        read, write = (self._rate(node, name, word) for name in ("read", "write"))
        if _MAX.fullmatch(text):
            return Bandwidth(read, write)
        if _SUM.fullmatch(text) is None:
            raise node["total_latency"].fail("must be the sum or max of a.n_calls / a.throughput for a in actions, or "
                                             "the sum of a.n_calls over a rate", text)
        known = [rate for rate in (read, write) if rate is not None]
        if len(known) == 1:
            return Bandwidth(read, write)
        if known and read != write:
            node["actions"].approximated("reads and writes that take turns at two rates: both at the lower one")
        return Bandwidth(shared=min(known)) if known else Bandwidth()

    def _compute(self, node: Node) -> Compute:
        action, name = self._action(node, "compute"), str(node["name"].value)
        area, leakage = self._scaled(node, "area") * 1e12, self._scaled(node, "leak_power") * 1e3
        if action is not None and "energy" in action:
            scale = self._factor(node, "energy_scale") * self._factor(node, "actions_scale")
            return Compute(name, action["energy"].number(self.names) * 1e12 * scale, area, leakage)
        if node["component_class"].value == "Dummy":
            return Compute(name, 0.0, area, leakage)
        width = node.get("extra_attributes_for_component_model", {})["multiplier_width"]
        return self._estimated(node).compute(WORD_BITS if width.value is None else width.whole(self.names))
