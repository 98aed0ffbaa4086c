"""Placement rules on hand-made machines; a start is never refused, and goals are counted as documented."""

from dataclasses import asdict

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.base.errors import BridgeError
from bridge.wire.hosts import Hosts, is_normal, parse, size, text_of
from bridge.worlds.batsim.machine_view import ASLEEP, UNAVAILABLE, MachineView
from bridge.worlds.batsim.placement import NAMES, FirstFit, rule
from bridge.worlds.batsim.topology import UNREACHABLE, Graph, Groups


def names(n: int) -> list[str]:
    return [f"n{k}" for k in range(n)]


def racks(n: int, per_rack: int) -> dict[str, str]:
    return {f"n{k}": f"rack {k // per_rack}" for k in range(n)}


def pool(name: str, n: int, busy: str, per_rack: int = 4) -> FirstFit:
    made = rule(name, groups=racks(n, per_rack))(names(n))
    assert made.withdraw(parse(busy)) == parse(busy)
    return made


def take(name: str, n: int, busy: str, k: int, per_rack: int = 4) -> str:
    return text_of(pool(name, n, busy, per_rack).allocate(k))


def test_first_fit_takes_the_lowest_ids() -> None:
    assert take("first-fit", 12, "0 3-4", 4) == "1-2 5-6"


def test_contiguous_takes_the_smallest_hole_that_holds_the_job() -> None:
    assert take("contiguous", 12, "4 7", 2) == "5-6"  # holes 0-3, 5-6, 8-11
    assert take("contiguous", 12, "4 7", 3) == "0-2"  # of two equal holes the lower
    assert take("contiguous", 12, "4 8", 3) == "5-7"


def test_contiguous_uses_the_largest_holes_when_none_holds_the_job() -> None:
    assert (
        take("contiguous", 12, "3 9", 7) == "4-8 10-11"
    )  # holes 0-2, 4-8, 10-11: the rest fits best in the last
    assert take("contiguous", 10, "3 8", 6) == "0-1 4-7"


def test_best_fit_takes_the_fullest_group_that_holds_the_job() -> None:
    # racks 0-3, 4-7, 8-11 with 4, 2, 3 free
    assert take("best-fit", 12, "4-5 8", 2) == "6-7"
    assert take("best-fit", 12, "4-5 8", 3) == "9-11"
    assert take("best-fit", 12, "4-5 8", 4) == "0-3"


def test_best_fit_uses_as_few_groups_as_possible() -> None:
    # 4, 2, 3 free: the emptiest whole, the rest where it fits best
    assert take("best-fit", 12, "4-5 8", 5) == "0-3 6"
    assert take("best-fit", 12, "4-5 8", 7) == "0-3 9-11"
    assert take("best-fit", 12, "4-5 8", 9) == "0-3 6-7 9-11"


def test_groups_need_not_be_intervals() -> None:
    odd = {name: "odd" if int(name[1:]) % 2 else "even" for name in names(8)}
    made = rule("best-fit", groups=odd)(names(8))
    assert text_of(made.allocate(3)) == "0 2 4"
    assert text_of(made.allocate(1)) == "6"
    made.release(parse("2 4"))
    assert text_of(made.allocate(4)) == "1 3 5 7"


def tree() -> nx.Graph:
    """Six switches of two hosts each; a-b, c-d and e-f are pairs below a common core."""
    graph = nx.Graph()
    for k in range(12):
        graph.add_edge(f"n{k}", f"s{k // 2}")
    for pair in range(3):
        graph.add_edge(f"s{2 * pair}", f"p{pair}")
        graph.add_edge(f"s{2 * pair + 1}", f"p{pair}")
        graph.add_edge(f"p{pair}", "core")
    return graph


def test_topology_stays_below_one_switch_or_near_it() -> None:
    made = rule("topology", graph=tree())(names(12))
    assert text_of(made.allocate(2)) == "0-1"
    # no switch holds three: switches 2 and 3 (below one pair switch) are two hops apart, 1 and 2 four
    assert text_of(made.allocate(3)) == "4-6"
    assert text_of(made.allocate(1)) == "7"
    assert made.groups_of(parse("2-5")) == 2
    assert made.goal(3) == (0, 2) and made.goal(12) == (0, 6)


def test_topology_by_groups_coarse_to_fine() -> None:
    paths = {f"n{k}": (f"row {k // 4}", f"switch {k // 2}") for k in range(8)}
    made = rule("topology", groups=paths)(names(8))
    made.withdraw(parse("1-2"))
    assert text_of(made.allocate(3)) == "4-6"  # all in row 1; with 0 or 3 they would lie in two rows
    assert text_of(made.allocate(3)) == "0 3 7"


