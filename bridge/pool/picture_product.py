"""The product of pictures and a matrix from the pictures' corners: a network's first layer, and its gradient.

A cell is a sum of corners, so the product is that of the corners and a matrix of sums: `integrate` sums once,
then each picture costs as many rows of the matrix as it has corners, a hundred of 8,640. Each picture is
summed by itself and in the order of its list, so its bits do not depend on what stands beside it.
"""

from bridge.jit import inline, kernel
from bridge.pool.encode import block
from bridge.pool.state import COLOURS, LONGEST_SILENCE, Array


@inline
def _scale(column: int, units: int, width: int) -> int:
    """Return what the cells of a column are divided by."""
    if column < units:
        return COLOURS
    return LONGEST_SILENCE if column == width - 1 else 1


@inline
def _add(row: Array, other: Array) -> None:
    for m in range(row.shape[0]):
        row[m] += other[m]


@inline
def _divide(row: Array, scale: int) -> None:
    if scale != 1:
        for m in range(row.shape[0]):
            row[m] /= scale


@kernel
def integrate(matrix: Array, units: int, width: int, out: Array) -> None:
    """Sum a matrix for pictures into one for their corners: over all cells that a corner is part of.

    Args:
        matrix: [H * width, M].
        units: R, first columns of a picture.
        width: of a picture.
        out: [H * width, M] written.
    """
    for first in range(0, matrix.shape[0], width):
        for column in range(width):
            row, weights = out[first + column], matrix[first + column]
            for m in range(row.shape[0]):
                row[m] = weights[m]
            _divide(row, _scale(column, units, width))
            if column > block(column, units, width):
                _add(row, out[first + column - 1])
        for column in range(width):
            if first > 0 and column != width - 2:
                _add(out[first + column], out[first - width + column])


@kernel
def times(cells: Array, values: Array, offsets: Array, which: Array, matrix: Array, out: Array) -> None:
    """Add pictures times a matrix.

    Args:
        cells, values: the corners of D pictures, one after the other.
        offsets: i8 [D + 1] where each begins.
        which: i8 [N] the pictures wanted.
        matrix: [H * width, M] integrated.
        out: [N, M] added to.
    """
    for i in range(which.shape[0]):
        row = out[i]
        for k in range(offsets[which[i]], offsets[which[i] + 1]):
            value, weights = values[k], matrix[cells[k]]
            for m in range(row.shape[0]):
                row[m] += value * weights[m]


@kernel
def transposed_times(
    cells: Array, values: Array, offsets: Array, which: Array, gradient: Array, out: Array
) -> None:
    """Add transposed corners times a matrix: the gradient of `times` by its matrix.

    Args:
        cells, values, offsets, which: as in `times`.
        gradient: [N, M].
        out: [H * width, M] added to.
    """
    for i in range(which.shape[0]):
        row = gradient[i]
        for k in range(offsets[which[i]], offsets[which[i] + 1]):
            value, sums = values[k], out[cells[k]]
            for m in range(row.shape[0]):
                sums[m] += value * row[m]


@kernel
def integrate_back(gradient: Array, units: int, width: int) -> None:
    """Turn the gradient by an integrated matrix into that by the matrix, in place.

    Args:
        gradient: [H * width, M].
        units, width: as in `integrate`.
    """
    last = gradient.shape[0] - width
    for first in range(last, -1, -width):
        for column in range(width - 2, -1, -1):
            if column + 1 > block(column + 1, units, width):
                _add(gradient[first + column], gradient[first + column + 1])
        for column in range(width):
            row = gradient[first + column]
            _divide(row, _scale(column, units, width))
            if first < last and column != width - 2:
                _add(row, gradient[first + width + column])
