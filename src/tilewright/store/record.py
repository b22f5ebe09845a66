"""What a run leaves behind: plain, versioned records with everything needed to show it again and to repeat it."""

from dataclasses import dataclass, field

from tilewright.base import sizes_text, text_html
from tilewright.cost import Relief
from tilewright.store.layer_records import (
    BoundsRecord,
    CostRecord,
    DiagnosisRecord,
    LevelRecord,
    MappingRecord,
    RooflineRecord,
)
from tilewright.workload import Role

SCHEMA_VERSION = 1
"""Version of the record's shape; raised with every change that an older reader could not follow."""

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class SoftwareRecord:
    """Versions of what computed the run."""

    tilewright: str
    python: str
    numpy: str
    numba: str
    platform: str = ""


@dataclass(frozen=True)
class CoverageRecord:
    """How much of a network is modelled: what ``lost_nodes`` have is known, what ``unknown_nodes`` have is not."""

    macs: int
    lost_macs: int
    bytes: float
    lost_bytes: float
    lost_nodes: int
    unknown_nodes: int
    figures: str = ""

    @property
    def complete(self) -> bool:
        """Whether every node with multiply-accumulates or bytes is modelled."""
        return not (self.unknown_nodes or self.lost_macs or self.lost_bytes)


@dataclass(frozen=True)
class NetworkRecord:
    """The network that was mapped.

    ``coverage`` is the sentence that says which share of the multiply-accumulates and bytes was modelled, and how the
    rest was approximated; ``covered`` its numbers, None in records of earlier versions. ``sha256`` is the `fingerprint`
    of its operators and counts; ``notes`` say what was assumed on the way in, ``precision`` which words layers have.
    """

    name: str
    source: str
    sha256: str
    coverage: str = ""
    notes: tuple[str, ...] = ()
    covered: CoverageRecord | None = None
    precision: tuple[str, ...] = ()


@dataclass(frozen=True)
class AcceleratorRecord:
    """The machine: its whole definition as text, so that the run can be repeated without the file it came from.

    ``definition`` is YAML, ``description`` is for people; ``sha256`` is the `fingerprint` of the accelerator.
    """

    name: str
    definition: str
    description: str
    sha256: str
    frequency_mhz: float
    compute_instances: int
    area_um2: float
    technology: str = "given"
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class RequestRecord:
    """What was asked for. Budgets are per layer; None is no limit of that kind.

    ``tiling``, ``dataflow`` and ``space``, the text of a space file, say which mappings were to choose from; with
    ``pad`` those of operators padded to the array. ``density`` are densities of tensors by name or role, ``densities``
    those that mappings were scored over. ``warm_start`` says what layers began from. ``vector`` says whether totals
    have vector work in them (``included``) or not (``free``, as in records of earlier versions).
    """

    objective: str
    mapper: str
    seed: int
    tiling: str
    constraints: tuple[str, ...] = ()
    options: dict[str, Scalar] = field(default_factory=dict)
    budget_samples: int | None = None
    budget_seconds: float | None = None
    command: str = ""
    dataflow: str = ""
    space: str = ""
    pad: bool = False
    density: dict[str, str] = field(default_factory=dict)
    densities: str = ""
    front: tuple[str, ...] = ()
    warm_start: str = "off"
    vector: str = "free"
    precision: str = "machine"


@dataclass(frozen=True)
class TensorRecord:
    """A tensor of a layer; each axis is a sum of ``(dimension, coefficient)`` terms, ``words`` its size in all."""

    name: str
    role: Role
    axes: tuple[tuple[tuple[str, int], ...], ...]
    words: int
    word_bits: int | float
    density: float = 1.0
    own_word_bits: int | float | None = None
    structure: tuple[int, int] | None = None
    even: bool = False
    type: str = ""
    partial_bits: int | float | None = None


@dataclass(frozen=True)
class OperatorRecord:
    """What a layer computes; ``sha256`` is the fingerprint of all that decides its cost."""

    kind: str
    dimensions: tuple[tuple[str, int], ...]
    tensors: tuple[TensorRecord, ...]
    macs: int
    sha256: str
    attributes: tuple[tuple[str, int | str], ...] = ()

    @property
    def short(self) -> str:
        """Return the sizes above one in a line, for example ``K64 C64 P56 Q56 R3 S3``."""
        return sizes_text(self.dimensions) or "scalar"


