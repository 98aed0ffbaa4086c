"""Clean platforms and delay workloads as files, and the embedded platform model run on them."""

import json
import subprocess
from pathlib import Path
from typing import Any

from fake_batsim import MICRO, DelayJob, FakeBatsim
from simgrid_available import COMMAND as COMMAND
from simgrid_available import needs_simgrid as needs_simgrid

from bridge.workload.select import Jobs
from bridge.worlds.batsim.endpoint import Endpoint
from bridge.worlds.batsim.process import DecisionProcess
from bridge.worlds.batsim.result import ProcessResult

PATIENCE_S = 120


def delay_jobs(jobs: Jobs) -> list[DelayJob]:
    """Return selected jobs as delay jobs, ids padded with zeros; walltimes are the requests."""
    width = len(str(jobs.id.max()))
    columns = (jobs.id, jobs.submit, jobs.run, jobs.demand[:, 0], jobs.request, jobs.user, jobs.queue)
    return [
        DelayJob(f"{i:0{width}d}", int(s), int(r), int(n), int(w), {"user": int(u), "queue": int(q)})
        for i, s, r, n, w, u, q in zip(*columns, strict=True)
    ]


#: Links that cost nothing.
CLEAN = 'bw="1e18Bps" lat="0us" sharing_policy="FATPIPE"'


def write_platform(path: Path, hosts: int, links: str = CLEAN) -> Path:
    """Write identical hosts with a link each, and a master behind a link that costs nothing."""
    path.write_text(
        f"""<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
 <zone id="all" routing="Full">
  <cluster id="cluster" prefix="node" suffix="" radical="0-{hosts - 1}" speed="1Gf" {links}/>
  <zone id="management" routing="Full">
   <host id="master_host" speed="1Gf"/>
   <link id="self" bandwidth="1e18Bps" latency="0us" sharing_policy="FATPIPE"/>
   <route src="master_host" dst="master_host"><link_ctn id="self"/></route>
  </zone>
  <link id="between" bandwidth="1e18Bps" latency="0us" sharing_policy="FATPIPE"/>
  <zoneRoute src="management" dst="cluster" gw_src="master_host" gw_dst="nodecluster_router">
   <link_ctn id="between"/>
  </zoneRoute>
 </zone>
</platform>
"""
    )
    return path


def _seconds(time: int) -> int | float:
    return time // MICRO if time % MICRO == 0 else time / MICRO


def write_workload(path: Path, jobs: list[DelayJob], hosts: int) -> Path:
    """Write delay jobs as a Batsim workload."""
    profiles: dict[str, Any] = {
        f"delay{job.run}": {"type": "delay", "delay": _seconds(job.run)} for job in jobs
    }
    listed = []
    for job in jobs:
        wall = {} if job.walltime is None else {"walltime": _seconds(job.walltime)}
        base = {
            "id": job.name,
            "subtime": _seconds(job.submit),
            "res": job.res,
            "profile": f"delay{job.run}",
        }
        listed.append(base | wall | job.more)
    path.write_text(json.dumps({"nb_res": hosts, "jobs": listed, "profiles": profiles}))
    return path


def model(
    folder: Path, jobs: list[DelayJob], hosts: int, address: str, *options: str
) -> "subprocess.Popen[str]":
    """Start the embedded platform model on a workload, connected to an address."""
    platform = write_platform(folder / "platform.xml", hosts)
    workload = write_workload(folder / "workload.json", jobs, hosts)
    files = {"-p": platform, "-w": workload, "-s": address, "-e": folder / "out"}
    command = [*COMMAND, *(word for pair in files.items() for word in map(str, pair)), "-q", *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def run_on_model(
    folder: Path, jobs: list[DelayJob], hosts: int, process: DecisionProcess, *options: str
) -> ProcessResult:
    """Let a decision process decide for the embedded model; the model must end well."""
    with Endpoint("tcp://127.0.0.1:*", startup_timeout=PATIENCE_S, idle_timeout=PATIENCE_S) as endpoint:
        child = model(folder, jobs, hosts, endpoint.address, *options)
        try:
            result = process.run(endpoint)
            _, errors = child.communicate(timeout=PATIENCE_S)
        finally:
            if child.poll() is None:
                child.kill()
                child.communicate()
    assert child.returncode == 0, errors
    return result


def starts_on_fake(process: DecisionProcess, jobs: Jobs, made: list[DelayJob] | None = None) -> list[int]:
    """Let a decision process decide for the scripted peer; return the jobs' starts, in their order.

    `made`: the jobs as they are submitted, if not as `delay_jobs` has them.
    """
    made = made or delay_jobs(jobs)
    fake = FakeBatsim(made, int(jobs.capacity[0])).run(process.reply_to_frame)
    assert not process.result().missing
    return [fake.starts[job.name] for job in made]


def starts_on_model(
    folder: Path, process: DecisionProcess, jobs: Jobs, made: list[DelayJob] | None = None
) -> list[int]:
    """As `starts_on_fake`, for the embedded platform model."""
    made = made or delay_jobs(jobs)
    result = run_on_model(folder, made, int(jobs.capacity[0]), process)
    assert not result.missing and result.error is None
    return [result.starts[f"w0!{job.name}"] for job in made]
