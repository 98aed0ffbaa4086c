"""How fast the embedded platform model is: jobs per second of wall time, and memory, against a scripted peer.

The peer is a first-come-first-served scheduler that does as little as possible. Two loads: delay jobs, and
parallel tasks (computation and all-to-all communication) on up to 16 machines. Every machine size keeps the
same load factor.

    python benchmarks/simgrid_model.py                 # 10,000 jobs on 512 hosts: delay and parallel
    python benchmarks/simgrid_model.py --hosts 512 4360 34880 --kinds delay parallel
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import zmq

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "worlds" / "batsim")]

from detailed import write_platform  # noqa: E402

from bridge.worlds import simgrid  # noqa: E402

LOAD = 0.84
MEAN_RUNTIME_S = 1000.0
LARGEST = 16


def write_workload(path: Path, hosts: int, jobs: int, kind: str, seed: int) -> None:
    """Write jobs of 1 to 16 machines whose demand is LOAD of the machine."""
    draw = random.Random(seed)
    interval = MEAN_RUNTIME_S * (LARGEST + 1) / 2 / (LOAD * hosts)
    listed, profiles, now = [], {}, 0.0
    for i in range(jobs):
        now += draw.expovariate(1 / interval)
        runtime = round(draw.expovariate(1 / MEAN_RUNTIME_S) + 1, 3)
        if kind == "delay":
            profiles[f"p{i}"] = {"type": "delay", "delay": runtime}
        else:
            profiles[f"p{i}"] = {"type": "parallel_homogeneous", "cpu": runtime * 1e9, "com": 1e6}
        res = draw.randint(1, LARGEST)
        listed.append(
            {"id": f"{i:06}", "subtime": round(now, 3), "walltime": 1e6, "res": res, "profile": f"p{i}"}
        )
    path.write_text(json.dumps({"nb_res": hosts, "jobs": listed, "profiles": profiles}), encoding="utf-8")


class Fcfs:
    """Starts waiting jobs in order while they fit."""

    def __init__(self, hosts: int) -> None:
        self.free = list(range(hosts))
        self.queue: deque[tuple[str, int]] = deque()

    def answer(self, message: dict) -> str:
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                self.queue.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                for part in data["alloc"].split():
                    low, _, high = part.partition("-")
                    self.free.extend(range(int(low), int(high or low) + 1))
        now, started = message["now"], []
        while self.queue and self.queue[0][1] <= len(self.free):
            job, res = self.queue.popleft()
            alloc = " ".join(str(self.free.pop()) for _ in range(res))
            data = {"job_id": job, "alloc": alloc}
            started.append({"timestamp": now, "type": "EXECUTE_JOB", "data": data})
        return json.dumps({"now": now, "events": started})


def peak_memory_mib(pid: int) -> float:
    """Return the resident memory of the largest of a process and its children, now."""
    pids = [pid]
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if children.exists():
        pids += [int(child) for child in children.read_text(encoding="utf-8").split()]
    sizes = []
    for one in pids:
        try:
            sizes.append(
                int(Path(f"/proc/{one}/statm").read_text(encoding="utf-8").split()[1])
                * os.sysconf("SC_PAGE_SIZE")
                / 2**20
            )
        except (OSError, IndexError):
            continue
    return max(sizes, default=0.0)


def measure(hosts: int, jobs: int, kind: str, extra: list[str], seed: int = 1) -> dict[str, float]:
    """Run one simulation; return its wall times (s), rates (jobs/s, of wall time and of the model's processor
    time with its start), and memory (MiB) at 20 % and 90 % of the jobs."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        write_platform(here / "p.xml", hosts, 'bw="1GBps" lat="0us"')
        write_workload(here / "w.json", hosts, jobs, kind, seed)
        context = zmq.Context()
        socket = context.socket(zmq.REP)
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        options = ["-p", "p.xml", "-w", "w.json", "-s", f"tcp://127.0.0.1:{port}", "-e", "out", "-q"]
        started = time.perf_counter()
        process = subprocess.Popen(
            [*simgrid.command(), *options, "--disable-schedule-tracing", *extra], cwd=here
        )
        peer, done, messages = Fcfs(hosts), 0, 0
        begun, memory = 0.0, {}
        while True:
            while not socket.poll(5000):
                if process.poll() is not None:
                    raise SystemExit(f"the model ended with status {process.returncode}")
            message = json.loads(socket.recv())
            messages += 1
            begun = begun or time.perf_counter()
            kinds = [event["type"] for event in message["events"]]
            done += kinds.count("JOB_COMPLETED")
            for share in (0.2, 0.9):
                if share not in memory and done >= share * jobs:
                    memory[share] = peak_memory_mib(process.pid)
            socket.send_string(peer.answer(message))
            if "SIMULATION_ENDS" in kinds:
                break
        _, _, used = os.wait4(process.pid, 0)
        ended = time.perf_counter()
        socket.close(0)
        context.term()
    return {
        "start_s": begun - started,
        "run_s": ended - begun,
        "jobs_per_s": done / (ended - begun),
        "jobs_per_cpu_s": done / (used.ru_utime + used.ru_stime),
        "messages_per_s": messages / (ended - begun),
        "mib_at_20%": memory.get(0.2, 0.0),
        "mib_at_90%": memory.get(0.9, 0.0),
    }


def main() -> None:
    """Print one line per machine size and kind of load."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, nargs="+", default=[512])
    parser.add_argument("--kinds", nargs="+", choices=("delay", "parallel"), default=["delay", "parallel"])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument(
        "--extra",
        default="",
        help="further options of the model, as one argument: --extra='--kernel simgrid'",
    )
    given = parser.parse_args()
    extra = given.extra.split()
    print(" hosts     kind  start s   run s  jobs/s /CPU s   msg/s  MiB 20%  MiB 90%")
    for hosts in given.hosts:
        for kind in given.kinds:
            got = list(measure(hosts, given.jobs, kind, extra).values())
            print(
                f"{hosts:6d} {kind:>8} {got[0]:8.2f} {got[1]:7.2f}"
                + "".join(f"{value:8.0f}" for value in got[2:]),
                flush=True,
            )


if __name__ == "__main__":
    main()
