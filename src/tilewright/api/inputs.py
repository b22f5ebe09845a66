"""What a user names, as nouns: networks, machines, operators, mappings."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union, cast, get_args

import tilewright.interop
import tilewright.mapping
from tilewright.base import InputError, unknown_name, whole_of
from tilewright.hardware import Accelerator, DesignSpace, Footprint, changed, find_accelerator, find_design_space
from tilewright.mapping import Mapping as Nest
from tilewright.mapping import load_mapping as read_mapping
from tilewright.workload import Graph, MacNode, Operator, convolution, coverage, einsum, matmul, read_table, zoo

if TYPE_CHECKING:
    from tilewright.interop import Foreign, Format, Part, TorchNetwork
    from tilewright.mapping import Constraints

# A union that can be joined with others, though it names what loads late.
Network: TypeAlias = Union[str, Path, Graph, Operator, Sequence[Operator], "TorchNetwork"]
Machine: TypeAlias = str | Path | Accelerator
Limits: TypeAlias = Union[str, Path, "Constraints"]
"""Constraints of a map space: a YAML file, its text, or the constraints themselves."""

LARGEST_COUNT = 2**53
LARGEST_STEP = 4096
_LONG = 200
_LONGEST_NAME = 255
"""Letters of a file's name that file systems allow, at most."""
_SHOWN = 3
_TABLES = (".yaml", ".yml", ".json")


def load_network(network: Network, bind: Mapping[str, int | str] | None = None) -> Graph:
    """Return the network that a user names.

    Parameters
    ----------
    network
        A name of the zoo (``resnet50``, ``bert-base:sequence=128``), an ONNX file, a PyTorch ``.pt2`` file, a
        ``config.json`` of Hugging Face or its folder, a layer table (YAML or JSON), one operator in short
        (``conv:K=64,C=64,P=56,Q=56,R=3,S=3,stride=2``, ``matmul:M=512,N=512,K=64``,
        ``einsum:bik,bkj->bij:b=8,i=64,j=64,k=32``), operators, or a graph, which is returned as it is; or, of PyTorch,
        a module with its inputs ``(module, (tensor,))``, a model of transformers, or an exported program.
    bind
        Sizes of a file's or exported program's dynamic dimensions, of a Hugging Face model's inputs, or options of a
        zoo network or layer table (``batch``).

    Raises
    ------
    InputError
        If there is no such network, or it cannot be read.
    """
    text, options = str(network) if isinstance(network, str | Path) else "", dict(bind or {})
    kind, _, rest = text.partition(":")
    if isinstance(network, str) and kind in _SHORT:
        network = _SHORT[kind](text, rest)
    if isinstance(network, str | Path):
        return _named(network, text, options)
    if is_torch(network):
        return tilewright.interop.load_given(network, options)
    if options:
        raise InputError("bind", "must be left out where operators are given", ", ".join(options),
                         "Write their sizes into them")
    if isinstance(network, Graph):
        return network
    if isinstance(network, Operator):
        return Graph(network.name, (MacNode(network),), "given")
    operators = tuple(network) if isinstance(network, Iterable) else (network,)
    if not operators or not all(isinstance(operator, Operator) for operator in operators):
        raise InputError("network", "must be a name, a file, a graph, or operators", network)
    return Graph("operators", tuple(MacNode(operator) for operator in operators), "given")


def each_network(networks: Network | Sequence[Network]) -> list[Network]:
    """Return one network, or several, as a list."""
    alone = isinstance(networks, str | Path) or is_torch(networks) or not isinstance(networks, Sequence)
    return [cast("Network", networks)] if alone else list(cast("Sequence[Network]", networks))


def several_networks(networks: Sequence[Network], bind: Mapping[str, int | str] | None = None) -> list[Graph]:
    """Return the layers of each network as `load_layers` does.

    Raises as that does, and an `InputError` if there is none, or two have one name.
    """
    graphs = [load_layers(one, bind) for one in networks]
    names = [graph.name for graph in graphs]
    if not names or len(set(names)) < len(names):
        raise InputError("networks", "must differ in name" if names else "must be one or several", ", ".join(names))
    return graphs


def is_torch(network: object) -> bool:
    """Whether it is of PyTorch, or a pair that begins so; nothing is loaded for what is not."""
    first = network[0] if isinstance(network, tuple) and network else network
    return any(one.__module__.split(".")[0] == "torch" for one in type(first).__mro__)


