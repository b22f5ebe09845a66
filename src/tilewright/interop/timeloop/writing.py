"""An operator, an accelerator, a mapping and constraints as Timeloop's YAML, version 0.4, with an ERT and ART."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.tag import Tag

from tilewright.base import InputError, yaml_flow, yaml_text
from tilewright.hardware import Accelerator, Fanout, Memory
from tilewright.interop.formats import ForeignText
from tilewright.interop.notes import Notes
from tilewright.interop.timeloop.sparsity import sparse_groups
from tilewright.mapping import ANY, Bounds, Constraints, LevelLoops, compression, extents_at, kept_tensors, lanes
from tilewright.mapping import Mapping as Nest
from tilewright.workload import Operator

VERSION = "0.4"
SIDES = ("X", "Y")
COMPUTE_CLASS = "intmac"
Tree = dict[str, Any]
Trees = dict[str, tuple[str, Any]]
"""Files by name: the name of their section, and its tree."""


@dataclass
class Writer:
    """Writes one machine and what is mapped onto it; memories with partitions become one component for each."""

    operator: Operator
    accelerator: Accelerator
    parted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Arrays written as an array along one side of arrays along the other, since a dimension spreads along both."""
    notes: Notes = field(default_factory=Notes)
    remainders: bool = False
    """Whether what is written can have remainders."""

    @property
    def cycle_seconds(self) -> float:
        """Seconds of a cycle."""
        return float(f"{1e-6 / self.accelerator.frequency_mhz:.12g}")

    def about_operator(self) -> None:
        """Note what Timeloop cannot read of the operator."""
        long = [name for name in self.operator.sizes if len(name) > 1]
        if long:
            self.notes.approximated("problem.dimensions", f"{', '.join(long)}: Timeloop reads the dimensions of a "
                                    "permutation letter by letter; rename them to one letter each")
        for tensor in self.operator.tensors:
            if tensor.structure and tensor.density < 1:
                self.notes.approximated(f"problem.{tensor.name}", f"{':'.join(map(str, tensor.structure))} as a fixed "
                                        f"structure of density {tensor.density:g}")

    def components(self, memory: Memory) -> list[tuple[str, tuple[str, ...], float | None]]:
        """Return name, tensors and bytes of what a memory is made of; its loops stand at the last."""
        able = [t for t in self.operator.tensors if memory.can_keep(t.name, t.role)]
        if not memory.partitions_bytes:
            return [(memory.name, tuple(t.name for t in able), memory.capacity_bytes)]
        owners = dict(memory.partitions_bytes)
        found: list[tuple[str, tuple[str, ...], float | None]] = []
        shared = tuple(t.name for t in able if t.name not in owners and t.role not in owners)
        for owner, room in memory.partitions_bytes:
            names = tuple(t.name for t in able if owner in (t.name, t.role))
            if names:
                found.append((f"{memory.name}_{owner}", names, room))
        if shared:
            found.append((f"{memory.name}_shared", shared, memory.capacity_bytes))
        return found

    def arrays(self, fanout: Fanout) -> list[tuple[str, dict[str, int], tuple[str, ...]]]:
        """Return name, mesh and sides of what a fan-out is written as."""
        x, y = fanout.shape
        if fanout.shape == (1, 1):
            return []
        if fanout.name in self.parted:
            return [(f"{fanout.name}_{side}", {f"mesh{side}": x if side == "X" else y}, (side,))
                    for side in self.parted[fanout.name]]
        return [(fanout.name, {"meshX": x, "meshY": y}, SIDES)]

    def architecture(self) -> Tree:
        """Return the ``architecture`` section."""
        machine, zeros = self.accelerator, self.zeros()
        everything = {t.name for t in self.operator.tensors}
        nodes = [_tagged("!Container", {"name": machine.name, "attributes": {
            "technology": "45nm", "global_cycle_seconds": self.cycle_seconds}})]

        def component(name: str, kind: str, attributes: Tree, passed: set[str]) -> None:
            fields: Tree = {"name": name, "class": kind, "attributes": attributes}
            if passed:
                fields["constraints"] = {"dataspace": yaml_flow({"bypass": sorted(passed)})}
            if name in zeros:
                fields["sparse_optimizations"] = zeros[name]
            nodes.append(_tagged("!Component", fields))

        for level in machine.levels:
            if isinstance(level, Fanout):
                self.about_fanout(level)
                nodes.extend(_tagged("!Container", {"name": name, "spatial": yaml_flow(mesh)})
                             for name, mesh, _ in self.arrays(level))
                continue
            self.about_memory(level)
            for name, tensors, room in self.components(level):
                component(name, memory_class(room), self.attributes(level, room), everything - set(tensors))
        component(machine.compute.name, COMPUTE_CLASS, self.compute_attributes(), set())
        return {"version": VERSION, "nodes": nodes}

    def zeros(self) -> dict[str, dict[str, Any]]:
        """Return what each component makes of zeros."""
        names = {memory.name: [(name, tensors) for name, tensors, _ in self.components(memory)]
                 for memory in self.accelerator.memories}
        return sparse_groups(self.accelerator, self.operator, names, self.notes)

    def compute_attributes(self) -> Tree:
        """Return the attributes of the compute unit, and note what Timeloop cannot say of words."""
        self.notes.lanes(self.operator, self.accelerator)
        return {"width": dict(self.accelerator.word_bits)["inputs"]}

    def attributes(self, memory: Memory, room: float | None) -> Tree:
        """Return what a component of a memory is described by."""
        ports = memory.bandwidth
        gathered, cluster = memory.access_grain
        block = memory.block_words * gathered
        fields: Tree = {"width": memory.word_bits * block * cluster, "datawidth": memory.word_bits}
        if cluster > 1:
            fields["cluster_size"] = cluster
        if room is not None:
            fields["depth"] = int(room * 8 // (memory.word_bits * block))
        fields |= {f"{name}_bandwidth": rate for name, rate in
                   (("read", ports.read), ("write", ports.write), ("shared", ports.shared)) if rate is not None}
        if memory.buffering == "double":
            fields["multiple_buffering"] = 2
        return fields

    def about_memory(self, memory: Memory) -> None:
        """Note what Timeloop cannot say of a memory."""
        if memory.buffering == "single":
            self.notes.approximated(memory.name, "transfers overlap compute in Timeloop; here they block it")
        self.notes.widths(self.operator, self.accelerator, memory)
        if len(self.components(memory)) > 1 and (memory.bandwidth != type(memory.bandwidth)()):
            self.notes.approximated(memory.name, "each partition has the ports of the whole memory")
        for name, _, room in self.components(memory):
            block = memory.block_words * memory.access_grain[0]
            if room is not None and room * 8 / memory.word_bits % block:
                self.notes.approximated(name, f"whole blocks of {block} words: the rest is left out")

    def about_fanout(self, fanout: Fanout) -> None:
        """Note what Timeloop cannot say of an array."""
        if (fanout.multicast, fanout.reduce) != (True, True):
            self.notes.dropped(fanout.name, "Timeloop's networks multicast and reduce by themselves")
        if fanout.network_energy_pj_per_word:
            self.notes.dropped(fanout.name, "the energy of the network")
        if fanout.one_piece:
            self.notes.approximated(fanout.name, "an array of one shape, as Timeloop has none that change")

    def tables(self) -> dict[str, tuple[str, Tree]]:
        """Return the files of energies of an access (``ERT``) and areas of one instance (``ART``)."""
        machine, cycle_ns = self.accelerator, 1e3 / self.accelerator.frequency_mhz
        rows: list[tuple[str, dict[str, float], float]] = []
        for memory in machine.memories:
            made, count = self.components(memory), machine.instances(memory.name)
            e, words = memory.energy, memory.block_words * prod(memory.access_grain)
            rows += [(f"{name}[1..{count}]", {
                "read": e.read_pj * words, "write": e.fill_pj * words, "update": e.update_pj * words,
                "leak": memory.leakage_mw * cycle_ns / len(made)}, memory.area_um2 / len(made)) for name, _, _ in made]
        compute = machine.compute
        rows.append((f"{compute.name}[1..{machine.compute_instances}]", {
            "compute": compute.energy_pj_per_mac, "leak": compute.leakage_mw * cycle_ns}, compute.area_um2))
        energies = [{"name": f"{machine.name}.{name}", "actions": [
            {"name": action, "arguments": {}, "energy": energy} for action, energy in actions.items()]}
            for name, actions, _ in rows]
        areas = [{"name": f"{machine.name}.{name}", "area": area} for name, _, area in rows]
        return {"ERT.yaml": ("ERT", {"version": VERSION, "tables": energies}),
                "ART.yaml": ("ART", {"version": VERSION, "tables": areas})}

    def mapping(self, nest: Nest) -> list[Tree]:
        """Return the ``mapping`` section.

        Raises an `InputError` if steps do not divide one another, which Timeloop cannot express.
        """
        self._note_refusals(nest)
        entries: list[Tree] = []
        extents = dict(self.operator.sizes)
        for level, entry in zip(self.accelerator.levels, nest.levels, strict=True):
            if isinstance(level, Fanout):
                for name, _, sides in self.arrays(level):
                    part = LevelLoops(name, tuple(loop for loop in entry.loops if (loop.axis or "X") in sides))
                    entries.append(self._spatial(part, *self._factors(part, extents)))
                continue
            factors, order = self._factors(entry, extents)
            *others, last = [name for name, _, _ in self.components(level)]
            entries += [self._directive(name, "temporal", {}, []) for name in others]
            entries.append(self._directive(last, "temporal", factors, order[::-1]))
        for level, entry in zip(self.accelerator.levels, nest.levels, strict=True):
            if isinstance(level, Memory):
                entries.extend(self._bypasses(level, entry))
        return entries

    def _note_refusals(self, nest: Nest) -> None:
        """Note what Timeloop does not take: tiles whose boxes do not fit, lanes beyond the sides of an array.

        It counts words, and of a tile all that lie between those that are touched. Compressed tiles are not looked at.
        """
        outside = extents_at(nest, self.operator.sizes)
        for level, entry, extents in zip(self.accelerator.levels, nest.levels, outside, strict=False):
            if isinstance(level, Fanout):
                for side, count, most in zip(SIDES, lanes(entry, extents), level.shape, strict=True):
                    if count > most:
                        self.notes.refused(f"mapping.{level.name}", f"{count:,} lanes along {side}, more than the "
                                           f"{most:,} of the array that is written")
                continue
            kept = {tensor.name for tensor in kept_tensors(entry, level, self.operator)
                    if compression(self.accelerator, level.name, tensor) is None}
            for name, tensors, room in self.components(level):
                words = {t.name: t.words(extents, box=True) for t in self.operator.tensors
                         if t.name in kept and t.name in tensors}
                total = sum(words.values())
                if room is not None and total > (most := self._most_words(level, room)):
                    told = ", ".join(f"{tensor} {count:,}" for tensor, count in words.items())
                    self.notes.refused(f"mapping.{name}", f"tiles of {total:,} words ({told}), more than the {most:,} "
                                       f"that {name} holds: Timeloop counts boxes, the holes of strides and dilations "
                                       "too; map with --footprint box")

    def _most_words(self, memory: Memory, room: float) -> int:
        """Return the words that a component may hold by Timeloop's count: whole blocks, half where buffered twice."""
        block = memory.block_words
        return int(room * 8 // (memory.word_bits * block)) * block // memory.copies

    def _factors(self, entry: LevelLoops, extents: dict[str, int]) -> tuple[dict[str, str], list[str]]:
        """Return ``P: 5,3`` for each loop, and their dimensions outermost first; ``extents`` move inward."""
        factors: dict[str, str] = {}
        for loop in entry.loops:
            size, extent = self.operator.sizes[loop.dimension], extents[loop.dimension]
            step = min(loop.step, extent)
            if step == extent:
                continue
            path = f"mapping.{entry.level}.{loop.dimension}"
            if extent != size and extent % step:
                raise InputError(path, "must have steps that divide one another, as Timeloop knows no others",
                                 f"{step} in {extent}", "Search with --tiling ruby or perfect")
            if loop.dimension in factors:
                raise InputError(path, "must loop once at a level, as Timeloop asks")
            count = -(-extent // step)
            last = (size - 1) // step % count + 1
            if last != count and not self.remainders:
                self.notes.approximated(path, f"{count},{last}: remainders are read by timeloop-model (--to "
                                        "timeloop-model), not by Timeloop's front end")
            factors[loop.dimension] = f"{count}" if last == count else f"{count},{last}"
            extents[loop.dimension] = step
        return factors, [loop.dimension for loop in entry.loops if loop.dimension in factors]

    def _directive(self, target: str, kind: str, factors: Mapping[str, str], order: list[str]) -> Tree:
        """Return a directive of loops, in order innermost first; what has no factor runs once, outside all others."""
        rest = [name for name in self.operator.sizes if name not in order]
        named = [f"{name}={factors.get(name, '1')}" for name in self.operator.sizes]
        return {"target": target, "type": kind, "factors": yaml_flow(named), "permutation": yaml_flow([*order, *rest])}

    def _spatial(self, entry: LevelLoops, factors: Mapping[str, str], order: list[str]) -> Tree:
        """Return a spatial directive; the split parts those along X, innermost first, from those along Y."""
        side = {loop.dimension: loop.axis or "X" for loop in entry.loops}
        across, down = ([name for name in reversed(order) if side[name] == along] for along in SIDES)
        return {**self._directive(entry.level, "spatial", factors, across + down), "split": len(across)}

    def _bypasses(self, memory: Memory, entry: LevelLoops) -> list[Tree]:
        """Return what each component keeps; without a choice, all that it can."""
        names = [t.name for t in self.operator.tensors]
        found: list[Tree] = []
        for name, tensors, _ in self.components(memory):
            kept = [t for t in names if t in tensors and (entry.keeps is None or t in entry.keeps)]
            found.append({"target": name, "type": "dataspace", "keep": yaml_flow(kept),
                          "bypass": yaml_flow([t for t in names if t not in kept])})
        return found

    def constraints(self, constraints: Constraints) -> list[Tree]:
        """Return the targets of the ``mapspace_constraints`` section."""
        targets: list[Tree] = []
        for memory in self.accelerator.memories:
            name = self.components(memory)[-1][0]
            fields: Tree = {}
            factors = self._bounds(memory.name, constraints)
            if factors:
                fields["factors"] = yaml_flow(factors)
            orders = constraints.orders.get(memory.name, ())
            if len(orders) > 1:
                self.notes.dropped(f"orders.{memory.name}", "a choice between several orders")
            elif orders:
                fields |= self._order(memory.name, orders[0])
            if fields:
                targets.append({"target": name, "type": "temporal", **fields})
            if memory.name in constraints.keeps:
                targets.extend(self._bypasses(memory, LevelLoops(memory.name, (), constraints.keeps[memory.name])))
        for fanout in self.accelerator.fanouts:
            targets.extend(self._spread(fanout, constraints))
        for place in constraints.tiles:
            self.notes.dropped(f"tiles.{place}", "bounds on tiles")
        return [*targets, *self._shares(constraints)]

    def _shares(self, constraints: Constraints) -> Iterator[Tree]:
        """Yield the least share of all lanes in use, which Timeloop asks for at the innermost memory."""
        arrays = [name for fanout in self.accelerator.fanouts for name, _, _ in self.arrays(fanout)]
        for place, share in constraints.utilization.items():
            if arrays == [place] and self.remainders:
                last = self.accelerator.levels[-1]
                innermost = f"inter_{place}_spatial" if isinstance(last, Fanout) else self.components(last)[-1][0]
                yield {"target": innermost, "type": "utilization", "min": share}
            elif not self.remainders:
                self.notes.dropped(f"utilization.{place}", "a least share of lanes: the front end has none")
            else:
                self.notes.dropped(f"utilization.{place}", "a least share of lanes: Timeloop's is of all lanes")

    def _order(self, place: str, order: tuple[str, ...]) -> Tree:
        if ANY not in order:
            return {"permutation": yaml_flow(list(reversed(order)))}
        at = order.index(ANY)
        if at > 0:
            self.notes.dropped(f"orders.{place}", "loops that must be outermost")
        inner = list(reversed(order[at + 1:]))
        return {"permutation": yaml_flow(inner)} if inner else {}

    def _bounds(self, place: str, constraints: Constraints) -> list[str]:
        """Return the factors that are fixed or bounded at a place."""
        found = []
        given = dict(constraints.factors.get(place, {}))
        if place in constraints.loops:
            given |= {name: Bounds(1, 1) for name in self.operator.sizes if name not in constraints.loops[place]}
        for name, bounds in given.items():
            if bounds.least == bounds.most:
                found.append(f"{name}={bounds.least}")
            elif bounds.most is not None:
                found.append(f"{name}<={bounds.most}")
                if bounds.least > 1:
                    self.notes.dropped(f"factors.{place}.{name}", f"a least of {bounds.least}")
            else:
                found.append(f"{name}>={bounds.least}")
        return found

    def _spread(self, fanout: Fanout, constraints: Constraints) -> list[Tree]:
        """Return what may spread along the sides of an array, as one permutation with a split."""
        sides = [side for side, length in zip(SIDES, fanout.shape, strict=True) if length > 1]
        if not sides:
            return []
        found = {side: self._bounds(f"{fanout.name}.{side}", constraints) for side in sides}
        if not any(found.values()):
            return []
        barred = {side: {text.split("=")[0] for text in found[side] if text.endswith("=1")} for side in sides}
        fields: Tree = {"target": fanout.name, "type": "spatial"}
        if len(sides) == 1:
            return [{**fields, "factors": yaml_flow(found[sides[0]])}]
        x = [name for name in self.operator.sizes if name in barred["Y"] and name not in barred["X"]]
        y = [name for name in self.operator.sizes if name in barred["X"] and name not in barred["Y"]]
        idle = [name for name in self.operator.sizes if name in barred["X"] and name in barred["Y"]]
        never = [f"{name}=1" for name in idle]
        free = [name for name in self.operator.sizes if name not in barred["X"] | barred["Y"]]
        if free:
            self.notes.dropped(f"loops.{fanout.name}", f"which side {', '.join(free)} may take: either, here")
            return [{**fields, "factors": yaml_flow(never)}] if never else []
        fixed = [text for side in sides for text in found[side] if not text.endswith("=1")]
        return [{**fields, "factors": yaml_flow([*never, *fixed]), "permutation": yaml_flow([*x, *y, *idle]),
                 "split": len(x)}]  # all are named: the front end would put the rest before the split


def dump_timeloop(operator: Operator, accelerator: Accelerator, mapping: Nest | None = None,
                  constraints: Constraints | None = None) -> ForeignText:
    """Return Timeloop files of an operator on an accelerator, and a mapping or constraints where given.

    ``load_timeloop`` reads them back. What the files cannot say is in the notes.

    Raises an `InputError` if steps of the mapping do not divide one another, which Timeloop cannot express.
    """
    writer = Writer(operator, shaped(operator, accelerator, mapping), on_both_sides(mapping))
    writer.about_operator()
    trees: Trees = {"arch.yaml": ("architecture", writer.architecture()),
                    "problem.yaml": ("problem", problem_tree(operator)), **writer.tables()}
    if mapping is not None:
        trees["mapping.yaml"] = ("mapping", writer.mapping(mapping))
    if constraints is not None:
        trees["constraints.yaml"] = ("mapspace_constraints", {"version": VERSION,
                                                              "targets": writer.constraints(constraints)})
    return files_of(trees, writer)


def problem_tree(operator: Operator) -> Tree:
    """Return the ``problem`` section; coefficients are named after tensor, dimension and value."""
    coefficients: dict[str, int] = {}
    spaces: list[Tree] = []
    for tensor in operator.tensors:
        axes = []
        for axis in tensor.axes:
            terms = []
            for name, scale in axis.terms:
                if scale != 1:
                    coefficients[f"{name}scale{scale}"] = scale
                terms.append([name] if scale == 1 else [name, f"{name}scale{scale}"])
            axes.append(terms)
        spaces.append({"name": tensor.name, "projection": yaml_flow(axes),
                       **({"read_write": True} if tensor.is_output else {})})
    shape: Tree = {"name": operator.name, "dimensions": yaml_flow(list(operator.sizes))}
    if coefficients:
        shape["coefficients"] = [yaml_flow({"name": name, "default": value}) for name, value in coefficients.items()]
    instance: Tree = dict(operator.sizes)
    densities = {t.name: {"density": t.density, "distribution": "fixed_structured" if t.even or t.structure else
                          "hypergeometric"}
                 for t in operator.tensors if t.density < 1}
    if densities:
        instance["densities"] = {name: yaml_flow(said) for name, said in densities.items()}
    return {"version": VERSION, "shape": {**shape, "data_spaces": spaces}, "instance": instance}


def shaped(operator: Operator, accelerator: Accelerator, mapping: Nest | None) -> Accelerator:
    """Return the machine with arrays of free shape as wide as the mapping spreads, as Timeloop's have one shape."""
    if mapping is None:
        return accelerator
    levels = list(accelerator.levels)
    for at, (entry, outside) in enumerate(zip(mapping.levels, extents_at(mapping, operator.sizes), strict=False)):
        level = levels[at]
        if isinstance(level, Fanout) and level.flexible:
            across, down = lanes(entry, outside)
            if across * down <= level.instances:
                levels[at] = replace(level, shape=(across, level.instances // across))
    return replace(accelerator, levels=tuple(levels))


def on_both_sides(mapping: Nest | None) -> dict[str, tuple[str, ...]]:
    """Return the arrays along both sides of which a dimension spreads, and the sides, outer first.

    Raises an `InputError` if one dimension spreads along X first and another along Y first.
    """
    found: dict[str, tuple[str, ...]] = {}
    for entry in mapping.levels if mapping else ():
        sides: dict[str, dict[str, None]] = {}
        for loop in entry.loops:
            if loop.axis:
                sides.setdefault(loop.dimension, {})[loop.axis] = None
        orders = sorted({tuple(order) for order in sides.values() if len(order) > 1})
        if len(orders) > 1:
            raise InputError(f"mapping.{entry.level}", "must spread dimensions that take both sides along the same one "
                             "first, as an array along one side of arrays along the other is written", "X and Y")
        if orders:
            found[entry.level] = orders[0]
    return found


def memory_class(room: float | None) -> str:
    """Return the class of a component with room for so many bytes, None for any number."""
    return "DRAM" if room is None else "storage"


def _tagged(name: str, fields: Mapping[str, Any]) -> CommentedMap:
    node = CommentedMap(fields)
    node.yaml_set_ctag(Tag(suffix=name))
    return node


def files_of(trees: Trees, writer: Writer) -> ForeignText:
    """Return trees as YAML, with the notes of their writer."""
    return ForeignText({name: yaml_text({section: tree}, 0) for name, (section, tree) in trees.items()},
                       tuple(writer.notes))
