"""``tilewright allocate`` and ``verify`` as a person types them."""

import json

import pytest

CUT = ("--oversize", "cut")


@pytest.fixture
def here(tilewright):
    def run(*words, code=0):
        found = tilewright(*words)
        assert found.code == code, found.err
        return found

    return run


def test_a_plan_is_told_kept_and_verified(here, tmp_path):
    told = here("allocate", "lenet5", "--pads", "in=40KB,weights=40KB,out=40KB", "--across", "64B/cycle", *CUT,
                "--solvers", "naive,belady,exact", "--json", "plan.json", "--report", "plan.html").out
    assert "no plan does better" in told
    kept = json.loads((tmp_path / "plan.json").read_text())
    assert [one["solver"] for one in kept["solvers"]] == ["naive", "belady", "exact"]
    assert kept["tally"]["moves"] > 0
    assert "addresses over operations" in (tmp_path / "plan.html").read_text()
    assert "The plan holds" in here("verify", "plan.json").out
    assert "onsram-static" in here("list", "allocators").out


WRONG = {
    "too large": (("vgg16", "--pads", "3x32KB", "--oversize", "refuse"), "conv1_1"),
    "tiles refused": (("lenet5", "--tile", *CUT), "--tile"),
    "no size": (("lenet5", "--pads", "3x0KB"), "--pads"),
    "no such role": (("lenet5", "--pads", "left=2KB"), "roles"),
    "no role for weights": (("lenet5", "--pads", "in=64KB,out=64KB", *CUT), "weights"),
    "too many": (("lenet5", "--pads", "90x2KB"), "1 to 16"),
    "no such objective": (("lenet5", "--objective", "byte", *CUT), "objective"),
    "no such solver": (("lenet5", "--solver", "exakt", *CUT), "allocation solver"),
    "order of a peak": (("lenet5", "--objective", "peak", "--order", *CUT), "--order"),
    "no time": (("lenet5", "--seconds", "0", *CUT), "--seconds"),
    "time without end": (("lenet5", "--seconds", "inf", *CUT), "--seconds"),
    "no such seed": (("lenet5", "--order", "--seed", "-1", *CUT), "seed"),
    "a product after others": (("lenet5", "--objective", "bytes,edp", *CUT), "by itself"),
    "no rate": (("lenet5", "--bandwidth", "16", *CUT), "--bandwidth"),
    "peak over roles": (("lenet5", "--pads", "in=1KB,weights=1KB,out=1KB", "--objective", "peak", *CUT), "--objective"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_one_error(here, kind):
    words, named = WRONG[kind]
    told = here("allocate", *words, code=2).err
    assert told.startswith("Error: ")
    assert named in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kind": "tilewright allocation 1"}', "not json", "[" * 100_000])
def test_a_file_that_is_no_plan_is_one_error(here, tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    assert here("verify", "plan.json", code=2).err.startswith("Error: plan.json")
