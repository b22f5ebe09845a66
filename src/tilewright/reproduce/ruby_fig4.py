"""Ruby, figures 4 and 5: a hundred elements on six processing elements, by perfect factors and with remainders."""

from tilewright.hardware import load_accelerator
from tilewright.jobs import Runner
from tilewright.reproduce.claims import judge
from tilewright.reproduce.ruby_contest import space_of
from tilewright.reproduce.ruby_machines import vector
from tilewright.reproduce.searching import bound_figures, play, said, searched
from tilewright.reproduce.study import Findings, Plot, Setting, Table, claims, reproduction

SIZE, ELEMENTS = 100, 6
MACHINE = load_accelerator(f"""\
name: grid-{ELEMENTS}
technology: 45nm
frequency_mhz: 1000
word_bits: {{inputs: 8, weights: 8, outputs: 8}}
leakage: omitted
sources:
  - "A buffer of 1 KiB, six elements without storage (3 x 2, here a line, as its five lanes imply): Ruby, section II.D"
levels:
  - {{memory: DRAM, keeps: [inputs, weights, outputs], kind: dram, dram_type: LPDDR4}}
  - memory: GLB
    keeps: [inputs, weights, outputs]
    kind: sram
    capacity_bytes: 1 KiB
    buffering: buffet
  - {{fanout: PEs, shape: [{ELEMENTS}, 1], multicast: true, reduce: true}}
compute: {{name: MAC, type: int, width_bits: 8}}
""")

FIG4, FIG5 = claims("ruby-fig4")


_SETTING = {"samples": 1_000_000}


@reproduction("ruby-fig4", Setting("quick", 1, _SETTING), Setting("full", 1, _SETTING))
def run(setting: Setting, runner: Runner) -> Findings:
    """Search both spaces to their ends for the least latency."""
    found = play(runner, ("perfect", "ruby-s"), lambda strategy: searched(
        {"strategy": strategy}, space_of(vector(SIZE), MACHINE, strategy), 1, mapper="exhaustive",
        samples=setting["samples"], objective="latency"))
    perfect, ruby = (int(tried["steps"]) for tried in found)
    last = SIZE - (ruby - 1) * ELEMENTS
    judged = (
        judge(FIG4, ((perfect == 20) + (SIZE / perfect == 5)) / 2, f"{perfect} steps, {SIZE / perfect:g} elements"),
        judge(FIG5, ((ruby == 17) + (last == 4) + (perfect - ruby == 3)) / 3,
              f"{ruby} steps, {last} elements in the last, {perfect - ruby} saved"))
    bound = bound_figures(vector(SIZE), MACHINE)
    rows = tuple((tried.of, value["samples"], value["steps"], int(bound["compute_cycles"]), 100 * value["utilisation"],
                  value["edp"], said(tried.oracle)) for tried in found for value in tried.runs)
    table = Table("spaces", f"{SIZE} elements on {ELEMENTS} processing elements", (
        "Space", "Mappings", "Fewest steps", "Compute bound (cycles)", "Use (%)", "EDP", "Oracle"), rows, (
        "Every mapping of both spaces was evaluated.",))
    plot = Plot("steps", "Fewest steps", [{"type": "bar", "x": [tried.of for tried in found], "y": [perfect, ruby]}],
                {"yaxis": {"title": {"text": "steps"}}})
    return Findings((table,), judged, (plot,))
