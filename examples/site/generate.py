"""Write sacct.txt.gz: the accounting of a site that does not exist, whose scheduler is FCFS with EASY.

`bridge workload generate site` draws the jobs from its model, and a replay gives their starts.
"""

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

import bridge

HERE = Path(__file__).parent
#: 2026-01-05 00:00 UTC, a Monday.
BEGIN = 1_767_571_200
COLUMNS = (
    *("JobID", "User", "Account", "Partition", "State", "ExitCode", "Submit", "Eligible", "Start", "End"),
    *("ElapsedRaw", "TimelimitRaw", "NNodes", "ReqCPUS", "AllocCPUS", "QOS"),
)


def write_accounting(jobs: int, load: float, seed: int) -> None:
    """Generate jobs for slurm.conf, replay them, and write what sacct would print."""
    conf = str(HERE / "slurm.conf")
    with tempfile.TemporaryDirectory() as place:
        log = f"{place}/jobs.csv"
        words = ["workload", "generate", "site", "--cluster", conf, "--jobs", str(jobs), "--users", "30"]
        words += ["--load", str(load), "--seed", str(seed), "--out", log]
        subprocess.run([sys.executable, "-m", "bridge", *words], check=True)
        table = bridge.replay(log, "fcfs+easy", cluster=conf).jobs
    rows = ["|".join(COLUMNS)]
    for job in table.itertuples():
        submit, start, end = (
            BEGIN + round(time) for time in (job.submission_time, job.starting_time, job.finish_time)
        )
        nodes, limit = int(job.requested_number_of_resources), max(1, round(job.requested_time / 60))
        state, code = ("TIMEOUT", "0:0") if end - start >= 60 * limit else ("COMPLETED", "0:0")
        cores = str(32 * nodes)
        row = [job.job_id, f"user{job.user}", "site", job.partition, state, code, submit, submit, start, end]
        rows.append("|".join(map(str, [*row, end - start, limit, nodes, cores, cores, "normal"])))
    text = "\n".join(rows) + "\n"
    (HERE / "sacct.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    sys.stdout.write(f"{len(rows) - 1:,} jobs\n")


if __name__ == "__main__":
    write_accounting(jobs=3000, load=0.9, seed=1)
