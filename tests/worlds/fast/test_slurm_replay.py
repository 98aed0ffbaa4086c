"""A log under the protocol `slurm`: what a recorded case with the same input starts, and what is refused."""

import csv
import random
from pathlib import Path

import pandas as pd
import pytest

from bridge.cli.main import main
from bridge.cluster.clusterfile import write_cluster_toml
from bridge.worlds.fast.slurm.agreement import play_case
from bridge.worlds.fast.slurm.conf import site_of
from bridge.worlds.fast.slurm.log_replay import EPOCH, FREE_DELAY
from bridge.worlds.fast.slurm.own_clock import PUNCTUAL

CONF = """ClusterName=site
SchedulerParameters=bf_max_job_test=40,default_queue_depth=20
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=5000
PriorityWeightQOS=2000
PriorityWeightJobSize=300
AccountingStorageEnforce=limits,qos
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=n[1-6] CPUs=8 RealMemory=8000 Feature=old
NodeName=g[1-2] CPUs=16 RealMemory=16000 Feature=new Weight=5 Gres=gpu:2
GresTypes=gpu
PartitionName=work Nodes=n[1-6],g[1-2] Default=YES DefMemPerCPU=500 MaxTime=600
PartitionName=fast Nodes=n[1-4] PriorityTier=5 MaxTime=30 DefMemPerCPU=500
PartitionName=whole Nodes=n[3-6] OverSubscribe=EXCLUSIVE DefMemPerCPU=500
"""
ASSOC = """sacctmgr -i add account a Fairshare=2
sacctmgr -i add account b Fairshare=1
sacctmgr -i add user u1 account=a
sacctmgr -i add user u2 account=a
sacctmgr -i add user u3 account=b
sacctmgr -i add qos high Priority=10 MaxJobsPerUser=2
sacctmgr -i modify user u1 set qos+=high
"""


def draw(seed: int) -> list[dict[str, str]]:
    """Return jobs as columns of sbatch; `run` is theirs alone."""
    choice = random.Random(seed)
    rows, time = [], 0.0
    for k in range(60):
        time += choice.choice((0.4, 7.3, 61.9, 130.2)) if k else 0.0  # a replay begins with the first job
        part = choice.choice(("work", "work", "fast", "whole"))
        minutes = choice.choice((5, 10, 25))
        row = {
            "job": str(k + 1),
            "submit": f"{time:.3f}",
            "user": choice.choice(("u1", "u2", "u3")),
            "partition": part,
            "time_limit": str(minutes),
            "run": f"{60 * minutes * choice.choice((0.3, 0.7, 0.95)):.2f}",
            "qos": "",
            "nodes": "",
            "ntasks": "",
            "cpus_per_task": "",
            "gres": "",
            "constraint": "",
        }
        if row["user"] == "u1" and choice.random() < 0.4:
            row["qos"] = "high"
        if part == "whole":
            row["nodes"] = str(choice.randint(1, 4))
        else:
            row["ntasks"] = str(choice.choice((1, 2, 6, 12, 20)))
            row["cpus_per_task"] = "1"
        if part == "work" and choice.random() < 0.2:
            row |= {"nodes": "1", "ntasks": "2", "gres": "gpu:1"}
        elif part == "work" and choice.random() < 0.3:
            row["constraint"] = "old"
        rows.append(row)
    return rows