def name_of(thing: object) -> str:
    """Return what a command line calls a network or a machine."""
    if is_torch(thing):
        return type(thing[0] if isinstance(thing, tuple) else thing).__name__
    return str(thing) if isinstance(thing, str | Path) else str(getattr(thing, "name", "operators"))


def _named(network: str | Path, text: str, options: dict[str, int | str]) -> Graph:
    """Return the network in a file or of the zoo."""
    found = _foreign(text, "network")
    if found is not None:
        return _told(found.read([Path(text)], options))
    suffix = Path(text).suffix.lower()
    if suffix in _TABLES:
        return read_table(text, **options)
    no_network = InputError(text, "must be a file (ONNX, layer table, foreign format) or a network of the zoo",
                            "no such file" if not os.path.exists(text) else "a folder" if os.path.isdir(text) else
                            f"a file that ends in {suffix or 'nothing'}")
    if isinstance(network, Path) or "/" in text or (suffix and os.path.isfile(text)):
        raise no_network
    try:
        return zoo.load(text, **options)
    except InputError as error:
        if error.field != "network":
            raise
        known = [*_SHORT, *zoo.names()]
        raise no_network if os.path.exists(text) else unknown_name("network", text.partition(":")[0], known) from None


def _told(read: "Foreign") -> Graph:
    """Return the network with what of its file could not be honoured in full, where its own nodes do not tell it."""
    graph = read.graph
    assert graph is not None
    known = coverage(graph)
    unused = (f"{len(read.mappings)} mappings that came with the layers are not used: tilewright convert writes them",
              ) if read.mappings else ()
    if known.approximations or known.unmodelled:
        return replace(graph, notes=(*graph.notes, *unused))
    return replace(graph, notes=(*graph.notes, *map(str, read.notes), *unused))


def _foreign(text: str, part: "Part") -> "Format | None":
    """Return the foreign format of a file that holds ``part``; None for other files, and for what is no file's name."""
    no_name = not Path(text).suffix or any(len(part) > _LONGEST_NAME for part in Path(text).parts)
    if no_name and not os.path.exists(text):
        return None
    return tilewright.interop.format_of(text, part)


def load_accelerator(machine: Machine, footprint: str | None = None) -> Accelerator:
    """Return the machine that a user names: a preset, a YAML file or its text, or an accelerator, returned as it is.

    Numbers may be changed behind a colon: ``eyeriss:GLB.capacity=64KiB,PEs.shape=16x16`` (see `changed`).

    ``footprint``, ``exact`` or ``box``, is what tiles take of its capacities, where that is not left to the machine.

    Foreign machines (Timeloop's architectures) are read as they are; files that belong together (ERT, ART, the problem
    whose tensors the constraints name) stand behind one another, separated by commas. An ERT or ART of Accelergy
    (``eyeriss,ERT.yaml``) overrides the figures of the components that it names, on any machine.

    Raises an `InputError` if there is no such machine, or the file says something wrong.
    """
    return load_target(machine, None, footprint)[0]


def load_design_space(machine: Machine | DesignSpace) -> DesignSpace:
    """Return what may vary of a machine that a user names: by the ``design`` section of its file (or YAML text).

    Without one, as of an accelerator or a foreign file, it is what `DesignSpace.of` says. A design space is returned as
    it is.

    Raises an `InputError` if there is no such machine, or the file says something wrong.
    """
    if isinstance(machine, DesignSpace):
        return machine
    text, changes = (str(machine), []) if isinstance(machine, Accelerator) else _changes(machine)
    ours = not isinstance(machine, Accelerator) and ("\n" in text or (
        "," not in text and _foreign(text, "accelerator") is None))
    if not ours:
        return DesignSpace.of(load_accelerator(machine))
    return find_design_space(text).changed(changes) if changes else find_design_space(text)


