"""A systolic array, walked cycle by cycle with real numbers; shares no code with the closed forms.

Registers of every element are moved once a cycle; what enters at an edge is a read, what leaves a write. The sums that
leave are the product itself, so that an array that were wired or timed wrongly would give a wrong product.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tilewright.cost import SYSTOLIC_RULES, SystolicArray, SystolicConventions

Matrix = NDArray[np.int64]
Place = tuple[int, int]
Word = tuple[int, Place] | None
"""A value and its place in its matrix; None where a cycle brings nothing. (-1, -1) is the turn of an idle lane."""
_IDLE: Place = (-1, -1)


@dataclass
class WalkedSystolic:
    """What a walk counted. ``input_order`` and ``weight_order``: places of operands in the order they are asked for."""

    product: Matrix
    cycles: int = 0
    output_writes: int = 0
    output_reads: int = 0
    input_order: list[Place] = field(default_factory=list)
    weight_order: list[Place] = field(default_factory=list)

    @property
    def input_reads(self) -> int:
        """Words of inputs that entered the array."""
        return len(self.input_order)

    @property
    def weight_reads(self) -> int:
        """Words of weights that entered the array."""
        return len(self.weight_order)


def walk_systolic(inputs: Matrix, weights: Matrix, array: SystolicArray,
                  conventions: SystolicConventions = SYSTOLIC_RULES) -> WalkedSystolic:
    """Run ``inputs`` (m, k) times ``weights`` (k, n) on an array, fold by fold. Slow on purpose, for small products."""
    rows, columns = array.rows, array.columns
    (m, k), n = inputs.shape, weights.shape[1]
    found = WalkedSystolic(np.zeros((m, n), dtype=np.int64))
    down, across = {"os": (m, n), "ws": (k, n), "is": (k, m)}[array.dataflow]
    for left in range(0, across, columns):
        for top in range(0, down, rows):
            tile = (range(top, min(top + rows, down)), range(left, min(left + columns, across)))
            fold = _Fold(inputs, weights, rows, columns, tile, conventions, found)
            if array.dataflow == "os":
                fold.hold_outputs()
            else:
                fold.hold_operand(array.dataflow == "ws")
    if conventions.last_cycle_index:
        found.cycles -= 1
    return found


@dataclass
class _Fold:
    """One tile on the array, ``tile`` being the rows and columns of the matrix that lie along its sides."""

    inputs: Matrix
    weights: Matrix
    rows: int
    columns: int
    tile: tuple[range, range]
    conventions: SystolicConventions
    found: WalkedSystolic

    def lanes(self) -> tuple[int, int]:
        """Return how many rows and columns take part in the timing: those of the tile, or all."""
        if self.conventions.whole_folds:
            return self.rows, self.columns
        return len(self.tile[0]), len(self.tile[1])

    def hold_outputs(self) -> None:
        """Let inputs enter at the left and weights at the top; sums grow in place and leave by their column's bus."""
        lane_rows, lane_columns = self.lanes()
        depth = self.inputs.shape[1]
        from_left: list[list[Word]] = [[None] * self.columns for _ in range(self.rows)]
        from_top: list[list[Word]] = [[None] * self.columns for _ in range(self.rows)]
        sums = [[0] * self.columns for _ in range(self.rows)]
        terms = [[0] * self.columns for _ in range(self.rows)]
        done, cycle = 0, 0
        while done < lane_rows * lane_columns:
            for i in range(self.rows):
                step = cycle - i
                entering = self._input(i, step) if i < lane_rows and 0 <= step < depth else None
                from_left[i] = [entering, *from_left[i][:-1]]
            top_row: list[Word] = []
            for j in range(self.columns):
                step = cycle - j
                top_row.append(self._weight(j, step) if j < lane_columns and 0 <= step < depth else None)
            from_top = [top_row, *from_top[:-1]]
            leaving = [0] * self.columns
            for i in range(lane_rows):
                for j in range(lane_columns):
                    a, b = from_left[i][j], from_top[i][j]
                    if a is None or b is None:
                        continue
                    sums[i][j] += a[0] * b[0]
                    terms[i][j] += 1
                    if terms[i][j] == depth:
                        done += 1
                        leaving[j] += 1
                        self._hand_out(i, j, sums[i][j])
            if max(leaving) > 1:
                raise AssertionError("a column's bus carries one word a cycle")
            cycle += 1
        self.found.cycles += cycle + (self.rows if self.conventions.shifted_outputs else 0)
        if self.conventions.side_writes:
            self.found.output_writes += self.rows + self.columns

    def _input(self, i: int, step: int) -> Word:
        if i >= len(self.tile[0]):
            return 0, _IDLE
        place = self.tile[0][i], step
        self.found.input_order.append(place)
        return int(self.inputs[place]), place

    def _weight(self, j: int, step: int) -> Word:
        if j >= len(self.tile[1]):
            return 0, _IDLE
        place = step, self.tile[1][j]
        self.found.weight_order.append(place)
        return int(self.weights[place]), place

    def _hand_out(self, i: int, j: int, value: int) -> None:
        if i < len(self.tile[0]) and j < len(self.tile[1]):
            self.found.product[self.tile[0][i], self.tile[1][j]] = value
            self.found.output_writes += 1

    def hold_operand(self, weights_rest: bool) -> None:
        """Shift a tile in from the top; stream the other operand in at the left; sums pass down through all rows."""
        streamed = self.inputs if weights_rest else self.weights.T
        order_streamed = self.found.input_order if weights_rest else self.found.weight_order
        lane_rows, lane_columns = self.lanes()
        depths = self.tile[0]
        held = self._shift_in(lane_rows, weights_rest)
        length, first = streamed.shape[0], depths.start == 0
        moving: list[list[Word]] = [[None] * self.columns for _ in range(self.rows)]
        partial: list[list[Word]] = [[None] * self.columns for _ in range(self.rows)]
        done, cycle = 0, 0
        while done < length * lane_columns:
            above: list[Word] = [None] * self.columns
            for j in range(lane_columns):
                if 0 <= cycle - j < length:
                    above[j] = self._partial(cycle - j, j, first, weights_rest)
            incoming = [above, *partial[:-1]]
            for i in range(self.rows):
                entered: Word = None
                if i < len(depths) and 0 <= cycle - i < length:
                    place = cycle - i, depths[i]
                    entered = int(streamed[place]), place
                    order_streamed.append(place if weights_rest else (place[1], place[0]))
                moving[i] = [entered, *moving[i][:-1]]
            partial = [[self._added(incoming[i][j], moving[i][j], held[i][j]) for j in range(self.columns)]
                       for i in range(self.rows)]
            for j in range(lane_columns):
                left = partial[self.rows - 1][j]
                if left is not None:
                    done += 1
                    self._sum_leaves(left, j, weights_rest)
            cycle += 1
        self.found.cycles += lane_rows + cycle

    def _shift_in(self, lane_rows: int, weights_rest: bool) -> list[list[int]]:
        """Return what every element holds after the tile came in from the top, its last row first."""
        resting = self.weights if weights_rest else self.inputs.T
        order = self.found.weight_order if weights_rest else self.found.input_order
        depths, across = self.tile
        held = [[0] * self.columns for _ in range(self.rows)]
        for step in range(lane_rows):
            entering = lane_rows - 1 - step
            held = [[0] * self.columns, *held[:-1]]
            if entering >= len(depths):
                continue
            for j, column in enumerate(across):
                held[0][j] = int(resting[depths[entering], column])
                order.append((depths[entering], column) if weights_rest else (column, depths[entering]))
        return held

    def _partial(self, step: int, j: int, first: bool, weights_rest: bool) -> Word:
        """Return what enters a column at the top: nothing yet, or the sum of the folds before, read back."""
        if first or j >= len(self.tile[1]):
            return 0, (step, j)
        if not self.conventions.unread_partial_sums:
            self.found.output_reads += 1
        column = self.tile[1][j]
        return int(self.found.product[(step, column) if weights_rest else (column, step)]), (step, j)

    @staticmethod
    def _added(sum_so_far: Word, operand: Word, held: int) -> Word:
        if sum_so_far is None:
            return None
        if operand is None:
            return sum_so_far
        if operand[1][0] != sum_so_far[1][0]:
            raise AssertionError("an operand must meet the sum of its own row")
        return sum_so_far[0] + operand[0] * held, sum_so_far[1]

    def _sum_leaves(self, word: tuple[int, Place], j: int, weights_rest: bool) -> None:
        if j >= len(self.tile[1]):
            return
        column, step = self.tile[1][j], word[1][0]
        self.found.product[(step, column) if weights_rest else (column, step)] = word[0]
        self.found.output_writes += 1


def fetched_words(order: list[int], half: int, eager: bool = False) -> int:
    """Return how many words a memory fetches that holds up to ``half`` since it was last emptied.

    ``order`` is what is asked for, -1 being nothing. It is emptied for the next word, or (``eager``) once it is full.
    """
    held: set[int] = set()
    fetched = 0
    for word in order:
        if word < 0 or word in held:
            continue
        if len(held) == half:
            held.clear()
        held.add(word)
        fetched += 1
        if eager and len(held) == half:
            held.clear()
    return fetched
