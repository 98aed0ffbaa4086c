"""Jobs from the options of sbatch, given by column: what each asks of a site."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.cluster.request_texts import parse_constraints, parse_licenses
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.request_words import (
    gres_counts,
    mebibytes,
    nodes_named,
    parts_named,
    tasks_of,
)
from bridge.scheduler.slurm.site import Site

#: Columns that are no options.
_OTHER = frozenset(("job", "submit", "runtime"))
#: Columns, and long options, by one name.
_ALIASES = {"time": "time_limit", "mem": "mem_per_node", "name": "name", "w": "nodelist", "x": "exclude"}
_OPTIONS = frozenset(
    (
        *("user", "account", "partition", "qos", "nodes", "ntasks", "cpus_per_task", "mem_per_node"),
        *("mem_per_cpu", "gres", "time_limit", "exclusive", "constraint", "dependency", "begin", "array"),
        *("nodelist", "exclude", "licenses", "reservation", "requeue", "nice", "extra", "name", "hold"),
        *("contiguous", "time_min", "ntasks_per_node", "priority", "no_requeue", "gpus_per_node", "mincpus"),
        *("deadline", "oversubscribe", "comment", "job_name"),
    )
)
_SHORT = {
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus_per_task",
    "t": "time_limit",
    "p": "partition",
    "q": "qos",
    "A": "account",
    "C": "constraint",
    "L": "licenses",
    "w": "nodelist",
    "x": "exclude",
    "d": "dependency",
    "b": "begin",
    "H": "hold",
    "a": "array",
    "J": "name",
    "s": "oversubscribe",
}


@dataclass
class Names:
    """Ids of the labels of jobs that were submitted, and the next id."""

    ids: dict[str, int] = field(default_factory=dict)
    next_id: int = 1


def options_of(row: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the options of each component of a row; ValueError: one is not known."""
    base = {name: text.strip() for name, text in row.items() if name not in _OTHER and text and text.strip()}
    extra = base.pop("extra", "")
    for name in base:
        if name not in _OPTIONS:
            raise ValueError(f"option {name} of sbatch is not known here")
    components = [[]]  # type: list[list[str]]
    for word in shlex.split(extra):
        if word == ":":
            components.append([])
        else:
            components[-1].append(word)
    return [base | parse_options(words) for words in components]


def parse_options(words: Sequence[str]) -> dict[str, str]:
    """Return the options of sbatch by their columns' names; ValueError: one is not known."""
    options: dict[str, str] = {}
    words = list(words)
    while words:
        word = words.pop(0)
        if match := re.fullmatch(r"--([\w-]+)(?:=(.*))?", word):
            name, value = match[1].replace("-", "_"), match[2]
            name = _ALIASES.get(name, name)
        elif (match := re.fullmatch(r"-(\w)(.*)", word)) and match[1] in _SHORT:
            name, value = _SHORT[match[1]], match[2].lstrip("=") or None
        else:
            raise ValueError(f"option {word} of sbatch is not known here")
        if name not in _OPTIONS:
            raise ValueError(f"option {word} of sbatch is not known here")
        flags = ("contiguous", "exclusive", "hold", "requeue", "no_requeue", "oversubscribe")
        if value is None and name not in flags and words and not words[0].startswith("-"):
            value = words.pop(0)
        options[name] = "1" if value is None else value
    return options