@dataclass(frozen=True)
class FrontPointRecord:
    """A mapping of a Pareto front as data, and its metrics."""

    values: tuple[float, ...]
    levels: tuple[LevelRecord, ...]


@dataclass(frozen=True)
class FrontRecord:
    """The Pareto front of a layer's search, by rising first metric; ``thinned`` where that was too large to keep."""

    metrics: tuple[str, ...]
    units: tuple[str, ...]
    points: tuple[FrontPointRecord, ...]
    thinned: bool = False


@dataclass(frozen=True)
class StartRecord:
    """A mapping that a search began from: of which layer, in how many sizes that differs, and who found it.

    ``kind`` is ``given``, ``previous`` or ``similar`` (a layer of the same run), or ``library`` (then ``run`` names the
    run that found it).
    """

    kind: str
    layer: str = ""
    distance: int = 0
    run: str = ""


@dataclass(frozen=True)
class AnswerRecord:
    """The run that made a search whose result was then taken from the store, and when it was."""

    run: str
    created: str


@dataclass(frozen=True)
class SearchRecord:
    """How the mapping was found.

    ``history`` lists ``(samples, seconds, best score)`` whenever the best score improved, ``stopped`` says why the
    search ended, ``score`` is the best value of the objective. Where not ``feasible``, the mapping breaks a constraint;
    where ``complete``, all of the space was scored, so that the mapping is its optimum. ``start`` lists the mappings
    that it began from, the most similar first. ``key`` is what an equal search is known by, empty where it would not
    find the same; with an ``answer``, the result was taken from the store, and samples and seconds are those of then.
    """

    mapper: str
    seed: int | tuple[int, ...]
    samples: int
    legal_samples: int
    seconds: float
    stopped: str
    score: float | None = None
    history: tuple[tuple[int, float, float], ...] = ()
    feasible: bool = True
    complete: bool = False
    start: tuple[StartRecord, ...] = ()
    key: str = ""
    answer: AnswerRecord | None = None


@dataclass(frozen=True)
class PaddingRecord:
    """What a layer was before its sizes were rounded up to fill the array.

    ``macs`` are those that the layer asks for; ``ineffectual_share`` is the share of those done that are on padding.
    """

    dimensions: tuple[tuple[str, int], ...]
    macs: int
    ineffectual_share: float


@dataclass(frozen=True, repr=False)
class LayerRecord:
    """One unique layer, which the network holds ``count`` times under ``names``.

    Where there is ``padding``, operator, mapping, cost and bounds are those of the padded operator; the utilisation and
    the roofline count only what the layer asks for.

    A layer for which no legal mapping was found has no ``mapping`` and no ``cost``; ``reason`` says why.
    """

    names: tuple[str, ...]
    count: int
    operator: OperatorRecord
    mapping: MappingRecord | None = None
    cost: CostRecord | None = None
    bounds: BoundsRecord | None = None
    roofline: RooflineRecord | None = None
    search: SearchRecord | None = None
    reason: str = ""
    padding: PaddingRecord | None = None
    front: FrontRecord | None = None
    relief: Relief | None = None

    def __repr__(self) -> str:
        figures = "no mapping" if self.cost is None else (
            f"{self.cost.latency_cycles:,} cycles, {self.cost.energy_pj:.4g} pJ")
        return f"LayerRecord({self.name}{f' x {self.count}' if self.count > 1 else ''}: {figures})"

    def _repr_html_(self) -> str:
        return text_html(f"{self!r}\n\n{self.mapping if self.mapping is not None else self.reason}")

    @property
    def macs(self) -> int:
        """Multiply-accumulates that the layer asks for; those on padding do not count."""
        return self.operator.macs if self.padding is None else self.padding.macs

    @property
    def gap(self) -> float | None:
        """By how much of its bound the best score is above it; None without a score, a bound or a feasible mapping.

        A score below its bound by more than rounding has a negative gap, so that a wrong bound shows.
        """
        search, bounds = self.search, self.bounds
        if search is None or search.score is None or not search.feasible or bounds is None or not bounds.score:
            return None
        gap = search.score / bounds.score - 1.0
        return gap if gap < -1e-9 else max(0.0, gap)

    @property
    def name(self) -> str:
        """The first of its names."""
        return self.names[0] if self.names else "(unnamed)"


