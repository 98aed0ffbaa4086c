"""A run: one execution with everything needed to repeat it, and its folder on disk."""

import json
import math
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.base import files
from bridge.base.errors import BridgeError
from bridge.base.files import cannot_write
from bridge.config import read_toml
from bridge.judge.jobs import JOBS_COLUMNS as JOBS_COLUMNS
from bridge.judge.jobs import read_jobs, read_parquet, require_columns, write_jobs_csv, write_rst

__all__ = ["JOBS_COLUMNS", "Run", "check_target", "read_jobs", "read_run", "write_rst", "write_run"]

#: Rows of a jobs table that are made and written at a time.
PIECE = 1 << 16
#: Version of the folder's layout, stored in ``run.toml``.
FORMAT = 1
AGAIN = "Repeat the run with the command in the file."
RUN_FILES = ("run.toml", "metrics.json", "jobs.csv", "jobs.parquet", "detailed")
#: Pictures and pages that commands add to a run folder; ``force`` may replace them too.
ADDED_SUFFIXES = frozenset({".png", ".svg", ".html", ".rst"})


@dataclass(frozen=True)
class Run:
    """One execution under one policy.

    Attributes:
        config: everything needed to repeat it: ``command`` (the one command line that repeats it),
            ``versions``, ``seed`` and every option. Plain values, lists and nested dicts; None is "not set".
        capacity: machine capacity per resource, ``nodes`` first.
        jobs: the jobs table, columns as in ``bridge.judge.jobs.JOBS_COLUMNS`` and any extras (``user``, …);
            with `rows` only those that are measured.
        metrics: flat dict as ``bridge.judge.metrics.compute_metrics`` returns it; unknown values are None.
        oracle: whether an estimator read true run times, which no real scheduler could.
        rows: makes the whole table's rows from one up to another, for runs that are too long to hold it.
    """

    config: dict[str, Any]
    capacity: dict[str, int]
    jobs: pd.DataFrame
    metrics: dict[str, float | int | None]
    oracle: bool = False
    name: str = field(default="", compare=False)
    rows: Callable[[int, int], pd.DataFrame] | None = field(default=None, compare=False)

    def pieces(self) -> Iterator[pd.DataFrame]:
        """Yield the whole jobs table, `PIECE` rows at a time (a table without rows is one piece)."""
        for start in range(0, max(len(self.jobs), 1), PIECE):
            stop = min(start + PIECE, len(self.jobs))
            yield self.rows(start, stop) if self.rows else self.jobs.iloc[start:stop]


def check_target(folder: Path | str, *, force: bool = False) -> None:
    """Raise BridgeError unless a run may be written to ``folder``; call it before long work.

    ``force`` allows an existing folder only if it holds nothing but a run (and pictures made of it).
    """
    folder = Path(folder)
    if not (folder.exists() or folder.is_symlink()):
        return
    if folder.is_symlink() or not folder.is_dir():
        raise BridgeError("exists and is not a folder", where=str(folder), remedy="Name another folder.")
    if not force:
        remedy = "Name a new folder, or add --force to replace the run in it."
        raise BridgeError("the folder already exists", where=str(folder), remedy=remedy)
    names = {entry.name for entry in folder.iterdir()}
    foreign = sorted(n for n in names.difference(RUN_FILES) if Path(n).suffix not in ADDED_SUFFIXES)
    if foreign or (names and "run.toml" not in names):
        held = f"it holds {foreign[0]}" if foreign else "it holds no run.toml"
        what = f"the folder does not look like a run ({held}), so --force does not replace it"
        remedy = "Name a new folder, or remove this one yourself."
        raise BridgeError(what, where=str(folder), remedy=remedy)