def minutes_of(text: str) -> int:
    """Return seconds of a time limit as sbatch reads it: minutes, M:S, H:M:S, D-H…; ValueError."""
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return int(float(text) * 60)
    if match := re.fullmatch(r"(\d+):(\d+)", text):
        return -(-(int(match[1]) * 60 + int(match[2])) // 60) * 60
    from bridge.cluster.slurm_values import duration

    return -(-duration(text) // 60) * 60


def jobs_of(row: Mapping[str, str], site: Site, names: Names, epoch: int) -> list[SlurmJob]:
    """Return the jobs of a row, submitted now: one, the tasks of an array, or components; ValueError."""
    components = options_of(row)
    label = row["job"]
    first = names.next_id
    names.ids[label] = first
    jobs: list[SlurmJob] = []
    for offset, options in enumerate(components):
        fields = _fields(options, site, names, epoch, label)
        if len(components) > 1:
            fields |= {"het": first, "het_offset": offset}
        indices, most = tasks_of(options["array"]) if options.get("array") else ([-1], 0)
        for index in indices:
            jobs.append(SlurmJob(id=first + offset, key=-1, task=index, array_most=most, **fields))
    names.next_id += len(components) if len(components) > 1 else max(len(jobs), 1)
    return jobs


def _fields(options: Mapping[str, str], site: Site, names: Names, epoch: int, label: str) -> dict[str, Any]:
    user = options.get("user", "root")
    account = options.get("account") or site.default_account.get(user, "root")
    assoc = site.user_of(user, account)
    nodes = options.get("nodes", "")
    low, _, high = nodes.partition("-")
    each = int(options.get("cpus_per_task") or 1)
    min_nodes = int(low or 1)
    per_node = int(options.get("ntasks_per_node") or 0)
    tasks = int(options.get("ntasks") or 0) or (min_nodes * per_node if per_node else min_nodes)
    max_nodes = int(high or low or 0) or tasks
    if per_node and not low:
        min_nodes = max_nodes = -(-tasks // per_node)
    name = options.get("name") or options.get("job_name") or label
    about = assoc.about
    qos = options.get("qos") or (getattr(about, "default_qos", "") if about is not None else "") or "normal"
    if qos not in site.qos:
        raise ValueError(f"there is no QOS {qos}")
    partition, gpus = options.get("partition", ""), options.get("gpus_per_node", "")
    fields: dict[str, Any] = {
        "user": user,
        "assoc": assoc,
        "qos": qos,
        "name": name,
        "parts": parts_named(partition.split(","), site) if partition else (site.default_part,),
        "min_nodes": min_nodes,
        "max_nodes": max(max_nodes, min_nodes),
        "tasks": tasks,
        "cpus_per_task": each,
        "min_cpus": max(tasks * each, int(options.get("mincpus") or 0), min_nodes),
        "memory_node": mebibytes(options.get("mem_per_node", "")),
        "memory_cpu": mebibytes(options.get("mem_per_cpu", "")),
        "gres": gres_counts(f"gpu:{gpus}" if gpus else options.get("gres", "")),
        "exclusive": options.get("exclusive", "") not in ("", "0"),
        "limit": minutes_of(options["time_limit"]) if options.get("time_limit") else 0,
        "min_limit": minutes_of(options["time_min"]) if options.get("time_min") else 0,
        "licenses": parse_licenses(options.get("licenses", "")),
        "reservation": options.get("reservation", ""),
        "nice": int(options.get("nice") or 0),
        "held": options.get("hold", "") not in ("", "0") or options.get("priority") == "0",
        "requeue": options.get("requeue", "1") not in ("0", "no") and "no_requeue" not in options,
        "required": nodes_named(options.get("nodelist", ""), site),
        "excluded": nodes_named(options.get("exclude", ""), site),
        "contiguous": options.get("contiguous", "") not in ("", "0"),
        "begin": epoch + int(float(options["begin"])) if options.get("begin") else 0,
    }
    count = fields["required"].bit_count()
    if count > fields["min_nodes"]:
        fields["min_nodes"], fields["max_nodes"] = count, max(count, fields["max_nodes"])
        fields["min_cpus"] = max(fields["min_cpus"], count)
    if text := options.get("constraint", ""):
        fields["features"] = parse_constraints(text)
        fields["one_feature"] = "[" in text
    fields |= _dependencies(options.get("dependency", ""), names)
    return fields


_KINDS = "after|afterany|afterok|afternotok|aftercorr"


def _dependencies(text: str, names: Names) -> dict[str, Any]:
    if not text:
        return {}
    conditions: list[tuple[str, tuple[tuple[int, int], ...]]] = []
    singleton = False
    for word in re.split(r"[,?]", text):
        if word == "singleton":
            singleton = True
            continue
        match = re.fullmatch(rf"({_KINDS}):(.+)", word)
        if not match:
            raise ValueError(f"{word[:40]!r} is no dependency")
        parents: list[tuple[int, int]] = []
        for one in match[2].split(":"):
            label, _, minutes = one.partition("+")
            label = label.strip("%")
            parents.append((names.ids.get(label, -1), int(minutes or 0)))
        conditions.append((match[1], tuple(parents)))
    return {"dependencies": tuple(conditions), "any_dependency": "?" in text, "singleton": singleton}
