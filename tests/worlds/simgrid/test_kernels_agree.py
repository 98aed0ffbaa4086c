"""The ordered queue and SimGrid's own kernel give the same simulation, message for message and row for
row."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from model_process import converse, needs_simgrid

pytestmark = needs_simgrid

HOSTS = 8
LINKS = {
    "clean": 'bandwidth="1e18Bps" latency="0us" sharing_policy="FATPIPE"',
    "late": 'bandwidth="100MBps" latency="1ms" sharing_policy="FATPIPE"',
    "slow": 'bandwidth="1MBps" latency="70us"',
    # 2**-10 s, and then 2**-20 s for the byte: with sums of halves, all dates are exact in floats.
    "exact": 'bandwidth="1048576Bps" latency="976.5625us" sharing_policy="FATPIPE"',
}


def write_platform(path: Path, management: str) -> None:
    """Write 8 hosts with a link each, around a backbone, and a master behind a management link."""
    names = [f"n{i}" for i in range(HOSTS)]
    routes = [
        f'<route src="master_host" dst="{n}"><link_ctn id="m"/></route>' for n in ("master_host", *names)
    ]
    for i, a in enumerate(names):
        routes += [
            f'<route src="{a}" dst="{b}"><link_ctn id="l{a}"/><link_ctn id="bb"/>'
            f'<link_ctn id="l{b}"/></route>'
            for b in names[i + 1 :]
        ]
    path.write_text(
        "<?xml version='1.0'?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">"
        '<platform version="4.1"><zone id="z" routing="Full"><host id="master_host" speed="1Gf"/>'
        + "".join(f'<host id="{n}" speed="1Gf"/>' for n in names)
        + f'<link id="m" {LINKS[management]}/>'
        + '<link id="bb" bandwidth="1e18Bps" latency="0us" sharing_policy="FATPIPE"/>'
        + "".join(f'<link id="l{n}" bandwidth="128MBps" latency="0us"/>' for n in names)
        + "".join(routes)
        + "</zone></platform>"
    )


def write_workload(path: Path, draw: random.Random, kind: str, jobs: int) -> None:
    """Write random jobs. Sleeping ones use any times; working ones only sums of halves, which floats hold
    exactly; mixed ones work for any time, and several are submitted at one date."""
    if kind == "sleeping":
        profiles: dict[str, Any] = {
            "a": {"type": "delay", "delay": 3.3},
            "b": {"type": "delay", "delay": 0.7, "ret": 2},
            "c": {"type": "composed", "repeat": 2, "seq": ["a", "s", "d"]},
            "d": {"type": "delay", "delay": 1.1},
            "s": {"type": "send", "msg": {"k": 1.5}, "sleeptime": 0.1},
        }
        times = [0.1 * i for i in range(40)]
    elif kind == "mixed":
        profiles = {
            "a": {"type": "parallel_homogeneous", "cpu": draw.uniform(1e9, 9e9), "com": 0},
            "b": {"type": "parallel_homogeneous", "cpu": draw.uniform(1e9, 9e9), "com": 64e6},
            "c": {"type": "composed", "repeat": 2, "seq": ["a", "d"]},
            "d": {"type": "delay", "delay": round(draw.uniform(1, 9), 3)},
        }
        times = [round(draw.uniform(0, 90), 3) for _ in range(jobs // 3)]
    else:
        profiles = {
            "a": {"type": "parallel_homogeneous", "cpu": 2e9, "com": 0},
            "b": {"type": "parallel_homogeneous", "cpu": 0, "com": 64e6},
            "c": {"type": "composed", "repeat": 2, "seq": ["a", "d"]},
            "d": {"type": "delay", "delay": 2},
        }
        times = [0.5 * i for i in range(20)]
    listed = [
        {
            "id": f"{i}",
            "subtime": draw.choice(times),
            "res": draw.randint(1, 3),
            "profile": draw.choice([name for name in profiles if name != "s"]),
            **({"walltime": draw.choice([1.75, 2.25, 5.75, 100])} if draw.random() < 0.7 else {}),
        }
        for i in range(jobs)
    ]
    path.write_text(json.dumps({"nb_res": HOSTS, "jobs": listed, "profiles": profiles}))


class Erratic:
    """Starts jobs that fit, in any order, and rejects, kills and asks for calls now and then; a seed
    decides."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.waiting: list[tuple[str, int]] = []
        self.running: dict[str, list[int]] = {}

    def __call__(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        draw, decisions = self.draw, []
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                self.waiting.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self.running.pop(data["job_id"], None)
            elif event["type"] == "SIMULATION_ENDS":
                return []
        if draw.random() < 0.2:
            target = message["now"] + draw.choice([0.5, 1.0, 2.5])
            decisions.append({"type": "CALL_ME_LATER", "data": {"timestamp": target}})
        old = [job for job in self.running if draw.random() < 0.05]
        if old:
            decisions.append({"type": "KILL_JOB", "data": {"job_ids": old}})
        busy = {i for machines in self.running.values() for i in machines}
        free = [i for i in range(HOSTS) if i not in busy]
        draw.shuffle(self.waiting)
        for job, res in list(self.waiting):
            if draw.random() < 0.05:
                decisions.append({"type": "REJECT_JOB", "data": {"job_id": job}})
                self.waiting.remove((job, res))
            elif res <= len(free):
                draw.shuffle(free)
                chosen, free = sorted(free[:res]), free[res:]
                self.waiting.remove((job, res))
                self.running[job] = chosen
                data = {"job_id": job, "alloc": " ".join(map(str, chosen))}
                decisions.append({"type": "EXECUTE_JOB", "data": data})
        return decisions


def simulate(folder: Path, kernel: str, seed: int) -> tuple[list[Any], int, str, list[str]]:
    heard, status, errors = converse(
        folder, Erratic(seed), "-p", "p.xml", "-w", "w.json", "--kernel", kernel, "-q"
    )
    names = ("jobs.csv", "machine_states.csv", "schedule.trace")
    return heard, status, errors, [(folder / f"out_{name}").read_text() for name in names]


# Where parallel tasks run, the queue's dates may differ from SimGrid's in the last bits, so that what
# coincides in one may not in the other: only exact dates can be compared.
@pytest.mark.parametrize(
    ("kind", "management"),
    [("sleeping", name) for name in LINKS] + [("working", "clean"), ("working", "exact")],
)
@pytest.mark.parametrize("seed", [2])
def test_same_simulation(tmp_path: Path, kind: str, management: str, seed: int) -> None:
    write_platform(tmp_path / "p.xml", management)
    write_workload(tmp_path / "w.json", random.Random(seed), kind, 30)
    queue, threads = (simulate(tmp_path, kernel, seed) for kernel in ("queue", "simgrid"))
    assert threads[1:3] == (0, "")
    assert queue == threads


# Were rounding errors of the clock (1e-15 s) not forgiven, SimGrid's kernel would split some of these.
@pytest.mark.parametrize("seed", [0, 2])
def test_jobs_of_one_date_come_in_one_message(tmp_path: Path, seed: int) -> None:
    write_platform(tmp_path / "p.xml", "clean")
    write_workload(tmp_path / "w.json", random.Random(seed), "mixed", 60)
    queue, threads = (simulate(tmp_path, kernel, seed) for kernel in ("queue", "simgrid"))
    assert queue == threads
    dates = [
        [event["data"]["job"]["subtime"] for event in message["events"] if event["type"] == "JOB_SUBMITTED"]
        for message in threads[0]
    ]
    apart = [date for message in dates for date in set(message)]
    assert len(apart) == len(set(apart))
    assert max(map(len, dates)) > 1
