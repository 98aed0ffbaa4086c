"""Inputs of other people that once were refused, or ended in a deadlock: each kernel simulates them."""

import csv
from pathlib import Path
from typing import Any

import pytest
from model_process import converse, needs_simgrid

INPUTS = Path(__file__).with_name("inputs")

pytestmark = needs_simgrid


class InTurn:
    """Starts waiting jobs in turn, on the lowest machines that are free."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, int]] = []
        self.running: dict[str, list[int]] = {}

    def __call__(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                self.waiting.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                del self.running[data["job_id"]]
        decisions = []
        while self.waiting:
            name, size = self.waiting[0]
            busy = {i for machines in self.running.values() for i in machines}
            free = [i for i in (0, 1) if i not in busy]
            if size > len(free):
                break
            self.waiting.pop(0)
            self.running[name] = free[:size]
            alloc = " ".join(map(str, free[:size]))
            decisions.append({"type": "EXECUTE_JOB", "data": {"job_id": name, "alloc": alloc}})
        return decisions


def simulate(folder: Path, platform: str, workload: str, *options: str) -> list[tuple[str, str, float]]:
    """Return (job, final state, end in s) of all jobs, in the order in which they ended."""
    files = ("-p", str(INPUTS / platform), "-w", str(INPUTS / workload), "-q", *options)
    _, status, errors = converse(folder, InTurn(), *files)
    assert (status, errors) == (0, "")
    rows = csv.DictReader((folder / "out_jobs.csv").open())
    return [
        (row["job_id"], row["final_state"].removeprefix("COMPLETED_"), float(row["finish_time"]))
        for row in rows
    ]


@pytest.mark.parametrize("kernel", ["auto", "simgrid", "queue"])
@pytest.mark.parametrize("platform", ["no-network.xml", "vivaldi.xml"])
def test_a_route_without_links_takes_no_time(tmp_path: Path, platform: str, kernel: str) -> None:
    ended = simulate(tmp_path, platform, "two-jobs.json", "--kernel", kernel)
    assert ended == [("a", "SUCCESSFULLY", 10), ("b", "SUCCESSFULLY", 17)]


DELAYS = """{"nb_res": 1, "jobs": [
  {"id": "a", "subtime": 0, "res": 1, "walltime": 100, "profile": "p"},
  {"id": "b", "subtime": 5, "res": 1, "walltime": 6, "profile": "d"}],
 "profiles": {"p": {"type": "delay", "delay": 10}, "d": {"type": "delay", "delay": 7}}}"""


class OneByOne(InTurn):
    """As on the one machine that the master leaves of `wifi.xml`."""

    def __call__(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        self.running.setdefault("master", [1])
        return super().__call__(message)


@pytest.mark.parametrize("kernel", ["auto", "simgrid"])
def test_delays_run_beside_wifi(tmp_path: Path, kernel: str) -> None:
    (tmp_path / "w.json").write_text(DELAYS)
    files = ("-p", str(INPUTS / "wifi.xml"), "-m", "s0", "-w", "w.json", "-q", "--kernel", kernel)
    _, status, errors = converse(tmp_path, OneByOne(), *files)
    assert (status, errors) == (0, "")
    rows = [*csv.DictReader((tmp_path / "out_jobs.csv").open())]
    ended = [(row["job_id"], row["final_state"], round(float(row["finish_time"]), 5)) for row in rows]
    assert ended == [("a", "COMPLETED_SUCCESSFULLY", 10), ("b", "COMPLETED_WALLTIME_REACHED", 16)]


@pytest.mark.parametrize(
    ("profile", "options", "status", "words"),
    [
        ('{"type": "parallel_homogeneous", "cpu": 1, "com": 0}', (), 1, "job 'w0!a': its profile 'p' is a"),
        ('{"type": "delay", "delay": 10}', ("--kernel", "queue"), 2, "the queue cannot simulate Wi-Fi"),
    ],
)
def test_what_wifi_does_not_allow_is_one_error(
    tmp_path: Path, profile: str, options: tuple[str, ...], status: int, words: str
) -> None:
    (tmp_path / "w.json").write_text(DELAYS.replace('{"type": "delay", "delay": 10}', profile))
    files = ("-p", str(INPUTS / "wifi.xml"), "-m", "s0", "-w", "w.json", "-q", *options)
    _, found, errors = converse(tmp_path, OneByOne(), *files)
    assert found == status
    assert words in errors
    assert errors.count("\n") == 2


@pytest.mark.parametrize(
    "platform", ["blank-first-line.xml", "dashes-in-comment.xml", "latin1.xml", "plain.xml"]
)
def test_what_simgrid_reads_is_read(tmp_path: Path, platform: str) -> None:
    ended = simulate(tmp_path, platform, "two-jobs.json")
    assert ended == [("a", "SUCCESSFULLY", 10), ("b", "SUCCESSFULLY", 17)]


def test_a_job_fails_with_its_host_and_the_others_go_on(tmp_path: Path) -> None:
    ended = simulate(tmp_path, "host-fails.xml", "two-jobs.json")
    assert ended == [("a", "FAILED", 5), ("b", "SUCCESSFULLY", 12)]


@pytest.mark.parametrize("host", ["n0", "n1"])
def test_whatever_a_job_does_it_fails_with_any_of_its_hosts(tmp_path: Path, host: str) -> None:
    text = (INPUTS / "plain.xml").read_text()
    (tmp_path / "p.xml").write_text(text.replace(f'id="{host}"', f'id="{host}" state_file="n1.fail"'))
    (tmp_path / "n1.fail").write_text((INPUTS / "n1.fail").read_text())
    (tmp_path / "w.json").write_text(
        """{"nb_res": 2, "profiles": {"d": {"type": "delay", "delay": 7},
                                      "c": {"type": "parallel_homogeneous", "cpu": 7e9, "com": 0}},
            "jobs": [{"id": "a", "subtime": 0, "res": 2, "profile": "d"},
                     {"id": "b", "subtime": 1, "res": 2, "profile": "c"},
                     {"id": "c", "subtime": 20, "res": 2, "profile": "c"},
                     {"id": "d", "subtime": 28, "res": 2, "profile": "d"}]}"""
    )
    ended = simulate(tmp_path, str(tmp_path / "p.xml"), str(tmp_path / "w.json"))
    # Both fail at 5 s, the second as soon as it is started on a host that is off; at 20 s the host is back.
    assert ended[0] == ("a", "FAILED", 5) and ended[1] == ("b", "FAILED", pytest.approx(5, abs=2e-5))
    assert ended[2:] == [("c", "SUCCESSFULLY", 27), ("d", "SUCCESSFULLY", 35)]


def test_profiles_may_have_batsim_5s_names(tmp_path: Path) -> None:
    assert simulate(tmp_path, "plain.xml", "batsim5.json") == [("1", "SUCCESSFULLY", 7)]


def test_jobs_that_share_a_host_are_each_given_its_energy_which_is_said(tmp_path: Path) -> None:
    def on_one_host(message: dict[str, Any]) -> list[dict[str, Any]]:
        names = [
            (e["data"]["job_id"], e["data"]["job"]["res"]) for e in message["events"] if "job" in e["data"]
        ]
        return [
            {
                "type": "EXECUTE_JOB",
                "data": {"job_id": name, "alloc": "0", "mapping": {str(rank): "0" for rank in range(size)}},
            }
            for name, size in names
        ]

    files = ("-p", str(INPUTS / "multicore.xml"), "-w", str(INPUTS / "w65.json"), "-q", "-E")
    _, status, errors = converse(tmp_path, on_one_host, *files, "--enable-compute-sharing")
    assert status == 0
    assert [row["consumed_energy"] for row in csv.DictReader((tmp_path / "out_jobs.csv").open())] == [
        "2000.000000"
    ] * 3
    assert errors.startswith("bridge simgrid: note: jobs had machines together")
    _, status, errors = converse(
        tmp_path, InTurn(), *files[:2], "-w", str(INPUTS / "one-core.json"), "-q", "-E"
    )
    assert (status, errors) == (0, "")