def load_target(machine: Machine, network: Network | None, footprint: str | None = None,
                ) -> tuple[Accelerator, "Constraints | None"]:
    """Return the machine that a user names, and what its own files leave out of the map spaces of a network.

    A Timeloop architecture names the tensors and dimensions of a problem: where the network is one, in a file, they are
    read together. ``machine`` and ``footprint`` are as of `load_accelerator`.

    Raises an `InputError` if there is no such machine, or its files say something wrong.
    """
    if isinstance(machine, tuple | list):
        raise InputError("arch", "must be one machine here", ", ".join(map(str, machine)),
                         "tilewright map sets several side by side")
    if footprint is not None and footprint not in get_args(Footprint):
        raise InputError("footprint", f"must be one of {', '.join(get_args(Footprint))}", footprint)
    found, constraints = _target(machine, network)
    return found if footprint is None else replace(found, footprint=cast(Footprint, footprint)), constraints


def _target(machine: Machine, network: Network | None) -> tuple[Accelerator, "Constraints | None"]:
    if isinstance(machine, Accelerator):
        return machine, None
    name, changes = _changes(machine)
    if changes:
        found, constraints = _target(name, network)
        return changed(found, changes), constraints
    if "\n" in str(machine):
        return find_accelerator(str(machine)), None
    files = str(machine).split(",")
    for file in files:
        form = _foreign(file, "accelerator")
        if form is not None:
            return _read_together(form, [Path(one) for one in files], network)
    tables = [_foreign(file, "energies") for file in files[1:]]
    if tables and all(tables) and tables[0] is not None and tables[0].energise is not None:
        return tables[0].energise(find_accelerator(files[0]), [Path(file) for file in files[1:]])[0], None
    return find_accelerator(str(machine)), None


def _changes(machine: str | Path) -> tuple[str, list[str]]:
    """Return what a machine is called without the numbers that are changed, and these.

    Behind the name of a file of another tool, what has no level in its name is a variable of the file's template.
    """
    name, sign, text = str(machine).rpartition(":")
    if not sign or "=" not in text or "\n" in str(machine):
        return str(machine), []
    changes = text.split(",")
    numbers = all("." in each.partition("=")[0] or each.startswith("clock=") for each in changes)
    if not numbers and _foreign(str(machine), "accelerator") is not None:
        return str(machine), []
    return name, changes


def _read_together(form: "Format", files: list[Path], network: Network | None,
                   ) -> tuple[Accelerator, "Constraints | None"]:
    """Return a foreign machine, with notes of all that was lost, and its constraints on the maps of the network."""
    whole = files
    if form.together and isinstance(network, str | Path) and _foreign(str(network), "network") is form and not any(
            "network" in form.holds(file) for file in files):
        whole = [*files, Path(network)]
    found = form.read(whole, {})
    assert found.accelerator is not None
    notes = [str(note) for note in found.notes]
    ours = str(network) in map(str, whole)
    constraints = None if found.constraints == tilewright.mapping.Constraints() else found.constraints
    if constraints is not None and not ours and found.operator is not None:
        notes.append(f"{files[0]}: dropped: constraints on {found.operator.name}, which is not the network")
    if found.mappings:
        notes.append(f"{files[0]}: dropped: a mapping, of no use to a search; tilewright convert makes it a file")
    known = found.accelerator.assumptions
    machine = replace(found.accelerator, assumptions=(*known, *(note for note in notes if note not in known)))
    return machine, constraints if ours else None


def refuse_sparse(accelerator: Accelerator, why: str) -> None:
    """Refuse a machine with a ``sparsity`` section (an `InputError`) where only the dense model knows what to do."""
    if accelerator.sparsity is not None:
        raise InputError(f"{accelerator.name}.sparsity", f"must be left out {why}: only dense counts are known there",
                         None, "Take the section out of the machine")


def refuse_density(accelerator: Accelerator, field: str) -> None:
    """Refuse densities, given as ``field``, of a machine without a ``sparsity`` section: an `InputError`."""
    if accelerator.sparsity is None:
        raise InputError(field, "must be left out where a machine makes no use of zeros", accelerator.name,
                         "Add a sparsity section to it (docs/sparsity.md), or take accel-b-sparse")


def load_mapping(mapping: str | Path | Nest, operator: Operator, accelerator: Accelerator) -> Nest:
    """Return the mapping in a YAML file (or YAML text of several lines), or a mapping as it is.

    Raises an `InputError` if the file cannot be read, or does not describe a mapping of this operator on this
    accelerator.
    """
    if isinstance(mapping, Nest):
        return mapping
    if isinstance(mapping, str) and "\n" not in mapping:
        mapping = Path(mapping)
    form = _foreign(str(mapping), "mapping") if isinstance(mapping, Path) else None
    if form is not None:
        raise InputError(str(mapping), f"must be a mapping of Tilewright; this is one of {form.name}", None,
                         "Read it with the network and the machine that belong to it: tilewright convert FILES "
                         f"{mapping} --out converted")
    return read_mapping(mapping, operator, accelerator)


