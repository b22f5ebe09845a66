"""Runs, layers and listings on the terminal; reads records and never recomputes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from tilewright.base import together
from tilewright.report.fronts import front_rows, network_front_lines, network_front_table
from tilewright.report.quantities import (
    MISSING,
    TIMES,
    byte_size,
    engineering,
    measured,
    multiple,
    over,
    padding_words,
    percent,
    seconds_of,
    shortened,
    significant,
)
from tilewright.report.tokens import token_lines
from tilewright.store import CostRecord, LayerRecord, RunRecord, TotalsRecord, VectorRecord, accelerator_of

_ASCII = str.maketrans({"µ": "u", TIMES: "x", "·": "|", "…": "~", "├": "|", "│": "|"})
_NARROWEST_NAME = 8


@dataclass(frozen=True)
class _Column:
    """A column of the layer table: ``rank`` 0 is always shown, the highest is dropped first."""

    head: str
    rank: int
    cell: Callable[[LayerRecord, RunRecord], Text]
    total: Callable[[TotalsRecord], str] = lambda totals: ""
    left: bool = False
    vector: Callable[[TotalsRecord], str] = lambda totals: ""


def print_run(record: RunRecord, console: Console | None = None) -> None:
    """Print a run: what was asked, a row per unique layer, the totals, and what was left out.

    Columns are dropped, the least important first, until the table fits the console (one
    that is no terminal gets them all).
    """
    console = console or Console()
    room = console.width if console.is_terminal else None
    _emit(console, Text.assemble((record.network.name, "bold"), " on ", (record.accelerator.name, "bold")))
    if record.headline:
        _emit(console, Text(record.headline, style="bold red"))
    if record.network.covered is not None:
        _emit(console, Text(f"Coverage: {record.network.covered.figures}",
                            style="" if record.network.covered.complete else "yellow"))
    for words in record.network.precision:
        _emit(console, Text(words))
    _emit(console, Text(_request_line(record), style="dim"))
    if record.diagnosis is not None:
        _emit(console, Text(record.diagnosis.sentence, style="bold"))
    _emit(console, layer_table(record, room), room)
    free = record.request.vector == "free"
    print_vectors(record.vector_nodes, record.totals.latency_cycles, record.totals.energy_pj, free, console)
    heads, rows = front_rows(record)
    if rows:
        head = f"Pareto fronts of {together(record.request.front)}, from the least to the most of each"
        _emit(console, Text(f"\n{head}", style="bold"))
        _emit(console, listing(heads, rows, range(1, len(heads))))
    print_network_front(record, console)
    for line in (*_total_lines(record), *_remark_lines(record)):
        _emit(console, line)
    _emit(console, Text(f"Run {record.id} · {record.totals.samples:,} samples in {search_time(record.totals)}",
                        style="dim"))


def print_network_front(record: RunRecord, console: Console) -> None:
    """Print some points of the front of the network, or why there is none; nothing where none was asked for."""
    if record.front is not None:
        head, near = network_front_lines(record.front)
        _emit(console, Text(f"\n{head}", style="bold"))
        if record.front.points:
            table = network_front_table(record, record.front)
            _emit(console, listing(table.columns, [tuple(map(str, row)) for row in table.rows], range(1, 6)))
        _emit(console, Text(near, style="dim"))


def search_time(totals: TotalsRecord) -> str:
    """Return how long the search took, and beside it what came before."""
    before = [f"{engineering(seconds, 's')} of {what}" for seconds, what in (
        (totals.loading_seconds, "loading"), (totals.setup_seconds, "set-up")) if seconds]
    return engineering(totals.seconds, "s") + (f", after {' and '.join(before)}" if before else "")


def layer_table(record: RunRecord, width: int | None = None) -> Table:
    """Return the table of unique layers with its totals row, in at most ``width`` columns (all where None)."""
    columns = list(_COLUMNS)
    cells = {column.head: [column.cell(layer, record) for layer in record.layers] for column in columns}
    widths = {
        column.head: max([*(len(line) for line in column.head.split("\n")), len(_total(column, record)),
                          len(column.vector(record.totals)),
                          *(cell.cell_len for cell in cells[column.head])])
        for column in columns}

    def needed() -> int:
        return sum(widths[column.head] + 2 for column in columns) - 2

    name = columns[0].head
    floor = min(widths[name], 24)
    while width is not None and needed() - widths[name] + floor > width and any(column.rank for column in columns):
        columns.remove(max(columns, key=lambda column: column.rank))
    if width is not None and needed() > width:
        widths[name] = max(_NARROWEST_NAME, widths[name] - (needed() - width))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(Text(column.head), justify="left" if column.left else "right", no_wrap=True,
                         width=widths[column.head])
    beside = bool(record.totals.vector_cycles or record.totals.vector_energy_pj)
    for index, layer in enumerate(record.layers):
        row = [cells[column.head][index] for column in columns]
        row[0] = _name(layer, widths[name])
        table.add_row(*row, end_section=index == len(record.layers) - 1 and not beside)
    if beside:
        table.add_row(*(Text(column.vector(record.totals)) for column in columns), end_section=True)
    table.add_row(*(Text(_total(column, record), style="bold") for column in columns))
    return table


def print_vectors(records: Sequence[VectorRecord], latency_cycles: float, energy_pj: float, free: bool,
                  console: Console) -> None:
    """Print vector work by kind, with its shares of a network's totals; nothing where there is none."""
    if records:
        told = "free, not in the totals" if free else "in the totals"
        heads, rows = vector_table(records, latency_cycles, energy_pj, free)
        _emit(console, Text(f"\nVector work, {told}", style="bold"))
        _emit(console, listing(heads, rows, range(1, 8)))


