"""QOS and associations from `sacctmgr -P show qos` and `sacctmgr -P show assoc`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bridge.base import files
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.cluster.imported import ImportNotes, mending
from bridge.cluster.limits import Account, Qos, User
from bridge.cluster.slurm_partitions import number_of, preempt_mode_of, seconds_of, words_of
from bridge.cluster.tres import amounts_of

#: Column, in small letters without blanks -> field, by the form of its cells. Slurm knows some by two names.
_COUNTS = {
    "grpjobs": "grp_jobs",
    "grpsubmit": "grp_submit_jobs",
    "grpsubmitjobs": "grp_submit_jobs",
}
AMOUNTS = {
    "grptres": "grp_tres",
    "grptresmins": "grp_tres_mins",
    "maxtres": "max_tres_per_job",
    "maxtresperjob": "max_tres_per_job",
    "mintres": "min_tres_per_job",
    "mintresperjob": "min_tres_per_job",
}
TIMES = {"maxwall": "max_wall", "maxwalldurationperjob": "max_wall", "maxwalldurationjob": "max_wall"}
QOS_COUNTS = {
    **_COUNTS,
    "maxjobspu": "max_jobs_per_user",
    "maxjobsperuser": "max_jobs_per_user",
    "maxjobspa": "max_jobs_per_account",
    "maxjobsperaccount": "max_jobs_per_account",
    "maxsubmitpu": "max_submit_jobs_per_user",
    "maxsubmitjobsperuser": "max_submit_jobs_per_user",
    "maxsubmitpa": "max_submit_jobs_per_account",
    "maxsubmitjobsperaccount": "max_submit_jobs_per_account",
    "priority": "priority",
}
QOS_AMOUNTS = {
    **AMOUNTS,
    "maxtrespu": "max_tres_per_user",
    "maxtresperuser": "max_tres_per_user",
    "maxtrespa": "max_tres_per_account",
    "maxtresperaccount": "max_tres_per_account",
}
ASSOCIATION_COUNTS = {
    **_COUNTS,
    "maxjobs": "max_jobs",
    "maxsubmit": "max_submit_jobs",
    "maxsubmitjobs": "max_submit_jobs",
    "priority": "priority",
}
#: Flag of a QOS -> field.
FLAGS = {
    "denyonlimit": "deny_on_limit",
    "noreserve": "no_reserve",
    "nodecay": "no_decay",
    "overpartqos": "over_partition_qos",
    "partitionmaxnodes": "partition_max_nodes",
    "partitionminnodes": "partition_min_nodes",
    "partitiontimelimit": "partition_time_limit",
}
#: Columns that say who or what, or nothing of schedules; all others that are filled are not honoured.
_SILENT = frozenset(
    (
        *("id", "name", "description", "descr", "cluster", "account", "user", "partition", "parentname"),
        *(
            "parentid",
            "share",
            "fairshare",
            "qos",
            "qosraw",
            "qoslevel",
            "defqos",
            "defaultqos",
            "defaultqosid",
        ),
        *("lft", "rgt", "flags", "preempt", "preemptmode", "gracetime", "usagefactor", "lineage", "comment"),
        *("withdeleted", "rawshares", "partitionname", "defaccount"),
    )
)

Row = tuple[str, dict[str, str]]


def read_sacctmgr(path: Path, cluster: Cluster, notes: ImportNotes) -> Cluster:
    """Return a cluster with the QOS, or the accounts and users, of a text; BridgeError names the line.

    Rows of other clusters than one are refused: `sacctmgr show assoc cluster=NAME` lists one.
    """
    rows = list(_rows(files.read_text(path), str(path)))
    heads = set(rows[0][1]) if rows else set()
    if {"account", "user"} <= heads:
        return _with_associations(rows, str(path), cluster, notes)
    if "name" in heads and "priority" in heads:
        return replace(cluster, qos=(*cluster.qos, *_qos_of(rows, notes)))
    what = "is neither a list of QOS nor one of associations"
    remedy = "Give the output of `sacctmgr -P show qos` or `sacctmgr -P show assoc`, with its line of names."
    raise BridgeError(what, where=str(path), remedy=remedy)


def read_qos_text(text: str, where: str) -> list[Qos]:
    """Return the QOS of a text of `sacctmgr -P show qos`; `where`: what errors call it."""
    return _qos_of(_rows(text, where), ImportNotes())


def _qos_of(rows: Iterable[Row], notes: ImportNotes) -> list[Qos]:
    qos = []
    for place, row in rows:
        with mending(place):
            qos.append(_qos(row, notes))
    return qos


def _rows(text: str, path: str) -> Iterator[Row]:
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines or "|" not in lines[0][1]:
        what = "has no line of column names with | between them"
        remedy = "Print it with -P (--parsable2): sacctmgr -P show qos."
        raise BridgeError(what, where=path, remedy=remedy)
    ends = lines[0][1].rstrip().endswith("|")  # -p
    heads = [_head(name) for name in lines[0][1].split("|")]
    for number, line in lines[1:]:
        cells = line.split("|")
        if len(cells) != len(heads):
            what = (
                f"has {counted(len(cells) - ends, 'cell')}, and there are {len(heads) - ends} "
                "names of columns"
            )
            raise BridgeError(what, where=f"{path}:{number}", remedy="Print it again with -P.")
        yield f"{path}:{number}", dict(zip(heads, cells, strict=True))


def _head(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _limits(
    row: Mapping[str, str], counts: Mapping[str, str], amounts: Mapping[str, str], notes: ImportNotes
) -> dict[str, Any]:
    """Return the limits of a row by the fields' names; ValueError: a cell is not what it should be."""
    fields: dict[str, Any] = {}
    for column, text in row.items():
        cell = text.strip()
        if not cell or column in _SILENT:
            continue
        if column in counts:
            if (number := number_of(cell)) is not None:
                fields[counts[column]] = number
        elif column in amounts:
            if values := amounts_of(cell, notes):
                fields[amounts[column]] = values
        elif column in TIMES:
            if (seconds := seconds_of(cell)) is not None:
                fields[TIMES[column]] = seconds
        elif column and cell not in ("0", "0.000000", "00:00:00"):
            notes.leave(f"limits of accounting: {column}")
    return fields