def load_together(mapping: str | Path | Nest, network: Network | None, arch: Machine | None, layer: str | None = None,
                  ) -> tuple[Operator, Accelerator, Nest] | None:
    """Return what a foreign mapping maps, with the machine and the network in files of its format; None if it is ours.

    Files of the machine that hold the network too need no ``network``.

    Raises an `InputError` if the files are not of one format, are wrong, or hold no mapping of the layer.
    """
    text = str(mapping)
    form = None if isinstance(mapping, Nest) or "\n" in text else _foreign(text, "mapping")
    if form is None or not isinstance(arch, str | Path) or not isinstance(network, str | Path | None):
        return None
    name, changes = _changes(arch)
    files = list(dict.fromkeys([*str(name).split(","), *([] if network is None else [str(network)]), text]))
    for file in files:
        if not form.holds(Path(file)):
            raise InputError(text, f"must come with a machine and a network in files of {form.name}, as it is one",
                             file, "Or write it as ours with what belongs to it: tilewright convert FILES --out ours")
    found = form.read([Path(file) for file in files], {})
    if found.accelerator is None or found.graph is None:
        raise InputError(text, "must come with " + ("a network" if found.graph is None else "a machine"),
                         ", ".join(files))
    operator = pick_operator(found.graph, layer)
    if operator.name not in found.mappings:
        raise InputError(text, f"must hold a whole mapping of {operator.name}",
                         ", ".join(found.mappings) or "none of any", str(found.notes[-1]) if found.notes else "")
    return operator, changed(found.accelerator, changes), found.mappings[operator.name]


def pick_operator(network: Network, layer: str | None = None, bind: Mapping[str, int | str] | None = None, *,
                  arch: Accelerator | None = None, precision: str = "auto") -> Operator:
    """Return one operator of a network by the name of its layer, which may be left out where there is only one.

    On an ``arch`` its words are those that it has there in the whole network, by ``precision``. An unknown name is an
    `InputError` with the nearest ones.
    """
    graph = select_layers(load_network(network, bind), None)
    if arch is not None:
        graph = tilewright.mapping.precise_graph(graph, arch, precision)
    operators = {node.name: node.operator for node in graph.mac_nodes}
    if layer is None:
        if len({operator.signature for operator in operators.values()}) == 1:
            layer = next(iter(operators))
            check_sizes(layer, operators[layer])
            return operators[layer]
        raise InputError("layer", f"must be given, as {graph.name} has {len(operators)} layers", None,
                         f"For example {', '.join(list(operators)[:3])}")
    if layer not in operators:
        mend = unknown_name("layer", layer, list(operators)).mend
        raise InputError("layer", f"must be a layer of {graph.name}", layer,
                         mend if len(mend) < _LONG else f"For example {', '.join(list(operators)[:3])}")
    check_sizes(layer, operators[layer])
    return operators[layer]


def load_layers(network: Network, bind: Mapping[str, int | str] | None = None, pattern: str | None = None, *,
                arch: Accelerator | None = None, precision: str = "auto") -> Graph:
    """Return the network that a user names, or its layers whose names match a pattern, to be mapped and counted.

    On an ``arch`` their words are those that they have there in the whole network, by ``precision``. Raises as
    `load_network`, `select_layers`, `check_sizes` and `tilewright.mapping.precise_graph` do.
    """
    graph = load_network(network, bind)
    if arch is not None:
        graph = tilewright.mapping.precise_graph(graph, arch, precision)
    graph = select_layers(graph, pattern)
    for node in graph.mac_nodes:
        check_sizes(node.name, node.operator)
    return graph


