"""Templates of Timeloop's front end: the entry of its example designs, and templates that mean harm."""

import pytest
from typer.testing import CliRunner

from tilewright.base import InputError
from tilewright.cli import app
from tilewright.interop import format_of, load_timeloop, templates

TOP = """# Made a YAML file by Jinja2
{{add_to_path(cwd())}}
{% set own = cwd() ~ '/' ~ architecture ~ '/problem.yaml' %}
{% if path_exists(own) %}
  {% set problem = problem | default(own) %}
{% endif %}
{% set problem = problem | default('common/problem.yaml') %}
problem: {{include(problem, 'problem')}}
{% set mapping = cwd() ~ '/' ~ architecture ~ '/mapping.yaml' %}
{% if path_exists(mapping) %}
extra_mapping_constraints:
  version: 0.4
  targets: {{include(mapping, 'mapping')}}
{% endif %}
architecture: {{include(cwd() ~ '/' ~ architecture ~ '/arch.yaml', 'architecture')}}
variables:
  version: 0.4
  technology: "SET ME"
  global_cycle_seconds: 1e-9
components:
  classes: {{include_all('parts/*.yaml', 'compound_components.classes')}}
"""
ARCH = """architecture:
  version: 0.4
  nodes:
  - !Container {name: system, attributes: {technology: 45nm}}
  - !Component {name: DRAM, class: DRAM, attributes: {width: 64, datawidth: 8, made_of: glass}}
  - !Component {name: buffer, class: SRAM, attributes: {depth: 64, width: 8, datawidth: 8}}
  - !Component {name: mac, class: intmac, attributes: {width: 8}}
"""
BASE = """base_of_problems: &base
  version: 0.4
  shape: &shape
    name: small
    dimensions: [K, P]
    data_spaces:
    - {name: Weights, projection: [[[K]]]}
    - {name: Inputs, projection: [[[P]]]}
    - {name: Outputs, projection: [[[K]], [[P]]], read_write: true}
  instance: {K: 2, P: 8}
"""
PROBLEM = "{{include_text('base.yaml')}}\nproblem:\n  <<<: *base\n  instance: {K: 4}\n"
MAPPING = "mapping:\n- {target: buffer, type: temporal, factors: [P=8, K=1]}\n"
CLASSES = "compound_components: {classes: [{name: NAME}]}\n"


@pytest.fixture
def top(tmp_path):
    """Return the entry of two designs, in a folder with all that it includes."""
    home = tmp_path / "designs[1]"
    files = {"top.yaml.jinja2": TOP, "common/problem.yaml": PROBLEM, "common/base.yaml": BASE, "a/arch.yaml": ARCH,
             "a/mapping.yaml": MAPPING, "b/arch.yaml": ARCH.replace("depth: 64", "depth: 32"),
             "b/problem.yaml": PROBLEM.replace("base.yaml", "../common/base.yaml").replace("K: 4", "K: 6"),
             "parts/one.yaml": CLASSES.replace("NAME", "one"), "parts/two.yaml": CLASSES.replace("NAME", "two")}
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return home / "top.yaml.jinja2"


def test_the_entry_of_designs_is_read_with_the_design_that_is_named(top):
    a, b = load_timeloop([f"{top}:architecture=a"]), load_timeloop([f"{top}:architecture=b"])
    assert a.operator.sizes == {"K": 4, "P": 8}
    assert b.operator.sizes == {"K": 6, "P": 8}
    assert [made.accelerator.memories[1].capacity_bytes for made in (a, b)] == [64.0, 32.0]
    assert a.constraints.factors["buffer"]["P"].least == 8
    assert not b.constraints.factors
    other = load_timeloop([f"{top}:architecture=a:problem=b/problem.yaml"])
    assert other.operator.sizes == {"K": 6, "P": 8}


def test_a_copy_that_sets_its_design_needs_no_variable(top):
    copy = top.with_name("mine.yaml")
    copy.write_text("{% set architecture = 'b' %}\n" + TOP)
    assert load_timeloop([copy]).operator.sizes == {"K": 6, "P": 8}


