"""`bridge decide`: options, messages and exit statuses; the peer is a fake Batsim on a real port."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from detailed import delay_jobs, write_platform
from fake_batsim import MICRO, DelayJob, FakeBatsim
from peers import Play, free_port, peer

from bridge.base.errors import BridgeError
from bridge.cli.decide import decide
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.worlds.batsim.endpoint import Endpoint
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig as Replay

JOBS = [DelayJob(str(k), k * MICRO, (3 + k) * MICRO, 1 + k % 3, (9 + k) * MICRO) for k in range(1, 9)]


def run_beside(play: Play | None, *arguments: str) -> Result:
    address = f"tcp://127.0.0.1:{free_port()}"
    with peer(address, play) if play else nullcontext():
        return CliRunner().invoke(decide, [*arguments, "--socket", address])


def run(fake: FakeBatsim | None, *arguments: str) -> Result:
    return run_beside(fake.run_on if fake else None, *arguments)


def test_a_policy_decides_and_its_decisions_are_written(tmp_path: Path) -> None:
    out = tmp_path / "decisions.json"
    fake = FakeBatsim([*JOBS, DelayJob("9", 0, MICRO, 5, None)], 4)
    result = run(fake, "sjf", "--backfill", "conservative", "--placement", "contiguous", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert "sjf, backfill conservative; waiting for Batsim on tcp://127.0.0.1:" in result.stderr
    assert "rejected w0!9: asks for 5 nodes, the machine has 4" in result.stderr
    assert result.stdout.startswith(
        "9 submitted, 1 rejected, 8 completed_successfully; contiguous: goal met by "
    )
    content = json.loads(out.read_text())
    assert {
        row["job_id"][3:]: row["start"] * MICRO for row in content["jobs"] if row["start"] is not None
    } == fake.starts


def test_jobs_that_are_missing_give_a_status_of_their_own() -> None:
    gone = [(1, {"type": "event_machine_unavailable", "resources": "0-1"})]
    fake = FakeBatsim(JOBS, 2, events=gone)
    result = run(fake, "fcfs")
    assert fake.deadlocked and result.exit_code == 4
    assert "without SIMULATION_ENDS" in result.stderr and "jobs are missing" in result.stderr


def test_nobody_comes() -> None:
    result = run(None, "fcfs", "--startup-timeout", "0.2")
    assert result.exit_code == 3 and "waited 0.2 s for Batsim's first message" in result.stderr
    assert result.stdout == "no job was submitted; first-fit: goal met by 0 of 0 starts\n"


def test_orders_that_know_the_workload(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="Give --workload"):
        raise run(None, "slurm").exception or AssertionError
    log = resolve("bundled-128")
    fast = Replay("slurm", "easy", estimator="noisy(0.5, 3)", first=60)
    chosen = fast.select(read(log))
    fake = FakeBatsim(delay_jobs(chosen), 128)
    out = tmp_path / "d.json"
    told = f"slurm --workload {log} --first 60 --out {out} --estimator".split()
    assert run(fake, *told, "noisy(0.5, 3)").exit_code == 0
    want = replay(fast.build_scenario(chosen)).start.tolist()
    assert [fake.starts[name] for name in sorted(fake.starts)] == want


def test_placement_on_a_platform(tmp_path: Path) -> None:
    platform = write_platform(tmp_path / "p.xml", 12)
    names = sorted(f"node{k}" for k in range(12))
    for placement in ("best-fit", "topology"):
        fake = FakeBatsim(JOBS, 12, names=names)
        result = run(fake, "fcfs", "--placement", placement, "--platform", str(platform))
        assert result.exit_code == 0, result.output
        assert f"{placement}: goal met by 8 of 8 starts" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["sfj"], "is no policy"),
        (["fcfs", "--placement", "topology"], "Give the platform file"),
        (["fcfs", "--estimator", "actual"], "Give --workload"),
        (["fcfs", "--first", "5"], "Give --workload"),
        (["fcfs", "--resource", "bb=1.5"], "no whole amount"),
        (["fcfs", "--resource", "nodes=15"], "no whole amount"),
        (["fcfs", "--platform", "no.xml"], "no.xml"),
    ],
)
def test_wrong_options_are_one_clear_error(arguments: list[str], what: str) -> None:
    error = run(None, *arguments).exception
    assert isinstance(error, BridgeError) and what in str(error)


def test_malformed_pairs_and_folders() -> None:
    for arguments in (["--resource", "bb"], ["--storage", "=x"], ["--resource", "a=1", "--resource", "a=2"]):
        assert run(None, "fcfs", *arguments).exit_code == 2
    assert run(None, "fcfs", "--out", "/no/such/folder/d.json").exit_code == 2


def test_a_port_in_use() -> None:
    with Endpoint("tcp://127.0.0.1:*") as endpoint:
        error = CliRunner().invoke(decide, ["fcfs", "--socket", endpoint.address]).exception
    assert isinstance(error, BridgeError) and "Address already in use" in error.what


def test_the_help_names_the_statuses() -> None:
    text = " ".join(CliRunner().invoke(decide, ["--help"]).output.split())
    assert "Exit status: 0 the simulation ended" in text and "143 interrupted, terminated" in text
