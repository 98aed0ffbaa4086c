"""The partitions of a slurm.conf, or of `scontrol show partition`."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, cast

from bridge.cluster import slurm_values as values
from bridge.cluster.description import Partition
from bridge.cluster.imported import ImportNotes
from bridge.cluster.limits import PreemptMode
from bridge.cluster.node_groups import format_nodes
from bridge.cluster.slurm_nodes import SlurmNodes

#: Settings of partitions that decide when or where jobs run and have no place here.
_UNHONOURED = {
    name.lower(): name
    for name in (
        *(
            "AllowGroups",
            "AllocNodes",
            "Alternate",
            "CpuBind",
            "DefMemPerGPU",
            "DefCpuPerGPU",
            "ExclusiveTopo",
        ),
        *("ExclusiveUser", "JobDefaults", "LLN", "MaxCPUsPerSocket", "MaxMemPerCPU", "OverTimeLimit"),
        *("ReqResv", "RootOnly", "SelectTypeParameters", "TRESBillingWeights", "Topology", "TRESWeights"),
    )
}
#: What a setting says where it says nothing.
_NOTHING = frozenset({"", "(null)", "none", "n/a", "all", "no", "0", "unlimited"})
_UNLIMITED = frozenset({"", "(null)", "none", "n/a", "unlimited", "infinite", "-1", "notset", "not_set"})
#: Slurm's modes of preemption, word by word, with the one that counts here; GANG goes with SUSPEND.
_MODES: Mapping[str, PreemptMode] = {
    "OFF": "off",
    "REQUEUE": "requeue",
    "CANCEL": "cancel",
    "SUSPEND": "suspend",
}


def seconds_of(text: str, *, minutes: bool = True) -> int | None:
    """Return a limit of time in s; None: there is none. ValueError: it is none of Slurm's forms."""
    limit = values.limit(text, minutes=minutes)
    return None if limit is None or math.isinf(limit) else int(limit)


def number_of(text: str) -> int | None:
    """Return a whole number; None: UNLIMITED, INFINITE, or nothing is stated. Else ValueError."""
    if text.lower() in _UNLIMITED:
        return None
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise ValueError(f"{text[:40]!r} is no whole number")
    return int(text)


def words_of(text: str) -> tuple[str, ...]:
    """Return the names of a list; none for ALL and empty texts."""
    words = tuple(filter(None, text.split(",")))
    return () if text.lower() in _NOTHING else words


def preempt_mode_of(text: str, notes: ImportNotes) -> PreemptMode | None:
    """Return the mode of preemption that counts; None if none is stated."""
    words = [word for word in text.upper().split(",") if word]
    for word in words:
        if word not in _MODES and word not in ("GANG", "CLUSTER"):
            notes.leave(f"PreemptMode={word}")
    modes = [_MODES[word] for word in words if word in _MODES]
    if "GANG" in words and "SUSPEND" not in words:
        notes.leave("PreemptMode=GANG: jobs do not take turns on cores")
    return modes[0] if modes else None


def partition_of(
    line: Mapping[str, str],
    nodes: SlurmNodes,
    usual: Mapping[str, str],
    whole_nodes: bool,
    notes: ImportNotes,
) -> Partition | None:
    """Return the partition of a line; None if it has no node. ValueError: a cell is not what it should be.

    `usual`: settings of the whole cluster, which count where the line has none of its own; `whole_nodes`:
    SelectType=select/linear.
    """
    name = line["partitionname"]
    members, unknown = nodes.members(_nodes_text(line.get("nodes", "")))
    members = list(dict.fromkeys([*members, *nodes.named.get(name, ())]))
    if unknown:
        notes.leave(f"partition {name}: nodes that no line describes", len(unknown))
    for word in _UNHONOURED.keys() & line.keys():
        if line[word].lower() not in _NOTHING:
            notes.leave(f"partitions with {_UNHONOURED[word]}")
    if not members:
        notes.leave("partitions without nodes")
        return None
    listed = ("ALL",) if len(members) == len(nodes.nodes) else (format_nodes(members),)
    state = line.get("state", "UP").lower()
    if state not in ("up", "down", "drain", "inactive"):
        raise ValueError(f"State={line['state']} is no state of a partition")
    # 0 is no limit, where a limit is one at least
    fields: dict[str, Any] = {
        "max_time": seconds_of(line.get("maxtime", "")) or None,
        "default_time": seconds_of(line.get("defaulttime", "")) or None,
        "max_nodes": number_of(line.get("maxnodes", "")),
        "max_cores_per_node": number_of(line.get("maxcpuspernode", "")) or None,
        "default_memory_per_core": _memory(line.get("defmempercpu") or usual.get("defmempercpu", "")),
        "default_memory_per_node": _memory(line.get("defmempernode") or usual.get("defmempernode", "")),
        "max_memory_per_node": _memory(line.get("maxmempernode") or usual.get("maxmempernode", "")),
        "preempt_mode": preempt_mode_of(line.get("preemptmode", ""), notes),
    }
    for field, word in (
        ("min_nodes", "minnodes"),
        ("tier", "prioritytier"),
        ("priority_factor", "priorityjobfactor"),
        ("grace_time", "gracetime"),
    ):
        if (number := number_of(line.get(word, ""))) is not None:
            fields[field] = number
    return Partition(
        name=name,
        nodes=listed,
        default=line.get("default", "").upper() == "YES",
        state=cast(Literal["up", "down", "drain", "inactive"], state),
        exclusive=whole_nodes or _is_exclusive(line, notes),
        qos=next(iter(words_of(line.get("qos", ""))), ""),
        allow_qos=words_of(line.get("allowqos", "")),
        deny_qos=words_of(line.get("denyqos", "")),
        allow_accounts=words_of(line.get("allowaccounts", "")),
        deny_accounts=words_of(line.get("denyaccounts", "")),
        **fields,
    )


def _nodes_text(text: str) -> str:
    return "" if text.lower() in ("(null)", "none") else text


def _memory(text: str) -> int | None:
    return number_of(text.removesuffix("M")) or None


def _is_exclusive(line: Mapping[str, str], notes: ImportNotes) -> bool:
    text = (line.get("oversubscribe") or line.get("shared") or "NO").upper()
    word, _, jobs = text.partition(":")
    if word in ("FORCE", "YES") and jobs != "1":
        notes.leave(f"partitions with OverSubscribe={word}: no core is given to two jobs here")
    return word == "EXCLUSIVE"


def one_default(partitions: Iterable[Partition], notes: ImportNotes) -> None:
    """Note the default partition, if no line states it."""
    all_of_them = list(partitions)
    if all_of_them and not any(one.default for one in all_of_them):
        notes.note(f"no partition is the default: jobs that name none go to {all_of_them[0].name}")