def _qos(row: Mapping[str, str], notes: ImportNotes) -> Qos:
    fields = _limits(row, QOS_COUNTS, QOS_AMOUNTS, notes)
    for word in filter(None, row.get("flags", "").split(",")):
        if (field := FLAGS.get(word.strip().lower())) is not None:
            fields[field] = True
        else:
            notes.leave(f"QOS with Flags={word.strip()}")
    mode = row.get("preemptmode", "").strip()
    own_mode = None if mode.lower() in ("", "cluster") else preempt_mode_of(mode, notes)
    factor = row.get("usagefactor", "").strip()
    if factor:
        fields["usage_factor"] = float(factor)
    if grace := seconds_of(row.get("gracetime", "").strip(), minutes=False):
        fields["grace_time"] = grace
    return Qos(
        name=row["name"].strip(), preempt=words_of(row.get("preempt", "")), preempt_mode=own_mode, **fields
    )


def _with_associations(rows: list[Row], where: str, cluster: Cluster, notes: ImportNotes) -> Cluster:
    clusters = {row.get("cluster", "").strip() for _, row in rows} - {""}
    if len(clusters) > 1:
        what = f"lists associations of several clusters: {', '.join(sorted(clusters))}"
        raise BridgeError(what, where=where, remedy="List one: sacctmgr -P show assoc cluster=NAME.")
    accounts: list[Account] = []
    users: list[User] = []
    above: list[tuple[int, str]] = []  # indentation and name, of a list in form of a tree
    for place, row in rows:
        with mending(place):
            fields = _limits(row, ASSOCIATION_COUNTS, AMOUNTS, notes) | _shares(row)
            fields |= {"qos": words_of(row.get("qos", "").strip())}
            fields |= {"default_qos": (row.get("defqos") or row.get("defaultqos") or "").strip()}
            text = row["account"]
            name, depth = text.strip(), len(text) - len(text.lstrip())
            if row["user"].strip():
                users.append(
                    User(
                        name=row["user"].strip(),
                        account=name,
                        partition=row.get("partition", "").strip(),
                        **fields,
                    )
                )
                continue
            above = [(of, parent) for of, parent in above if of < depth]
            parent = row.get("parentname", "").strip() or (above[-1][1] if above else "root")
            above.append((depth, name))
            accounts.append(Account(name=name, parent=parent, **fields))
    has_parents = any(row.get("parentname", "").strip() for _, row in rows)
    flat = all(account.parent == "root" for account in accounts)
    if len(accounts) > 2 and flat and not has_parents:
        what = "all accounts are below root: the list has no ParentName and is no tree"
        notes.note(f"{what} (sacctmgr -P show assoc format=…,parentname)")
    names = {account.name for account in accounts} | {account.name for account in cluster.accounts} | {"root"}
    for user in users:
        if user.account not in names:
            names.add(user.account)
            accounts.append(Account(name=user.account))
    return replace(cluster, accounts=(*cluster.accounts, *accounts), users=(*cluster.users, *users))


def _shares(row: Mapping[str, str]) -> dict[str, int]:
    text = (row.get("share") or row.get("fairshare") or row.get("rawshares") or "").strip()
    if not text:
        return {}
    if text.lower() == "parent":
        return {"shares": -1}
    number = number_of(text)
    return {} if number is None else {"shares": number}
