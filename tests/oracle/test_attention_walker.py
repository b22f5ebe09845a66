"""Plans of attention against a literal walk of their loops, and the online softmax against the plain one."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.fusion.flat import Attention, FlatMachine, TilePlans, fused_costs, unfused_costs

SIZES = {"rows": 14, "keys": 13, "depth": 7, "width": 6}
ARRAYS = (2, 3)


def machine(capacity, rows=2, columns=3):
    return FlatMachine("small", rows, columns, capacity, 1.5, 8.0, 1.0, 2.0, 30.0, 0.5, 2.0, 16, 1000.0)


def one(tiles, place):
    return {name: values[place].item() for name, values in vars(tiles).items()}


class Walk:
    """Walks one instance of a fused plan visit by visit, with sets of words for what each part of the buffer has."""

    def __init__(self, attention, plan, kept):
        self.attention, self.plan, self.kept = attention, plan, kept
        self.words = dict.fromkeys(("Q", "K", "V", "O", "logits"), 0)
        self.has = {"Q": (None, set()), "K": (None, set()), "V": (None, set())}
        self.out, self.made, self.pairs, self.room = None, {}, 0, 0
        self.cycles = {}
        self.walk()

    def bring(self, name, tile, words, anew=False):
        known, held = self.has[name]
        held = held if known == tile and not anew else set()
        self.words[name] += len(words - held)
        self.has[name] = tile, held | words

    def leave(self):
        """Write the outputs that the chip has, with statistics where the softmax of a row is not at its end."""
        if self.out is None:
            return
        width, rows = self.attention.width, self.tile_rows(self.out)
        self.words["O"] += width * len(rows)
        if self.made[self.out] < len(list(self.key_tiles(rows))):
            self.words["O"] += 2 * len(rows)
        self.out = None

    def tile_rows(self, i):
        size = self.plan["rows"]
        return range(i * size, min(self.attention.rows, (i + 1) * size))

    def key_tiles(self, rows):
        """Yield the tiles of keys that rows attend to, each cut at the last key that the last row sees."""
        a, size = self.attention, self.plan["keys"]
        seen = a.keys if not a.causal else a.keys - a.rows // a.group + rows[-1] // a.group + 1
        for j in range(-(-seen // size)):
            yield j, range(j * size, min(seen, (j + 1) * size))

    def walk(self):
        a, plan = self.attention, self.plan
        tiles = range(-(-a.rows // plan["rows"]))
        every = [(i, j, keys) for i in tiles for j, keys in self.key_tiles(self.tile_rows(i))]
        if plan["keys_outer"]:
            every.sort(key=lambda visit: visit[1])
        for i, j, keys in every:
            self.visit(i, j, self.tile_rows(i), keys)
        self.leave()

    def visit(self, i, j, rows, keys):
        a, plan = self.attention, self.plan
        # The rule of advance: of two loops that both turn, the inner one brings its tile in anew whenever it begins.
        turns = {"rows": plan["rows"] < a.rows, "keys": plan["keys"] < a.keys}
        inner, outer = ("rows", "keys") if plan["keys_outer"] else ("keys", "rows")
        again = {inner: turns[inner] and turns[outer], outer: False}
        self.bring("Q", i if not again["rows"] else (i, j), {(r, e) for r in rows for e in range(a.depth)})
        for name, features in (("K", a.depth), ("V", a.width)):
            chunk = plan["key_chunk" if name == "K" else "value_chunk"]
            words = {(k, e) for k in keys for e in range(features)}
            self.bring(name, j if not again["keys"] else (i, j), words, anew=chunk < plan["keys"])
        if self.out != i or again["rows"]:
            self.leave()
            if i in self.made:  # partial outputs and statistics come back
                self.words["O"] += (a.width + 2) * len(rows)
            self.out = i
        self.made[i] = self.made.get(i, 0) + 1
        self.room = max(self.room, self.live(len(rows), len(keys)))
        pairs = len(rows) * len(keys)
        self.pairs += pairs
        if plan["keys"] >= a.keys:
            self.words["logits"] += 2 * max(0, pairs - self.kept)
        self.count(len(rows), len(keys))

    def live(self, rows, keys):
        """Return the words on the chip in a visit: what comes from DRAM or goes there twice, the logits once."""
        a, plan = self.attention, self.plan
        streams = rows * a.depth + min(keys, plan["key_chunk"]) * a.depth
        streams += min(keys, plan["value_chunk"]) * a.width + rows * a.width
        leave = plan["keys_outer"] and plan["rows"] < a.rows
        statistics = 2 * rows * (2 if leave else 1) if plan["keys"] < a.keys else 0
        return 2 * streams + rows * keys + statistics

    def count(self, rows, keys):
        """Step an array through a visit, strip by strip, in each stationarity of both products."""
        a, (x, y) = self.attention, ARRAYS
        found = {
            "L outputs": sum(a.depth for _ in range(0, rows, x) for _ in range(0, keys, y)),
            "L keys": sum(rows for _ in range(0, a.depth, x) for _ in range(0, keys, y)),
            "L rows": sum(keys for _ in range(0, rows, x) for _ in range(0, a.depth, y)),
            "A outputs": sum(keys for _ in range(0, rows, x) for _ in range(0, a.width, y)),
            "A values": sum(rows for _ in range(0, a.width, x) for _ in range(0, keys, y)),
            "A logits": sum(a.width for _ in range(0, rows, x) for _ in range(0, keys, y))}
        for name, cycles in found.items():
            self.cycles[name] = self.cycles.get(name, 0) + cycles


def drawn(rng, count):
    """Return small attentions with plans: ragged, masked, grouped, decoding, spilling."""
    for _ in range(count):
        group = int(rng.integers(1, 4))
        positions, keys = int(rng.integers(1, 6)), int(rng.integers(6, 14))
        a = Attention("a", int(rng.integers(1, 4)), positions * group, keys, *rng.integers(1, 8, 2).tolist(),
                      group=group, causal=bool(rng.integers(2)))
        size = int(rng.integers(1, a.keys + 1)) if rng.integers(2) else a.keys
        plan = (int(rng.integers(1, a.rows + 1)), size, bool(rng.integers(2)),
                *(size if rng.integers(2) else int(rng.integers(1, size + 1)) for _ in range(2)), 1)
        tiles = TilePlans(*(np.array([value]) for value in plan))
        yield a, tiles


def footprint(a, plan):
    """Return the words that a plan needs on the chip, tensor by tensor."""
    rows, keys = plan["rows"], plan["keys"]
    need = 2 * rows * a.depth + 2 * plan["key_chunk"] * a.depth + 2 * plan["value_chunk"] * a.width
    need += 2 * rows * a.width + rows * keys
    if keys < a.keys:
        need += 2 * rows * (2 if plan["keys_outer"] and rows < a.rows else 1)
    return need


def test_fused_plans_move_and_hold_what_a_literal_walk_does():
    rng = np.random.default_rng(16)
    spilled = masked = 0
    for a, tiles in drawn(rng, 400):
        plan = one(tiles, 0)
        need = footprint(a, plan)
        room = need - int(rng.integers(0, plan["rows"] * plan["keys"] + 2)) if plan["keys"] == a.keys else need
        costs = fused_costs(a, machine(room), tiles)
        kept = plan["rows"] * plan["keys"] - max(0, need - room)
        if kept < 0:
            assert not costs.legal[0]
            continue
        walked = Walk(a, plan, kept)
        assert {name: int(words[0]) for name, words in costs.words.items()} == {
            name: a.instances * words for name, words in walked.words.items()}
        assert costs.legal[0] and costs.footprint_words[0] == need
        assert walked.room <= need and (a.causal or walked.room == need)
        best = sum(min(cycles for name, cycles in walked.cycles.items() if name[0] == one_of) for one_of in "LA")
        assert costs.compute_cycles[0] == a.instances * best
        spilled += walked.words["logits"] > 0
        masked += walked.pairs < a.rows * a.keys
    assert spilled > 20 and masked > 20


def test_what_does_not_fit_is_not_legal():
    for a, tiles in drawn(np.random.default_rng(3), 60):
        plan = one(tiles, 0)
        need = footprint(a, plan)
        least = need - (plan["rows"] * plan["keys"] if plan["keys"] == a.keys else 0)
        assert fused_costs(a, machine(least), tiles).legal[0]
        assert not fused_costs(a, machine(least - 1), tiles).legal[0]


def test_unfused_plans_move_what_a_literal_walk_does():
    """The same walk, whose logits all cross to DRAM once in L and once in A, with two statistics a row."""
    for a, tiles in drawn(np.random.default_rng(5), 150):
        plan = one(tiles, 0)
        plan |= {"key_chunk": plan["keys"], "value_chunk": plan["keys"]}
        walked = Walk(a, plan, 0)
        scores, mixed = (costs.words for costs in unfused_costs(a, machine(10**6), tiles))
        again = plan["keys_outer"] and plan["rows"] < a.rows
        visited = sum(len(walked.tile_rows(i)) * n for i, n in walked.made.items())
        assert scores["Q"] + scores["K"] == a.instances * (walked.words["Q"] + walked.words["K"])
        assert scores["logits"] == mixed["logits"] == a.instances * walked.pairs
        assert mixed["V"] == a.instances * walked.words["V"]
        moved = a.width * (2 * visited - a.rows if again else a.rows)
        assert mixed["O"] == a.instances * (moved + 2 * a.rows)
        assert scores["O"] == a.instances * 2 * (2 * visited - a.rows if again else a.rows)


def tiled_attention(a, plan, q, k, v):
    """Run the loops of a fused plan on numbers: running maxima and sums, partial outputs scaled anew."""
    walk = Walk(a, plan, plan["rows"] * plan["keys"])
    top, total, out = np.full(a.rows, -np.inf), np.zeros(a.rows), np.zeros((a.rows, a.width))
    every = [(i, j, keys) for i in range(-(-a.rows // plan["rows"])) for j, keys in walk.key_tiles(walk.tile_rows(i))]
    for i, _, keys in sorted(every, key=lambda visit: visit[1]) if plan["keys_outer"] else every:
        rows = list(walk.tile_rows(i))
        logits = q[rows] @ k[list(keys)].T
        logits[mask(a)[np.ix_(rows, list(keys))]] = -np.inf
        highest = np.maximum(top[rows], logits.max(axis=1))
        scale, shares = np.exp(top[rows] - highest), np.exp(logits - highest[:, None])
        total[rows] = total[rows] * scale + shares.sum(axis=1)
        out[rows] = out[rows] * scale[:, None] + shares @ v[list(keys)]
        top[rows] = highest
    return out / total[:, None]


def mask(a):
    """Return which pairs are masked, by the position of each row."""
    position = np.arange(a.rows)[:, None] // a.group
    return (np.arange(a.keys)[None] > a.keys - a.rows // a.group + position) & a.causal


def test_the_online_softmax_computes_attention():
    rng = np.random.default_rng(7)
    for a, tiles in drawn(rng, 60):
        q, k, v = (rng.normal(size=shape) * 4 for shape in ((a.rows, a.depth), (a.keys, a.depth), (a.keys, a.width)))
        logits = np.where(mask(a), -np.inf, q @ k.T)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        expected = shares / shares.sum(axis=1, keepdims=True) @ v
        assert np.allclose(tiled_attention(a, one(tiles, 0), q, k, v), expected)
        assert a.pairs == int((~mask(a)).sum())


@pytest.mark.parametrize("causal", [False, True])
def test_grouped_queries_read_the_keys_of_their_heads_once(causal):
    """Four heads over one of keys move a quarter of the keys that four pairs do."""
    alone = Attention("a", 4, 8, 8, 4, 4, causal=causal)
    grouped = replace(alone, instances=1, rows=32, group=4)
    plan = TilePlans(*(np.array([value]) for value in (8, 8, False, 8, 8, 1)))
    of = [fused_costs(each, machine(10**6), plan).words for each in (alone, grouped)]
    assert of[0]["K"] == 4 * of[1]["K"] and of[0]["Q"] == of[1]["Q"] and of[0]["O"] == of[1]["O"]
    assert alone.pairs * 4 == grouped.pairs
