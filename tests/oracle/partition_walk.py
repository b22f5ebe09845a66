"""Products on sub-arrays, walked fold by fold and word by word; shares no code with the closed forms."""

from collections import Counter
from itertools import product as every
from math import ceil


class PartitionWalk:
    """One product on one configuration of an array under some effects. Slow on purpose, for small products."""

    def __init__(self, sizes, one, array, effects):
        self.sizes, self.one, self.array, self.effects = sizes, one, array, effects
        m, n, k = sizes
        flow = one.dataflow
        down, across, self.streamed = {"os": (m, n, k), "ws": (k, n, m), "is": (k, m, n)}[flow]
        self.streaming, self.other = ("weights", "inputs") if flow == "is" else ("inputs", "weights")
        rows, columns = blocks(down, one.down), blocks(across, one.across)
        self.units = [(r, c) for r, c in every(rows, columns) if r and c]
        self.copies = len([block for block in rows if block])
        self.counts = Counter()

    def energy_pj(self, bank_bytes, table):
        """Return what every event that was walked takes by a table of energies, and each cycle besides; after `run`."""
        figures, bits, words = self.run(), 8, Counter()
        for _, _, tiles in self.folds():
            words["macs"] += sum(len(rows) * len(columns) * self.streamed for rows, columns in tiles.values())
        words["read"] = figures["input_reads"] + figures["weight_reads"] + figures.get("output_reads", 0)
        words["written"] = figures["output_writes"]
        words["moved"] = figures.get("dram_reads", 0) + figures.get("dram_writes", 0)
        each = {"macs": table.mac_pj("int", bits), "read": table.read_pj("sram", bank_bytes, bits),
                "written": table.write_pj("sram", bank_bytes, bits), "moved": table.dram_pj("HBM2", bits)}
        full_use = self.array.macs * each["macs"] + 2 * self.array.banks * each["read"]
        idle = self.array.power_w * 1e12 / (self.array.clock_ghz * 1e9) - full_use
        return sum(words[event] * each[event] for event in words) + idle * figures["cycles"]

    def run(self):
        """Return the figures by name."""
        self.counts = Counter()
        compute = self.walk_folds()
        found, banks = self.counts, self.array.banks
        steady = compute
        if self.effects.ports:
            busy = (found["input_reads"], found["weight_reads"], found["output_writes"] + found["output_reads"])
            steady = max(steady, *(ceil(words / banks) for words in busy))
        if self.effects.dram != "off":
            self.walk_memories()
            if self.array.dram_words_per_cycle:
                moved = found["dram_reads"] + found["dram_writes"]
                steady = max(steady, ceil(moved / self.array.dram_words_per_cycle))
        cycles = steady + (self.farthest() if self.effects.bypass else 0)
        if self.one.dataflow != "os" and self.copies > 1:
            cycles += self.add_up()
        return {**found, "cycles": cycles, "compute_cycles": compute, "active_partitions": len(self.units)}

    def folds(self):
        """Yield each fold's number and, by unit, its rows and columns; sub-arrays keep step."""
        one = self.one
        rounds = max(ceil(len(columns) / one.columns) for _, columns in self.units)
        depth = max(ceil(len(rows) / one.rows) for rows, _ in self.units)
        for column_fold, row_fold in every(range(rounds), range(depth)):
            tiles = {}
            for unit, (rows, columns) in enumerate(self.units):
                held = (rows[row_fold * one.rows:(row_fold + 1) * one.rows],
                        columns[column_fold * one.columns:(column_fold + 1) * one.columns])
                if all(held):
                    tiles[unit] = held
            yield column_fold, row_fold, tiles

    def walk_folds(self):
        """Count what the memories hand out and take; return the cycles."""
        cycles, resting = 0, self.one.dataflow != "os"
        for _, row_fold, tiles in self.folds():
            begin = max(len(rows) for rows, _ in tiles.values()) if resting else 0
            end, asked, sums = 0, [], []
            for rows, columns in tiles.values():
                for (lane, row), time in every(enumerate(rows), range(self.streamed)):
                    asked.append((begin + lane + time, self.streaming, (row, time)))
                if resting:
                    asked += [(0, self.other, (row, column)) for row, column in every(rows, columns)]
                else:
                    asked += [(lane + time, self.other, (time, column))
                              for (lane, column), time in every(enumerate(columns), range(self.streamed))]
                for lane, column in enumerate(columns):
                    leaves = (begin + self.one.rows if resting else len(rows)) + lane + self.streamed - 1
                    end = max(end, leaves)
                    sums += [(time, column) for time in range(self.streamed)] if resting else [
                        (row, column) for row in rows]
            asked = set(asked) if self.effects.collation else asked
            sums = set(sums) if resting and self.effects.summation == "tree" else sums
            self.counts["input_reads"] += sum(memory == "inputs" for _, memory, _ in asked)
            self.counts["weight_reads"] += sum(memory == "weights" for _, memory, _ in asked)
            self.counts["output_writes"] += len(sums)
            self.counts["output_reads"] += len(sums) if resting and row_fold else 0
            cycles += end
        return cycles

    def farthest(self):
        """Return the most cycles of bypass links on the way in and out, over where a sub-array may lie."""
        cell, stage = self.array.cell, self.array.cells_per_stage
        spare = [max(0, side - own) // cell for side, own in zip(self.array.plane, (self.one.rows, self.one.columns),
                                                                 strict=True)]
        places = every(range(0, spare[0] + 1, self.one.rows // cell), range(0, spare[1] + 1, self.one.columns // cell))
        return max(max(x // stage, y // stage) + (spare[0] - y) // stage for y, x in places)

    def add_up(self):
        """Return the cycles that adding the sums of sub-arrays takes after all else, and count its words."""
        if self.effects.summation == "tree":
            left, levels = self.copies, 0
            while left > 1:
                left, levels = ceil(left / 2), levels + 1
            return levels
        if self.effects.summation == "free":
            return 0
        outputs = self.sizes[0] * self.sizes[1]
        self.counts["output_reads"] += outputs * self.copies
        self.counts["output_writes"] += outputs
        return ceil(outputs * (self.copies + 1) / self.array.banks)

    def walk_memories(self):
        """Count what comes from DRAM and goes there: for memories that all share, or each unit for itself."""
        apart, words = self.effects.dram == "replicated", self.array.banks * self.array.bank_words
        half = (words // self.one.partitions if apart else words) // 2
        groups = [[unit] for unit in range(len(self.units))] if apart else [list(range(len(self.units)))]
        banks = self.one.dataflow != "os" and self.effects.summation == "banks" and self.copies > 1
        for group in groups:
            self.walk_operands(group, half)
            if self.one.dataflow != "os":
                self.walk_sums(group, half, banks and not apart)
        outputs = self.sizes[0] * self.sizes[1]
        self.counts["dram_writes"] += outputs
        if banks and apart:
            self.counts["dram_writes"] += outputs * self.copies
            self.counts["dram_reads"] += outputs * self.copies

    def walk_operands(self, group, half):
        stream = {(row, time) for unit in group for row in self.units[unit][0] for time in range(self.streamed)}
        seen, stays, wide = set(), set(), self.one.dataflow == "os"
        columns = {column for unit in group for column in self.units[unit][1]}
        all_wide = len(columns) * self.streamed
        for column_fold, row_fold, tiles in self.folds():
            here = [tiles[unit] for unit in group if unit in tiles]
            if not here:
                continue
            if row_fold == 0 and (column_fold == 0 or len(stream) > half):
                self.counts["dram_reads"] += len(stream)
            if not wide:
                self.counts["dram_reads"] += sum(len(rows) * len(across) for rows, across in here)
                continue
            tile = {(time, column) for _, across in here for column in across for time in range(self.streamed)}
            if column_fold not in stays and not (all_wide <= half and tile <= seen):
                self.counts["dram_reads"] += len(tile)
            seen |= tile
            if len(tile) <= half:
                stays.add(column_fold)

    def walk_sums(self, group, half, banked):
        by_fold = {}
        for column_fold, row_fold, tiles in self.folds():
            for unit in group:
                if unit in tiles:
                    by_fold.setdefault(column_fold, []).append((row_fold, tiles[unit]))
        for folds in by_fold.values():
            outputs = {(time, column) for _, (_, across) in folds for column in across for time in range(self.streamed)}
            if len(outputs) * (self.copies if banked else 1) <= half:
                continue
            if banked:
                again = sum(len(across) * self.streamed for _, (_, across) in folds)
            else:
                again = len(outputs) * max(row_fold for row_fold, _ in folds)
            self.counts["dram_reads"] += again
            self.counts["dram_writes"] += again


def blocks(size, parts):
    """Return the indices of each part."""
    each = ceil(size / parts)
    return [list(range(size))[part * each:(part + 1) * each] for part in range(parts)]
