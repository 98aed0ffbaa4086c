"""An agent that is stopped for a minute beside a real slurmctld: the queue goes to Slurm, and back.

    python benchmarks/slurm/stopped.py

Needs root and Debian's packages of Slurm.
"""

import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import click
import numpy as np
from bench import bench, busy_twice, tell

from bridge.worlds.slurm import gate


@click.command()
@click.option("--nodes", default=32, show_default=True)
@click.option("--policy", default="fcfs+easy", show_default=True)
@click.option("--stopped", default=60.0, show_default=True, help="Seconds.")
@click.option("--port", default=26300, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(nodes: int, policy: str, stopped: float, port: int, as_json: bool) -> None:
    with bench(nodes, port, policy) as made:
        directory = made.folder / "agent"
        watchdog = subprocess.Popen([str(directory / "watchdog.sh"), "loop"], start_new_session=True)
        try:
            made.agent.start()
            draw = np.random.default_rng(1)

            def submit(k: int) -> str:
                return made.submit(f"-N{1 + k % 4}", seconds=1 + draw.exponential())

            def wave(n: int, every: float) -> list[str]:
                with ThreadPoolExecutor(2) as pool:
                    tickets = []
                    for k in range(n):
                        tickets.append(pool.submit(submit, k))
                        time.sleep(every)
                    return [ticket.result() for ticket in tickets]

            jobs = wave(40, 0.2)
            made.submit(f"-N{nodes}", seconds=3)
            jobs += wave(40, 0.05)  # they wait
            made.agent.send(signal.SIGSTOP)
            begun = time.monotonic()
            opened = made.until(lambda: gate.opened_by(directory / "agent") != "", 60)
            jobs += wave(20, 0.2)  # nobody holds them
            waiting = made.until(lambda: not made.rows(), 240)
            alone = time.monotonic() - begun
            time.sleep(max(begun + stopped - time.monotonic(), 0))
            made.agent.send(signal.SIGCONT)
            closed = made.until(lambda: gate.opened_by(directory / "agent") == "", 60)
            taken = len([line for line in made.audit() if "start" in line])
            last = wave(20, 0.2)
            made.until(lambda: not made.rows(), 120)
            time.sleep(1)
            made.agent.end()
            log, audit = made.log, made.audit()
            names = [f"{job}#1" for job in (*jobs, *last)]
            ours = {
                line["start"].partition("@")[0] for line in [one for one in audit if "start" in one][taken:]
            }
            found = {
                "gate open after (s)": round(opened, 1),
                "all that waited finished under Slurm after (s)": round(alone, 1),
                "gate closed again after (s)": round(closed, 1),
                "jobs": len(names),
                "completed": sum(name in log.times["end"] for name in names),
                "of 20 afterwards, decided by the agent": len(ours & {*last}),
                "nodes given twice": busy_twice(log, names),
                "started more than once": sum(len(log.nodes.get(name, [])) > 1 for name in names),
                "reported lost": len(made.report()["lost"]),
                "passes decided otherwise from the audit log": made.differences(),
            }
            wanted = {
                "gate open after (s)": opened <= 40,
                "all that waited finished under Slurm after (s)": waiting < float("inf"),
                "gate closed again after (s)": closed <= 5,
                "completed": found["completed"] == len(names),
                "of 20 afterwards, decided by the agent": found["of 20 afterwards, decided by the agent"]
                == 20,
            }
            for name in ("nodes given twice", "started more than once", "reported lost"):
                wanted[name] = not found[name]
            tell(found, wanted, as_json)
        finally:
            watchdog.terminate()
            watchdog.wait()


if __name__ == "__main__":
    main()
