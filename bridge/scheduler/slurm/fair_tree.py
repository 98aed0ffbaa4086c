"""Fair share of associations: Slurm's fair tree, whose ranking is compiled, and the classic formula."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bridge.base.arrays import Bundle, Flags, Floats, Ints
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.site import Assoc

#: Shares that stand for the parent's own value.
_PARENT = -1
#: A group of accounts that have no rank yet: the first, the one behind the last, whether it ties.
_FIRST, _LAST, _TIES = range(3)
#: Counters: the next rank, the rank that ties share, groups on the pile, associations without own shares.
_RANK, _SHARED, _PILE, _ODD = range(4)


class _Fields(NamedTuple):
    """Associations [A], parents before children; those of `a` are ``first[a] … first[a + 1] - 1``."""

    first: Ints
    shares: Ints
    is_user: Flags
    part: Floats
    usage: Floats
    level: Floats
    fs: Floats
    order: Ints
    members: Ints
    pile: Ints
    counts: Ints


class ShareArrays(Bundle, _Fields):
    """The tree as kernels take it: `part` of the siblings' shares; the last three are room.

    `order`: the children of each as they were sorted last; ties share their rank, so it decides nothing.
    """


@inline
def _set_levels(tree: ShareArrays) -> None:
    for parent in range(tree.shares.shape[0]):
        usage = 0.0
        for a in range(tree.first[parent], tree.first[parent + 1]):
            usage += tree.usage[a]
        if usage == 0.0:
            for a in range(tree.first[parent], tree.first[parent + 1]):
                tree.level[a] = np.inf
        else:  # of nothing used: infinite, too
            for a in range(tree.first[parent], tree.first[parent + 1]):
                tree.level[a] = tree.part[a] / (tree.usage[a] / usage)
        if tree.counts[_ODD] != 0:
            for a in range(tree.first[parent], tree.first[parent + 1]):
                if tree.shares[a] == _PARENT:
                    tree.level[a] = tree.level[parent]
                elif tree.shares[a] == 0:
                    tree.level[a] = 0.0


@inner
def _sort(tree: ShareArrays, first: int, last: int) -> None:
    """Sort members by their levels, the highest first; equal ones stay in their order."""
    for k in range(first + 1, last):
        a, n = tree.members[k], k
        while n > first and tree.level[tree.members[n - 1]] < tree.level[a]:
            tree.members[n] = tree.members[n - 1]
            n -= 1
        tree.members[n] = a


@inner
def _expand(tree: ShareArrays, first: int, last: int, room: int) -> int:
    """Write the children of the accounts ``members[first:last]`` behind `room`; return where they end."""
    n = room
    for k in range(first, last):
        for child in range(tree.first[tree.members[k]], tree.first[tree.members[k] + 1]):
            tree.members[n] = tree.order[child]
            n += 1
    return int(n)


@inner
def _rank_siblings(tree: ShareArrays, first: int, last: int, ties: bool, users: int) -> None:
    """Rank users among sorted members up to the first account; leave its group, and the rest, on the pile.

    Accounts of one level are ranked as one, behind users that tie with them.
    """
    rank, shared, before = tree.counts[_RANK], tree.counts[_SHARED], 0.0
    for k in range(first, last):
        here = tree.members[k]
        level = tree.level[here]
        if k > first:
            ties = before == level
        before = level
        if tree.is_user[here]:
            if not ties:
                shared = rank
            tree.fs[here] = shared / users
            rank -= 1
            continue
        end = k + 1
        while end < last and tree.level[tree.members[end]] == level:
            end += 1
        n = k  # accounts first, users behind them
        for m in range(k, end):
            a = tree.members[m]
            if tree.is_user[a]:
                if not ties:
                    shared = rank
                tree.fs[a] = shared / users
                rank -= 1
                ties = True
            else:
                tree.members[n] = a
                n += 1
        pile = tree.counts[_PILE]
        if end < last:
            tree.pile[pile, _FIRST], tree.pile[pile, _LAST], tree.pile[pile, _TIES] = end, last, 2
            pile += 1
        tree.pile[pile, _FIRST], tree.pile[pile, _LAST], tree.pile[pile, _TIES] = k, n, int(ties)
        tree.counts[_PILE] = pile + 1
        break
    tree.counts[_RANK], tree.counts[_SHARED] = rank, shared


@inner
def rank_tree(tree: ShareArrays, users: int) -> None:
    """Give each user's association its rank as `fs`, by the levels' shares over usage, depth first."""
    _set_levels(tree)
    tree.counts[_RANK], tree.counts[_SHARED], tree.counts[_PILE] = users, users, 1
    tree.members[0] = 0
    tree.pile[0, _FIRST], tree.pile[0, _LAST], tree.pile[0, _TIES] = 0, 1, 0
    while tree.counts[_PILE] > 0:
        top = tree.counts[_PILE] - 1
        tree.counts[_PILE] = top
        first, last, kind = tree.pile[top, _FIRST], tree.pile[top, _LAST], tree.pile[top, _TIES]
        if kind == 2:  # the rest of some siblings, which are sorted
            _rank_siblings(tree, first, last, False, users)
            continue
        room = last  # what is behind it on the list waits on the pile
        for n in range(top):
            room = max(room, tree.pile[n, _LAST])
        end = _expand(tree, first, last, room)
        _sort(tree, room, end)
        if last - first == 1:  # nearly sorted the next time
            for n in range(room, end):
                tree.order[tree.first[tree.members[first]] + n - room] = tree.members[n]
        _rank_siblings(tree, room, end, kind == 1, users)


@kernel
def rank_users(tree: ShareArrays, users: int) -> None:
    """Give each user's association its rank as `fs`."""
    rank_tree(tree, users)


