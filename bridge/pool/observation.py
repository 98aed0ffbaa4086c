"""What an agent sees of a time-stepped pool: a picture, written as the list of its corners.

The picture is RLSchert's (2021, Figure 3): H rows, one per step ahead. From left to right: R columns of the
pool, a row's cells sorted, each with the colour of the job that has booked it, 0 free; 10 columns for every
visible waiting job, as many ones in a row as it asks for units, in as many rows as it is believed to run, or
with `oracle_picture` as it will run; a column of the kill slots, H / K rows each, of which the first 6 are
numbers about a running job; a column of the steps since the last arrival.

All but the kill slots' column is made of rectangles. So instead of cells only their corners are listed:
within a block of columns (the pool, a waiting job, the last column), a cell is the sum of all corners at or
below its row and at or right of its column, divided by the block's scale. A picture of 8,640 cells has about
a hundred corners; they are whole numbers, so that the cells come out exactly.

So is the product of pictures and a matrix, a network's first layer, and its gradient: that of the corners and
a matrix of sums. `integrate` sums once, then each picture costs as many rows of the matrix as it has corners.
Each is summed by itself and in the order of its list, so its bits do not depend on what stands beside it.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Array, Floats32, Ints
from bridge.base.errors import BridgeError
from bridge.base.jit import inline, inner, kernel
from bridge.pool.booking import believed_now
from bridge.pool.jobset import MOST_UNITS
from bridge.pool.settings import PoolConfig
from bridge.pool.state import COLOURS, LONGEST_SILENCE, PoolState
from bridge.scheduler.state import zeros

Cells = npt.NDArray[np.int32]

#: Numbers about a running job.
FEATURES = 6
#: What lengths and the time of arrival are divided by (RLSchert's job_len and simu_len).
_LENGTH, _ARRIVAL = 100.0, 200.0


def shape(settings: PoolConfig) -> tuple[int, int]:
    """Return height and width of such a pool's picture (120 x 72 by default), if its kill slots fit in."""
    if FEATURES * settings.kill_slots > settings.horizon:
        what = f"{settings.kill_slots} kill slots do not fit into a picture of {settings.horizon} steps"
        remedy = f"At most {settings.horizon // FEATURES}, or a longer horizon."
        raise BridgeError(what, where="time-stepped pool: kill_slots", remedy=remedy)
    return settings.horizon, settings.units + MOST_UNITS * settings.slots + 2


def most_corners(settings: PoolConfig) -> int:
    return settings.horizon * settings.units + settings.slots + FEATURES * settings.kill_slots + 1


def highest(settings: PoolConfig) -> Floats32:
    """Return what no cell exceeds; none is below 0."""
    picture = np.ones(shape(settings), np.float32)
    longest, steps = settings.horizon - 1, settings.last_step + 1
    limits = (longest / _LENGTH, steps / _LENGTH, longest - 1, longest / _LENGTH, steps / _ARRIVAL, 1.0)
    rows = settings.horizon // max(settings.kill_slots, 1)
    for k in range(settings.kill_slots):
        picture[k * rows : k * rows + FEATURES, -2] = limits
    return picture


class Scratch(NamedTuple):
    last: Annotated[Array, "?", "H"]  # whether the pool looks different in the step behind
    ending: Annotated[Array, "i4", "H"]  # one of the bookings that end with a step, or -1
    following: Annotated[Array, "i4", "L"]  # another one that ends with the same step, or -1
    active: Annotated[Array, "i4", "L"]  # jobs booked in a step, highest colour first
    row: Annotated[Array, "i4", "R + 1"]  # colours of the pool's cells in a step, and 0
    below: Annotated[Array, "i4", "R + 1"]  # the same, in the step behind


def scratch(state: PoolState) -> Scratch:
    """Return scratch memory for pools like these."""
    height, length = state.free.shape[1], state.booked.shape[1]
    return zeros(Scratch, {"H": height, "L": length, "R + 1": int(state.pool.units[0]) + 1})


@inline
def _list_bookings(state: PoolState, b: int, scratch: Scratch) -> None:
    """Note with which step ahead each booking ends, and behind which steps the pool looks different."""
    env = state.env[b]
    last, ending = scratch.last, scratch.ending
    last[:] = False
    ending[:] = -1
    for k in range(env.n_booked):
        job = state.jobs[b, state.booked[b, k]]
        first, end = job.start - env.now, min(job.until - env.now, last.shape[0]) - 1
        if 0 < first <= last.shape[0]:
            last[first - 1] = True
        if end >= 0:
            last[end] = True
            scratch.following[k] = ending[end]
            ending[end] = k


@inner
def _canvas(state: PoolState, b: int, scratch: Scratch, cells: Array, values: Array) -> int:
    """List the corners of the pool's block, from the last step to the first."""
    env = state.env[b]
    jobs = state.jobs[b]
    last, ending, following, active, row, below = scratch
    units = state.pool[0].units
    width = units + MOST_UNITS * state.pool[0].slots + 2
    _list_bookings(state, b, scratch)
    below[:] = 0
    n = n_active = 0
    for h in range(last.shape[0] - 1, -1, -1):
        if not last[h]:
            continue
        kept = 0
        for i in range(n_active):
            if jobs[active[i]].start - env.now <= h:
                active[kept] = active[i]
                kept += 1
        n_active = kept
        k = ending[h]
        while k >= 0:
            j = state.booked[b, k]
            i = n_active
            while i > 0 and jobs[active[i - 1]].colour < jobs[j].colour:
                active[i] = active[i - 1]
                i -= 1
            active[i] = j
            n_active += 1
            k = following[k]
        c = units
        for i in range(n_active):
            job = jobs[active[i]]
            end = max(c - job.units, 0)
            while c > end:
                c -= 1
                row[c] = job.colour
        while c > 0:
            c -= 1
            row[c] = 0
        for c in range(units):
            corner = row[c] - row[c + 1] - below[c] + below[c + 1]
            if corner != 0:
                cells[n] = h * width + c
                values[n] = corner
                n += 1
        for c in range(units):
            below[c] = row[c]
    return n


