"""Why the words of a plan of attention are what they are: derived from its tiles, held against what the plan costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tilewright.base import InputError
from tilewright.fusion.flat.costs import STATISTICS, TilePlans, visits
from tilewright.fusion.flat.machines import FlatMachine
from tilewright.fusion.flat.search import AttentionPlan, TilePlan

Line = tuple[str, int, int]
"""Why, how many (of one instance), and words of each."""
TENSORS = ("Q", "K", "V", "O", "logits")
_ACROSS = {"reads": "in", "fills": "in", "updates": "out", "drains": "out"}


@dataclass(frozen=True)
class AttentionCounts:
    """Words of a plan by memory, tensor and kind: across the edge of the chip, and held in the buffer at a time.

    Of DRAM there are ``reads`` and ``updates``; of the buffer ``fills`` (what DRAM gives), ``drains`` (what it takes)
    and ``held``. The model does not tell words between buffer and array by tensor.
    """

    plan: AttentionPlan
    machine: FlatMachine
    unit: ClassVar[str] = "Words"

    def rows(self) -> Iterator[tuple[str, str, int]]:
        """Yield the operators, the count and the words of all there are."""
        for tensor in TENSORS:
            for memory, kinds in zip(self.machine.memories, (("reads", "updates"), ("fills", "drains", "held")),
                                     strict=True):
                for kind in kinds:
                    name = "-".join(part.operators for part in self.plan.parts)
                    yield name, f"{memory}.{tensor}.{kind}", self.value(tensor, kind)

    def value(self, tensor: str, kind: str) -> int:
        """Return the words of all instances; of what is held, those of the part that holds most."""
        found = [sum(count * each for _, count, each in self._lines(part, tensor, kind)) for part in self.plan.parts]
        return max(found) if kind == "held" else self.plan.attention.instances * sum(found)

    def explain(self, count: str) -> str:
        """Derive a count, ``MEMORY.TENSOR.KIND``.

        Raises an `InputError` if there is no such count.
        """
        known = {name.lower(): name for _, name, _ in self.rows()}
        if count.strip().lower() not in known:
            raise InputError("count", "must be MEMORY.TENSOR.KIND of the plan", count,
                             f"There are {', '.join(known.values())}")
        name = known[count.strip().lower()]
        _, tensor, kind = name.split(".")
        value, times = self.value(tensor, kind), self.plan.attention.instances
        told = [f"{name} = {value:,} words", self.plan.loops]
        for part in self.plan.parts:
            lines = [f"  {count:,} x {each:,} words = {count * each:,}: {why}"
                     for why, count, each in self._lines(part, tensor, kind)]
            told.append("\n".join([f"{part.operators}, one instance:", *(lines or ["  0: it takes none"])]))
        if kind == "held":
            told.append(f"At a time, of the {self.plan.cost.footprint_words:,} words of all tensors.")
        else:
            both = self.value(tensor, "reads") + self.value(tensor, "updates")
            told += [f"Of {times:,} instances, which share no words.",
                     f"In and out of the chip together {both:,} words of {tensor}; the cost of the plan has "
                     f"{self.plan.cost.words.get(tensor, 0):,}."]
        return "\n\n".join(told)

    def _lines(self, part: TilePlan, tensor: str, kind: str) -> tuple[Line, ...]:
        lines = self._held(part) if kind == "held" else self._moved(part)
        return tuple(line for line in lines.get((tensor, _ACROSS.get(kind, kind)), ()) if line[1] and line[2])

    def _held(self, part: TilePlan) -> dict[tuple[str, str], tuple[Line, ...]]:
        one, fused, twice = self.plan.attention, part.operators == "L-A", "what touches DRAM takes the buffer twice"
        chunks = {"K": min(part.key_chunk, part.keys) if fused else part.keys,
                  "V": min(part.value_chunk, part.keys) if fused else part.keys}
        found = dict[tuple[str, str], tuple[Line, ...]]()
        for tensor, operator, rows in (("Q", "L", part.rows), ("K", "L", chunks["K"]), ("V", "A", chunks["V"]),
                                       ("O", "A", part.rows)):
            if operator in part.operators:
                size = one.depth if operator == "L" else one.width
                found[tensor, "held"] = (f"rows of {size} features, twice: {twice}", rows, 2 * size),
        again = part.keys_outer and part.rows < one.rows
        statistics = STATISTICS * (2 if again else 1) * (fused and part.keys < one.keys)
        found["O", "held"] = (*found.get(("O", "held"), ()), ("maximum and sum of each row", part.rows, statistics))
        tiles = part.buffers if fused else 2
        why = "tiles that take turns" if fused and tiles > 1 else "one tile, made and used here" if fused else twice
        found["logits", "held"] = (f"pairs of a tile, x {tiles}: {why}", part.rows * part.keys, tiles),
        return found

    def _moved(self, part: TilePlan) -> dict[tuple[str, str], tuple[Line, ...]]:
        one, fused = self.plan.attention, part.operators == "L-A"
        tiles = TilePlans(*(np.array([value]) for value in tuple(vars(part).values())[1:]))
        logits = part.rows * part.keys * part.buffers
        held = sum(count * each for lines in self._held(part).values() for _, count, each in lines)
        room = max(0, logits - max(0, held - self.machine.capacity_words)) if fused else logits
        seen = visits(one, tiles, (self.machine.rows, self.machine.columns), np.array([room]))
        again = part.keys_outer and part.rows < one.rows
        passes = f"tiles of rows by the up to {seen.key_tiles[0]:,} tiles of keys that they attend to"
        queries = int(seen.rows[0]) if again else one.rows
        back = int(seen.rows[0]) - one.rows if again else 0
        whys = (f"rows that come for each tile of keys: {passes}" if again else "rows, each once",
                "rows that leave after each tile of keys" if again else "rows, each once",
                "rows whose partial outputs, maxima or sums come back for the next tile of keys")
        found = dict[tuple[str, str], tuple[Line, ...]]()
        for tensor, operator, size, chunk in (("K", "L", one.depth, part.key_chunk),
                                              ("V", "A", one.width, part.value_chunk)):
            once = (chunk >= part.keys or not fused) and (part.keys_outer or seen.key_tiles[0] == 1)
            why = "keys, each once: a tile of them is held while all rows pass" if once else (
                f"keys that come again for each of {seen.row_tiles[0]:,} tiles of rows"
                if not one.causal else "keys that come again for each tile of rows that attends to them")
            if operator in part.operators:
                found[tensor, "in"] = (why, one.keys if once else int(seen.keys[0]), size),
        width, spilled = one.width, int(seen.spilled[0])
        if "L" in part.operators:
            found["Q", "in"] = (whys[0], queries, one.depth),
        if fused:
            lost = f"logits beyond the {room:,} of a tile that the buffer holds" if spilled else ""
            found |= {("O", "out"): ((whys[1], one.rows + back, width), (whys[2], back, STATISTICS)),
                      ("O", "in"): ((whys[2], back, width + STATISTICS),),
                      ("logits", "in"): ((lost, spilled, 1),), ("logits", "out"): ((lost, spilled, 1),)}
        elif part.operators == "L":
            found |= {("O", "out"): (("maximum and sum of each row, for A", one.rows + back, STATISTICS),),
                      ("O", "in"): ((whys[2], back, STATISTICS),),
                      ("logits", "out"): (("pairs of all tiles, which go to DRAM", int(seen.pairs[0]), 1),)}
        else:
            found |= {("O", "out"): ((whys[1], one.rows + back, width),),
                      ("O", "in"): ((whys[2], back, width), ("maximum and sum of each row", one.rows, STATISTICS)),
                      ("logits", "in"): (("pairs of all tiles, which come from DRAM", int(seen.pairs[0]), 1),)}
        return found