VECTOR_HEADS = ("Kind", "Times", "Operations", "Bytes", "Latency\n(cycles)", "Share of\nlatency", "Energy",
                "Share of\nenergy", "Limited by", "Approximated as")


def vector_table(records: Sequence[VectorRecord], latency_cycles: float, energy_pj: float, free: bool,
                 ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads, and cells for each kind of vector work; what is folded says so."""
    last = len(VECTOR_HEADS) - (not any(one.approximation for one in records))
    rows = [(one.kind, str(one.count), engineering(one.operations), byte_size(one.bytes),
             *((MISSING,) * 4 if free else (
                 engineering(one.latency_cycles), percent(over(one.latency_cycles, latency_cycles)),
                 measured(one.energy_pj, "pJ"), percent(over(one.energy_pj, energy_pj)))),
             MISSING if free else f"folded, {one.bottleneck}" if one.folded and one.bottleneck else
             "folded" if one.folded else one.bottleneck or MISSING, one.approximation) for one in records]
    return VECTOR_HEADS[:last], [row[:last] for row in rows]


def _total(column: _Column, record: RunRecord) -> str:
    text = column.total(record.totals)
    return "Of these" if text == "Total" and record.headline else text


def cost_table(layer: LayerRecord) -> Table:
    """Return the exact counts of a layer, memory by tensor, in words summed over instances.

    Where the machine makes use of zeros, what of them is moved in the mean stands below.
    """
    kinds, shown = ("reads", "fills", "updates", "drains"), None
    rows: list[tuple[str | Text, ...]] = []
    for count in layer.cost.counts if layer.cost is not None else ():
        memory = "" if count.memory == shown else count.memory
        shown = count.memory
        rows.append((memory, count.tensor, *(f"{getattr(count, kind):,}" for kind in kinds)))
        if count.mean is not None:
            rows.append(("", Text("  in the mean", style="dim"),
                         *(f"{getattr(count.mean, kind):,.1f}" for kind in kinds)))
    table = listing(("Memory", "Tensor", *(kind.capitalize() for kind in kinds)), rows, range(2, 6))
    table.title, table.title_justify = Text("Words moved", style="bold"), "left"
    return table


def energy_table(layer: LayerRecord) -> Table:
    """Return the energy of a layer by component, largest first."""
    rows = sorted((layer.cost.energy_by_component_pj if layer.cost else {}).items(), key=lambda item: -item[1])
    total = layer.cost.energy_pj if layer.cost else 0.0
    return listing(("Component", "Energy", "Share"),
                   [(name, measured(energy, "pJ"), percent(over(energy, total))) for name, energy in rows],
                   right=(1, 2))


def print_layer(layer: LayerRecord, console: Console | None = None, frequency_mhz: float | None = None) -> None:
    """Print one evaluated layer: the nest, the totals beside their bounds, energy and counts."""
    console = console or Console()
    if layer.mapping is None:
        _emit(console, Text.assemble((layer.name, "bold"), f"  {layer.operator.kind} {layer.operator.short}"))
    else:
        _emit(console, Text(f"{layer.mapping.text}\n"))
    if layer.cost is None:
        _emit(console, Text(f"No mapping: {layer.reason}", style="bold red"))
        return
    for line in _cost_lines(layer, layer.cost, frequency_mhz):
        _emit(console, line)
    for table in (energy_table(layer), cost_table(layer)):
        _emit(console, Text(""))
        _emit(console, table)


def _cost_lines(layer: LayerRecord, cost: CostRecord, frequency_mhz: float | None) -> Iterable[Text]:
    time = "" if frequency_mhz is None else f" = {engineering(seconds_of(cost.latency_cycles, frequency_mhz), 's')}"
    lines = [
        ("Latency", f"{cost.latency_cycles:,} cycles{time} ({cost.steady_cycles:,} steady + {cost.ramp_cycles:,} "
                    f"ramp, {cost.steps:,} steps of compute)", "latency_cycles"),
        ("Energy", measured(cost.energy_pj, "pJ"), "energy_pj"),
        ("EDP", measured(cost.edp, "pJ x cycles"), "edp"),
    ]
    for head, value, figure in lines:
        gap = multiple(*_with_bound(layer, figure))
        yield Text(f"{head:<12}{value}" + ("" if gap == MISSING else f", {gap} its bound"))
    yield Text(f"{'Utilisation':<12}{percent(cost.utilisation)}, {layer.macs:,} MACs; limited by {cost.limited_by}")
    if layer.padding is not None:
        yield Text(f"{'Padding':<12}{padding_words(layer.padding.dimensions, layer.operator.dimensions)}; "
                   f"{percent(layer.padding.ineffectual_share)} of the MACs done are ineffectual")


def _with_bound(layer: LayerRecord, figure: str) -> tuple[float | None, float | None]:
    """Return a figure of a layer and the bound on it, None where there is none."""
    return (None if layer.cost is None else getattr(layer.cost, figure),
            None if layer.bounds is None else getattr(layer.bounds, figure))


def listing(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> Table:
    """Return a plain table for lists of things; columns at the positions ``right`` are numbers.

    Where there is little room names and heads are broken, numbers never: `_fit` sees to that.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    cells = [[cell if isinstance(cell, Text) else Text(MISSING if cell is None else str(cell)) for cell in row]
             for row in rows]
    for index, head in enumerate(heads):
        widest = max((row[index].cell_len for row in cells), default=0)
        number, lines = index in right, max(map(len, head.split("\n")))
        table.add_column(Text(head), justify="right" if number else "left", overflow="fold",
                         no_wrap=number and widest >= lines, max_width=max(widest, lines),
                         min_width=widest if number else min(widest, _NARROWEST_NAME))
    for row in cells:
        table.add_row(*row)
    return table


def print_listing(heads: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = (),
                  console: Console | None = None) -> None:
    """Print a `listing`; a console that is no terminal gets it unbroken."""
    console = console or Console()
    _emit(console, listing(heads, rows, right))


def _fit(table: Table, room: int) -> int:
    """Let the widest columns of a `listing` give way until it fits or none can; return how wide it is then.

    What breaks first is names and heads between words, then names within words, and heads within words last.
    """
    heads = [_longest_word([column.header]) for column in table.columns]
    words = [max(head, _longest_word(column.cells)) for head, column in zip(heads, table.columns, strict=True)]
    widths, gaps = [column.max_width or 0 for column in table.columns], 2 * (len(heads) - 1)
    for kept in (words, heads, [0] * len(heads)):
        least = [max(column.min_width or 0, whole) for column, whole in zip(table.columns, kept, strict=True)]
        while sum(widths) + gaps > room and widths != least:
            widths[max(range(len(widths)), key=lambda at: (widths[at] > least[at], widths[at]))] -= 1
    for column, wide in zip(table.columns, widths, strict=True):
        column.width = wide
    return sum(widths) + gaps


def _longest_word(texts: Iterable[RenderableType]) -> int:
    return max((Text(word).cell_len for text in texts for word in str(text).split()), default=0)


def _emit(console: Console, content: RenderableType, width: int | None = None) -> None:
    """Print; where the console is no terminal, lines stay whole, and where it knows ASCII only, signs are replaced."""
    if console.is_terminal:
        room = width or console.width
        if isinstance(content, Table) and content.columns[0].max_width:
            room = max(room, _fit(content, room))
    elif isinstance(content, Table):
        room = width or console.measure(content, options=console.options.update(width=10_000)).maximum
    else:
        room = 100_000
    lines = console.render_lines(content, console.options.update(width=room), pad=False)
    segments: list[Segment] = []
    for line in lines:
        kept = list(line)
        while kept and not kept[-1].text.strip():
            kept.pop()
        if kept:
            kept[-1] = kept[-1]._replace(text=kept[-1].text.rstrip())
        segments += [*kept, Segment.line()]
    if console.options.ascii_only:
        segments = [
            segment._replace(text=segment.text.translate(_ASCII).encode("ascii", "replace").decode())
            for segment in segments]
    console.print(Segments(segments), soft_wrap=True, end="")


def _request_line(record: RunRecord) -> str:
    request = record.request
    budget = [f"{request.budget_samples:,} samples" if request.budget_samples is not None else "",
              f"{request.budget_seconds:g} s" if request.budget_seconds is not None else ""]
    parts = [f"objective {request.objective}", f"mapper {request.mapper}",
             *([f"{' or '.join(filter(None, budget))} a layer"] if any(budget) else []), f"{request.tiling} tiling",
             *(["padded to the array"] if request.pad else []),
             *([f"{request.dataflow} dataflow"] if request.dataflow else []),
             *(["map spaces constrained by a file"] if request.space else []),
             *([f"warm start: {request.warm_start}"] if request.warm_start != "off" else []),
             *([f"front of {', '.join(request.front)}"] if request.front else []),
             f"seed {request.seed}", *request.constraints]
    return " · ".join(parts)


def _total_lines(record: RunRecord) -> Iterable[Text]:
    totals, machine = record.totals, record.accelerator
    time = engineering(seconds_of(totals.latency_cycles, machine.frequency_mhz), "s")
    facts = [
        ("Latency", f"{engineering(totals.latency_cycles)} cycles = {time} at {machine.frequency_mhz:g} MHz",
         multiple(totals.latency_cycles, totals.bound_latency_cycles)),
        ("Energy", measured(totals.energy_pj, "pJ"), multiple(totals.energy_pj, totals.bound_energy_pj)),
        ("EDP", measured(totals.edp, "pJ x cycles"), multiple(totals.edp, totals.bound_edp)),
        ("Work", f"{engineering(totals.macs)} MACs at {percent(totals.utilisation)} utilisation", MISSING),
    ]
    if record.request.pad:
        facts.append(("Padding", f"{percent(totals.ineffectual_share)} of the MACs done are ineffectual", MISSING))
    if totals.area_um2:
        facts.append(("Area", f"{significant(totals.area_um2 / 1e6)} mm²", MISSING))
    facts += [(*line, MISSING) for line in token_lines(record.tokens, machine.frequency_mhz)]
    yield Text("")
    for head, value, gap in facts:
        yield Text.assemble((f"{head:<9}", "bold"), value, "" if gap == MISSING else f", {gap} its bound")


def _remark_lines(record: RunRecord) -> Iterable[Text]:
    yield Text("")
    if record.totals.unmapped_layers:
        missing = record.totals.unmapped_layers
        yield Text(f"{missing} {'layer has' if missing == 1 else 'layers have'} no legal mapping; the totals leave "
                   f"{'it' if missing == 1 else 'them'} out.", style="bold red")
        for layer in record.layers:
            if layer.cost is None:
                yield Text(f"  {layer.name}: {layer.reason}", style="red")
    broken = [layer for layer in record.layers if layer.cost is not None and layer.search and not layer.search.feasible]
    for proved, told in ((True, "can meet"), (False, "met")):
        names = [layer.name for layer in broken if bool(layer.reason) == proved]
        if names:
            yield Text(f"No mapping {told} the constraints for {', '.join(names)}; the ones that break them least are "
                       "shown.", style="bold red")
    yield from _unfinished_lines(record)
    yield from _answer_lines(record)
    yield from _warm_lines(record)
    if record.network.coverage:
        yield Text(record.network.coverage)
    for remark in record.not_modelled:
        yield Text(f"  not modelled: {remark}", style="yellow")
    for note in record.network.notes:
        yield Text(f"  assumed: {note}", style="dim")
    machine = accelerator_of(record.accelerator)
    if record.vector_nodes and record.request.vector != "free" and machine.vector_assumption:
        yield Text(f"  assumed: {machine.vector_assumption}", style="dim")
    yield from lost_lines(note for note in machine.assumptions if note not in record.network.notes)


def lost_lines(assumptions: Iterable[str]) -> Iterable[Text]:
    """Say what of the files of a machine was dropped, line by line, and how much was approximated."""
    known = tuple(assumptions)
    for note in known:
        if ": dropped: " in note:
            yield Text(f"  {note}", style="yellow")
    count = sum(": approximated: " in note for note in known)
    if count:
        yield Text(f"  {count} approximations of the machine's files: tilewright convert FILES names them", style="dim")


def _unfinished_lines(record: RunRecord) -> Iterable[Text]:
    begun = {layer.name for layer in record.layers}
    for what, some in (("Partial", True), ("Not begun", False)):
        if names := [name for name in record.unfinished if (name in begun) is some]:
            yield Text(f"{what}: {', '.join(names)}.", style="bold red")


def _answer_lines(record: RunRecord) -> Iterable[Text]:
    """Say which layers the store had searched before, and when."""
    known = [(layer.name, layer.search.answer.created[:10]) for layer in record.layers
             if layer.search is not None and layer.search.answer is not None]
    if known:
        names = "all layers" if len(known) == len(record.layers) else ", ".join(name for name, _ in known)
        days = sorted({day for _, day in known})
        yield Text(f"From the store: {names}, searched {days[0] if len(days) == 1 else f'{days[0]} to {days[-1]}'}; "
                   "--again searches anew.")


def _warm_lines(record: RunRecord) -> Iterable[Text]:
    """Say how many layers began from mappings known before, and how many of them from the library."""
    kind = record.request.warm_start
    if kind == "off":
        return
    started = [layer.search.start for layer in record.layers if layer.search is not None]
    known = sum(any(one.kind == "library" for one in start) for start in started)
    whose = {"previous": "the layer before", "similar": "similar layers before"}.get(kind, "similar layers")
    yield Text(f"Warm start: {sum(map(bool, started))} of {len(record.layers)} layers began from mappings of {whose}"
               + (f", {known} of them with some of the library." if kind == "library" else "."))


def _name(layer: LayerRecord, width: int) -> Text:
    times = f" {TIMES}{layer.count}" if layer.count > 1 else ""
    return Text(shortened(layer.name, max(1, width - len(times)))).append(times, style="dim")


def _cost(layer: LayerRecord, show: Callable[[CostRecord], str]) -> Text:
    return Text(MISSING if layer.cost is None else show(layer.cost))


def _marked(text: str, gap: float | None, least: float) -> Text:
    """Return a gap to a bound, marked where it is large."""
    return Text(text, style="yellow" if (gap or 0) >= least else "")


def _bottleneck(layer: LayerRecord) -> Text:
    if layer.cost is None:
        return Text("no mapping", style="bold red")
    return Text(layer.cost.limited_by, style="green" if layer.cost.bottleneck == "compute" else "yellow")


_COLUMNS = (
    _Column("Layer", 0, lambda layer, _: _name(layer, 10_000), lambda _: "Total", left=True,
            vector=lambda _: "Vector work"),
    _Column("Shape", 8, lambda layer, _: Text(layer.operator.short, style="dim"), left=True),
    _Column("Latency\n(cycles)", 0, lambda layer, _: _cost(layer, lambda cost: engineering(cost.latency_cycles)),
            lambda totals: engineering(totals.latency_cycles),
            vector=lambda totals: engineering(totals.vector_cycles)),
    _Column("Share of\nlatency", 4, lambda layer, record: _cost(layer, lambda cost: percent(
        over(layer.count * cost.latency_cycles, record.totals.latency_cycles))),
            vector=lambda totals: percent(over(totals.vector_cycles, totals.latency_cycles))),
    _Column("Energy", 0, lambda layer, _: _cost(layer, lambda cost: measured(cost.energy_pj, "pJ")),
            lambda totals: measured(totals.energy_pj, "pJ"),
            vector=lambda totals: measured(totals.vector_energy_pj, "pJ")),
    _Column("EDP\n(x cycles)", 5, lambda layer, _: _cost(layer, lambda cost: measured(cost.edp, "pJ")),
            lambda totals: measured(totals.edp, "pJ")),
    _Column("Utili-\nsation", 2, lambda layer, _: _cost(layer, lambda cost: percent(cost.utilisation)),
            lambda totals: percent(totals.utilisation)),
    _Column("Gap to\nbound", 1, lambda layer, _: _marked(percent(layer.gap), layer.gap, 1)),
    _Column("Latency\n/ bound", 9, lambda layer, _: _marked(multiple(*_with_bound(layer, "latency_cycles")),
                                                            over(*_with_bound(layer, "latency_cycles")), 2),
            lambda totals: multiple(totals.latency_cycles, totals.bound_latency_cycles)),
    _Column("Intensity\n(MACs/B)", 6, lambda layer, _: Text(
        significant(layer.roofline.intensity_macs_per_byte) if layer.roofline else MISSING)),
    _Column("Roofline\nside", 7, lambda layer, _: Text(layer.roofline.side if layer.roofline else MISSING), left=True),
    _Column("Bottleneck", 3, lambda layer, _: _bottleneck(layer), left=True),
)
