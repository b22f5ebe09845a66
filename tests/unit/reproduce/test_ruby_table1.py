from itertools import product

import pytest

from tilewright.reproduce import run_study
from tilewright.reproduce.ruby_table1 import KINDS, LANES, SIZES, chains, generated, tuples

BY_NAME = {kind.name: kind for kind in KINDS}


def solutions(size, kind, lanes):
    """Return all (P, R) of equation 5 by trying everything: inner loop, lanes, outer loop."""
    found = set()
    for inner, spread, outer in product(range(1, size + 1), range(1, lanes + 1), range(1, size + 1)):
        for r_inner, r_spread in product(range(1, inner + 1), range(1, spread + 1)):
            if (r_inner != inner and not kind.temporal) or (r_spread != spread and not kind.spatial):
                continue
            at = 0 * outer + outer - 1
            at = at * spread + r_spread - 1
            at = at * inner + r_inner - 1
            if at == size - 1:
                found.add(((inner, r_inner), (spread, r_spread), (outer, outer)))
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 12])
def test_counts_equal_trying_everything(kind, size):
    found = solutions(size, kind, 4)
    assert tuples(size, kind, 4) == len(found)
    tight = {tuple(p for p, _ in one) for one in found if one[2][0] > 1 or one[1][1] == one[1][0]}
    tight = {one for one in tight if one[0] <= size and one[1] <= -(-size // one[0])}
    assert set(chains(size, kind, 4)) == tight


def test_perfect_factorisations_are_those_published_where_the_tile_fits():
    kind = BY_NAME["PFM"]
    assert [len(list(chains(size, kind, LANES))) for size in SIZES] == [3, 22, 24, 52, 46]
    assert [sum(inner <= 1024 for inner, *_ in chains(size, kind, LANES)) for size in SIZES] == list(kind.published)


def test_the_generator_lists_what_was_published():
    found = {name: [generated(size, BY_NAME[name]) for size in SIZES[:3]] for name in ("Ruby-S", "Ruby-T", "Ruby")}
    assert found == {"Ruby-S": [7, 50, 61], "Ruby-T": [7, 157, 247], "Ruby": [11, 414, 690]}
    assert [generated(size, BY_NAME["Ruby-S"]) for size in SIZES] == list(BY_NAME["Ruby-S"].published)


def test_the_study_judges_every_claim(tmp_path):
    outcome = run_study("ruby-table1", out=tmp_path)
    verdicts = [judged.verdict for judged in outcome.findings.judgements]
    assert [judged.claim for judged in outcome.findings.judgements] == list(outcome.study.claims)
    assert verdicts == ["holds", "does not hold", "holds"]
    (table,) = outcome.findings.tables
    assert table.rows[0] == ("PFM", "published", 3, 22, 24, 52, 43)
    assert "agree everywhere" in table.notes[0]
    ruby = {row[1]: row[2:] for row in table.rows if row[0] == "Ruby"}
    assert ruby["the same, one by one, MapSpace.enumerate"] == (6, 232, 366, 3711, 15223)
