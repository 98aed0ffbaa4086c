"""Protocols and policies as switches: what exists, and what is refused."""

import pytest

from bridge.base.errors import BridgeError
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.protocol import SWITCHED, Policy, protocol
from bridge.scheduler.state import SECOND, SWITCHES


def test_the_switches_of_each_protocol() -> None:
    names = SWITCHES.names or ()
    on = {
        name: {
            s
            for s in names
            if compile_policy(
                Policy(backfill=rules.backfills[-1] if rules.needs_cluster else "easy"),
                rules,
                on_nodes=rules.needs_cluster,
            ).rules[s][0]
            and s not in ("max_rejects", "retry_after", "keep_above")
        }
        for name, rules in SWITCHED.items()
    }
    assert on == {
        "standard": {"extra_nodes", "clamp_overrun", "backfill", "guard"},
        "alea": {
            *("extra_nodes", "clamp_overrun", "backfill", "guard"),
            *("start_gap", "one_machine"),
        },
        "cqsim": {
            "per_event",
            "persistent_sort",
            "truncate_wait",
            "extra_nodes",
            "backfill",
            "guard",
            "dynamic_order",  # fcfs is w there
        },
        "schedgym": {
            "per_event",
            "arrivals_first",
            "head_locked",
            "reserve_once",
            "strict",
            "own_candidate_order",
            "resort_running",
            "backfill",
            "guard",
        },
        "schedgym-code": {
            "per_event",
            "arrivals_first",
            "head_locked",
            "reserve_once",
            "strict",
            "lone_by_easy",
            "reserve_each_pick",
            "free_tail",
            "own_candidate_order",
            "resort_running",
            "backfill",
            "guard",
        },
    }


def test_a_policy_fills_in_the_rest() -> None:
    policy = Policy(
        "slurm", "conservative", agent=frozenset({"pick", "inspect"}), max_rejects=3, retry_after=1.5
    )
    rules = compile_policy(policy, protocol("standard")).rules[0]
    assert (rules.uses_fairshare, rules.dynamic_order, rules.backfill) == (1, 1, 2)
    assert (rules.agent_pick, rules.agent_inspect, rules.agent_backfill) == (1, 1, 0)
    assert (rules.max_rejects, rules.retry_after) == (3, 1.5 * SECOND)


@pytest.mark.parametrize(
    ("policy", "rules", "says"),
    [
        (Policy(backfill="greedy"), "standard", "unknown backfilling"),
        (Policy(backfill="conservative"), "schedgym", "no conservative backfilling"),
        (Policy(agent=frozenset({"pick", "choose"})), "standard", "unknown agent decision"),
        (Policy(candidate_order="wfp3"), "standard", "does not change while jobs wait"),
        (Policy(order="fastest"), "standard", "unknown order"),
        (Policy(backfill="none", candidate_order="sjf"), "standard", "only EASY's candidates have an order"),
        (Policy("f1", "conservative", "sjf"), "standard", "only EASY's candidates have an order"),
        (Policy(candidate_order="fastest"), "standard", "unknown order"),
        (Policy(max_rejects=5), "schedgym-code", "schedgym-code has no cap on rejections"),
    ],
)
def test_what_a_protocol_does_not_have_is_refused(policy: Policy, rules: str, says: str) -> None:
    with pytest.raises(BridgeError, match=says):
        compile_policy(policy, protocol(rules))


def test_an_unknown_protocol_is_refused_with_the_known_ones() -> None:
    names = r"standard, cqsim, schedgym, schedgym-code, alea, slurm\."
    with pytest.raises(BridgeError, match=rf"'alae': unknown protocol\n  Choose {names}"):
        protocol("alae")
