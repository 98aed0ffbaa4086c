"""Results on disk: one Parquet file per table, to which runs add; two runs may add at the same time."""

import fcntl
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.report.folding import fold_tables
from bridge.study.cells import digest as digest
from bridge.study.cells import non_default_fields as non_default_fields

ROOT = Path(__file__).resolve().parents[1]
#: Tables, pictures and their data.
RESULTS = ROOT / "docs" / "results"
#: Trainings: not shipped, needed to add seeds without training again.
WORK = ROOT / "runs" / "papers"
#: What makes two results the same one.
KEY = ["row", "test", "label", "seed"]


def path_of(name: str, suffix: str = ".parquet") -> Path:
    return RESULTS / "data" / f"{name}{suffix}"


def written(name: str, text: str) -> Path:
    """Write a page, its long tables folded, whole or not at all; returns its file."""
    path = RESULTS / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as out:
        out.write(fold_tables(text).encode())
    return path


def kept(name: str, measure: Callable[[], pd.DataFrame], *, again: bool = False) -> pd.DataFrame:
    """Return data of a page: what is there, else (or `again`) what is measured now, which is kept."""
    path = path_of(name)
    if path.exists() and not again:
        return pd.read_parquet(path)
    table = measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as out:
        table.to_parquet(out)
    return table


@cache
def read_json(name: str) -> dict[str, Any]:
    """Return the data of a page as it was measured; empty if nothing was."""
    path = path_of(name, ".json")
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def measure_logs(
    name: str,
    logs: Sequence[str],
    measured: Callable[[str], Any],
    wanted: Sequence[str] = (),
    indent: int | None = None,
) -> Iterator[tuple[str, Any]]:
    """Measure a page's logs (those `wanted`, else all) one by one; keep and yield what each one has."""
    for log in wanted or logs:
        documents = {**read_json(name), log: measured(log)}
        in_order = {one: documents[one] for one in logs if one in documents}
        with atomic_write(path_of(name, ".json")) as out:
            out.write((json.dumps(in_order, indent=indent) + "\n").encode())
        read_json.cache_clear()
        yield log, documents[log]


def read(table: str) -> pd.DataFrame:
    path = path_of(table)
    return pd.read_parquet(path) if path.exists() else pd.DataFrame(columns=[*KEY, "digest", "agent"])


def has(table: str, row: str, test: str, label: str, seed: int, made_of: str) -> bool:
    """Tell whether this very result is there: same recipe, log and sequences."""
    rows = read(table)
    same = (rows["row"] == row) & (rows["test"] == test) & (rows["label"] == label)
    return bool((same & (rows["seed"] == seed) & (rows["digest"] == made_of)).any())


def add(table: str, result: Mapping[str, Any]) -> None:
    path = path_of(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(path):
        before = read(table)
        if len(before):
            alike = pd.Series(True, index=before.index)
            for name in KEY[:-1]:
                alike &= before[name] == result[name]
            # other seeds stay only if they are of the same recipe, log and sequences
            stale = alike & ((before["seed"] == result["seed"]) | (before["digest"] != result["digest"]))
            before = before[~stale]
        fresh = pd.DataFrame([dict(result)])
        table_of = pd.concat([before, fresh], ignore_index=True) if len(before) else fresh
        with atomic_write(path) as out:
            table_of.sort_values(KEY, ignore_index=True).to_parquet(out)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep other runs from changing the file meanwhile."""
    WORK.mkdir(parents=True, exist_ok=True)
    with (WORK / f".{path.name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def bridge(*words: str) -> str:
    """Return what a command of `bridge` prints, run at the repository's root; BridgeError: it failed."""
    command = [sys.executable, "-m", "bridge.cli.main", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise BridgeError("this command failed", where=" ".join(words), remedy=done.stderr.strip())
    return done.stdout
