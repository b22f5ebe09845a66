"""How flexible a machine is, as a person sees it: its axes, the sizes of its spaces, diagrams to scale."""

from collections.abc import Mapping
from typing import Any

from tilewright.base import Plot, Table, Value, sizes_text
from tilewright.codesign import SPACES, AverageFlexion, LayerFlexion, NetworkFlexion
from tilewright.hardware import axis_texts, flexibility_overhead
from tilewright.mapping import EstimatedCount, Flexion
from tilewright.report.circles import Circle, Diagram, nested, venn, venn_plot
from tilewright.report.quantities import TIMES, engineering, significant
from tilewright.report.sheet import Sheet

NAMES = {"T": "tile", "O": "order", "P": "parallelism", "S": "shape"}
_SYMBOLS = ("C", "A", "W", "C^w", "A^w")
_MANY = 1e7


def flexibility_sheet(found: NetworkFlexion, command: str = "") -> Sheet:
    """Return what is to be shown of a machine's flexibility on a network."""
    machine, several = found.accelerator, len(found.layers) > 1
    assert machine.flexibility is not None
    what = f": averages over {len(found.layers)} distinct layers" if several else f", {_shape(found.layers[0])}"
    title = f"Sizes of the spaces of {found.network}{what}"
    tables = [_axes_table(found), _spaces_table(found.average, title, several)]
    if several:
        tables.append(_layers_table(found))
    folded = {_heading(layer): _diagrams(layer.axes, f"layer-{index}")
              for index, layer in enumerate(found.layers)} if several else {}
    return Sheet(
        f"{machine.name} on {found.network}: {machine.flexibility.name}",
        "Which share of the mappings of its class a machine can run, and which share of those that a workload has.",
        (_overhead_line(found),), tuple(tables), _diagrams(found.average, "average"), folded, command)


def flexibility_tree(found: NetworkFlexion) -> dict[str, Any]:
    """Return the same as plain data."""
    machine = found.accelerator
    assert machine.flexibility is not None
    overhead, texts = flexibility_overhead(machine), axis_texts(machine)
    known = overhead.base_area_um2 > 0
    return {
        "network": found.network, "accelerator": machine.name, "class": machine.flexibility.name,
        "axes": {NAMES[letter]: {"degree": degree, "allows": texts[letter], "area_um2": overhead.area_um2[letter]}
                 for letter, degree in machine.flexibility.degrees.items()},
        "overhead": {"area_um2": overhead.total_um2,
                     "leakage_mw": overhead.leakage_mw if overhead.leakage_mw or overhead.base_leakage_mw else None,
                     "base_area_um2": overhead.base_area_um2, "area_share": overhead.area_share if known else None,
                     "power_share": overhead.power_share if known else None},
        "average": {axes: _sizes(one) for axes, one in found.average.items()},
        "layers": [{"name": layer.name, "count": layer.count, "dimensions": dict(layer.operator.dimensions),
                    "axes": {axes: _sizes(one) for axes, one in layer.axes.items()}} for layer in found.layers],
    }


def _sizes(one: Flexion | AverageFlexion) -> dict[str, Any]:
    counts = {name: getattr(one, name) for name in SPACES}
    return {**{name: {"value": count.value, "error": count.error, "exact": count.exact}
               for name, count in counts.items()}, "hardware": one.hardware, "workload": one.workload}


def _overhead_line(found: NetworkFlexion) -> str:
    overhead = flexibility_overhead(found.accelerator)
    if overhead.base_area_um2 <= 0:
        return f"Flexibility adds {overhead.total_um2:,.0f} um2; the area of the rest is not known"
    return (f"Flexibility adds {overhead.total_um2:,.0f} um2 ({overhead.area_share:+.3%} of area), about "
            f"{overhead.power_share:+.3%} of power"
            + (f", {overhead.leakage_mw:.3g} mW of leakage" if overhead.leakage_mw > 0 else ""))


