"""A record of cells in one file that travels with its study: what is in it need not be done again."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.study.cells import Cell
from bridge.study.spec import Study
from bridge.study.store import Store

#: What is kept as JSON, for its shape is anything.
_JSON = ("made_of", "metrics", "logs")
#: A cell's digest. It becomes a file's name in the store, which no other text of a record may.
_KEY = re.compile("[0-9a-f]{16}", re.ASCII)
#: How a record is written. Most of it are measured values: a dictionary of them is as long as they are.
_FORM: dict[str, Any] = {"compression": "zstd", "compression_level": 19, "use_dictionary": False}


def path_of(study: Study, file: Path) -> Path | None:
    """Return where a study's record is; its name is from the study's file on."""
    return file.parent / study.record if study.record else None


def unpack(path: Path, store: Store) -> dict[str, str]:
    """Put a record's cells into a store, those that are not there; returns digests of their logs."""
    if not path.exists():
        return {}
    done, cells = store.done(), {}
    try:
        lines = pd.read_parquet(path)
        if wrong := [key for key in lines["key"].unique() if not _KEY.fullmatch(str(key))]:
            raise ValueError(f"the key {_short(wrong[0])} is no digest of a cell")
        for key, mine in lines[~lines["key"].isin(done)].groupby("key", sort=False):
            first = mine.iloc[0]
            cell = {name: _plain(first[name]) for name in lines.columns if "." not in name and name != "key"}
            cell |= {name: json.loads(cell[name]) for name in _JSON}
            rows = ({name: _plain(line[name]) for name in lines.columns} for _, line in mine.iterrows())
            cells[str(key)] = cell | {"tests": [_test(row) for row in rows]}
        logs = [json.loads(text) for text in lines["logs"].unique()]
        digests = {file: digest for of in logs for file, digest in of.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        remedy = (
            "Take it again from where the study came from, or remove it: `bridge study archive` writes it."
        )
        raise BridgeError(f"cannot be read ({error!r})", where=str(path), remedy=remedy) from error
    for key, cell in cells.items():
        store.save(key, cell)
    return digests


def pack(cells: Iterable[Cell], store: Store, path: Path) -> int:
    """Write the finished cells to an archive, replacing it; return their number."""
    lines = []
    records = {cell.key: done for cell in cells if (done := store.cell(cell.key)) is not None}
    for key, cell in records.items():
        head = {name: value for name, value in cell.items() if name != "tests"}
        head |= {name: json.dumps(head.get(name, {}), sort_keys=True, default=str) for name in _JSON}
        lines += [{"key": key, **head, **_line(test)} for test in cell["tests"]]
    if not lines:
        return 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as out:
        pd.DataFrame(lines).to_parquet(out, **_FORM)
    return len(records)


def _line(test: dict[str, Any]) -> dict[str, Any]:
    flat = {f"test.{name}": value for name, value in test.items() if not isinstance(value, dict)}
    nested = {kind: test.get(kind, {}) for kind in ("values", "means")}
    return flat | {f"{kind}.{name}": value for kind, of in nested.items() for name, value in of.items()}


def _test(line: dict[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {"values": {}, "means": {}}
    for name, value in line.items():
        kind, _, rest = name.partition(".")
        if rest and value is not None and value == value:
            (record if kind == "test" else record[kind])[rest] = value
    return record


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _plain(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return None if isinstance(value, float) and value != value else value


def paths(studies: Sequence[Study], file: Path) -> list[Path]:
    files = dict.fromkeys(path_of(study, file) for study in studies)
    return [path for path in files if path is not None and path.exists()]


def unpack_all(studies: Sequence[Study], file: Path, store: Store) -> dict[str, str]:
    records: dict[str, str] = {}
    for path in paths(studies, file):
        records |= unpack(path, store)
    return records