def test_notes_tell_the_file_and_line_that_was_included(top):
    notes = [str(note) for note in load_timeloop([f"{top}:architecture=a"]).notes]
    assert any(note.startswith("arch.yaml:5 architecture.nodes[1].attributes.made_of: dropped") for note in notes)
    assert any(note.startswith("top.yaml.jinja2:") and " components: dropped" in note for note in notes)
    (top.parent / "a" / "arch.yaml").write_text(ARCH.replace("depth: 64", "depth: much"))
    with pytest.raises(InputError, match=r"arch\.yaml:6 architecture\.nodes\[2\]\.attributes\.depth"):
        load_timeloop([f"{top}:architecture=a"])


def test_what_a_template_lacks_is_named_with_the_way_to_give_it(top):
    with pytest.raises(InputError, match=r"top\.yaml\.jinja2:3: must be a Jinja2 template.*'architecture' is undefined"
                                         r".*top\.yaml\.jinja2:NAME=VALUE"):
        load_timeloop([top])
    with pytest.raises(InputError, match="must include files that exist"):
        load_timeloop([f"{top}:architecture=a:problem=none.yaml"])
    top.write_text("problem: {{include('common/base.yaml', 'problem')}}\n")
    with pytest.raises(InputError, match=r"base\.yaml: must hold problem, which top\.yaml\.jinja2 includes"):
        load_timeloop([top])


def test_designs_are_mapped_by_their_entry(top):
    assert format_of(f"{top}:architecture=a", "accelerator").name == "timeloop"
    assert format_of(top, "network").name == "timeloop"
    done = CliRunner().invoke(app, ["map", f"{top}:architecture=b", "--arch", f"{top}:architecture=b", "--budget",
                                    "50", "--mapper", "random", "--no-store", "--json", "-"])
    assert done.exit_code == 0, done.output
    assert "designs[1]/top.yaml.jinja2:architecture=b" in done.stdout


OUTSIDE = [("include_text", "/etc/passwd"), ("include_text", "../secret.yaml"), ("include_text", "linked.yaml"),
           ("include", "inside/../../secret.yaml"), ("include_all", "../*.yaml"), ("find_path", "/etc/passwd")]


@pytest.mark.parametrize(("function", "name"), OUTSIDE)
def test_includes_stay_in_the_folders_of_the_files_given(function, name, tmp_path):
    (tmp_path / "secret.yaml").write_text("problem: {shape: told}\n")
    home = tmp_path / "home"
    (home / "inside").mkdir(parents=True)
    (home / "linked.yaml").symlink_to(tmp_path / "secret.yaml")
    (home / "top.yaml").write_text(f"problem: {{{{{function}('{name}')}}}}\n")
    with pytest.raises(InputError) as error:
        load_timeloop([home / "top.yaml"])
    assert error.value.rule == "must include files in the folders of the files that are given"
    assert "told" not in str(error.value)


def test_further_folders_may_be_named(tmp_path, monkeypatch):
    (tmp_path / "home").mkdir()
    (tmp_path / "base.yaml").write_text(BASE)
    top = tmp_path / "home" / "top.yaml"
    top.write_text(PROBLEM.replace("base.yaml", "../base.yaml"))
    with pytest.raises(InputError, match="TILEWRIGHT_INCLUDE"):
        load_timeloop([top])
    monkeypatch.setenv("TILEWRIGHT_INCLUDE", f"/nowhere:{tmp_path}")
    assert load_timeloop([top]).operator.sizes == {"K": 4, "P": 8}


def test_no_template_learns_what_stands_elsewhere(tmp_path):
    known = "path_exists('passwd') or path_exists('/etc/passwd')"
    (tmp_path / "top.yaml").write_text("{{add_to_path('/etc')}}\n{% if " + known + " %}\nproblem: it is there\n"
                                       "{% else %}\nmapper: {}\n{% endif %}\n")
    assert load_timeloop([tmp_path / "top.yaml"]).operator is None


ENDLESS = {
    "loops": ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}\n",
              "must be a template that takes at most 1 s"),
    "memory": ("{% set many = 'many' * 10 ** 10 %}\nproblem: {}\n", "must be a template that takes at most 1 s"),
    "doubling": ("{% set ns = namespace(x='many') %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}\n",
                 "must be a template that takes at most 1 s"),
    "text": ("x: {{ 'many' * 5000000 }}\n", "must have at most 16,777,216 letters"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_templates_have_limits_of_time_memory_and_text(name, tmp_path, monkeypatch):
    monkeypatch.setattr(templates, "MOST_SECONDS", 1)
    text, message = ENDLESS[name]
    (tmp_path / "top.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        load_timeloop([tmp_path / "top.yaml"])
    assert message in str(error.value)
