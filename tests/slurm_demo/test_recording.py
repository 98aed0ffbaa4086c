"""Recording a case: the scenario that is read, and the rows that slurmctld's log becomes."""

from datetime import datetime
from pathlib import Path

import pytest

from bridge.base.errors import BridgeError
from bridge.slurm_demo.case_files import Notes, write_case
from bridge.slurm_demo.scenario import read_scenario
from bridge.worlds.fast.slurm.case import read_case

SCENARIO = """# Two jobs.
NodeName=n[0-1] CPUs=8 RealMemory=16000
PartitionName=p Nodes=n[0-1] Default=YES State=UP
5 sbatch -J b -N1 --array=0-1 -t 5 fail 20
0 sbatch -J a -N2 -t 1 --exclusive sleep 90
7 scontrol hold %b%
"""
LOG = """[2026-11-26T10:01:00.250] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=1 usec=6278
[2026-11-26T10:01:01.000] debug:  sched/backfill: _attempt_backfill: beginning
[2026-11-26T10:01:01.100] sched/backfill: _start_job: Started JobId=1 in p on n[0-1]
[2026-11-26T10:01:05.000] _slurm_rpc_submit_batch_job: JobId=2 InitPrio=1 usec=6278
[2026-11-26T10:02:30.000] debug2: Testing job time limits and checkpoints
[2026-11-26T10:02:30.001] Time limit exhausted for JobId=1
[2026-11-26T10:02:31.000] debug2: _slurm_rpc_epilog_complete: JobId=1 Node=n0
[2026-11-26T10:02:33.500] debug2: _slurm_rpc_epilog_complete: JobId=1 Node=n1
[2026-11-26T10:02:34.000] debug:  sched: Running job scheduler for default depth.
[2026-11-26T10:02:34.250] sched: Allocate JobId=2_0(3) NodeList=n0 #CPUs=8 Partition=p
[2026-11-26T10:02:55.000] _job_complete: JobId=2_0(3) done
[2026-11-26T10:02:55.500] debug2: node_did_resp n0
"""


def scenario(tmp_path: Path, text: str = SCENARIO) -> Path:
    path = tmp_path / "pair.txt"
    path.write_text(text)
    return path


def test_a_log_becomes_a_case_that_can_be_read(tmp_path: Path) -> None:

    notes = Notes(int(datetime.fromisoformat("2026-11-26T10:01:00").timestamp()))
    notes.ids = {"a": "1", "b": "2"}
    notes.commands = [(7.0, 7.4, "scontrol hold %b%")]
    notes.look(91.0, "JobId=1 JobState=TIMEOUT Reason=None Dependency=(null) EligibleTime=Unknown")
    out = tmp_path / "case"
    write_case(read_scenario(scenario(tmp_path)), notes, LOG, out, 20.0, "22.05.8")
    case = read_case(out)
    assert [job["job"] for job in case.jobs] == ["a", "b"]
    assert case.jobs[0]["exclusive"] == "1"
    assert case.jobs[1]["runtime"] == "fail20"
    assert case.passes == [(1.0, "backfill"), (90.0, "limits"), (94.0, "default")]
    assert {key: (one.start, one.nodes) for key, one in case.starts.items()} == {
        ("a", 0): (1.1, "n[0-1]"),
        ("b_0", 0): (94.25, "n0"),
    }
    (killed,) = case.recorded["a"]
    assert (killed.submit, killed.elapsed, killed.free_delay) == (
        0.25,
        pytest.approx(88.901),
        pytest.approx(3.499),
    )
    (task,) = case.recorded["b_0"]
    assert (task.submit, task.elapsed, task.free_delay) == (5.0, 20.75, 0.5)
    assert case.recorded["b_1"][0].elapsed is None
    assert ",TIMEOUT," in (out / "result.csv").read_text()
    with pytest.raises(BridgeError, match="is there already"):
        write_case(read_scenario(scenario(tmp_path)), notes, LOG, out, 20.0, "22.05.8")


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("9 sbatch -J a -N1 sleep 3", "two jobs a"),
        ("9 sbatch -N1 hostname", "ends in `sleep SECONDS`"),
        ("9 sbatch --frob=1 sleep 3", "option --frob=1"),
        ("9 reboot now", "none of sbatch"),
        ("what is this", "belongs to no scenario"),
    ],
)
def test_an_odd_line_of_a_scenario_is_named(tmp_path: Path, line: str, what: str) -> None:
    with pytest.raises(BridgeError, match=what) as caught:
        read_scenario(scenario(tmp_path, SCENARIO + line + "\n"))
    assert "pair.txt:7" in str(caught.value)