def write_case(folder: Path, rows: list[dict[str, str]]) -> None:
    """Write a folder as `bridge slurm case` reads it, with run times and no starts."""
    folder.mkdir()
    (folder / "cluster.conf").write_text(CONF)
    (folder / "assoc.txt").write_text(ASSOC)
    (folder / "case.json").write_text(f'{{"epoch_of_time_0": {EPOCH}}}')
    (folder / "cycles.csv").write_text("time,kind\n")
    names = [name for name in rows[0] if name != "run"]
    with (folder / "jobs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*names, "runtime"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row | {"runtime": row["run"]} for row in rows)
    with (folder / "result.csv").open("w") as file:
        file.write("job,episode,submit_ms,start_ms,end_ms,free_ms\n")
        for row in rows:
            end = float(row["run"])
            file.write(f"{row['job']},0,{row['submit']},0,{end},{end + FREE_DELAY + 0.06}\n")


def write_log(path: Path, rows: list[dict[str, str]]) -> None:
    """Write the same jobs as a log with requests."""
    gpus = {"gpus_per_node": [1 if row["gres"] else 0 for row in rows]}
    table = pd.DataFrame(
        {
            "job_id": [int(row["job"]) for row in rows],
            "submit": [float(row["submit"]) for row in rows],
            "run": [float(row["run"]) for row in rows],
            "req_time": [60 * int(row["time_limit"]) for row in rows],
            "procs": [1] * len(rows),
            "nodes": [int(row["nodes"] or -1) for row in rows],
            "tasks": [int(row["ntasks"] or -1) for row in rows],
            "cores_per_task": [1 if row["ntasks"] else -1 for row in rows],
            "user_name": [row["user"] for row in rows],
            "partition_name": [row["partition"] for row in rows],
            "qos_name": [row["qos"] for row in rows],
            "constraints": [row["constraint"] for row in rows],
        }
    )
    of_tasks = table["tasks"] > 0
    table["gpus_per_task"] = [g / 2 if t else 0 for g, t in zip(gpus["gpus_per_node"], of_tasks, strict=True)]
    table.to_parquet(path)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a cluster.toml of the site above."""
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "assoc.txt").write_text(ASSOC)
    cluster = site_of(tmp_path / "slurm.conf", tmp_path / "assoc.txt").cluster
    write_cluster_toml(cluster, tmp_path / "site.toml")
    return tmp_path / "site.toml"


def replayed(tmp_path: Path, site: Path, rows: list[dict[str, str]], *options: str) -> pd.DataFrame:
    """Return the jobs of a replay, by id."""
    write_log(tmp_path / "log.parquet", rows)
    command = ["replay", str(tmp_path / "log.parquet"), "--cluster", str(site), "--protocol", "slurm"]
    assert main([*command, *options, "--out", str(tmp_path / "run"), "--force"]) == 0
    jobs = pd.read_parquet(tmp_path / "run" / "jobs.parquet")
    return jobs.set_index(jobs["job_id"].astype(int)).sort_index()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_log_starts_as_a_case_with_the_same_input(tmp_path: Path, site: Path, seed: int) -> None:
    rows = draw(seed)
    write_case(tmp_path / "case", rows)
    case = {int(one.job): one for one in play_case(tmp_path / "case", "own", seed, PUNCTUAL).starts}
    jobs = replayed(tmp_path, site, rows, "--seed", str(seed))
    assert len(case) == len(rows)
    starts = {job: round(one.start, 3) for job, one in case.items()}
    assert jobs["starting_time"].round(3).to_dict() == starts
    assert jobs["start_kind"].to_dict() == {
        job: "backfilled" if one.by == "backfill" else "head" for job, one in case.items()
    }
    assert (jobs["waiting_time"] > 120).any()  # the site is busy


def test_an_order_takes_the_place_of_the_priority(tmp_path: Path, site: Path) -> None:
    rows = draw(5)
    usual, by_area = (replayed(tmp_path, site, rows, *more) for more in ((), ("--policy", "saf")))
    assert usual["waiting_time"].mean() != by_area["waiting_time"].mean()
    same = replayed(tmp_path, site, rows, "--policy", "-t*n")
    assert same["starting_time"].to_dict() == by_area["starting_time"].to_dict()


def test_a_blocked_head_is_passed_by_short_jobs_alone(tmp_path: Path) -> None:
    """The head waits for the end of the first job; what ends before it may go, what does not may not."""
    (tmp_path / "c.toml").write_text('[[nodes]]\ncount = 4\n[[partitions]]\nname = "p"\n')
    sizes = ((0, 3, 600), (30, 4, 60), (31, 1, 3600), (32, 1, 300))
    rows = [
        {"job": str(k + 1), "submit": str(submit), "run": str(run), "time_limit": str(run // 60)}
        | {"nodes": str(nodes), "ntasks": "", "user": "u", "partition": "p"}
        | {"qos": "", "gres": "", "constraint": ""}
        for k, (submit, nodes, run) in enumerate(sizes)
    ]
    jobs = replayed(tmp_path, tmp_path / "c.toml", rows)
    first, head, long, short = (float(jobs.loc[k, "starting_time"]) for k in (1, 2, 3, 4))
    assert 0 <= first <= 3
    assert 32 <= short <= 70
    assert first + 600 < head <= first + 640
    assert long > head + 60
    assert jobs.loc[4, "start_kind"] == "backfilled"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--policy", "saf+easy"], "has its own backfilling and clocks, and no backfilling 'easy'"),
        (["--policy", "recorded"], "nobody decides, so no passes of Slurm are played"),
        (["--agent", "zoo/rlbackfilling-lublin-1"], "learnt under the protocol"),
        (["--backfill-order", "sjf"], "no the candidate order 'sjf'"),
        (["--estimator", "predicted"], "plans by time limits"),
        (["--order", "lookahead(saf)"], "is no expression of a job"),
        (["--order", "fairshare"], "reads fairshare"),
        (["--order", "user_shares"], "is no expression of a job"),
    ],
)
def test_what_does_not_go_with_it_is_one_clear_error(
    tmp_path: Path, site: Path, capsys: pytest.CaptureFixture[str], options: list[str], what: str
) -> None:
    write_log(tmp_path / "log.parquet", draw(0)[:5])
    command = ["replay", str(tmp_path / "log.parquet"), "--cluster", str(site), "--protocol", "slurm"]
    assert main([*command, *options]) == 1
    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ('[scheduler.parameters]\nmax_rpc_cnt = "3"\n', "max_rpc_cnt is not modelled"),
        ('[scheduler.settings]\nTopologyPlugin = "topology/tree"\n', "topologyplugin=topology/tree"),
        ('[scheduler]\nlimits = "all"\n', "limits = 'all' is none of the protocol slurm"),
        ('[scheduler]\nselect = "best_fit"\n', "select = 'best_fit' is none of"),
        ("[scheduler]\nrequeue_delay = 5\n", "requeue_delay = 5 is none of"),
        ('[scheduler.settings]\nFrob = "1"\n', "frob is not known to the protocol slurm"),
        ('[[calendar]]\ntime = 5\nevent = "limit"\nqos = "q"\nlimit = "grp_jobs"\n[[qos]]\nname = "q"\n'
         "grp_jobs = 3\n", "has no limits that change in time"),
    ],
)  # fmt: skip
def test_what_a_site_asks_for_and_is_not_modelled_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, what: str
) -> None:
    (tmp_path / "c.toml").write_text(f'[[nodes]]\ncount = 4\n[[partitions]]\nname = "p"\n{table}')
    command = ["replay", "bundled-128", "--cluster", str(tmp_path / "c.toml"), "--protocol", "slurm"]
    text = (tmp_path / "c.toml").read_text().replace("count = 4", "count = 128")
    (tmp_path / "c.toml").write_text(text)
    assert main(command) == 1
    assert what in capsys.readouterr().err


def test_it_needs_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "bundled-128", "--protocol", "slurm"]) == 1
    assert "needs the nodes and rules of a cluster" in capsys.readouterr().err


def test_a_job_that_names_a_reservation_of_others_is_refused(tmp_path: Path) -> None:
    table = '[[reservations]]\nname = "r"\nstart = 0\nend = 900\nnodes = ["ALL"]\nusers = ["1"]\n'
    (tmp_path / "c.toml").write_text(f'[[nodes]]\ncount = 4\n[[partitions]]\nname = "p"\n{table}')
    log = pd.DataFrame({"job_id": [1, 2], "submit": 0, "run": 60, "req_time": 120, "req_procs": 1})
    log.assign(user_name=["1", "2"], reservation="r").to_parquet(tmp_path / "log.parquet")
    command = ["replay", str(tmp_path / "log.parquet"), "--cluster", str(tmp_path / "c.toml")]
    assert main([*command, "--protocol", "slurm", "--out", str(tmp_path / "run")]) == 0
    jobs = pd.read_parquet(tmp_path / "run" / "jobs.parquet").set_index("job_id")
    assert jobs["starting_time"].notna().to_dict() == {"1": True, "2": False}
    assert jobs.loc["2", "reason"] == "ReservationNotAllowed"


def test_each_refusal_has_its_own_reason(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(
        '[[nodes]]\nname = "n"\ncount = 8\n[[partitions]]\nname = "p"\nnodes = ["n[0-3]"]\n'
        '[[partitions]]\nname = "shut"\nstate = "inactive"\n'
        '[[qos]]\nname = "one"\nmax_submit_jobs_per_user = 1\n'
        '[[qos]]\nname = "small"\nmax_tres_per_job = {nodes = 1}\ndeny_on_limit = true\n'
    )
    log = pd.DataFrame({"job_id": range(1, 7), "submit": 0, "run": 60, "req_time": 120, "user_name": "u"})
    log["req_procs"] = [1, 1, 1, 1, 1, 2]
    log["partition_name"] = ["p", "p", "shut", "p", "p", "p"]
    log["qos_name"] = ["", "", "", "one", "one", "small"]
    log.to_parquet(tmp_path / "log.parquet")
    command = ["replay", str(tmp_path / "log.parquet"), "--cluster", str(tmp_path / "c.toml")]
    assert main([*command, "--protocol", "slurm", "--out", str(tmp_path / "run")]) == 0
    jobs = pd.read_parquet(tmp_path / "run" / "jobs.parquet").set_index("job_id")
    assert jobs.loc[jobs["starting_time"].isna(), "reason"].to_dict() == {
        "3": "PartitionInactive",
        "5": "QOSMaxSubmitJobPerUserLimit",
        "6": "QOSMaxNodePerJobLimit",
    }