@kernel
def encode_corners(state: PoolState, b: int, scratch: Scratch, cells: Array, values: Array) -> int:
    """Write the corners of the picture of pool `b`, whose phase is ASKING, and return how many there are.

    `cells` i4 [at least `most_corners`] get row * width + column, `values` f4, as long; of the kill slots'
    column, the cells' values themselves.
    """
    env = state.env[b]
    pool = state.pool[0]
    height = state.free.shape[1]
    width = pool.units + MOST_UNITS * pool.slots + 2
    n = _canvas(state, b, scratch, cells, values)
    for k in range(min(pool.slots, env.n_waiting)):
        job = state.jobs[b, state.waiting[b, k]]
        column = pool.units + MOST_UNITS * k + min(job.units, MOST_UNITS) - 1
        length = job.length if pool.oracle_picture else job.believed
        cells[n] = (min(length, height) - 1) * width + column
        values[n] = 1.0
        n += 1
    for k in range(state.running.shape[1]):
        j = state.running[b, k]
        if j < 0:
            continue
        job = state.jobs[b, j]
        used = env.now - job.start
        belief = believed_now(state, b, j)
        cell = k * (height // state.running.shape[1]) * width + width - 2
        for i in range(FEATURES):
            cells[n + i] = cell + i * width
        values[n] = job.believed / _LENGTH
        values[n + 1] = used / _LENGTH
        values[n + 2] = abs(belief - job.believed) / job.believed
        values[n + 3] = belief / _LENGTH
        values[n + 4] = job.submit / _ARRIVAL
        values[n + 5] = job.units / MOST_UNITS
        n += FEATURES
    if env.silence > 0:
        cells[n] = height * width - 1
        values[n] = env.silence
        n += 1
    return n


@inline
def block(column: int, units: int, width: int) -> int:
    """Return the first column of the block that a column is in."""
    if column < units:
        return 0
    if column < width - 2:
        return column - (column - units) % MOST_UNITS
    return column


@kernel
def paint(cells: Array, values: Array, offsets: Array, which: Array, units: int, out: Array) -> None:
    """Write the pictures `which` (i8 [N]) in full to `out` f4 [N, H, width]; corners: see `PictureBatch`.

    `units`: R.
    """
    height, width = out.shape[1], out.shape[2]
    colours, silence = np.float32(COLOURS), np.float32(LONGEST_SILENCE)
    for i in range(which.shape[0]):
        picture = out[i]
        picture[:] = 0.0
        for k in range(offsets[which[i]], offsets[which[i] + 1]):
            h, column = divmod(cells[k], width)
            for c in range(block(column, units, width), column + 1):
                picture[h, c] += values[k]
        for h in range(height - 2, -1, -1):
            for c in range(width - 2):
                picture[h, c] += picture[h + 1, c]
            picture[h, width - 1] += picture[h + 1, width - 1]
        for h in range(height):
            for c in range(units):
                picture[h, c] /= colours
            picture[h, width - 1] /= silence


@dataclass(frozen=True)
class PictureBatch:
    """Decisions as they are seen, D of them.

    Attributes:
        cells, values: the corners of their pictures, one after the other, see above.
        offsets: int64 [D + 1] where each begins.
    """

    cells: Cells
    values: Floats32
    offsets: Ints
    settings: PoolConfig

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def pictures(self, which: Ints | None = None) -> Floats32:
        """Return pictures in full, float32 [D, H, width], or only some of them."""
        which = np.arange(len(self)) if which is None else which
        out = np.empty((len(which), *shape(self.settings)), np.float32)
        paint(self.cells, self.values, self.offsets, which, self.settings.units, out)
        return out


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

    `matrix` and `out`, written, are [H * width, M]; `units`: R, the first columns of a picture.
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
def multiply(
    cells: Array, values: Array, offsets: Array, which: Array, matrix: Array, rows: Array, back: bool
) -> None:
    """Add pictures times a matrix; or `back`, to the gradient by that matrix what one by the product gives.

    `cells`, `values`, `offsets`: the corners of D pictures, see `PictureBatch`. `which`: i8 [N] the pictures
    wanted. `matrix`: [H * width, M] integrated; `back`: added to. `rows`: [N, M] added to; `back`: the
    gradient.
    """
    for i in range(which.shape[0]):
        row = rows[i]
        for k in range(offsets[which[i]], offsets[which[i] + 1]):
            value, sums = values[k], matrix[cells[k]]
            if back:
                for m in range(row.shape[0]):
                    sums[m] += value * row[m]
            else:
                for m in range(row.shape[0]):
                    row[m] += value * sums[m]


@kernel
def integrate_back(gradient: Array, units: int, width: int) -> None:
    """Turn the gradient [H * width, M] by an integrated matrix into that by the matrix, in place."""
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