def write_run(run: Run, folder: Path | str, force: bool = False, *, detailed: Path | None = None) -> None:
    """Write a run to a new folder: jobs.csv, jobs.parquet, metrics.json, run.toml; all or nothing.

    Everything goes to a temporary folder beside it first, which then takes its place: at no moment is there
    no run under its name. Missing parents are made.
    `force` replaces an existing run; files of the folder `detailed`, the detailed world's own, are copied
    into one of this name. BridgeError: the folder exists, is no run, or cannot be written.
    """
    folder = Path(folder)
    check_target(folder, force=force)
    if run.rows is None:
        require_columns(run.jobs, JOBS_COLUMNS, str(folder))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with files.temporary_folder(folder) as fresh:
            _write_files(run, fresh)
            if detailed is not None:
                (fresh / "detailed").mkdir()
                for file in sorted(detailed.iterdir()):
                    if file.is_file():  # not folders in it: the run itself may lie there
                        shutil.copy(file, fresh / "detailed" / file.name)
            check_target(folder, force=force)
            files.put_in_place(fresh, folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    except BridgeError as error:
        if isinstance(error.__cause__, OSError):
            raise cannot_write(folder, error.__cause__) from error  # name the run, not the temporary folder
        raise


def _write_files(run: Run, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq  # 0.1 s, which a replay that keeps nothing does not need
    import tomli_w

    write_jobs_csv(run.pieces(), folder / "jobs.csv")
    tables = (pa.Table.from_pandas(jobs, preserve_index=False) for jobs in run.pieces())
    first = next(tables)
    with pq.ParquetWriter(folder / "jobs.parquet", first.schema, compression="zstd") as file:
        for table in chain([first], tables):
            file.write_table(table)
    metrics = json.dumps(_plain(run.metrics), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "metrics.json").write_text(metrics + "\n", encoding="utf-8")
    document = {"format": FORMAT, "oracle": run.oracle, "capacity": _plain(run.capacity)}
    document["config"] = _plain(run.config, unset=False)
    (folder / "run.toml").write_text(tomli_w.dumps(document), encoding="utf-8")


def _plain(value: Any, unset: bool = True) -> Any:
    """Turn NumPy scalars, paths and tuples into what JSON and TOML know; NaN and infinity become None.

    ``unset`` keeps None, which TOML cannot hold: there an option that is absent is not set.
    """
    if isinstance(value, dict):
        items = ((str(key), _plain(item, unset)) for key, item in value.items())
        return {key: item for key, item in items if unset or item is not None}
    if isinstance(value, (list, tuple)):
        return [item for item in (_plain(item, unset) for item in value) if unset or item is not None]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_run(folder: Path | str) -> Run:
    """Read a run folder that ``write_run`` made; BridgeError names the file that is missing or damaged."""
    folder = Path(folder)
    if not files.is_there(folder, Path.is_dir):
        what = "is a file, not a run folder" if files.is_there(folder) else "no such run folder"
        raise BridgeError(what, where=str(folder), remedy="`bridge replay … --out DIR` makes one.")
    for name in ("run.toml", "metrics.json", "jobs.parquet"):
        if not (folder / name).is_file():
            raise BridgeError(f"not a run folder: {name} is missing", where=str(folder))
    document = _read_toml(folder / "run.toml")
    metrics = files.read_json(folder / "metrics.json")
    number_types = (int, float, type(None))
    if not isinstance(metrics, dict) or not all(type(value) in number_types for value in metrics.values()):
        raise BridgeError("not a JSON object of metrics", where=str(folder / "metrics.json"))
    jobs = read_parquet(folder / "jobs.parquet")
    config, capacity, oracle = (document[key] for key in ("config", "capacity", "oracle"))
    return Run(config, capacity, jobs, metrics, oracle, folder.name)


def _read_toml(path: Path) -> dict[str, Any]:
    document = read_toml(path)
    if document.get("format") != FORMAT:
        message = f"format {document.get('format')!r} is unknown, this version of bridge reads {FORMAT}"
        raise BridgeError(message, where=str(path), remedy=AGAIN)
    for key, kind in {"oracle": bool, "capacity": dict, "config": dict}.items():
        if not isinstance(document.get(key), kind):
            raise BridgeError(f"{key} is missing or not a {kind.__name__}", where=str(path))
    capacity = document["capacity"]
    if not all(type(amount) is int and amount >= 0 for amount in capacity.values()):
        raise BridgeError("capacity must hold whole numbers, one per resource", where=str(path))
    if "nodes" not in capacity:
        raise BridgeError("the run does not tell the machine's nodes", where=str(path), remedy=AGAIN)
    return document


def run_folder(out: Path, policy: str) -> Path:
    return out / re.sub(r"[^\w.+-]+", "_", policy)
