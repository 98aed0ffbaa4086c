"""Fair share of associations: Slurm's fair tree, and the classic formula."""

import math
from collections.abc import Iterable

from bridge.scheduler.slurm.site import Assoc

#: Shares that stand for the parent's own value.
_PARENT = -1


def fair_tree(root: Assoc) -> None:
    """Give each user's association its rank as `fs`, by the levels' shares over usage, depth first."""
    users = count_users(root)
    if users:
        _set_levels(root)
        _rank(list(root.children), _Ranks(users, users, users), tied=False)


def count_users(assoc: Assoc) -> int:
    """Return how many users' associations are at or below one."""
    return assoc.is_user + sum(count_users(child) for child in assoc.children)


class _Ranks:
    """The rank of the next user, and the one that ties share."""

    def __init__(self, users: int, rank: int, shared: int) -> None:
        self.users, self.rank, self.shared = users, rank, shared


def _set_levels(parent: Assoc) -> None:
    if not parent.children:
        return
    shares = parent.shares_below
    if shares < 0:
        shares = parent.shares_below = sum(max(child.shares, 0) for child in parent.children)
    usage = sum(child.usage for child in parent.children)
    for child in parent.children:
        if child.shares == _PARENT:
            child.level = parent.level
        elif not child.shares:
            child.level = 0.0
        elif not usage or not child.usage:
            child.level = math.inf
        else:
            child.level = (child.shares / shares) / (child.usage / usage)
        if child.children:
            _set_levels(child)


def _rank(siblings: list[Assoc], ranks: _Ranks, *, tied: bool) -> None:
    """Rank users below some siblings; accounts of one level are ranked as one."""
    order = sorted(siblings, key=lambda one: -one.level)
    k = 0
    while k < len(order):
        here = order[k]
        if k:
            tied = order[k - 1].level == here.level
        if here.is_user:
            if not tied:
                ranks.shared = ranks.rank
            here.fs = ranks.shared / ranks.users
            ranks.rank -= 1
            k += 1
            continue
        children = list(here.children)
        last = k
        while last + 1 < len(order) and order[last + 1].level == here.level:
            last += 1
            if not order[last].is_user:
                children += order[last].children
        users = [one for one in order[k + 1 : last + 1] if one.is_user]
        _rank(children + users, ranks, tied=tied) if not users else _rank_mixed(children, users, ranks, tied)
        k = last + 1


def _rank_mixed(children: list[Assoc], users: list[Assoc], ranks: _Ranks, tied: bool) -> None:
    """Rank users that tie with accounts, and then those below the accounts."""
    for one in users:
        if not tied:
            ranks.shared = ranks.rank
            tied = True
        one.fs = ranks.shared / ranks.users
        ranks.rank -= 1
    _rank(children, ranks, tied=True)


def normalise_shares(root: Assoc) -> None:
    """Give each association its share of the whole: the product of the ratios on its way."""
    root.shares_norm = 1.0
    _normalise(root)


def _normalise(parent: Assoc) -> None:
    total = sum(max(child.shares, 0) for child in parent.children)
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
        total = sum(max(child.shares, 0) for child in parent.children)
        user.effective = own + (parent.effective - own) * (user.shares / total if total else 0.0)
    return _factor(user.effective, user.shares_norm)


def forget_effective(users: Iterable[Assoc]) -> None:
    """Let the effective usage of users be computed afresh, each when it is first asked for."""
    for user in users:
        user.effective = -1.0


def _factor(effective: float, shares: float) -> float:
    return 2.0 ** -(effective / shares) if shares > 0 else 0.0
