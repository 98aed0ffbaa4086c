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

#: Record -> how many cells it has, and the digest of their sorted pairs of `key` and `agent_key`.
FROZEN: dict[str, tuple[int, str]] = {
    "rlbackfilling": (643, "8fea901330ca4ddc"),
    "schedinspector": (539, "546d8eabacb30f10"),
    "mrsch": (247, "10db7488a687a994"),
    "sem": (20, "f2add621c2881cf2"),
    "rlschert": (526, "e73a116e69da7086"),
    "ranking": (553, "1bf346c31d92fd26"),
    "mrsch-crossing": (120, "af2babe696836ac3"),
    "sem-unseen": (18, "2fdd0c6a1fb89b24"),
    "sem-methods": (44, "93a8fdabac2c41e2"),
    "rlschert-code": (28, "001a9a07f3852b0e"),
    "sites": (19, "ff4fafb23443d3f8"),
    "acting": (111, "83555603d328b74f"),
}
#: Record -> its study file.
FILES = {
    f"{paper}-{file.stem}" if file.stem != "study" else paper: file
    for paper in studies.PAPERS
    for file in studies.files_of(paper)
}


def recorded(record: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in pd.read_parquet(store.path_of(record), columns=["logs"])["logs"].unique():
        for name, digest in json.loads(text).items():
            assert found.setdefault(name, digest) == digest
    return found


RECORDED = {name: digest for record in FROZEN for name, digest in recorded(record).items()}


@pytest.mark.parametrize("name", FROZEN)
def test_keys_of_a_record_are_those_of_its_study(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = recorded(name)
    # a log that no record has can be in no recorded key
    monkeypatch.setattr(cells, "sha256_of", lambda file: digests.get(file, f"not recorded: {file}"))
    of_study = {
        one.key: one.agent_key
        for study in read_studies(FILES[name])
        for cell in cells.cells_of(study)
        for one in (cell, *cell.shorter, cell.shortest)
    }
    record = pd.read_parquet(store.path_of(name), columns=["key", "agent"])
    pairs = set(zip(record["key"], record["agent"], strict=True))
    assert pairs <= set(of_study.items())
    text = "\n".join(sorted(" ".join(pair) for pair in pairs))
    assert (len(pairs), hashlib.sha256(text.encode()).hexdigest()[:16]) == FROZEN[name]


def test_all_cells_are_frozen() -> None:
    assert sum(count for count, _ in FROZEN.values()) == 2868


@pytest.mark.parametrize("name", [name for name in RECORDED if "/" not in name and ":" not in name])
def test_a_log_has_the_digest_of_the_records(name: str, log: Callable[[str], Workload]) -> None:
    assert log(name).digest() == RECORDED[name]


@pytest.mark.parametrize("name", [name for name in logs.TRACES if name[0] in "SC" and name[1:].isdigit()])
def test_a_log_made_of_theta_has_the_digest_of_the_records(name: str, log: Callable[[str], Workload]) -> None:
    made = generate_mrsch(log("theta_2022"), name, seed=logs.SEED)
    assert made.digest() == RECORDED[logs.TRACES[name]]


def test_pool_jobs_have_the_digest_of_the_records(vasp_path: Path) -> None:
    assert digest_of(jobs_of(vasp_path)) == RECORDED["pool:vasp_jobs.csv.gz"]