def test_distances() -> None:
    by_graph = Graph(names(12), tree())
    assert by_graph.leaf_of.tolist() == [k // 2 for k in range(12)]
    order, distance = by_graph.from_leaf(2)
    assert order.tolist() == [2, 3, 0, 1, 4, 5] and distance.tolist() == [0, 2, 4, 4, 4, 4]
    paths = {f"n{k}": (f"row {k // 4}", f"switch {k // 2}") for k in range(8)}
    order, distance = Groups(names(8), paths).from_leaf(3)
    assert order.tolist() == [3, 2, 0, 1] and distance.tolist() == [0, 1, 2, 2]


def test_a_torus_has_hosts_as_leaves_and_parts_may_be_unreachable() -> None:
    ring = nx.relabel_nodes(nx.cycle_graph(6), {k: f"n{k}" for k in range(6)})
    ring.add_node("n6")
    near = Graph(names(7), ring)
    assert near.leaf_of.tolist() == list(range(7))
    order, distance = near.from_leaf(1)
    assert order.tolist() == [1, 0, 2, 3, 5, 4, 6]
    assert distance.tolist() == [0, 1, 1, 2, 2, 3, UNREACHABLE]
    made = rule("topology", graph=ring)(names(7))
    made.withdraw(parse("1"))
    assert set(text_of(made.allocate(3)).split()) <= {"2-4", "3-5"}  # neighbours, not 0, 2, 3


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BridgeError, match="'nearest'"):
        rule("nearest")
    with pytest.raises(BridgeError, match="placement 'best-fit'"):
        rule("best-fit")
    with pytest.raises(BridgeError, match="host 'n2': has no group"):
        rule("best-fit", groups={"n0": "a", "n1": "a"})(names(3))
    with pytest.raises(BridgeError, match="host 'n2': is not in the platform's graph"):
        rule("topology", graph=nx.path_graph(["n0", "n1"]))(names(3))


N = 24
NEAR = nx.Graph([(f"n{k}", f"s{k % 5}") for k in range(N)] + [(f"s{k}", f"s{k + 1}") for k in range(4)])


@given(
    st.sampled_from(NAMES),
    st.booleans(),
    st.lists(st.tuples(st.booleans(), st.integers(0, N)), max_size=25),
)
def test_no_start_is_refused_and_no_host_given_twice(
    name: str, by_graph: bool, steps: list[tuple[bool, int]]
) -> None:
    made = rule(name, groups=racks(N, 5), graph=NEAR if by_graph else None)(names(N))
    taken: list[Hosts] = []
    free = set(range(N))
    for start, k in steps:
        if start and k and k <= len(free):
            hosts = made.allocate(k)
            assert is_normal(hosts) and size(hosts) == k
            ids = {host for low, high in hosts for host in range(low, high + 1)}
            assert ids <= free
            free -= ids
            taken.append(hosts)
        elif not start and taken:
            hosts = taken.pop(k % len(taken))
            made.release(hosts)
            free |= {host for low, high in hosts for host in range(low, high + 1)}
        assert made.free == len(free)
    assert made.withdraw(((0, N - 1),)) == parse(" ".join(map(str, free))) and made.free == 0


def test_a_machine_view_counts_locality() -> None:
    view = MachineView(names(8), rule("contiguous"), "contiguous")
    first = view.place(3)
    view.place(2)
    view.release(first)
    view.place(4)  # holes 0-2 and 5-7
    assert asdict(view.locality) == {
        "rule": "contiguous", "starts": 3, "met": 2, "contiguous": 2, "intervals": 4, "groups": 0,
    }  # fmt: skip
    view = MachineView(names(8), rule("best-fit", groups=racks(8, 4)), "best-fit")
    view.place(3)
    view.place(3)
    view.place(2)  # one free host in each rack
    assert asdict(view.locality) == {
        "rule": "best-fit", "starts": 3, "met": 2, "contiguous": 2, "intervals": 4, "groups": 4,
    }  # fmt: skip


def test_hosts_out_of_service() -> None:
    view = MachineView(names(8), rule("first-fit"), "first-fit")
    job = view.place(3)  # 0-2
    view.set_out_of_service(parse("2-4 20"), UNAVAILABLE)  # 20 is a storage host
    assert view.n_out_of_service == 2
    assert view.place(2) == parse("5-6")
    view.release(job)
    assert view.n_out_of_service == 3
    assert view.place(2) == parse("0-1")
    view.set_out_of_service(parse("2 7"), ASLEEP)
    assert view.n_out_of_service == 4
    view.set_in_service(parse("2-3"), UNAVAILABLE)  # 2 sleeps still
    assert view.n_out_of_service == 3 and view.place(1) == parse("3")
    view.set_in_service(parse("2"), ASLEEP)
    view.set_in_service(parse("4"), UNAVAILABLE)
    assert view.n_out_of_service == 1 and view.place(2) == parse("2 4")


WHAT = st.sampled_from(["place", "release", "down", "up", "sleep", "wake"])


@given(st.lists(st.tuples(WHAT, st.integers(0, 9)), max_size=30))
def test_free_busy_and_withheld_hosts_are_all_hosts(steps: list[tuple[str, int]]) -> None:
    n = 10
    view = MachineView(names(n), rule("contiguous"), "contiguous")
    jobs: list[set[int]] = []
    down, asleep = set[int](), set[int]()
    for what, k in steps:
        busy = set().union(*jobs)
        free = set(range(n)) - busy - down - asleep
        if what == "place" and 0 < k <= len(free):
            given = {host for low, high in view.place(k) for host in range(low, high + 1)}
            assert len(given) == k and given <= free
            jobs.append(given)
        elif what == "release" and jobs:
            view.release(parse(" ".join(map(str, jobs.pop(k % len(jobs))))))
        elif what in ("down", "sleep"):
            view.set_out_of_service(((k, k),), UNAVAILABLE if what == "down" else ASLEEP)
            (down if what == "down" else asleep).add(k)
        elif what in ("up", "wake"):
            view.set_in_service(((k, k),), UNAVAILABLE if what == "up" else ASLEEP)
            (down if what == "up" else asleep).discard(k)
        assert view.n_out_of_service == len((down | asleep) - set().union(*jobs))
