"""The platform model as a process: what it computes beyond the recordings, and how it ends when it must."""

import csv
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zmq
from model_process import COMMAND, PATIENCE_S, converse, needs_simgrid, runs, started

pytestmark = needs_simgrid

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="outer" routing="Full">
 <prop id="site" value="here"/>
 <host id="master_host" speed="1Gf"/>
 <host id="n0" speed="1Gf" core="4"><prop id="capacity" value="7"/></host><host id="n1" speed="2Gf"/>
 <host id="n2" speed="1Gf"/>
 <link id="m" bandwidth="1e18Bps" latency="0us" sharing_policy="FATPIPE"/>
 <link id="l" bandwidth="100MBps" latency="0us"/>
 <route src="master_host" dst="master_host"><link_ctn id="m"/></route>
 <route src="master_host" dst="n0"><link_ctn id="m"/></route>
 <route src="master_host" dst="n1"><link_ctn id="m"/></route>
 <route src="master_host" dst="n2"><link_ctn id="m"/></route>
 <route src="n0" dst="n1"><link_ctn id="l"/></route><route src="n0" dst="n2"><link_ctn id="l"/></route>
 <route src="n1" dst="n2"><link_ctn id="l"/></route>
</zone></platform>
"""
FILES = ("-p", "p.xml", "-w", "w.json", "-q")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.xml").write_text(PLATFORM)
    write_jobs(tmp_path / "w.json", {"d": {"type": "delay", "delay": 5}}, ("a", 0, 1, "d"), ("b", 2, 1, "d"))
    return tmp_path


def write_jobs(path: Path, profiles: dict[str, Any], *jobs: tuple[str, float, int, str], **more: Any) -> None:
    listed = [{"id": i, "subtime": t, "res": r, "profile": p, **more} for i, t, r, p in jobs]
    path.write_text(json.dumps({"nb_res": 3, "jobs": listed, "profiles": profiles}))


def alone(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a simulation that nobody decides for."""
    command = [*COMMAND, *options]
    return subprocess.run(
        command, cwd=folder, timeout=PATIENCE_S, capture_output=True, text=True, check=False
    )


def execute(*allocs: str) -> Callable[[dict[str, Any]], list[dict[str, Any]]]:
    """A decision process that starts each job as it comes, on the next of some allocations."""
    left = list(allocs)

    def answer(message: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"type": "EXECUTE_JOB", "data": {"job_id": event["data"]["job_id"], "alloc": left.pop(0)}}
            for event in message["events"]
            if event["type"] == "JOB_SUBMITTED"
        ]

    return answer


def finishes(folder: Path) -> dict[str, tuple[float, str]]:
    """Return the end and final state of each job."""
    rows = csv.DictReader((folder / "out_jobs.csv").open())
    return {row["job_id"]: (float(row["finish_time"]), row["final_state"]) for row in rows}


def test_another_interpreter_finds_this_package_by_itself(folder: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*COMMAND, "--version"], cwd=folder, env=bare, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_message_describes_the_machines(folder: Path) -> None:
    heard, status, _ = converse(folder, execute("0", "1"), *FILES, "--mmax", "2", "-r", "n2:storage")
    begins = heard[0]["events"][0]["data"]
    assert status == 0
    assert begins["compute_resources"][0] == {
        "id": 0,
        "name": "n0",
        "state": "idle",
        "properties": {"capacity": "7", "role": ""},
        "zone_properties": {"site": "here"},
    }
    assert [(r["id"], r["name"]) for r in begins["storage_resources"]] == [(2, "n2")]
    assert begins["workloads"] == {"w0": str(folder / "w.json")}


def test_several_workloads_are_submitted_side_by_side(folder: Path) -> None:
    write_jobs(folder / "v.json", {"d": {"type": "delay", "delay": 1}}, ("a", 1, 1, "d"))
    heard, status, _ = converse(folder, execute("0", "1", "2"), *FILES, "-w", "v.json")
    submitted = [e for m in heard for e in m["events"] if e["type"] == "JOB_SUBMITTED"]
    assert status == 0
    expected = [(0, "w0!a"), (1, "w1!a"), (2, "w0!b")]
    assert [(e["timestamp"], e["data"]["job_id"]) for e in submitted] == expected
    kinds = [e["data"].get("type") for m in heard for e in m["events"] if e["type"] == "NOTIFY"]
    assert kinds == ["no_more_static_job_to_submit"]