def select_layers(graph: Graph, pattern: str | None) -> Graph:
    """Return the part of a network whose nodes' names match a pattern such as ``layer1.*`` (all where None).

    That nothing to be mapped matches, or is there at all, is an `InputError`.
    """
    if not graph.mac_nodes:
        raise InputError(graph.name, "must have at least one layer of multiply-accumulates",
                         f"{len(graph.nodes)} other nodes", _lost(graph))
    if pattern is None:
        return graph
    chosen = {node.name for node in graph.mac_nodes if fnmatchcase(node.name, pattern)}
    kept = tuple(replace(node, inputs=tuple(name for name in node.inputs if name in chosen))
                 for node in graph.mac_nodes if node.name in chosen)
    if not kept:
        names = [node.name for node in graph.mac_nodes]
        raise InputError("layers", f"must match at least one layer of {graph.name}", pattern,
                         f"For example {', '.join(names[:3])}; * stands for anything")
    share = sum(node.macs for node in kept) / graph.macs
    note = (f"only {len(kept)} of {len(graph.mac_nodes)} layers, those that match {pattern}: "
            f"{100 * share:.1f} % of the network's MACs")
    return replace(graph, nodes=kept, notes=(*graph.notes, note), tokens=0)


def _lost(graph: Graph) -> str:
    """Return what is not modelled of a network, as far as that is why nothing is left of it."""
    lost = coverage(graph).unmodelled
    return f"Not modelled: {'; '.join(f'{len(names)} x {text}' for text, names in lost[:_SHOWN])}" if lost else ""


def check_sizes(name: str, operator: Operator) -> None:
    """Refuse a layer that the compiled engine cannot count exactly: its steps have 31 bits, its counts 53.

    No count is above four words a multiply-accumulate (two read, a partial sum read and written), which a tensor more
    makes five; nor is any sum of counts at one memory. A size, a step or a count that may be larger is an `InputError`.
    """
    for dimension, size in operator.dimensions:
        if size > tilewright.mapping.MOST_STEP:
            raise InputError(f"{name}.{dimension}", f"must be at most {tilewright.mapping.MOST_STEP:,} to be counted",
                             size, "Split the dimension in two")
    for tensor in operator.tensors:
        for dimension, step in (term for axis in tensor.axes for term in axis.terms):
            if step > LARGEST_STEP:  # the engine's programs grow with them
                raise InputError(f"{name}.{tensor.name}.{dimension}",
                                 f"must have a stride or dilation of at most {LARGEST_STEP:,}", step)
    most = LARGEST_COUNT // (len(operator.tensors) + 1)
    if operator.macs > most:
        raise InputError(f"{name}.macs", f"must be at most {most:,}, as counts are exact up to 2^53", operator.macs,
                         "Split the layer")


def _sizes(text: str, given: str, required: str, optional: Mapping[str, int]) -> dict[str, int]:
    """Return ``K=64,C=3`` as a dictionary that has all of ``required`` and only those or ``optional`` besides."""
    found: dict[str, int] = {}
    names = required.split()
    for part in filter(None, given.replace(" ", ",").split(",")):
        name, _, number = part.partition("=")
        size = whole_of(number)
        if size is None:
            raise InputError(text, "must give sizes as NAME=NUMBER, separated by commas", part,
                             "Sizes are whole numbers, 1 or more")
        if name not in names and name not in optional:
            raise InputError(text, f"must give only {', '.join([*names, *optional])}", name)
        if name in found:
            raise InputError(text, "must give each size once", part)
        found[name] = size
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(text, f"must give {', '.join(names)}", f"no {', '.join(missing)}")
    return {**optional, **found}


def _conv(text: str, given: str) -> Operator:
    s = _sizes(text, given, "K C P Q R S", {"N": 1, "G": 1, "stride": 1, "dilation": 1})
    return convolution("conv", in_channels=s["C"] * s["G"], out_channels=s["K"] * s["G"], kernel=(s["R"], s["S"]),
                       out_size=(s["P"], s["Q"]), batch=s["N"], stride=s["stride"], dilation=s["dilation"],
                       groups=s["G"])


def _matmul(text: str, given: str) -> Operator:
    s = _sizes(text, given, "M N K", {"B": 1})
    return matmul("matmul", m=s["M"], n=s["N"], k=s["K"], batch=s["B"])


def _einsum(text: str, given: str) -> Operator:
    expression, _, sizes = given.partition(":")
    letters = sorted({letter for letter in expression if letter.isalpha()})
    return einsum(expression, _sizes(text, sizes, " ".join(letters), {}))


_SHORT: dict[str, Callable[[str, str], Operator]] = {"conv": _conv, "matmul": _matmul, "einsum": _einsum}
