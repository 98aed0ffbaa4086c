"""An agent beside a real slurmctld on fake nodes: jobs submitted while it decides, and what came of them.

    python benchmarks/slurm/live.py --jobs 1000 --kill-agent 300
    python benchmarks/slurm/live.py --jobs 200 --no-kick
    python benchmarks/slurm/live.py --jobs 1000 --kill-slurmctld 600

Prints what was measured from slurmctld's own log, and how far the fast world's starts of the same jobs are
away. Needs root and Debian's packages of Slurm.
"""

import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import click
import numpy as np
from bench import Bench, bench, busy_twice, decided, named, quantiles, tell

from bridge.cluster.slurm_values import node_names
from bridge.slurm_demo import cluster
from bridge.slurm_demo.demo_jobs import DemoJob
from bridge.slurm_demo.outcome import DemoResult, apart


@click.command()
@click.option("--jobs", default=1000, show_default=True)
@click.option("--nodes", default=64, show_default=True)
@click.option("--rate", default=10.0, show_default=True, help="Submissions a second.")
@click.option("--policy", default="fcfs+easy", show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--port", default=26000, show_default=True)
@click.option("--no-kick", is_flag=True)
@click.option("--kill-agent", default=0, help="kill -9 the agent after so many, and start it again.")
@click.option("--kill-slurmctld", default=0, help="kill -9 slurmctld after so many, and start it again.")
@click.option("--json", "as_json", is_flag=True)
def main(
    jobs: int,
    nodes: int,
    rate: float,
    policy: str,
    seed: int,
    port: int,
    no_kick: bool,
    kill_agent: int,
    kill_slurmctld: int,
    as_json: bool,
) -> None:
    draw = np.random.default_rng(seed)
    sizes = draw.choice([1, 2, 4], jobs, p=[0.7, 0.2, 0.1]).tolist()
    lengths = np.minimum(1 + draw.exponential(1.0, jobs), 10).tolist()
    asked = [DemoJob(k / rate, sizes[k], lengths[k], 300.0) for k in range(jobs)]
    with bench(nodes, port, policy, kick=not no_kick) as made:
        made.agent.start()
        begun = time.monotonic()

        def submit(k: int) -> str:
            time.sleep(max(begun + asked[k].submit - time.monotonic(), 0.0))
            return made.submit(f"-N{asked[k].nodes}", seconds=asked[k].run)

        with ThreadPoolExecutor(4) as pool:
            tickets = [pool.submit(submit, k) for k in range(jobs)]
            for k, ticket in enumerate(tickets):
                ticket.result()
                if k + 1 == kill_agent:
                    made.agent.end(signal.SIGKILL)
                    made.agent.start()
                if k + 1 == kill_slurmctld:
                    os.kill(cluster.pid(made.folder, "slurmctld"), signal.SIGKILL)
                    time.sleep(1.0)
                    cluster.start_controller(made.folder)
            names = [ticket.result() for ticket in tickets]
        submitted = time.monotonic() - begun
        made.until(lambda: not made.rows())
        took = time.monotonic() - begun
        time.sleep(1.0)
        made.agent.end()
        found = {"submission took (s)": round(submitted, 1), "all done after (s)": round(took, 1)}
        found["agent's CPU (% of a core)"] = round(100 * made.agent.cpu / took, 2)
        if kill_slurmctld:
            _tell_of_a_kill(made, names, found, as_json)
        else:
            _tell(made, names, asked, policy, found, not no_kick, as_json)


def _of_all(made: Bench, jobs: list[str], found: dict[str, Any]) -> dict[str, bool]:
    """Add what is to be said of every run, and return what has to be."""
    log, report, chosen = made.log, made.report(), decided(made.log, made.audit())
    found |= {
        "on other nodes than decided": sum(
            set(node_names(log.nodes[job][-1])) != set(node_names(chosen.get(job, "")))
            for job in jobs
            if job in log.nodes
        ),
        "nodes given twice": busy_twice(log, jobs),
        "passes decided otherwise from the audit log": made.differences(),
        "withdrawn": report["withdrawn"],
        "kicks": report["kicks"],
        **quantiles("release to allocate", log.between("release", "allocate", jobs)),
        **quantiles("submit to release", log.between("submit", "release", jobs)),
    }
    return {
        name: found[name] == 0
        for name in list(found)
        if name.startswith(("on other", "nodes given", "passes"))
    }


def _tell(
    made: Bench,
    names: list[str],
    asked: list[DemoJob],
    policy: str,
    found: dict[str, Any],
    kick: bool,
    as_json: bool,
) -> None:
    log, report = made.log, made.report()
    jobs = [f"{name}#1" for name in names]
    outcome = DemoResult(
        log, jobs, dict(zip(jobs, asked, strict=True)), len(made.client.nodes("agent")), "live"
    )
    differences = apart(outcome.live(policy), outcome.fast(policy, made.folder))
    found |= {
        "jobs": len(jobs),
        "completed": sum(job in log.times["end"] for job in jobs),
        "started more than once": sum(len(log.nodes.get(job, [])) > 1 for job in jobs),
        "lost": len(report["lost"]),
        "starts apart from the fast world's, p95 (s)": round(float(np.quantile(differences, 0.95)), 3),
        "starts apart from the fast world's, max (s)": round(float(differences.max()), 3),
    }
    wanted = _of_all(made, jobs, found)
    wanted |= {
        "completed": found["completed"] == len(jobs),
        "started more than once": found["started more than once"] == 0,
        "lost": found["lost"] == 0,
        "starts apart from the fast world's, p95 (s)": float(np.quantile(differences, 0.95)) <= 2.0,
        "agent's CPU (% of a core)": found["agent's CPU (% of a core)"] <= 10,
    }
    limits = {"median": 60, "p95": 150} if kick else {"median": 700}
    wanted |= {
        f"release to allocate, {n} (ms)": found[f"release to allocate, {n} (ms)"] <= v
        for n, v in limits.items()
    }
    if kick:
        limits = {"median": 60, "p95": 300}
        wanted |= {
            f"submit to release, {n} (ms)": found[f"submit to release, {n} (ms)"] <= v
            for n, v in limits.items()
        }
    tell(found, wanted, as_json)


def _tell_of_a_kill(made: Bench, names: list[str], found: dict[str, Any], as_json: bool) -> None:
    """A slurmctld that was killed forgets jobs, and gives their ids again."""
    log, report = made.log, made.report()
    text = (made.folder / "log" / "slurmctld.log").read_text(encoding="utf-8", errors="replace")
    jobs = list(log.times["submit"])
    told = [event for line in made.audit() for event in line.get("told", ())]
    known = named(log, {event[2] for event in told if event[0] == "wait"})
    again = {job.partition("#")[0] for job in jobs if job.endswith("#2")}
    begun = text.rindex("slurmctld version")
    recovered = set(re.findall(r"Recovered JobId=(\d+) ", text[begun:]))
    before = {f"{number}#1" for number in re.findall(r"submit_batch_job: JobId=(\d+) ", text[:begun])}
    gone = {job for job in before if job.partition("#")[0] not in recovered and job not in log.times["end"]}
    # Its own way to end a job that it had forgotten to have started, or that the agent knows to have ended.
    other = set(
        re.findall(r"_job_complete: JobId=(\d+) cancelled|REQUEST_KILL_JOB JobId=(\d+)", text[begun:])
    )
    killed = {f"{number}#1" for pair in other for number in pair if number}
    lost = set(named(log, report["lost"]))
    unfinished = {job for job in jobs if job not in log.times["end"]} - gone - killed
    found |= {
        "submitted": len(names),
        "ids given again": len(again),
        "forgotten by slurmctld": len(gone),
        "of these unknown to the agent": len(gone - set(known)),
        "reported lost": len(lost),
        "lost, and not reported": len((gone & set(known)) - lost),
        "reported, and not lost": len(lost - gone),
        "ended for Slurm, having ended before": len(report["ghosts"]),
        "neither ended nor lost": len(unfinished),
        "still in the queue": len(made.rows()),
        "launches that failed": text.count("launch failed"),
    }
    wanted = _of_all(made, [job for job in jobs if job in log.times["end"]], found)
    for name in (
        "lost, and not reported",
        "reported, and not lost",
        "neither ended nor lost",
        "still in the queue",
    ):
        wanted[name] = found[name] == 0
    tell(found, wanted, as_json)


if __name__ == "__main__":
    main()