def test_a_usage_trace_computes_on_its_share_of_the_cores(folder: Path) -> None:
    profile = {"u": {"type": "usage_trace", "trace": "t.txt"}}
    (folder / "t.txt").write_text("r0.txt\nr1.txt\n")
    # On the 4 cores of 1 Gflop/s: 2 s on 2 cores, then 1 s on one; on the core of 2 Gflop/s: 4 s.
    (folder / "r0.txt").write_text("0 m_usage 0.5 2e9\n# a remark\n0 m_usage 0 1e9\n")
    (folder / "r1.txt").write_text("1 m_usage 1.0 8e9\n")
    write_jobs(folder / "w.json", profile, ("a", 0, 2, "u"), ("b", 10, 2, "u"))
    _, status, errors = converse(folder, execute("0-1", "0-1"), *FILES)
    assert (status, errors) == (0, "")
    ends = finishes(folder)
    assert ends["a"][0] == pytest.approx(4, abs=1e-6)
    assert ends["b"][0] == pytest.approx(14, abs=1e-6)


def test_a_usage_trace_ends_at_its_walltime(folder: Path) -> None:
    (folder / "t.txt").write_text("r.txt\n")
    (folder / "r.txt").write_text("0 m_usage 1 5e9\n")
    profile = {"u": {"type": "usage_trace", "trace": "t.txt"}}
    write_jobs(folder / "w.json", profile, ("a", 0, 1, "u"), walltime=3)
    _, status, _ = converse(folder, execute("0"), *FILES)
    assert status == 0
    assert finishes(folder) == {"a": (3.0, "COMPLETED_WALLTIME_REACHED")}


@pytest.mark.parametrize("kernel", ["simgrid", "queue"])
def test_jobs_that_share_a_link_slow_each_other_down(folder: Path, kernel: str) -> None:
    profile = {"p": {"type": "parallel", "cpu": [0, 0], "com": [0, 200e6, 0, 0]}}
    write_jobs(folder / "w.json", profile, ("a", 0, 2, "p"), ("b", 1, 2, "p"))
    _, status, _ = converse(
        folder, execute("0-1", "0-1"), *FILES, "--enable-compute-sharing", "--kernel", kernel
    )
    # Alone: 2 s each. From 1 to 3 both at half the speed, then b alone for the second that it has left.
    assert status == 0
    assert {job: end for job, (end, _) in finishes(folder).items()} == pytest.approx({"a": 3, "b": 4})


def test_without_a_scheduler_all_jobs_run_at_once(folder: Path) -> None:
    done = alone(folder, *FILES, "--no-sched")
    rows = (folder / "out_machine_states.csv").read_text().splitlines()
    assert done.returncode == 0
    assert rows[-1] == "5,0,0,0,3,0"


def test_a_stuck_decision_process_is_reported_with_the_unfinished_jobs(folder: Path) -> None:
    for kernel in ("queue", "simgrid"):
        heard, status, errors = converse(folder, lambda _: [], *FILES, "--kernel", kernel)
        assert status == 3
        assert heard[-1]["events"][-1]["data"] == {"type": "no_more_static_job_to_submit"}
        assert "2 unfinished jobs: w0!a (SUBMITTED), w0!b (SUBMITTED)" in errors
        assert (folder / "out_schedule.csv").exists()


