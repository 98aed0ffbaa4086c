"""How fast the decision process is: round trips per second against a scripted peer over a real ZeroMQ socket.

A fake Batsim (delay jobs, load 0.84) is played once without a socket and its messages kept. Then a peer in a
process of its own sends those messages and waits for each reply, as Batsim does, while the decision process
schedules with EASY and places; "alone" is the same without socket and peer.

    python benchmarks/bridge.py                                  # 10,000 jobs on 512 hosts
    python benchmarks/bridge.py --hosts 512 4360 34880 --placement first-fit contiguous best-fit

With ``--pairs N`` whole simulations are timed instead, N times with `bridge decide fcfs+easy` and with the
least that can decide (``--decider`` names another command, which is given the endpoint and binds it), in
turns: on the embedded model, or on the real Batsim that the variable BATSIM names.

    BATSIM=/usr/local/bin/batsim python benchmarks/bridge.py --pairs 7

With ``--memory`` what the decision process keeps of a job that has ended is measured, without a socket.
"""

import argparse
import gc
import json
import multiprocessing
import os
import random
import resource
import shlex
import socket as sockets
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections import deque
from heapq import heappop, heappush
from pathlib import Path

import zmq

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "worlds" / "batsim")]

from detailed import COMMAND, write_platform, write_workload  # noqa: E402
from fake_batsim import MICRO, DelayJob, FakeBatsim  # noqa: E402

from bridge.scheduler.names import BACKFILLS  # noqa: E402
from bridge.scheduler.protocol import Policy  # noqa: E402
from bridge.worlds.batsim.dispatcher import DispatcherConfig  # noqa: E402
from bridge.worlds.batsim.endpoint import Endpoint  # noqa: E402
from bridge.worlds.batsim.placement import NAMES, rule  # noqa: E402
from bridge.worlds.batsim.process import DecisionProcess  # noqa: E402

LOAD = 0.84
MEAN_RUNTIME_S = 1000.0
LARGEST = 16
RACK = 32


def workload(jobs: int, hosts: int) -> list[DelayJob]:
    """Return jobs that load the machine to `LOAD`; walltimes are up to ten times the run times."""
    rng = random.Random(1)
    made = []
    clock = 0.0
    sizes = [2**k for k in range(LARGEST.bit_length())]
    gap = MEAN_RUNTIME_S * (sum(sizes) / len(sizes)) / (LOAD * hosts)
    for k in range(jobs):
        clock += rng.expovariate(1 / gap)
        run = max(1, round(rng.expovariate(1 / MEAN_RUNTIME_S)))
        wall = run * rng.randint(1, 10) + 1
        made.append(DelayJob(f"{k:06d}", round(clock) * MICRO, run * MICRO, rng.choice(sizes), wall * MICRO))
    return made


def setup(hosts: int, placement: str, backfill: str) -> DispatcherConfig:
    """Return the decision process's setup; hosts stand in racks."""
    racks = {f"node{k:05d}": f"rack {k // RACK}" for k in range(hosts)}
    return DispatcherConfig(
        Policy("fcfs", backfill), placement=rule(placement, groups=racks), placement_name=placement
    )


def play(address: str, frames: list[bytes], seconds: "multiprocessing.Queue[float]") -> None:
    """Be the peer: send each message when the reply to the one before has come."""
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(address)
        socket.send(frames[0])
        socket.recv()
        begun = time.perf_counter()
        for frame in frames[1:]:
            socket.send(frame)
            socket.recv()
        seconds.put(time.perf_counter() - begun)


def measure(jobs: int, hosts: int, placement: str, backfill: str, transport: str) -> None:
    chosen = setup(hosts, placement, backfill)
    recording = DecisionProcess(chosen)
    frames: list[bytes] = []

    def answer(frame: bytes) -> bytes:
        frames.append(frame)
        return recording.reply_to_frame(frame)

    FakeBatsim(workload(jobs, hosts), hosts).run(answer)

    alone = DecisionProcess(chosen)
    alone.reply_to_frame(frames[0])
    begun = time.perf_counter()
    for frame in frames[1:]:
        alone.reply_to_frame(frame)
    without = time.perf_counter() - begun

    with tempfile.TemporaryDirectory() as folder:
        where = "tcp://127.0.0.1:*" if transport == "tcp" else f"ipc://{folder}/socket"
        with Endpoint(where) as endpoint:
            seconds: multiprocessing.Queue[float] = multiprocessing.Queue()
            peer = multiprocessing.Process(target=play, args=(endpoint.address, frames, seconds))
            peer.start()
            result = DecisionProcess(chosen).run(endpoint)
            taken = seconds.get(timeout=60)
            peer.join()
    assert not result.missing, result.explain()
    trips = len(frames) - 1
    met = result.locality.met / result.locality.starts
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {hosts:,} | {placement} | {backfill} | {trips:,} | {trips / taken:,.0f} | {jobs / taken:,.0f} "
        f"| {trips / without:,.0f} | {met:.1%} | {memory:,.0f} |",
        flush=True,
    )


