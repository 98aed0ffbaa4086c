"""An agent's own share of a pass with thousands of held jobs, beside what squeue takes.

    python benchmarks/slurm/many.py --jobs 5000

A job of the whole machine runs, all others wait behind it. Needs root and Debian's packages of Slurm.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import click
import numpy as np
from bench import bench, quantiles, tell

from bridge.commands import request
from bridge.commands.request import CommandRequest
from bridge.experiment.live_pass import site_pass_of
from bridge.policy_name import parse_policy
from bridge.worlds.slurm.agent import SlurmAgent
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.settings import AgentConfig


class Timed(Client):
    """Counts the seconds that Slurm's commands take."""

    spent = 0.0

    def call(self, *words: str, patience: float = 60.0) -> str:
        begun = time.perf_counter()
        try:
            return super().call(*words, patience=patience)
        finally:
            if words[0] == "squeue":  # sinfo goes on beside it
                self.spent += time.perf_counter() - begun


@click.command()
@click.option("--jobs", default=5000, show_default=True)
@click.option("--nodes", default=64, show_default=True)
@click.option("--policy", default="sjf+easy", show_default=True)
@click.option("--passes", default=40, show_default=True)
@click.option("--port", default=26400, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(jobs: int, nodes: int, policy: str, passes: int, port: int, as_json: bool) -> None:
    with bench(nodes, port, policy) as made:
        directory = made.folder / "agent"
        entry = request.scheduler("event")
        deciding, _ = entry.dispatcher_config(CommandRequest((parse_policy(policy),)))  # type: ignore[attr-defined]
        site = site_pass_of(deciding, 1)
        client = Timed(made.client.env["SLURM_CONF"])
        agent = SlurmAgent(
            AgentConfig("agent", directory=directory, events=directory / "events"),
            deciding,
            client,
            policy,
            site=site,
        )
        agent.step()
        blocker = made.submit(f"-N{nodes}", seconds=100_000)
        while not any(row.state == "RUNNING" for row in made.rows()):
            agent.step()
        stop = time.monotonic()
        with ThreadPoolExecutor(4) as pool:
            tickets = [pool.submit(made.submit, f"-N{1 + k % nodes}") for k in range(jobs)]
            while not all(ticket.done() for ticket in tickets):
                agent.step()
                time.sleep(0.01)
        submission = time.monotonic() - stop
        while sum(job.phase.value == "held" for job in agent.tracking.jobs.values()) < jobs:
            agent.step()
        own, squeue = [], []
        for _ in range(passes):
            made.client.call("scontrol", "update", f"JobId={blocker}", "Comment=x")
            before, begun = client.spent, time.perf_counter()
            agent.poll()
            agent._book.news = True  # as if a job had come or ended: the scheduler makes its pass
            agent._starts.attend(time.time())
            agent._decide(time.time())
            took, waited = time.perf_counter() - begun, client.spent - before
            own.append(1000 * (took - waited))
            squeue.append(1000 * waited)
        again = time.perf_counter()
        fresh = SlurmAgent(
            AgentConfig("agent"), deciding, client, policy, site=site
        )  # the gate has its agent
        fresh.poll()
        restart = time.perf_counter() - again
        for one in (agent, fresh):
            one.close()
        found = {
            "held jobs": jobs,
            "submission took (s)": round(submission, 1),
            **quantiles("a pass of the agent's own", np.array(own)),
            **quantiles("squeue", np.array(squeue)),
            "a new agent has read everything after (s)": round(restart, 1),
        }
        tell(found, {"a pass of the agent's own, median (ms)": bool(np.median(own) <= 50)}, as_json)


if __name__ == "__main__":
    main()
