"""Studies from their file: one, or its tables, read, changed for a trial, and checked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.config import from_tables, merged, read_toml
from bridge.learn.registry import find_recipe
from bridge.study.check import check, find_duplicate
from bridge.study.spec import Study, StudyRow


def _with_rows(table: dict[str, Any], tables: Sequence[Mapping[str, Any]], where: str) -> dict[str, Any]:
    """Return a table with the rows of that which its ``rows`` names."""
    name = table.get("rows")
    if not isinstance(name, str):
        return table
    there = {one.get("name"): one.get("rows") for one in tables}
    rows = there.get(name)
    if not isinstance(rows, list):
        lists = ", ".join(str(key) for key, value in there.items() if isinstance(value, list))
        raise BridgeError(f"rows = {name!r} is no table with rows", where=where, remedy=f"Tables: {lists}.")
    own = [{key: value for key, value in row.items() if key != "published"} for row in rows]
    return {**table, "rows": own}


def _with_cluster(row: StudyRow, cluster: str, where: str) -> StudyRow:
    """Return a row on a cluster; BridgeError: the time-stepped pool has none."""
    if row.pool or (row.policy and find_recipe(row.policy, row.setting).scheduler == "pool"):
        what = f"row {row.name!r} is of the time-stepped pool, which has no cluster"
        raise BridgeError(what, where=where, remedy="Leave out --cluster, or the row (--row).")
    if row.policy:
        return replace(row, changes=merged(row.changes, {"setup": {"cluster": cluster}}))
    return replace(row, setup=replace(row.setup, cluster=cluster))


def read_studies(
    path: Path,
    *,
    seeds: int | None = None,
    epochs: int | None = None,
    sequences: int | None = None,
    cluster: str | None = None,
) -> tuple[Study, ...]:
    """Return the studies of a file: one, or its ``[[tables]]``, for which it says what they have in common.

    A table whose ``rows`` is the name of one above has that one's rows, without what is published of them.
    `seeds`, `epochs`, `sequences`: in place of the file's, for a trial; `cluster`: the site of all rows.
    BridgeError: no study can be carried out.
    """
    common = dict(read_toml(path))
    tables = common.pop("tables", None) or [{}]
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise BridgeError("tables is no list of tables", where=str(path), remedy="Write [[tables]].")
    studies: list[Study] = []
    for table in tables:
        study = from_tables(Study, _with_rows({**common, **table}, tables, str(path)), str(path))
        if seeds is not None:
            study = replace(study, seeds=seeds, rows=tuple(replace(row, seeds=None) for row in study.rows))
        if epochs is not None:
            study = replace(study, epochs=epochs, longest=())
        if sequences is not None:
            study = replace(study, tests=tuple(replace(test, sequences=sequences) for test in study.tests))
        if cluster is not None:
            study = replace(study, rows=tuple(_with_cluster(row, cluster, str(path)) for row in study.rows))
        check(study, str(path))
        studies.append(study)
    if (name := find_duplicate([one.name for one in studies])) is not None:
        raise BridgeError(f"two tables are called {name!r}", where=str(path), remedy="Rename one.")
    return tuple(studies)
