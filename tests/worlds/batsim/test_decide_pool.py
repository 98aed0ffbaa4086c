"""`bridge decide` for the time-stepped pool: the fast world's steps over a real socket, and its errors."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from fake_batsim import FakeBatsim
from pool_policies import EVERYBODY, RECIPE, NamedPolicy, eager, sequences, write_checkpoint
from test_decide_cli import run, run_beside
from test_ticks import delay_jobs

from bridge.pool.jobset import with_estimates
from bridge.pool.world import Sequences


def decided(out: Path) -> tuple[dict[int, int], int]:
    """Return the start step of each job's last attempt, and how many were killed."""
    rows = json.loads(out.read_text())["jobs"]
    first = [int((row["again"] or row["job_id"])[3:]) for row in rows]
    return {job: row["start_step"] for job, row in zip(first, rows, strict=True)}, len(rows) - len(set(first))


def test_a_heuristic(tmp_path: Path) -> None:
    drawn, out = sequences(), tmp_path / "decisions.json"
    fake = FakeBatsim(delay_jobs(drawn, 0), 12, dynamic=True)
    words = ("--kill", "rule", "--pool-units", "12", "--pool-slots", "3", "--strict", "--out", str(out))
    result = run(fake, "saf", "--scheduler", "pool", *words)
    assert result.exit_code == 0, result.output
    assert "saf, kill rule, 12 units; waiting for Batsim on tcp://127.0.0.1:" in result.stderr
    who = next(one for one in EVERYBODY if one.name == "saf rule")
    pool = replace(RECIPE.pool, kill_slots=8)
    schedule = who.fast(drawn, pool)[0]
    starts, killed = decided(out)
    assert [starts[j + 1] for j in range(len(schedule.id))] == schedule.start.tolist()
    assert killed == len(schedule.attempts) == 2
    assert result.stdout.startswith(
        f"{len(schedule.id)} submitted, {len(schedule.id)} completed_successfully, "
    )


@pytest.mark.parametrize("estimator", ["running", "submit"])
def test_an_agent_with_its_own_beliefs(estimator: str, tmp_path: Path) -> None:
    recipe = replace(RECIPE, kill="learned", estimator=estimator)
    agent = write_checkpoint(tmp_path / "agent", recipe, 3)
    drawn, out = sequences(), tmp_path / "decisions.json"
    fake = FakeBatsim(delay_jobs(drawn, 1), 14, dynamic=True, acknowledges=True)
    result = run(fake, str(agent), "--strict", "--out", str(out))
    assert result.exit_code == 0, result.output
    believed = Sequences(with_estimates(drawn.jobs, estimator), drawn.arrivals)
    schedule = NamedPolicy("agent", "learned", eager(recipe, 3)).fast(believed)[1]
    starts, killed = decided(out)
    assert [starts[j + 1] for j in range(len(schedule.id))] == schedule.start.tolist()
    assert killed == len(schedule.attempts) > 0


@pytest.mark.parametrize(
    ("hosts", "dynamic", "words", "says"),
    [
        (12, False, ("--kill", "rule"), "--enable-dynamic-jobs is missing"),
        (11, False, (), "the platform has 11 compute hosts, the pool 12 units"),
    ],
)
def test_what_the_first_message_shows_to_be_impossible(
    hosts: int, dynamic: bool, words: tuple[str, ...], says: str
) -> None:
    first = next(FakeBatsim([], hosts, dynamic=dynamic).talk())  # and no second word
    leaves = partial(run_beside, lambda socket: (socket.send(first), socket.poll(1000)))
    result = leaves("saf", "--scheduler", "pool", "--pool-units", "12", *words)
    assert result.exit_code == 1
    assert result.stderr.count("bridge: error: ") == 1 and says in result.stderr