def test_unfinished_registration_is_named_as_the_reason(folder: Path) -> None:
    _, status, errors = converse(folder, execute("0", "1"), *FILES, "--enable-dynamic-jobs")
    assert status == 3
    assert "no job is left" in errors and "registration_finished" in errors


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"now": 0}', "'events'"),
        ('{"now": NaN, "events": []}', "NaN"),
        ('{"now": 0, "events": [{"timestamp": 1, "type": "NOTIFY", "data": {}}]}', "'timestamp'"),
        ('{"now": 0, "events": [{"timestamp": 0, "type": "DANCE", "data": {}}]}', "'DANCE'"),
        (
            '{"now": 0, "events": [{"timestamp": 0, "type": "KILL_JOB", "data": {"job_ids": ["w0!x"]}}]}',
            "w0!x",
        ),
        ('{"now": 0, "events": [{"timestamp": 0, "type": "REJECT_JOB", "data": {"job_id": "v!a"}}]}', "'v'"),
        ('{"now": 0, "events": [{"timestamp": 0, "type": "QUERY", "data": {"requests": {}}}]}', "requests"),
    ],
)
def test_bad_answers_end_in_one_error_that_names_them(folder: Path, raw: str, word: str) -> None:
    with started(folder, *FILES) as model:
        assert model.hear() is not None
        model.say(raw)
        assert model.hear() is None
        status, errors = model.end()
    assert status == 1
    assert errors.startswith("bridge simgrid: error: answer 1")
    assert word in errors and "Traceback" not in errors


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({"job_id": "w0!a", "alloc": "0-1"}, "asks for 1 machines and is given 2"),
        ({"job_id": "w0!a", "alloc": "9"}, "no machine 9"),
        ({"job_id": "w0!b", "alloc": "0"}, "NOT_SUBMITTED"),
        ({"job_id": "w0!a", "alloc": "0", "mapping": {"0": "1"}}, "mapping"),
        ({"job_id": "w0!a", "alloc": "0", "colour": "red"}, "colour"),
        ({"job_id": "w0!a", "alloc": "0", "additional_io_job": {"profile_name": "x", "alloc": "0"}}, "'x'"),
    ],
)
def test_illegal_executions_are_refused(folder: Path, data: dict[str, Any], word: str) -> None:
    def answer(message: dict[str, Any]) -> list[dict[str, Any]]:
        submitted = any(event["type"] == "JOB_SUBMITTED" for event in message["events"])
        return [{"type": "EXECUTE_JOB", "data": data}] if submitted else []

    _, status, errors = converse(folder, answer, *FILES)
    assert status == 1
    assert "event 0 (EXECUTE_JOB)" in errors and word in errors


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("</zone>", ""), "not well-formed XML: mismatched tag, </zone> is expected"),
        (("<platform", "<plan"), "not well-formed XML: mismatched tag, </plan> is expected"),
        (("master_host", "boss"), "no master host"),
        (('value="7"/>', 'value="7"/><prop id="role" value="king"/>'), "king"),
        (('id="n1" speed="2Gf"', 'id="n1" speed="0f"'), "n1"),
        (('<link_ctn id="l"/>', '<link_ctn id="unknown"/>'), "unknown"),
        (('version="4.1"', 'version="1"'), "SimGrid"),
    ],
)
def test_bad_platforms_end_in_one_error_that_names_them(
    folder: Path, change: tuple[str, str], word: str
) -> None:
    (folder / "p.xml").write_text(PLATFORM.replace(*change))
    done = alone(folder, *FILES)
    assert done.returncode in (1, 70)
    assert done.stderr.startswith("bridge simgrid: error: p.xml") and word in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "place"),
    [
        (("-p", "none.xml"), "none.xml"),
        (("-p", "p.xml", "-w", "none.json"), "none.json"),
        (("-p", "p.xml", "-w", "w.json", "--events", "none.txt"), "none.txt"),
        (("-p", "p.xml", "-w", "w.json", "-e", "none/out"), "none/out_"),
        (("-p", "p.xml", "-w", "w.json", "-s", "nonsense"), "nonsense"),
        (("-p", "p.xml", "-w", "w.json", "--mmax", "9"), "p.xml"),
    ],
)
def test_what_cannot_be_read_or_written_is_named(folder: Path, options: tuple[str, ...], place: str) -> None:
    done = alone(folder, *options)
    assert done.returncode == 1
    assert done.stderr.startswith("bridge simgrid: error: ") and place in done.stderr.splitlines()[0]


def test_a_peer_that_never_comes_is_reported_when_asked_to(folder: Path) -> None:
    done = alone(folder, *FILES, "-s", "tcp://127.0.0.1:9", "--peer-timeout", "0.3")
    assert done.returncode == 4
    assert "tcp://127.0.0.1:9: no answer within 0.3 s; the decision process never came" in done.stderr


def test_an_answer_that_nobody_has_asked_for_is_none(folder: Path) -> None:
    hello = bytes.fromhex("ff00000000000000017f03004e554c4c") + bytes(48)
    ready = b"\x04\x26\x05READY\x0bSocket-Type\0\0\0\x03REP\x08Identity\0\0\0\0"
    early = b'{"now":5000,"events":[]}'
    with socket.create_server(("127.0.0.1", 0)) as listens:
        port = listens.getsockname()[1]
        words = [*COMMAND, *FILES, "-s", f"tcp://127.0.0.1:{port}", "--peer-timeout", "1"]
        process = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE)
        stream, _ = listens.accept()
        with stream:
            stream.sendall(hello + ready + b"\x01\0\0" + bytes((len(early),)) + early)
            said = b""
            while b"SIMULATION_BEGINS" not in said:
                said += stream.recv(1 << 16)
            _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 4
    assert b"no answer within 1 s" in errors


def test_an_unknown_name_is_said_once(folder: Path) -> None:
    done = alone(folder, *FILES, "-s", "tcp://nobody.invalid:28000", "--peer-timeout", "0.3")
    assert done.returncode == 4
    assert done.stderr.count("its name is not known here") == 2  # while it tries, and as the reason