def decide_trivially(address: str) -> None:
    """Decide first come, first served on the lowest free hosts: the least that one can do."""
    with zmq.Context() as context, context.socket(zmq.REP) as socket:
        socket.bind(address)
        free, queue, running, ended = list[int](), deque[tuple[str, int]](), dict[str, list[int]](), False
        while not ended:
            message = json.loads(socket.recv())
            now, said = message["now"], []
            for event in message["events"]:
                kind, data = event["type"], event["data"]
                if kind == "JOB_SUBMITTED":
                    queue.append((data["job_id"], data["job"]["res"]))
                elif kind == "JOB_COMPLETED":
                    for host in running.pop(data["job_id"]):
                        heappush(free, host)
                elif kind == "SIMULATION_BEGINS":
                    free = list(range(data["nb_compute_resources"]))
                ended |= kind == "SIMULATION_ENDS"
            while queue and queue[0][1] <= len(free):
                job, size = queue.popleft()
                running[job] = [heappop(free) for _ in range(size)]
                placed = {"job_id": job, "alloc": " ".join(map(str, running[job]))}
                said.append({"timestamp": now, "type": "EXECUTE_JOB", "data": placed})
            socket.send(json.dumps({"now": now, "events": said}).encode())


def listens(address: str) -> bool:
    """Tell whether somebody has bound a port of this machine (Linux); nobody notices the question."""
    port = f"{int(address.rpartition(':')[2]):04X}"
    rows = (line.split() for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:])
    return any(row[1].endswith(f":{port}") and row[3] == "0A" for row in rows)


def simulate(decider: list[str], folder: Path, address: str) -> tuple[float, float]:
    """Simulate with a decider that binds first; returns the program's wall and the decider's CPU time."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        [*decider, address], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment
    )
    while not listens(address):
        if child.poll() is not None:
            raise SystemExit(f"{shlex.join([*decider, address])}: ended with status {child.returncode}")
        time.sleep(0.01)
    platform = shlex.split(os.environ.get("BATSIM", "")) or [*COMMAND]
    files = [
        "-p",
        str(folder / "platform.xml"),
        "-w",
        str(folder / "workload.json"),
        "-e",
        str(folder / "out"),
    ]
    begun = time.perf_counter()
    subprocess.run([*platform, *files, "-s", address, "-q", "--disable-schedule-tracing"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    taken = time.perf_counter() - begun
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return taken, usage.ru_utime + usage.ru_stime


def compare(jobs: int, hosts: int, pairs: int, other: str) -> None:
    ours = [sys.executable, "-m", "bridge.cli.main", "decide", "fcfs+easy", "--socket"]
    least = shlex.split(other) or [sys.executable, str(Path(__file__).resolve()), "--decide"]
    print(f"{os.environ.get('BATSIM') or 'the embedded model'}, {jobs:,} jobs, {hosts} hosts")
    print("| least, s | bridge, s | ratio | least, CPU s | bridge, CPU s | load |")
    print("|---|---|---|---|---|---|")
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_platform(folder / "platform.xml", hosts)
        write_workload(folder / "workload.json", workload(jobs, hosts), hosts)
        for k in range(pairs):
            found = {}
            for who in (least, ours) if k % 2 else (ours, least):
                with sockets.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
                found[who is ours] = simulate(who, folder, address)
            (wall, cpu), (own, busy) = found[False], found[True]
            ratios.append(wall / own)
            load = os.getloadavg()[0]
            print(
                f"| {wall:.2f} | {own:.2f} | {ratios[-1]:.3f} | {cpu:.2f} | {busy:.2f} | {load:.1f} |",
                flush=True,
            )
    print(f"median ratio of {pairs} pairs: {statistics.median(ratios):.3f}")


def measure_memory(jobs: int, hosts: int) -> None:
    """Print what is kept of an ended job: what the process has more of after all jobs than after half.

    The peer's own memory does not count: it has said everything before.
    """
    recording, frames = DecisionProcess(setup(hosts, "first-fit", "easy")), list[bytes]()

    def answer(frame: bytes) -> bytes:
        frames.append(frame)
        return recording.reply_to_frame(frame)

    FakeBatsim(workload(jobs, hosts), hosts).run(answer)
    process = DecisionProcess(setup(hosts, "first-fit", "easy"))
    tracemalloc.start()
    marks = []
    for k, frame in enumerate(frames, 1):
        process.reply_to_frame(frame)
        if k in (len(frames) // 2, len(frames)):
            gc.collect()
            ended = sum(job.finish >= 0 for job in process.dispatcher.jobs.values())
            gc.collect()
            marks.append((ended, tracemalloc.get_traced_memory()[0]))
    (few, less), (many, more) = marks
    print(f"{(more - less) / (many - few):.0f} bytes a job that has ended ({few:,} to {many:,} jobs)")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, nargs="+", default=[512])
    parser.add_argument("--placement", nargs="+", choices=NAMES, default=["first-fit"])
    parser.add_argument("--backfill", nargs="+", choices=list(BACKFILLS), default=["easy"])
    parser.add_argument("--transport", choices=["tcp", "ipc"], default="tcp")
    parser.add_argument("--pairs", type=int, default=0, metavar="N")
    parser.add_argument("--decider", default="", metavar="COMMAND")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--decide", metavar="ENDPOINT", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.decide:
        decide_trivially(given.decide)
        return
    if given.memory:
        measure_memory(given.jobs, given.hosts[0])
        return
    if given.pairs:
        compare(given.jobs, given.hosts[0], given.pairs, given.decider)
        return
    print(
        "| hosts | placement | backfill | round trips | trips/s | jobs/s | alone, trips/s | goal met | MiB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for hosts in given.hosts:
        for placement in given.placement:
            for backfill in given.backfill:
                measure(given.jobs, hosts, placement, backfill, given.transport)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
