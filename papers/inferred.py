"""What `bridge cluster infer` says of a site's log, with its lists of nodes and without them; kept.

python -m papers.inferred LOG.parquet …    # measures these logs anew
"""

import sys
from dataclasses import replace
from typing import Any

from bridge.commands.infer import InferredSite, infer_site
from bridge.commands.infer_config import InferConfig
from bridge.config.fields import record_of
from bridge.report.table import Table
from bridge.workload.formats import read
from bridge.workload.ran_on import RAN_ON
from papers import store

#: Logs that name the nodes of their jobs: file names without their endings.
LOGS = ("pozidriv",)
#: Windows of the second half that are played, and their jobs.
WINDOWS, WINDOW = 6, 300
#: What an estimate is of, in front of the partition's name.
_COUNTED, _LISTED = "size of partition ", "nodes of partition "


def measured(path: str) -> dict[str, Any]:
    """Return what each way says of partitions, and what that changes on the second half."""
    workload, config = read(path), InferConfig(windows=WINDOWS, window=WINDOW)
    without = replace(workload, jobs=workload.jobs.drop(columns=RAN_ON))
    counts, lists = infer_site(without, config), infer_site(workload, config)
    return {
        "counts": _estimates(counts),
        "lists": _estimates(lists),
        "steps": {
            way: [record_of(step) for step in site.steps]
            for way, site in (("counts", counts), ("lists", lists))
        },
        "notes": list(lists.notes),
    }


def _estimates(site: InferredSite) -> dict[str, Any]:
    return {one.what: {"value": one.value, "evidence": one.evidence} for one in site.estimates}


def read_inferred() -> dict[str, Any]:
    return store.read_json("inferred")


def table() -> Table:
    """Return a row a partition: its nodes by counts and by lists, and with whom it shares some."""
    rows = Table(("log", "partition", "by counts", "by lists", "jobs that name nodes", "shares nodes with"))
    for log, document in read_inferred().items():
        counts, lists = document["counts"], document["lists"]
        for what, one in lists.items():
            if what.startswith(_LISTED):
                name = what.removeprefix(_LISTED)
                counted = counts.get(_COUNTED + name, {"value": None})["value"]
                before = "not identifiable" if counted is None else f"{counted:,}"
                jobs = one["evidence"].removeprefix("NodeLists of ").partition(" ")[0]
                rows.add(log, name, before, f"{one['value'] or 0:,}", jobs, _shares(lists, name))
    return rows


def steps() -> Table:
    """Return a row a step: the log-MAE of held-back windows with one pool, and with the inferred cluster."""
    words = {"counts": "by counts", "lists": "by lists"}
    rows = Table(
        ("log", "partitions", "jobs", "log-MAE of one pool", "log-MAE with them", "written"), words=(1,)
    )
    for log, document in read_inferred().items():
        for way, label in words.items():
            for step in document["steps"][way]:
                written = "yes" if step["kept"] else "refused"
                rows.add(
                    log, label, f"{step['jobs']:,}", f"{step['before']:.2f}", f"{step['after']:.2f}", written
                )
    return rows


def _shares(lists: dict[str, Any], name: str) -> str:
    parts = []
    for what, one in lists.items():
        pair = what.removeprefix("nodes that ").removesuffix(" share").split(" and ")
        if what.startswith("nodes that ") and name in pair:
            other = pair[1 - pair.index(name)]
            parts.append(f"{other} ({one['value']:,})")
    return ", ".join(parts) or "none"


def main(paths: list[str]) -> None:
    named = {path.rpartition("/")[2].partition(".")[0]: path for path in paths}
    for name, document in store.measure_logs("inferred", LOGS, lambda log: measured(named[log]), [*named]):
        print(f"{name}: {document['notes']}")


if __name__ == "__main__":
    main(sys.argv[1:])