def test_a_peer_may_bind_late_and_leave_before_it_was_asked(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first:
        where = f"tcp://127.0.0.1:{first.getsockname()[1]}"
        process = subprocess.Popen([*COMMAND, *FILES, "-s", where], cwd=folder)
        first.accept()[0].close()
    with zmq.Context() as context, context.socket(zmq.REP) as peer:
        peer.setsockopt(zmq.LINGER, 0)
        peer.bind(where)
        peer.setsockopt(zmq.RCVTIMEO, PATIENCE_S * 1000)
        decide, kinds = execute("0", "1"), [""]
        while "SIMULATION_ENDS" not in kinds:
            message = json.loads(peer.recv())
            kinds = [event["type"] for event in message["events"]]
            events = [{"timestamp": message["now"], **decision} for decision in decide(message)]
            peer.send_string(json.dumps({"now": message["now"], "events": events}))
        assert process.wait(PATIENCE_S) == 0
    assert finishes(folder).keys() == {"a", "b"}


def test_a_peer_that_leaves_in_the_middle_is_reported(folder: Path) -> None:
    with started(folder, *FILES) as model:
        model.hear()
        model.say('{"now": 0, "events": []}')
        assert model.hear() is not None
        model.leave()
        status, errors = model.end()
    assert status == 4
    assert "the decision process disconnected after message 1" in errors


def test_a_peer_that_falls_silent_is_reported_when_asked_to(folder: Path) -> None:
    with started(folder, *FILES, "--peer-timeout", "0.5") as model:
        model.hear()
        model.say('{"now": 0, "events": []}')
        assert model.hear() is not None
        status, errors = model.end()
    assert status == 4
    assert "the decision process answered message 1" in errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_the_tables_written(folder: Path, number: signal.Signals) -> None:
    with started(folder, *FILES) as model:
        model.hear()
        model.say('{"now": 7, "events": []}')
        assert model.hear() is not None
        model.process.send_signal(number)
        status, errors = model.end()
    assert status == 128 + number
    assert f"{number.name} came" in errors
    assert (folder / "out_jobs.csv").read_text().startswith("job_id,")
    assert not (folder / "out_schedule.csv").exists()


def test_its_simulating_process_does_not_outlive_it(folder: Path) -> None:
    with started(folder, *FILES) as model:
        model.hear()
        children = Path(f"/proc/{model.process.pid}/task/{model.process.pid}/children").read_text().split()
        model.process.kill()
        model.process.wait(PATIENCE_S)
        assert len(children) == 1
        for _ in range(200):
            if not runs(int(children[0])):
                return
            time.sleep(0.05)
    raise AssertionError("the child still runs")


def test_a_decision_process_may_bind_later(folder: Path) -> None:
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        endpoint = f"tcp://127.0.0.1:{port}"
        socket.unbind(endpoint)
        process = subprocess.Popen([*COMMAND, *FILES, "-s", endpoint], cwd=folder)
        try:
            while not (folder / "out_jobs.csv").exists():  # it has connected soon after
                assert process.poll() is None
                time.sleep(0.01)
            socket.bind(endpoint)
            assert socket.poll(PATIENCE_S * 1000)
            assert json.loads(socket.recv())["events"][0]["type"] == "SIMULATION_BEGINS"
        finally:
            process.kill()
            process.wait()


def test_an_old_summary_does_not_survive_a_run_that_fails(folder: Path) -> None:
    (folder / "out_schedule.csv").write_text("old")
    _, status, _ = converse(folder, execute("0", "0"), *FILES)
    assert status == 1
    assert not (folder / "out_schedule.csv").exists()
    assert finishes(folder) == {}


@pytest.mark.parametrize("table", ["jobs.csv", "machine_states.csv", "schedule.trace"])
def test_a_full_disk_is_one_error(folder: Path, table: str) -> None:
    (folder / f"out_{table}").symlink_to("/dev/full")
    _, status, errors = converse(folder, execute("0", "1"), *FILES)
    assert status == 1
    assert errors.startswith(
        f"bridge simgrid: error: out_{table}: cannot be written: No space left on device"
    )
    assert len(errors.splitlines()) == 2


def test_work_without_a_machine_is_refused(folder: Path) -> None:
    work = {"type": "parallel_homogeneous_total", "cpu": 1, "com": 1}
    write_jobs(folder / "w.json", {"p": work}, ("a", 0, 0, "p"))
    done = alone(folder, *FILES, "--no-sched")
    assert done.returncode == 1
    assert done.stderr.startswith("bridge simgrid: error: job 'w0!a': has no machine")
