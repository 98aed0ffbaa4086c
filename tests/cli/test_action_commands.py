"""Rules of action on the command line: policies by name, tables, `bound --actions`, and what is refused."""

import json
import os
import shlex
import tomllib
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok, run_refused
from simgrid_available import needs_simgrid

from bridge.base.errors import BridgeError
from bridge.judge.action_metrics import ACTION_METRICS
from bridge.policy_name import parse_policy
from bridge.worlds.batsim.dispatcher import DispatcherConfig

#: Compiled they take a minute more; see `worlds/fast/test_actions_without_compiler.py`.
pytestmark = [] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else [pytest.mark.slow]
SMALL = ("--sequences", "2", "--length", "40", "--from", "0.5")


def test_a_policy_has_an_action_behind_its_backfilling() -> None:
    name = parse_policy("saf + easy + guest( 300 , share=0.5 )")
    assert (name.order, name.backfill, name.action) == ("saf", "easy", "guest(300, share=0.5)")
    assert parse_policy("(w/t)**3*n+none+las").action == "las(300, 3600)"
    assert parse_policy("sjf+trial(60)").backfill == ""


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("saf+easy+guest(300, 600)", "needs 1 times"),
        ("saf+easy+las(3600, 300)", "needs 2 times, ascending"),
        ("saf+easy+trial(x)", "is no number"),
        ("saf+easy+trial(300, host=3)", "does not know 'host'"),
        ("saf+easy+trial(300, share=2)", "share of the users"),
    ],
)
def test_a_wrong_action_is_one_error(policy: str, message: str) -> None:
    assert message in run_refused("replay", "bundled-128", "--policy", policy, "--first", "20")


def test_every_policy_of_a_table_with_an_action_has_its_costs() -> None:
    policies = ("--policy", "saf+easy", "--policy", "saf+easy+trial(300)")
    result = run_bridge("evaluate", "bundled-128", *policies, *SMALL, "--json")
    plain, tried = json.loads(result.out)["policies"]
    assert (plain["action"], tried["action"]) == ("", "trial(300)")
    assert tried["name"] == "saf+easy+trial(300)"
    assert list(tried["action_metrics"]) == list(plain["action_metrics"]) == list(ACTION_METRICS)
    assert plain["action_metrics"]["waste"] == pytest.approx(0)
    assert tried["action_metrics"]["waste"] > 0
    assert tried["action_metrics"]["bsld"] == pytest.approx(tried["mean"])
    assert "every job counts as restartable" in result.err
    shown = run_ok("evaluate", "bundled-128", *policies, *SMALL)
    assert "waste, %" in shown
    assert "worst user, bsld" in shown


def test_a_table_without_an_action_is_as_ever() -> None:
    output = run_ok("evaluate", "bundled-128", "--policy", "saf+easy", *SMALL, "--json")
    assert "action_metrics" not in json.loads(output)["policies"][0]


def test_bound_shows_what_actions_win() -> None:
    document = json.loads(run_ok("bound", "bundled-128", "--actions", "--share", "0.5", *SMALL, "--json"))
    assert document["share"] == 0.5
    names = [row["policy"] for row in document["rows"]]
    assert names[:3] == ["saf+easy", "saf+easy+speculative(600, share=0.5)", "saf+easy+trial(300, share=0.5)"]
    assert document["rows"][0]["bsld_percent"] is None
    base, first = document["rows"][:2]
    ratio = 100 * (first["metrics"]["bsld"] / base["metrics"]["bsld"] - 1)
    assert first["bsld_percent"]["mean"] == pytest.approx(ratio)
    assert "--share is the part of the jobs" in run_bridge("bound", "bundled-128", "--share", "0.5").err


def test_bound_plays_all_actions_on_the_nodes_of_a_cluster(tmp_path: Path) -> None:
    # one partition with all nodes, which gives whole ones, is the pool
    (tmp_path / "site.toml").write_text("[[nodes]]\ncount = 128\n")
    asked = ("bound", "bundled-128", "--actions", "--share", "0.5", *SMALL, "--json")
    pool, site = (
        json.loads(run_ok(*asked, *more)) for more in ((), ("--cluster", str(tmp_path / "site.toml")))
    )
    assert site["rows"] == pool["rows"]


def test_a_replay_says_what_became_of_the_lives() -> None:
    policy = ("--policy", "saf+easy+las(300,3600)")
    metrics = json.loads(run_ok("replay", "bundled-128", *policy, "--first", "60", "--json"))
    assert metrics["action.waste"] >= 0
    assert metrics["loss_of_capacity"] is None
    assert metrics["utilisation.nodes"] >= metrics["action.utilisation.useful"]
    assert metrics["bsld.mean"] == pytest.approx(metrics["action.bsld"])


def test_the_command_of_a_run_names_its_action(tmp_path: Path) -> None:
    policy = ("--policy", "saf+easy+trial(300)", "--backfill-order", "fcfs")
    run_ok("replay", "bundled-128", *policy, "--first", "40", "--out", str(tmp_path / "a"))
    command = tomllib.loads((tmp_path / "a" / "run.toml").read_text())["config"]["command"]
    run_ok(*shlex.split(command)[1:], "--out", str(tmp_path / "b"))
    assert (tmp_path / "a" / "jobs.csv").read_bytes() == (tmp_path / "b" / "jobs.csv").read_bytes()


def test_a_platform_refuses_what_it_cannot_carry_out() -> None:
    with pytest.raises(BridgeError, match="SimGrid suspends none"):
        DispatcherConfig(parse_policy("saf+easy+guest(300)").policy()).check()
    with pytest.raises(BridgeError, match="a share of the users is drawn from the whole log"):
        DispatcherConfig(parse_policy("saf+easy+trial(300, share=0.5)").policy()).check()
    with pytest.raises(BridgeError, match="in the fast world only"):
        DispatcherConfig(parse_policy("saf+easy+trial(300)").policy(), site=lambda _: pytest.fail()).check()


@needs_simgrid
def test_a_platform_has_the_jobs_of_a_replay() -> None:
    where = ("--workload", "bundled-128", "--platform", "sp2-128", "--first", "60", "--on", "simgrid")
    document = json.loads(run_ok("validate", "saf+easy+trial(300)", "saf+easy+hybrid(300)", *where, "--json"))
    assert document["differing_starts"] == 0
    for policy in document["policies"]:
        assert policy["fast"]["action.preemptions"] > 0
        for name, value in policy["fast"].items():
            assert policy["detailed"][name] == pytest.approx(value), name


@needs_simgrid
def test_only_a_delay_has_an_overhead() -> None:
    where = ("--workload", "bundled-128", "--platform", "sp2-128", "--first", "20", "--on", "simgrid")
    policy = ("--policy", "saf+easy+trial(300)", "--profile", "compute")
    result = run_bridge("run", *where, *policy)
    assert result.status == 1
    assert "which a profile of type 'parallel_homogeneous' cannot" in result.err
    assert "the action with restart=0" in result.err
