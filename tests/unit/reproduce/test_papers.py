"""The page on papers: tables written from what runs kept, and the one that is in the documentation."""

import json
import re
from pathlib import Path

import pytest

from tilewright.base import InputError
from tilewright.reproduce import REPRODUCTIONS, Setting, run_study, write_page
from tilewright.reproduce.papers import END, mark

DOCS = Path(__file__).parents[3] / "docs" / "papers.md"


def place(text, name):
    return re.search(re.escape(mark(name)) + "\n(.*?)" + re.escape(END), text, re.DOTALL)


def test_tables_tell_in_their_heads_when_and_on_how_much_and_where_verdicts_turn(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{mark('ruby-fig8')}\nformer\n{END}\n\n{mark('ruby-fig9')}\nstays\n{END}\nEnd.\n")
    with pytest.raises(InputError, match="outcomes"):
        write_page(page, tmp_path)
    for name, last in (("quick", 130), ("part", 128)):
        run_study("ruby-fig8", Setting(name, 1, {"step": 128, "last": last}), out=tmp_path)
    quick = tmp_path / "ruby-fig8" / "quick.json"
    data = json.loads(quick.read_text())
    data["judgements"][1]["verdict"] = "does not hold"
    data["judgements"][2]["verdict"] = "not judged"
    quick.write_text(json.dumps(data))
    assert write_page(page, tmp_path) == ["ruby-fig8"]
    text = page.read_text()
    assert text.startswith("# Page") and text.endswith(f"stays\n{END}\nEnd.\n") and "former" not in text
    rows = place(text, "ruby-fig8").group(1).splitlines()
    assert re.match(r"\| \*\*`ruby-fig8`\*\* \(\d+ \w+ \d{4}, part, 1 seed, step 128, last 128\) \| published", rows[0])
    assert len(rows) == 2 + len(REPRODUCTIONS.get("ruby-fig8").claims)
    assert rows[3].endswith("| holds (quick: does not hold) |") and rows[4].endswith("| 68 % | holds in direction |")
    again = text
    write_page(page, tmp_path)
    assert page.read_text() == again


def test_the_page_has_a_place_for_every_study_and_its_tables_tell_the_claims_as_they_are():
    text = DOCS.read_text(encoding="utf-8")
    for name in REPRODUCTIONS:
        found = place(text, name)
        assert found is not None, name
        if found.group(1).startswith("| **"):
            told = [row.split(" | ")[0].removeprefix("| ") for row in found.group(1).splitlines()[2:]]
            assert told == [claim.text.replace("|", "/") for claim in REPRODUCTIONS.get(name).claims], name
            assert re.search(r"\(\d+ \w+ 20\d\d, (full|part|quick), \d+ seeds?", found.group(1).splitlines()[0]), name


def test_the_rule_is_told_with_its_numbers():
    text = DOCS.read_text(encoding="utf-8")
    assert "from three quarters of the published effect on" in text
    assert "from one quarter on" in text
