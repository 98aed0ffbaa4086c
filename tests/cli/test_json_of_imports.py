"""Imports and generated workloads are described as JSON, too."""

import json
from pathlib import Path

from cli_commands import run_ok

SITE = Path(__file__).parents[2] / "examples" / "site"


def test_accounting_and_its_cluster(tmp_path: Path) -> None:
    site, log = tmp_path / "cluster.toml", tmp_path / "log.parquet"
    document = json.loads(run_ok("cluster", "import", SITE / "slurm.conf", "--out", site, "--json"))
    assert (document["nodes"], document["partitions"], document["findings"]) == (36, 2, [])
    words = ("workload", "import", "sacct", SITE / "sacct.txt.gz", "--cluster", site, "--out", log)
    document = json.loads(run_ok(*words, "--json"))
    assert (document["out"], document["jobs"], document["capacity"]) == (str(log), 3000, {"nodes": 36})
    assert document["tally"] == []


def test_generated_workloads(tmp_path: Path) -> None:
    out = tmp_path / "small.csv"
    document = json.loads(run_ok("workload", "generate", "lublin-1", "--jobs", 20, "--out", out, "--json"))
    assert (document["jobs"], document["capacity"], document["statistics"]) == (20, {"nodes": 256}, [])
    assert document["command"] == "bridge workload generate lublin-1 --jobs 20 --seed 0"
