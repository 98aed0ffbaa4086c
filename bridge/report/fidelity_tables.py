"""What `bridge fidelity` shows: how near each replay is, what the record explains, where both disagree."""

from collections.abc import Iterator, Mapping
from typing import Any

from bridge.base.counted import counted
from bridge.judge.fidelity import WITHIN
from bridge.report.table import Table
from bridge.report.tables import duration

#: Reasons of the record in words, and disagreements that are shown.
_WORDS = {
    "no_room": "no room",
    "partition_full": "its partition full",
    "reserved": "reserved for a blocked job",
    "unexplained": "unexplained",
}
_KINDS = {"partition": "partition", "qos": "QOS", "queue": "queue", "size": "nodes"}
#: Groups of a kind that are shown.
_GROUPS = 12
#: Headings that fit into 80 columns: a space is where a terminal may break one.
_HEADINGS = (
    "log MAE",
    "rank",
    f"% ≤ {'/'.join(f'{s // 60}' for s in WITHIN)} min",
    "bias",
    "W1",
    "W1 / mean",
)
#: Those of a group of jobs, which has a column of its own for their number.
_OF_GROUP = tuple(heading for heading in _HEADINGS if heading != "W1")


def policies_of(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the policies of a document of `bridge fidelity`, be it one or several."""
    return list(document.get("policies") or [document])


def fidelity(document: Mapping[str, Any]) -> list[Any]:
    policies = policies_of(document)
    mean = document["recorded"]["wait.mean"]
    how = (
        f", {counted(document['windows'], 'window')} of {counted(document['window'], 'job')}"
        if document["windows"]
        else ""
    )
    part = _part(document["from"], document["until"])
    jobs = f"{counted(policies[0]['jobs'], 'job')}, recorded mean wait {duration(mean)}"
    title = f"{document['workload']}: {part}, {jobs}{how}"
    table = Table(("", *_HEADINGS), title=title)
    for one in policies:
        table.add(one["name"], *_cells(one))
    behind = _part(document["split"], document["until"])
    second = Table(("", *_HEADINGS), title=f"{behind}, beside forecasts from the part before")
    for one in policies:
        second.add(one["name"], *_cells(one["behind"]["policy"]))
    second.add("textbook", *_cells(document["textbook"]))
    second.add("null", *_cells(document["null"]))
    best = document["textbook"]["policy"]
    output: list[Any] = [table, second, f"textbook: {best}, the nearest before; null: the waits before."]
    whole = "of one replay from begin to end; `cluster infer` prints that of windows"
    output.append(f"log-MAE: {'of windows from the recorded state' if document['windows'] else whole}.")
    output += (f"{one['name']}: {_verdict(one['behind']['verdict'])}." for one in policies)
    output += _waiting(document["waiting"])
    for one in policies:
        output += _groups(one)
        output += _disagreements(one)
    return output


def _part(low: float, high: float) -> str:
    return "the whole log" if (low, high) == (0, 1) else f"{100 * low:g} to {100 * high:g} % of the log"


def measures(one: Mapping[str, Any]) -> list[str]:
    """Return the cells of a distance, each measure by itself."""
    rank, bias, relative = one["rank_correlation"], one["bias"], one["wasserstein_relative"]
    return [
        f"{one['log_mae']:.2f}",
        "–" if rank is None else f"{rank:.2f}",
        *(f"{100 * share:.0f} %" for share in one["within"].values()),
        "–" if bias is None else f"{100 * bias:+.0f} %",
        duration(one["wasserstein"]),
        "–" if relative is None else f"{relative:.2f}",
    ]


def _cells(one: Mapping[str, Any]) -> list[str]:
    """Return the cells of a distance, under `_HEADINGS`."""
    log_mae, rank, *_, bias, seconds, relative = measures(one)
    within = "/".join(f"{100 * share:.0f}" for share in one["within"].values())
    return [log_mae, rank, within, bias, seconds, relative]


def _of_group(one: Mapping[str, Any]) -> list[str]:
    """Return the cells of a group's distance, under `_OF_GROUP`."""
    *cells, _, relative = _cells(one)
    return [*cells, relative]


def _verdict(verdicts: Mapping[str, Mapping[str, Any]]) -> str:
    names = {"null": "the null", "textbook": "the textbook rule"}
    words = {"better": "nearer to the record than", "worse": "farther from the record than"}
    parts = []
    for beside, one in verdicts.items():
        verb = words.get(one["verdict"], f"{one['verdict']} from")
        parts.append(f"{verb} {names[beside]} ({one['difference']['mean']:+.2f} log-MAE)")
    return ", ".join(parts)


def _waiting(shares: Mapping[str, Any]) -> Iterator[str]:
    if shares["unexplained"] is None:
        yield "Nobody waited in the record."
        return
    percent = {key: f"{100 * shares[key]:.0f} %" for key in _WORDS}
    full = f", a full partition {percent['partition_full']}" if shares["partition_full"] else ""
    yield (
        f"Of all waiting, lack of room explains {percent['no_room']}{full}, one reservation "
        f"{percent['reserved']}; nothing in the record explains {percent['unexplained']}."
    )
    if shares["idle_user"] is not None:
        yield (
            f"Of the unexplained, {100 * shares['idle_user']:.0f} % while the job's user ran nothing; "
            f"{100 * shares['top_user']:.0f} % is one user's."
        )
    if shares["above"]:
        yield (
            f"For {100 * shares['above']:.2g} % of the time more nodes are in use than there are "
            f"({shares['peak']:,} at most)."
        )


def _groups(one: Mapping[str, Any]) -> Iterator[Table]:
    for kind, label in _KINDS.items():
        groups: Mapping[str, Mapping[str, Any]] = one["groups"].get(kind, {})
        if len(groups) > 1:
            names = [*groups]
            if kind != "size":
                names.sort(key=lambda name: -groups[name]["jobs"])
            caption = "" if len(names) <= _GROUPS else f"The {_GROUPS} with most jobs of {len(names)}."
            rows = ((n, f"{groups[n]['jobs']:,}", *_of_group(groups[n])) for n in names[:_GROUPS])
            yield Table((label, "jobs", *_OF_GROUP), rows, title=f"{one['name']} by {label}", caption=caption)


def _disagreements(one: Mapping[str, Any]) -> Iterator[str]:
    if not one["disagreements"]:
        yield f"{one['name']}: every start is the recorded one."
        return
    yield f"{one['name']}: the {len(one['disagreements'])} largest disagreements"
    for row in one["disagreements"]:
        yield (
            f"  job {row['job']}, {counted(row['nodes'], 'node')}, waited {duration(row['recorded_wait'])}: "
            f"{recorded_reason(row)}; replayed {duration(row['replayed_wait'])}: {replayed_reason(row)}"
        )


def recorded_reason(row: Mapping[str, Any]) -> str:
    """Return why a job waited in the record, in words."""
    reason = row["recorded"]
    if not reason["shares"]:
        return "started at once"
    parts = [f"{100 * share:.0f} % {_WORDS[name]}" for name, share in reason["shares"].items()]
    if reason["free"] is None:
        return ", ".join(parts)
    idle = "" if not reason["idle_user"] else " and its user ran nothing"
    while_idle = f"while {counted(reason['free'], 'node was', 'nodes were')} idle{idle}"
    if len(parts) == 1:
        return f"{while_idle}, nothing in the record explains it"
    return f"{', '.join(parts)}, {while_idle}"


def replayed_reason(row: Mapping[str, Any]) -> str:
    """Return how a job started in the replay, in words."""
    if row["replayed_wait"] == 0:
        return "started at once"
    reason = row["replayed"]
    if not reason:
        return "waited"
    if reason["kind"] == "never":
        return "refused, or never started"
    if reason["kind"] == "backfilled":
        return "backfilled" + (f" past job {reason['overtook']}" if reason["overtook"] is not None else "")
    return "started as head of the queue"
