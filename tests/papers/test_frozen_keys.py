"""The keys of what was measured are those of the shipped studies: else all of it would have to be done again.

Digests of logs are in the records, so that keys are computed anew without a log.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("torch", reason="recipes need PyTorch")

from bridge.pool.evaluate import jobs_of
from bridge.pool.study_rows import digest_of
from bridge.study import cells
from bridge.study.reading import read_studies
from bridge.workload.mrsch import generate_mrsch
from bridge.workload.table import Workload
from papers import logs, store, studies

#: Paper -> how many cells its record has, and the digest of their sorted pairs of `key` and `agent_key`.
FROZEN: dict[str, tuple[int, str]] = {
    "rlbackfilling": (583, "7a5a9230e855794b"),
    "schedinspector": (466, "59c895c9072563e2"),
    "mrsch": (232, "ff2579f5206b5e4d"),
    "sem": (20, "f2add621c2881cf2"),
    "rlschert": (517, "ba23c94f51f337e7"),
    "ranking": (553, "1bf346c31d92fd26"),
}


def recorded(paper: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in pd.read_parquet(store.path_of(paper), columns=["logs"])["logs"].unique():
        for name, digest in json.loads(text).items():
            assert found.setdefault(name, digest) == digest
    return found


RECORDED = {name: digest for paper in studies.PAPERS for name, digest in recorded(paper).items()}


@pytest.mark.parametrize("paper", studies.PAPERS)
def test_keys_of_a_record_are_those_of_its_study(paper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = recorded(paper)
    # a log that no record has can be in no recorded key
    monkeypatch.setattr(cells, "sha256_of", lambda file: digests.get(file, f"not recorded: {file}"))
    of_study = {
        one.key: one.agent_key
        for study in read_studies(studies.file_of(paper))
        for cell in cells.cells_of(study)
        for one in (cell, *cell.shorter, cell.shortest)
    }
    record = pd.read_parquet(store.path_of(paper), columns=["key", "agent"])
    pairs = set(zip(record["key"], record["agent"], strict=True))
    assert pairs <= set(of_study.items())
    text = "\n".join(sorted(" ".join(pair) for pair in pairs))
    assert (len(pairs), hashlib.sha256(text.encode()).hexdigest()[:16]) == FROZEN[paper]


def test_all_cells_are_frozen() -> None:
    assert sum(count for count, _ in FROZEN.values()) == 2371


@pytest.mark.parametrize("name", [name for name in RECORDED if "/" not in name and ":" not in name])
def test_a_log_has_the_digest_of_the_records(name: str, log: Callable[[str], Workload]) -> None:
    assert log(name).digest() == RECORDED[name]


@pytest.mark.parametrize("name", [name for name in logs.TRACES if name[0] == "S" and name[1:].isdigit()])
def test_a_log_made_of_theta_has_the_digest_of_the_records(name: str, log: Callable[[str], Workload]) -> None:
    made = generate_mrsch(log("theta_2022"), name, seed=logs.SEED)
    assert made.digest() == RECORDED[logs.TRACES[name]]


def test_pool_jobs_have_the_digest_of_the_records(vasp_path: Path) -> None:
    assert digest_of(jobs_of(vasp_path)) == RECORDED["pool:vasp_jobs.csv.gz"]
