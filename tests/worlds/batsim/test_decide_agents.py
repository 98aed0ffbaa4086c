"""`bridge decide AGENT`: starts every job when the fast world does; what contradicts the agent is refused."""

import json
from pathlib import Path

import pytest
from detailed import delay_jobs
from fake_batsim import MICRO, FakeBatsim
from test_decide_cli import run

from bridge.base.errors import BridgeError
from bridge.base.plugins import Typed
from bridge.learn.agent import replay
from bridge.learn.checkpoint import load
from bridge.learn.user_policy import load_user_policy
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.worlds.fast.scheduler_config import SchedulerConfig


@pytest.mark.parametrize("which", ["backfiller", "inspector"])
def test_an_agent_decides_as_in_the_fast_world(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    folder: Path = request.getfixturevalue(which)
    agent = load(folder)
    own = agent.recipe.setup
    setup = SchedulerConfig(own.order, own.backfill, first=250)
    jobs = setup.select(read(resolve("bundled-128")))
    fast = replay(agent, setup.build_scenario(jobs, agent.recipe.policy()))
    fake, out = FakeBatsim(delay_jobs(jobs), int(jobs.capacity[0])), tmp_path / "decisions.json"
    result = run(fake, str(folder), "--strict", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert f"{folder}, backfill {own.backfill}; waiting for Batsim on" in result.stderr
    assert [fake.starts[name] for name in sorted(fake.starts)] == fast.start.tolist()
    written = {row["job_id"]: row["start"] * MICRO for row in json.loads(out.read_text())["jobs"]}
    assert sorted(written.values()) == pytest.approx(sorted(fast.start.tolist()))


@pytest.mark.parametrize(
    "words", [("--backfill", "none"), ("--backfill", "easy"), ("--backfill-order", "sjf")]
)
def test_what_is_part_of_the_agent_cannot_be_told_again(backfiller: Path, words: tuple[str, str]) -> None:
    result = run(None, str(backfiller), *words)
    assert result.exit_code == 2
    assert f"{words[0]} is part of the agent {backfiller}; leave it out" in result.stderr


def test_an_agent_of_another_protocol_is_refused_unless_it_is_wanted(schedgym_agent: Path) -> None:
    with pytest.raises(BridgeError, match="has learnt under the protocol schedgym, not standard"):
        raise run(None, str(schedgym_agent)).exception or AssertionError
    result = run(None, str(schedgym_agent), "--cross-protocol", "--startup-timeout", "0.2")
    assert result.exit_code == 3


def test_a_folder_that_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="is no checkpoint") as error:
        raise run(None, str(tmp_path)).exception or AssertionError
    assert error.value.where == str(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    gone = str(tmp_path / "agents" / "gone")
    with pytest.raises(BridgeError, match="no folder of a trained agent") as error:
        raise run(None, gone).exception or AssertionError
    assert gone in error.value.where


def test_a_policy_of_ones_own_decides_as_in_the_fast_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3] / "examples")
    agent = load_user_policy(Typed("own_policy:POLICY"))
    setup = SchedulerConfig("fcfs", "easy", first=250)
    jobs = setup.select(read(resolve("bundled-128")))
    fast = replay(agent, setup.build_scenario(jobs, agent.recipe.policy()))
    fake = FakeBatsim(delay_jobs(jobs), int(jobs.capacity[0]))
    result = run(fake, "own_policy:POLICY", "--strict", "--out", str(tmp_path / "decisions.json"))
    assert result.exit_code == 0, result.output
    assert [fake.starts[name] for name in sorted(fake.starts)] == fast.start.tolist()
