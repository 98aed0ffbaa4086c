"""The line of waiting jobs, compiled: entries in the order in which a pass looks at them."""

from bridge.base.jit import hot, inline, inner, kernel
from bridge.scheduler.slurm.arrays import (
    CHANGES,
    COUNT,
    HAS_GONE,
    ID,
    IS_CLOSED,
    IS_WAITING,
    JOB,
    N_LINE,
    NAMES_ONE,
    SUBMIT,
    TASK,
    TIER,
    SlurmArrays,
)


@inline
def _compare(b: SlurmArrays, e: int, f: int) -> int:
    """Return -1 if an entry comes before another one, 1 if behind it, 0 if they are equal.

    They are sorted by reservation, tier, priority, submission and id, then in the order in which they came.
    """
    j, k = b.entries[e, JOB], b.entries[f, JOB]
    order = b.jobs[k, NAMES_ONE] - b.jobs[j, NAMES_ONE]
    if order == 0:
        order = b.entries[f, TIER] - b.entries[e, TIER]
    if order == 0 and b.priority[e] != b.priority[f]:
        order = -1 if b.priority[e] > b.priority[f] else 1
    if order == 0:
        order = b.jobs[j, SUBMIT] - b.jobs[k, SUBMIT]
    if order == 0:
        order = b.jobs[j, ID] - b.jobs[k, ID]
    if order == 0:
        order = b.jobs[j, TASK] - b.jobs[k, TASK]
    if order == 0:
        order = b.jobs[j, COUNT] - b.jobs[k, COUNT]
    return -1 if order < 0 else int(order > 0)


@inline
def _sort(b: SlurmArrays, low: int, high: int) -> bool:
    """Sort the entries of a part of the line by merging into `turn`; tell whether their order changed."""
    changed = False
    width = 1
    while low + width < high:  # most often it is sorted
        is_sorted = True
        for k in range(low + 1, high):
            is_sorted = is_sorted and _compare(b, b.line[k - 1], b.line[k]) <= 0
        if is_sorted:
            break
        changed = True
        for first in range(low, high, 2 * width):
            middle, last = min(first + width, high), min(first + 2 * width, high)
            left, right = first, middle
            for k in range(first, last):
                if left < middle and (right >= last or _compare(b, b.line[left], b.line[right]) <= 0):
                    b.turn[k] = b.line[left]
                    left += 1
                else:
                    b.turn[k] = b.line[right]
                    right += 1
        for k in range(low, high):
            b.line[k] = b.turn[k]
        width *= 2
    return changed


@inner
def sort_line(b: SlurmArrays) -> None:
    """Sort the line, and count the change if its order changed."""
    if _sort(b, 0, b.now[N_LINE]):
        b.now[CHANGES] += 1


@kernel
def sort_line_now(b: SlurmArrays) -> None:
    """Sort the line, and count the change if its order changed."""
    sort_line(b)


@hot
def insert_in_line(b: SlurmArrays, e: int) -> None:
    """Insert an entry into a sorted line, behind its equals."""
    n = b.now[N_LINE]
    b.now[N_LINE] = n + 1
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if _compare(b, e, b.line[middle]) < 0:
            high = middle
        else:
            low = middle + 1
    for k in range(n, low, -1):
        b.line[k] = b.line[k - 1]
    b.line[low] = e


@inner
def drop_those_gone(b: SlurmArrays) -> None:
    """Leave the entries of those that wait in the line."""
    if b.now[HAS_GONE] == 0:
        return
    count = 0
    for k in range(b.now[N_LINE]):
        e = b.line[k]
        if b.jobs[b.entries[e, JOB], IS_WAITING] != 0:
            b.line[count] = e
            count += 1
    b.now[N_LINE], b.now[HAS_GONE] = count, 0
    b.now[CHANGES] += 1


@inner
def take_turns(b: SlurmArrays) -> int:
    """Leave in `turn` the entries at which a pass looks: all but those that are closed; return how many."""
    count = 0
    for k in range(b.now[N_LINE]):
        e = b.line[k]
        if b.jobs[b.entries[e, JOB], IS_CLOSED] == 0:
            b.turn[count] = e
            count += 1
    return count


@kernel
def drop_now(b: SlurmArrays) -> None:
    """Leave the entries of those that wait in the line."""
    drop_those_gone(b)


@kernel
def take_turns_now(b: SlurmArrays) -> int:
    """Leave in `turn` the entries at which a pass looks; return how many."""
    return take_turns(b)
