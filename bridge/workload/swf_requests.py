"""A log of 21 fields with the names and requests that the files beside it tell: columns for a cluster."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.base.errors import BridgeError
from bridge.cluster.swf_site import ANY, SwfSite, read_swf_site
from bridge.workload.ignored import note_ignored
from bridge.workload.requests import heeded_columns
from bridge.workload.swf import FURTHER, Malformed, read_swf
from bridge.workload.table import TallyEntry, Workload, tally

_SHAPE = re.compile(r"(\d{1,9})x(\d{1,9})", re.ASCII)
_EXCLUSIVE = "excl"
#: SWF's memory is KB; so many are one MiB.
_KB = 1024


def read_with_site(path: Path, malformed: Malformed = "refuse") -> Workload:
    """Return an SWF log whose jobs ask for what its fields say of the site beside it.

    The last field holds properties between colons: names of machines' properties, ``excl`` (whole nodes), and
    ``NODESxCORES``. Raises BridgeError as `read_swf`, and if there is no site.
    """
    workload, site = read_swf(path, malformed), read_swf_site(path)
    jobs = workload.jobs
    missing = [name for name in FURTHER if name not in jobs]
    if missing:
        what = f"its records have no field {missing[0]!r}: the layout has 21 fields"
        raise BridgeError(what, where=str(path), remedy="Replay it without its site.")
    ids = jobs["job_id"]
    counted: dict[str, TallyEntry] = {}
    requested, granted = jobs["req_procs"].to_numpy(), jobs["procs"].to_numpy()
    procs: Ints = np.where(requested > 0, requested, granted)
    nodes, cores, features, exclusive, strange = _parse_properties(
        jobs["property"].astype(str).tolist(), site
    )
    single = site.most_cores == 1
    nodes = np.where((nodes < 0) & single, procs, nodes)
    cores = np.where((cores < 0) & (nodes > 0), 1, cores)
    shaped: Flags = nodes > 0
    wrong = shaped & (nodes * cores != procs) & (procs > 0)
    counted |= tally("noted", "nodes x cores is not its processors: the property counts", ids[wrong])
    columns: dict[str, Any] = {"nodes": np.where(shaped, nodes, -1)}
    columns["cores_per_node"] = np.where(shaped, cores, -1)
    memory, gpus = np.maximum(jobs["req_memory"].to_numpy(), 0), np.maximum(jobs["gpus"].to_numpy(), 0)
    columns["req_memory"] = np.where(shaped, -1, jobs["req_memory"].to_numpy())  # memory_per_node has it
    columns["memory_per_node"] = np.where(shaped & (memory > 0), -(-memory // _KB), -1)
    uneven = shaped & (gpus % np.maximum(nodes, 1) != 0)
    counted |= tally("noted", "GPUs do not divide by its nodes: rounded up on each", ids[uneven])
    columns["gpus_per_node"] = np.where(shaped, -(-gpus // np.maximum(nodes, 1)), -1)
    if not shaped.all():
        columns |= {"tasks": np.where(shaped, -1, procs), "cores_per_task": np.where(shaped, -1, 1)}
        why = "does not tell its nodes: each processor is a task, and its memory is not looked at"
        counted |= tally("noted", why, ids[~shaped])
        loose = ~shaped & (gpus > 0)
        counted |= tally("noted", "asks for GPUs without nodes: they are not looked at", ids[loose])
    columns["exclusive"] = np.full(len(jobs), -1) if single else exclusive.astype(np.int64)
    if any(features):
        columns["constraints"] = features
    for kind, code, name in (
        *(("queues", "queue", "partition_name"), ("users", "user", "user_name")),
        ("groups", "group", "account"),
    ):
        if kind in site.rows:
            names = site.names(kind)
            columns[name] = [names.get(number, "") for number in jobs[code].tolist()]
            unknown = np.array([number >= 0 and number not in names for number in jobs[code].tolist()])
            counted |= tally("noted", f"has a {code} that is not in .{kind}", ids[unknown])
    if strange:
        words = ", ".join(word for word, _ in strange.most_common(5))
        counted[f"properties that no machine has: {words}"] = TallyEntry("ignored", strange.total())
    table = jobs.drop(columns="property").assign(**columns)
    tallied = {**workload.tally, **counted}
    header = {**workload.header, "Note": _note(workload)}
    imported = replace(workload, jobs=table, tally=tallied, header=header)
    return replace(imported, tally={**tallied, **note_ignored(imported, heeded_columns(imported))})


def _note(workload: Workload) -> str:
    own = workload.header.get("Note", "")
    return "; ".join(filter(None, (own, "requests are of the site that stands beside the log")))


def _parse_properties(
    properties: list[str], site: SwfSite
) -> tuple[Ints, Ints, list[str], Flags, "Counter[str]"]:
    """Return nodes, cores of each (-1: not stated), features, who has whole nodes, and unknown words."""
    nodes, cores = np.full(len(properties), -1), np.full(len(properties), -1)
    exclusive = np.zeros(len(properties), np.bool_)
    features, strange = [], Counter[str]()
    there = site.properties
    for row, text in enumerate(properties):
        wanted: list[str] = []
        for word in filter(None, text.split(":")):
            if shape := _SHAPE.fullmatch(word):
                nodes[row], cores[row] = int(shape[1]), int(shape[2])
            elif word == _EXCLUSIVE:
                exclusive[row] = True
            elif word in there:
                wanted.append(word)
            elif word not in (ANY, "-1", "nan"):
                strange[word] += 1
        features.append("&".join(wanted))
    return nodes, cores, features, exclusive, strange
