"""Which nodes a job gets (select/cons_tres), compiled: usable CPUs by node, tightest runs of neighbours.

Arrays: `book` [N, FREE_GRES + G] free CPUs, MiB, jobs, and generic resources of each node; `site` [N, 3] its
CPUs, threads of a core, MiB; `need` what a job asks for, by the names below, then its generic resources;
`weights` [N]; `scratch` [4, N] usable CPUs, those that are taken, and room. Sets are words, see `node_words`.
"""

from bridge.base.arrays import Ints
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.slurm.node_words import has, move, zeros_below

FREE_CPUS, FREE_MEMORY, JOBS, FREE_GRES = range(4)
CPUS, THREADS, MEMORY = range(3)
(
    MIN_NODES,
    MAX_NODES,
    MIN_CPUS,
    EACH,
    NODE_CPUS,
    WHOLE,
    CONTIGUOUS,
    MEMORY_NODE,
    MEMORY_CPU,
    OWN_MEMORY_CPU,
    MOST_CPUS,
    SPREAD,
    GRES,
) = range(13)
#: Memory of a node that is not counted.
UNCOUNTED = 1 << 60
#: What is missing yet, in `left`: CPUs, nodes, and nodes that may be taken at most.
_CPUS, _NODES, _MOST = range(3)


