"""A program that takes Batsim 5's command line and simulates delay jobs, for tests of what starts it.

python batsim5_program.py -p platform.xml -w workload.json -s ENDPOINT INIT -e out/ -q
"""

import argparse
import csv
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import zmq

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[3])]

from fake_batsim import MICRO, DelayJob, FakeBatsim, asking  # noqa: E402
from fake_batsim5 import Batsim5Around  # noqa: E402

HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,"
    "final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,"
    "allocated_resources,consumed_energy,metadata"
)


def hosts_of(platform: str) -> list[str]:
    """Return the names of the hosts of the first cluster, as text in order."""
    cluster = next(ET.parse(platform).getroot().iter("cluster"))
    low, high = map(int, cluster.attrib["radical"].split("-"))
    prefix, suffix = cluster.attrib["prefix"], cluster.attrib["suffix"]
    return sorted(f"{prefix}{k}{suffix}" for k in range(low, high + 1))


def main() -> int:
    """Simulate; exits as Batsim 5 does."""
    if "--version" in sys.argv:
        print("5.0.0-fake")
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("-p")
    parser.add_argument("-w")
    parser.add_argument("-s", nargs=2)
    parser.add_argument("-e")
    parser.add_argument("-q", action="store_true")
    parser.add_argument("--mmax", type=int)
    given = parser.parse_args()
    assert "/" in given.e
    workload = json.loads(Path(given.w).read_text())
    lengths = {}
    for name, profile in workload["profiles"].items():
        assert set(profile) == {"type", "delay"} and profile["type"] == "DelayProfile"
        lengths[name] = round(profile["delay"] * MICRO)
    jobs, profiles = [], {}
    for job in workload["jobs"]:
        assert set(job) <= {"id", "subtime", "res", "profile", "walltime", "extra_data"}
        run, wall = lengths[job["profile"]], job.get("walltime")
        profiles[f"delay{run}"] = {"type": "delay", "delay": run / MICRO}
        limit = None if wall is None else round(wall * MICRO)
        jobs.append(
            DelayJob(
                job["id"], round(job["subtime"] * MICRO), run, job["res"], limit, job.get("extra_data", {})
            )
        )
    names = hosts_of(given.p)[: given.mmax]
    fake = FakeBatsim(jobs, len(names), names=names, profiles=profiles)
    with zmq.Context() as context, context.socket(zmq.REQ) as socket:
        socket.connect(given.s[0])
        fake.run(Batsim5Around(asking(socket), given.s[1]))
    _write(fake, Path(f"{given.e}jobs.csv"))
    Path(f"{given.e}schedule.json").write_text('{\n "nb_jobs": 1\n}\n')
    return 1 if fake.deadlocked else 0


def _write(fake: FakeBatsim, path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER.split(","))
        for job_id, state in fake.state.items():
            job = fake.jobs[job_id]
            submit, start, end = (
                time / MICRO for time in (job.submit, fake.starts[job.name], fake.ends[job.name])
            )
            wall = -1 if job.walltime is None else job.walltime / MICRO
            run, turnaround = end - start, end - submit
            asked = job.name, "w0", f"w0!delay{job.run}", submit, job.res, wall
            ended = int(state == "COMPLETED_SUCCESSFULLY"), state
            times = start, run, end, start - submit, turnaround, turnaround / max(run, 1e-9)
            writer.writerow((*asked, *ended, *times, fake.alloc[job_id], -1, ""))


if __name__ == "__main__":
    sys.exit(main())
