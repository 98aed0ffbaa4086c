"""How fast replays are: the compiled core against a plain-Python reference, as ratios measured in one run.

Simulation only (no parsing, no filling of records), best of several interleaved rounds. The reference is
the tests' own (tests/reference.py); it runs on the first jobs of a log, on which the start times of both are
compared job by job. The compiled core is also timed on the whole log. Then `bridge replay` as a whole
process, with compiled kernels in the cache: wall time and peak memory.

    python benchmarks/replay.py --traces FOLDER        # logs of the Parallel Workloads Archive
    python benchmarks/replay.py                        # $BRIDGE_TRACES, or else the bundled workload
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT), str(ROOT / "tests")]  # not this folder: its scripts have names of their own

import numba  # noqa: E402
import numpy as np  # noqa: E402
import reference  # noqa: E402
from rich.console import Console  # noqa: E402
from small_jobs import reference_jobs  # noqa: E402

from bridge.report.table import Table  # noqa: E402
from bridge.scheduler import state as scheduler_state  # noqa: E402
from bridge.scheduler.protocol import Policy, protocol  # noqa: E402
from bridge.workload.rules import LOAD_RULES  # noqa: E402
from bridge.workload.select import Jobs, select  # noqa: E402
from bridge.workload.swf import read_swf  # noqa: E402
from bridge.worlds.fast import episode, world  # noqa: E402
from bridge.worlds.fast.episode import Scenario, prepare  # noqa: E402

SDSC, CURIE = "SDSC-SP2-1998-4.2-cln", "CEA-Curie-2011-2.1-cln"
BUNDLED = ROOT / "workloads" / "bundled-128.swf.gz"


@dataclass(frozen=True)
class Case:
    """What is timed: a log, rules, and how many of its first jobs each side gets (0 = all)."""

    log: str
    order: str
    backfill: str
    prefix: int = 5000
    compiled_jobs: int = 0
    arrivals: float = 1.0
    resources: int = 1
    rules: str = "standard"

    @property
    def name(self) -> str:
        parts = [self.log[:8].rstrip("-"), self.order, self.backfill]
        if self.rules != "standard":
            parts.append(self.rules)
        if self.arrivals != 1.0:
            parts.append(f"arrivals × {self.arrivals:g}")
        if self.resources > 1:
            parts.append(f"R = {self.resources}")
        return " ".join(parts)


CASES = (
    Case(SDSC, "fcfs", "easy"),
    Case(SDSC, "sjf", "easy"),
    Case(SDSC, "wfp3", "easy"),
    Case(SDSC, "fcfs", "conservative"),
    Case(SDSC, "wfp3", "easy", rules="cqsim"),
    Case(CURIE, "fcfs", "easy", prefix=10_000),
    Case(CURIE, "wfp3", "easy", prefix=10_000),
    Case(SDSC, "fcfs", "easy", arrivals=0.5),
    Case(SDSC, "wfp3", "easy", arrivals=0.5, compiled_jobs=10_000),
    Case(SDSC, "fcfs", "conservative", arrivals=0.5, prefix=2000, compiled_jobs=10_000),
    Case(SDSC, "fcfs", "easy", resources=3),
)
BUNDLED_CASES = tuple(
    Case("bundled-128", order, backfill)
    for order, backfill in (("fcfs", "easy"), ("sjf", "easy"), ("wfp3", "easy"), ("fcfs", "conservative"))
)


@dataclass(frozen=True)
class Result:
    case: str
    jobs: int
    compiled_s: float
    prefix: int
    prefix_compiled_s: float
    prefix_reference_s: float

    @property
    def speed(self) -> float:
        """Million jobs per second of the compiled core on the whole log."""
        return self.jobs / self.compiled_s / 1e6

    @property
    def ratio(self) -> float:
        """How many times faster than the reference the compiled core is on the same jobs."""
        return self.prefix_reference_s / self.prefix_compiled_s


def with_resources(jobs: Jobs, resources: int) -> Jobs:
    """Add made-up demands: a burst buffer that every tenth job asks for, and watts per node."""
    if resources == 1:
        return jobs
    rng = np.random.default_rng(1)
    n, nodes = len(jobs), int(jobs.capacity[0])
    buffer = np.where(rng.random(n) < 0.1, rng.integers(1, 400, n), 0)
    watts = np.minimum(jobs.demand[:, 0] * rng.integers(80, 200, n), nodes * 150)
    return replace(
        jobs,
        demand=np.column_stack((jobs.demand[:, 0], buffer, watts))[:, :resources],
        resources=("nodes", "burst_buffer", "power")[:resources],
        capacity=np.array([nodes, 1000, nodes * 150])[:resources],
    )


def prepare_case(case: Case, jobs: Jobs, first: int) -> Scenario:
    part = jobs.take(slice(first)) if first else jobs
    if case.arrivals != 1.0:
        seconds = part.submit // scheduler_state.SECOND
        part = replace(part, submit=(seconds * case.arrivals).astype(np.int64) * scheduler_state.SECOND)
    policy = Policy(case.order, case.backfill)
    rules_of = protocol(case.rules)
    rule = LOAD_RULES[case.rules]
    return prepare(with_resources(part, case.resources), rules_of, policy, rules_of.estimator, rule)


class Compiled:
    """Times the compiled core on one workload; records are filled outside the clock."""

    def __init__(self, prepared: Scenario) -> None:
        self.prepared, self.n = prepared, len(prepared.jobs)
        resources, users = len(prepared.jobs.resources), len(prepared.share)
        state = scheduler_state.allocate(1, self.n, resources, window=1, users=users)
        self.state = episode.configure(state, prepared)
        self.memory = world.allocate(1, self.n)

    def __call__(self) -> float:
        episode.load_episode(self.state, self.memory, 0, self.prepared, 0, self.n)
        begun = time.perf_counter()
        kind = world.run_until_decision(self.state, self.memory, 0, 1 << 60)
        taken = time.perf_counter() - begun
        assert kind == world.DONE
        return taken

    def starts(self) -> list[int]:
        return [int(t) for t in self.state.jobs.start[0, : self.n]]


class Reference:
    """Times the plain-Python reference on one workload."""

    def __init__(self, prepared: Scenario) -> None:
        self.prepared = prepared
        self.jobs: list[reference.Job] = []

    def __call__(self) -> float:
        p = self.prepared
        policy, capacity = p.compiled.policy, [int(c) for c in p.jobs.capacity]
        self.jobs = reference_jobs(p)
        begun = time.perf_counter()
        reference.simulate(p.compiled.protocol.name, self.jobs, capacity, policy.order, policy.backfill)
        return time.perf_counter() - begun

    def starts(self) -> list[int]:
        return [j.start for j in self.jobs]


def measure(case: Case, jobs: Jobs, rounds: int) -> Result:
    """Time a case: whole log, prefix and reference in turn, the best of each."""
    whole = Compiled(prepare_case(case, jobs, case.compiled_jobs))
    small = prepare_case(case, jobs, case.prefix)
    prefix, plain = Compiled(small), Reference(small)
    sides: tuple[Callable[[], float], ...] = (whole, prefix, plain)
    prefix()  # loads or compiles the kernels
    best = [min(times) for times in zip(*([side() for side in sides] for _ in range(rounds)), strict=True)]
    assert prefix.starts() == plain.starts(), f"{case.name}: start times differ"
    return Result(case.name, whole.n, best[0], prefix.n, best[1], best[2])


@dataclass(frozen=True)
class Process:
    """`bridge replay` as one process, the best of several runs."""

    command: str
    wall_s: float
    cpu_s: float
    peak_mb: float


def measure_process(log: Path, rounds: int) -> Process:
    """Time `bridge replay` on a log; an untimed run before leaves its kernels in the cache."""
    options = ["replay", str(log), "--order", "fcfs", "--backfill", "easy"]
    command = [sys.executable, "-m", "bridge.cli.main", *options]
    best: list[tuple[float, float, float]] = []
    for _ in range(rounds + 1):
        with tempfile.TemporaryFile() as output:
            begun = time.perf_counter()
            child = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
            _, status, used = os.wait4(child.pid, 0)
            wall = time.perf_counter() - begun
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode:
                output.seek(0)
                raise SystemExit(f"{' '.join(command)}:\n{output.read().decode()}")
        best.append((wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000))
    wall, cpu, peak = (min(values) for values in zip(*best[1:], strict=True))
    return Process(f"bridge replay {log.name} --order fcfs --backfill easy", wall, cpu, peak)


def machine_line() -> str:
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    load = os.getloadavg()[0]
    return (
        f"{cpu}, {os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}"
    )


def tables(results: list[Result], processes: list[Process]) -> list[Table]:
    speed = Table(
        ("case", "jobs", "ms", "million jobs/s", "first jobs", "ms", "Python ms", "ratio"),
        (
            (
                r.case,
                f"{r.jobs:,}",
                f"{r.compiled_s * 1e3:,.1f}",
                f"{r.speed:.3f}",
                f"{r.prefix:,}",
                f"{r.prefix_compiled_s * 1e3:,.2f}",
                f"{r.prefix_reference_s * 1e3:,.0f}",
                f"{r.ratio:,.0f} ×",
            )
            for r in results
        ),
        title="simulation only, best of interleaved rounds",
    )
    rows = ((p.command, f"{p.wall_s:.2f}", f"{p.cpu_s:.2f}", f"{p.peak_mb:.0f}") for p in processes)
    whole = Table(("command", "wall s", "CPU s", "peak MB"), rows, title="whole process, kernels cached")
    return [speed, *([whole] if processes else [])]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--traces", type=Path, default=os.environ.get("BRIDGE_TRACES") or None)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of each case (default 3)")
    parser.add_argument("--only", default="", help="only cases whose name holds this text")
    parser.add_argument("--no-process", action="store_true", help="do not time `bridge replay`")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    options = parser.parse_args()

    if options.traces:
        cases = [c for c in CASES if options.only in c.name]
        logs = {c.log: options.traces / f"{c.log}.swf.gz" for c in cases}
    else:
        cases = [c for c in BUNDLED_CASES if options.only in c.name]
        logs = {"bundled-128": BUNDLED}
    for log in logs.values():
        if not log.is_file():
            raise SystemExit(
                f"{log}: no such log; fetch it with `bridge workload fetch`, or leave --traces out"
            )

    @cache
    def load(name: str, rules: str) -> Jobs:
        return select(read_swf(logs[name]), LOAD_RULES[rules])

    wide = None if sys.stdout.isatty() else 120
    console = Console(stderr=options.json, width=wide)
    results = []
    with console.status("") as status:
        for case in cases:
            status.update(case.name)
            results.append(measure(case, load(case.log, case.rules), options.rounds))
        processes = []
        for log in [] if options.no_process else logs.values():
            status.update(f"bridge replay {log.name}")
            processes.append(measure_process(log, options.rounds))
    if options.json:
        rows = [{**asdict(r), "million_jobs_per_s": r.speed, "ratio": r.ratio} for r in results]
        report = {"machine": machine_line(), "simulation": rows, "process": [asdict(p) for p in processes]}
        print(json.dumps(report, indent=2))
        return
    for table in tables(results, processes):
        console.print(table)
    names = {r.case: r for r in results}
    one, three = (
        names.get(Case(SDSC, "fcfs", "easy").name),
        names.get(Case(SDSC, "fcfs", "easy", resources=3).name),
    )
    if one and three:
        console.print(f"three resources cost {three.compiled_s / one.compiled_s:.2f} × the time of one")
    console.print(machine_line(), highlight=False)


if __name__ == "__main__":
    main()