def _axes_table(found: NetworkFlexion) -> Table:
    machine = found.accelerator
    assert machine.flexibility is not None
    overhead, texts = flexibility_overhead(machine), axis_texts(machine)
    base = overhead.base_area_um2
    rows = tuple((f"{letter} {NAMES[letter]}", degree, texts[letter], f"{overhead.area_um2[letter]:,.0f}",
                  f"{overhead.area_um2[letter] / base:+.3%}" if base > 0 else None,
                  f"{overhead.power_per_area * overhead.area_um2[letter] / base:+.3%}" if base > 0 else None)
                 for letter, degree in machine.flexibility.degrees.items())
    return Table("axes", "What a mapper may choose, and what that costs",
                 ("Axis", "Degree", "Choices", "Adds (um2)", "Area", "Power"), rows)


def _spaces_table(found: Mapping[str, Flexion | AverageFlexion], title: str, several: bool) -> Table:
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (axes if len(axes) > 1 else f"{axes} {NAMES[axes]}", *(_count(getattr(one, name)) for name in SPACES),
         _share(one.hardware), _share(one.workload)) for axes, one in found.items())
    estimated = any(not getattr(one, name).exact for one in found.values() for name in SPACES)
    return Table("spaces", title, ("Axis", *_SYMBOLS, "H-F = A/C", "W-F = A^w/W"), rows, (
        "C: any machine of this class, A: this one, W: the workload, C^w and A^w: what of C and A it can use. Tiles of "
        "a workload are those of its divisors.",
        *(("H-F and W-F are means of those of each layer, not ratios of the mean sizes beside them.",)
          if several else ()),
        "Counts are exact but for those with their standard error (±)." if estimated else
        "All counts are exact."))


def _count(count: EstimatedCount) -> str:
    if count.value < _MANY:
        value = f"{count.value:,.0f}" if float(count.value).is_integer() else significant(count.value)
    else:
        value = engineering(count.value) if count.value < 1e18 else f"{count.value:.3g}"
    return value if count.exact else f"{value} ± {100 * count.error / count.value:.1g} %"


def _layers_table(found: NetworkFlexion) -> Table:
    rows = tuple((_heading(layer), _shape(layer), *(_share(one.workload) for one in layer.axes.values()))
                 for layer in found.layers)
    average = ("Average", "", *(_share(one.workload) for one in found.average.values()))
    return Table("layers", "W-F of every distinct layer", ("Layer", "Shape", *found.average), (*rows, average))


def _share(value: float) -> str:
    return significant(value) if value >= 0.001 or value == 0 else f"{value:.2e}"


def _shape(layer: LayerFlexion) -> str:
    return sizes_text(layer.operator.dimensions) or "scalar"


def _heading(layer: LayerFlexion) -> str:
    return layer.name + (f" {TIMES}{layer.count}" if layer.count > 1 else "")


def _diagrams(found: Mapping[str, Flexion | AverageFlexion], name: str) -> tuple[Plot, ...]:
    """Return the diagrams of the single axes as one plot; tiles of hardware and workload are drawn apart."""
    panels, worst = [], 0.0
    for axis, one in found.items():
        if len(axis) > 1:
            continue
        c, a, w, c_w, a_w = (getattr(one, space) for space in SPACES)
        if axis == "T":  # its C are sizes of tensors, millions of times as many as W has tiles
            panels.append(("T, of the workload", nested(w.value, c_w.value, a_w.value),
                           (f"W {_count(w)}", f"C^w {_count(c_w)}", f"A^w {_count(a_w)}")))
            apart = nested(c.value, a.value)
            apart = Diagram((Circle(0.0, 0.0), *apart.circles), apart.error)  # no W: C and A keep their colours
            panels.append(("T, of the hardware", apart, ("", f"C {_count(c)}", f"A {_count(a)}")))
            continue
        diagram = venn(w.value, c.value, a.value, c_w.value, a_w.value)
        worst = max(worst, diagram.error)
        panels.append((f"{axis}, {NAMES[axis]}", diagram,
                       (f"W {_count(w)}", f"C {_count(c)}, of W {_count(c_w)}", f"A {_count(a)}, of W {_count(a_w)}")))
    note = f"Areas are to scale within each diagram; overlaps err by at most {worst:.2%} of the largest set."
    return (venn_plot(name, "Workload W, class C and machine A, to scale", panels, note),)