@inline
def usable_cpus(book: Ints, site: Ints, need: Ints, n: int) -> int:
    """Return the CPUs that a job could use on a node; 0: it cannot."""
    whole = need[WHOLE] != 0
    if whole:
        if book[n, JOBS] != 0:
            return 0
        cpus = site[n, CPUS]
    else:
        cpus = book[n, FREE_CPUS]
    free = book[n, FREE_MEMORY]
    if need[MEMORY_NODE] > 0:
        if free < need[MEMORY_NODE]:
            return 0
    elif need[MEMORY_CPU] > 0:
        if not whole or need[OWN_MEMORY_CPU] != 0:
            cpus = min(cpus, free // need[MEMORY_CPU])
    elif free < site[n, MEMORY] and site[n, MEMORY] < UNCOUNTED:
        return 0
    for g in range(need.shape[0] - GRES):
        if book[n, FREE_GRES + g] < need[GRES + g]:
            return 0
    if need[MOST_CPUS] >= 0:
        cpus = min(cpus, need[MOST_CPUS])
    if need[NODE_CPUS] > 0:
        if cpus < need[NODE_CPUS]:
            return 0
        return int(cpus if whole else need[NODE_CPUS])
    each = need[EACH]
    if each > 1 and not whole:
        cpus -= cpus % each
    return int(cpus if cpus >= each else 0)


@inline
def _is_met(left: Ints) -> bool:
    return bool(left[_NODES] <= 0 and left[_CPUS] <= 0)


@inline
def _take(need: Ints, left: Ints, taken: Ints, n: int, available: int) -> None:
    """Take a node: one core is kept for each further node that is needed."""
    used = available
    if need[WHOLE] == 0:
        rest = left[_CPUS] - max(left[_NODES] - 1, 0)
        if available > rest:
            used = min(available, max(rest, need[EACH]))
    left[_NODES] -= 1
    left[_MOST] -= 1
    left[_CPUS] -= used
    taken[n] = used


@inner
def _fill(
    book: Ints,
    need: Ints,
    left: Ints,
    usable: Ints,
    taken: Ints,
    first: int,
    last: int,
    required: int,
    suffices: bool,
) -> None:
    """Take nodes ``first…last`` of a run until nothing is missing.

    If one node is missing, it is the smallest that suffices: of nodes that offer as many CPUs, as all do to a
    job with so many tasks on each, the one with the fewest free.
    """
    if required < 0 and suffices and left[_NODES] <= 1 and left[_MOST] >= 1:
        single = -1
        for n in range(first, last + 1):
            if usable[n] < left[_CPUS]:
                continue
            is_smaller = single < 0 or usable[n] < usable[single]
            if not is_smaller and need[NODE_CPUS] > 0 and usable[n] == usable[single]:
                is_smaller = book[n, FREE_CPUS] < book[single, FREE_CPUS]
            if is_smaller:
                single = n
        if single >= 0:
            _take(need, left, taken, single, usable[single])
            return
    begin = first if required < 0 else required
    for n in range(begin, last + 1):
        if left[_MOST] <= 0 or _is_met(left):
            return
        if taken[n] == 0:
            _take(need, left, taken, n, usable[n])
    for n in range(begin - 1, first - 1, -1):
        if left[_MOST] <= 0 or _is_met(left):
            return
        if taken[n] == 0:
            _take(need, left, taken, n, usable[n])


@inner
def _tightest(
    book: Ints,
    need: Ints,
    left: Ints,
    usable: Ints,
    taken: Ints,
    done: Ints,
    weights: Ints,
    required: Ints,
) -> bool:
    """Fill a job from the tightest run of neighbours that suffices, or from the largest ones."""
    count = usable.shape[0]
    has_required = False
    for n in range(count):
        if usable[n] > 0 and has(required, n):
            has_required = True
            _take(need, left, taken, n, usable[n])
    if has_required and _is_met(left):
        return True
    done[:] = 0  # runs that were taken, by their first node
    while left[_MOST] > 0:
        best = best_last = best_required = -1
        best_weight, best_cpus, best_suffices = 0, 0, False
        n = 0
        is_any = False
        while n < count:
            if usable[n] <= 0:
                n += 1
                continue
            first, weight = n, weights[n]
            cpus, free, plain, own = 0, 0, 0, -1
            while n < count and usable[n] > 0 and weights[n] == weight:
                if has(required, n):
                    if own < 0:
                        own = n
                else:
                    cpus += usable[n]
                    plain += 1
                if taken[n] == 0:
                    free += 1
                n += 1
            if plain == 0 or done[first] != 0:
                continue
            is_any = True
            if need[CONTIGUOUS] != 0 and has_required and own < 0:
                continue
            suffices = cpus >= left[_CPUS] and free >= left[_NODES]
            is_better = best < 0
            if not is_better and (own < 0) != (best_required < 0):
                is_better = own >= 0
            elif not is_better and weight != best_weight:
                is_better = weight < best_weight
            elif not is_better and suffices != best_suffices:
                is_better = suffices
            elif not is_better:
                is_better = cpus < best_cpus if suffices else cpus > best_cpus
            if is_better:
                best, best_last, best_required = first, n - 1, own
                best_weight, best_cpus, best_suffices = weight, cpus, suffices
        if not is_any:
            break
        if best < 0 or (need[CONTIGUOUS] != 0 and not best_suffices):
            return False
        _fill(book, need, left, usable, taken, best, best_last, best_required, best_suffices)
        if _is_met(left):
            return True
        if need[CONTIGUOUS] != 0:
            return False
        done[best] = 1
    return _is_met(left)


@inner
def _least_loaded(
    site: Ints, need: Ints, left: Ints, usable: Ints, taken: Ints, weights: Ints, required: Ints
) -> bool:
    """Fill a job from the nodes with the largest share of free CPUs, the lowest weights first."""
    count = usable.shape[0]
    for n in range(count):
        if usable[n] > 0 and has(required, n):
            _take(need, left, taken, n, usable[n])
    while left[_MOST] > 0 and not _is_met(left):
        best = -1
        for n in range(count):
            if usable[n] <= 0 or taken[n] != 0 or has(required, n):
                continue
            is_better = best < 0 or weights[n] < weights[best]
            if not is_better and weights[n] == weights[best]:
                is_better = usable[n] / site[n, CPUS] > usable[best] / site[best, CPUS]
            if is_better:
                best = n
        if best < 0:
            break
        _take(need, left, taken, best, usable[best])
    return _is_met(left)


@inner
def choose_nodes(
    book: Ints,
    site: Ints,
    weights: Ints,
    need: Ints,
    nodes: Ints,
    required: Ints,
    scratch: Ints,
    left: Ints,
) -> bool:
    """Choose nodes for a job among some: ``scratch[1]`` holds its CPUs on each; False: it does not fit."""
    usable, taken = scratch[0], scratch[1]
    count, available = usable.shape[0], 0
    for n in range(count):
        usable[n] = usable_cpus(book, site, need, n) if has(nodes, n) else 0
        if usable[n] > 0:
            available += 1
        elif has(required, n):
            return False
    if available < need[MIN_NODES]:
        return False
    least = 0
    while True:
        taken[:] = 0
        left[_CPUS], left[_NODES], left[_MOST] = need[MIN_CPUS], need[MIN_NODES], need[MAX_NODES]
        if need[SPREAD] != 0:
            fits = _least_loaded(site, need, left, usable, taken, weights, required)
        else:
            fits = _tightest(book, need, left, usable, taken, scratch[3], weights, required)
        if fits:
            break
        more = 0
        for n in range(count):
            if usable[n] > least and not has(required, n) and (more == 0 or usable[n] < more):
                more = usable[n]
        if need[MAX_NODES] >= available or more == 0:
            return False
        least, available = more, 0
        for n in range(count):
            if usable[n] <= least and not has(required, n):
                usable[n] = 0
            if usable[n] > 0:
                available += 1
        if available < need[MIN_NODES]:
            return False
    for n in range(count):
        if taken[n] > 0:
            threads = site[n, THREADS]
            taken[n] = site[n, CPUS] if need[WHOLE] != 0 else (taken[n] + threads - 1) // threads * threads
    return True


@inner
def take_tightest(words: Ints, chosen: Ints, left: int) -> int:
    """Choose so many of some nodes as `choose_nodes` does where all are equal; return how many are missing.

    Runs of neighbours differ in nothing but their lengths then: the shortest one that suffices is taken, else
    the longest one, the first of equal ones, from low to high.
    """
    while left > 0:
        best, best_length, length = -1, 0, 0
        for w in range(words.shape[0] + 1):
            bit = 0
            while bit < 32:
                rest = words[w] >> bit if w < words.shape[0] else 0
                if length == 0:
                    if rest == 0:
                        break
                    skipped = zeros_below(rest)
                    bit += skipped
                    rest >>= skipped
                more = zeros_below(~rest)
                length += more
                bit += more
                if bit >= 32:
                    break
                is_better = length > best_length  # none suffices yet
                if best_length >= left:
                    is_better = left <= length < best_length
                if is_better:
                    best, best_length = 32 * w + bit - length, length
                length = 0
        if best < 0:
            break
        move(words, chosen, best, best + min(left, best_length) - 1)
        left -= best_length
    return max(left, 0)


@kernel
def choose_now(
    book: Ints,
    site: Ints,
    weights: Ints,
    need: Ints,
    nodes: Ints,
    required: Ints,
    scratch: Ints,
    left: Ints,
) -> bool:
    """Choose nodes for a job; ``scratch[1]`` holds its CPUs on each."""
    return choose_nodes(book, site, weights, need, nodes, required, scratch, left)