_rank_users = Quick(rank_users)


class Tree(NamedTuple):
    """A tree's arrays, and whose they are."""

    arrays: ShareArrays
    assocs: tuple[Assoc, ...]
    users: int


def tree_of(root: Assoc) -> Tree:
    """Return a tree's arrays; they are made again when somebody has come."""
    if not isinstance(root.tree, Tree):
        assocs = [root]
        first, part = [1], [0.0]
        for one in assocs:  # it grows
            assocs += one.children
            first.append(len(assocs))
            part += [child.shares / one.total_shares() if child.shares > 0 else 0.0 for child in one.children]
        n = len(assocs)
        arrays = ShareArrays(
            first=np.array(first, np.int64),
            shares=np.array([one.shares for one in assocs], np.int64),
            is_user=np.array([one.is_user for one in assocs], np.bool_),
            part=np.array(part),
            usage=np.zeros(n),
            level=np.array([one.level for one in assocs], np.float64),
            fs=np.ones(n),
            order=np.arange(n),
            members=np.zeros(2 * n + 1, np.int64),
            pile=np.zeros((n + 1, 3), np.int64),
            counts=np.array([0, 0, 0, sum(one.shares <= 0 for one in assocs[1:])], np.int64),
        )
        root.tree = Tree(arrays, tuple(assocs), sum(one.is_user for one in assocs))
    return root.tree


def fair_tree(root: Assoc) -> None:
    """Give each user's association its rank as `fs`, by the levels' shares over usage, depth first."""
    arrays, assocs, users = tree_of(root)
    if users:
        arrays.usage[:] = [one.usage for one in assocs]
        _rank_users(arrays, users)
        for one, fs in zip(assocs, arrays.fs.tolist(), strict=True):
            one.fs = fs


def normalise_shares(root: Assoc) -> None:
    """Give each association its share of the whole: the product of the ratios on its way."""
    root.shares_norm = 1.0
    _normalise(root)


def _normalise(parent: Assoc) -> None:
    total = parent.total_shares()
    for child in parent.children:
        if child.shares == _PARENT:
            child.shares_norm = parent.shares_norm
        else:
            child.shares_norm = parent.shares_norm * (child.shares / total if total else 0.0)
        _normalise(child)


def set_effective(accounts: Iterable[Assoc], root: Assoc) -> None:
    """Take the effective usage of the accounts as it is now: their share of all usage."""
    for account in accounts:
        account.effective = account.usage / root.usage if root.usage else 0.0


def classic(user: Assoc, root: Assoc) -> float:
    """Return 2^(-usage/shares) of a user, whose account's effective usage was taken before."""
    parent = user.parent
    if parent is None:
        return 1.0
    if user.shares == _PARENT:
        return _factor(parent.effective, parent.shares_norm)
    if user.effective < 0:
        own = user.usage / root.usage if root.usage else 0.0
        total = parent.total_shares()
        user.effective = own + (parent.effective - own) * (user.shares / total if total else 0.0)
    return _factor(user.effective, user.shares_norm)


def forget_effective(users: Iterable[Assoc]) -> None:
    """Let the effective usage of users be computed afresh, each when it is first asked for."""
    for user in users:
        user.effective = -1.0


def _factor(effective: float, shares: float) -> float:
    return 2.0 ** -(effective / shares) if shares > 0 else 0.0
