"""Universal scalability law: what contention and coherence make of N workers.

    X(N) = g N / (1 + a (N - 1) + b N (N - 1))

Gunther, "Guerrilla Capacity Planning", 2007. `a` is the fraction that is serialised, `b` the cost of agreeing.
"""

from __future__ import annotations

from collections.abc import Sequence

from tricorn.record import Record


class Fit(Record):
    rate: float
    """Requests a second of one worker (g)."""
    contention: float
    coherence: float

    def at(self, workers: float) -> float:
        below = 1 + self.contention * (workers - 1) + self.coherence * workers * (workers - 1)
        return self.rate * workers / below


def fit(points: Sequence[tuple[int, float]]) -> Fit | None:
    """Fits by linear least squares on N / X(N), after Gunther. None for fewer than three different N.

    N / X = (1 + a (N - 1) + b N (N - 1)) / g is linear in 1/g, a/g and b/g. Coefficients below zero, which noise
    produces, become zero.
    """
    if len({workers for workers, _ in points}) < 3:
        return None
    rows = [(1.0, workers - 1.0, workers * (workers - 1.0)) for workers, _ in points]
    values = [workers / rate for workers, rate in points]
    for columns in ((0, 1, 2), (0, 1), (0,)):
        solved = _least_squares([[row[column] for column in columns] for row in rows], values)
        if solved is not None and solved[0] > 0 and min(solved[1:], default=0.0) >= 0:
            contention, coherence = [*(part / solved[0] for part in solved[1:]), 0.0, 0.0][:2]
            return Fit(1 / solved[0], contention, coherence)
    return None


def _least_squares(rows: list[list[float]], values: list[float]) -> list[float] | None:
    """Solves the normal equations by elimination. None if they are singular."""
    size = len(rows[0])
    matrix = [[sum(row[i] * row[j] for row in rows) for j in range(size)] for i in range(size)]
    right = [sum(row[i] * value for row, value in zip(rows, values, strict=True)) for i in range(size)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda row: abs(matrix[row][i]))
        if abs(matrix[pivot][i]) < 1e-12:
            return None
        matrix[i], matrix[pivot], right[i], right[pivot] = matrix[pivot], matrix[i], right[pivot], right[i]
        for row in range(i + 1, size):
            factor = matrix[row][i] / matrix[i][i]
            right[row] -= factor * right[i]
            for column in range(i, size):
                matrix[row][column] -= factor * matrix[i][column]
    solved = [0.0] * size
    for i in reversed(range(size)):
        solved[i] = (right[i] - sum(matrix[i][j] * solved[j] for j in range(i + 1, size))) / matrix[i][i]
    return solved