@dataclass(frozen=True)
class VectorRecord:
    """Vector work of one kind, all ``count`` runs of it; cycles and energy are 0 where it is free.

    What is ``folded`` is done on the way behind the operators before it; ``bottleneck`` sets most of the cycles.
    """

    kind: str
    names: tuple[str, ...]
    count: int
    operations: int
    bytes: float
    approximation: str
    latency_cycles: int = 0
    energy_pj: float = 0.0
    folded: bool = False
    bottleneck: str = ""


@dataclass(frozen=True)
class TotalsRecord:
    """The whole network: layers times counts and, unless it is free, vector work, run one after another.

    ``edp`` is the product of total energy and total latency. ``seconds`` and ``samples`` are those of the search in all
    legs of the run, without what was taken from the store; ``setup_seconds`` went into spaces and models before it,
    ``loading_seconds`` into loading (or compiling) the engine, both in the last leg. Bounds are None where one layer
    has none; ``unmapped_layers`` are missing from all other totals. ``macs`` are those that layers ask for; of those
    done, ``ineffectual_share`` is on padding. Vector work is its own bound. Bounds are of the space that was searched:
    they hold what searches prove of layers where that is above what bounds every mapping.
    """

    latency_cycles: int
    energy_pj: float
    edp: float
    macs: int
    utilisation: float
    area_um2: float
    seconds: float
    samples: int
    bound_latency_cycles: int | None = None
    bound_energy_pj: float | None = None
    bound_edp: float | None = None
    unmapped_layers: int = 0
    ineffectual_share: float = 0.0
    setup_seconds: float = 0.0
    loading_seconds: float = 0.0
    vector_cycles: int = 0
    vector_energy_pj: float = 0.0


@dataclass(frozen=True)
class TokensRecord:
    """What each of the ``tokens`` takes that one pass of a language model takes in.

    ``weight_bytes`` are read in a pass, at least, and so are keys and values of ``cache_read_bytes``; those of the new
    tokens are appended. Of the layers, each word crossing ``memory`` (the outermost) once takes ``memory_cycles``, and
    the multiply-accumulates take ``compute_cycles`` with all units at work; None where bandwidth is unlimited.
    """

    tokens: int
    tokens_per_second: float
    latency_cycles: float
    energy_pj: float
    macs: float
    weight_bytes: float
    cache_read_bytes: float
    cache_written_bytes: float
    memory: str
    memory_cycles: float | None
    compute_cycles: float


@dataclass(frozen=True)
class NetworkPointRecord:
    """A mapping for every run of every layer, and what the network takes with them.

    ``chosen`` has for each of the run's layers pairs: the place of a point in the layer's front, and how many of the
    layer's runs are mapped so.
    """

    latency_cycles: float
    energy_pj: float
    chosen: tuple[tuple[tuple[int, int], ...], ...]

    @property
    def edp(self) -> float:
        """Product of both, in picojoule-cycles."""
        return self.latency_cycles * self.energy_pj


@dataclass(frozen=True)
class NetworkFrontRecord:
    """The front of latency and energy of the whole network, by rising latency, of the mappings on its layers' fronts.

    Every combination of these is matched by a point that takes no more energy, and by the share ``tolerance`` more
    cycles at most. Where there are no ``points``, ``reason`` says why. ``place`` is the best point ``within`` what was
    asked for; None where none is.
    """

    points: tuple[NetworkPointRecord, ...] = ()
    tolerance: float = 0.0
    reason: str = ""
    within: str = ""
    place: int | None = None


@dataclass(frozen=True)
class RunRecord:
    """One run of the main job: what was asked, of what, with what, and what came of it.

    ``unfinished`` names layers whose search was interrupted; those of them that are not among ``layers`` were not
    begun. The ``headline`` says of such a run what there is, as its totals are not the network's; else it is empty.
    ``tokens`` are of a language model all of whose layers are mapped.
    """

    id: str
    created: str
    headline: str = field(default="", kw_only=True)
    tokens: TokensRecord | None = field(default=None, kw_only=True)
    software: SoftwareRecord
    network: NetworkRecord
    accelerator: AcceleratorRecord
    request: RequestRecord
    totals: TotalsRecord
    layers: tuple[LayerRecord, ...]
    vector_nodes: tuple[VectorRecord, ...] = ()
    not_modelled: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    diagnosis: DiagnosisRecord | None = None
    front: NetworkFrontRecord | None = None
    schema_version: int = SCHEMA_VERSION
