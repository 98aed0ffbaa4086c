"""Which classes hold a demand now: bits by shape, in packing order, kept from one question to the next.

A change of free amounts is noted in a log. Who asks for a shape mends its bits by what was noted since it
was asked for last: most demands are asked for again and again while few nodes change. There are places for
some shapes only; one that comes to another's place is looked at anew.
"""

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner
from bridge.scheduler.cluster_state import ALL_OF_IT, UNCOUNTED, ClusterState

#: Bits of a word, as a power of two: words are signed, and none is negative.
_LOG_BITS = 5
WORD_BITS = 1 << _LOG_BITS


@inline
def note_change(state: ClusterState, b: int, c: int, nodes: int) -> None:
    """Note that amounts of class `c` have changed; `nodes`: by how many nodes, of a counted class."""
    if state.node_switches[0].keeps_fits:
        more = state.node_scalars[b]
        at = more.changes & (state.changed.shape[1] - 1)
        state.changed[b, at] = c
        state.changed_nodes[b, at] = nodes
        more.changes += 1


@inline
def holds(state: ClusterState, shape: int, c: int, base: Array) -> bool:
    """Tell whether an admissible class has a free node, or holds a vector of a demand, by amounts [C, R]."""
    if state.classes[c].counted:
        return bool(base[c, 0] > 0)
    whole = state.shapes[shape].whole
    for r in range(base.shape[1]):
        amount = state.vectors[shape, r]
        if whole:
            amount = state.node_amounts[c, r]
        elif amount == ALL_OF_IT:
            amount = state.node_amounts[c, r]
            if amount >= UNCOUNTED:
                continue
        elif amount == 0:
            continue
        if base[c, r] < amount:
            return False
    return True


@inner
def _look_anew(state: ClusterState, b: int, shape: int, slot: int) -> None:
    row, bits = state.shapes[shape], state.fit_bits[b, slot]
    for w in range(bits.shape[0]):
        bits[w] = 0
    n = 0
    for i in range(row.first, row.last):
        c = state.set_classes[i]
        if state.classes[c].counted:
            n += state.free_node[b, c, 0]
        if holds(state, shape, c, state.free_node[b]):
            place = state.class_place[c]
            bits[place >> _LOG_BITS] |= 1 << (place & (WORD_BITS - 1))
            n += 0 if state.classes[c].counted else 1
    state.fits[b, slot].n = n


@inner
def slot_of_fits(state: ClusterState, b: int, shape: int) -> int:
    """Return where the bits of a shape stand, as things are now; see `next_fit`."""
    slot = shape % state.fits.shape[1]
    fit, more, row = state.fits[b, slot], state.node_scalars[b], state.shapes[shape]
    behind = more.changes - fit.changes
    if fit.of_shape != shape or behind > min(state.changed.shape[1], row.last - row.first):
        _look_anew(state, b, shape, slot)
        fit.of_shape = shape
    elif behind > 0:
        bits, admits = state.fit_bits[b, slot], state.admits[row.admits]
        for k in range(fit.changes, more.changes):
            at = k & (state.changed.shape[1] - 1)
            c = state.changed[b, at]
            if not admits[c]:
                continue
            place = state.class_place[c]
            w, bit = place >> _LOG_BITS, 1 << (place & (WORD_BITS - 1))
            before = bits[w] & bit
            if holds(state, shape, c, state.free_node[b]):
                bits[w] |= bit
                if before == 0 and not state.classes[c].counted:
                    fit.n += 1
            else:
                bits[w] &= ~bit
                if before != 0 and not state.classes[c].counted:
                    fit.n -= 1
            fit.n += state.changed_nodes[b, at]
    fit.changes = more.changes
    return int(slot)


@inline
def _lowest_bit(word: int) -> int:
    """Return the number of the lowest bit of a word that is not 0."""
    n, shift = 0, WORD_BITS // 2
    while shift > 0:
        if word & ((1 << shift) - 1) == 0:
            word >>= shift
            n += shift
        shift //= 2
    return n


@inline
def next_fit(state: ClusterState, b: int, slot: int, place: int) -> int:
    """Return the first place from this one on whose class holds the demand, or -1; see `class_at`."""
    bits = state.fit_bits[b, slot]
    w = place >> _LOG_BITS
    if w >= bits.shape[0]:
        return -1
    word = bits[w] >> (place & (WORD_BITS - 1))
    if word != 0:
        return int(place + _lowest_bit(word))
    w += 1
    while w < bits.shape[0]:
        if bits[w] != 0:
            return int((w << _LOG_BITS) + _lowest_bit(bits[w]))
        w += 1
    return -1
