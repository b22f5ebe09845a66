"""Accelergy's tables over machines of any origin."""

import pytest

from tilewright.api import load_accelerator
from tilewright.base import InputError
from tilewright.hardware import preset

ERT = """\
ERT:
  version: 0.4
  tables:
  - name: system.eyeriss.GLB[1..1]
    actions: [{name: read, energy: 12.0}, {name: write, energy: 8.0}, {name: update, energy: 10.0},
      {name: leak, energy: 0.5}]
  - {name: "system.MAC[1..168]", actions: [{name: compute, energy: 3.5}]}
  - {name: "system.NoC", actions: [{name: transfer, energy: 3.5}]}
"""
ART = """\
ART:
  tables:
  - {name: "system.GLB[1..1]", area: 1234.5}
"""


@pytest.fixture
def named(tmp_path):
    """Return the name of a machine with the given tables behind it."""
    def namer(machine, *texts):
        paths = []
        for index, text in enumerate(texts):
            path = tmp_path / f"table{index}.yaml"
            path.write_text(text)
            paths.append(str(path))
        return ",".join([machine, *paths])
    return namer


def test_tables_override_the_components_that_they_name(named):
    ours = preset("eyeriss")
    memory = next(level.name for level in ours.memories[1:])
    found = load_accelerator(named("eyeriss", ERT.replace("GLB", memory).replace("MAC", ours.compute.name),
                                   ART.replace("GLB", memory)))
    changed = found.level(memory)
    block = changed.block_words
    assert (changed.energy.read_pj, changed.energy.fill_pj, changed.energy.update_pj, changed.energy.drain_pj) == (
        12 / block, 8 / block, 10 / block, 12 / block)
    assert changed.area_um2 == 1234.5
    assert changed.leakage_mw == pytest.approx(0.5e-12 * ours.frequency_mhz * 1e6 * 1e3)
    assert changed.capacity_bytes == ours.level(memory).capacity_bytes
    assert found.compute.energy_pj_per_mac == 3.5 and found.compute.area_um2 == ours.compute.area_um2
    others = [level for level in found.levels if level.name != memory]
    assert others == [level for level in ours.levels if level.name != memory]
    assert any("table0.yaml:8 ERT.tables[2]: dropped: figures of NoC" in text for text in found.assumptions)
    assert any("table0.yaml" in text for text in found.sources)


@pytest.mark.parametrize("energies", [(9, 5), (5, 9)])
def test_of_an_action_with_several_arguments_the_largest_energy_is_taken_and_told(named, energies):
    ours = preset("eyeriss")
    memory = next(level.name for level in ours.memories[1:])
    reads = ", ".join(f"{{name: read, arguments: {{data: {at}}}, energy: {pj}}}" for at, pj in enumerate(energies))
    found = load_accelerator(named("eyeriss", ERT.replace("{name: read, energy: 12.0}", reads).replace("GLB", memory)))
    assert found.level(memory).energy.read_pj == 9 / ours.level(memory).block_words
    assert any("for several arguments: the largest is taken" in text for text in found.assumptions)


def test_partitions_may_be_components_of_their_own(named):
    machine = preset("nvdla-like")
    memory = next((level for level in machine.memories if level.partitions_bytes), None)
    if memory is None:
        memory = next(level for level in preset("eyeriss").memories if level.partitions_bytes)
        machine = preset("eyeriss")
    parts = [f"{memory.name}_{owner}" for owner, _ in memory.partitions_bytes]
    table = "ERT:\n  tables:\n" + "".join(
        f"  - {{name: {part}, actions: [{{name: read, energy: 2}}, {{name: write, energy: 1}}, "
        f"{{name: leak, energy: {place}}}]}}\n" for place, part in enumerate(parts, 1))
    area = "ART:\n  tables:\n" + "".join(f"  - {{name: {part}, area: 5}}\n" for part in parts)
    found = load_accelerator(named(machine.name, table, area)).level(memory.name)
    assert found.energy.read_pj == 2 / memory.block_words and found.area_um2 == 5 * len(parts)
    # Picojoules a cycle, of all partitions together.
    assert found.leakage_mw == pytest.approx(sum(range(1, len(parts) + 1)) * 1e-3 * machine.frequency_mhz)
    with pytest.raises(InputError, match="the same energies for all partitions"):
        load_accelerator(named(machine.name, table.replace("energy: 2", "energy: 3", 1)))


@pytest.mark.parametrize(("old", "new", "message"), [
    ("GLB", "Nothing", "must name components of eyeriss"),
    ("{name: write, energy: 8.0}, ", "", "must have the action write"),
    ("energy: 12.0", "energy: -1", "must not be negative"),
    ("energy: 12.0", "energy: .nan", "must be a finite number"),
    ("tables:", "rows:", "tables: must be a list"),
    ("name: system.eyeriss.GLB[1..1]", "title: x", "must have a name"),
])
def test_wrong_tables_are_refused_with_their_line(named, old, new, message):
    memory = next(level.name for level in preset("eyeriss").memories[1:])
    text = ERT.replace(old, new, 1).replace("GLB", memory).replace("system.MAC", "system.None")
    with pytest.raises(InputError, match=message):
        load_accelerator(named("eyeriss", text))


def test_tables_alone_are_no_machine(named):
    with pytest.raises(InputError):
        load_accelerator(named("eyeriss", ERT).split(",")[1])
