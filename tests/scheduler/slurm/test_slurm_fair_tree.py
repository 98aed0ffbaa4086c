"""Fair tree against a second implementation that sorts users by their whole path; and the classic formula."""

import math
import random

import pytest

from bridge.cluster.limits import Limits
from bridge.scheduler.slurm.fair_tree import (
    classic,
    fair_tree,
    forget_effective,
    normalise_shares,
    set_effective,
)
from bridge.scheduler.slurm.site import Assoc


def assoc(name: str, parent: Assoc | None, shares: int, usage: float, *, is_user: bool = False) -> Assoc:
    one = Assoc(name, parent, is_user, shares, Limits(), None)
    one.usage = usage
    if parent is not None:
        parent.children.append(one)
    return one


def random_tree(seed: int) -> tuple[Assoc, list[Assoc]]:
    choice = random.Random(seed)
    root, users = assoc("root", None, 1, 0), []
    accounts = [root]
    for k in range(choice.randint(0, 4)):
        accounts.append(assoc(f"a{k}", choice.choice(accounts), choice.randint(0, 3), 0))
    for k in range(choice.randint(1, 7)):
        user = assoc(
            f"u{k}",
            choice.choice(accounts),
            choice.randint(0, 3),
            choice.choice([0, 0, 1, 2, 4]),
            is_user=True,
        )
        users.append(user)
        above = user.parent
        while above is not None:
            above.usage += user.usage
            above = above.parent
    for account in reversed(accounts[1:]):  # an empty account breaks ties, which paths do not see
        if not account.children and account.parent is not None:
            account.parent.children.remove(account)
    return root, users


def level_of(one: Assoc) -> float:
    assert one.parent is not None
    shares = sum(other.shares for other in one.parent.children)
    usage = sum(other.usage for other in one.parent.children)
    if one.shares == 0:
        return 0.0
    return math.inf if one.usage == 0 else (one.shares / shares) / (one.usage / usage)


def brute_ranks(users: list[Assoc]) -> dict[str, float]:
    """Sort users by the levels on their whole path: no walk over the tree, no merging of accounts.

    A user shares the rank of the one before if the levels of that one are all of his, or the first of them.
    """
    paths: dict[str, tuple[float, ...]] = {}
    for user in users:
        path: list[float] = []
        here: Assoc | None = user
        while here is not None and here.parent is not None:
            path.insert(0, -level_of(here))
            here = here.parent
        paths[user.name] = tuple(path)
    order = sorted(users, key=lambda user: paths[user.name])
    ranks: dict[str, float] = {}
    shared = len(users)
    for k, user in enumerate(order):
        before = paths[order[k - 1].name] if k else None
        if before is None or paths[user.name][: len(before)] != before:
            shared = len(users) - k
        ranks[user.name] = shared / len(users)
    return ranks


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_fair_tree_ranks_as_sorted_paths(count: int) -> None:
    for seed in range(count):
        root, users = random_tree(seed)
        fair_tree(root)
        assert {user.name: user.fs for user in users} == brute_ranks(users), seed


def test_ranks_of_a_small_tree() -> None:
    """Two accounts of shares 60 and 40; the unused one first, then by the users' own shares over usage."""
    root = assoc("root", None, 1, 30)
    top = assoc("root", root, 1, 0, is_user=True)
    phys, chem = assoc("phys", root, 60, 30), assoc("chem", root, 40, 0)
    light, heavy = (assoc(name, phys, 10, use, is_user=True) for name, use in (("l", 10), ("h", 20)))
    idle = assoc("i", chem, 10, 0, is_user=True)
    fair_tree(root)
    assert (top.fs, idle.fs, light.fs, heavy.fs) == (1.0, 1.0, 0.5, 0.25)


def test_classic_takes_accounts_as_they_were() -> None:
    root = assoc("root", None, 1, 100)
    assoc("root", root, 1, 0, is_user=True)
    phys = assoc("phys", root, 60, 100)
    user = assoc("u", phys, 10, 40, is_user=True)
    assoc("v", phys, 30, 60, is_user=True)
    assoc("chem", root, 40, 0)
    normalise_shares(root)
    set_effective([root, phys], root)
    forget_effective([user])
    shares, effective = 60 / 101 * 10 / 40, 0.4 + (1.0 - 0.4) * 10 / 40
    assert classic(user, root) == pytest.approx(2 ** -(effective / shares))
    user.usage = 0.0  # kept until it is forgotten
    assert classic(user, root) == pytest.approx(2 ** -(effective / shares))
